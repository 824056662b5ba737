// Rows that are written again elsewhere: reading them, and the identity they keep.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include <arrow/type_fwd.h>

#include "base/status.h"
#include "exec/bound_columns.h"
#include "exec/fragment_rows.h"
#include "table/dataset.h"
#include "table/row_ids.h"

namespace glaive::exec {

// The rows at `offsets` (physical, ascending, repeats allowed, all within [start, start +
// count)) with the values that were written: blobs as bytes, JSON as stored. Null without
// columns.
Result<std::shared_ptr<arrow::RecordBatch>> ReadToRewrite(
    const FragmentRows& fragment, const BoundColumns& columns, int64_t start,
    int64_t count, std::span<const uint32_t> offsets);

// True when a blob of either kind lies at or below `field`.
bool HoldsBlobs(const file::Field& field);

// Where to cut a batch that ReadRange or Take returned, so that the blobs of each part
// need little memory: ends of the parts.
std::vector<int64_t> CutByBlobs(const file::Schema& written,
                                const arrow::RecordBatch& batch);

// Row ids and creation versions of rows in the order in which they are written again.
// Does nothing on tables without stable row ids. Not thread-safe.
class MovedIdentity {
 public:
  explicit MovedIdentity(const table::Dataset& dataset)
      : stable_(dataset.has_stable_row_ids()) {}

  Status Add(const FragmentRows& fragment, std::span<const uint32_t> offsets);
  // Gives the new fragments, which hold exactly the rows that were added, their ids.
  Status Stamp(std::vector<lance::table::DataFragment>* fragments) const;

 private:
  const bool stable_;
  std::vector<uint64_t> ids_;
  std::vector<table::RowVersionRun> created_;
  // By fragment id, then physical offset.
  std::map<int64_t, std::vector<uint64_t>> versions_;
};

}  // namespace glaive::exec
