#include "memwal/wal.h"

#include <atomic>
#include <string>
#include <thread>

#include <arrow/api.h>

#include "io/faulting_store.h"
#include "io/power_loss_store.h"
#include "memwal/test_util.h"

namespace glaive::memwal {
namespace {

std::shared_ptr<arrow::RecordBatch> MakeRow(int64_t value) {
  arrow::Int64Builder builder;
  EXPECT_TRUE(builder.Append(value).ok());
  return arrow::RecordBatch::Make(arrow::schema({arrow::field("id", arrow::int64())}), 1,
                                  {builder.Finish().ValueOrDie()});
}

EncodedWalEntry MakeEntry(uint64_t epoch, int64_t value) {
  return EncodeWalEntry({epoch, 1}, {MakeRow(value)}).ValueOrDie();
}

class WalTest : public ::testing::Test {
 protected:
  // A writer that claimed the shard and wrote its sentinel.
  std::unique_ptr<WalAppender> Open(std::shared_ptr<io::ObjectStore> store,
                                    WalAppendOptions options = {
                                        .retry_base_delay_us = 0}) {
    auto manifests = std::make_shared<ShardManifests>(store_, shard_);
    const ShardManifest manifest = manifests->Claim(0).ValueOrDie();
    auto appender = std::make_unique<WalAppender>(
        store, std::make_shared<ShardManifests>(store, shard_), manifest.writer_epoch(),
        options);
    uint64_t next = manifest.replay_after_wal_entry_position() + 1;
    if (manifest.writer_epoch() > 1) {
      auto sentinel = appender->AppendSentinel(next);
      EXPECT_TRUE(sentinel.ok()) << sentinel.status().ToString();
      next = *sentinel + 1;
    }
    appender->set_next_position(next);
    epoch_ = manifest.writer_epoch();
    return appender;
  }
  // The values of all rows that are replayed.
  std::vector<int64_t> Values(uint64_t first = 1) {
    auto tail = WalReader(store_, shard_).ReadFrom(first);
    EXPECT_TRUE(tail.ok()) << tail.status().ToString();
    std::vector<int64_t> values;
    if (!tail.ok()) return values;
    for (const WalEntry& entry : tail->entries) {
      for (const auto& batch : entry.batches) {
        values.push_back(
            static_cast<const arrow::Int64Array&>(*batch->column(0)).Value(0));
      }
    }
    return values;
  }
  void PutRaw(uint64_t position, std::string_view bytes) {
    ASSERT_OK(
        store_->Put(WalEntryPath(shard_, position),
                    {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}));
  }
  std::string Raw(uint64_t position) {
    auto bytes = store_->Get(WalEntryPath(shard_, position));
    return bytes.ok() ? (*bytes)->ToString() : "";
  }
  // What a collector does: the manifest first, then the oldest entries.
  void Collect(uint64_t up_to) {
    ShardManifests manifests(store_, shard_);
    ASSERT_OK_AND_ASSIGN(const auto latest, manifests.ReadLatest());
    ASSERT_OK(manifests
                  .Update(std::nullopt, *latest,
                          [&](ShardManifest* next) {
                            next->set_replay_after_wal_entry_position(up_to);
                            return Status::OK();
                          })
                  .status());
    for (uint64_t p = 1; p <= up_to; ++p) {
      ASSERT_OK(store_->Delete(WalEntryPath(shard_, p)));
    }
  }

  const ShardId shard_ = ShardId::Derive("unsharded");
  const std::shared_ptr<io::ObjectStore> store_ = io::MakeMemoryStore();
  uint64_t epoch_ = 0;
};

TEST_F(WalTest, AppendsDensely) {
  auto writer = Open(store_);
  for (int64_t i = 0; i < 100; ++i) {
    ASSERT_OK_AND_ASSIGN(const uint64_t position, writer->Append(MakeEntry(1, i)));
    EXPECT_EQ(position, static_cast<uint64_t>(i) + 1);
  }
  const WalReader reader(store_, shard_);
  ASSERT_OK_AND_ASSIGN(uint64_t tip, reader.FindTip(1));
  EXPECT_EQ(tip, 101u);
  ASSERT_OK_AND_ASSIGN(tip, reader.FindTip(100));
  EXPECT_EQ(tip, 101u);
  ASSERT_OK_AND_ASSIGN(tip, reader.FindTip(7000));
  EXPECT_EQ(tip, 7000u);
  EXPECT_EQ(Values().size(), 100u);
  EXPECT_EQ(Values(99), (std::vector<int64_t>{98, 99}));
  ASSERT_OK_AND_ASSIGN(const auto entry, reader.Read(3));
  EXPECT_EQ(entry->header.writer_epoch, 1u);
  ASSERT_OK_AND_ASSIGN(const auto none, reader.Read(101));
  EXPECT_FALSE(none);
}

TEST_F(WalTest, SentinelsFencePredecessors) {
  auto first = Open(store_);
  ASSERT_OK(first->Append(MakeEntry(1, 10)).status());
  auto second = Open(store_);
  ASSERT_OK(second->Append(MakeEntry(2, 20)).status());
  auto refused = first->Append(MakeEntry(1, 11));
  EXPECT_KIND(ErrorKind::kFenced, refused.status());
  EXPECT_KIND(ErrorKind::kFenced, first->Append(MakeEntry(1, 12)).status());
  ASSERT_OK(second->Append(MakeEntry(2, 21)).status());
  EXPECT_EQ(Values(), (std::vector<int64_t>{10, 20, 21}));
  ASSERT_OK_AND_ASSIGN(const auto sentinel, WalReader(store_, shard_).Read(2));
  EXPECT_TRUE(sentinel->sentinel);
  EXPECT_EQ(sentinel->header.writer_epoch, 2u);
  EXPECT_KIND(ErrorKind::kFenced, first->AppendSentinel(1).status());
}

TEST_F(WalTest, LateSentinelsAreSkipped) {
  ShardManifests manifests(store_, shard_);
  ASSERT_OK_AND_ASSIGN(const ShardManifest slow, manifests.Claim(0));
  auto second = Open(store_);  // sentinel at 1
  ASSERT_OK(second->Append(MakeEntry(2, 20)).status());
  WalAppender first(store_, std::make_shared<ShardManifests>(store_, shard_),
                    slow.writer_epoch(), {});
  EXPECT_KIND(ErrorKind::kFenced, first.AppendSentinel(1).status());
  ASSERT_OK_AND_ASSIGN(const uint64_t position, second->Append(MakeEntry(2, 21)));
  EXPECT_EQ(position, 4u);
  EXPECT_EQ(Values(), (std::vector<int64_t>{20, 21}));
}

TEST_F(WalTest, StalledWritersDoNotFillGaps) {
  auto first = Open(store_);
  for (int64_t i = 0; i < 3; ++i) ASSERT_OK(first->Append(MakeEntry(1, i)).status());
  auto second = Open(store_);  // sentinel at 4
  for (int64_t i = 0; i < 5; ++i)
    ASSERT_OK(second->Append(MakeEntry(2, 10 + i)).status());
  Collect(8);  // position 4 is free again
  EXPECT_KIND(ErrorKind::kFenced, first->Append(MakeEntry(1, 77)).status());
  EXPECT_EQ(Raw(4), "");
  EXPECT_EQ(Values(9), (std::vector<int64_t>{14}));
  ASSERT_OK(second->Append(MakeEntry(2, 15)).status());
  EXPECT_EQ(Values(9), (std::vector<int64_t>{14, 15}));
}

TEST_F(WalTest, AWriterThatNeverAppendedIsFencedToo) {
  auto first = Open(store_);
  auto second = Open(store_);  // sentinel at 1
  ASSERT_OK(second->Append(MakeEntry(2, 20)).status());
  Collect(1);
  EXPECT_KIND(ErrorKind::kFenced, first->Append(MakeEntry(1, 77)).status());
  EXPECT_EQ(Values(2), (std::vector<int64_t>{20}));
}

TEST_F(WalTest, EverythingCollectedButTheWriterGoesOn) {
  auto writer = Open(store_);
  for (int64_t i = 0; i < 3; ++i) ASSERT_OK(writer->Append(MakeEntry(1, i)).status());
  Collect(3);
  ASSERT_OK_AND_ASSIGN(const uint64_t position, writer->Append(MakeEntry(1, 3)));
  EXPECT_EQ(position, 4u);
  auto next = Open(store_);
  EXPECT_EQ(next->next_position(), 6u);
}

TEST_F(WalTest, FaultsAtEveryCall) {
  // An error at call k, done or not done: an append that succeeded is there once, and
  // one that failed ends the writer.
  for (const auto effect :
       {io::FaultEffect::kNotDone, io::FaultEffect::kDone, io::FaultEffect::kTorn}) {
    for (const int retries : {0, 2}) {
      for (int64_t k = 0; k < 12; ++k) {
        const auto store = io::MakeMemoryStore();
        auto injector = std::make_shared<io::FaultInjector>();
        const auto faulty = io::MakeFaultingStore(store, injector);
        ShardManifests claims(store, shard_);
        ASSERT_OK_AND_ASSIGN(const auto manifest, claims.Claim(0));
        WalAppender writer(faulty, std::make_shared<ShardManifests>(faulty, shard_),
                           manifest.writer_epoch(),
                           {.max_persist_retries = retries, .retry_base_delay_us = 0});
        writer.set_next_position(1);
        injector->Arm({.fail_at = k, .only = {}, .effect = effect});
        std::vector<int64_t> acknowledged;
        for (int64_t i = 0; i < 6; ++i) {
          auto appended = writer.Append(MakeEntry(1, i));
          if (!appended.ok()) {
            EXPECT_KIND(ErrorKind::kWriterFailed, appended.status());
            break;
          }
          acknowledged.push_back(i);
        }
        ASSERT_OK_AND_ASSIGN(const auto tail, WalReader(store, shard_).ReadFrom(1));
        std::vector<int64_t> found;
        for (const auto& entry : tail.entries) {
          found.push_back(
              static_cast<const arrow::Int64Array&>(*entry.batches[0]->column(0))
                  .Value(0));
        }
        // At most the one that was not acknowledged comes on top.
        ASSERT_GE(found.size(), acknowledged.size());
        ASSERT_LE(found.size(), acknowledged.size() + 1);
        for (size_t i = 0; i < found.size(); ++i) {
          EXPECT_EQ(found[i], static_cast<int64_t>(i));
        }
        // One error of any kind is got over, unless it leaves a torn entry.
        if (retries > 0 && effect != io::FaultEffect::kTorn) {
          EXPECT_EQ(acknowledged.size(), 6u);
        }
        EXPECT_TRUE(injector->fired());
      }
    }
  }
}

TEST_F(WalTest, LostRepliesAreFoundOut) {
  auto injector = std::make_shared<io::FaultInjector>();
  const auto faulty = io::MakeFaultingStore(store_, injector);
  for (const int retries : {0, 3}) {
    auto writer =
        Open(faulty, {.max_persist_retries = retries, .retry_base_delay_us = 0});
    injector->Arm({.fail_at = 0,
                   .only = io::StoreOp::kPutIfAbsent,
                   .effect = io::FaultEffect::kDone});
    ASSERT_OK_AND_ASSIGN(const uint64_t position, writer->Append(MakeEntry(epoch_, 5)));
    EXPECT_TRUE(injector->fired());
    injector->Disarm();
    ASSERT_OK_AND_ASSIGN(const uint64_t next, writer->Append(MakeEntry(epoch_, 6)));
    EXPECT_EQ(next, position + 1);
  }
  EXPECT_EQ(Values(), (std::vector<int64_t>{5, 6, 5, 6}));
}

TEST_F(WalTest, AForeignEntryPoisons) {
  auto writer = Open(store_);
  ASSERT_OK(writer->Append(MakeEntry(1, 1)).status());
  // Nobody claimed, but the name is taken, by the same rows even.
  const auto foreign = MakeEntry(1, 2);
  PutRaw(2, arrow::ConcatenateBuffers(foreign.parts).ValueOrDie()->ToString());
  auto failed = writer->Append(MakeEntry(1, 2));
  EXPECT_KIND(ErrorKind::kWriterFailed, failed.status());
  EXPECT_NE(failed.status().message().find("somebody else"), std::string::npos);
}

TEST_F(WalTest, ErrorsThatLastPoison) {
  auto injector = std::make_shared<io::FaultInjector>();
  auto writer = Open(io::MakeFaultingStore(store_, injector),
                     {.max_persist_retries = 2, .retry_base_delay_us = 0});
  injector->Arm({.fail_at = 0, .only = {}, .effect = {}, .crash = true});
  auto failed = writer->Append(MakeEntry(1, 1));
  EXPECT_KIND(ErrorKind::kWriterFailed, failed.status());
  injector->Disarm();
  EXPECT_EQ(Values(), std::vector<int64_t>{});
}

TEST_F(WalTest, TornEndsAreLeftOutAndReplaced) {
  auto writer = Open(store_);
  for (int64_t i = 0; i < 4; ++i) ASSERT_OK(writer->Append(MakeEntry(1, i)).status());
  const std::string whole = Raw(4);
  for (const std::string& torn :
       {std::string(), whole.substr(0, 5), whole.substr(0, whole.size() / 2),
        std::string(whole.size(), '\0'),
        whole.substr(0, 64) + std::string(whole.size() - 64, '\0')}) {
    PutRaw(4, torn);
    ASSERT_OK_AND_ASSIGN(const auto tail, WalReader(store_, shard_).ReadFrom(1));
    EXPECT_EQ(tail.entries.size(), 3u);
    EXPECT_EQ(tail.torn, std::vector<uint64_t>{4});
    EXPECT_EQ(tail.next_position, 5u);
  }
  // The successor's sentinel comes after it; then the torn entry becomes one as well.
  auto next = Open(store_);
  EXPECT_EQ(next->next_position(), 6u);
  ASSERT_OK_AND_ASSIGN(const auto tail, WalReader(store_, shard_).ReadFrom(1));
  EXPECT_EQ(tail.torn, std::vector<uint64_t>{4});
  ASSERT_OK(next->ReplaceTorn(tail.torn));
  ASSERT_OK(next->Append(MakeEntry(2, 9)).status());
  EXPECT_EQ(Values(), (std::vector<int64_t>{0, 1, 2, 9}));
}

TEST_F(WalTest, DamageInTheMiddleNamesTheEntry) {
  auto writer = Open(store_);
  for (int64_t i = 0; i < 4; ++i) ASSERT_OK(writer->Append(MakeEntry(1, i)).status());
  const std::string whole = Raw(2);
  const auto refused = [&](uint64_t position) {
    auto tail = WalReader(store_, shard_).ReadFrom(1);
    EXPECT_KIND(ErrorKind::kCorruption, tail.status());
    EXPECT_NE(tail.status().message().find(WalEntryPath(shard_, position)),
              std::string::npos)
        << tail.status().ToString();
  };
  PutRaw(2, whole.substr(0, whole.size() / 2));
  refused(2);
  PutRaw(2, "");
  refused(2);
  // Damage that no power cut makes is reported at the end, too.
  PutRaw(2, whole);
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string flipped = whole;
    flipped[at] = static_cast<char>(flipped[at] ^ 1 << at % 8);
    PutRaw(4, flipped);
    auto tail = WalReader(store_, shard_).ReadFrom(1);
    // In the trailer's own mark: then it is one of a writer that leaves none, with
    // something behind its stream, and taken for torn.
    if (tail.ok()) {
      EXPECT_EQ(tail->torn, std::vector<uint64_t>{4}) << at;
      EXPECT_GE(at, whole.size() - 16);
    } else {
      refused(4);
    }
  }
  PutRaw(4, whole);
  // A missing entry is found when a writer opens.
  ASSERT_OK(store_->Delete(WalEntryPath(shard_, 3)));
  ShardManifests manifests(store_, shard_);
  ASSERT_OK_AND_ASSIGN(const auto claimed, manifests.Claim(0));
  WalAppender second(store_, std::make_shared<ShardManifests>(store_, shard_),
                     claimed.writer_epoch(), {});
  auto sentinel = second.AppendSentinel(1);
  EXPECT_KIND(ErrorKind::kCorruption, sentinel.status());
  EXPECT_NE(sentinel.status().message().find(WalEntryPath(shard_, 3)), std::string::npos);
}

TEST_F(WalTest, PowerCutsAtLevelOsLeaveABeginning) {
  std::mt19937_64 random(TestSeed());
  int lost = 0;
  for (int round = 0; round < (Soak() ? 3000 : 200); ++round) {
    const io::PowerLoss before;
    std::shared_ptr<io::ObjectStore> store = before.store();
    const auto open = [&](Durability level, WalReader::Tail* tail) {
      auto manifests = std::make_shared<ShardManifests>(store, shard_);
      const ShardManifest manifest = manifests->Claim(0).ValueOrDie();
      auto writer =
          std::make_unique<WalAppender>(store, manifests, manifest.writer_epoch(),
                                        WalAppendOptions{.durability = level});
      const WalReader reader(store, shard_);
      *tail = reader.ReadFrom(1).ValueOrDie();
      epoch_ = manifest.writer_epoch();
      EXPECT_TRUE(writer->ReplaceTorn(tail->torn).ok());
      if (level == Durability::kFsync) {
        EXPECT_TRUE(writer->MakeDurable(tail->unsynced).ok());
      }
      auto sentinel = writer->AppendSentinel(tail->next_position);
      EXPECT_TRUE(sentinel.ok()) << sentinel.status().ToString();
      writer->set_next_position(sentinel.ok() ? *sentinel + 1 : 0);
      return writer;
    };
    const auto values = [](const WalReader::Tail& tail) {
      std::vector<int64_t> out;
      for (const WalEntry& entry : tail.entries) {
        for (const auto& batch : entry.batches) {
          out.push_back(
              static_cast<const arrow::Int64Array&>(*batch->column(0)).Value(0));
        }
      }
      return out;
    };
    WalReader::Tail tail;
    std::vector<int64_t> written;
    int64_t durable = 0;  // of them
    std::shared_ptr<io::PowerLoss> after;
    for (int writer = 0; writer < 3; ++writer) {
      const auto level = random() % 2 == 0 ? Durability::kFsync : Durability::kOs;
      auto appender = open(level, &tail);
      EXPECT_EQ(values(tail), written);
      if (level == Durability::kFsync) durable = static_cast<int64_t>(written.size());
      for (uint64_t i = random() % 5; i > 0; --i) {
        written.push_back(static_cast<int64_t>(random() % 1000));
        auto appended = appender->Append(MakeEntry(epoch_, written.back()));
        ASSERT_TRUE(appended.ok()) << appended.status().ToString();
        if (level == Durability::kFsync) durable = static_cast<int64_t>(written.size());
      }
      if (random() % 2 == 0) continue;
      ASSERT_OK_AND_ASSIGN(after, (after == nullptr ? before : *after).CutPower(random));
      store = after->store();
      auto survivor = open(level, &tail);
      const std::vector<int64_t> left = values(tail);
      ASSERT_LE(left.size(), written.size());
      ASSERT_GE(static_cast<int64_t>(left.size()), durable);
      EXPECT_TRUE(std::equal(left.begin(), left.end(), written.begin()));
      lost += left.size() < written.size();
      written = left;
      // What the survivor appends is read after it, too.
      ASSERT_OK(survivor->Append(MakeEntry(epoch_, 5000)).status());
      written.push_back(5000);
      if (level == Durability::kFsync) durable = static_cast<int64_t>(written.size());
      ASSERT_OK_AND_ASSIGN(tail, WalReader(store, shard_).ReadFrom(1));
      EXPECT_EQ(values(tail), written);
    }
  }
  EXPECT_GT(lost, 0);
}

}  // namespace
}  // namespace glaive::memwal
