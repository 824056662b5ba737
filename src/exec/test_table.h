// A random table in memory and the same rows as plain C++ values, for the tests of this
// folder.
#pragma once

#include <chrono>
#include <iostream>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <arrow/array.h>
#include <arrow/builder.h>
#include <arrow/record_batch.h>
#include <arrow/scalar.h>
#include <arrow/table.h>
#include <arrow/type.h>

#include "base/testing.h"
#include "io/object_store.h"
#include "runtime/runtime.h"
#include "table/dataset.h"

namespace glaive::exec {

constexpr int kDim = 7;

struct ModelRow {
  int64_t id = 0;
  std::optional<int32_t> bucket;
  std::string text;
  std::optional<std::vector<float>> vector;
  // Where the row lies.
  int64_t fragment = 0;
  int64_t offset = 0;  // physical
  uint64_t stable_id = 0;
};

struct TestTable {
  table::TableEnv env;
  table::Dataset::Ptr dataset;
  std::vector<ModelRow> rows;  // live rows in scan order
  bool stable_ids = false;

  uint64_t RowId(const ModelRow& row) const {
    return stable_ids ? row.stable_id : Address(row);
  }
  static uint64_t Address(const ModelRow& row) {
    return (static_cast<uint64_t>(row.fragment) << 32) |
           static_cast<uint64_t>(row.offset);
  }
};

inline std::shared_ptr<Runtime> MakeTestRuntime(int threads = 3) {
  RuntimeOptions options;
  options.num_threads = threads;
  options.memory_budget_bytes = int64_t{1} << 30;
  options.cache_bytes = int64_t{1} << 28;
  return Runtime::Make(options).ValueOrDie();
}

inline std::shared_ptr<arrow::Schema> TestSchema() {
  return arrow::schema(
      {arrow::field("id", arrow::int64()), arrow::field("bucket", arrow::int32()),
       arrow::field("text", arrow::utf8()),
       arrow::field("st", arrow::struct_({arrow::field("twice", arrow::int64())})),
       arrow::field("vector", arrow::fixed_size_list(arrow::float32(), kDim))});
}

inline std::shared_ptr<arrow::RecordBatch> ToBatch(const std::vector<ModelRow>& rows) {
  arrow::Int64Builder id;
  arrow::Int32Builder bucket;
  arrow::StringBuilder text;
  auto twice = std::make_shared<arrow::Int64Builder>();
  arrow::StructBuilder st(TestSchema()->field(3)->type(), arrow::default_memory_pool(),
                          {twice});
  auto values = std::make_shared<arrow::FloatBuilder>();
  arrow::FixedSizeListBuilder vector(arrow::default_memory_pool(), values,
                                     TestSchema()->field(4)->type());
  for (const ModelRow& row : rows) {
    EXPECT_OK(id.Append(row.id));
    EXPECT_OK(row.bucket ? bucket.Append(*row.bucket) : bucket.AppendNull());
    EXPECT_OK(text.Append(row.text));
    EXPECT_OK(st.Append());
    EXPECT_OK(twice->Append(row.id * 2));
    if (row.vector) {
      EXPECT_OK(vector.Append());
      EXPECT_OK(values->AppendValues(*row.vector));
    } else {
      EXPECT_OK(vector.AppendNull());
    }
  }
  return arrow::RecordBatch::Make(
      TestSchema(), static_cast<int64_t>(rows.size()),
      {id.Finish().ValueOrDie(), bucket.Finish().ValueOrDie(), text.Finish().ValueOrDie(),
       st.Finish().ValueOrDie(), vector.Finish().ValueOrDie()});
}

// Appends of the given sizes, each cut into fragments of `per_file` rows; then some rows
// deleted.
inline TestTable MakeTestTable(uint64_t seed, const std::vector<int>& appends,
                               int per_file, double delete_share, bool stable_ids = false,
                               std::shared_ptr<Runtime> runtime = nullptr,
                               std::shared_ptr<io::ObjectStore> store = nullptr) {
  std::mt19937_64 random(seed);
  const auto below = [&](int n) {
    return static_cast<int>(random() % static_cast<uint64_t>(n));
  };
  TestTable result;
  result.stable_ids = stable_ids;
  result.env.runtime = runtime != nullptr ? runtime : MakeTestRuntime();
  result.env.store = store != nullptr ? store : io::MakeMemoryStore();
  int64_t next_id = 0;
  int64_t next_fragment = 0;
  std::vector<ModelRow> all;
  for (size_t a = 0; a < appends.size(); ++a) {
    std::vector<ModelRow> rows(static_cast<size_t>(appends[a]));
    for (size_t i = 0; i < rows.size(); ++i) {
      ModelRow& row = rows[i];
      row.id = next_id++;
      row.stable_id = static_cast<uint64_t>(row.id);
      if (below(10) != 0) row.bucket = below(50);
      row.text = "row " + std::to_string(below(1000));
      if (below(8) != 0) {
        row.vector.emplace();
        // Few different values, so that equal distances are common.
        for (int d = 0; d < kDim; ++d)
          row.vector->push_back(static_cast<float>(below(3)) - 1);
      }
      row.fragment = next_fragment + static_cast<int64_t>(i) / per_file;
      row.offset = static_cast<int64_t>(i) % per_file;
    }
    next_fragment += (appends[a] + per_file - 1) / per_file;
    table::WriteOptions options;
    options.mode = a == 0 ? table::WriteMode::kCreate : table::WriteMode::kAppend;
    options.max_rows_per_file = per_file;
    options.stable_row_ids = stable_ids;
    auto reader =
        arrow::RecordBatchReader::Make({ToBatch(rows)}, TestSchema()).ValueOrDie();
    auto written = table::Dataset::Write(result.env, *reader, options);
    EXPECT_OK(written.status());
    result.dataset = *written;
    all.insert(all.end(), rows.begin(), rows.end());
  }
  table::DeletedRows deleted;
  for (const ModelRow& row : all) {
    if (static_cast<double>(below(1000)) < delete_share * 1000) {
      deleted[row.fragment].push_back(static_cast<uint32_t>(row.offset));
    } else {
      result.rows.push_back(row);
    }
  }
  if (!deleted.empty()) {
    auto committed = result.dataset->CommitDelete(deleted, "test");
    EXPECT_OK(committed.status());
    result.dataset = *committed;
  }
  return result;
}

inline uint64_t FreshSeed() {
  const auto seed =
      static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  std::cout << "seed " << seed << "\n";
  return seed;
}

using ColumnList = std::vector<std::pair<std::string, std::string>>;

// The value of a primitive column; T() when it is null.
template <typename ArrayType>
auto ValueAt(const arrow::Table& table, const std::string& column, int64_t row) {
  for (const auto& chunk : table.GetColumnByName(column)->chunks()) {
    if (row < chunk->length()) return static_cast<const ArrayType&>(*chunk).Value(row);
    row -= chunk->length();
  }
  ADD_FAILURE() << "row out of range";
  return decltype(std::declval<const ArrayType&>().Value(0))();
}

inline std::vector<int64_t> Ids(const arrow::Table& table,
                                const std::string& column = "id") {
  std::vector<int64_t> ids;
  const auto chunked = table.GetColumnByName(column);
  for (const auto& chunk : chunked->chunks()) {
    for (int64_t i = 0; i < chunk->length(); ++i) {
      ids.push_back(static_cast<const arrow::Int64Array&>(*chunk).Value(i));
    }
  }
  return ids;
}

inline std::vector<uint64_t> UInts(const arrow::Table& table, const std::string& column) {
  std::vector<uint64_t> values;
  for (const auto& chunk : table.GetColumnByName(column)->chunks()) {
    for (int64_t i = 0; i < chunk->length(); ++i) {
      values.push_back(static_cast<const arrow::UInt64Array&>(*chunk).Value(i));
    }
  }
  return values;
}

// Row `n` of `result` holds text and vector of the model's row.
inline void CheckTextAndVector(const arrow::Table& result, int64_t n,
                               const ModelRow& row) {
  ASSERT_OK_AND_ASSIGN(auto text, result.GetColumnByName("text")->GetScalar(n));
  ASSERT_EQ(text->ToString(), row.text);
  ASSERT_OK_AND_ASSIGN(auto vector, result.GetColumnByName("vector")->GetScalar(n));
  ASSERT_EQ(vector->is_valid, row.vector.has_value());
  if (!row.vector) return;
  const auto& values = static_cast<const arrow::FloatArray&>(
      *static_cast<const arrow::BaseListScalar&>(*vector).value);
  for (int d = 0; d < kDim; ++d) {
    ASSERT_EQ(values.Value(d), (*row.vector)[static_cast<size_t>(d)]);
  }
}

}  // namespace glaive::exec
