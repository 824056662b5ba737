// Functions on dates, times and timestamps.
#include <array>
#include <chrono>
#include <cmath>
#include <optional>

#include <arrow/array.h>
#include <arrow/array/util.h>
#include <arrow/scalar.h>
#include <arrow/type.h>
#include <arrow/type_traits.h>

#include "base/evaluation_error.h"
#include "expr/calendar.h"
#include "expr/coercion.h"
#include "expr/func_time_format.h"
#include "expr/function.h"
#include "expr/kernel.h"
#include "expr/literal.h"
#include "expr/temporal.h"
#include "expr/token.h"

namespace glaive::expr {
namespace {

using arrow::Type;
using Interval = arrow::MonthDayNanoIntervalType::MonthDayNanos;

enum class Part : uint8_t {
  kYear,
  kQuarter,
  kMonth,
  kWeek,
  kDay,
  kHour,
  kMinute,
  kSecond,
  kMillisecond,
  kMicrosecond,
  kNanosecond,
  kDayOfWeek,
  kDayOfYear,
  kIsoDayOfWeek,
  kIsoYear,
  kEpoch,
};

std::optional<Part> PartOf(std::string_view name) {
  struct Name {
    std::string_view name;
    Part part;
  };
  static constexpr std::array<Name, 50> kNames = {{
      {"year", Part::kYear},
      {"years", Part::kYear},
      {"y", Part::kYear},
      {"yr", Part::kYear},
      {"yrs", Part::kYear},
      {"quarter", Part::kQuarter},
      {"quarters", Part::kQuarter},
      {"month", Part::kMonth},
      {"months", Part::kMonth},
      {"mon", Part::kMonth},
      {"mons", Part::kMonth},
      {"week", Part::kWeek},
      {"weeks", Part::kWeek},
      {"w", Part::kWeek},
      {"day", Part::kDay},
      {"days", Part::kDay},
      {"d", Part::kDay},
      {"hour", Part::kHour},
      {"hours", Part::kHour},
      {"hr", Part::kHour},
      {"hrs", Part::kHour},
      {"h", Part::kHour},
      {"minute", Part::kMinute},
      {"minutes", Part::kMinute},
      {"min", Part::kMinute},
      {"mins", Part::kMinute},
      {"m", Part::kMinute},
      {"second", Part::kSecond},
      {"seconds", Part::kSecond},
      {"sec", Part::kSecond},
      {"secs", Part::kSecond},
      {"s", Part::kSecond},
      {"millisecond", Part::kMillisecond},
      {"milliseconds", Part::kMillisecond},
      {"msec", Part::kMillisecond},
      {"msecs", Part::kMillisecond},
      {"ms", Part::kMillisecond},
      {"microsecond", Part::kMicrosecond},
      {"microseconds", Part::kMicrosecond},
      {"usec", Part::kMicrosecond},
      {"usecs", Part::kMicrosecond},
      {"us", Part::kMicrosecond},
      {"nanosecond", Part::kNanosecond},
      {"nanoseconds", Part::kNanosecond},
      {"ns", Part::kNanosecond},
      {"dow", Part::kDayOfWeek},
      {"doy", Part::kDayOfYear},
      {"isodow", Part::kIsoDayOfWeek},
      {"isoyear", Part::kIsoYear},
      {"epoch", Part::kEpoch},
  }};
  for (const Name& entry : kNames) {
    if (entry.name == name) return entry.part;
  }
  return std::nullopt;
}

// An instant, cut into days and nanoseconds of the day.
struct Moment {
  int64_t days;
  int64_t nanos;
};

int IsoDay(int64_t days) {  // Monday is 1
  return static_cast<int>(days + 3 - FloorDivide(days + 3, 7) * 7) + 1;
}

// The week belongs to the year that holds its Thursday.
Civil IsoThursday(int64_t days) { return CivilFromDays(days - IsoDay(days) + 4); }

int64_t DayOfYear(int64_t days) {
  return days - DaysFromCivil(CivilFromDays(days).year, 1, 1) + 1;
}

int64_t PartValue(Part part, const Moment& at) {
  switch (part) {
    case Part::kYear:
      return CivilFromDays(at.days).year;
    case Part::kQuarter:
      return (CivilFromDays(at.days).month - 1) / 3 + 1;
    case Part::kMonth:
      return CivilFromDays(at.days).month;
    case Part::kWeek: {
      const Civil thursday = IsoThursday(at.days);
      const int64_t day = at.days - IsoDay(at.days) + 4;
      return (day - DaysFromCivil(thursday.year, 1, 1)) / 7 + 1;
    }
    case Part::kDay:
      return CivilFromDays(at.days).day;
    case Part::kHour:
      return at.nanos / (3600 * kSecondNanos);
    case Part::kMinute:
      return at.nanos / (60 * kSecondNanos) % 60;
    case Part::kSecond:
      return at.nanos / kSecondNanos % 60;
    case Part::kMillisecond:
      return at.nanos % (60 * kSecondNanos) / 1000000;
    case Part::kMicrosecond:
      return at.nanos % (60 * kSecondNanos) / 1000;
    case Part::kNanosecond:
      return at.nanos % (60 * kSecondNanos);
    case Part::kDayOfWeek:
      return IsoDay(at.days) % 7;
    case Part::kDayOfYear:
      return DayOfYear(at.days);
    case Part::kIsoDayOfWeek:
      return IsoDay(at.days);
    case Part::kIsoYear:
      return IsoThursday(at.days).year;
    case Part::kEpoch:
      break;
  }
  return 0;
}

// Wraps around where an instant at the end of its range is cut to a start before it.
int64_t AtDay(int64_t day, int64_t per_day, int64_t rest) {
  return static_cast<int64_t>(static_cast<uint64_t>(day) *
                                  static_cast<uint64_t>(per_day) +
                              static_cast<uint64_t>(rest));
}

int64_t PerSecondOf(const arrow::DataType& type) {
  if (type.id() == Type::TIMESTAMP) {
    return UnitsPerSecond(static_cast<const arrow::TimestampType&>(type).unit());
  }
  if (type.id() == Type::DURATION) {
    return UnitsPerSecond(static_cast<const arrow::DurationType&>(type).unit());
  }
  if (arrow::is_time(type.id())) {
    return UnitsPerSecond(static_cast<const arrow::TimeType&>(type).unit());
  }
  return 1000;
}

// Calls map(read) with a function from rows to moments.
template <typename Map>
Result<ArrayPtr> WithMoments(const KernelArgs& args, const Map& map) {
  const arrow::DataType& type = *args[0].array->type();
  if (type.id() == Type::DATE32) {
    const Numbers<int32_t> days(args[0]);
    return map(args, [=](int64_t i) { return Moment{days[i], 0}; });
  }
  const int64_t per_second = PerSecondOf(type);
  const int64_t per_day = per_second * kDaySeconds;
  const int64_t factor = kSecondNanos / per_second;
  if (type.id() == Type::TIME32) {
    const Numbers<int32_t> times(args[0]);
    return map(args, [=](int64_t i) { return Moment{0, times[i] * factor}; });
  }
  KernelArgs local = args;
  if (type.id() == Type::TIMESTAMP) {
    GLAIVE_ASSIGN_OR_RETURN(local.args[0].array, ToLocal(args[0].array));
  }
  const Numbers<int64_t> values(local[0]);
  return map(local, [=](int64_t i) {
    const int64_t value = values[i];
    const int64_t days = FloorDivide(value, per_day);
    return Moment{days, (value - days * per_day) * factor};
  });
}

// Text is read as a timestamp.
Result<ValuePtr> InstantArgument(const CallSite& call, size_t i) {
  const ValuePtr& argument = call.arguments[i];
  const TypePtr type = ValueType(argument->type());
  if (type->id() == Type::NA) return MakeNull(arrow::timestamp(arrow::TimeUnit::NANO));
  if (IsText(*type)) return MakeCast(argument, arrow::timestamp(arrow::TimeUnit::NANO));
  if (IsTemporal(*type)) return argument;
  return WrongArgument(call, i, "a date, a time or a timestamp");
}

Result<Part> PartArgument(const CallSite& call) {
  const arrow::Buffer* name = ConstantText(call.arguments[0]);
  if (name == nullptr && IsText(*ValueType(call.arguments[0]->type()))) {
    return EvaluationError("expression: function ", call.name,
                           " needs a constant string as its first argument");
  }
  if (name == nullptr) return WrongArgument(call, 0, "a constant string");
  std::string lower = ToLowerAscii(name->ToString());
  const auto part = PartOf(lower);
  if (!part) {
    return EvaluationError("expression: function ", call.name,
                           " does not know the part '", lower.substr(0, 50), "'");
  }
  return *part;
}

Result<ArrayPtr> Epoch(const KernelArgs& args) {
  const arrow::DataType& type = *args[0].array->type();
  const auto seconds = [&](const auto& values, double per_second) {
    return MapNumbers<double>(args, arrow::float64(), [&](int64_t i) {
      return static_cast<double>(values[i]) / per_second;
    });
  };
  if (type.id() == Type::DATE32) {
    return seconds(Numbers<int32_t>(args[0]), 1.0 / static_cast<double>(kDaySeconds));
  }
  const auto per_second = static_cast<double>(PerSecondOf(type));
  if (type.id() == Type::TIME32) return seconds(Numbers<int32_t>(args[0]), per_second);
  return seconds(Numbers<int64_t>(args[0]), per_second);
}

Status NoSuchPart(const CallSite& call, const arrow::DataType& type) {
  return EvaluationError("expression: function ", call.name,
                         " finds no such part in a value of type ", type.ToString());
}

// What an interval or a duration has of a part. Parts below the second are made of two,
// as upstream has it: of the seconds, and of the nanoseconds where int32 holds them.
int64_t SpanPart(Part part, int64_t seconds, Int128 nanos) {
  const auto whole = static_cast<int64_t>(nanos);
  const int64_t rest = nanos == static_cast<int32_t>(whole) ? whole : 0;
  switch (part) {
    case Part::kMillisecond:
      return seconds * 1000 + rest % kSecondNanos / 1000000;
    case Part::kMicrosecond:
      return seconds * 1000000 + rest % kSecondNanos / 1000;
    case Part::kNanosecond:
      return seconds * kSecondNanos + rest;
    default:
      return seconds;
  }
}

int64_t IntervalPart(Part part, const Interval& value) {
  switch (part) {
    case Part::kYear:
      return value.months / 12;
    case Part::kMonth:
      return value.months % 12;
    case Part::kWeek:
      return value.days / 7;
    case Part::kDay:
      return value.days;
    case Part::kHour:
      return value.nanoseconds / (3600 * kSecondNanos);
    case Part::kMinute:
      return value.nanoseconds / (60 * kSecondNanos) % 60;
    default:
      return SpanPart(part, value.nanoseconds / kSecondNanos % 60,
                      value.nanoseconds % (60 * kSecondNanos));
  }
}

// Durations are counted as a whole in each unit.
int64_t DurationPart(Part part, int64_t value, int64_t per_second) {
  const int64_t seconds = value / per_second;
  switch (part) {
    case Part::kWeek:
      return seconds / (7 * kDaySeconds);
    case Part::kDay:
      return seconds / kDaySeconds;
    case Part::kHour:
      return seconds / 3600;
    case Part::kMinute:
      return seconds / 60;
    default:
      return SpanPart(part, seconds,
                      static_cast<Int128>(value) * (kSecondNanos / per_second));
  }
}

// of(i): the part of row i.
template <typename Of>
Result<ArrayPtr> MapPart(const KernelArgs& args, Part part, const Of& of) {
  if (part == Part::kNanosecond) return MapNumbers<int64_t>(args, arrow::int64(), of);
  return MapNumbers<int32_t>(args, arrow::int32(),
                             [&](int64_t i) { return static_cast<int32_t>(of(i)); });
}

Result<ValuePtr> PartOfSpan(const CallSite& call, Part part, ValuePtr value) {
  const bool interval = IsInterval(*value->type());
  const bool known = part == Part::kEpoch || part == Part::kWeek || part == Part::kDay ||
                     (part >= Part::kHour && part <= Part::kNanosecond) ||
                     (interval && (part == Part::kYear || part == Part::kMonth));
  if (!known) return NoSuchPart(call, *value->type());
  if (part == Part::kEpoch && !interval) {
    return MakeKernel(arrow::float64(), {std::move(value)}, Epoch);
  }
  if (part == Part::kEpoch) {
    // A month has 30 days.
    return MakeKernel(arrow::float64(), {std::move(value)}, [](const KernelArgs& args) {
      const Numbers<Interval> values(args[0]);
      return MapNumbers<double>(args, arrow::float64(), [&](int64_t i) {
        const Interval at = values[i];
        const int64_t days = static_cast<int64_t>(at.months) * 30 + at.days;
        return static_cast<double>(days * kDaySeconds) +
               static_cast<double>(at.nanoseconds) / static_cast<double>(kSecondNanos);
      });
    });
  }
  const TypePtr type = part == Part::kNanosecond ? arrow::int64() : arrow::int32();
  const int64_t per_second = interval ? 1 : PerSecondOf(*value->type());
  return MakeKernel(type, {std::move(value)}, [=](const KernelArgs& args) {
    if (interval) {
      const Numbers<Interval> values(args[0]);
      return MapPart(args, part,
                     [&](int64_t i) { return IntervalPart(part, values[i]); });
    }
    const Numbers<int64_t> values(args[0]);
    return MapPart(args, part,
                   [&](int64_t i) { return DurationPart(part, values[i], per_second); });
  });
}

Result<ValuePtr> DatePart(CallSite call) {
  GLAIVE_ASSIGN_OR_RETURN(const Part part, PartArgument(call));
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr value, InstantArgument(call, 1));
  if (IsInterval(*value->type()) || value->type()->id() == Type::DURATION) {
    return PartOfSpan(call, part, std::move(value));
  }
  if (arrow::is_time(value->type()->id()) && part != Part::kEpoch &&
      (part < Part::kHour || part > Part::kNanosecond)) {
    return NoSuchPart(call, *value->type());
  }
  if (part == Part::kEpoch) {
    return MakeKernel(arrow::float64(), {std::move(value)}, Epoch);
  }
  const TypePtr type = part == Part::kNanosecond ? arrow::int64() : arrow::int32();
  return MakeKernel(type, {std::move(value)}, [part](const KernelArgs& args) {
    return WithMoments(args, [part](const KernelArgs& local, const auto& read) {
      return MapPart(local, part, [&](int64_t i) { return PartValue(part, read(i)); });
    });
  });
}

// Start of the day, month, ... that holds the moment, in days; nothing for parts of a
// day.
int64_t StartDay(Part part, int64_t days) {
  const Civil civil = CivilFromDays(days);
  switch (part) {
    case Part::kYear:
      return DaysFromCivil(civil.year, 1, 1);
    case Part::kQuarter:
      return DaysFromCivil(civil.year, (civil.month - 1) / 3 * 3 + 1, 1);
    case Part::kMonth:
      return DaysFromCivil(civil.year, civil.month, 1);
    case Part::kWeek:
      return days - IsoDay(days) + 1;
    default:
      return days;
  }
}

int64_t StepNanos(Part part) {
  switch (part) {
    case Part::kHour:
      return 3600 * kSecondNanos;
    case Part::kMinute:
      return 60 * kSecondNanos;
    case Part::kSecond:
      return kSecondNanos;
    case Part::kMillisecond:
      return 1000000;
    case Part::kMicrosecond:
      return 1000;
    default:
      return 0;  // a day or more
  }
}

// Times cut to multiples of `step` nanoseconds.
Result<ValuePtr> TimeSteps(ValuePtr value, int64_t step) {
  const TypePtr type = value->type();
  const int64_t factor = kSecondNanos / PerSecondOf(*type);
  const bool narrow = type->id() == Type::TIME32;
  return MakeKernel(type, {std::move(value)}, [=](const KernelArgs& args) {
    const auto cut = [=](int64_t time) {
      const int64_t nanos = time * factor;
      return (nanos - nanos % step) / factor;
    };
    if (narrow) {
      const Numbers<int32_t> times(args[0]);
      return MapNumbers<int32_t>(
          args, type, [&](int64_t i) { return static_cast<int32_t>(cut(times[i])); });
    }
    const Numbers<int64_t> times(args[0]);
    return MapNumbers<int64_t>(args, type, [&](int64_t i) { return cut(times[i]); });
  });
}

Result<ValuePtr> DateTrunc(CallSite call) {
  GLAIVE_ASSIGN_OR_RETURN(const Part part, PartArgument(call));
  if (part >= Part::kNanosecond) {
    return InvalidInput("expression: date_trunc cannot cut to this part");
  }
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr value, InstantArgument(call, 1));
  if (arrow::is_date(value->type()->id())) {
    GLAIVE_ASSIGN_OR_RETURN(
        value, MakeCast(std::move(value), arrow::timestamp(arrow::TimeUnit::NANO)));
  }
  const TypePtr type = value->type();
  const int64_t step = StepNanos(part);
  if (arrow::is_time(type->id())) {
    if (step == 0) return NoSuchPart(call, *type);
    return TimeSteps(std::move(value), step);
  }
  if (type->id() != Type::TIMESTAMP)
    return WrongArgument(call, 1, "a date, a time or a timestamp");
  const int64_t per_second = PerSecondOf(*type);
  return MakeKernel(
      type, {std::move(value)}, [=](const KernelArgs& args) -> Result<ArrayPtr> {
        TypePtr local_type;
        GLAIVE_ASSIGN_OR_RETURN(
            ArrayPtr cut,
            WithMoments(args, [&](const KernelArgs& local, const auto& read) {
              return MapNumbers<int64_t>(local, local[0].array->type(), [&](int64_t i) {
                const Moment at = read(i);
                if (step == 0)
                  return AtDay(StartDay(part, at.days), per_second * kDaySeconds, 0);
                const int64_t nanos = at.nanos - at.nanos % step;
                return AtDay(at.days, per_second * kDaySeconds,
                             nanos / (kSecondNanos / per_second));
              });
            }));
        return FromLocal(cut, type);
      });
}

// The start of the stretch of `step` that holds the instant; stretches are counted from
// `origin`.
Result<ValuePtr> DateBin(CallSite call) {
  const arrow::Buffer* text = ConstantText(call.arguments[0]);
  if (text != nullptr) {
    // As upstream has it, the result has nanoseconds then.
    GLAIVE_ASSIGN_OR_RETURN(call.arguments[1], InstantArgument(call, 1));
    GLAIVE_ASSIGN_OR_RETURN(
        call.arguments[1],
        MakeCast(std::move(call.arguments[1]), arrow::timestamp(arrow::TimeUnit::NANO)));
    const std::string shown = text->ToString().substr(0, 100);
    GLAIVE_ASSIGN_OR_RETURN(
        call.arguments[0],
        MakeCast(std::move(call.arguments[0]), arrow::month_day_nano_interval()));
    if (call.arguments[0]->constant() == nullptr) {
      return EvaluationError("expression: date_bin: '", shown,
                             "' is not an interval (like '15 minutes')");
    }
  }
  const TypePtr nanos_type = arrow::timestamp(arrow::TimeUnit::NANO);
  const auto* step = call.arguments[0]->constant();
  if (call.arguments[0]->type()->id() == Type::NA) return MakeNull(nanos_type);
  if (step == nullptr || !IsInterval(*(*step)->type) || !(*step)->is_valid) {
    return WrongArgument(call, 0, "a constant interval");
  }
  const Interval span =
      static_cast<const arrow::MonthDayNanoIntervalScalar&>(**step).value;
  Int128 nanos = static_cast<Int128>(span.days) * kDayNanos64 + span.nanoseconds;
  if (span.months != 0 && nanos != 0) {
    return EvaluationError(
        "expression: date_bin takes an interval of months, or one of days and times, not "
        "both");
  }
  if (span.months == 0 && nanos == 0) {
    return EvaluationError("expression: the interval of date_bin must not be zero");
  }
  // A stride below zero rounds towards the origin, not down.
  const bool inwards = nanos < 0 || span.months < 0;
  if (nanos < 0) nanos = -nanos;
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr value, InstantArgument(call, 1));
  if (arrow::is_time(value->type()->id())) {
    if (span.months != 0 || nanos >= kDayNanos64) {
      return EvaluationError("expression: date_bin of a time needs less than a day");
    }
    if (call.arguments.size() == 3) return WrongArgument(call, 1, "a timestamp");
    return TimeSteps(std::move(value), static_cast<int64_t>(nanos));
  }
  // Dates, and timestamps with a zone: in nanoseconds, as upstream has it.
  if (arrow::is_date(value->type()->id())) {
    GLAIVE_ASSIGN_OR_RETURN(value, MakeCast(std::move(value), nanos_type));
  } else if (value->type()->id() == Type::TIMESTAMP) {
    const auto& stamp = static_cast<const arrow::TimestampType&>(*value->type());
    if (!stamp.timezone().empty()) {
      const TypePtr zoned = arrow::timestamp(arrow::TimeUnit::NANO, stamp.timezone());
      GLAIVE_ASSIGN_OR_RETURN(value, MakeCast(std::move(value), zoned));
    }
  }
  const TypePtr type = value->type();
  if (type->id() != Type::TIMESTAMP)
    return WrongArgument(call, 1, "a date, a time or a timestamp");
  const int64_t per_second = PerSecondOf(*type);
  const int64_t factor = kSecondNanos / per_second;
  int64_t origin = 0;
  if (call.arguments.size() == 3) {
    // An origin without a zone is in UTC.
    const TypePtr given = ValueType(call.arguments[2]->type());
    const std::string zone =
        given->id() == Type::TIMESTAMP
            ? static_cast<const arrow::TimestampType&>(*given).timezone()
            : "";
    GLAIVE_ASSIGN_OR_RETURN(
        ValuePtr start,
        MakeCast(call.arguments[2],
                 arrow::timestamp(static_cast<const arrow::TimestampType&>(*type).unit(),
                                  zone)));
    if (start->constant() == nullptr || !(*start->constant())->is_valid) {
      return WrongArgument(call, 2, "a constant timestamp");
    }
    origin = static_cast<const arrow::TimestampScalar&>(**start->constant()).value;
  }
  const int64_t months = std::abs(static_cast<int64_t>(span.months));
  return MakeKernel(type, {std::move(value)}, [=](const KernelArgs& args) {
    const Numbers<int64_t> values(args[0]);
    const int64_t per_day = per_second * kDaySeconds;
    return MapNumbers<int64_t>(args, type, [&](int64_t i) {
      const int64_t instant = values[i];
      if (months == 0) {
        const Int128 distance = (static_cast<Int128>(instant) - origin) * factor;
        Int128 count = distance / nanos;
        if (distance % nanos != 0 && distance < 0 && !inwards) --count;
        return static_cast<int64_t>(origin + count * nanos / factor);
      }
      const int64_t day = FloorDivide(instant, per_day);
      const int64_t origin_day = FloorDivide(origin, per_day);
      const int64_t origin_rest = origin - origin_day * per_day;
      const Civil at = CivilFromDays(day);
      const Civil from = CivilFromDays(origin_day);
      const int64_t distance = (at.year - from.year) * 12 + at.month - from.month;
      int64_t count =
          inwards ? distance / months * months : FloorDivide(distance, months) * months;
      int64_t start = AtDay(AddMonths(origin_day, count), per_day, origin_rest);
      if (start > instant && !inwards) {
        count -= months;
        start = AtDay(AddMonths(origin_day, count), per_day, origin_rest);
      }
      return start;
    });
  });
}

int64_t NowNanos() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

// The moment when the expression is bound: one for all rows, as in SQL.
Result<ValuePtr> Now(CallSite) {
  return ConstantOf(std::make_shared<arrow::TimestampScalar>(
      NowNanos(), arrow::timestamp(arrow::TimeUnit::NANO)));
}
Result<ValuePtr> Today(CallSite) {
  return ConstantOf(std::make_shared<arrow::Date32Scalar>(
      static_cast<int32_t>(NowNanos() / kDayNanos64)));
}
Result<ValuePtr> CurrentTime(CallSite) {
  return ConstantOf(std::make_shared<arrow::Time64Scalar>(NowNanos() % kDayNanos64,
                                                          arrow::TimeUnit::NANO));
}

// The value to convert; patterns behind it say how text is to be read.
Result<ValuePtr> FirstByPatterns(const CallSite& call) {
  const TypePtr type = ValueType(call.arguments[0]->type());
  if (call.arguments.size() > 1 && IsText(*type)) return ParseByPatterns(call);
  return call.arguments[0];
}

// Numbers count in the unit that the name says; seconds for to_timestamp.
Result<ValuePtr> ToTimestamp(CallSite call) {
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr value, FirstByPatterns(call));
  auto unit = arrow::TimeUnit::NANO;
  if (call.name.ends_with("_seconds")) unit = arrow::TimeUnit::SECOND;
  if (call.name.ends_with("_millis")) unit = arrow::TimeUnit::MILLI;
  if (call.name.ends_with("_micros")) unit = arrow::TimeUnit::MICRO;
  const TypePtr type = arrow::timestamp(unit);
  const TypePtr from = ValueType(value->type());
  if (call.name == "to_timestamp" && IsNumeric(*from)) {
    if (arrow::is_integer(from->id())) {
      GLAIVE_ASSIGN_OR_RETURN(
          value, MakeCast(std::move(value), arrow::timestamp(arrow::TimeUnit::SECOND)));
      return MakeCast(std::move(value), type);
    }
    GLAIVE_ASSIGN_OR_RETURN(value, MakeCast(std::move(value), arrow::float64()));
    return MakeKernel(type, {std::move(value)}, [type](const KernelArgs& args) {
      const Numbers<double> seconds(args[0]);
      return MapNumbers<int64_t>(args, type, [&](int64_t i) {
        // Beyond the range is its end, as upstream has it.
        const double nanos = seconds[i] * 1e9;
        if (std::isnan(nanos)) return int64_t{0};
        if (nanos >= 9223372036854775807.0) return INT64_MAX;
        if (nanos <= -9223372036854775808.0) return INT64_MIN;
        return static_cast<int64_t>(nanos);
      });
    });
  }
  if (from->id() == Type::TIMESTAMP) {
    const auto& stamp = static_cast<const arrow::TimestampType&>(*from);
    return MakeCast(std::move(value), arrow::timestamp(unit, stamp.timezone()));
  }
  return MakeCast(std::move(value), type);
}

// What the clocks of its zone show, without the zone.
Result<ValuePtr> ToLocalTime(CallSite call) {
  const TypePtr from = call.arguments[0]->type();
  if (from->id() == Type::NA) return MakeNull(arrow::timestamp(arrow::TimeUnit::NANO));
  if (from->id() != Type::TIMESTAMP) return WrongArgument(call, 0, "a timestamp");
  return MakeKernel(
      arrow::timestamp(static_cast<const arrow::TimestampType&>(*from).unit()),
      std::move(call.arguments), [](const KernelArgs& args) -> Result<ArrayPtr> {
        GLAIVE_ASSIGN_OR_RETURN(ArrayPtr local, ToLocal(args[0].array));
        if (!args[0].constant() || args.rows == 1) return local;
        GLAIVE_ASSIGN_OR_RETURN(auto scalar, local->GetScalar(0));
        GLAIVE_ASSIGN_OR_RETURN(local, arrow::MakeArrayFromScalar(*scalar, args.rows));
        return local;
      });
}

Result<ValuePtr> ToDate(CallSite call) {
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr value, FirstByPatterns(call));
  return MakeCast(std::move(value), arrow::date32());
}

Result<ValuePtr> ToUnixTime(CallSite call) {
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr value, FirstByPatterns(call));
  const TypePtr from = ValueType(value->type());
  if (!IsNumeric(*from)) {
    GLAIVE_ASSIGN_OR_RETURN(
        value, MakeCast(std::move(value), arrow::timestamp(arrow::TimeUnit::SECOND)));
  }
  return MakeCast(std::move(value), arrow::int64());
}

Result<ValuePtr> FromUnixTime(CallSite call) {
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr value, FirstByPatterns(call));
  GLAIVE_ASSIGN_OR_RETURN(value, MakeCast(std::move(value), arrow::int64()));
  return MakeCast(std::move(value), arrow::timestamp(arrow::TimeUnit::SECOND));
}

Result<std::vector<ValuePtr>> ThreeNumbers(const CallSite& call) {
  std::vector<ValuePtr> operands;
  for (size_t i = 0; i < 3; ++i) {
    GLAIVE_ASSIGN_OR_RETURN(ValuePtr number, MakeCast(call.arguments[i], arrow::int32()));
    operands.push_back(std::move(number));
  }
  return operands;
}

Result<ValuePtr> MakeDate(CallSite call) {
  GLAIVE_ASSIGN_OR_RETURN(auto operands, ThreeNumbers(call));
  return MakeKernel(arrow::date32(), std::move(operands), [](const KernelArgs& args) {
    const Numbers<int32_t> years(args[0]);
    const Numbers<int32_t> months(args[1]);
    const Numbers<int32_t> days(args[2]);
    return TryMapNumbers<int32_t>(
        args, arrow::date32(), [&](int64_t i, int32_t* out) -> Result<bool> {
          constexpr int kMostYears = 250000;
          if (years[i] > kMostYears || years[i] < -kMostYears || months[i] < 1 ||
              months[i] > 12 || days[i] < 1 ||
              days[i] > DaysInMonth(years[i], months[i])) {
            return InvalidInput("expression: there is no date ", years[i], "-", months[i],
                                "-", days[i]);
          }
          *out = static_cast<int32_t>(DaysFromCivil(years[i], months[i], days[i]));
          return true;
        });
  });
}

Result<ValuePtr> MakeTime(CallSite call) {
  GLAIVE_ASSIGN_OR_RETURN(auto operands, ThreeNumbers(call));
  const TypePtr type = arrow::time32(arrow::TimeUnit::SECOND);
  return MakeKernel(type, std::move(operands), [type](const KernelArgs& args) {
    const Numbers<int32_t> hours(args[0]);
    const Numbers<int32_t> minutes(args[1]);
    const Numbers<int32_t> seconds(args[2]);
    return TryMapNumbers<int32_t>(
        args, type, [&](int64_t i, int32_t* out) -> Result<bool> {
          if (hours[i] < 0 || hours[i] > 23 || minutes[i] < 0 || minutes[i] > 59 ||
              seconds[i] < 0 || seconds[i] > 59) {
            return InvalidInput("expression: there is no time ", hours[i], ":",
                                minutes[i], ":", seconds[i]);
          }
          *out = hours[i] * 3600 + minutes[i] * 60 + seconds[i];
          return true;
        });
  });
}

}  // namespace

const std::vector<FunctionEntry>& TimeFunctions() {
  static const std::vector<FunctionEntry> functions = {
      {"current_date", 0, 0, Today},
      {"current_time", 0, 0, CurrentTime},
      {"current_timestamp", 0, 0, Now},
      {"date_bin", 2, 3, DateBin},
      {"date_part", 2, 2, DatePart},
      {"date_trunc", 2, 2, DateTrunc},
      {"datepart", 2, 2, DatePart},
      {"datetrunc", 2, 2, DateTrunc},
      {"from_unixtime", 1, 2, FromUnixTime},
      {"make_date", 3, 3, MakeDate},
      {"make_time", 3, 3, MakeTime},
      {"now", 0, 0, Now},
      {"to_date", 1, SIZE_MAX, ToDate},
      {"to_local_time", 1, 1, ToLocalTime},
      {"to_timestamp", 1, SIZE_MAX, ToTimestamp},
      {"to_timestamp_micros", 1, SIZE_MAX, ToTimestamp},
      {"to_timestamp_millis", 1, SIZE_MAX, ToTimestamp},
      {"to_timestamp_nanos", 1, SIZE_MAX, ToTimestamp},
      {"to_timestamp_seconds", 1, SIZE_MAX, ToTimestamp},
      {"to_unixtime", 1, SIZE_MAX, ToUnixTime},
      {"today", 0, 0, Today},
  };
  return functions;
}

}  // namespace glaive::expr
