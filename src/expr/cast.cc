#include "expr/cast.h"

#include <cmath>
#include <limits>

#include <arrow/array.h>
#include <arrow/array/concatenate.h>
#include <arrow/array/util.h>
#include <arrow/compute/api.h>
#include <arrow/compute/initialize.h>
#include <arrow/scalar.h>
#include <arrow/type.h>
#include <arrow/type_traits.h>
#include <arrow/util/decimal.h>

#include "expr/calendar.h"
#include "expr/coercion.h"
#include "expr/compare.h"
#include "expr/kernel.h"
#include "expr/user_cast.h"

namespace glaive::expr {
namespace {

using arrow::Type;

Status FromArrow(const Status& status) {
  if (status.IsNotImplemented()) return NotSupported("expression: ", status.message());
  return InvalidInput("expression: ", status.message());
}

// `truncates_decimals` also makes Arrow ignore digits that do not fit in front of the
// point.
Result<arrow::Datum> PlainCast(const arrow::Datum& value, const TypePtr& type,
                               bool truncates_decimals) {
  static const Status initialized = arrow::compute::Initialize();
  GLAIVE_RETURN_NOT_OK(initialized);
  arrow::compute::CastOptions options = arrow::compute::CastOptions::Safe(type);
  options.allow_float_truncate = true;
  options.allow_time_truncate = true;
  options.allow_decimal_truncate = truncates_decimals;
  auto result = arrow::compute::Cast(value, options);
  if (!result.ok()) return FromArrow(result.status());
  return result;
}

// Rounds half away from zero, as upstream does; digits that do not fit are an error.
Result<arrow::Datum> CastDecimal(const arrow::Datum& value, const TypePtr& type) {
  constexpr int kMost = arrow::Decimal256Type::kMaxPrecision;
  const int from = static_cast<const arrow::DecimalType&>(*value.type()).scale();
  const int to = static_cast<const arrow::DecimalType&>(*type).scale();
  if (to >= from) return PlainCast(value, type, false);
  GLAIVE_ASSIGN_OR_RETURN(arrow::Datum wide,
                          PlainCast(value, arrow::decimal256(kMost, from), false));
  const arrow::compute::RoundOptions round(
      to, arrow::compute::RoundMode::HALF_TOWARDS_INFINITY);
  auto rounded = arrow::compute::CallFunction("round", {wide}, &round);
  if (!rounded.ok()) return FromArrow(rounded.status());
  GLAIVE_ASSIGN_OR_RETURN(wide, PlainCast(*rounded, arrow::decimal256(kMost, to), true));
  return PlainCast(wide, type, false);
}

Result<ArrayPtr> Plain(const ArrayPtr& array, const TypePtr& type) {
  if (array->type()->Equals(*type)) return array;
  GLAIVE_ASSIGN_OR_RETURN(arrow::Datum cast, CastTo(array, type));
  return cast.make_array();
}

KernelArgs Unary(const ArrayPtr& array) {
  KernelArgs args;
  args.args.push_back({array, 1});
  args.rows = array->length();
  return args;
}

Status DoesNotFit(const std::string& value, const TypePtr& type) {
  return InvalidInput("expression: the value ", value, " cannot be cast to ",
                      type->ToString());
}

// Whole numbers from int64, uint64 or double; fractions are cut off.
template <typename From, typename To>
Result<ArrayPtr> Narrow(const ArrayPtr& array, const TypePtr& type, CastFailure failure) {
  const KernelArgs args = Unary(array);
  const Numbers<From> values(args[0]);
  return TryMapNumbers<To>(args, type, [&](int64_t i, To* out) -> Result<bool> {
    const From value = values[i];
    bool fits = false;
    if constexpr (std::is_floating_point_v<From>) {
      const From whole = std::trunc(value);
      // Both bounds are exact as floating point numbers.
      const auto low = static_cast<From>(std::numeric_limits<To>::min());
      const From high = std::ldexp(From{1}, std::numeric_limits<To>::digits);
      fits = whole >= low && whole < high;
      if (fits) *out = static_cast<To>(whole);
    } else {
      fits = std::in_range<To>(value);
      *out = static_cast<To>(value);
    }
    if (!fits) {
      if (failure == CastFailure::kNull) return false;
      return DoesNotFit(std::to_string(value), type);
    }
    return true;
  });
}

template <typename From>
Result<ArrayPtr> NarrowTo(const ArrayPtr& array, const TypePtr& type,
                          CastFailure failure) {
  switch (type->id()) {
    case Type::INT8:
      return Narrow<From, int8_t>(array, type, failure);
    case Type::UINT8:
      return Narrow<From, uint8_t>(array, type, failure);
    case Type::INT16:
      return Narrow<From, int16_t>(array, type, failure);
    case Type::UINT16:
      return Narrow<From, uint16_t>(array, type, failure);
    case Type::INT32:
      return Narrow<From, int32_t>(array, type, failure);
    case Type::UINT32:
      return Narrow<From, uint32_t>(array, type, failure);
    case Type::INT64:
      return Narrow<From, int64_t>(array, type, failure);
    default:
      return Narrow<From, uint64_t>(array, type, failure);
  }
}

Result<ArrayPtr> ToInteger(const ArrayPtr& array, const TypePtr& type,
                           CastFailure failure) {
  const Type::type from = array->type_id();
  if (from == Type::BOOL) return Plain(array, type);
  if (arrow::is_floating(from)) {
    GLAIVE_ASSIGN_OR_RETURN(ArrayPtr wide, Plain(array, arrow::float64()));
    return NarrowTo<double>(wide, type, failure);
  }
  if (arrow::is_decimal(from)) {
    // The whole part, by way of text-free decimals without digits behind the point.
    GLAIVE_ASSIGN_OR_RETURN(arrow::Datum whole,
                            PlainCast(array, arrow::decimal256(76, 0), true));
    auto wide = PlainCast(whole, arrow::int64(), true);
    if (!wide.ok()) return wide.status();
    return NarrowTo<int64_t>(wide->make_array(), type, failure);
  }
  if (from == Type::UINT64) return NarrowTo<uint64_t>(array, type, failure);
  GLAIVE_ASSIGN_OR_RETURN(ArrayPtr wide, Plain(array, arrow::int64()));
  if (type->id() == Type::INT64) return wide;
  return NarrowTo<int64_t>(wide, type, failure);
}

// 128-bit decimals from floating point numbers, rounded half away from zero.
Result<ArrayPtr> FloatToDecimal(const ArrayPtr& array, const TypePtr& type,
                                CastFailure failure) {
  GLAIVE_ASSIGN_OR_RETURN(ArrayPtr wide, Plain(array, arrow::float64()));
  const KernelArgs args = Unary(wide);
  const Numbers<double> values(args[0]);
  const auto& decimal = static_cast<const arrow::DecimalType&>(*type);
  const double factor = std::pow(10.0, decimal.scale());
  return TryMapNumbers<arrow::Decimal128>(
      args, type, [&](int64_t i, arrow::Decimal128* out) -> Result<bool> {
        const double scaled = std::round(values[i] * factor);
        auto value = arrow::Decimal128::FromReal(scaled, 38, 0);
        if (std::isfinite(scaled) && value.ok() &&
            value->FitsInPrecision(decimal.precision())) {
          *out = *value;
          return true;
        }
        if (failure == CastFailure::kNull) return false;
        return DoesNotFit(std::to_string(values[i]), type);
      });
}

Result<ArrayPtr> ToDecimal(const ArrayPtr& array, const TypePtr& type,
                           CastFailure failure) {
  if (arrow::is_floating(array->type_id()) && type->id() == Type::DECIMAL128) {
    return FloatToDecimal(array, type, failure);
  }
  auto whole = CastTo(array, type);
  if (whole.ok() || failure == CastFailure::kError) {
    GLAIVE_RETURN_NOT_OK(whole.status());
    return whole->make_array();
  }
  // Some value does not fit: one by one.
  std::vector<ArrayPtr> pieces;
  for (int64_t i = 0; i < array->length(); ++i) {
    auto one = CastTo(array->Slice(i, 1), type);
    if (one.ok()) {
      pieces.push_back(one->make_array());
    } else {
      GLAIVE_ASSIGN_OR_RETURN(ArrayPtr null, arrow::MakeArrayOfNull(type, 1));
      pieces.push_back(std::move(null));
    }
  }
  if (pieces.empty()) return arrow::MakeEmptyArray(type);
  return arrow::Concatenate(pieces);
}

// Each value as a list of its own; null becomes a list of one null.
Result<ArrayPtr> WrapInLists(const ArrayPtr& array, const TypePtr& type,
                             CastFailure failure) {
  GLAIVE_ASSIGN_OR_RETURN(ArrayPtr values, CastArray(array, ElementType(*type), failure));
  std::vector<int32_t> offsets;
  const auto rows = static_cast<size_t>(array->length());
  offsets.reserve(rows + 1);
  for (size_t i = 0; i <= rows; ++i) offsets.push_back(static_cast<int32_t>(i));
  const ArrayPtr lists = arrow::MakeArray(arrow::ArrayData::Make(
      arrow::list(type->field(0)), array->length(),
      {nullptr, arrow::Buffer::FromVector(std::move(offsets))}, {values->data()}));
  return Plain(lists, type);
}

// The bytes of whole numbers, least first.
Result<ArrayPtr> NumberToBytes(const ArrayPtr& array, const TypePtr& type) {
  const int width = arrow::bit_width(array->type_id()) / 8;
  const KernelArgs args = Unary(array);
  const auto* bytes = reinterpret_cast<const char*>(
      array->data()->GetValues<uint8_t>(1, array->offset() * width));
  return MapText(args, type, [&](int64_t i, std::string* out) -> Result<bool> {
    out->append(bytes + i * width, static_cast<size_t>(width));
    return true;
  });
}

// A number that stands for an instant, a time or a duration: its unit is that of `type`.
Result<ArrayPtr> NumberToTemporal(const ArrayPtr& array, const TypePtr& type,
                                  CastFailure failure) {
  if (array->type_id() == Type::INT32 && type->id() == Type::DATE64) {
    GLAIVE_ASSIGN_OR_RETURN(ArrayPtr days, array->View(arrow::date32()));
    return Plain(days, type);
  }
  const bool narrow = type->id() == Type::DATE32 || type->id() == Type::TIME32;
  GLAIVE_ASSIGN_OR_RETURN(
      ArrayPtr number,
      ToInteger(array, narrow ? arrow::int32() : arrow::int64(), failure));
  return number->View(type);
}

Result<ArrayPtr> TemporalToNumber(const ArrayPtr& array, const TypePtr& type,
                                  CastFailure failure) {
  const bool narrow =
      array->type_id() == Type::DATE32 || array->type_id() == Type::TIME32;
  GLAIVE_ASSIGN_OR_RETURN(ArrayPtr number,
                          array->View(narrow ? arrow::int32() : arrow::int64()));
  return CastArray(number, type, failure);
}

// What a clock on the wall of the zone shows, as an instant without zone.
Result<ArrayPtr> LocalTime(const ArrayPtr& array) {
  GLAIVE_ASSIGN_OR_RETURN(arrow::Datum local, CallArrow("local_timestamp", {array}));
  return local.make_array();
}

Result<ArrayPtr> TemporalToTemporal(const ArrayPtr& array, const TypePtr& type) {
  if (array->type_id() == Type::TIMESTAMP) {
    const auto& from = static_cast<const arrow::TimestampType&>(*array->type());
    if (type->id() == Type::TIMESTAMP) {
      const auto& to = static_cast<const arrow::TimestampType&>(*type);
      if (from.timezone().empty() && !to.timezone().empty() && to.timezone() != "UTC") {
        GLAIVE_ASSIGN_OR_RETURN(ArrayPtr unit, Plain(array, arrow::timestamp(to.unit())));
        arrow::compute::AssumeTimezoneOptions options(
            to.timezone(), arrow::compute::AssumeTimezoneOptions::AMBIGUOUS_EARLIEST,
            arrow::compute::AssumeTimezoneOptions::NONEXISTENT_LATEST);
        auto zoned = arrow::compute::CallFunction("assume_timezone", {unit}, &options);
        if (!zoned.ok()) return FromArrow(zoned.status());
        return zoned->make_array();
      }
      if (from.timezone().empty() != to.timezone().empty()) {
        GLAIVE_ASSIGN_OR_RETURN(
            ArrayPtr unit, Plain(array, arrow::timestamp(to.unit(), from.timezone())));
        return unit->View(type);
      }
      return Plain(array, type);
    }
    if (!from.timezone().empty()) {
      GLAIVE_ASSIGN_OR_RETURN(ArrayPtr local, LocalTime(array));
      return TemporalToTemporal(local, type);
    }
    if (arrow::is_time(type->id())) {
      GLAIVE_ASSIGN_OR_RETURN(ArrayPtr nanos,
                              Plain(array, arrow::timestamp(arrow::TimeUnit::NANO)));
      const KernelArgs args = Unary(nanos);
      const Numbers<int64_t> values(args[0]);
      GLAIVE_ASSIGN_OR_RETURN(
          ArrayPtr time,
          MapNumbers<int64_t>(args, arrow::time64(arrow::TimeUnit::NANO), [&](int64_t i) {
            return values[i] - FloorDivide(values[i], kDayNanos64) * kDayNanos64;
          }));
      return Plain(time, type);
    }
    if (arrow::is_date(type->id())) {
      const int64_t per_day = UnitsPerSecond(from.unit()) * kDaySeconds;
      const KernelArgs args = Unary(array);
      const Numbers<int64_t> values(args[0]);
      GLAIVE_ASSIGN_OR_RETURN(
          ArrayPtr days, MapNumbers<int32_t>(args, arrow::date32(), [&](int64_t i) {
            return static_cast<int32_t>(FloorDivide(values[i], per_day));
          }));
      return Plain(days, type);
    }
  }
  return Plain(array, type);
}

Result<ArrayPtr> CastList(const ArrayPtr& array, const TypePtr& type,
                          CastFailure failure) {
  const TypePtr element = ElementType(*type);
  // Elements first, in the list that there is; then Arrow changes the kind of list.
  ArrayPtr values;
  std::shared_ptr<arrow::ArrayData> data = array->data()->Copy();
  values = arrow::MakeArray(data->child_data[0]);
  GLAIVE_ASSIGN_OR_RETURN(values, CastArray(values, element, failure));
  data->child_data[0] = values->data();
  switch (array->type_id()) {
    case Type::LIST:
      data->type = arrow::list(type->field(0)->WithType(element));
      break;
    case Type::LARGE_LIST:
      data->type = arrow::large_list(type->field(0)->WithType(element));
      break;
    default:
      data->type = arrow::fixed_size_list(
          type->field(0)->WithType(element),
          static_cast<const arrow::FixedSizeListType&>(*array->type()).list_size());
  }
  const ArrayPtr cast = arrow::MakeArray(data);
  if (cast->type()->Equals(*type)) return cast;
  if (cast->type_id() == type->id() && type->id() != Type::FIXED_SIZE_LIST) {
    data->type = type;  // the names of the elements differ
    return arrow::MakeArray(data);
  }
  if (cast->type_id() == type->id()) {
    return InvalidInput("expression: a list of type ", array->type()->ToString(),
                        " cannot be cast to ", type->ToString());
  }
  GLAIVE_ASSIGN_OR_RETURN(arrow::Datum other_kind, PlainCast(cast, type, true));
  return other_kind.make_array();
}

Result<ArrayPtr> CastStruct(const ArrayPtr& array, const TypePtr& type,
                            CastFailure failure) {
  const auto& from = static_cast<const arrow::StructArray&>(*array);
  std::vector<std::shared_ptr<arrow::ArrayData>> children;
  for (const auto& field : type->fields()) {
    const int index = from.struct_type()->GetFieldIndex(field->name());
    ArrayPtr child;
    if (index >= 0) {
      GLAIVE_ASSIGN_OR_RETURN(child,
                              CastArray(from.field(index), field->type(), failure));
    } else {
      GLAIVE_ASSIGN_OR_RETURN(child,
                              arrow::MakeArrayOfNull(field->type(), array->length()));
    }
    children.push_back(child->data());
  }
  std::shared_ptr<arrow::Buffer> valid;
  if (array->null_count() > 0) {
    Words words(static_cast<size_t>(WordCount(array->length())) + 1);
    FillMask(words.data(), array->length(), true);
    AndValidity(*array, words.data());
    GLAIVE_ASSIGN_OR_RETURN(valid, ToBuffer(words, array->length()));
  }
  return arrow::MakeArray(arrow::ArrayData::Make(
      type, array->length(), {std::move(valid)}, std::move(children)));
}

Result<ArrayPtr> ToBytes(const ArrayPtr& array, const TypePtr& type,
                         CastFailure failure) {
  if (type->id() != Type::FIXED_SIZE_BINARY) return Plain(array, type);
  const KernelArgs args = Unary(array);
  const Texts values(args[0]);
  const auto width = static_cast<const arrow::FixedSizeBinaryType&>(*type).byte_width();
  Words valid(static_cast<size_t>(WordCount(args.rows)) + 1);
  CommonValidity(args, valid.data());
  std::string bytes(static_cast<size_t>(args.rows) * static_cast<size_t>(width), '\0');
  for (int64_t i = 0; i < args.rows; ++i) {
    if (!GetBit(valid.data(), i)) continue;
    const std::string_view value = values[i];
    if (value.size() == static_cast<size_t>(width)) {
      std::memcpy(bytes.data() + i * width, value.data(), value.size());
    } else if (failure == CastFailure::kNull) {
      ClearBit(valid.data(), i);
    } else {
      return InvalidInput("expression: a value of ", value.size(),
                          " bytes cannot be cast to ", type->ToString());
    }
  }
  GLAIVE_ASSIGN_OR_RETURN(auto bitmap, ToBuffer(valid, args.rows));
  return arrow::MakeArray(arrow::ArrayData::Make(
      type, args.rows, {bitmap, arrow::Buffer::FromString(std::move(bytes))}));
}

// The element types of two dictionary, list and struct types are checked in turn.
bool CanCast(const arrow::DataType& from, const arrow::DataType& to) {
  if (from.Equals(to) || from.id() == Type::NA) return true;
  if (from.id() == Type::DICTIONARY) {
    return CanCast(*static_cast<const arrow::DictionaryType&>(from).value_type(), to);
  }
  if (to.id() == Type::DICTIONARY) {
    const auto& dictionary = static_cast<const arrow::DictionaryType&>(to);
    return CanCast(from, *dictionary.value_type());
  }
  if (IsText(from)) {
    if (IsList(to)) {
      return to.id() != Type::FIXED_SIZE_LIST && CanCast(from, *ElementType(to));
    }
    return IsText(to) || IsBytes(to) || CanParse(to);
  }
  if (IsText(to)) return CanFormat(from);
  const auto number = [](const arrow::DataType& t) { return IsNumeric(t); };
  const bool from_bool = from.id() == Type::BOOL;
  const bool to_bool = to.id() == Type::BOOL;
  if (number(from) && number(to)) return true;
  if (from_bool && number(to)) return !arrow::is_decimal(to.id());
  if (number(from) && to_bool) return !arrow::is_decimal(from.id());
  const bool from_time = IsTemporal(from) && !IsInterval(from);
  const bool to_time = IsTemporal(to) && !IsInterval(to);
  if (from_time && to_time) {
    const auto instant = [](const arrow::DataType& t) {
      return arrow::is_date(t.id()) || t.id() == Type::TIMESTAMP;
    };
    if (instant(from) && (instant(to) || arrow::is_time(to.id()))) {
      return instant(to) || from.id() == Type::TIMESTAMP;
    }
    return (arrow::is_time(from.id()) && arrow::is_time(to.id())) ||
           (from.id() == Type::DURATION && to.id() == Type::DURATION);
  }
  if (from_time && number(to)) {
    return !arrow::is_decimal(to.id()) || from.id() == Type::TIMESTAMP ||
           from.id() == Type::DURATION;
  }
  if (to_time && number(from)) {
    return arrow::is_integer(from.id()) || to.id() == Type::TIMESTAMP ||
           to.id() == Type::DURATION;
  }
  if (IsBytes(from) && IsBytes(to)) return true;
  if (arrow::is_integer(from.id()) &&
      (to.id() == Type::BINARY || to.id() == Type::LARGE_BINARY)) {
    return true;
  }
  if (IsList(to) && !IsList(from)) {
    return to.id() != Type::FIXED_SIZE_LIST && from.id() != Type::STRUCT &&
           from.id() != Type::MAP && CanCast(from, *ElementType(to));
  }
  if (IsList(from) && IsList(to)) return CanCast(*ElementType(from), *ElementType(to));
  if (from.id() == Type::STRUCT && to.id() == Type::STRUCT) {
    bool overlap = false;
    for (const auto& field : to.fields()) {
      const auto source =
          static_cast<const arrow::StructType&>(from).GetFieldByName(field->name());
      if (source == nullptr) continue;
      overlap = true;
      if (!CanCast(*source->type(), *field->type())) return false;
    }
    return overlap;
  }
  return false;
}

// What upstream leaves out between numbers and times, and a few more.
bool UpstreamCasts(const arrow::DataType& from, const arrow::DataType& to) {
  const auto whole = [](const arrow::DataType& t) {
    return t.id() == Type::INT32 || t.id() == Type::INT64;
  };
  if (IsNumeric(from)) {
    if (arrow::is_date(to.id())) return whole(from);
    if (to.id() == Type::TIME32) return from.id() == Type::INT32;
    if (to.id() == Type::TIME64) return from.id() == Type::INT64;
  }
  if (IsNumeric(to)) {
    if (from.id() == Type::TIME64) return to.id() == Type::INT64;
    if (arrow::is_date(from.id()) || from.id() == Type::TIME32) return whole(to);
  }
  if (from.id() == Type::FIXED_SIZE_LIST || from.id() == Type::FIXED_SIZE_BINARY) {
    return !IsText(to);
  }
  return !(IsText(from) && to.id() == Type::FIXED_SIZE_BINARY);
}

}  // namespace

Result<arrow::Datum> CastTo(const arrow::Datum& value, const TypePtr& type) {
  const arrow::DataType& from = *value.type();
  if (from.Equals(*type)) return value;
  if (type->id() == Type::HALF_FLOAT && from.id() != Type::FLOAT &&
      from.id() != Type::DOUBLE) {
    GLAIVE_ASSIGN_OR_RETURN(arrow::Datum single,
                            PlainCast(value, arrow::float32(), true));
    return PlainCast(single, type, true);
  }
  // Text and lists need the slow road.
  const bool parses = IsText(from) && !IsText(*type) && !IsBytes(*type);
  const bool formats = IsText(*type) && !IsText(from) && from.id() != Type::NA &&
                       from.id() != Type::DICTIONARY;
  const bool nested = IsList(*type) || type->id() == Type::STRUCT;
  if (parses || formats || nested) {
    if (value.is_array()) {
      GLAIVE_ASSIGN_OR_RETURN(ArrayPtr cast,
                              CastArray(value.make_array(), type, CastFailure::kError));
      return arrow::Datum(std::move(cast));
    }
    GLAIVE_ASSIGN_OR_RETURN(ArrayPtr one, arrow::MakeArrayFromScalar(*value.scalar(), 1));
    GLAIVE_ASSIGN_OR_RETURN(one, CastArray(one, type, CastFailure::kError));
    GLAIVE_ASSIGN_OR_RETURN(auto scalar, one->GetScalar(0));
    return arrow::Datum(std::move(scalar));
  }
  if (!arrow::is_decimal(type->id())) return PlainCast(value, type, true);
  if (arrow::is_decimal(from.id())) return CastDecimal(value, type);
  if (arrow::is_integer(from.id())) {
    // Arrow wants room for every value of the integer type; only those there are must
    // fit.
    const int scale = static_cast<const arrow::DecimalType&>(*type).scale();
    const int digits = 20 + scale;
    const int precision = static_cast<const arrow::DecimalType&>(*type).precision();
    if (precision < digits && digits <= arrow::Decimal256Type::kMaxPrecision) {
      GLAIVE_ASSIGN_OR_RETURN(arrow::Datum roomy,
                              PlainCast(value, arrow::decimal256(digits, scale), false));
      return PlainCast(roomy, type, false);
    }
  }
  return PlainCast(value, type, false);
}

Status CheckUserCast(const arrow::DataType& from, const arrow::DataType& to) {
  GLAIVE_RETURN_NOT_OK(CheckCast(from, to));
  if (UpstreamCasts(from, to)) return Status::OK();
  return InvalidInput("expression: a value of type ", from.ToString(),
                      " cannot be cast to ", to.ToString());
}

Status CheckCast(const arrow::DataType& from, const arrow::DataType& to) {
  if (CanCast(from, to)) return Status::OK();
  return InvalidInput("expression: a value of type ", from.ToString(),
                      " cannot be cast to ", to.ToString());
}

Result<ArrayPtr> CastArray(const ArrayPtr& array, const TypePtr& type,
                           CastFailure failure) {
  const arrow::DataType& from = *array->type();
  if (from.Equals(*type)) return array;
  if (from.id() == Type::NA) return arrow::MakeArrayOfNull(type, array->length());
  GLAIVE_RETURN_NOT_OK(CheckCast(from, *type));
  if (from.id() == Type::DICTIONARY) {
    GLAIVE_ASSIGN_OR_RETURN(ArrayPtr values, Plain(array, ValueType(array->type())));
    return CastArray(values, type, failure);
  }
  if (type->id() == Type::DICTIONARY) {
    GLAIVE_ASSIGN_OR_RETURN(ArrayPtr values, CastArray(array, ValueType(type), failure));
    GLAIVE_ASSIGN_OR_RETURN(arrow::Datum encoded,
                            CallArrow("dictionary_encode", {values}));
    return Plain(encoded.make_array(), type);
  }
  if (IsList(*type) && !IsList(from)) return WrapInLists(array, type, failure);
  if (arrow::is_integer(from.id()) && IsBytes(*type)) return NumberToBytes(array, type);
  if (IsText(from)) {
    if (IsText(*type)) return Plain(array, type);
    if (IsBytes(*type)) return ToBytes(array, type, failure);
    return ParseText(array, type, failure);
  }
  if (IsText(*type)) return FormatText(array, type, failure);
  if (arrow::is_integer(type->id())) {
    if (IsTemporal(from)) return TemporalToNumber(array, type, failure);
    return ToInteger(array, type, failure);
  }
  if (arrow::is_decimal(type->id())) {
    if (!IsTemporal(from)) return ToDecimal(array, type, failure);
    return TemporalToNumber(array, type, failure);
  }
  if (IsTemporal(*type)) {
    if (IsTemporal(from)) return TemporalToTemporal(array, type);
    return NumberToTemporal(array, type, failure);
  }
  if (IsTemporal(from)) return TemporalToNumber(array, type, failure);
  if (type->id() == Type::BOOL && from.id() == Type::HALF_FLOAT) {
    GLAIVE_ASSIGN_OR_RETURN(ArrayPtr single, Plain(array, arrow::float32()));
    return Plain(single, type);
  }
  if (IsBytes(*type)) return ToBytes(array, type, failure);
  if (IsList(*type)) return CastList(array, type, failure);
  if (type->id() == Type::STRUCT) return CastStruct(array, type, failure);
  return Plain(array, type);
}

Result<ValuePtr> MakeCast(ValuePtr operand, TypePtr type, bool null_on_failure) {
  if (operand->type()->Equals(*type)) return operand;
  GLAIVE_RETURN_NOT_OK(CheckCast(*operand->type(), *type));
  const CastFailure failure = null_on_failure ? CastFailure::kNull : CastFailure::kError;
  return MakeKernel(type, {std::move(operand)},
                    [type, failure](const KernelArgs& args) -> Result<ArrayPtr> {
                      return CastArray(args[0].array, type, failure);
                    });
}

}  // namespace glaive::expr
