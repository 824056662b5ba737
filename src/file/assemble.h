// Builds Arrow arrays of nested columns from leaf columns (versions 2.1 and later).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include <arrow/type_fwd.h>

#include "base/status.h"
#include "file/column_reader.h"
#include "file/schema.h"

namespace glaive::file {

// Finds the reader of a leaf field; `path` are the layers from the leaf to the top.
using LeafLookup = std::function<Result<const ColumnReader*>(
    const Field& leaf, const std::vector<encoding::PathLayer>& path)>;

// The array of one top-level field for `num_rows` rows given as ascending, disjoint
// ranges.
Result<std::shared_ptr<arrow::ArrayData>> AssembleField(
    const Field& field, std::span<const encoding::ValueRange> rows, int64_t num_rows,
    const LeafLookup& lookup);

// The type a reader returns for a field: blobs become descriptors.
std::shared_ptr<arrow::DataType> ReadType(const Field& field);
// struct<position: uint64, size: uint64>.
const std::shared_ptr<arrow::DataType>& BlobDescriptorType();
// True for large binary values kept out of line, one descriptor each.
bool IsBlobV1(const Field& field);

}  // namespace glaive::file
