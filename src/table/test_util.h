// Helpers for tests of tables: small tables of one int64 and one string column.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <arrow/api.h>
#include <gtest/gtest.h>

#include "io/object_store.h"
#include "io/test_util.h"
#include "runtime/runtime.h"
#include "table/dataset.h"
#include "table/deletion_vector.h"
#include "table/fragment_reader.h"
#include "table/row_id_index.h"

namespace glaive::table {

using Values = std::vector<int64_t>;

// Shares nothing with other environments but the bytes, like another process would.
inline TableEnv MakeEnv(std::shared_ptr<io::ObjectStore> store) {
  return {Runtime::Make({.num_threads = 2}).ValueOrDie(), std::move(store)};
}

inline std::shared_ptr<arrow::Schema> TestSchema() {
  return arrow::schema(
      {arrow::field("a", arrow::int64()), arrow::field("s", arrow::utf8())});
}

inline std::shared_ptr<arrow::RecordBatch> MakeBatch(const Values& values) {
  arrow::Int64Builder a;
  arrow::StringBuilder s;
  for (int64_t value : values) {
    EXPECT_TRUE(a.Append(value).ok());
    EXPECT_TRUE(s.Append("s" + std::to_string(value)).ok());
  }
  return arrow::RecordBatch::Make(TestSchema(), static_cast<int64_t>(values.size()),
                                  {a.Finish().ValueOrDie(), s.Finish().ValueOrDie()});
}

inline std::shared_ptr<arrow::RecordBatchReader> MakeReader(const Values& values) {
  return arrow::RecordBatchReader::Make({MakeBatch(values)}).ValueOrDie();
}

inline Result<Dataset::Ptr> WriteValues(const TableEnv& env, const Values& values,
                                        WriteOptions options) {
  return Dataset::Write(env, *MakeReader(values), options);
}

inline Result<Dataset::Ptr> Append(const TableEnv& env, const Values& values) {
  WriteOptions options;
  options.mode = WriteMode::kAppend;
  return WriteValues(env, values, options);
}

inline Result<Dataset::Ptr> Create(const TableEnv& env, const Values& values) {
  return WriteValues(env, values, {});
}

struct Row {
  uint64_t row_id = 0;
  uint64_t address = 0;
  int64_t value = 0;
  friend bool operator==(const Row&, const Row&) = default;
};

// All live rows in scan order; checks that column s belongs to column a.
inline Result<std::vector<Row>> ReadRows(const Dataset& dataset) {
  std::vector<Row> rows;
  for (int f = 0; f < dataset.num_fragments(); ++f) {
    GLAIVE_ASSIGN_OR_RETURN(auto reader, dataset.OpenFragment(f));
    GLAIVE_ASSIGN_OR_RETURN(auto projection, reader->Bind(dataset.schema()));
    GLAIVE_ASSIGN_OR_RETURN(auto batch,
                            reader->ReadRange(projection, 0, reader->physical_rows()));
    GLAIVE_RETURN_NOT_OK(batch->ValidateFull());
    GLAIVE_ASSIGN_OR_RETURN(auto ids, reader->row_ids());
    const auto& a = static_cast<const arrow::Int64Array&>(*batch->GetColumnByName("a"));
    const auto& s = static_cast<const arrow::StringArray&>(*batch->GetColumnByName("s"));
    // Only where a damaged manifest knows the column under another id.
    if (a.null_count() + s.null_count() > 0) return NotFound("a column has no values");
    int64_t live = 0;
    for (int64_t i = 0; i < batch->num_rows(); ++i) {
      const auto offset = static_cast<uint32_t>(i);
      if (reader->deletions() != nullptr && reader->deletions()->Contains(offset))
        continue;
      ++live;
      if (s.GetView(i) != "s" + std::to_string(a.Value(i))) {
        return InternalError("columns a and s do not belong together");
      }
      const uint64_t address = RowAddress::Make(reader->id(), offset).value;
      rows.push_back({ids.empty() ? address : ids[offset], address, a.Value(i)});
    }
    if (live != dataset.live_rows(f)) return InternalError("live_rows is wrong");
  }
  if (static_cast<int64_t>(rows.size()) != dataset.count_rows()) {
    return InternalError("count_rows is wrong");
  }
  return rows;
}

inline Result<Values> ReadValues(const Dataset& dataset) {
  GLAIVE_ASSIGN_OR_RETURN(auto rows, ReadRows(dataset));
  Values values;
  for (const Row& row : rows) values.push_back(row.value);
  return values;
}

// The addresses of the rows that hold one of `values`.
inline Result<DeletedRows> FindRows(const Dataset& dataset, const Values& values) {
  GLAIVE_ASSIGN_OR_RETURN(auto rows, ReadRows(dataset));
  DeletedRows found;
  for (const Row& row : rows) {
    if (std::count(values.begin(), values.end(), row.value) == 0) continue;
    const RowAddress address{row.address};
    found[address.fragment_id()].push_back(address.offset());
  }
  return found;
}

inline Result<Dataset::Ptr> DeleteValues(const Dataset& dataset, const Values& values) {
  GLAIVE_ASSIGN_OR_RETURN(auto rows, FindRows(dataset, values));
  return dataset.CommitDelete(rows, "a in (...)");
}

}  // namespace glaive::table
