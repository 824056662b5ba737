#include "memwal/shard_writer.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include <sys/wait.h>

#include "exec/add_columns.h"
#include "exec/alter_columns.h"
#include "io/counting_store.h"
#include "io/delaying_store.h"
#include "io/faulting_store.h"
#include "io/power_loss_store.h"
#include "memwal/writer_test_util.h"

namespace glaive::memwal {
namespace {

using std::chrono::milliseconds;

void ExpectText(const Status& status, ErrorKind kind, const std::string& text) {
  EXPECT_KIND(kind, status);
  EXPECT_NE(status.message().find(text), std::string::npos) << status.ToString();
}

class ShardWriterTest : public testing::Test {
 protected:
  void SetUp() override {
    counters_ = std::make_shared<io::StoreCounters>();
    faults_ = std::make_shared<io::FaultInjector>();
    memory_ = io::MakeMemoryStore();
    auto store =
        io::MakeFaultingStore(io::MakeCountingStore(memory_, counters_), faults_);
    ASSERT_OK_AND_ASSIGN(base_, MakeLsmTable(MakeEnv(store)));
    config_.wal_persist_retry_base_delay_ms = 0;
  }

  std::shared_ptr<ShardWriter> Open() { return Open(config_); }
  std::shared_ptr<ShardWriter> Open(const WriterConfig& config) {
    auto writer = ShardWriter::Open(base_, TestShard(), config);
    EXPECT_TRUE(writer.ok()) << writer.status().ToString();
    return writer.ok() ? *writer : nullptr;
  }
  // Every call fails from now on.
  void Break() { Fail(std::nullopt, io::FaultEffect::kNotDone, true); }
  void Fail(std::optional<io::StoreOp> op,
            io::FaultEffect effect = io::FaultEffect::kNotDone, bool crash = false) {
    io::FaultPlan plan;
    plan.fail_at = 0;
    plan.only = op;
    plan.effect = effect;
    plan.crash = crash;
    faults_->Arm(plan);
  }

  ShardManifest Manifest() {
    return *ShardManifests(memory_, TestShard()).ReadLatest().ValueOrDie();
  }
  std::vector<uint64_t> Log() {
    return WalReader(memory_, TestShard()).ListPositions().ValueOrDie();
  }

  std::shared_ptr<io::StoreCounters> counters_;
  std::shared_ptr<io::FaultInjector> faults_;
  std::shared_ptr<io::ObjectStore> memory_;
  table::Dataset::Ptr base_;
  WriterConfig config_;
};

#define EXPECT_CONTENTS(writer, ...)                    \
  do {                                                  \
    auto read = ReadWriter(*(writer));                  \
    ASSERT_TRUE(read.ok()) << read.status().ToString(); \
    EXPECT_EQ(*read, (Contents __VA_ARGS__));           \
  } while (false)

TEST_F(ShardWriterTest, RowsAreVisibleAndSurviveTheWriter) {
  auto writer = Open();
  EXPECT_EQ(writer->epoch(), 1u);
  EXPECT_EQ(writer->shard(), TestShard());
  EXPECT_TRUE(Log().empty());  // the first writer fences nobody
  EXPECT_CONTENTS(writer, {});
  ASSERT_OK(writer->Put({MakeRows({{1, "a"}, {2, "b"}}), MakeRows({{1, "c"}})}));
  EXPECT_CONTENTS(writer, {{1, "c"}, {2, "b"}});
  ASSERT_OK(writer->Delete({MakeDeletes({2, 7})}));
  EXPECT_CONTENTS(writer, {{1, "c"}});
  EXPECT_EQ(Log(), (std::vector<uint64_t>{1, 2}));
  EXPECT_EQ(writer->stats().put_count, 2);
  EXPECT_EQ(writer->stats().wal_flush_count, 2);
  EXPECT_GT(writer->stats().wal_flush_bytes, 0);
  EXPECT_EQ(writer->memtable_stats().row_count, 5);
  EXPECT_EQ(writer->memtable_stats().batch_count, 3);
  EXPECT_EQ(writer->memtable_stats().durable_batch_count, 3);
  EXPECT_EQ(writer->memtable_stats().pending_wal_batch_count, 0);

  writer.reset();  // not closed: the rows are in the log
  EXPECT_EQ(Manifest().sstables_size(), 0);
  writer = Open();
  EXPECT_EQ(writer->epoch(), 2u);
  EXPECT_EQ(Log(), (std::vector<uint64_t>{1, 2, 3}));  // a sentinel
  EXPECT_EQ(Manifest().version(), 2u);                 // and the claim, nothing else
  EXPECT_CONTENTS(writer, {{1, "c"}});
  EXPECT_EQ(writer->memtable_stats().row_count, 5);
  // What was replayed is not appended again.
  EXPECT_EQ(writer->stats().wal_flush_count, 0);
  ASSERT_OK(writer->Put({MakeRows({{2, "d"}})}));
  EXPECT_EQ(Log(), (std::vector<uint64_t>{1, 2, 3, 4}));
  EXPECT_CONTENTS(writer, {{1, "c"}, {2, "d"}});
}

TEST_F(ShardWriterTest, BadCallsChangeNothing) {
  config_.max_memtable_rows = 4;
  config_.max_memtable_batches = 3;
  auto writer = Open();
  ExpectText(writer->Put({}), ErrorKind::kInvalidInput, "Cannot write empty batch list");
  ExpectText(writer->Put({MakeRows({{1, "a"}}), MakeRows({})}), ErrorKind::kInvalidInput,
             "Batch 1 is empty");
  ExpectText(writer->Delete({}), ErrorKind::kInvalidInput,
             "Cannot delete with empty key list");
  ExpectText(writer->Delete({MakeDeletes({})}), ErrorKind::kInvalidInput,
             "Key batch 0 is empty");
  ExpectText(writer->Put({MakeRows({{1, ""}, {2, ""}, {3, ""}, {4, ""}, {5, ""}})}),
             ErrorKind::kInvalidInput,
             "write of 5 rows across 1 batches exceeds max_memtable_rows=4: a write is "
             "never split across memtables");
  const auto one = MakeRows({{1, "a"}});
  ExpectText(writer->Put({one, one, one, one}), ErrorKind::kInvalidInput,
             "exceeds max_memtable_batches=3");
  EXPECT_FALSE(writer->Put({MakeDeletes({1})}).ok());
  EXPECT_FALSE(
      writer->Delete({MakeRows({{1, "a"}})->SelectColumns({1}).ValueOrDie()}).ok());
  EXPECT_CONTENTS(writer, {});
  EXPECT_TRUE(Log().empty());
  EXPECT_EQ(writer->stats().put_count, 0);
  ASSERT_OK(writer->health());
}

TEST_F(ShardWriterTest, ADurablePutIsOneFileAndNothingElse) {
  for (const Durability durability : {Durability::kFsync, Durability::kOs}) {
    config_.durability = durability;
    auto writer = Open();
    ASSERT_OK(writer->Put({MakeRows({{1, "a"}})}));  // makes directories
    counters_->Reset();
    ASSERT_OK(writer->Put({MakeRows({{2, "b"}})}));
    EXPECT_EQ(counters_->count(io::StoreOp::kPutIfAbsent), 1);
    // The look at the entry before it keeps a stalled writer from writing where the log
    // was collected.
    EXPECT_EQ(counters_->count(io::StoreOp::kExists), 1);
    EXPECT_EQ(counters_->total(), 2);
  }
}

TEST_F(ShardWriterTest, DurabilityIsWhatItSays) {
  std::mt19937_64 random(TestSeed());
  for (const Durability durability : {Durability::kFsync, Durability::kOs}) {
    const auto disk = std::make_shared<io::PowerLoss>();
    ASSERT_OK_AND_ASSIGN(base_, MakeLsmTable(MakeEnv(disk->store())));
    config_.durability = durability;
    auto writer = Open();
    ASSERT_OK(writer->Put({MakeRows({{1, "a"}})}));
    bool lost = false;
    for (int i = 0; i < 30; ++i) {
      ASSERT_OK_AND_ASSIGN(const auto after, disk->CutPower(random));
      ASSERT_OK_AND_ASSIGN(base_, table::Dataset::Open(MakeEnv(after->store())));
      auto next = Open();
      ASSERT_NE(next, nullptr);
      ASSERT_OK_AND_ASSIGN(const Contents contents, ReadWriter(*next));
      if (contents.empty()) lost = true;
      EXPECT_EQ(contents, contents.empty() ? Contents{} : (Contents{{1, "a"}}));
      // A torn end is out of the way: more rows, and another life.
      ASSERT_OK(next->Put({MakeRows({{2, "b"}})}));
      next.reset();
      next = Open();
      ASSERT_NE(next, nullptr);
      ASSERT_OK_AND_ASSIGN(const Contents more, ReadWriter(*next));
      EXPECT_EQ(more.size(),
                contents.size() + (durability == Durability::kFsync ? 1 : 1));
    }
    EXPECT_EQ(lost, durability == Durability::kOs);
  }
}

TEST_F(ShardWriterTest, PutsOfManyThreadsShareEntries) {
  io::StoreDelays delays;
  delays.Set(io::StoreOp::kPutIfAbsent, milliseconds(4));
  ASSERT_OK_AND_ASSIGN(
      base_, MakeLsmTable(MakeEnv(io::MakeDelayingStore(io::MakeMemoryStore(), delays))));
  auto writer = Open();
  constexpr int kThreads = 16, kPuts = 12;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kPuts; ++i) {
        const int64_t key = t * kPuts + i;
        ASSERT_OK(writer->Put({MakeRows({{key, "x"}})}));
        ASSERT_OK_AND_ASSIGN(const WriterView view, writer->View());
        bool seen = false;  // acknowledged rows can be read
        for (const auto& memtable : view.memtables) {
          for (const auto& batch : memtable.batches()) {
            seen |=
                static_cast<const arrow::Int64Array&>(*batch->column(0)).Value(0) == key;
          }
        }
        EXPECT_TRUE(seen);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(writer->stats().put_count, kThreads * kPuts);
  EXPECT_EQ(writer->memtable_stats().row_count, kThreads * kPuts);
  // One by one it would be as many entries as puts.
  EXPECT_LT(writer->stats().wal_flush_count, kThreads * kPuts / 4);
}

TEST_F(ShardWriterTest, FullMemtablesBecomeGenerations) {
  config_.max_memtable_rows = 3;
  auto writer = Open();
  std::atomic<int> flushes{0};
  writer->set_on_flush([&](const ShardManifest& manifest) {
    flushes++;
    EXPECT_EQ(manifest.current_generation(), static_cast<uint64_t>(flushes) + 1);
  });
  Contents expected;
  for (int64_t i = 0; i < 20; ++i) {
    ASSERT_OK(writer->Put({MakeRows({{i % 7, std::to_string(i)}})}));
    expected[i % 7] = std::to_string(i);
    ASSERT_OK_AND_ASSIGN(const Contents seen, ReadWriter(*writer));
    EXPECT_EQ(seen, expected) << i;
  }
  ASSERT_OK_AND_ASSIGN(const bool flushed, writer->Flush());
  EXPECT_TRUE(flushed);
  EXPECT_EQ(writer->memtable_stats().row_count, 0);
  EXPECT_EQ(writer->memtable_stats().frozen_count, 0);
  const ShardManifest manifest = Manifest();
  EXPECT_EQ(manifest.sstables_size(), 7);
  EXPECT_EQ(manifest.current_generation(), 8u);
  EXPECT_EQ(manifest.replay_after_wal_entry_position(), 20u);
  EXPECT_EQ(manifest.wal_entry_position_last_seen(), 20u);
  for (int i = 0; i < 7; ++i) {
    EXPECT_EQ(manifest.sstables(i).generation(), static_cast<uint64_t>(i) + 1);
    EXPECT_EQ(manifest.sstables(i).physical_rows(), i < 6 ? 3u : 2u);
  }
  ASSERT_OK_AND_ASSIGN(const Contents seen, ReadWriter(*writer));
  EXPECT_EQ(seen, expected);
  ASSERT_OK_AND_ASSIGN(const bool again, writer->Flush());
  EXPECT_FALSE(again);
  EXPECT_EQ(writer->stats().memtable_flush_count, 7);
  EXPECT_EQ(writer->stats().memtable_flush_rows, 20);
  writer.reset();
  EXPECT_EQ(flushes, 7);
  ASSERT_OK_AND_ASSIGN(const Contents later, ReadWriter(*Open()));
  EXPECT_EQ(later, expected);
}

TEST_F(ShardWriterTest, EachBoundSeals) {
  const auto generations = [&](WriterConfig config) {
    SetUp();
    auto writer = Open(config);
    for (int64_t i = 0; i < 4; ++i) {
      EXPECT_TRUE(writer
                      ->Put({MakeRows({{2 * i, std::string(1000, 'x')}}),
                             MakeRows({{2 * i + 1, std::string(1000, 'y')}})})
                      .ok());
    }
    EXPECT_TRUE(writer->Close().ok());
    return Manifest().sstables_size();
  };
  EXPECT_EQ(generations({}), 1);
  EXPECT_EQ(generations({.max_memtable_rows = 4}), 2);
  EXPECT_EQ(generations({.max_memtable_rows = 3}), 4);  // puts are not split
  EXPECT_EQ(generations({.max_memtable_batches = 4}), 2);
  EXPECT_EQ(generations({.max_memtable_size = 1}), 4);
  EXPECT_EQ(generations({.max_memtable_size = 3000}), 2);
}

TEST_F(ShardWriterTest, ClosedWritersTakeNothing) {
  auto writer = Open();
  ASSERT_OK(writer->Put({MakeRows({{1, "a"}, {1, "b"}})}));
  ASSERT_OK(writer->Close());
  ASSERT_OK(writer->Close());
  EXPECT_TRUE(writer->is_closed());
  ExpectText(writer->Put({MakeRows({{1, "a"}})}), ErrorKind::kClosed,
             "ShardWriter is already closed");
  EXPECT_KIND(ErrorKind::kClosed, writer->Delete({MakeDeletes({1})}));
  EXPECT_KIND(ErrorKind::kClosed, writer->View().status());
  EXPECT_KIND(ErrorKind::kClosed, writer->Flush().status());
  EXPECT_EQ(writer->memtable_stats().row_count, 0);
  EXPECT_EQ(writer->memtable_stats().generation, 2u);
  EXPECT_EQ(Manifest().sstables_size(), 1);
  EXPECT_EQ(Manifest().sstables(0).physical_rows(), 2u);
  // Without rows closing writes nothing.
  writer = Open();
  const uint64_t version = Manifest().version();
  ASSERT_OK(writer->Close());
  EXPECT_EQ(Manifest().version(), version);
  EXPECT_CONTENTS(Open(), {{1, "b"}});
}

TEST_F(ShardWriterTest, AFencedWriterServesNothing) {
  auto first = Open();
  ASSERT_OK(first->Put({MakeRows({{1, "a"}})}));
  auto second = Open();
  EXPECT_CONTENTS(second, {{1, "a"}});
  ExpectText(first->Put({MakeRows({{1, "lost"}})}), ErrorKind::kFenced,
             "local epoch 1 < stored epoch 2");
  EXPECT_KIND(ErrorKind::kFenced, first->health());
  EXPECT_KIND(ErrorKind::kFenced, first->Put({MakeRows({{2, "lost"}})}));
  EXPECT_KIND(ErrorKind::kFenced, first->Delete({MakeDeletes({1})}));
  EXPECT_KIND(ErrorKind::kFenced, first->View().status());
  EXPECT_KIND(ErrorKind::kFenced, first->Flush().status());
  EXPECT_EQ(first->stats().put_count, 1);
  EXPECT_KIND(ErrorKind::kFenced, first->Close());
  EXPECT_CONTENTS(second, {{1, "a"}});
  ASSERT_OK(second->Put({MakeRows({{1, "b"}})}));

  // One that only reads finds out as well.
  auto third = Open();
  EXPECT_KIND(ErrorKind::kFenced, second->View().status());
  EXPECT_CONTENTS(third, {{1, "b"}});
  // And one that flushes.
  auto fourth = Open();
  EXPECT_KIND(ErrorKind::kFenced, third->Flush().status());
  EXPECT_CONTENTS(fourth, {{1, "b"}});
  // An idle one closes in peace.
  ASSERT_OK(fourth->Close());
  fourth = Open();
  auto fifth = Open();
  ASSERT_OK(fourth->Close());
  EXPECT_CONTENTS(fifth, {{1, "b"}});
}

TEST_F(ShardWriterTest, AFailedAppendPoisons) {
  auto writer = Open();
  ASSERT_OK(writer->Put({MakeRows({{1, "a"}})}));
  Break();
  EXPECT_KIND(ErrorKind::kWriterFailed, writer->Put({MakeRows({{2, "b"}})}));
  faults_->Disarm();
  EXPECT_KIND(ErrorKind::kWriterFailed, writer->health());
  EXPECT_KIND(ErrorKind::kWriterFailed, writer->Put({MakeRows({{3, "c"}})}));
  EXPECT_KIND(ErrorKind::kWriterFailed, writer->View().status());
  EXPECT_KIND(ErrorKind::kWriterFailed, writer->Close());
  EXPECT_EQ(writer->stats().put_count, 1);
  EXPECT_CONTENTS(Open(), {{1, "a"}});
}

TEST_F(ShardWriterTest, AShortFaultIsRetried) {
  auto writer = Open();
  Fail(io::StoreOp::kPutIfAbsent);
  ASSERT_OK(writer->Put({MakeRows({{1, "a"}})}));
  EXPECT_TRUE(faults_->fired());
  EXPECT_CONTENTS(writer, {{1, "a"}});
  // Also when only the reply was lost.
  Fail(io::StoreOp::kPutIfAbsent, io::FaultEffect::kDone);
  ASSERT_OK(writer->Put({MakeRows({{2, "b"}})}));
  EXPECT_TRUE(faults_->fired());
  EXPECT_EQ(Log().size(), 2u);
  EXPECT_CONTENTS(writer, {{1, "a"}, {2, "b"}});
  // But not when something else is there.
  Fail(io::StoreOp::kPutIfAbsent, io::FaultEffect::kTorn);
  EXPECT_KIND(ErrorKind::kWriterFailed, writer->Put({MakeRows({{3, "c"}})}));
  EXPECT_CONTENTS(Open(), {{1, "a"}, {2, "b"}});
}

TEST_F(ShardWriterTest, RowsWithoutDurabilityFollowLater) {
  config_.durable_write = false;
  config_.max_wal_flush_interval_ms = 20;
  auto writer = Open();
  ASSERT_OK(writer->Put({MakeRows({{1, "a"}})}));
  EXPECT_CONTENTS(writer, {{1, "a"}});
  const auto wait_for_log = [&](size_t entries) {
    for (int i = 0; i < 1000 && Log().size() < entries; ++i) {
      std::this_thread::sleep_for(milliseconds(2));
    }
    return Log().size();
  };
  EXPECT_EQ(wait_for_log(1), 1u);
  EXPECT_EQ(writer->memtable_stats().pending_wal_batch_count, 0);
  // At the end of the writer, whatever the interval is.
  writer.reset();
  config_.max_wal_flush_interval_ms = 3600'000;
  writer = Open();
  ASSERT_OK(writer->Put({MakeRows({{2, "b"}})}));
  ASSERT_OK(writer->Put({MakeRows({{3, "c"}})}));
  std::this_thread::sleep_for(milliseconds(20));
  EXPECT_EQ(Log().size(), 2u);
  EXPECT_EQ(writer->memtable_stats().pending_wal_batch_count, 2);
  EXPECT_EQ(writer->memtable_stats().pending_wal_row_count, 2);
  writer.reset();
  EXPECT_EQ(Log().size(), 3u);  // both in one entry
  // When enough is pending.
  config_.max_wal_buffer_size = 100;
  writer = Open();
  ASSERT_OK(writer->Put({MakeRows({{4, std::string(200, 'd')}})}));
  EXPECT_EQ(wait_for_log(5), 5u);
  config_.max_wal_buffer_size = 0;
  writer = Open();
  // Closing and flushing append first.
  ASSERT_OK(writer->Put({MakeRows({{5, "e"}})}));
  ASSERT_OK(writer->Flush().status());
  ASSERT_OK(writer->Put({MakeRows({{6, "f"}})}));
  ASSERT_OK(writer->Close());
  EXPECT_EQ(Manifest().replay_after_wal_entry_position(), Log().size());
  auto last = Open();
  ASSERT_OK_AND_ASSIGN(const Contents contents, ReadWriter(*last));
  EXPECT_EQ(contents.size(), 6u);

  // A failure shows at the next call.
  ASSERT_OK(last->Put({MakeRows({{7, "g"}})}));
  Break();
  EXPECT_KIND(ErrorKind::kWriterFailed, last->Flush().status());
  EXPECT_KIND(ErrorKind::kWriterFailed, last->Put({MakeRows({{8, "h"}})}));
  EXPECT_KIND(ErrorKind::kWriterFailed, last->View().status());
}

TEST_F(ShardWriterTest, AFailedFlushLosesNothing) {
  auto writer = Open();
  ASSERT_OK(writer->Put({MakeRows({{1, "a"}})}));
  for (const io::StoreOp op : {io::StoreOp::kFinish, io::StoreOp::kPutIfAbsent}) {
    for (const auto effect : {io::FaultEffect::kNotDone, io::FaultEffect::kDone}) {
      const int64_t failures = writer->stats().memtable_flush_failures;
      const uint64_t generation = writer->memtable_stats().generation;
      ASSERT_OK(writer->Put({MakeRows({{2, std::to_string(generation)}})}));
      Fail(op, effect);
      ASSERT_OK_AND_ASSIGN(const bool flushed, writer->Flush());
      EXPECT_TRUE(flushed);
      EXPECT_TRUE(faults_->fired());
      EXPECT_LE(writer->stats().memtable_flush_failures, failures + 1);
      EXPECT_EQ(Manifest().sstables().rbegin()->generation(), generation);
      EXPECT_CONTENTS(writer, {{1, "a"}, {2, std::to_string(generation)}});
    }
  }
  EXPECT_GT(writer->stats().memtable_flush_failures, 0);
  EXPECT_EQ(Manifest().sstables_size(), 4);

  // As long as it fails the rows are served from memory, and whoever waits is told.
  ASSERT_OK(writer->Put({MakeRows({{3, "c"}})}));
  Fail(io::StoreOp::kFinish, io::FaultEffect::kNotDone, true);
  const Status status = writer->Flush().status();
  EXPECT_KIND(ErrorKind::kIo, status);
  faults_->Disarm();
  ASSERT_OK(writer->health());
  EXPECT_CONTENTS(writer, {{1, "a"}, {2, "4"}, {3, "c"}});
  ASSERT_OK(writer->Flush().status());
  EXPECT_EQ(Manifest().sstables_size(), 5);
  EXPECT_CONTENTS(writer, {{1, "a"}, {2, "4"}, {3, "c"}});
}

TEST_F(ShardWriterTest, PutsWaitForRoomAndGiveUpWhenNothingDrains) {
  config_.max_memtable_size = 40'000;
  config_.max_unflushed_memtable_bytes = 120'000;
  auto writer = Open();
  // Far more than fits: flushes make room.
  for (int64_t i = 0; i < 40; ++i) {
    ASSERT_OK(writer->Put({MakeRows({{i, std::string(20'000, 'x')}})}));
    const MemtableStats stats = writer->memtable_stats();
    EXPECT_LT(stats.frozen_bytes, 200'000);
  }
  ASSERT_OK(writer->Flush().status());
  Fail(io::StoreOp::kFinish, io::FaultEffect::kNotDone, true);
  // The log is not touched by the fault as long as nothing is flushed.
  Status status;
  int64_t stored = 0;
  const auto start = std::chrono::steady_clock::now();
  for (int64_t i = 100; i < 140 && status.ok(); ++i) {
    status = writer->Put({MakeRows({{i, std::string(20'000, 'y')}})});
    if (status.ok()) ++stored;
  }
  faults_->Disarm();
  // Either the fault met an append (the whole store is broken), or room ran out.
  if (KindOf(status) == ErrorKind::kResourceExhausted) {
    EXPECT_GE(std::chrono::steady_clock::now() - start, milliseconds(900));
    ASSERT_OK(writer->health());
    ASSERT_OK(writer->Put({MakeRows({{200, "z"}})}));
    ASSERT_OK_AND_ASSIGN(const Contents contents, ReadWriter(*writer));
    EXPECT_EQ(contents.size(), static_cast<size_t>(40 + stored + 1));
  } else {
    EXPECT_KIND(ErrorKind::kWriterFailed, status);
  }
}

TEST_F(ShardWriterTest, StreamsArePutPieceByPiece) {
  config_.max_memtable_rows = 10;
  auto writer = Open();
  Rows rows;
  for (int64_t i = 0; i < 95; ++i) rows.emplace_back(i, "x");
  const auto all = MakeRows(rows);
  ASSERT_OK_AND_ASSIGN(const auto reader, arrow::RecordBatchReader::Make(
                                              {all->Slice(0, 40), all->Slice(40, 0),
                                               all->Slice(40, 3), all->Slice(43, 52)}));
  ASSERT_OK_AND_ASSIGN(const int64_t stored, writer->PutStream(*reader));
  EXPECT_EQ(stored, 95);
  ASSERT_OK_AND_ASSIGN(const Contents contents, ReadWriter(*writer));
  EXPECT_EQ(contents.size(), 95u);
  // Nothing to put is no error.
  ASSERT_OK_AND_ASSIGN(const auto none,
                       arrow::RecordBatchReader::Make({}, WriterSchema()));
  ASSERT_OK_AND_ASSIGN(const int64_t zero, writer->PutStream(*none));
  EXPECT_EQ(zero, 0);
  ASSERT_OK_AND_ASSIGN(const auto wrong,
                       arrow::RecordBatchReader::Make({MakeDeletes({1})}));
  EXPECT_KIND(ErrorKind::kSchemaMismatch, writer->PutStream(*wrong).status());
}

TEST_F(ShardWriterTest, WhatCannotBeOpenedFencesNobody) {
  auto writer = Open();
  config_.max_memtable_size = 0;
  EXPECT_KIND(ErrorKind::kInvalidInput,
              ShardWriter::Open(base_, TestShard(), config_).status());
  config_ = {};
  config_.shard_spec_id = 7;
  EXPECT_KIND(ErrorKind::kInvalidInput,
              ShardWriter::Open(base_, TestShard(), config_).status());
  ASSERT_OK(writer->Put({MakeRows({{1, "a"}})}));
  EXPECT_EQ(Manifest().shard_spec_id(), 1u);  // the table's

  ASSERT_OK_AND_ASSIGN(
      const auto plain,
      table::Dataset::WriteEmpty(MakeEnv(io::MakeMemoryStore()), *WriterSchema(), {}));
  ExpectText(
      ShardWriter::Open(plain, TestShard(), {}).status(), ErrorKind::kInvalidInput,
      "MemWAL is not initialized on this dataset. Call initialize_mem_wal() first.");
}

TEST_F(ShardWriterTest, AbortedWritersWriteNothing) {
  config_.durable_write = false;
  config_.max_wal_flush_interval_ms = 3600'000;
  auto writer = Open();
  ASSERT_OK(writer->Put({MakeRows({{1, "a"}})}));
  counters_->Reset();
  writer->Abort();
  EXPECT_TRUE(writer->is_closed());
  EXPECT_KIND(ErrorKind::kClosed, writer->Put({MakeRows({{1, "a"}})}));
  EXPECT_KIND(ErrorKind::kClosed, writer->View().status());
  ASSERT_OK(writer->Close());
  writer.reset();
  EXPECT_EQ(counters_->total(), 0);
}

TEST_F(ShardWriterTest, AForkedChildCannotUseTheWriter) {
  config_.max_memtable_rows = 2;
  auto writer = Open();
  std::atomic<bool> stop{false};
  std::thread busy([&] {  // somebody holds the locks
    for (int64_t i = 0; !stop; ++i) ASSERT_OK(writer->Put({MakeRows({{i % 5, "x"}})}));
  });
  for (int i = 0; i < 5; ++i) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      const bool right =
          KindOf(writer->Put({MakeRows({{1, "c"}})})) == ErrorKind::kClosed &&
          KindOf(writer->Flush().status()) == ErrorKind::kClosed &&
          KindOf(writer->View().status()) == ErrorKind::kClosed &&
          KindOf(writer->health()) == ErrorKind::kClosed && writer->is_closed() &&
          writer->Close().ok() && writer->stats().put_count == 0;
      writer->Abort();
      writer.reset();
      ::_exit(right ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
  stop = true;
  busy.join();
  ASSERT_OK(writer->Close());
}

TEST_F(ShardWriterTest, TheRegistrySharesAndReplacesWriters) {
  WriterRegistry& registry = WriterRegistry::Instance();
  EXPECT_EQ(registry.Find(*base_, TestShard()), nullptr);
  ASSERT_OK_AND_ASSIGN(auto writer, registry.Get(base_, TestShard(), config_));
  ASSERT_OK_AND_ASSIGN(auto same, registry.Get(base_, TestShard(), config_));
  EXPECT_EQ(writer, same);
  EXPECT_EQ(registry.Find(*base_, TestShard()), writer);
  EXPECT_EQ(registry.FindAll(*base_).size(), 1u);
  ASSERT_OK_AND_ASSIGN(auto other, registry.Get(base_, ShardId::Derive("x"), config_));
  EXPECT_NE(writer, other);
  EXPECT_EQ(registry.FindAll(*base_).size(), 2u);
  ASSERT_OK(writer->Put({MakeRows({{1, "a"}})}));

  auto thief = Open();
  EXPECT_KIND(ErrorKind::kFenced, writer->Put({MakeRows({{2, "b"}})}));
  EXPECT_EQ(registry.Find(*base_, TestShard()), writer);
  ASSERT_OK_AND_ASSIGN(auto next, registry.Get(base_, TestShard(), config_));
  EXPECT_NE(next, writer);
  EXPECT_CONTENTS(next, {{1, "a"}});
  EXPECT_KIND(ErrorKind::kFenced, thief->Put({MakeRows({{2, "b"}})}));
  ASSERT_OK(registry.CloseAll(*base_));
  EXPECT_TRUE(next->is_closed());
  EXPECT_TRUE(other->is_closed());
  EXPECT_TRUE(registry.FindAll(*base_).empty());
  ASSERT_OK_AND_ASSIGN(next, registry.Get(base_, TestShard(), config_));
  EXPECT_CONTENTS(next, {{1, "a"}});
  registry.AbortAll(base_->env().store->root());
  EXPECT_TRUE(next->is_closed());
}

TEST_F(ShardWriterTest, RowsFollowTheSchema) {
  WriterRegistry& registry = WriterRegistry::Instance();
  ASSERT_OK_AND_ASSIGN(auto writer, registry.Get(base_, TestShard(), config_));
  ASSERT_OK(writer->Put({MakeRows({{1, "a"}})}));
  // A newer version of the same schema changes nothing.
  ASSERT_OK_AND_ASSIGN(const auto same, base_->Restore());
  ASSERT_OK_AND_ASSIGN(auto still, registry.Get(same, TestShard(), config_));
  EXPECT_EQ(still, writer);

  const table::ColumnAlteration rename = {"text", "words", {}, nullptr};
  ASSERT_OK_AND_ASSIGN(auto changed, exec::AlterColumns(same, std::span(&rename, 1)));
  ASSERT_OK_AND_ASSIGN(
      changed,
      exec::AddNullColumns(changed, *arrow::schema({arrow::field("n", arrow::int32())})));
  ASSERT_OK_AND_ASSIGN(auto next, registry.Get(changed, TestShard(), config_));
  EXPECT_NE(next, writer);
  EXPECT_TRUE(writer->is_closed());  // its rows are a generation of the old schema
  EXPECT_EQ(Manifest().sstables_size(), 1);
  EXPECT_EQ(next->schema().logical()->field_names(),
            (std::vector<std::string>{"id", "words", "n"}));
  EXPECT_KIND(ErrorKind::kSchemaMismatch, next->Put({MakeRows({{2, "b"}})}));
  EXPECT_EQ(registry.Find(*base_, TestShard()), next);
  ASSERT_OK(registry.CloseAll(*base_));

  // Rows that are only in the log get the new columns, by the ids of their fields.
  auto old = Open();
  ASSERT_OK(old->Put({MakeRows({{5, "e"}})}));
  old.reset();
  ASSERT_OK_AND_ASSIGN(next, ShardWriter::Open(changed, TestShard(), config_));
  ASSERT_OK_AND_ASSIGN(const WriterView view, next->View());
  ASSERT_EQ(view.memtables.size(), 1u);
  const auto row = view.memtables[0].Row(0);
  EXPECT_EQ(row->schema()->field_names(),
            (std::vector<std::string>{"id", "words", "n", kTombstone}));
  EXPECT_EQ(static_cast<const arrow::StringArray&>(*row->column(1)).GetString(0), "e");
  EXPECT_TRUE(row->column(2)->IsNull(0));
}

}  // namespace
}  // namespace glaive::memwal
