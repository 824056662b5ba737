// Faults at every store operation of updates and merges, lost races, and the hash table
// of keys.
#include "exec/merge.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "exec/merge_table.h"
#include "exec/scan.h"
#include "exec/test_table.h"
#include "exec/update.h"
#include "io/faulting_store.h"
#include "table/names.h"

namespace glaive::exec {
namespace {

using io::FaultEffect;
using Rows = std::map<int64_t, std::string>;

std::shared_ptr<arrow::Schema> SmallSchema() {
  return arrow::schema(
      {arrow::field("id", arrow::int64()), arrow::field("text", arrow::utf8())});
}

std::shared_ptr<arrow::RecordBatchReader> SmallRows(
    const std::vector<std::pair<int64_t, std::string>>& rows) {
  arrow::Int64Builder id;
  arrow::StringBuilder text;
  for (const auto& [key, value] : rows) {
    EXPECT_OK(id.Append(key));
    EXPECT_OK(text.Append(value));
  }
  const auto batch =
      arrow::RecordBatch::Make(SmallSchema(), static_cast<int64_t>(rows.size()),
                               {id.Finish().ValueOrDie(), text.Finish().ValueOrDie()});
  return arrow::RecordBatchReader::Make({batch}, SmallSchema()).ValueOrDie();
}

table::TableEnv EnvOf(std::shared_ptr<io::ObjectStore> store,
                      const std::shared_ptr<Runtime>& runtime) {
  table::TableEnv env;
  env.runtime = runtime;
  env.store = std::move(store);
  return env;
}

Result<Rows> ReadSmall(const table::TableEnv& env) {
  GLAIVE_ASSIGN_OR_RETURN(auto dataset, table::Dataset::Open(env));
  GLAIVE_ASSIGN_OR_RETURN(auto table, ScanToTable(dataset, ScanOptions()));
  Rows rows;
  for (const auto& chunk :
       arrow::TableBatchReader(*table).ToRecordBatches().ValueOrDie()) {
    const auto& id = static_cast<const arrow::Int64Array&>(*chunk->column(0));
    const auto& text = static_cast<const arrow::StringArray&>(*chunk->column(1));
    for (int64_t i = 0; i < chunk->num_rows(); ++i) {
      if (!rows.emplace(id.Value(i), text.GetString(i)).second) {
        return Corruption("row ", id.Value(i), " is there twice");
      }
    }
  }
  return rows;
}

struct Change {
  const char* name;
  std::function<Status(const table::TableEnv&)> run;
  Rows after;
};

std::vector<Change> Changes() {
  return {
      {"update",
       [](const table::TableEnv& env) -> Status {
         GLAIVE_ASSIGN_OR_RETURN(auto dataset, table::Dataset::Open(env));
         UpdateOptions options;
         options.where = "id >= 2";
         options.assignments.push_back({"text", "'new'", nullptr});
         return Update(dataset, options).status();
       },
       {{1, "a"}, {2, "new"}, {3, "new"}}},
      {"merge",
       [](const table::TableEnv& env) -> Status {
         GLAIVE_ASSIGN_OR_RETURN(auto dataset, table::Dataset::Open(env));
         MergeOptions options;
         options.on = {"id"};
         options.matched = MatchedAction::kUpdate;
         options.insert_not_matched = true;
         options.delete_not_in_source = true;
         options.delete_condition = "id = 1";
         return MergeInsert(dataset, SmallRows({{2, "B"}, {9, "Z"}}), options).status();
       },
       {{2, "B"}, {3, "c"}, {9, "Z"}}},
      {"spilled merge",
       [](const table::TableEnv& env) -> Status {
         GLAIVE_ASSIGN_OR_RETURN(auto dataset, table::Dataset::Open(env));
         MergeOptions options;
         options.on = {"text"};
         options.insert_not_matched = true;
         options.memory_bytes = 1;
         return MergeInsert(dataset, SmallRows({{20, "b"}, {21, "x"}}), options).status();
       },
       {{1, "a"}, {2, "b"}, {3, "c"}, {21, "x"}}},
  };
}

const Rows kBefore = {{1, "a"}, {2, "b"}, {3, "c"}};

void MakeSmall(const table::TableEnv& env, bool stable_ids) {
  table::WriteOptions options;
  options.max_rows_per_file = 2;
  options.stable_row_ids = stable_ids;
  ASSERT_OK(
      table::Dataset::Write(env, *SmallRows({{1, "a"}, {2, "b"}, {3, "c"}}), options)
          .status());
}

TEST(ChangeFaults, EveryOperationOfEveryChange) {
  const auto runtime = MakeTestRuntime(1);
  for (const Change& change : Changes()) {
    for (FaultEffect effect : {FaultEffect::kNotDone, FaultEffect::kDone}) {
      for (bool stable_ids : {false, true}) {
        for (int64_t at = 0;; ++at) {
          SCOPED_TRACE(std::string(change.name) + ", effect " +
                       std::to_string(static_cast<int>(effect)) + ", operation " +
                       std::to_string(at));
          auto store = io::MakeMemoryStore();
          MakeSmall(EnvOf(store, runtime), stable_ids);
          auto injector = std::make_shared<io::FaultInjector>();
          const auto env = EnvOf(io::MakeFaultingStore(store, injector), runtime);
          io::FaultPlan plan;
          plan.fail_at = at;
          plan.effect = effect;
          injector->Arm(plan);
          const Status outcome = change.run(env);
          const bool fired = injector->fired();
          ASSERT_OK_AND_ASSIGN(const Rows seen,
                               ReadSmall(EnvOf(store, MakeTestRuntime(1))));
          if (outcome.ok()) {
            ASSERT_EQ(seen, change.after);
          } else {
            ASSERT_TRUE(seen == kBefore || seen == change.after);
            if (effect == FaultEffect::kNotDone && seen == kBefore) {
              // Nothing is left of what was begun.
              ASSERT_OK_AND_ASSIGN(auto data, store->ListNames("data"));
              ASSERT_EQ(data.size(), 2u) << outcome.ToString();
              auto deletions = store->ListNames("_deletions");
              ASSERT_TRUE(!deletions.ok() || deletions->empty()) << outcome.ToString();
            }
          }
          if (!fired) break;
          ASSERT_LT(at, 300);
        }
      }
    }
  }
}

// A merge that lost against a writer that inserted the same key runs again and updates.
TEST(MergeRaces, TheSameNewKeyTwice) {
  const auto runtime = MakeTestRuntime(2);
  auto store = io::MakeMemoryStore();
  MakeSmall(EnvOf(store, runtime), false);
  ASSERT_OK_AND_ASSIGN(auto old, table::Dataset::Open(EnvOf(store, runtime)));
  MergeOptions options;
  options.on = {"id"};
  options.matched = MatchedAction::kUpdate;
  options.insert_not_matched = true;
  // Both look at the same version; as two processes would.
  ASSERT_OK(MergeInsert(old, SmallRows({{7, "first"}, {50, "x"}}), options).status());
  ASSERT_OK_AND_ASSIGN(auto second,
                       MergeInsert(old, SmallRows({{7, "second"}}), options));
  EXPECT_EQ(second.num_attempts, 2);
  EXPECT_EQ(second.num_updated_rows, 1);
  // Other keys do not stand in the way.
  ASSERT_OK_AND_ASSIGN(auto third, MergeInsert(second.dataset->Checkout(2).ValueOrDie(),
                                               SmallRows({{8, "third"}}), options));
  EXPECT_EQ(third.num_inserted_rows, 1);
  ASSERT_OK_AND_ASSIGN(const Rows seen, ReadSmall(EnvOf(store, runtime)));
  EXPECT_EQ(seen,
            (Rows{{1, "a"}, {2, "b"}, {3, "c"}, {7, "second"}, {8, "third"}, {50, "x"}}));
}

TEST(KeyTable, EqualsAMap) {
  const uint64_t seed = FreshSeed();
  std::mt19937_64 random(seed);
  for (int round = 0; round < 50; ++round) {
    const bool fixed = round % 2 == 0;
    const auto range = 1 + random() % 2000;
    const auto make = [&](size_t n) {
      KeyBatch batch;
      batch.rows = static_cast<int64_t>(n);
      std::vector<std::string> texts;
      for (size_t i = 0; i < n; ++i) {
        const uint64_t key = random() % range;
        batch.own_words.push_back(key);
        texts.push_back(std::string(key % 37, 'x') + std::to_string(key));
        batch.is_null.push_back(random() % 10 == 0);
      }
      for (const auto& text : texts) {
        batch.own_bytes.insert(batch.own_bytes.end(), text.begin(), text.end());
      }
      size_t at = 0;
      for (const auto& text : texts) {
        batch.views.emplace_back(batch.own_bytes.data() + at, text.size());
        at += text.size();
      }
      batch.words = batch.own_words.data();
      return batch;
    };
    KeyBatch source = make(random() % 3000);
    std::map<uint64_t, std::multiset<int64_t>> model;
    for (int64_t i = 0; i < source.rows; ++i) {
      if (!source.IsNull(i)) model[source.own_words[static_cast<size_t>(i)]].insert(i);
    }
    KeyTable table(fixed, random());
    ASSERT_TRUE(table.Add(std::move(source), 0, nullptr, 1, 0));
    table.Build(false);
    const KeyBatch target = make(random() % 3000);
    std::map<int64_t, std::multiset<int64_t>> found;
    ASSERT_OK(table.Probe(target, nullptr, [&](int64_t i, uint32_t head) {
      for (uint32_t e = head; e != KeyTable::kNone; e = table.next(e)) {
        found[i].insert(table.row(e));
      }
      return Status::OK();
    }));
    for (int64_t i = 0; i < target.rows; ++i) {
      const auto hit = model.find(target.own_words[static_cast<size_t>(i)]);
      const bool expected = !target.IsNull(i) && hit != model.end();
      ASSERT_EQ(found.count(i), expected ? 1u : 0u) << "seed " << seed;
      if (!expected) continue;
      ASSERT_EQ(found[i], hit->second) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace glaive::exec
