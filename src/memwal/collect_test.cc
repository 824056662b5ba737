// What collection takes away and what it must leave: for readers, for replay, and for
// writers that were fenced long ago and wake up.
#include <random>
#include <thread>

#include "io/faulting_store.h"
#include "io/power_loss_store.h"
#include "memwal/converge.h"
#include "memwal/lease.h"
#include "memwal/live_generations.h"
#include "memwal/test_shards.h"
#include "memwal/wal.h"

namespace glaive::memwal {
namespace {

using Positions = std::vector<uint64_t>;

const ShardId kShard = ShardId::Derive("unsharded");
constexpr CollectOptions kNow{std::chrono::milliseconds(0)};

Status PutEntry(const table::TableEnv& env, uint64_t position, uint64_t epoch,
                bool sentinel = false) {
  WalEntryHeader header;
  header.writer_epoch = epoch;
  auto entry = sentinel
                   ? EncodeFenceSentinel(epoch)
                   : EncodeWalEntry(header, {ToBatch({{{1, ""}, "x"}}, false, true)});
  GLAIVE_RETURN_NOT_OK(entry.status());
  std::vector<std::span<const uint8_t>> parts;
  for (const auto& part : entry->parts) {
    parts.emplace_back(part->data(), static_cast<size_t>(part->size()));
  }
  return env.store->PutPartsIfAbsent(WalEntryPath(kShard, position), parts);
}

// Three generations. In the log 20 entries of epoch 1, a sentinel, 12 entries of epoch 2,
// of which the last three are not flushed.
Result<table::Dataset::Ptr> MakeShard(const table::TableEnv& env) {
  GLAIVE_ASSIGN_OR_RETURN(auto base, MakeBase(env, {{{1, ""}, "a"}}, false));
  GLAIVE_RETURN_NOT_OK(AddGeneration(env, kShard, {{{2, ""}, "b"}}, false, 10));
  GLAIVE_RETURN_NOT_OK(AddGeneration(env, kShard, {{{3, ""}, "c"}}, false, 20));
  ShardManifests manifests(env.store, kShard);
  GLAIVE_RETURN_NOT_OK(manifests.Claim(0).status());
  GLAIVE_RETURN_NOT_OK(AddGeneration(env, kShard, {{{2, ""}, std::nullopt}}, false, 30));
  for (uint64_t position = 1; position <= 33; ++position) {
    GLAIVE_RETURN_NOT_OK(PutEntry(env, position, position <= 20 ? 1 : 2, position == 21));
  }
  return base->Latest();
}

Result<Positions> Log(const table::TableEnv& env) {
  return WalReader(env.store, kShard).ListPositions();
}

Result<std::set<std::string>> Directories(const table::TableEnv& env) {
  GLAIVE_ASSIGN_OR_RETURN(const auto entries, env.store->List(ShardDir(kShard), false));
  std::set<std::string> names;
  for (const auto& entry : entries) {
    if (entry.is_directory && entry.path.find("_gen_") != std::string::npos) {
      names.insert(entry.path);
    }
  }
  return names;
}

Result<std::vector<std::string>> Named(const table::TableEnv& env) {
  ShardManifests manifests(env.store, kShard);
  GLAIVE_ASSIGN_OR_RETURN(const auto manifest, manifests.ReadLatest());
  if (!manifest) return NotFound("no manifest");
  std::vector<std::string> directories;
  for (const auto& generation : manifest->sstables()) {
    GLAIVE_ASSIGN_OR_RETURN(directories.emplace_back(),
                            GenerationDir(kShard, generation.path()));
  }
  return directories;
}

TEST(CollectShard, NothingWithinTheGrace) {
  const auto env = NewEnv(io::MakeMemoryStore());
  ASSERT_OK_AND_ASSIGN(auto base, MakeShard(env));
  ASSERT_OK_AND_ASSIGN(auto compacted, CompactShard(base, kShard));
  ASSERT_OK_AND_ASSIGN(const auto before, env.store->List("", true));
  ASSERT_OK_AND_ASSIGN(const auto outcome, CollectShard(*compacted.base, kShard));
  EXPECT_EQ(outcome.generations_removed + outcome.log_entries_removed +
                outcome.manifests_removed + outcome.orphans_removed +
                outcome.bytes_removed,
            0);
  ASSERT_OK_AND_ASSIGN(const auto after, env.store->List("", true));
  EXPECT_EQ(after.size(), before.size());
}

TEST(CollectShard, GenerationsThatAreMerged) {
  const auto env = NewEnv(io::MakeMemoryStore());
  ASSERT_OK_AND_ASSIGN(auto base, MakeShard(env));
  ASSERT_OK_AND_ASSIGN(auto outcome, CollectShard(*base, kShard, kNow));
  EXPECT_EQ(outcome.generations_removed, 0);
  ASSERT_OK_AND_ASSIGN(auto directories, Directories(env));
  EXPECT_EQ(directories.size(), 3u);

  CompactOptions two;
  two.max_generations = 2;
  ASSERT_OK_AND_ASSIGN(auto compacted, CompactShard(base, kShard, two));
  ASSERT_OK_AND_ASSIGN(auto named, Named(env));
  ShardManifests manifests(env.store, kShard);
  ASSERT_OK_AND_ASSIGN(auto before, manifests.ReadLatest());
  {
    const LiveGenerations reader(*env.store, {named[0]});
    ASSERT_OK_AND_ASSIGN(outcome, CollectShard(*base, kShard, kNow));
    EXPECT_EQ(outcome.generations_removed, 1);
    EXPECT_GT(outcome.bytes_removed, 0);
    ASSERT_OK_AND_ASSIGN(directories, Directories(env));
    EXPECT_EQ(directories, (std::set<std::string>{named[0], named[2]}));
  }
  ASSERT_OK_AND_ASSIGN(outcome, CollectShard(*base, kShard, kNow));
  EXPECT_EQ(outcome.generations_removed, 1);
  ASSERT_OK_AND_ASSIGN(directories, Directories(env));
  EXPECT_EQ(directories, (std::set<std::string>{named[2]}));
  ASSERT_OK_AND_ASSIGN(auto after, manifests.ReadLatest());
  EXPECT_EQ(after->version(), before->version() + 2);
  EXPECT_EQ(after->writer_epoch(), before->writer_epoch());
  EXPECT_EQ(after->current_generation(), before->current_generation());
  // The writer, who knows the older manifest, goes on.
  ASSERT_OK(manifests
                .Update(before->writer_epoch(), *before,
                        [](ShardManifest* next) {
                          next->set_wal_entry_position_last_seen(33);
                          return Status::OK();
                        })
                .status());
  ASSERT_OK_AND_ASSIGN(compacted, CompactShard(base, kShard));
  EXPECT_EQ(compacted.generations_consumed, 1);
  ASSERT_OK_AND_ASSIGN(const Model rows, ReadBase(env, false));
  EXPECT_EQ(rows, (Model{{{1, ""}, "a"}, {{3, ""}, "c"}}));
}

TEST(CollectShard, LogEntriesAndSleepyWriters) {
  const auto env = NewEnv(io::MakeMemoryStore());
  ASSERT_OK_AND_ASSIGN(auto base, MakeShard(env));
  auto manifests = std::make_shared<ShardManifests>(env.store, kShard);
  ASSERT_OK_AND_ASSIGN(auto outcome, CollectShard(*base, kShard, kNow));
  // All up to the flushed position but the last eight, and the sentinel.
  EXPECT_EQ(outcome.log_entries_removed, 21);
  ASSERT_OK_AND_ASSIGN(auto log, Log(env));
  EXPECT_EQ(log, (Positions{21, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33}));
  ASSERT_OK_AND_ASSIGN(outcome, CollectShard(*base, kShard, kNow));
  EXPECT_EQ(outcome.log_entries_removed, 0);
  // The writer of epoch 1 wakes up: its next place is taken.
  WalAppender sleepy(env.store, manifests, 1, {});
  sleepy.set_next_position(21);
  WalEntryHeader header;
  header.writer_epoch = 1;
  ASSERT_OK_AND_ASSIGN(
      const auto entry,
      EncodeWalEntry(header, {ToBatch({{{9, ""}, "late"}}, false, true)}));
  EXPECT_KIND(ErrorKind::kFenced, sleepy.Append(entry).status());
  // The end of the log is where it was.
  const WalReader reader(env.store, kShard);
  ASSERT_OK_AND_ASSIGN(uint64_t tip, reader.FindTip(31));
  EXPECT_EQ(tip, 34u);
  ASSERT_OK_AND_ASSIGN(auto tail, reader.ReadFrom(31));
  EXPECT_EQ(tail.entries.size(), 3u);
  // More epochs and entries, all flushed: of each epoch the first entry stays.
  ASSERT_OK(manifests->Claim(0).status());
  ASSERT_OK(PutEntry(env, 34, 3, true));
  for (uint64_t p = 35; p <= 60; ++p) ASSERT_OK(PutEntry(env, p, 3));
  ASSERT_OK(AddGeneration(env, kShard, {{{5, ""}, "e"}}, false, 60));
  ASSERT_OK_AND_ASSIGN(outcome, CollectShard(*base, kShard, kNow));
  ASSERT_OK_AND_ASSIGN(log, Log(env));
  EXPECT_EQ(log, (Positions{21, 34, 53, 54, 55, 56, 57, 58, 59, 60}));
}

TEST(CollectShard, DamagedEntriesStay) {
  const auto env = NewEnv(io::MakeMemoryStore());
  ASSERT_OK_AND_ASSIGN(auto base, MakeShard(env));
  const std::string junk = "no entry at all";
  ASSERT_OK(env.store->Put(WalEntryPath(kShard, 5),
                           {reinterpret_cast<const uint8_t*>(junk.data()), junk.size()}));
  ASSERT_OK_AND_ASSIGN(const auto outcome, CollectShard(*base, kShard, kNow));
  EXPECT_EQ(outcome.log_entries_removed, 20);
  ASSERT_OK_AND_ASSIGN(const auto log, Log(env));
  EXPECT_EQ(log.front(), 5u);
}

TEST(CollectShard, Orphans) {
  const auto env = NewEnv(io::MakeMemoryStore());
  ASSERT_OK_AND_ASSIGN(auto base, MakeShard(env));  // generation 4 is next
  const auto orphan = [&](const char* name) {
    const std::string directory = ShardDir(kShard) + "/" + name;
    EXPECT_OK(WriteGenerationRows(env, directory, {{{7, ""}, "x"}}, false));
    return directory;
  };
  const std::string old = orphan("00000000_gen_2");
  const std::string maybe_written = orphan("00000000_gen_4");
  const std::string foreign = orphan("notes_gen_x");
  ASSERT_OK_AND_ASSIGN(auto outcome, CollectShard(*base, kShard));
  EXPECT_EQ(outcome.orphans_removed, 0);  // young
  ASSERT_OK_AND_ASSIGN(outcome, CollectShard(*base, kShard, kNow));
  EXPECT_EQ(outcome.orphans_removed, 1);
  ASSERT_OK_AND_ASSIGN(const auto directories, Directories(env));
  EXPECT_EQ(directories.size(), 5u);
  EXPECT_EQ(directories.count(old), 0u);
  EXPECT_EQ(directories.count(maybe_written), 1u);
  EXPECT_EQ(directories.count(foreign), 1u);
}

TEST(CollectShard, ManifestsStayWithoutGaps) {
  const auto env = NewEnv(io::MakeMemoryStore());
  ASSERT_OK_AND_ASSIGN(auto base, MakeShard(env));
  ShardManifests manifests(env.store, kShard);
  ASSERT_OK_AND_ASSIGN(auto newest, manifests.ReadLatest());
  for (int i = 0; i < 40; ++i) {
    ASSERT_OK_AND_ASSIGN(newest, manifests.Update(std::nullopt, *newest,
                                                  [](auto*) { return Status::OK(); }));
  }
  const auto check = [&](size_t count) {
    ASSERT_OK_AND_ASSIGN(const auto versions, manifests.ListVersions());
    EXPECT_EQ(versions.size(), count);
    for (size_t i = 1; i < versions.size(); ++i) {
      EXPECT_EQ(versions[i], versions[0] + i);
    }
    EXPECT_EQ(versions.back(), newest->version());
    ShardManifests reader(env.store, kShard);
    ASSERT_OK_AND_ASSIGN(const auto found, reader.ReadLatest());
    EXPECT_EQ(found->version(), newest->version());
    EXPECT_EQ(found->sstables_size(), 3);
  };
  ASSERT_OK_AND_ASSIGN(auto outcome, CollectShard(*base, kShard));
  EXPECT_EQ(outcome.manifests_removed, 0);
  ASSERT_OK_AND_ASSIGN(outcome, CollectShard(*base, kShard, kNow));
  EXPECT_EQ(outcome.manifests_removed, static_cast<int64_t>(newest->version()) - 16);
  check(16);
  ASSERT_OK_AND_ASSIGN(outcome, CollectShard(*base, kShard, kNow));
  EXPECT_EQ(outcome.manifests_removed, 0);
  ASSERT_OK(env.store->Delete(ShardManifestHintPath(kShard)));
  check(16);
}

// After a failure at any operation readers, replay and fences have what they need, and
// the next collection finishes.
TEST(CollectShard, FaultsAtEveryOperation) {
  for (const auto effect : {io::FaultEffect::kNotDone, io::FaultEffect::kDone}) {
    for (int64_t at = 0;; ++at) {
      SCOPED_TRACE("effect " + std::to_string(static_cast<int>(effect)) + ", operation " +
                   std::to_string(at));
      auto store = io::MakeMemoryStore();
      const auto plain = NewEnv(store, 1);
      ASSERT_OK_AND_ASSIGN(auto base, MakeShard(plain));
      ASSERT_OK(CompactShard(base, kShard).status());
      ASSERT_OK(AddGeneration(plain, kShard, {{{8, ""}, "h"}}, false));
      ShardManifests manifests(store, kShard);
      ASSERT_OK_AND_ASSIGN(auto newest, manifests.ReadLatest());
      for (int i = 0; i < 30; ++i) {
        ASSERT_OK_AND_ASSIGN(newest, manifests.Update(std::nullopt, *newest, [](auto*) {
          return Status::OK();
        }));
      }
      auto injector = std::make_shared<io::FaultInjector>();
      const auto env = NewEnv(io::MakeFaultingStore(store, injector), 1);
      ASSERT_OK_AND_ASSIGN(base, table::Dataset::Open(env));
      io::FaultPlan plan;
      plan.fail_at = at;
      plan.effect = effect;
      injector->Arm(plan);
      const auto outcome = CollectShard(*base, kShard, kNow);
      const bool fired = injector->fired();
      for (int round = 0; round < 2; ++round) {
        ASSERT_OK_AND_ASSIGN(const auto manifest, manifests.ReadLatest());
        ASSERT_GE(manifest->version(), newest->version());
        ASSERT_EQ(manifest->current_generation(), 5u);
        ASSERT_GE(manifest->sstables_size(), 1);
        ASSERT_EQ(manifest->sstables(manifest->sstables_size() - 1).generation(), 4u);
        ASSERT_OK_AND_ASSIGN(const auto named, Named(plain));
        ASSERT_OK_AND_ASSIGN(const auto directories, Directories(plain));
        for (const auto& directory : named) ASSERT_EQ(directories.count(directory), 1u);
        ASSERT_OK_AND_ASSIGN(const auto log, Log(plain));
        const std::set<uint64_t> there(log.begin(), log.end());
        for (uint64_t p : {21, 30, 31, 32, 33}) ASSERT_EQ(there.count(p), 1u) << p;
        if (round == 0) {
          ASSERT_OK_AND_ASSIGN(auto again, table::Dataset::Open(NewEnv(store, 1)));
          ASSERT_OK(CollectShard(*again, kShard, kNow).status());
        } else {
          ASSERT_EQ(manifest->sstables_size(), 1);
          ASSERT_EQ(directories.size(), 1u);
          ASSERT_EQ(log.size(), 12u);
        }
      }
      ASSERT_OK_AND_ASSIGN(auto left, table::Dataset::Open(NewEnv(store, 1)));
      ASSERT_OK_AND_ASSIGN(auto merged, CompactShard(left, kShard));
      ASSERT_EQ(merged.generations_consumed, 1);
      ASSERT_OK_AND_ASSIGN(const Model rows, ReadBase(NewEnv(store, 1), false));
      ASSERT_EQ(rows, (Model{{{1, ""}, "a"}, {{3, ""}, "c"}, {{8, ""}, "h"}}));
      if (!fired) {
        ASSERT_OK(outcome.status());
        break;
      }
      ASSERT_LT(at, 400);
    }
  }
}

// Merging and collecting, ended by a failure at any operation and then by a power cut:
// every row is still there, and what is left to do can be done.
TEST(Convergence, PowerCuts) {
  std::mt19937_64 random(TestSeed());
  const Model everything = {{{1, ""}, "a"}, {{3, ""}, "c"}, {{8, ""}, "h"}};
  const auto converge = [](const table::TableEnv& env) -> Status {
    GLAIVE_ASSIGN_OR_RETURN(auto base, table::Dataset::Open(env));
    CompactOptions two;
    two.max_generations = 2;
    for (int pass = 0; pass < 2; ++pass) {
      GLAIVE_RETURN_NOT_OK(CompactShard(base, kShard, two).status());
      GLAIVE_RETURN_NOT_OK(CollectShard(*base, kShard, kNow).status());
    }
    return Status::OK();
  };
  for (int64_t at = 0;; at += Soak() ? 1 : 3) {
    SCOPED_TRACE("operation " + std::to_string(at));
    const io::PowerLoss disk;
    const auto plain = NewEnv(disk.store(), 1);
    ASSERT_OK(MakeShard(plain).status());
    ASSERT_OK(AddGeneration(plain, kShard, {{{8, ""}, "h"}}, false, 33));
    ShardManifests manifests(disk.store(), kShard);
    ASSERT_OK_AND_ASSIGN(auto newest, manifests.ReadLatest());
    for (int i = 0; i < 30; ++i) {
      ASSERT_OK_AND_ASSIGN(newest, manifests.Update(std::nullopt, *newest,
                                                    [](auto*) { return Status::OK(); }));
    }
    auto injector = std::make_shared<io::FaultInjector>();
    const auto env = NewEnv(io::MakeFaultingStore(disk.store(), injector), 1);
    io::FaultPlan plan;
    plan.fail_at = at;
    plan.effect = at % 2 == 0 ? io::FaultEffect::kNotDone : io::FaultEffect::kDone;
    injector->Arm(plan);
    const Status ended = converge(env);
    const bool fired = injector->fired();
    ASSERT_OK_AND_ASSIGN(const auto after, disk.CutPower(random));
    const auto later = NewEnv(after->store(), 1);
    ASSERT_OK_AND_ASSIGN(auto base, table::Dataset::Open(later));
    ASSERT_OK_AND_ASSIGN(Model rows, ReadAll(base, false));
    ASSERT_EQ(rows, everything) << ended.ToString();
    ASSERT_OK(converge(later));
    ASSERT_OK_AND_ASSIGN(rows, ReadBase(later, false));
    ASSERT_EQ(rows, everything);
    ASSERT_OK_AND_ASSIGN(const auto named, Named(later));
    ASSERT_TRUE(named.empty());
    if (!fired) {
      ASSERT_OK(ended);
      break;
    }
    ASSERT_LT(at, 1000);
  }
}

TEST(Lease, OneHolder) {
  auto store = io::MakeMemoryStore();
  const auto hour = std::chrono::hours(1);
  EXPECT_FALSE(LeaseIsHeld(*store, kShard));
  {
    ASSERT_OK_AND_ASSIGN(auto lease, Lease::Take(store, kShard, hour));
    ASSERT_NE(lease, nullptr);
    EXPECT_TRUE(LeaseIsHeld(*store, kShard));
    ASSERT_OK_AND_ASSIGN(auto other, Lease::Take(store, kShard, hour));
    EXPECT_EQ(other, nullptr);
    ASSERT_OK_AND_ASSIGN(const bool renewed, lease->Renew(hour));
    EXPECT_TRUE(renewed);
  }
  EXPECT_FALSE(LeaseIsHeld(*store, kShard));
  // One that expired is taken over, and its former holder notices.
  ASSERT_OK_AND_ASSIGN(auto lease,
                       Lease::Take(store, kShard, std::chrono::milliseconds(1)));
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_FALSE(LeaseIsHeld(*store, kShard));
  ASSERT_OK_AND_ASSIGN(auto next, Lease::Take(store, kShard, hour));
  ASSERT_NE(next, nullptr);
  ASSERT_OK_AND_ASSIGN(const bool renewed, lease->Renew(hour));
  EXPECT_FALSE(renewed);
  lease.reset();
  EXPECT_TRUE(LeaseIsHeld(*store, kShard));
  next.reset();
  // What does not parse belongs to nobody.
  const std::string junk = "{\"holder\":";
  ASSERT_OK(store->Put(LeasePath(kShard),
                       {reinterpret_cast<const uint8_t*>(junk.data()), junk.size()}));
  ASSERT_OK_AND_ASSIGN(next, Lease::Take(store, kShard, hour));
  EXPECT_NE(next, nullptr);
}

}  // namespace
}  // namespace glaive::memwal
