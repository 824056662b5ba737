// Reads the rows of one fragment: its data files zipped, missing columns filled with
// nulls.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <arrow/type_fwd.h>

#include "base/status.h"
#include "file/file_reader.h"

namespace glaive::table {

class DeletionVector;
struct RowVersionRun;  // table/row_ids.h

// A projection resolved against one fragment; reuse it for all reads of a scan.
struct FragmentProjection {
  file::Schema schema;
  struct FilePart {
    int file_index = 0;
    file::Projection projection;
  };
  std::vector<FilePart> parts;

  // Where each top-level column of `schema` comes from: columns of the parts' batches.
  // None: all null. Several: members of one struct that lie in different files.
  struct Source {
    int part = 0;
    int column = 0;
  };
  struct Column {
    std::vector<Source> sources;
    bool complete = false;  // the only source holds the whole column
  };
  std::vector<Column> columns;
  std::shared_ptr<arrow::Schema> arrow_schema;
  // The batch of the only part is the result as it is.
  bool pass_through = false;
};

enum class RowVersion : uint8_t { kCreatedAt, kLastUpdatedAt };

// Immutable; const methods are thread-safe. Offsets are physical (deleted rows included).
class FragmentReader {
 public:
  virtual ~FragmentReader() = default;
  virtual int64_t id() const = 0;
  virtual int64_t physical_rows() const = 0;
  // Null: nothing deleted.
  virtual const DeletionVector* deletions() const = 0;
  // Stable row ids by physical offset, or empty: ids are addresses.
  virtual Result<std::span<const uint64_t>> row_ids() const = 0;
  // The table version that made, or last changed, each row, by physical offset. 1 for all
  // rows where the fragment does not say.
  virtual Result<std::vector<uint64_t>> RowVersions(RowVersion which) const = 0;
  // The same as runs, which are few as a rule.
  virtual Result<std::vector<RowVersionRun>> RowVersionRuns(RowVersion which) const = 0;

  virtual Result<FragmentProjection> Bind(const file::Schema& schema) const = 0;
  // All physical rows of [start, start + count), deleted ones included.
  virtual Result<std::shared_ptr<arrow::RecordBatch>> ReadRange(
      const FragmentProjection& projection, int64_t start, int64_t count) const = 0;
  // Physical offsets in any order.
  virtual Result<std::shared_ptr<arrow::RecordBatch>> Take(
      const FragmentProjection& projection, std::span<const int64_t> offsets) const = 0;
  // `batch`, rows that ReadRange or Take returned for `projection`, some of them left out
  // perhaps, with the bytes of blob columns in place of what describes them. `written`:
  // the columns of the projection as writers are given them.
  virtual Result<std::shared_ptr<arrow::RecordBatch>> LoadBlobs(
      const FragmentProjection& projection, const file::Schema& written,
      const std::shared_ptr<arrow::RecordBatch>& batch) const = 0;
  // Offsets at which a scan should cut its ranges: page starts of the widest column, and
  // the end.
  virtual Result<std::vector<int64_t>> ScanBoundaries(
      const FragmentProjection& projection) const = 0;
  virtual int64_t EstimateRowBytes(const FragmentProjection& projection) const = 0;
};

}  // namespace glaive::table
