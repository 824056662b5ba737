#include "memwal/memtable_memory.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "io/faulting_store.h"
#include "memwal/writer_test_util.h"

namespace glaive::memwal {
namespace {

constexpr int64_t kLimit = int64_t{4} << 20;

class MemtableMemoryTest : public testing::Test {
 protected:
  void SetUp() override {
    faults_ = std::make_shared<io::FaultInjector>();
    RuntimeOptions options;
    options.num_threads = 2;
    options.memory_budget_bytes = kLimit;
    options.cache_bytes = int64_t{1} << 20;
    runtime_ = Runtime::Make(options).ValueOrDie();
    ASSERT_OK_AND_ASSIGN(
        base_,
        MakeLsmTable({runtime_, io::MakeFaultingStore(io::MakeMemoryStore(), faults_)}));
    config_.wal_persist_retry_base_delay_ms = 0;
  }

  MemoryBudget& budget() { return runtime_->memory(); }

  std::shared_ptr<ShardWriter> Open(int shard) {
    auto writer =
        ShardWriter::Open(base_, ShardId::Derive("s" + std::to_string(shard)), config_);
    EXPECT_TRUE(writer.ok()) << writer.status().ToString();
    return *writer;
  }

  // Rows [first, first + rows) of about `bytes` bytes together.
  static BatchVector Batch(int64_t first, int64_t rows, int64_t bytes) {
    Rows out;
    for (int64_t i = 0; i < rows; ++i) {
      out.emplace_back(first + i,
                       std::string(static_cast<size_t>(bytes / rows - 20), 'x'));
    }
    return {MakeRows(out)};
  }

  static int64_t RowsOf(ShardWriter& writer) {
    const auto view = writer.View().ValueOrDie();
    int64_t rows = 0;
    for (const auto& memtable : view.memtables) rows += memtable.num_rows();
    for (const auto& sstable : view.manifest->sstables()) {
      const bool in_memory = std::any_of(
          view.memtables.begin(), view.memtables.end(),
          [&](const auto& m) { return m.generation() == sstable.generation(); });
      if (!in_memory) rows += static_cast<int64_t>(sstable.physical_rows());
    }
    return rows;
  }

  std::shared_ptr<io::FaultInjector> faults_;
  std::shared_ptr<Runtime> runtime_;
  table::Dataset::Ptr base_;
  WriterConfig config_;
};

TEST_F(MemtableMemoryTest, WhatMemtablesHoldIsCountedAndGivenBack) {
  const int64_t before = budget().used_bytes();
  auto writer = Open(1);
  ASSERT_OK(writer->Put(Batch(0, 100, 300'000)));
  const int64_t held = budget().used_bytes() - before;
  EXPECT_GE(held, 300'000);
  EXPECT_LT(held, 700'000);  // with the index of the keys and the bloom filter
  // The very same number that the writer reports.
  const MemtableStats stats = writer->memtable_stats();
  EXPECT_LE(stats.estimated_size_bytes, held);
  ASSERT_OK_AND_ASSIGN(const bool any, writer->Flush());
  EXPECT_TRUE(any);
  EXPECT_LT(budget().used_bytes() - before, 100'000);

  // A writer that replays counts as well, and what is left goes with the writer.
  ASSERT_OK(writer->Put(Batch(100, 100, 300'000)));
  writer.reset();
  EXPECT_EQ(budget().used_bytes(), before);
  writer = Open(1);
  EXPECT_GE(budget().used_bytes() - before, 300'000);
  EXPECT_EQ(RowsOf(*writer), 200);
  ASSERT_OK(writer->Close());
  writer.reset();
  EXPECT_EQ(budget().used_bytes(), before);
}

TEST_F(MemtableMemoryTest, ManyShardsStayWithinTheBudgetTogether) {
  // No shard comes near a limit of its own; together they would hold 12 MiB.
  constexpr int kShards = 6;
  constexpr int kPuts = 40;
  constexpr int64_t kPutBytes = 50'000;
  std::vector<std::shared_ptr<ShardWriter>> writers;
  for (int s = 0; s < kShards; ++s) writers.push_back(Open(s));
  std::atomic<bool> done{false};
  std::atomic<int64_t> most{0};
  std::thread watcher([&] {
    while (!done) {
      most = std::max(most.load(), budget().used_bytes());
      std::this_thread::yield();
    }
  });
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      for (int p = 0; p < kPuts; ++p) {
        for (int s = t; s < kShards; s += 3) {
          ASSERT_OK(writers[static_cast<size_t>(s)]->Put(Batch(p * 10, 10, kPutBytes)));
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
  done = true;
  watcher.join();
  // Half of the budget is the memtables'; an index grows in steps beyond what was asked.
  EXPECT_LE(most, kLimit / 2 + 3 * kPutBytes + kShards * 100'000);
  EXPECT_GT(most, kLimit / 4);
  int64_t flushes = 0;
  for (const auto& writer : writers) {
    EXPECT_EQ(RowsOf(*writer), kPuts * 10);
    flushes += writer->stats().memtable_flush_count;
  }
  EXPECT_GE(flushes, 3);
}

TEST_F(MemtableMemoryTest, AWriterWithoutRowsMakesOthersFlush) {
  auto full = Open(1);
  auto empty = Open(2);
  ASSERT_OK(full->Put(Batch(0, 10, kLimit / 2 - 300'000)));
  EXPECT_EQ(full->stats().memtable_flush_count, 0);
  ASSERT_OK(empty->Put(Batch(0, 10, 1'000'000)));
  EXPECT_EQ(full->stats().memtable_flush_count, 1);
  EXPECT_EQ(RowsOf(*full), 10);
  EXPECT_EQ(RowsOf(*empty), 10);
}

TEST_F(MemtableMemoryTest, PutsGiveUpWhenNobodyGivesBack) {
  auto writer = Open(1);
  // Somebody else has it all.
  const int64_t all = kLimit - budget().used_bytes();
  ASSERT_OK(budget().Reserve(all - 10'000));
  Status refused = writer->Put(Batch(0, 10, 100'000));
  EXPECT_KIND(ErrorKind::kResourceExhausted, refused);
  EXPECT_NE(refused.message().find("memory budget"), std::string::npos)
      << refused.ToString();
  EXPECT_EQ(RowsOf(*writer), 0);
  budget().Release(all - 10'000);
  ASSERT_OK(writer->Put(Batch(0, 10, 100'000)));
  EXPECT_EQ(RowsOf(*writer), 10);

  // Memtables that cannot be flushed: their rows stay, new ones are refused.
  ASSERT_OK(writer->Put(Batch(10, 10, 1'700'000)));
  io::FaultPlan plan;
  plan.fail_at = 0;
  plan.crash = true;
  faults_->Arm(plan);
  refused = writer->Put(Batch(20, 10, 1'000'000));
  EXPECT_KIND(ErrorKind::kResourceExhausted, refused);
  faults_->Disarm();
  // The next attempt to flush may be seconds away.
  Status stored = refused;
  for (int i = 0; i < 20 && KindOf(stored) == ErrorKind::kResourceExhausted; ++i) {
    stored = writer->Put(Batch(20, 10, 1'000'000));
  }
  ASSERT_OK(stored);
  EXPECT_EQ(RowsOf(*writer), 30);
}

}  // namespace
}  // namespace glaive::memwal
