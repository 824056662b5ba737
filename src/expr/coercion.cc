#include "expr/coercion.h"

#include <algorithm>
#include <utility>

#include <arrow/type.h>
#include <arrow/type_traits.h>

namespace glaive::expr {
namespace {

using arrow::Type;

struct DecimalShape {
  int whole;
  int scale;
};

DecimalShape ShapeOf(const arrow::DataType& type) {
  const auto& decimal = static_cast<const arrow::DecimalType&>(type);
  return {decimal.precision() - decimal.scale(), decimal.scale()};
}

TypePtr WiderDecimal(const TypePtr& left, const TypePtr& right) {
  const DecimalShape a = ShapeOf(*left);
  const DecimalShape b = ShapeOf(*right);
  const int scale = std::max(a.scale, b.scale);
  const int precision = std::max(a.whole, b.whole) + scale;
  const bool wide =
      left->id() == Type::DECIMAL256 || right->id() == Type::DECIMAL256 || precision > 38;
  if (precision > 76) return nullptr;
  if (wide) return arrow::decimal256(precision, scale);
  return arrow::decimal128(precision, scale);
}

arrow::TimeUnit::type UnitOf(const arrow::DataType& type) {
  switch (type.id()) {
    case Type::TIMESTAMP:
      return static_cast<const arrow::TimestampType&>(type).unit();
    case Type::DURATION:
      return static_cast<const arrow::DurationType&>(type).unit();
    case Type::TIME32:
    case Type::TIME64:
      return static_cast<const arrow::TimeType&>(type).unit();
    case Type::DATE64:
      return arrow::TimeUnit::MILLI;
    default:
      return arrow::TimeUnit::SECOND;
  }
}

// nullptr when the types have nothing to do with each other.
TypePtr TemporalType(const TypePtr& left, const TypePtr& right) {
  const auto is_date = [](const TypePtr& t) { return arrow::is_date(t->id()); };
  const auto is_timestamp = [](const TypePtr& t) { return t->id() == Type::TIMESTAMP; };
  if (is_date(left) && is_date(right)) return arrow::date64();
  if ((is_date(left) || is_timestamp(left)) && (is_date(right) || is_timestamp(right))) {
    const TypePtr& stamp = is_timestamp(left) ? left : right;
    std::string zone = static_cast<const arrow::TimestampType&>(*stamp).timezone();
    if (zone.empty() && is_timestamp(right)) {
      zone = static_cast<const arrow::TimestampType&>(*right).timezone();
    }
    // Two timestamps meet in the coarser unit; a date makes it nanoseconds.
    const auto unit = is_timestamp(left) && is_timestamp(right)
                          ? std::min(UnitOf(*left), UnitOf(*right))
                          : arrow::TimeUnit::NANO;
    return zone.empty() ? arrow::timestamp(unit) : arrow::timestamp(unit, zone);
  }
  if (arrow::is_time(left->id()) && arrow::is_time(right->id())) {
    const auto unit = std::max(UnitOf(*left), UnitOf(*right));
    if (unit <= arrow::TimeUnit::MILLI) return arrow::time32(unit);
    return arrow::time64(unit);
  }
  if (left->id() == Type::DURATION && right->id() == Type::DURATION) {
    return arrow::duration(std::max(UnitOf(*left), UnitOf(*right)));
  }
  return nullptr;
}

Result<TypePtr> CommonType(const TypePtr& left_in, const TypePtr& right_in, bool unite);

// Lists of different element types; nullptr when one is no list.
Result<TypePtr> CommonList(const TypePtr& left, const TypePtr& right, bool unite) {
  GLAIVE_ASSIGN_OR_RETURN(TypePtr element,
                          CommonType(ElementType(*left), ElementType(*right), unite));
  if (left->id() == Type::LARGE_LIST || right->id() == Type::LARGE_LIST) {
    return arrow::large_list(element);
  }
  return arrow::list(element);
}

Result<TypePtr> CommonType(const TypePtr& left_in, const TypePtr& right_in, bool unite) {
  const TypePtr left = ValueType(left_in);
  const TypePtr right = ValueType(right_in);
  if (left->Equals(*right)) return left;
  if (left->id() == Type::NA) return right;
  if (right->id() == Type::NA) return left;
  if (IsNumeric(*left) && IsNumeric(*right)) {
    TypePtr type = NumericType(left, right);
    if (type != nullptr) return type;
    return NotSupported("expression: ", left->ToString(), " and ", right->ToString(),
                        " have no common type with enough digits");
  }
  if (IsText(*left) && IsText(*right)) return arrow::large_utf8();
  if (IsBytes(*left) && IsBytes(*right)) {
    if (left->id() == Type::LARGE_BINARY || right->id() == Type::LARGE_BINARY) {
      return arrow::large_binary();
    }
    return arrow::binary();
  }
  if (TypePtr type = TemporalType(left, right); type != nullptr) return type;
  for (const auto& [text, other] : {std::pair(left, right), std::pair(right, left)}) {
    if (!IsText(*text)) continue;
    if (IsBytes(*other)) return arrow::large_binary();
    if (IsTemporal(*other)) return other;
    if (IsNumeric(*other) || other->id() == Type::BOOL) return unite ? text : other;
  }
  if (IsList(*left) && IsList(*right)) return CommonList(left, right, unite);
  if (left->id() == Type::STRUCT && right->id() == Type::STRUCT &&
      left->num_fields() == right->num_fields()) {
    arrow::FieldVector fields;
    for (int i = 0; i < left->num_fields(); ++i) {
      GLAIVE_ASSIGN_OR_RETURN(TypePtr type, CommonType(left->field(i)->type(),
                                                       right->field(i)->type(), unite));
      fields.push_back(arrow::field(left->field(i)->name(), std::move(type)));
    }
    return arrow::struct_(std::move(fields));
  }
  if (unite) {
    return InvalidInput("expression: a value cannot be both ", left->ToString(), " and ",
                        right->ToString(), "; use CAST if that is meant");
  }
  return InvalidInput("expression: a value of type ", left->ToString(),
                      " cannot be compared with one of type ", right->ToString(),
                      "; use CAST if that is meant");
}

}  // namespace

bool IsNumeric(const arrow::DataType& type) {
  return arrow::is_integer(type.id()) || arrow::is_floating(type.id()) ||
         arrow::is_decimal(type.id());
}
bool IsText(const arrow::DataType& type) {
  return type.id() == Type::STRING || type.id() == Type::LARGE_STRING;
}
bool IsBytes(const arrow::DataType& type) {
  return type.id() == Type::BINARY || type.id() == Type::LARGE_BINARY ||
         type.id() == Type::FIXED_SIZE_BINARY;
}
bool IsList(const arrow::DataType& type) {
  return type.id() == Type::LIST || type.id() == Type::LARGE_LIST ||
         type.id() == Type::FIXED_SIZE_LIST;
}
bool IsTemporal(const arrow::DataType& type) {
  return arrow::is_temporal(type.id()) || type.id() == Type::DURATION || IsInterval(type);
}
bool IsInterval(const arrow::DataType& type) {
  return type.id() == Type::INTERVAL_MONTH_DAY_NANO;
}

TypePtr ValueType(const TypePtr& type) {
  if (type->id() != Type::DICTIONARY) return type;
  return static_cast<const arrow::DictionaryType&>(*type).value_type();
}

TypePtr ElementType(const arrow::DataType& type) {
  return IsList(type) ? type.field(0)->type() : nullptr;
}

TypePtr DecimalFor(const TypePtr& type) {
  switch (type->id()) {
    case Type::INT8:
    case Type::UINT8:
      return arrow::decimal128(3, 0);
    case Type::INT16:
    case Type::UINT16:
      return arrow::decimal128(5, 0);
    case Type::INT32:
    case Type::UINT32:
      return arrow::decimal128(10, 0);
    case Type::INT64:
    case Type::UINT64:
      return arrow::decimal128(20, 0);
    default:
      return type;
  }
}

TypePtr NumericType(const TypePtr& left, const TypePtr& right) {
  if (left->Equals(*right)) return left;
  const auto either = [&](Type::type id) {
    return left->id() == id || right->id() == id;
  };
  const auto any = [&](auto test) { return test(left->id()) || test(right->id()); };
  if (either(Type::DOUBLE)) return arrow::float64();
  if (either(Type::FLOAT)) return arrow::float32();
  const bool decimals = any([](Type::type id) { return arrow::is_decimal(id); });
  if (either(Type::HALF_FLOAT)) return decimals ? arrow::float32() : arrow::float16();
  if (decimals) return WiderDecimal(DecimalFor(left), DecimalFor(right));
  const bool has_signed = any([](Type::type id) { return arrow::is_signed_integer(id); });
  if (either(Type::UINT64)) {
    return has_signed ? arrow::decimal128(20, 0) : arrow::uint64();
  }
  if (either(Type::INT64)) return arrow::int64();
  if (either(Type::UINT32)) return has_signed ? arrow::int64() : arrow::uint32();
  if (either(Type::INT32)) return arrow::int32();
  if (either(Type::UINT16)) return has_signed ? arrow::int32() : arrow::uint16();
  return arrow::int16();  // what is left are pairs of int16, int8 and uint8
}

Result<TypePtr> ComparisonType(const TypePtr& left, const TypePtr& right) {
  return CommonType(left, right, /*unite=*/false);
}

Result<TypePtr> UnionType(const std::vector<TypePtr>& types) {
  TypePtr type = arrow::null();
  for (const TypePtr& next : types) {
    GLAIVE_ASSIGN_OR_RETURN(type, CommonType(type, next, /*unite=*/true));
  }
  return type;
}

}  // namespace glaive::expr
