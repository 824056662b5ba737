// Columns renamed, made nullable or not, cast, and dropped.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "exec/column_files.h"
#include "table/dataset.h"
#include "table/schema_change.h"

namespace glaive::exec {

// Data are written for columns that are cast, and only for these: see table::CanCast. A
// column can be made non-null when no row has a null there, nor one of its parents.
// InvalidInput when a value does not fit the new type. Runs again when a concurrent
// commit was faster.
Result<table::Dataset::Ptr> AlterColumns(
    table::Dataset::Ptr dataset, std::span<const table::ColumnAlteration> alterations,
    const ColumnChangeOptions& options = {});

// Writes no data. NotFound for a column that is not there; InvalidInput for the last one.
Result<table::Dataset::Ptr> DropColumns(table::Dataset::Ptr dataset,
                                        std::span<const std::string> paths);

// `array` as `type`, one of the casts of table::CanCast: times are cut off, decimals
// rounded half away from zero. InvalidInput for a value that has no place in `type`,
// unless `checked` is false: then it becomes any value.
Result<std::shared_ptr<arrow::Array>> CastColumn(
    const std::shared_ptr<arrow::Array>& array,
    const std::shared_ptr<arrow::DataType>& type, bool checked = true);

}  // namespace glaive::exec
