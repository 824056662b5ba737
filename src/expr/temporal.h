// Instants as clocks show them, and calendar steps.
#pragma once

#include <memory>

#include <arrow/type_fwd.h>

#include "base/status.h"
#include "expr/cast.h"

namespace glaive::expr {

// Timestamps with a zone other than UTC as local time without zone; others as they are.
Result<std::shared_ptr<arrow::Array>> ToLocal(const std::shared_ptr<arrow::Array>& array);
// Back to the type `zoned`.
Result<std::shared_ptr<arrow::Array>> FromLocal(
    const std::shared_ptr<arrow::Array>& array,
    const std::shared_ptr<arrow::DataType>& zoned);

// `value`, in units of which `per_second` make a second, moved by `sign` intervals:
// months first, then days, then the rest. Nullopt when the result does not fit.
std::optional<int64_t> AddInterval(int64_t value, int64_t per_second,
                                   const MonthDayNano& interval, int sign);

}  // namespace glaive::expr
