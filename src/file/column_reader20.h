// Reads columns of a file of version 2.0, where every field of the schema has a column.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include <arrow/type_fwd.h>

#include "base/status.h"
#include "encoding/value_sink.h"
#include "file/file_metadata.h"
#include "file/schema.h"

namespace glaive::file {

// Finds the column of a field.
using ColumnLookup20 = std::function<Result<const ColumnInfo*>(const Field& field)>;

// The array of one field (a top-level one at first) for rows given as ascending, disjoint
// ranges. Corruption names file, column and page.
Result<std::shared_ptr<arrow::ArrayData>> ReadField20(
    io::RandomAccessObject& object, const Field& field, int64_t num_column_rows,
    std::span<const encoding::ValueRange> rows, const ColumnLookup20& lookup);

}  // namespace glaive::file
