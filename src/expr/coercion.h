// The types in which values of different types meet, by upstream's rules.
#pragma once

#include <memory>
#include <vector>

#include <arrow/type_fwd.h>

#include "base/status.h"

namespace glaive::expr {

using TypePtr = std::shared_ptr<arrow::DataType>;

bool IsNumeric(const arrow::DataType& type);
bool IsText(const arrow::DataType& type);
bool IsBytes(const arrow::DataType& type);  // binary of any kind
bool IsList(const arrow::DataType& type);   // also of fixed size
bool IsInterval(const arrow::DataType& type);
// Dates, times, timestamps, durations and intervals.
bool IsTemporal(const arrow::DataType& type);

// The type of the values: that of the dictionary for dictionary columns.
TypePtr ValueType(const TypePtr& type);
// The element type of a list; nullptr for other types.
TypePtr ElementType(const arrow::DataType& type);

// The type that holds two numbers, for comparison and union; nullptr when there is none.
TypePtr NumericType(const TypePtr& left, const TypePtr& right);
// Whole numbers as decimals: wide enough for every value. Decimals are left alone.
TypePtr DecimalFor(const TypePtr& type);
// The type in which values of two types are compared; InvalidInput when there is none.
Result<TypePtr> ComparisonType(const TypePtr& left, const TypePtr& right);
// The type of a value that may come from several expressions (CASE, COALESCE, arrays);
// NullType when all are NULL.
Result<TypePtr> UnionType(const std::vector<TypePtr>& types);

}  // namespace glaive::expr
