// Picks rows of arrays in any order: what Take does after reading rows in file order.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include <arrow/type_fwd.h>

#include "base/status.h"

namespace glaive::file {

// The slots of `data` at `positions`, all within it. Common layouts are copied here
// directly, which for a hundred rows costs less than dispatching Arrow's kernel; the rest
// goes there.
Result<std::shared_ptr<arrow::ArrayData>> GatherRows(
    const std::shared_ptr<arrow::ArrayData>& data, std::span<const int64_t> positions);

}  // namespace glaive::file
