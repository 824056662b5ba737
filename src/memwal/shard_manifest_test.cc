#include "memwal/shard_manifest.h"

#include <algorithm>
#include <atomic>
#include <set>
#include <string>
#include <thread>

#include <arrow/buffer.h>

#include "base/testing.h"
#include "io/counting_store.h"
#include "io/faulting_store.h"
#include "io/object_store.h"

namespace glaive::memwal {
namespace {

std::string Hex(std::string_view bytes) {
  std::string out;
  for (char c : bytes) {
    out += "0123456789abcdef"[static_cast<uint8_t>(c) >> 4];
    out += "0123456789abcdef"[c & 15];
  }
  return out;
}

std::span<const uint8_t> AsBytes(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

class ShardManifestTest : public ::testing::Test {
 protected:
  std::string Stored(uint64_t version) {
    auto bytes = store_->Get(ShardManifestPath(shard_, version));
    return bytes.ok() ? (*bytes)->ToString() : "none";
  }
  void PutRaw(uint64_t version, std::string_view bytes) {
    ASSERT_OK(store_->Put(ShardManifestPath(shard_, version), AsBytes(bytes)));
  }
  void PutRawHint(std::string_view text) {
    ASSERT_OK(store_->Put(ShardManifestHintPath(shard_), AsBytes(text)));
  }

  const ShardId shard_ = ShardId::Derive("unsharded");
  const std::shared_ptr<io::ObjectStore> store_ = io::MakeMemoryStore();
  ShardManifests manifests_{store_, shard_};
};

TEST_F(ShardManifestTest, FirstClaimWritesWhatUpstreamWrites) {
  ASSERT_OK_AND_ASSIGN(const auto none, manifests_.ReadLatest());
  EXPECT_FALSE(none);
  ASSERT_OK_AND_ASSIGN(const ShardManifest first, manifests_.Claim(1));
  EXPECT_EQ(first.version(), 1u);
  EXPECT_EQ(first.writer_epoch(), 1u);
  EXPECT_EQ(first.current_generation(), 1u);
  // 1: version, 2: epoch, 6: generation, 10: spec, 11: id; zeros are left out.
  EXPECT_EQ(Hex(Stored(1)), "08011001300150015a120a10aa48498dac9159e2845269f46010ace2");
  ASSERT_OK_AND_ASSIGN(const auto hint, store_->Get(ShardManifestHintPath(shard_)));
  EXPECT_EQ(hint->ToString(), "{\"version\":1}");
}

TEST_F(ShardManifestTest, ClaimsCarryEverythingOver) {
  ASSERT_OK_AND_ASSIGN(const ShardManifest first, manifests_.Claim(7));
  ASSERT_OK(manifests_.Update(1, first, [](ShardManifest* next) {
    auto* sstable = next->add_sstables();
    sstable->set_generation(1);
    sstable->set_path("0badcafe_gen_1");
    sstable->set_physical_rows(0);  // present, although zero
    next->set_current_generation(2);
    next->set_replay_after_wal_entry_position(4);
    return Status::OK();
  }));
  // A field of the future, at the top and within an entry.
  ASSERT_OK_AND_ASSIGN(auto second, manifests_.ReadLatest());
  std::string bytes = second->SerializeAsString();
  bytes += "\xfa\x07\x03new";  // field 127
  PutRaw(2, bytes);
  ASSERT_OK_AND_ASSIGN(const ShardManifest third, manifests_.Claim(0));
  EXPECT_EQ(third.version(), 3u);
  EXPECT_EQ(third.writer_epoch(), 2u);
  EXPECT_EQ(third.shard_spec_id(), 7u);
  EXPECT_EQ(third.sstables(0).path(), "0badcafe_gen_1");
  EXPECT_TRUE(third.sstables(0).has_physical_rows());
  EXPECT_FALSE(third.sstables(0).has_in_memory_bytes());
  EXPECT_NE(Stored(3).find("\xfa\x07\x03new"), std::string::npos);
}

TEST_F(ShardManifestTest, HintsMayLie) {
  ASSERT_OK(manifests_.Claim(0));
  for (int i = 0; i < 6; ++i) ASSERT_OK(manifests_.Claim(0));
  for (const char* hint :
       {"{\"version\":2}", "{\"version\":900}", "{\"version\":0}", "", "{", "7",
        "{\"version\":99999999999999999999}", "{ \"version\" : 7 }"}) {
    PutRawHint(hint);
    ASSERT_OK_AND_ASSIGN(const auto latest, manifests_.ReadLatest());
    EXPECT_EQ(latest->version(), 7u) << hint;
  }
  ASSERT_OK(store_->Delete(ShardManifestHintPath(shard_)));
  ASSERT_OK_AND_ASSIGN(const auto latest, manifests_.ReadLatest());
  EXPECT_EQ(latest->version(), 7u);
}

TEST_F(ShardManifestTest, FoundWithoutTheOldOnes) {
  ASSERT_OK_AND_ASSIGN(const ShardManifest first, manifests_.Claim(0));
  for (int i = 0; i < 6; ++i) ASSERT_OK(manifests_.Claim(0));
  for (uint64_t v = 1; v <= 5; ++v)
    ASSERT_OK(store_->Delete(ShardManifestPath(shard_, v)));
  for (const char* hint : {"{\"version\":3}", "{\"version\":6}", ""}) {
    PutRawHint(hint);
    ASSERT_OK_AND_ASSIGN(const auto latest, manifests_.ReadLatest());
    EXPECT_EQ(latest->version(), 7u) << hint;
    // Although version 2 does not exist.
    ASSERT_OK_AND_ASSIGN(const auto after, manifests_.ReadLatestAfter(first));
    EXPECT_EQ(after.version(), 7u) << hint;
  }
}

TEST_F(ShardManifestTest, NothingNewerCostsTwoLookUps) {
  ASSERT_OK_AND_ASSIGN(const ShardManifest first, manifests_.Claim(0));
  auto counters = std::make_shared<io::StoreCounters>();
  ShardManifests counted(io::MakeCountingStore(store_, counters), shard_);
  ASSERT_OK_AND_ASSIGN(const auto after, counted.ReadLatestAfter(first));
  EXPECT_EQ(after.version(), 1u);
  EXPECT_EQ(counters->total(), 2);
  EXPECT_EQ(counters->count(io::StoreOp::kExists), 2);
}

TEST_F(ShardManifestTest, RefusesDamage) {
  ASSERT_OK_AND_ASSIGN(const ShardManifest first, manifests_.Claim(0));
  const auto refused = [&](const std::string& bytes, const char* text) {
    PutRaw(1, bytes);
    auto latest = manifests_.ReadLatest();
    EXPECT_ERROR_KIND(latest, ErrorKind::kCorruption);
    EXPECT_NE(latest.status().message().find(text), std::string::npos)
        << latest.status().ToString();
    EXPECT_NE(latest.status().message().find(BitReversed(1)), std::string::npos);
    EXPECT_ERROR_KIND(manifests_.Claim(0), ErrorKind::kCorruption);
  };
  refused("", "cannot be");
  refused("\xff\xff\xff", "damaged");
  refused(first.SerializeAsString().substr(0, 20), "damaged");
  ShardManifest changed = first;
  changed.set_version(2);
  refused(changed.SerializeAsString(), "says that it is version 2");
  changed = first;
  changed.mutable_shard_id()->set_uuid(std::string(ShardId::Derive("x").bytes()));
  refused(changed.SerializeAsString(), "another shard");
  changed.mutable_shard_id()->set_uuid("short");
  refused(changed.SerializeAsString(), "cannot be");
  changed = first;
  changed.set_writer_epoch(UINT64_MAX);
  refused(changed.SerializeAsString(), "cannot be");
  changed = first;
  changed.add_sstables()->set_path("x");  // generation 0
  refused(changed.SerializeAsString(), "cannot be");
}

TEST_F(ShardManifestTest, SealedShardsAreNotClaimed) {
  ASSERT_OK_AND_ASSIGN(ShardManifest first, manifests_.Claim(0));
  first.set_status(lance::table::SEALED);
  PutRaw(1, first.SerializeAsString());
  auto claim = manifests_.Claim(0);
  EXPECT_ERROR_KIND(claim, ErrorKind::kInvalidInput);
  EXPECT_NE(claim.status().message().find("is sealed; refusing claim"),
            std::string::npos);
}

TEST_F(ShardManifestTest, UpdatesFollowOthersAndFence) {
  ASSERT_OK_AND_ASSIGN(const ShardManifest first, manifests_.Claim(0));
  // A collector bumps the version; the writer, who knows version 1, goes on after it.
  ASSERT_OK(manifests_.Update(std::nullopt, first, [](ShardManifest* next) {
    next->set_wal_entry_position_last_seen(9);
    return Status::OK();
  }));
  ASSERT_OK_AND_ASSIGN(const ShardManifest third,
                       manifests_.Update(1, first, [](ShardManifest* next) {
                         next->set_current_generation(2);
                         return Status::OK();
                       }));
  EXPECT_EQ(third.version(), 3u);
  EXPECT_EQ(third.wal_entry_position_last_seen(), 9u);
  ASSERT_OK(manifests_.CheckFence(1));
  ASSERT_OK(manifests_.Claim(0));
  EXPECT_ERROR_KIND(
      manifests_.Update(1, third, [](ShardManifest*) { return Status::OK(); }),
      ErrorKind::kFenced);
  auto fence = manifests_.CheckFence(1);
  EXPECT_ERROR_KIND(fence, ErrorKind::kFenced);
  EXPECT_NE(fence.message().find("local epoch 1 < stored epoch 2 for shard aa48498d-"),
            std::string::npos);
  // The collector is not disturbed by claims.
  ASSERT_OK(manifests_.Update(std::nullopt, first,
                              [](ShardManifest*) { return Status::OK(); }));
  EXPECT_ERROR_KIND(manifests_.Update(std::nullopt, first,
                                      [](ShardManifest*) { return InvalidInput("no"); }),
                    ErrorKind::kInvalidInput);
  ASSERT_OK_AND_ASSIGN(const auto versions, manifests_.ListVersions());
  EXPECT_EQ(versions, (std::vector<uint64_t>{1, 2, 3, 4, 5}));
}

TEST_F(ShardManifestTest, LostRepliesAreNoLostRaces) {
  auto injector = std::make_shared<io::FaultInjector>();
  ShardManifests faulty(io::MakeFaultingStore(store_, injector), shard_);
  ASSERT_OK_AND_ASSIGN(const ShardManifest first, faulty.Claim(0));
  for (const auto effect : {io::FaultEffect::kDone, io::FaultEffect::kNotDone}) {
    ASSERT_OK_AND_ASSIGN(const auto before, manifests_.ReadLatest());
    injector->Arm({.fail_at = 0, .only = io::StoreOp::kPutIfAbsent, .effect = effect});
    int calls = 0;
    auto updated = faulty.Update(1, first, [&](ShardManifest* next) {
      ++calls;
      next->set_current_generation(next->current_generation() + 1);
      return Status::OK();
    });
    injector->Disarm();
    ASSERT_OK_AND_ASSIGN(const auto after, manifests_.ReadLatest());
    EXPECT_EQ(calls, 1);
    const bool done = effect == io::FaultEffect::kDone;
    EXPECT_EQ(updated.ok(), done);
    EXPECT_EQ(after->current_generation(), before->current_generation() + done);
  }
}

TEST_F(ShardManifestTest, StalledUpdatesDoNotFillGaps) {
  ASSERT_OK_AND_ASSIGN(const ShardManifest first, manifests_.Claim(0));
  // Others go on to version 7 and remove what is old, between the look at the newest
  // version and the attempt to store the next one.
  bool stalled = false;
  ASSERT_OK_AND_ASSIGN(
      const ShardManifest mine,
      manifests_.Update(std::nullopt, first, [&](ShardManifest* next) {
        if (!stalled) {
          stalled = true;
          for (int i = 0; i < 6; ++i) GLAIVE_RETURN_NOT_OK(manifests_.Claim(0).status());
          for (uint64_t v = 1; v <= 5; ++v) {
            GLAIVE_RETURN_NOT_OK(store_->Delete(ShardManifestPath(shard_, v)));
          }
        }
        next->set_wal_entry_position_last_seen(11);
        return Status::OK();
      }));
  EXPECT_EQ(mine.version(), 8u);
  EXPECT_EQ(mine.writer_epoch(), 7u);
  ASSERT_OK_AND_ASSIGN(const auto versions, manifests_.ListVersions());
  EXPECT_EQ(versions, (std::vector<uint64_t>{6, 7, 8}));
}

TEST_F(ShardManifestTest, OneClaimWinsEachEpoch) {
  constexpr int kThreads = 4, kClaims = 40;
  std::vector<std::vector<uint64_t>> epochs(kThreads);
  std::atomic<int> unexpected{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      ShardManifests own(store_, shard_);
      for (int i = 0; i < kClaims; ++i) {
        auto claim = own.Claim(0);
        if (claim.ok()) {
          epochs[static_cast<size_t>(t)].push_back(claim->writer_epoch());
        } else if (KindOf(claim.status()) != ErrorKind::kFenced) {
          ++unexpected;
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(unexpected, 0);
  std::set<uint64_t> all;
  size_t total = 0;
  for (const auto& own : epochs) {
    EXPECT_TRUE(std::is_sorted(own.begin(), own.end()));
    all.insert(own.begin(), own.end());
    total += own.size();
  }
  EXPECT_GT(total, 0u);
  EXPECT_EQ(all.size(), total);
  ASSERT_OK_AND_ASSIGN(const auto latest, manifests_.ReadLatest());
  EXPECT_EQ(latest->writer_epoch(), *all.rbegin());
  EXPECT_EQ(latest->version(), total);
}

TEST_F(ShardManifestTest, ListsShards) {
  ASSERT_OK_AND_ASSIGN(const auto none, ListShards(*store_));
  EXPECT_TRUE(none.empty());
  std::vector<ShardId> shards;
  for (const char* name : {"bucket-0", "bucket-1", "unsharded"}) {
    shards.push_back(ShardId::Derive(name));
    ASSERT_OK(ShardManifests(store_, shards.back()).Claim(1));
  }
  std::sort(shards.begin(), shards.end());
  for (const char* path : {"_mem_wal/x/y", "_mem_wal/file",
                           "_mem_wal/AA48498D-AC91-59E2-8452-69F46010ACE2/manifest/z"}) {
    ASSERT_OK(store_->Put(path, {}));
  }
  ASSERT_OK_AND_ASSIGN(const auto found, ListShards(*store_));
  EXPECT_EQ(found, shards);
}

}  // namespace
}  // namespace glaive::memwal
