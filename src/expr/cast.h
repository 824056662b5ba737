// SQL's CAST, as upstream's engine does it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <arrow/datum.h>
#include <arrow/type_fwd.h>

#include "base/status.h"
#include "expr/bound.h"

namespace glaive::expr {

// What happens to values that have no place in the wanted type.
enum class CastFailure : uint8_t { kError, kNull };

// NotSupported for pairs of types without a cast.
Status CheckCast(const arrow::DataType& from, const arrow::DataType& to);
// InvalidInput for values that do not fit or cannot be read, unless they become null.
Result<std::shared_ptr<arrow::Array>> CastArray(
    const std::shared_ptr<arrow::Array>& array,
    const std::shared_ptr<arrow::DataType>& type, CastFailure failure);

// The steps to and from text.
Result<std::shared_ptr<arrow::Array>> ParseText(
    const std::shared_ptr<arrow::Array>& array,
    const std::shared_ptr<arrow::DataType>& type, CastFailure failure);
bool CanParse(const arrow::DataType& type);
Result<std::shared_ptr<arrow::Array>> FormatText(
    const std::shared_ptr<arrow::Array>& array,
    const std::shared_ptr<arrow::DataType>& type, CastFailure failure);
bool CanFormat(const arrow::DataType& type);

struct MonthDayNano {
  int32_t months = 0;
  int32_t days = 0;
  int64_t nanos = 0;
};
// "1 year 2 mons 3.5 seconds"; numbers without a unit are months. Nullopt when it is no
// interval.
std::optional<MonthDayNano> ParseInterval(std::string_view text);

void AppendFloat(double value, std::string* out);
void AppendFloat(float value, std::string* out);
// 2020-01-02T03:04:05.123456, as upstream writes timestamps.
void AppendTimestamp(int64_t value, arrow::TimeUnit::type unit, std::string* out);
void AppendDate(int64_t days, std::string* out);
void AppendTime(int64_t nanos, std::string* out);

}  // namespace glaive::expr
