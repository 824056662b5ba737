// What the index section and the file of a vector index say of its metric, and that this
// is read once per version.
#include "exec/vector_index.h"

#include <memory>
#include <string>

#include "exec/test_table.h"
#include "file/file_writer.h"
#include "file/schema.h"
#include "format/table.pb.h"
#include "format/transaction.pb.h"
#include "format/vector_index.pb.h"
#include "io/counting_store.h"
#include "table/names.h"

namespace glaive::exec {
namespace {

using table::Dataset;

const std::string kUuid(16, 'u');

Result<Dataset::Ptr> MakeTable(const table::TableEnv& env) {
  const auto batch = ToBatch({ModelRow{}});
  GLAIVE_ASSIGN_OR_RETURN(auto reader, arrow::RecordBatchReader::Make({batch}));
  return Dataset::Write(env, *reader, {});
}

Result<Dataset::Ptr> AddIndex(const Dataset::Ptr& dataset, int32_t field,
                              const std::string& details) {
  lance::table::Transaction transaction;
  auto* entry = transaction.mutable_create_index()->add_new_indices();
  entry->set_name("vector_idx");
  entry->mutable_uuid()->set_uuid(kUuid);
  entry->add_fields(field);
  entry->mutable_index_details()->set_type_url("/lance.index.pb.VectorIndexDetails");
  entry->mutable_index_details()->set_value(details);
  return dataset->Commit(std::move(transaction));
}

std::string Details(lance::index::pb::VectorMetricType metric) {
  lance::index::pb::VectorIndexDetails details;
  details.set_metric_type(metric);
  return details.SerializeAsString();
}

// As writers did that left the details empty.
Status WriteIndexFile(const table::TableEnv& env, const std::string& says) {
  GLAIVE_ASSIGN_OR_RETURN(
      const auto schema,
      file::Schema::FromArrow(*arrow::schema({arrow::field("x", arrow::int8())})));
  GLAIVE_ASSIGN_OR_RETURN(
      auto writer,
      file::FileWriter::Make(
          *env.store, "_indices/" + table::FormatUuid(kUuid) + "/index.idx", schema));
  writer->AddSchemaMetadata("lance:index", says);
  return writer->Finish().status();
}

TEST(VectorIndex, MetricFromTheDetails) {
  const table::TableEnv env{MakeTestRuntime(), io::MakeMemoryStore()};
  ASSERT_OK_AND_ASSIGN(const auto plain, MakeTable(env));
  EXPECT_EQ(IndexMetric(*plain, 5).ValueOrDie(), std::nullopt);
  ASSERT_OK_AND_ASSIGN(const auto cosine,
                       AddIndex(plain, 5, Details(lance::index::pb::COSINE)));
  ASSERT_OK_AND_ASSIGN(const auto hamming,
                       AddIndex(cosine, 5, Details(lance::index::pb::HAMMING)));
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(IndexMetric(*plain, 5).ValueOrDie(), std::nullopt);
    EXPECT_EQ(IndexMetric(*cosine, 5).ValueOrDie(), Metric::kCosine);
    EXPECT_EQ(IndexMetric(*cosine, 0).ValueOrDie(), std::nullopt);
    EXPECT_EQ(IndexMetric(*hamming, 5).ValueOrDie(), Metric::kHamming);
  }
  ASSERT_OK_AND_ASSIGN(const auto damaged, AddIndex(hamming, 5, "\xff\xff"));
  EXPECT_ERROR_KIND(IndexMetric(*damaged, 5).status(), ErrorKind::kCorruption);
}

TEST(VectorIndex, MetricOfTheFileIsReadOnce) {
  const auto counters = std::make_shared<io::StoreCounters>();
  const table::TableEnv env{MakeTestRuntime(),
                            io::MakeCountingStore(io::MakeMemoryStore(), counters)};
  ASSERT_OK_AND_ASSIGN(auto dataset, MakeTable(env));
  ASSERT_OK_AND_ASSIGN(dataset, AddIndex(dataset, 5, ""));
  EXPECT_ERROR_KIND(IndexMetric(*dataset, 5).status(), ErrorKind::kNotFound);
  ASSERT_OK(WriteIndexFile(env, R"({"type":"IVF_PQ","distance_type":"dot"})"));
  const int64_t before = counters->total();
  EXPECT_EQ(IndexMetric(*dataset, 5).ValueOrDie(), Metric::kDot);
  const int64_t after = counters->total();
  EXPECT_GT(after, before);
  EXPECT_EQ(IndexMetric(*dataset, 5).ValueOrDie(), Metric::kDot);
  EXPECT_EQ(counters->total(), after);
}

}  // namespace
}  // namespace glaive::exec
