// Reads chosen rows of several fragments in a given order.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <arrow/type_fwd.h>

#include "base/status.h"
#include "exec/plan.h"
#include "table/dataset.h"

namespace glaive::exec {

struct RowPlace {
  int fragment = 0;    // index in the snapshot
  int64_t offset = 0;  // physical
};

// Columns and row meta columns of the rows at `places`, in that order; one read per
// fragment. `batch` is null when `columns` is empty.
struct TakenRows {
  std::shared_ptr<arrow::RecordBatch> batch;
  MetaColumns meta;
};
Result<TakenRows> TakeRows(const table::Dataset& dataset, const SnapshotState& state,
                           const BoundColumns& columns, const MetaNeeds& needs,
                           std::span<const RowPlace> places);

}  // namespace glaive::exec
