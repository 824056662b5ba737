// Arrow extension types are stored as their storage type plus field metadata.
#pragma once

#include <memory>

#include <arrow/type_fwd.h>

#include "base/status.h"

namespace glaive::file {

inline constexpr char kExtensionNameKey[] = "ARROW:extension:name";
inline constexpr char kExtensionMetadataKey[] = "ARROW:extension:metadata";

// `field` with extension types replaced, at every level, by storage type and metadata
// keys.
std::shared_ptr<arrow::Field> StorageField(const std::shared_ptr<arrow::Field>& field);

// True when `type` holds an extension type at any level.
bool HasExtension(const arrow::DataType& type);

// `array` with extension arrays unwrapped at every level. Zero-copy.
Result<std::shared_ptr<arrow::Array>> StorageArray(
    const std::shared_ptr<arrow::Array>& array);

}  // namespace glaive::file
