// The LSM write path through the public C++ API.
#include <memory>
#include <optional>
#include <vector>

#include <arrow/api.h>
#include <gtest/gtest.h>

#include "base/testing.h"
#include "db/table.h"
#include "glaive/glaive.h"

namespace glaive {
namespace {

std::shared_ptr<arrow::Schema> Columns() {
  return arrow::schema({arrow::field("id", arrow::int64(), false),
                        arrow::field("n", arrow::int32()),
                        arrow::field("v", arrow::fixed_size_list(arrow::float32(), 2))});
}

std::shared_ptr<arrow::RecordBatchReader> Rows(const std::vector<int64_t>& ids, int n) {
  arrow::Int64Builder id;
  arrow::Int32Builder number;
  auto values = std::make_shared<arrow::FloatBuilder>();
  arrow::FixedSizeListBuilder vectors(arrow::default_memory_pool(), values, 2);
  for (const int64_t value : ids) {
    EXPECT_OK(id.Append(value));
    EXPECT_OK(number.Append(n));
    EXPECT_OK(vectors.Append());
    EXPECT_OK(values->Append(static_cast<float>(value)));
    EXPECT_OK(values->Append(static_cast<float>(n)));
  }
  const auto batch =
      arrow::RecordBatch::Make(Columns(), static_cast<int64_t>(ids.size()),
                               {*id.Finish(), *number.Finish(), *vectors.Finish()});
  return *arrow::RecordBatchReader::Make({batch}, Columns());
}

class PublicLsmTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(connection_, Connect("memory://"));
    ASSERT_OK_AND_ASSIGN(table_, connection_->CreateTable("t", Columns()));
  }
  std::optional<Connection> connection_;
  Table table_{nullptr};
};

MergeRequest Upsert() {
  MergeRequest request;
  request.on = {"id"};
  request.matched = WhenMatched::kUpdate;
  request.insert_not_matched = true;
  return request;
}

TEST_F(PublicLsmTest, RowsAreSeenAtOnceAndConverge) {
  ASSERT_OK_AND_ASSIGN(auto stats, table_.GetLsmStats());
  EXPECT_FALSE(stats.has_value());
  EXPECT_EQ(KindOf(table_.FlushLsm().status()), ErrorKind::kInvalidInput);

  ASSERT_OK(table_.SetUnenforcedPrimaryKey({"id"}));
  LsmWriteSpec spec;
  spec.sharding = Sharding::kBucket;
  spec.column = "id";
  spec.num_buckets = 2;
  spec.writer_config_defaults["durability"] = "os";
  ASSERT_OK(table_.SetLsmWriteSpec(spec));
  ASSERT_OK_AND_ASSIGN(const auto read, table_.GetLsmWriteSpec());
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->num_buckets, 2);
  EXPECT_EQ(read->column, "id");

  ASSERT_OK_AND_ASSIGN(auto merged, table_.MergeInsert(Rows({1, 2, 3, 4}, 1), Upsert()));
  EXPECT_EQ(merged.num_inserted_rows, 4);
  ASSERT_OK_AND_ASSIGN(merged, table_.MergeInsert(Rows({3, 4, 5}, 2), Upsert()));
  EXPECT_EQ(merged.num_updated_rows, 2);
  EXPECT_EQ(merged.num_inserted_rows, 1);
  ASSERT_OK_AND_ASSIGN(const auto deleted, table_.Delete("id = 1"));
  EXPECT_EQ(deleted.num_deleted_rows, 1);
  ASSERT_OK_AND_ASSIGN(int64_t rows, table_.CountRows());
  EXPECT_EQ(rows, 4);
  ASSERT_OK_AND_ASSIGN(rows, table_.CountRows("n = 1"));
  EXPECT_EQ(rows, 1);  // not the old versions of 3 and 4
  ASSERT_OK_AND_ASSIGN(auto found, table_.Search({4, 2}).Limit(1).ToTable());
  ASSERT_EQ(found->num_rows(), 1);
  EXPECT_EQ(found->GetColumnByName("id")->chunk(0)->ToString(), "[\n  4\n]");
  ASSERT_OK_AND_ASSIGN(found, table_.Scan().UseLsm(false).ToTable());
  EXPECT_EQ(found->num_rows(), 0);

  ASSERT_OK_AND_ASSIGN(stats, table_.GetLsmStats());
  ASSERT_TRUE(stats.has_value());
  ASSERT_EQ(stats->size(), 2u);
  EXPECT_EQ((*stats)[0].durability, "os");
  ASSERT_OK_AND_ASSIGN(auto done, table_.CheckpointLsm());
  EXPECT_TRUE(done.converged);
  EXPECT_GE(done.generations_consumed, 2);
  ASSERT_OK_AND_ASSIGN(found, table_.Scan().UseLsm(false).ToTable());
  EXPECT_EQ(found->num_rows(), 4);
  ASSERT_OK_AND_ASSIGN(done, table_.CheckpointLsm());
  EXPECT_EQ(done.passes, 0);
  ASSERT_OK(table_.CloseLsmWriters());
  ASSERT_OK(table_.UnsetLsmWriteSpec());
}

}  // namespace
}  // namespace glaive
