// What a log says, and what a new writer makes of it.
#include "memwal/writer_test_util.h"

namespace glaive::memwal {
namespace {

class ReplayTest : public testing::Test {
 protected:
  void SetUp() override {
    store_ = io::MakeMemoryStore();
    ASSERT_OK_AND_ASSIGN(base_, MakeLsmTable(MakeEnv(store_)));
    manifests_ = std::make_shared<ShardManifests>(store_, TestShard());
    ASSERT_OK_AND_ASSIGN(const auto manifest, manifests_->Claim(1));
    epoch_ = manifest.writer_epoch();
  }

  // An entry of another writer: storage rows with the tombstone last.
  void Append(const Rows& rows, std::optional<uint64_t> generation,
              const std::vector<int64_t>& deleted = {}) {
    ASSERT_OK_AND_ASSIGN(const auto schema, FreshSchema::Make(*base_));
    BatchVector batches;
    if (!rows.empty()) {
      ASSERT_OK_AND_ASSIGN(batches.emplace_back(), schema->Shape(*MakeRows(rows), 0));
    }
    if (!deleted.empty()) {
      ASSERT_OK_AND_ASSIGN(batches.emplace_back(),
                           schema->ShapeTombstones(*MakeDeletes(deleted)));
    }
    for (auto& batch : batches) {
      batch =
          arrow::RecordBatch::Make(schema->wal(), batch->num_rows(), batch->columns());
    }
    ASSERT_OK_AND_ASSIGN(const auto entry, EncodeWalEntry({epoch_, generation}, batches));
    // The first epoch stands for a foreign writer, which leaves no trailer.
    PutEntry(epoch_ == 1 ? entry : SealWalEntry(entry, Durability::kFsync));
  }
  void PutEntry(const EncodedWalEntry& entry) {
    std::vector<std::span<const uint8_t>> parts;
    for (const auto& part : entry.parts) {
      parts.emplace_back(part->data(), static_cast<size_t>(part->size()));
    }
    ASSERT_OK(store_->PutPartsIfAbsent(WalEntryPath(TestShard(), next_++), parts));
  }

  Result<std::shared_ptr<ShardWriter>> Open(const WriterConfig& config = {}) {
    return ShardWriter::Open(base_, TestShard(), config);
  }
  ShardManifest Manifest() { return **manifests_->ReadLatest(); }

  std::shared_ptr<io::ObjectStore> store_;
  table::Dataset::Ptr base_;
  std::shared_ptr<ShardManifests> manifests_;
  uint64_t epoch_ = 0;
  uint64_t next_ = 1;
};

TEST_F(ReplayTest, NumberedEntriesAreTheirMemtables) {
  Append({{1, "a"}}, 1);
  Append({{2, "b"}}, 1, {1});
  Append({{3, "c"}}, 2);
  Append({{3, "d"}}, 3);
  ASSERT_OK_AND_ASSIGN(const auto writer, Open());
  // The full ones are generations, the last one is where rows go on.
  const ShardManifest manifest = Manifest();
  ASSERT_EQ(manifest.sstables_size(), 2);
  EXPECT_EQ(manifest.sstables(0).physical_rows(), 3u);
  EXPECT_EQ(manifest.sstables(1).physical_rows(), 1u);
  EXPECT_EQ(manifest.current_generation(), 3u);
  EXPECT_EQ(manifest.replay_after_wal_entry_position(), 3u);
  EXPECT_EQ(manifest.wal_entry_position_last_seen(), 3u);  // as of the last flush
  EXPECT_EQ(writer->memtable_stats().generation, 3u);
  EXPECT_EQ(writer->memtable_stats().row_count, 1);
  EXPECT_EQ(writer->stats().memtable_flush_count, 2);
  ASSERT_OK_AND_ASSIGN(const Contents contents, ReadWriter(*writer));
  EXPECT_EQ(contents, (Contents{{2, "b"}, {3, "d"}}));
}

TEST_F(ReplayTest, AFarEndOfTheLogIsMadeKnown) {
  constexpr int kEntries = 1000;
  for (int e = 0; e < kEntries; ++e) Append({{e, "a"}}, 1);
  ASSERT_OK_AND_ASSIGN(auto writer, Open());
  EXPECT_EQ(Manifest().wal_entry_position_last_seen(), kEntries + 1u);  // a sentinel
  const uint64_t version = Manifest().version();
  writer.reset();
  ASSERT_OK_AND_ASSIGN(writer, Open());
  EXPECT_EQ(Manifest().version(), version + 1);  // the claim only
  EXPECT_EQ(writer->memtable_stats().row_count, kEntries);
}

TEST_F(ReplayTest, EntriesWithoutNumbersFillMemtables) {
  for (int64_t i = 0; i < 10; ++i) Append({{i, "x"}, {i + 1, "y"}}, std::nullopt);
  ASSERT_OK_AND_ASSIGN(const auto writer, Open({.max_memtable_rows = 6}));
  const ShardManifest manifest = Manifest();
  EXPECT_EQ(manifest.sstables_size(), 3);
  EXPECT_EQ(manifest.replay_after_wal_entry_position(), 9u);
  EXPECT_EQ(writer->memtable_stats().row_count, 2);
  EXPECT_EQ(writer->memtable_stats().generation, 4u);
  ASSERT_OK_AND_ASSIGN(const Contents contents, ReadWriter(*writer));
  EXPECT_EQ(contents.size(), 11u);
  EXPECT_EQ(contents.at(9), "x");
  EXPECT_EQ(contents.at(10), "y");
}

TEST_F(ReplayTest, AGenerationWaitsForTheEntriesThatBelongToIt) {
  // The writer of the first two had no numbers, its successor replayed them into
  // generation 1. Were that published without the third, others would skip it.
  Append({{1, "a"}}, std::nullopt);
  Append({{2, "b"}}, std::nullopt);
  Append({{3, "c"}}, 1);
  Append({{4, "d"}}, std::nullopt);
  ASSERT_OK_AND_ASSIGN(const auto writer, Open({.max_memtable_rows = 1}));
  const ShardManifest manifest = Manifest();
  ASSERT_GE(manifest.sstables_size(), 1);
  EXPECT_EQ(manifest.sstables(0).physical_rows(), 3u);
  ASSERT_OK_AND_ASSIGN(const Contents contents, ReadWriter(*writer));
  EXPECT_EQ(contents, (Contents{{1, "a"}, {2, "b"}, {3, "c"}, {4, "d"}}));
}

TEST_F(ReplayTest, NumbersMayRunAheadButNotBack) {
  Append({{1, "a"}}, 4);
  Append({{2, "b"}}, 4);
  {
    ASSERT_OK_AND_ASSIGN(const auto writer, Open());
    EXPECT_EQ(writer->memtable_stats().row_count, 2);
    ASSERT_OK(writer->Put({MakeRows({{3, "c"}})}));
  }
  ++next_;  // the sentinel
  ++next_;
  epoch_ = 2;
  Append({{4, "d"}}, 3);
  const Status status = Open().status();
  EXPECT_KIND(ErrorKind::kCorruption, status);
  EXPECT_NE(status.message().find("WAL entry at position 5 has generation 3 below the "
                                  "generation 4 replayed before it"),
            std::string::npos)
      << status.ToString();
}

TEST_F(ReplayTest, EntriesOfANewerWriterFence) {
  epoch_ = 9;
  Append({{1, "a"}}, 1);
  EXPECT_KIND(ErrorKind::kFenced, Open().status());
}

TEST_F(ReplayTest, DamageInTheMiddleIsNamedAndATornEndIsDropped) {
  Append({{1, "a"}}, 1);
  Append({{2, "b"}}, 1);
  Append({{3, "c"}}, 1);
  const std::string last = WalEntryPath(TestShard(), 3);
  ASSERT_OK_AND_ASSIGN(const auto bytes, store_->Get(last));
  ASSERT_OK(store_->Put(last, {bytes->data(), static_cast<size_t>(bytes->size()) / 2}));
  for (int life = 0; life < 3; ++life) {
    ASSERT_OK_AND_ASSIGN(const auto writer, Open());
    ASSERT_OK_AND_ASSIGN(const Contents contents, ReadWriter(*writer));
    Contents expected = {{1, "a"}, {2, "b"}};
    if (life > 0) expected[10] = std::to_string(life - 1);
    EXPECT_EQ(contents, expected);
    ASSERT_OK(writer->Put({MakeRows({{10, std::to_string(life)}})}));
  }
  const std::string middle = WalEntryPath(TestShard(), 2);
  ASSERT_OK(store_->Put(middle, {bytes->data(), static_cast<size_t>(bytes->size()) / 2}));
  const Status status = Open().status();
  EXPECT_KIND(ErrorKind::kCorruption, status);
  EXPECT_NE(status.message().find(middle), std::string::npos) << status.ToString();
}

TEST_F(ReplayTest, ManyRowsAreFast) {
  constexpr int kEntries = 99, kRows = 1000;
  for (int e = 0; e < kEntries; ++e) {
    Rows rows;
    for (int i = 0; i < kRows; ++i) {
      rows.emplace_back(e * kRows + i, "some text that is not short at all");
    }
    Append(rows, 1);
  }
  const auto start = std::chrono::steady_clock::now();
  ASSERT_OK_AND_ASSIGN(const auto writer, Open());
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  EXPECT_EQ(writer->memtable_stats().row_count, kEntries * kRows);
  EXPECT_EQ(writer->memtable_stats().frozen_count, 0);
  std::printf("replay of %d rows: %.1f ms\n", kEntries * kRows, seconds * 1e3);
}

}  // namespace
}  // namespace glaive::memwal
