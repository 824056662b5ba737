// Arrays of callers and of log entries as the types of a table's fields.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include <arrow/type_fwd.h>

#include "base/status.h"
#include "file/schema.h"

namespace glaive::memwal {

inline constexpr char kFieldIdKey[] = "lance:field_id";

// The id in the metadata of a field of a log entry.
std::optional<int32_t> FieldIdOf(const arrow::Field& field);

enum class MatchMembers : uint8_t {
  kExactly,  // the same names in the same order
  kById,     // by field id, then by name; missing ones become null, others are dropped
};

// Whether types are the same up to nullability, metadata and the names of list items.
// Members of structs are compared only with kExactly.
bool SameShape(const arrow::DataType& a, const arrow::DataType& b, MatchMembers match);

// `data`, whose field is `from`, as `to.type`. Zero-copy. SchemaMismatch says which type
// was expected; InvalidInput when a member that may not be null is or is missing.
Result<std::shared_ptr<arrow::ArrayData>> ConformArray(
    const std::shared_ptr<arrow::ArrayData>& data, const arrow::Field& from,
    const file::Field& to, MatchMembers match);

}  // namespace glaive::memwal
