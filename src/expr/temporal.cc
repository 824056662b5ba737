// The operators + and - on dates, times, timestamps, durations and intervals.
#include "expr/temporal.h"

#include <arrow/array.h>
#include <arrow/compute/api.h>
#include <arrow/type.h>
#include <arrow/type_traits.h>

#include "expr/calendar.h"
#include "expr/coercion.h"
#include "expr/function.h"
#include "expr/kernel.h"
#include "expr/literal.h"

namespace glaive::expr {
namespace {

using arrow::Type;
using Interval = arrow::MonthDayNanoIntervalType::MonthDayNanos;

MonthDayNano Plain(const Interval& value) {
  return {value.months, value.days, value.nanoseconds};
}

Status OutOfRange() {
  return InvalidInput("expression: the date or time is out of range");
}

int64_t PerSecond(const arrow::DataType& type) {
  switch (type.id()) {
    case Type::TIMESTAMP:
      return UnitsPerSecond(static_cast<const arrow::TimestampType&>(type).unit());
    case Type::DURATION:
      return UnitsPerSecond(static_cast<const arrow::DurationType&>(type).unit());
    case Type::TIME32:
    case Type::TIME64:
      return UnitsPerSecond(static_cast<const arrow::TimeType&>(type).unit());
    default:
      return 1000;  // date64
  }
}

Result<ArrayPtr> MoveInstants(const KernelArgs& args, const TypePtr& type, int sign) {
  const Numbers<Interval> intervals(args[1]);
  if (type->id() == Type::DATE32) {
    const Numbers<int32_t> days(args[0]);
    return TryMapNumbers<int32_t>(
        args, type, [&](int64_t i, int32_t* out) -> Result<bool> {
          // Only whole days of the interval's time move a date.
          MonthDayNano interval = Plain(intervals[i]);
          interval.nanos -= interval.nanos % kDayNanos64;
          const auto moved =
              AddInterval(static_cast<int64_t>(days[i]) * kDaySeconds, 1, interval, sign);
          if (!moved) return OutOfRange();
          const int64_t day = FloorDivide(*moved, kDaySeconds);
          *out = static_cast<int32_t>(day);
          if (*out != day) return OutOfRange();
          return true;
        });
  }
  const int64_t per_second = PerSecond(*type);
  KernelArgs local = args;
  if (type->id() == Type::TIMESTAMP) {
    GLAIVE_ASSIGN_OR_RETURN(local.args[0].array, ToLocal(args[0].array));
  }
  const Numbers<int64_t> values(local[0]);
  const TypePtr plain = local[0].array->type();
  GLAIVE_ASSIGN_OR_RETURN(
      ArrayPtr moved,
      TryMapNumbers<int64_t>(local, plain, [&](int64_t i, int64_t* out) -> Result<bool> {
        const auto value = AddInterval(values[i], per_second, Plain(intervals[i]), sign);
        if (!value) return OutOfRange();
        *out = *value;
        return true;
      }));
  return FromLocal(moved, type);
}

// combine(a, b, &out) is false on overflow.
template <typename T, typename Combine>
ValuePtr Pairwise(const TypePtr& type, ValuePtr left, ValuePtr right,
                  const Combine& combine) {
  return MakeKernel(
      type, {std::move(left), std::move(right)}, [type, combine](const KernelArgs& args) {
        const Numbers<T> a(args[0]);
        const Numbers<T> b(args[1]);
        return TryMapNumbers<T>(args, type, [&](int64_t i, T* out) -> Result<bool> {
          if (combine(a[i], b[i], out)) return true;
          return OutOfRange();
        });
      });
}

bool AddWhole(int64_t a, int64_t b, int64_t* out) {
  return !__builtin_add_overflow(a, b, out);
}
bool SubtractWhole(int64_t a, int64_t b, int64_t* out) {
  return !__builtin_sub_overflow(a, b, out);
}

bool CombineIntervals(const Interval& a, const Interval& b, int sign, Interval* out) {
  if (sign > 0) {
    return !__builtin_add_overflow(a.months, b.months, &out->months) &&
           !__builtin_add_overflow(a.days, b.days, &out->days) &&
           !__builtin_add_overflow(a.nanoseconds, b.nanoseconds, &out->nanoseconds);
  }
  return !__builtin_sub_overflow(a.months, b.months, &out->months) &&
         !__builtin_sub_overflow(a.days, b.days, &out->days) &&
         !__builtin_sub_overflow(a.nanoseconds, b.nanoseconds, &out->nanoseconds);
}

// Times of a day as intervals, so that more than a day has a place.
Result<ValuePtr> TimeAsInterval(ValuePtr time) {
  const TypePtr nanos = arrow::time64(arrow::TimeUnit::NANO);
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr value, MakeCast(std::move(time), nanos));
  return MakeKernel(arrow::month_day_nano_interval(), {std::move(value)},
                    [](const KernelArgs& args) {
                      const Numbers<int64_t> values(args[0]);
                      return MapNumbers<Interval>(args, arrow::month_day_nano_interval(),
                                                  [&](int64_t i) {
                                                    return Interval{0, 0, values[i]};
                                                  });
                    });
}

Result<ValuePtr> DateAsTimestamp(ValuePtr value, const TypePtr& type) {
  return MakeCast(std::move(value), type);
}

Result<ValuePtr> Difference(ValuePtr left, ValuePtr right) {
  const TypePtr a = left->type();
  const TypePtr b = right->type();
  if (a->id() == Type::DATE32 && b->id() == Type::DATE32) {
    GLAIVE_ASSIGN_OR_RETURN(left, MakeCast(std::move(left), arrow::int64()));
    GLAIVE_ASSIGN_OR_RETURN(right, MakeCast(std::move(right), arrow::int64()));
    return MakeArithmetic("-", std::move(left), std::move(right), false);
  }
  auto unit = arrow::TimeUnit::NANO;  // as soon as a date is among them
  if (a->id() == Type::TIMESTAMP && b->id() == Type::TIMESTAMP) {
    unit = std::max(static_cast<const arrow::TimestampType&>(*a).unit(),
                    static_cast<const arrow::TimestampType&>(*b).unit());
  }
  // What counts are the instants; zones do not matter.
  GLAIVE_ASSIGN_OR_RETURN(left, DateAsTimestamp(std::move(left), arrow::timestamp(unit)));
  GLAIVE_ASSIGN_OR_RETURN(right,
                          DateAsTimestamp(std::move(right), arrow::timestamp(unit)));
  return Pairwise<int64_t>(arrow::duration(unit), std::move(left), std::move(right),
                           SubtractWhole);
}

Result<ValuePtr> WithDuration(const std::string& op, ValuePtr instant,
                              ValuePtr duration) {
  TypePtr type = instant->type();
  const auto span_unit =
      static_cast<const arrow::DurationType&>(*duration->type()).unit();
  if (type->id() == Type::DURATION) {
    type = arrow::duration(
        std::max(span_unit, static_cast<const arrow::DurationType&>(*type).unit()));
  } else {
    const auto& stamp = static_cast<const arrow::TimestampType&>(*type);
    type = arrow::timestamp(std::max(span_unit, stamp.unit()), stamp.timezone());
  }
  const auto unit = type->id() == Type::DURATION
                        ? static_cast<const arrow::DurationType&>(*type).unit()
                        : static_cast<const arrow::TimestampType&>(*type).unit();
  ValuePtr left = Coerce(std::move(instant), type);
  ValuePtr right = Coerce(std::move(duration), arrow::duration(unit));
  return Pairwise<int64_t>(type, std::move(left), std::move(right),
                           op == "+" ? AddWhole : SubtractWhole);
}

Result<ValuePtr> MovedDays(ValuePtr date, ValuePtr days, bool subtract) {
  GLAIVE_ASSIGN_OR_RETURN(date, MakeCast(std::move(date), arrow::int64()));
  GLAIVE_ASSIGN_OR_RETURN(days, MakeCast(std::move(days), arrow::int64()));
  GLAIVE_ASSIGN_OR_RETURN(
      ValuePtr moved,
      MakeArithmetic(subtract ? "-" : "+", std::move(date), std::move(days), false));
  return MakeCast(std::move(moved), arrow::date32());
}

}  // namespace

Result<ArrayPtr> ToLocal(const ArrayPtr& array) {
  const auto& type = static_cast<const arrow::TimestampType&>(*array->type());
  if (type.timezone().empty()) return array;
  if (type.timezone() == "UTC") return array->View(arrow::timestamp(type.unit()));
  GLAIVE_ASSIGN_OR_RETURN(arrow::Datum local, CallArrow("local_timestamp", {array}));
  return local.make_array();
}

Result<ArrayPtr> FromLocal(const ArrayPtr& array, const TypePtr& zoned) {
  if (array->type()->Equals(*zoned)) return array;
  return CastArray(array, zoned, CastFailure::kError);
}

std::optional<int64_t> AddInterval(int64_t value, int64_t per_second,
                                   const MonthDayNano& interval, int sign) {
  const int64_t per_day = per_second * kDaySeconds;
  int64_t days = FloorDivide(value, per_day);
  const int64_t rest = value - days * per_day;
  if (interval.months != 0) {
    days = AddMonths(days, static_cast<int64_t>(interval.months) * sign);
  }
  days += static_cast<int64_t>(interval.days) * sign;
  const Int128 nanos = static_cast<Int128>(interval.nanos) * sign;
  const Int128 moved =
      static_cast<Int128>(days) * per_day + rest + nanos / (kSecondNanos / per_second);
  if (moved > INT64_MAX || moved < INT64_MIN) return std::nullopt;
  return static_cast<int64_t>(moved);
}

Result<ValuePtr> TemporalArithmetic(const std::string& op, ValuePtr left,
                                    ValuePtr right) {
  const TypePtr a = left->type();
  const TypePtr b = right->type();
  const auto refuse = [&]() -> Status {
    return InvalidInput("expression: operator ", op, " cannot be applied to ",
                        a->ToString(), " and ", b->ToString());
  };
  const bool plus = op == "+";
  const auto instant = [](const TypePtr& t) {
    return arrow::is_date(t->id()) || t->id() == Type::TIMESTAMP;
  };
  if (op == "*" && (IsInterval(*a) || IsInterval(*b))) {
    ValuePtr interval = IsInterval(*a) ? left : right;
    ValuePtr factor = IsInterval(*a) ? right : left;
    if (!arrow::is_integer(factor->type()->id())) return refuse();
    factor = Coerce(std::move(factor), arrow::int64());
    return MakeKernel(
        arrow::month_day_nano_interval(), {std::move(interval), std::move(factor)},
        [](const KernelArgs& args) {
          const Numbers<Interval> intervals(args[0]);
          const Numbers<int64_t> factors(args[1]);
          return TryMapNumbers<Interval>(
              args, arrow::month_day_nano_interval(),
              [&](int64_t i, Interval* out) -> Result<bool> {
                const Interval value = intervals[i];
                const int64_t k = factors[i];
                if (__builtin_mul_overflow(value.months, k, &out->months) ||
                    __builtin_mul_overflow(value.days, k, &out->days) ||
                    __builtin_mul_overflow(value.nanoseconds, k, &out->nanoseconds)) {
                  return OutOfRange();
                }
                return true;
              });
        });
  }
  if (op != "+" && op != "-") return refuse();
  if (a->id() == Type::NA) return MakeNull(b);
  if (b->id() == Type::NA) return MakeNull(a);
  const int sign = plus ? 1 : -1;
  if (plus && (IsInterval(*a) || a->id() == Type::DURATION) && !IsInterval(*b) &&
      b->id() != Type::DURATION) {
    return TemporalArithmetic(op, std::move(right), std::move(left));
  }
  if (IsInterval(*b)) {
    if (instant(a)) {
      const TypePtr type = a;
      return MakeKernel(type, {std::move(left), std::move(right)},
                        [type, sign](const KernelArgs& args) {
                          return MoveInstants(args, type, sign);
                        });
    }
    if (arrow::is_time(a->id())) {
      GLAIVE_ASSIGN_OR_RETURN(left, TimeAsInterval(std::move(left)));
    } else if (!IsInterval(*a)) {
      return refuse();
    }
    return Pairwise<Interval>(
        arrow::month_day_nano_interval(), std::move(left), std::move(right),
        [sign](const Interval& x, const Interval& y, Interval* out) {
          return CombineIntervals(x, y, sign, out);
        });
  }
  if (b->id() == Type::DURATION) {
    if (a->id() != Type::TIMESTAMP && a->id() != Type::DURATION) return refuse();
    return WithDuration(op, std::move(left), std::move(right));
  }
  if (!plus && instant(a) && instant(b))
    return Difference(std::move(left), std::move(right));
  if (!plus && arrow::is_time(a->id()) && arrow::is_time(b->id())) {
    GLAIVE_ASSIGN_OR_RETURN(left, TimeAsInterval(std::move(left)));
    GLAIVE_ASSIGN_OR_RETURN(right, TimeAsInterval(std::move(right)));
    return TemporalArithmetic(op, std::move(left), std::move(right));
  }
  if (a->id() == Type::DATE32 && arrow::is_integer(b->id())) {
    return MovedDays(std::move(left), std::move(right), !plus);
  }
  if (plus && b->id() == Type::DATE32 && arrow::is_integer(a->id())) {
    return MovedDays(std::move(right), std::move(left), false);
  }
  if (IsText(*b) && right->constant() != nullptr &&
      (instant(a) || arrow::is_time(a->id()))) {
    GLAIVE_ASSIGN_OR_RETURN(right, MakeCast(std::move(right), a));
    return TemporalArithmetic(op, std::move(left), std::move(right));
  }
  return refuse();
}

}  // namespace glaive::expr
