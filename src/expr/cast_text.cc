// Casts from and to text.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

#include <arrow/array.h>
#include <arrow/type.h>
#include <arrow/type_traits.h>
#include <arrow/util/decimal.h>
#include <arrow/util/float16.h>
#include <arrow/util/utf8.h>

#include "expr/calendar.h"
#include "expr/cast.h"
#include "expr/coercion.h"
#include "expr/compare.h"
#include "expr/kernel.h"
#include "expr/token.h"

namespace glaive::expr {
namespace {

using arrow::Type;

std::string_view Trim(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  const size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

template <typename T>
bool ParseNumber(std::string_view text, T* out) {
  if (!text.empty() && text[0] == '+') {
    text.remove_prefix(1);
    if (!text.empty() && (text[0] == '-' || text[0] == '+')) return false;
  }
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, *out);
  if (result.ptr != end || text.empty()) return false;
  if (result.ec == std::errc()) return true;
  if constexpr (std::is_floating_point_v<T>) {
    if (result.ec == std::errc::result_out_of_range) {
      // Too large is infinite, too small is zero.
      const std::string copy(text);
      *out = static_cast<T>(std::strtod(copy.c_str(), nullptr));
      return true;
    }
  }
  return false;
}

bool ParseBool(std::string_view raw, bool* out) {
  const std::string text = ToLowerAscii(Trim(raw));
  for (std::string_view word : {"true", "yes", "on", "1"}) {
    const bool prefix = !text.empty() && word.starts_with(text) && text != "o";
    if (prefix) {
      *out = true;
      return true;
    }
  }
  for (std::string_view word : {"false", "no", "off", "0"}) {
    const bool prefix = !text.empty() && word.starts_with(text) && text != "o";
    if (prefix) {
      *out = false;
      return true;
    }
  }
  return false;
}

// Digits with at most one point; what is beyond the scale is rounded half away from zero.
template <typename Decimal>
bool ParseDecimal(std::string_view raw, int precision, int scale, Decimal* out) {
  std::string_view text = Trim(raw);
  bool negative = false;
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) {
    negative = text[0] == '-';
    text.remove_prefix(1);
  }
  std::string digits;
  int fraction = 0;
  bool point = false;
  bool round_up = false;
  for (char c : text) {
    if (c == '.') {
      if (point) return false;
      point = true;
    } else if (c >= '0' && c <= '9') {
      if (!point || fraction < scale) {
        digits.push_back(c);
        fraction += point ? 1 : 0;
      } else if (fraction == scale) {
        round_up = c >= '5';
        ++fraction;
      }
    } else {
      return false;
    }
  }
  digits.append(static_cast<size_t>(std::max(0, scale - fraction)), '0');
  digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size()));
  if (digits.size() > static_cast<size_t>(precision)) return false;
  Decimal value(0);
  if (!digits.empty()) {
    auto parsed = Decimal::FromString(digits);
    if (!parsed.ok()) return false;
    value = *parsed;
  }
  if (round_up) value += Decimal(1);
  if (!value.FitsInPrecision(precision)) return false;
  if (negative) value.Negate();
  *out = value;
  return true;
}

// Dates with one or two digits for month and day, and timestamps, whose time is dropped.
std::optional<int64_t> ParseDateText(std::string_view text) {
  if (const auto days = ParseDate(text)) return days;
  if (const auto nanos = ParseTimestamp(text)) {
    return static_cast<int64_t>(FloorDiv(*nanos, kDayNanos64).value);
  }
  int year = 0;
  int month = 0;
  int day = 0;
  int used = 0;
  const std::string copy(text);
  if (copy.size() <= 10 && copy.size() >= 8 && copy[0] >= '0' && copy[0] <= '9' &&
      std::sscanf(copy.c_str(), "%4d-%2d-%2d%n", &year, &month, &day, &used) == 3 &&
      static_cast<size_t>(used) == copy.size() && month >= 1 && month <= 12 && day >= 1 &&
      day <= DaysInMonth(year, month)) {
    return DaysFromCivil(year, month, day);
  }
  return std::nullopt;
}

// HH:MM, HH:MM:SS[.fraction], either with AM or PM.
std::optional<int64_t> ParseTimeText(std::string_view raw) {
  std::string_view text = Trim(raw);
  int noon = -1;
  if (text.size() > 3) {
    const std::string tail = ToLowerAscii(text.substr(text.size() - 3));
    if (tail == " am" || tail == " pm") {
      noon = tail == " pm" ? 1 : 0;
      text.remove_suffix(3);
    }
  }
  const auto nanos = ParseTime(text);
  if (!nanos) return std::nullopt;
  auto value = static_cast<int64_t>(*nanos);
  if (noon >= 0) {
    const int64_t hour = value / (3600 * kSecondNanos);
    if (hour < 1 || hour > 12) return std::nullopt;
    value += (noon * 12 + (hour == 12 ? -12 : 0)) * 3600 * kSecondNanos;
  }
  return value;
}

// parse(text, &value) -> bool
template <typename T, typename Parse>
Result<ArrayPtr> ParseWith(const ArrayPtr& array, const TypePtr& type,
                           CastFailure failure, const Parse& parse) {
  KernelArgs args;
  args.args.push_back({array, 1});
  args.rows = array->length();
  const Texts texts(args[0]);
  const auto one = [&](int64_t i, T* out) -> Result<bool> {
    if (parse(texts[i], out)) return true;
    if (failure == CastFailure::kNull) return false;
    return InvalidInput("expression: the text '", texts[i].substr(0, 100),
                        "' cannot be read as ", type->ToString());
  };
  if constexpr (std::is_same_v<T, bool>) {
    return TryMapBools(args, one);
  } else {
    return TryMapNumbers<T>(args, type, one);
  }
}

template <typename T>
Result<ArrayPtr> ParseNumbers(const ArrayPtr& array, const TypePtr& type,
                              CastFailure failure) {
  return ParseWith<T>(array, type, failure, [](std::string_view text, T* out) {
    return ParseNumber(text, out);
  });
}

bool StoreUnits(Int128 nanos, Int128 per_unit, int64_t* out) {
  const Int128 value = nanos / per_unit;
  *out = static_cast<int64_t>(value);
  return *out == value;
}

void AppendPadded(int64_t value, int width, std::string* out) {
  char digits[24];
  const int length = std::snprintf(digits, sizeof(digits), "%0*lld", width,
                                   static_cast<long long>(value));
  out->append(digits, static_cast<size_t>(length));
}

// ".123456" without trailing zeros in groups of three; nothing when zero.
void AppendFraction(int64_t nanos, std::string* out) {
  if (nanos == 0) return;
  out->push_back('.');
  if (nanos % 1000000 == 0) {
    AppendPadded(nanos / 1000000, 3, out);
  } else if (nanos % 1000 == 0) {
    AppendPadded(nanos / 1000, 6, out);
  } else {
    AppendPadded(nanos, 9, out);
  }
}

// Plain notation for common magnitudes, exponents elsewhere; always tells a float from an
// integer.
template <typename T>
void AppendFloatAs(T value, std::string* out) {
  if (std::isnan(value)) {
    out->append("NaN");
    return;
  }
  if (std::isinf(value)) {
    out->append(value < 0 ? "-inf" : "inf");
    return;
  }
  if (value == 0) {
    out->append(std::signbit(value) ? "-0.0" : "0.0");
    return;
  }
  char buffer[40];
  const auto result = std::to_chars(buffer, buffer + sizeof(buffer), value,
                                    std::chars_format::scientific);
  std::string_view text(buffer, static_cast<size_t>(result.ptr - buffer));
  if (text[0] == '-') {
    out->push_back('-');
    text.remove_prefix(1);
  }
  const size_t e = text.find('e');
  int exponent = 0;
  std::string_view power = text.substr(e + 1);
  if (power[0] == '+') power.remove_prefix(1);
  std::from_chars(power.data(), power.data() + power.size(), exponent);
  std::string digits(1, text[0]);
  if (e > 2) digits.append(text.substr(2, e - 2));
  const int count = static_cast<int>(digits.size());
  const int point = exponent + 1;  // digits in front of the point
  if (point > 0 && point <= 16) {
    if (count <= point) {
      out->append(digits).append(static_cast<size_t>(point - count), '0').append(".0");
    } else {
      out->append(digits, 0, static_cast<size_t>(point)).push_back('.');
      out->append(digits, static_cast<size_t>(point));
    }
  } else if (point > -5 && point <= 0) {
    out->append("0.").append(static_cast<size_t>(-point), '0').append(digits);
  } else {
    out->push_back(digits[0]);
    if (count > 1) out->append(".").append(digits, 1);
    out->append("e").append(std::to_string(exponent));
  }
}

void AppendDuration(int64_t value, arrow::TimeUnit::type unit, std::string* out) {
  const int64_t per_second = UnitsPerSecond(unit);
  const int64_t seconds = value / per_second;
  const int64_t rest = value % per_second;
  out->append(std::to_string(seconds / kDaySeconds) + " days ");
  out->append(std::to_string(seconds % kDaySeconds / 3600) + " hours ");
  out->append(std::to_string(seconds % 3600 / 60) + " mins ");
  if (value < 0 && seconds % 60 == 0 && rest != 0) out->push_back('-');
  out->append(std::to_string(seconds % 60));
  const int width = unit == arrow::TimeUnit::SECOND  ? 0
                    : unit == arrow::TimeUnit::MILLI ? 3
                    : unit == arrow::TimeUnit::MICRO ? 6
                                                     : 9;
  if (width > 0) {
    out->push_back('.');
    AppendPadded(std::abs(rest), width, out);
  }
  out->append(" secs");
}

// append(row, out)
template <typename Append>
Result<ArrayPtr> FormatWith(const ArrayPtr& array, const TypePtr& type,
                            const Append& append) {
  KernelArgs args;
  args.args.push_back({array, 1});
  args.rows = array->length();
  return MapText(args, type, [&](int64_t i, std::string* out) -> Result<bool> {
    append(i, out);
    return true;
  });
}

Result<ArrayPtr> FormatList(const ArrayPtr& array, const TypePtr& type) {
  arrow::ArrayData& data = *array->data();
  const ArrayPtr values = arrow::MakeArray(data.child_data[0]);
  GLAIVE_ASSIGN_OR_RETURN(ArrayPtr texts,
                          CastArray(values, arrow::large_utf8(), CastFailure::kError));
  const Texts items(Arg{texts, 1});
  const auto range = [&](int64_t i) -> std::pair<int64_t, int64_t> {
    switch (array->type_id()) {
      case Type::LIST: {
        const auto* offsets = data.GetValues<int32_t>(1);
        return {offsets[i], offsets[i + 1]};
      }
      case Type::LARGE_LIST: {
        const auto* offsets = data.GetValues<int64_t>(1);
        return {offsets[i], offsets[i + 1]};
      }
      default: {
        const int64_t size =
            static_cast<const arrow::FixedSizeListType&>(*data.type).list_size();
        return {(data.offset + i) * size, (data.offset + i + 1) * size};
      }
    }
  };
  return FormatWith(array, type, [&](int64_t i, std::string* out) {
    out->push_back('[');
    const auto [begin, end] = range(i);
    for (int64_t k = begin; k < end; ++k) {
      if (k > begin) out->append(", ");
      if (!texts->IsNull(k)) out->append(items[k]);
    }
    out->push_back(']');
  });
}

Result<ArrayPtr> FormatTimestamp(const ArrayPtr& array, const TypePtr& type) {
  const auto& stamp = static_cast<const arrow::TimestampType&>(*array->type());
  const auto unit = stamp.unit();
  if (stamp.timezone().empty()) {
    const Numbers<int64_t> values(Arg{array, 1});
    return FormatWith(array, type, [&](int64_t i, std::string* out) {
      AppendTimestamp(values[i], unit, out);
    });
  }
  // The local time, then how far it is from UTC.
  GLAIVE_ASSIGN_OR_RETURN(arrow::Datum datum, CallArrow("local_timestamp", {array}));
  const ArrayPtr local = datum.make_array();
  const Numbers<int64_t> instants(Arg{array, 1});
  const Numbers<int64_t> locals(Arg{local, 1});
  const bool utc = stamp.timezone() == "UTC";
  return FormatWith(array, type, [&](int64_t i, std::string* out) {
    AppendTimestamp(locals[i], unit, out);
    const int64_t offset = (locals[i] - instants[i]) / UnitsPerSecond(unit) / 60;
    if (utc) {
      out->push_back('Z');
      return;
    }
    out->push_back(offset < 0 ? '-' : '+');
    AppendPadded(std::abs(offset) / 60, 2, out);
    out->push_back(':');
    AppendPadded(std::abs(offset) % 60, 2, out);
  });
}

}  // namespace

void AppendFloat(double value, std::string* out) { AppendFloatAs(value, out); }
void AppendFloat(float value, std::string* out) { AppendFloatAs(value, out); }

void AppendDate(int64_t days, std::string* out) {
  const Civil civil = CivilFromDays(days);
  if (civil.year < 0 || civil.year > 9999) out->push_back(civil.year < 0 ? '-' : '+');
  AppendPadded(std::abs(civil.year), 4, out);
  out->push_back('-');
  AppendPadded(civil.month, 2, out);
  out->push_back('-');
  AppendPadded(civil.day, 2, out);
}

void AppendTime(int64_t nanos, std::string* out) {
  const int64_t seconds = nanos / kSecondNanos;
  AppendPadded(seconds / 3600, 2, out);
  out->push_back(':');
  AppendPadded(seconds / 60 % 60, 2, out);
  out->push_back(':');
  AppendPadded(seconds % 60, 2, out);
  AppendFraction(nanos % kSecondNanos, out);
}

void AppendTimestamp(int64_t value, arrow::TimeUnit::type unit, std::string* out) {
  const int64_t per_second = UnitsPerSecond(unit);
  const int64_t days = FloorDivide(value, per_second * kDaySeconds);
  const int64_t rest = value - days * per_second * kDaySeconds;
  AppendDate(days, out);
  out->push_back('T');
  AppendTime(rest * (kSecondNanos / per_second), out);
}

std::optional<MonthDayNano> ParseInterval(std::string_view raw) {
  std::string text = ToLowerAscii(Trim(raw));
  MonthDayNano interval;
  double months = 0;
  double days = 0;
  double nanos = 0;
  size_t at = 0;
  bool any = false;
  const auto skip = [&] {
    while (at < text.size() && (text[at] == ' ' || text[at] == ',')) ++at;
  };
  for (skip(); at < text.size(); skip()) {
    const char* begin = text.c_str() + at;
    if (std::string_view("+-.0123456789").find(*begin) == std::string_view::npos) {
      return std::nullopt;
    }
    char* end = nullptr;
    // A unit may follow at once; its letters are no exponent.
    const size_t length = std::strspn(begin, "+-.0123456789");
    const std::string number(begin, length);
    const double value = std::strtod(number.c_str(), &end);
    if (*end != '\0' || number.empty()) return std::nullopt;
    at += length;
    skip();
    size_t stop = at;
    while (stop < text.size() && text[stop] >= 'a' && text[stop] <= 'z') ++stop;
    std::string unit = text.substr(at, stop - at);
    at = stop;
    if (unit.size() > 1 && unit.back() == 's' && unit != "ms" && unit != "us" &&
        unit != "ns") {
      unit.pop_back();
    }
    any = true;
    const auto is = [&](std::initializer_list<std::string_view> names) {
      return std::find(names.begin(), names.end(), unit) != names.end();
    };
    if (is({"", "month", "mon"})) {
      months += value;
    } else if (is({"century", "centurie", "c"})) {
      months += value * 1200;
    } else if (is({"decade", "dec"})) {
      months += value * 120;
    } else if (is({"year", "yr", "y"})) {
      months += value * 12;
    } else if (is({"week", "w"})) {
      days += value * 7;
    } else if (is({"day", "d"})) {
      days += value;
    } else if (is({"hour", "hr", "h"})) {
      nanos += value * 3600e9;
    } else if (is({"minute", "min", "m"})) {
      nanos += value * 60e9;
    } else if (is({"second", "sec", "s"})) {
      nanos += value * 1e9;
    } else if (is({"millisecond", "msec", "ms", "milli"})) {
      nanos += value * 1e6;
    } else if (is({"microsecond", "usec", "us", "micro"})) {
      nanos += value * 1e3;
    } else if (is({"nanosecond", "nsec", "ns", "nano"})) {
      nanos += value;
    } else {
      return std::nullopt;
    }
  }
  if (!any) return std::nullopt;
  // Parts of a month are days of thirty, parts of a day are hours.
  const double whole_months = std::trunc(months);
  days += (months - whole_months) * 30;
  const double whole_days = std::trunc(days);
  nanos += (days - whole_days) * 86400e9;
  if (std::abs(whole_months) > 2e9 || std::abs(whole_days) > 2e9 ||
      std::abs(nanos) > 9e18) {
    return std::nullopt;
  }
  interval.months = static_cast<int32_t>(whole_months);
  interval.days = static_cast<int32_t>(whole_days);
  interval.nanos = static_cast<int64_t>(std::llround(nanos));
  return interval;
}

bool CanParse(const arrow::DataType& type) {
  return arrow::is_integer(type.id()) || arrow::is_floating(type.id()) ||
         type.id() == Type::BOOL || arrow::is_decimal(type.id()) ||
         arrow::is_date(type.id()) || arrow::is_time(type.id()) ||
         type.id() == Type::TIMESTAMP || IsInterval(type);
}

// Texts that name no zone say what clocks in the zone of `type` show. `instants`: what
// they would be in UTC.
Result<ArrayPtr> InZone(const ArrayPtr& texts, const ArrayPtr& instants,
                        const TypePtr& type) {
  const Texts text(Arg{texts, 1});
  std::vector<bool> local(static_cast<size_t>(texts->length()));
  bool any = false;
  for (int64_t i = 0; i < texts->length(); ++i) {
    bool zoned = false;
    if (instants->IsNull(i) || !ParseTimestamp(text[i], &zoned) || zoned) continue;
    local[static_cast<size_t>(i)] = any = true;
  }
  if (!any) return instants;
  const auto unit = static_cast<const arrow::TimestampType&>(*type).unit();
  auto plain = instants->View(arrow::timestamp(unit));
  GLAIVE_RETURN_NOT_OK(plain.status());
  GLAIVE_ASSIGN_OR_RETURN(const ArrayPtr shown,
                          CastArray(*plain, type, CastFailure::kError));
  const KernelArgs args{{Arg{instants, 1}}, instants->length()};
  const Numbers<int64_t> as_utc(args[0]);
  const Numbers<int64_t> in_zone(Arg{shown, 1});
  return MapNumbers<int64_t>(args, type, [&](int64_t i) {
    return local[static_cast<size_t>(i)] ? in_zone[i] : as_utc[i];
  });
}

Result<ArrayPtr> ParseText(const ArrayPtr& array, const TypePtr& type,
                           CastFailure failure) {
  switch (type->id()) {
    case Type::BOOL:
      return ParseWith<bool>(array, type, failure, ParseBool);
    case Type::INT8:
      return ParseNumbers<int8_t>(array, type, failure);
    case Type::UINT8:
      return ParseNumbers<uint8_t>(array, type, failure);
    case Type::INT16:
      return ParseNumbers<int16_t>(array, type, failure);
    case Type::UINT16:
      return ParseNumbers<uint16_t>(array, type, failure);
    case Type::INT32:
      return ParseNumbers<int32_t>(array, type, failure);
    case Type::UINT32:
      return ParseNumbers<uint32_t>(array, type, failure);
    case Type::INT64:
      return ParseNumbers<int64_t>(array, type, failure);
    case Type::UINT64:
      return ParseNumbers<uint64_t>(array, type, failure);
    case Type::FLOAT:
      return ParseNumbers<float>(array, type, failure);
    case Type::DOUBLE:
      return ParseNumbers<double>(array, type, failure);
    case Type::HALF_FLOAT: {
      GLAIVE_ASSIGN_OR_RETURN(ArrayPtr wide,
                              ParseNumbers<float>(array, arrow::float32(), failure));
      return CastArray(wide, type, failure);
    }
    case Type::DECIMAL128:
    case Type::DECIMAL256: {
      const auto& decimal = static_cast<const arrow::DecimalType&>(*type);
      const int precision = decimal.precision();
      const int scale = decimal.scale();
      if (type->id() == Type::DECIMAL128) {
        return ParseWith<arrow::Decimal128>(
            array, type, failure, [&](std::string_view text, arrow::Decimal128* out) {
              return ParseDecimal(text, precision, scale, out);
            });
      }
      return ParseWith<arrow::Decimal256>(
          array, type, failure, [&](std::string_view text, arrow::Decimal256* out) {
            return ParseDecimal(text, precision, scale, out);
          });
    }
    case Type::DATE32:
      return ParseWith<int32_t>(array, type, failure,
                                [](std::string_view text, int32_t* out) {
                                  const auto days = ParseDateText(text);
                                  if (days) *out = static_cast<int32_t>(*days);
                                  return days.has_value();
                                });
    case Type::DATE64:
    case Type::TIMESTAMP: {
      const auto unit = type->id() == Type::DATE64
                            ? arrow::TimeUnit::MILLI
                            : static_cast<const arrow::TimestampType&>(*type).unit();
      const Int128 per_unit = kSecondNanos / UnitsPerSecond(unit);
      GLAIVE_ASSIGN_OR_RETURN(
          ArrayPtr instants,
          ParseWith<int64_t>(array, type, failure,
                             [&](std::string_view text, int64_t* out) {
                               const auto nanos = ParseTimestamp(text);
                               return nanos && StoreUnits(*nanos, per_unit, out);
                             }));
      if (type->id() == Type::DATE64) return instants;
      const std::string& zone =
          static_cast<const arrow::TimestampType&>(*type).timezone();
      if (zone.empty() || zone == "UTC") return instants;
      return InZone(array, instants, type);
    }
    case Type::TIME32:
    case Type::TIME64: {
      const int64_t per_unit =
          kSecondNanos /
          UnitsPerSecond(static_cast<const arrow::TimeType&>(*type).unit());
      const auto parse = [&](std::string_view text, auto* out) {
        const auto nanos = ParseTimeText(text);
        if (nanos) *out = static_cast<std::decay_t<decltype(*out)>>(*nanos / per_unit);
        return nanos.has_value();
      };
      if (type->id() == Type::TIME32) {
        return ParseWith<int32_t>(array, type, failure, parse);
      }
      return ParseWith<int64_t>(array, type, failure, parse);
    }
    default:
      return ParseWith<arrow::MonthDayNanoIntervalType::MonthDayNanos>(
          array, type, failure, [](std::string_view text, auto* out) {
            const auto interval = ParseInterval(text);
            if (interval) *out = {interval->months, interval->days, interval->nanos};
            return interval.has_value();
          });
  }
}

bool CanFormat(const arrow::DataType& type) {
  if (IsList(type))
    return CanFormat(*type.field(0)->type()) || IsText(*type.field(0)->type());
  return IsNumeric(type) || type.id() == Type::BOOL || IsBytes(type) ||
         arrow::is_date(type.id()) || arrow::is_time(type.id()) ||
         type.id() == Type::TIMESTAMP || type.id() == Type::DURATION ||
         type.id() == Type::NA;
}

Result<ArrayPtr> FormatText(const ArrayPtr& array, const TypePtr& type,
                            CastFailure failure) {
  const Arg arg{array, 1};
  if (IsList(*array->type())) return FormatList(array, type);
  if (IsBytes(*array->type())) {
    const Texts bytes(arg);
    KernelArgs args;
    args.args.push_back(arg);
    args.rows = array->length();
    arrow::util::InitializeUTF8();
    return MapText(args, type, [&](int64_t i, std::string* out) -> Result<bool> {
      if (arrow::util::ValidateUTF8(bytes[i])) {
        out->append(bytes[i]);
        return true;
      }
      if (failure == CastFailure::kNull) return false;
      return InvalidInput("expression: binary data that is no UTF-8 cannot be cast to ",
                          type->ToString());
    });
  }
  switch (array->type_id()) {
    case Type::HALF_FLOAT: {
      const Numbers<uint16_t> values(arg);
      return FormatWith(array, type, [&](int64_t i, std::string* out) {
        AppendFloat(arrow::util::Float16::FromBits(values[i]).ToFloat(), out);
      });
    }
    case Type::FLOAT: {
      const Numbers<float> values(arg);
      return FormatWith(
          array, type, [&](int64_t i, std::string* out) { AppendFloat(values[i], out); });
    }
    case Type::DOUBLE: {
      const Numbers<double> values(arg);
      return FormatWith(
          array, type, [&](int64_t i, std::string* out) { AppendFloat(values[i], out); });
    }
    case Type::DATE32: {
      const Numbers<int32_t> values(arg);
      return FormatWith(array, type,
                        [&](int64_t i, std::string* out) { AppendDate(values[i], out); });
    }
    case Type::DATE64: {
      const Numbers<int64_t> values(arg);
      return FormatWith(array, type, [&](int64_t i, std::string* out) {
        AppendTimestamp(values[i], arrow::TimeUnit::MILLI, out);
      });
    }
    case Type::TIME32:
    case Type::TIME64: {
      const int64_t factor =
          kSecondNanos /
          UnitsPerSecond(static_cast<const arrow::TimeType&>(*array->type()).unit());
      if (array->type_id() == Type::TIME32) {
        const Numbers<int32_t> values(arg);
        return FormatWith(array, type, [&](int64_t i, std::string* out) {
          AppendTime(values[i] * factor, out);
        });
      }
      const Numbers<int64_t> values(arg);
      return FormatWith(array, type, [&](int64_t i, std::string* out) {
        AppendTime(values[i] * factor, out);
      });
    }
    case Type::TIMESTAMP:
      return FormatTimestamp(array, type);
    case Type::DURATION: {
      const Numbers<int64_t> values(arg);
      const auto unit = static_cast<const arrow::DurationType&>(*array->type()).unit();
      return FormatWith(array, type, [&](int64_t i, std::string* out) {
        AppendDuration(values[i], unit, out);
      });
    }
    case Type::BOOL: {
      const Bools values(arg);
      return FormatWith(array, type, [&](int64_t i, std::string* out) {
        out->append(values[i] ? "true" : "false");
      });
    }
    case Type::DECIMAL128: {
      const auto& decimals = static_cast<const arrow::Decimal128Array&>(*array);
      return FormatWith(array, type, [&](int64_t i, std::string* out) {
        out->append(decimals.FormatValue(i));
      });
    }
    case Type::DECIMAL256: {
      const auto& decimals = static_cast<const arrow::Decimal256Array&>(*array);
      return FormatWith(array, type, [&](int64_t i, std::string* out) {
        out->append(decimals.FormatValue(i));
      });
    }
    case Type::UINT64: {
      const Numbers<uint64_t> values(arg);
      return FormatWith(array, type, [&](int64_t i, std::string* out) {
        out->append(std::to_string(values[i]));
      });
    }
    default: {
      GLAIVE_ASSIGN_OR_RETURN(arrow::Datum wide, CastTo(array, arrow::int64()));
      const ArrayPtr numbers = wide.make_array();
      const Numbers<int64_t> values(Arg{numbers, 1});
      return FormatWith(array, type, [&](int64_t i, std::string* out) {
        out->append(std::to_string(values[i]));
      });
    }
  }
}

}  // namespace glaive::expr
