// Generations merged into the base, against a dictionary: random histories, faults at
// every operation of the store, races, columns that changed.
#include <atomic>
#include <random>
#include <thread>

#include "exec/add_columns.h"
#include "exec/alter_columns.h"
#include "exec/merge.h"
#include "io/faulting_store.h"
#include "memwal/converge.h"
#include "memwal/test_shards.h"
#include "table/schema_change.h"

namespace glaive::memwal {
namespace {

const ShardId kShard = ShardId::Derive("unsharded");

struct History {
  Model base;
  // Per shard, its generations, oldest first.
  std::vector<std::vector<std::vector<TestChange>>> shards;
  bool composite = false;
};

// Keys belong to a shard by their number.
History RandomHistory(std::mt19937_64* random, int num_shards) {
  const auto below = [&](uint64_t n) { return static_cast<int64_t>((*random)() % n); };
  History history;
  history.composite = below(2) == 0;
  const auto range = 1 + static_cast<uint64_t>(below(80));
  const auto key = [&](int64_t shard) {
    return TestKey{below(range) * num_shards + shard,
                   history.composite ? std::string(1, static_cast<char>('a' + below(3)))
                                     : std::string()};
  };
  const int64_t rows = below(60);
  for (int64_t i = 0; i < rows; ++i) {
    history.base[key(below(static_cast<uint64_t>(num_shards)))] =
        "base" + std::to_string(i);
  }
  for (int64_t s = 0; s < num_shards; ++s) {
    auto& generations = history.shards.emplace_back();
    const int64_t count = 1 + below(6);
    for (int64_t g = 0; g < count; ++g) {
      auto& changes = generations.emplace_back();
      const int64_t size = 1 + below(40);
      for (int64_t i = 0; i < size; ++i) {
        TestChange change{key(s), std::nullopt};
        if (below(4) != 0) {
          change.text = "g" + std::to_string(g) + "." + std::to_string(i);
        }
        changes.push_back(std::move(change));
      }
    }
  }
  return history;
}

ShardId ShardNumber(size_t i) { return ShardId::Derive("bucket-" + std::to_string(i)); }

Status Publish(const table::TableEnv& env, const History& history, bool stable_ids) {
  GLAIVE_RETURN_NOT_OK(
      MakeBase(env, history.base, history.composite, stable_ids).status());
  for (size_t s = 0; s < history.shards.size(); ++s) {
    for (const auto& generation : history.shards[s]) {
      GLAIVE_RETURN_NOT_OK(
          AddGeneration(env, ShardNumber(s), generation, history.composite));
    }
  }
  return Status::OK();
}

TEST(CompactShard, EqualsADictionary) {
  const uint64_t seed = TestSeed();
  const uint64_t rounds = Soak() ? 4000 : 30;
  for (uint64_t round = 0; round < rounds; ++round) {
    SCOPED_TRACE("seed " + std::to_string(seed) + ", round " + std::to_string(round));
    std::mt19937_64 random(seed + round);
    const History history = RandomHistory(&random, 1 + static_cast<int>(random() % 3));
    const auto env = NewEnv(io::MakeMemoryStore());
    ASSERT_OK(Publish(env, history, random() % 2 == 0));
    Model model = history.base;
    Model everything = history.base;
    for (const auto& shard : history.shards) {
      for (const auto& generation : shard) Apply(generation, &everything);
    }
    ASSERT_OK_AND_ASSIGN(auto base, table::Dataset::Open(env));
    const auto first_base = base;
    CompactOptions options;
    options.max_generations = 1 + static_cast<int>(random() % 4);
    if (random() % 3 == 0) options.memory_bytes = 1;  // everything is spilled
    for (size_t s = 0; s < history.shards.size(); ++s) {
      size_t merged = 0;
      const auto& generations = history.shards[s];
      while (merged < generations.size()) {
        ASSERT_OK_AND_ASSIGN(auto outcome, CompactShard(base, ShardNumber(s), options));
        const auto expected = std::min(generations.size() - merged,
                                       static_cast<size_t>(options.max_generations));
        ASSERT_EQ(outcome.generations_consumed, static_cast<int64_t>(expected));
        for (size_t i = 0; i < expected; ++i) Apply(generations[merged + i], &model);
        merged += expected;
        ASSERT_EQ(outcome.generations_remaining,
                  static_cast<int64_t>(generations.size() - merged));
        EXPECT_FALSE(outcome.lost_race);
        base = outcome.base;
        ASSERT_OK_AND_ASSIGN(const Model seen, ReadBase(env, history.composite));
        ASSERT_EQ(seen, model);
        ASSERT_OK_AND_ASSIGN(const uint64_t marker,
                             MergedGeneration(env, ShardNumber(s)));
        ASSERT_EQ(marker, merged);
        // Readers see the same rows all the time, also those whose base is old.
        ASSERT_OK_AND_ASSIGN(Model fresh, ReadAll(base, history.composite));
        ASSERT_EQ(fresh, everything);
        if (random() % 2 == 0) {
          ASSERT_OK(CollectShard(*base, ShardNumber(s), {std::chrono::milliseconds(0)})
                        .status());
          ASSERT_OK_AND_ASSIGN(fresh, ReadAll(first_base, history.composite));
          ASSERT_EQ(fresh, everything);
        }
      }
      // Nothing is left, and nothing is committed.
      ASSERT_OK_AND_ASSIGN(auto outcome, CompactShard(base, ShardNumber(s), options));
      EXPECT_EQ(outcome.generations_consumed, 0);
      EXPECT_EQ(outcome.base->version(), base->version());
    }
  }
}

// Names of all objects of the base: not of the shards.
Result<std::set<std::string>> BaseFiles(io::ObjectStore& store) {
  GLAIVE_ASSIGN_OR_RETURN(const auto files, store.List("", /*recursive=*/true));
  std::set<std::string> names;
  for (const auto& file : files) {
    if (!file.is_directory && !file.path.starts_with("_mem_wal/")) {
      names.insert(file.path);
    }
  }
  return names;
}

TEST(CompactShard, FaultsAtEveryOperation) {
  const History history = [] {
    History made;
    made.base = {{{1, ""}, "a"}, {{2, ""}, "b"}, {{3, ""}, "c"}};
    made.shards = {{{{{1, ""}, "A"}, {{4, ""}, "D"}},
                    {{{2, ""}, std::nullopt}, {{4, ""}, "DD"}, {{5, ""}, "E"}}}};
    return made;
  }();
  const Model after = {{{1, ""}, "A"}, {{3, ""}, "c"}, {{4, ""}, "DD"}, {{5, ""}, "E"}};
  for (const auto effect : {io::FaultEffect::kNotDone, io::FaultEffect::kDone}) {
    for (const int64_t memory : {0, 1}) {
      for (int64_t at = 0;; ++at) {
        SCOPED_TRACE("effect " + std::to_string(static_cast<int>(effect)) + ", memory " +
                     std::to_string(memory) + ", operation " + std::to_string(at));
        auto store = io::MakeMemoryStore();
        const auto plain = NewEnv(store, 1);
        ASSERT_OK(Publish(plain, history, at % 2 == 0));
        ASSERT_OK_AND_ASSIGN(const auto files_before, BaseFiles(*store));
        auto injector = std::make_shared<io::FaultInjector>();
        const auto env = NewEnv(io::MakeFaultingStore(store, injector), 1);
        ASSERT_OK_AND_ASSIGN(auto base, table::Dataset::Open(env));
        io::FaultPlan plan;
        plan.fail_at = at;
        plan.effect = effect;
        injector->Arm(plan);
        CompactOptions options;
        options.memory_bytes = memory;
        const auto outcome = CompactShard(base, ShardNumber(0), options);
        const bool fired = injector->fired();
        ASSERT_OK_AND_ASSIGN(const uint64_t marker,
                             MergedGeneration(NewEnv(store, 1), ShardNumber(0)));
        ASSERT_OK_AND_ASSIGN(const Model seen, ReadBase(NewEnv(store, 1), false));
        if (outcome.ok()) {
          ASSERT_EQ(marker, 2u);
        } else if (marker == 0 && effect == io::FaultEffect::kNotDone) {
          ASSERT_OK_AND_ASSIGN(const auto files, BaseFiles(*store));
          ASSERT_EQ(files, files_before) << outcome.status().ToString();
        }
        ASSERT_EQ(seen, marker == 2 ? after : history.base);
        // Once more: what was begun does not stand in the way.
        ASSERT_OK_AND_ASSIGN(base, table::Dataset::Open(NewEnv(store, 1)));
        ASSERT_OK_AND_ASSIGN(auto again, CompactShard(base, ShardNumber(0), options));
        ASSERT_EQ(again.generations_consumed, marker == 2 ? 0 : 2);
        ASSERT_OK_AND_ASSIGN(const Model finally, ReadBase(NewEnv(store, 1), false));
        ASSERT_EQ(finally, after);
        if (!fired) break;
        ASSERT_LT(at, 400);
      }
    }
  }
}

TEST(CompactShard, TwoCompactorsAndBaseWriters) {
  const uint64_t seed = TestSeed();
  for (uint64_t round = 0; round < 6; ++round) {
    SCOPED_TRACE("seed " + std::to_string(seed) + ", round " + std::to_string(round));
    std::mt19937_64 random(seed + round);
    History history = RandomHistory(&random, 1);
    auto store = io::MakeMemoryStore();
    ASSERT_OK(Publish(NewEnv(store), history, round % 2 == 0));
    Model model = history.base;
    for (const auto& generation : history.shards[0]) Apply(generation, &model);
    std::atomic<int64_t> consumed{0};
    std::atomic<bool> compacting{true};
    const auto compactor = [&](int most) {
      const auto env = NewEnv(store);  // shares nothing, like another process
      auto base = table::Dataset::Open(env);
      ASSERT_OK(base.status());
      while (true) {
        CompactOptions options;
        options.max_generations = most;
        auto outcome = CompactShard(*base, ShardNumber(0), options);
        if (KindOf(outcome.status()) == ErrorKind::kTooManyRetries ||
            KindOf(outcome.status()) == ErrorKind::kRetryableConflict) {
          continue;
        }
        ASSERT_OK(outcome.status());
        consumed += outcome->generations_consumed;
        if (outcome->generations_remaining == 0 && !outcome->lost_race) break;
      }
    };
    // Keys of its own.
    std::thread writer([&] {
      const auto env = NewEnv(store);
      for (int64_t i = 0; compacting || i < 3; ++i) {
        const TestKey key{1'000'000 + i, history.composite ? "w" : ""};
        table::WriteOptions options;
        options.mode = table::WriteMode::kAppend;
        ASSERT_OK(WriteBatch(env, ToBatch({{key, "appended"}}, history.composite, false),
                             options)
                      .status());
        model[key] = "appended";
        if (i >= 20) break;
      }
    });
    std::thread first(compactor, 1), second(compactor, 3);
    first.join();
    second.join();
    compacting = false;
    writer.join();
    ASSERT_OK_AND_ASSIGN(const Model seen, ReadBase(NewEnv(store), history.composite));
    ASSERT_EQ(seen, model);
    EXPECT_EQ(consumed, static_cast<int64_t>(history.shards[0].size()));
  }
}

// Two compactors begin with the same generations, and one of them takes fewer. What a
// base writer did to a row after it was merged is not undone by merging it again.
TEST(CompactShard, NeverMergedAgain) {
  auto store = io::MakeMemoryStore();
  const auto env = NewEnv(store);
  ASSERT_OK_AND_ASSIGN(auto base, MakeBase(env, {{{1, ""}, "a"}, {{2, ""}, "b"}}, false));
  ASSERT_OK(AddGeneration(env, kShard, {{{1, ""}, "first"}}, false));
  ASSERT_OK(AddGeneration(env, kShard, {{{2, ""}, "second"}}, false));
  // The slow one has read everything, then the fast one commits, then a base writer.
  ASSERT_OK_AND_ASSIGN(auto old, table::Dataset::Open(NewEnv(store)));
  CompactOptions one;
  one.max_generations = 1;
  ASSERT_OK(CompactShard(base, kShard, one).status());
  exec::MergeOptions change;
  change.on = {"id"};
  change.matched = exec::MatchedAction::kUpdate;
  const auto batch = ToBatch({{{1, ""}, "changed"}}, false, false);
  ASSERT_OK_AND_ASSIGN(auto latest, base->Latest());
  ASSERT_OK(exec::MergeInsert(
                latest,
                arrow::RecordBatchReader::Make({batch}, batch->schema()).ValueOrDie(),
                change)
                .status());
  exec::MergeOptions slow = change;
  slow.insert_not_matched = true;
  slow.compacted = {{std::string(kShard.bytes()), 2}};
  slow.compacted_before = {0};
  const auto both = ToBatch({{{1, ""}, "first"}, {{2, ""}, "second"}}, false, false);
  EXPECT_KIND(
      ErrorKind::kConflict,
      exec::MergeInsert(
          old, arrow::RecordBatchReader::Make({both}, both->schema()).ValueOrDie(), slow)
          .status());
  ASSERT_OK_AND_ASSIGN(auto outcome, CompactShard(old, kShard));
  EXPECT_EQ(outcome.generations_consumed, 1);
  ASSERT_OK_AND_ASSIGN(const Model rows, ReadBase(NewEnv(store), false));
  EXPECT_EQ(rows, (Model{{{1, ""}, "changed"}, {{2, ""}, "second"}}));
}

// Columns of the base that were renamed, dropped and added since the generations were
// written; the added one has the id that tombstones have in the generations.
TEST(CompactShard, ColumnsFollowTheirIds) {
  const auto env = NewEnv(io::MakeMemoryStore());
  ASSERT_OK_AND_ASSIGN(auto base, MakeBase(env, {{{1, ""}, "a"}, {{2, ""}, "b"}}, false));
  ASSERT_OK(AddGeneration(env, kShard, {{{2, ""}, "B"}, {{3, ""}, "C"}}, false));
  ASSERT_OK(AddGeneration(env, kShard, {{{1, ""}, std::nullopt}}, false));
  ASSERT_OK_AND_ASSIGN(base, base->Latest());
  const std::vector<std::string> dropped = {"word"};
  ASSERT_OK_AND_ASSIGN(base, exec::DropColumns(base, dropped));
  table::ColumnAlteration rename;
  rename.path = "text";
  rename.rename = "word";
  ASSERT_OK_AND_ASSIGN(base, exec::AlterColumns(base, std::span(&rename, 1)));
  const arrow::Schema added({arrow::field("extra", arrow::boolean())});
  ASSERT_OK_AND_ASSIGN(base, exec::AddNullColumns(base, added));
  EXPECT_EQ(base->schema().FindTopLevel("extra")->id, 3);
  ASSERT_OK_AND_ASSIGN(auto outcome, CompactShard(base, kShard));
  EXPECT_EQ(outcome.generations_consumed, 2);
  EXPECT_EQ(outcome.rows_merged, 2);
  EXPECT_EQ(outcome.rows_deleted, 1);
  ASSERT_OK_AND_ASSIGN(auto rows, exec::ScanToTable(outcome.base, exec::ScanOptions()));
  std::map<int64_t, std::string> seen;
  ASSERT_OK_AND_ASSIGN(auto batch, rows->CombineChunksToBatch());
  for (int64_t i = 0; i < batch->num_rows(); ++i) {
    seen[static_cast<const arrow::Int64Array&>(*batch->GetColumnByName("id")).Value(i)] =
        static_cast<const arrow::StringArray&>(*batch->GetColumnByName("word"))
            .GetString(i);
  }
  EXPECT_EQ(seen, (std::map<int64_t, std::string>{{2, "B"}, {3, "C"}}));
  EXPECT_EQ(batch->GetColumnByName("extra")->null_count(), 2);
}

// Stored in another form than users see.
TEST(CompactShard, JsonColumns) {
  const auto env = NewEnv(io::MakeMemoryStore());
  const auto json =
      arrow::field("doc", arrow::utf8(), true,
                   arrow::key_value_metadata({"ARROW:extension:name"}, {"arrow.json"}));
  const auto rows = [&](const std::vector<std::pair<int64_t, std::string>>& documents,
                        bool generation) {
    arrow::Int64Builder id;
    arrow::StringBuilder doc;
    arrow::BooleanBuilder dead;
    for (const auto& [key, document] : documents) {
      EXPECT_OK(id.Append(key));
      EXPECT_OK(document.empty() ? doc.AppendNull() : doc.Append(document));
      EXPECT_OK(dead.Append(false));
    }
    arrow::FieldVector fields = {KeyField("id", arrow::int64(), 1), json};
    arrow::ArrayVector columns = {id.Finish().ValueOrDie(), doc.Finish().ValueOrDie()};
    if (generation) {
      fields.push_back(arrow::field(kTombstone, arrow::boolean(), false));
      columns.push_back(dead.Finish().ValueOrDie());
    }
    return arrow::RecordBatch::Make(arrow::schema(fields),
                                    static_cast<int64_t>(documents.size()), columns);
  };
  ASSERT_OK_AND_ASSIGN(auto base,
                       WriteBatch(env, rows({{1, "{\"a\":1}"}, {2, "[2]"}}, false), {}));
  ASSERT_OK_AND_ASSIGN(base, AttachMemWal(base));
  ShardManifests manifests(env.store, kShard);
  ASSERT_OK_AND_ASSIGN(const auto manifest, manifests.Claim(0));
  table::TableEnv inner = env;
  inner.store = env.store->Child(ShardDir(kShard) + "/any_gen_1");
  ASSERT_OK(
      WriteBatch(inner, rows({{2, "{\"b\":[true,null]}"}, {3, ""}}, true), {}).status());
  ASSERT_OK(manifests
                .Update(1, manifest,
                        [](ShardManifest* next) {
                          next->add_sstables()->set_generation(1);
                          next->mutable_sstables(0)->set_path("any_gen_1");
                          next->set_current_generation(2);
                          return Status::OK();
                        })
                .status());
  ASSERT_OK_AND_ASSIGN(auto outcome, CompactShard(base, kShard));
  EXPECT_EQ(outcome.rows_merged, 2);
  ASSERT_OK_AND_ASSIGN(auto table, exec::ScanToTable(outcome.base, exec::ScanOptions()));
  ASSERT_OK_AND_ASSIGN(const auto batch, table->CombineChunksToBatch());
  std::map<int64_t, std::string> seen;
  const auto& id = static_cast<const arrow::Int64Array&>(*batch->GetColumnByName("id"));
  const auto& doc =
      static_cast<const arrow::StringArray&>(*batch->GetColumnByName("doc"));
  for (int64_t i = 0; i < batch->num_rows(); ++i) {
    seen[id.Value(i)] = doc.IsNull(i) ? "null" : doc.GetString(i);
  }
  EXPECT_EQ(seen, (std::map<int64_t, std::string>{
                      {1, "{\"a\":1}"}, {2, "{\"b\":[true,null]}"}, {3, "null"}}));
}

TEST(CompactShard, WhatIsRefused) {
  const auto env = NewEnv(io::MakeMemoryStore());
  ASSERT_OK_AND_ASSIGN(auto base, MakeBase(env, {{{1, ""}, "a"}}, false));
  CompactOptions options;
  options.max_generations = 0;
  EXPECT_KIND(ErrorKind::kInvalidInput, CompactShard(base, kShard, options).status());
  // No such shard: nothing waits.
  ASSERT_OK_AND_ASSIGN(auto outcome, CompactShard(base, kShard));
  EXPECT_EQ(outcome.generations_remaining, 0);
  // A generation that is gone and not merged.
  ASSERT_OK(AddGeneration(env, kShard, {{{2, ""}, "b"}}, false));
  ASSERT_OK_AND_ASSIGN(auto stats, GetLsmStats(base, true));
  ASSERT_TRUE(stats && stats->size() == 1 && (*stats)[0].generations.size() == 1);
  EXPECT_EQ((*stats)[0].generations[0].rows, 1);
  ShardManifests manifests(env.store, kShard);
  ASSERT_OK_AND_ASSIGN(auto manifest, manifests.ReadLatest());
  ASSERT_OK_AND_ASSIGN(const auto directory,
                       GenerationDir(kShard, manifest->sstables(0).path()));
  ASSERT_OK(env.store->DeleteTree(directory));
  EXPECT_KIND(ErrorKind::kNotFound, CompactShard(base, kShard).status());
  // No write path.
  const auto other = NewEnv(io::MakeMemoryStore());
  ASSERT_OK_AND_ASSIGN(base,
                       WriteBatch(other, ToBatch({{{1, ""}, "a"}}, false, false), {}));
  EXPECT_KIND(ErrorKind::kInvalidInput, CompactShard(base, kShard).status());
  ASSERT_OK_AND_ASSIGN(stats, GetLsmStats(base, true));
  EXPECT_FALSE(stats);
}

}  // namespace
}  // namespace glaive::memwal
