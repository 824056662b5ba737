// Brings Arrow data into the layout that a schema's fields are stored in.
#pragma once

#include <memory>
#include <string>

#include <arrow/type_fwd.h>

#include "base/status.h"
#include "file/schema.h"

namespace glaive::file {

// `array` as `field.type`: members of structs matched by name, views, offset widths and
// dictionary index widths converted, null dictionary items turned into null rows, buffers
// aligned. Data that already has the layout is shared, not copied. SchemaMismatch names
// the column whose type differs otherwise, or which is missing or unknown.
Result<std::shared_ptr<arrow::ArrayData>> CastForStorage(
    const Field& field, const std::shared_ptr<arrow::Array>& array);

// InvalidInput when a field that is not nullable, at any level, has a null that no null
// parent hides. `data` has the layout of CastForStorage.
Status CheckNulls(const Field& field, const arrow::ArrayData& data);

}  // namespace glaive::file
