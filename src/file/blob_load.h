// Fetches the bytes that blob descriptors point at.
#pragma once

#include <memory>

#include <arrow/type_fwd.h>

#include "base/status.h"
#include "file/schema.h"
#include "io/object_store.h"

namespace glaive::file {

// `data`, an array of `field` as readers return it, with descriptors replaced by their
// bytes. Corruption when a blob lies outside of the file.
Result<std::shared_ptr<arrow::ArrayData>> LoadBlobColumn(
    io::RandomAccessObject& object, const Field& field,
    const std::shared_ptr<arrow::ArrayData>& data);

}  // namespace glaive::file
