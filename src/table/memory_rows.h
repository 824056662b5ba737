// The rows of record batches in memory, read like those of a fragment's files.
#pragma once

#include <memory>
#include <vector>

#include <arrow/type_fwd.h>

#include "base/status.h"
#include "file/schema.h"
#include "table/fragment_reader.h"

namespace glaive::table {

// `stored`: the fields of the batches' columns, with ids; only the first `num_columns`
// are shown. Ranges within one batch are views of it. Columns come as the types that a
// file would give: JSON as it is stored, members of structs by field id; NotSupported for
// blobs.
Result<std::shared_ptr<const FragmentReader>> MakeMemoryRows(
    std::shared_ptr<const file::Schema> stored, size_t num_columns,
    std::vector<std::shared_ptr<arrow::RecordBatch>> batches,
    std::shared_ptr<const DeletionVector> deletions);

// How many rows from `start` on should be read at once, so that nothing large is copied:
// what is left of a batch, or some small batches together. INT64_MAX for rows of files.
int64_t ContiguousRows(const FragmentReader& reader, int64_t start);

}  // namespace glaive::table
