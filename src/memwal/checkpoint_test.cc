// Flush, compaction and checkpoints of tables that are written to, and their stats.
#include <algorithm>
#include <atomic>
#include <random>
#include <thread>

#include "io/faulting_store.h"
#include "memwal/converge.h"
#include "memwal/lsm_read.h"
#include "memwal/lsm_snapshot.h"
#include "memwal/upkeep.h"
#include "memwal/writer_test_util.h"

namespace glaive::memwal {
namespace {

table::TableEnv EnvOf(std::shared_ptr<io::ObjectStore> store) {
  RuntimeOptions options;
  options.num_threads = 2;
  return {Runtime::Make(options).ValueOrDie(), std::move(store)};
}

Result<Contents> Read(const std::shared_ptr<arrow::Table>& table) {
  Contents rows;
  arrow::TableBatchReader reader(*table);
  GLAIVE_ASSIGN_OR_RETURN(const auto batches, reader.ToRecordBatches());
  for (const auto& batch : batches) {
    const auto& id = static_cast<const arrow::Int64Array&>(*batch->GetColumnByName("id"));
    const auto& text =
        static_cast<const arrow::StringArray&>(*batch->GetColumnByName("text"));
    for (int64_t i = 0; i < batch->num_rows(); ++i) {
      if (!rows.emplace(id.Value(i), text.GetString(i)).second) {
        return Corruption("key ", id.Value(i), " is there twice");
      }
    }
  }
  return rows;
}

Result<Contents> ReadPlain(const table::TableEnv& env) {
  GLAIVE_ASSIGN_OR_RETURN(auto base, table::Dataset::Open(env));
  GLAIVE_ASSIGN_OR_RETURN(auto table, exec::ScanToTable(base, exec::ScanOptions()));
  return Read(table);
}

Result<Contents> ReadFresh(const table::Dataset::Ptr& base) {
  GLAIVE_ASSIGN_OR_RETURN(const auto latest, base->Latest());
  GLAIVE_ASSIGN_OR_RETURN(auto snapshot, LsmSnapshot::Open(latest, Freshness::kFresh));
  GLAIVE_ASSIGN_OR_RETURN(auto table, LsmScanToTable(snapshot, LsmScanOptions()));
  return Read(table);
}

class Checkpoint : public testing::Test {
 protected:
  void SetUp() override {
    env_ = EnvOf(io::MakeMemoryStore());
    ASSERT_OK_AND_ASSIGN(base_, MakeLsmTable(env_));
  }
  void TearDown() override { ASSERT_OK(WriterRegistry::Instance().CloseAll(*base_)); }
  Result<std::shared_ptr<ShardWriter>> Writer() {
    return WriterRegistry::Instance().Get(base_, TestShard(), WriterConfig());
  }

  table::TableEnv env_;
  table::Dataset::Ptr base_;
};

TEST_F(Checkpoint, ConvergesAndThenCostsNoPass) {
  ASSERT_OK_AND_ASSIGN(const auto writer, Writer());
  ASSERT_OK(writer->Put({MakeRows({{1, "a"}, {2, "b"}, {1, "aa"}})}));
  std::vector<int64_t> left;
  CheckpointOptions options;
  options.progress = [&](int64_t remaining, int64_t total) {
    EXPECT_EQ(total, 1);
    left.push_back(remaining);
  };
  ASSERT_OK_AND_ASSIGN(auto outcome, CheckpointLsm(base_, options));
  EXPECT_TRUE(outcome.converged);
  EXPECT_EQ(outcome.passes, 1);
  EXPECT_EQ(outcome.generations_consumed, 1);
  EXPECT_EQ(outcome.generations_remaining, 0);
  EXPECT_EQ(left, std::vector<int64_t>{0});
  ASSERT_OK_AND_ASSIGN(Contents rows, ReadPlain(env_));
  EXPECT_EQ(rows, (Contents{{1, "aa"}, {2, "b"}}));
  const int64_t version = outcome.base->version();
  const int64_t flushes = writer->stats().memtable_flush_count;
  // Nothing is left to do.
  for (int i = 0; i < 2; ++i) {
    ASSERT_OK_AND_ASSIGN(outcome, CheckpointLsm(base_));
    EXPECT_TRUE(outcome.converged);
    EXPECT_EQ(outcome.passes, 0);
    EXPECT_EQ(outcome.generations_consumed, 0);
    EXPECT_EQ(outcome.base->version(), version);
    EXPECT_EQ(writer->stats().memtable_flush_count, flushes);
  }
  // The writer goes on.
  ASSERT_OK(writer->Delete({MakeDeletes({1})}));
  ASSERT_OK(writer->Put({MakeRows({{3, "c"}})}));
  ASSERT_OK_AND_ASSIGN(outcome, CheckpointLsm(base_));
  EXPECT_EQ(outcome.passes, 1);
  ASSERT_OK_AND_ASSIGN(rows, ReadPlain(env_));
  EXPECT_EQ(rows, (Contents{{2, "b"}, {3, "c"}}));
  ASSERT_OK_AND_ASSIGN(rows, ReadFresh(base_));
  EXPECT_EQ(rows, (Contents{{2, "b"}, {3, "c"}}));
}

TEST_F(Checkpoint, SeveralPassesAndATimeout) {
  ASSERT_OK_AND_ASSIGN(const auto writer, Writer());
  for (int64_t i = 0; i < 5; ++i) {
    ASSERT_OK(writer->Put({MakeRows({{i, "x"}})}));
    ASSERT_OK_AND_ASSIGN(const bool flushed, writer->Flush());
    EXPECT_TRUE(flushed);
  }
  CheckpointOptions options;
  options.compact.max_generations = 2;
  options.timeout = std::chrono::milliseconds(0);
  ASSERT_OK_AND_ASSIGN(auto outcome, CheckpointLsm(base_, options));
  EXPECT_FALSE(outcome.converged);
  EXPECT_EQ(outcome.passes, 0);
  EXPECT_EQ(outcome.generations_remaining, 5);
  options.timeout.reset();
  ASSERT_OK_AND_ASSIGN(outcome, CheckpointLsm(base_, options));
  EXPECT_TRUE(outcome.converged);
  EXPECT_EQ(outcome.passes, 3);
  EXPECT_EQ(outcome.generations_consumed, 5);
}

TEST_F(Checkpoint, PutsGoOnMeanwhile) {
  ASSERT_OK_AND_ASSIGN(const auto writer, Writer());
  std::atomic<bool> done{false};
  Contents model;
  int64_t puts = 0;
  std::thread putter([&] {
    for (int64_t i = 0; !done || i < 50; ++i) {
      const std::string text = "v" + std::to_string(i);
      ASSERT_OK(writer->Put({MakeRows({{i % 17, text}})}));
      model[i % 17] = text;
      if (i % 5 == 4) {
        ASSERT_OK(writer->Delete({MakeDeletes({i % 17})}));
        model.erase(i % 17);
      }
      ++puts;
    }
  });
  for (int i = 0; i < 25; ++i) {
    auto outcome = CheckpointLsm(base_);
    EXPECT_TRUE(outcome.ok()) << outcome.status().ToString();
    if (outcome.ok()) {
      EXPECT_TRUE(outcome->converged);
      EXPECT_LE(outcome->passes, 1);
    }
    auto collected = CollectShard(*base_, TestShard(), {std::chrono::milliseconds(0)});
    EXPECT_TRUE(collected.ok()) << collected.status().ToString();
  }
  done = true;
  putter.join();
  ASSERT_OK_AND_ASSIGN(Contents rows, ReadFresh(base_));
  EXPECT_EQ(rows, model) << puts << " puts";
  ASSERT_OK(CheckpointLsm(base_).status());
  ASSERT_OK_AND_ASSIGN(rows, ReadPlain(env_));
  EXPECT_EQ(rows, model);
}

TEST_F(Checkpoint, RowsOfADeadWriter) {
  {
    ASSERT_OK_AND_ASSIGN(auto writer,
                         ShardWriter::Open(base_, TestShard(), WriterConfig()));
    ASSERT_OK(writer->Put({MakeRows({{1, "a"}})}));
    writer->Abort();
  }
  ASSERT_OK_AND_ASSIGN(auto stats, GetLsmStats(base_, true));
  ASSERT_TRUE(stats && stats->size() == 1);
  EXPECT_EQ((*stats)[0].log_entries, 1);
  EXPECT_GT((*stats)[0].log_bytes, 0);
  EXPECT_FALSE((*stats)[0].memtables);
  ASSERT_OK_AND_ASSIGN(int64_t made, FlushLsm(base_));
  EXPECT_EQ(made, 1);
  ASSERT_OK_AND_ASSIGN(stats, GetLsmStats(base_, true));
  EXPECT_EQ((*stats)[0].generations.size(), 1u);
  EXPECT_EQ((*stats)[0].generations[0].rows, 1);
  const uint64_t epoch = (*stats)[0].writer_epoch;
  // Nothing is claimed when nothing is there.
  ASSERT_OK_AND_ASSIGN(made, FlushLsm(base_));
  EXPECT_EQ(made, 0);
  ASSERT_OK_AND_ASSIGN(stats, GetLsmStats(base_, false));
  EXPECT_EQ((*stats)[0].writer_epoch, epoch);
  EXPECT_FALSE((*stats)[0].generations[0].rows);
  ASSERT_OK_AND_ASSIGN(const auto outcome, CompactLsm(base_));
  EXPECT_EQ(outcome.generations_consumed, 1);
  ASSERT_OK_AND_ASSIGN(const Contents rows, ReadPlain(env_));
  EXPECT_EQ(rows, (Contents{{1, "a"}}));
}

TEST_F(Checkpoint, StatsOfALiveWriter) {
  ASSERT_OK_AND_ASSIGN(const auto writer, Writer());
  ASSERT_OK(writer->Put({MakeRows({{1, "a"}, {2, "b"}})}));
  ASSERT_OK(writer->Put({MakeRows({{3, "c"}})}));
  ASSERT_OK_AND_ASSIGN(auto stats, GetLsmStats(base_, false));
  ASSERT_TRUE(stats && stats->size() == 1);
  const BucketStats& bucket = (*stats)[0];
  EXPECT_EQ(bucket.shard, TestShard());
  EXPECT_EQ(bucket.current_generation, 1u);
  EXPECT_EQ(bucket.durability, "fsync");
  ASSERT_TRUE(bucket.memtables);
  ASSERT_EQ(bucket.memtables->size(), 1u);
  EXPECT_EQ((*bucket.memtables)[0].generation, 1u);
  EXPECT_EQ((*bucket.memtables)[0].rows, 3);
  EXPECT_EQ((*bucket.memtables)[0].batches, 2);
  EXPECT_GT((*bucket.memtables)[0].bytes, 0);
  EXPECT_FALSE(bucket.compacting);
}

TEST(CheckpointErrors, NoWritePath) {
  const auto env = EnvOf(io::MakeMemoryStore());
  ASSERT_OK_AND_ASSIGN(auto base, table::Dataset::WriteEmpty(env, *WriterSchema(), {}));
  EXPECT_KIND(ErrorKind::kInvalidInput, FlushLsm(base).status());
  EXPECT_KIND(ErrorKind::kInvalidInput, CompactLsm(base).status());
  EXPECT_KIND(ErrorKind::kInvalidInput, CheckpointLsm(base).status());
  EXPECT_KIND(ErrorKind::kInvalidInput, CollectShard(*base, TestShard()).status());
}

}  // namespace
}  // namespace glaive::memwal
