// Shapes rows for an existing table: columns by name, casts, missing nullable columns.
#pragma once

#include <cstdint>
#include <memory>

#include <arrow/type_fwd.h>

#include "base/status.h"

namespace glaive::db {

// What becomes of 2.5 in an integer column: 2, or an error.
enum class Fractions : uint8_t { kCutOff, kRefuse };

// A stream of `data`'s rows in the shape of `target`:
// - columns and struct members are matched by name, in any order; unknown ones are
// InvalidInput;
// - nullable ones that are missing are left out at the top level and null inside structs;
// missing
//   non-nullable ones are SchemaMismatch;
// - numbers, strings, times and list widths are cast (floats into integers lose their
//   fraction unless that is refused;
//   what does not fit is SchemaMismatch "Cast error");
// - nulls in a non-nullable field are InvalidInput.
// Fixed-size lists of floats that hold NaN are InvalidInput when `reject_nan`. Batches
// that fit already pass through without a copy. `data` must outlive the result. Errors of
// a batch appear when it is read.
Result<std::shared_ptr<arrow::RecordBatchReader>> CoerceToSchema(
    std::shared_ptr<arrow::RecordBatchReader> data, std::shared_ptr<arrow::Schema> target,
    bool reject_nan, Fractions fractions = Fractions::kCutOff);

}  // namespace glaive::db
