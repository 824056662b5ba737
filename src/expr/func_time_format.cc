// to_char(), and to_timestamp() and to_date() with patterns.
#include "expr/func_time_format.h"

#include <array>

#include <arrow/array.h>
#include <arrow/scalar.h>
#include <arrow/type.h>

#include "base/evaluation_error.h"
#include "expr/calendar.h"
#include "expr/coercion.h"
#include "expr/function.h"
#include "expr/kernel.h"
#include "expr/temporal.h"
#include "expr/time_format.h"

namespace glaive::expr {
namespace {

using arrow::Type;

// "1 days 2 hours 3 mins 4.000 secs", or PT7384S by the pattern iso8601.
void AppendDuration(int64_t value, int64_t per_second, bool iso, std::string* out) {
  const bool negative = value < 0;
  // As a magnitude, which the least number has only unsigned.
  const uint64_t size =
      negative ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
  const auto unit = static_cast<uint64_t>(per_second);
  std::string fraction;
  if (unit > 1) {
    fraction = std::to_string(size % unit);
    const size_t digits = std::to_string(unit).size() - 1;
    fraction.insert(0, digits - fraction.size(), '0');
  }
  const uint64_t seconds = size / unit;
  if (iso) {
    while (fraction.ends_with('0')) fraction.pop_back();
    if (size == 0) {
      out->append("P0D");
      return;
    }
    out->append(negative ? "-PT" : "PT").append(std::to_string(seconds));
    if (!fraction.empty()) out->append(".").append(fraction);
    out->push_back('S');
    return;
  }
  const auto part = [&](uint64_t number, std::string_view name) {
    if (negative && number != 0) out->push_back('-');
    out->append(std::to_string(number)).append(name);
  };
  part(seconds / kDaySeconds, " days ");
  part(seconds / 3600 % 24, " hours ");
  part(seconds / 60 % 60, " mins ");
  const bool any = seconds % 60 != 0 || size % unit != 0;
  if (negative && any) out->push_back('-');
  out->append(std::to_string(seconds % 60));
  if (unit > 1) out->append(".").append(fraction);
  out->append(" secs");
}

Result<ValuePtr> DurationToChar(ValuePtr value, ValuePtr pattern, int64_t per_second) {
  return MakeKernel(arrow::utf8(), {std::move(value), std::move(pattern)},
                    [per_second](const KernelArgs& args) {
                      const Numbers<int64_t> values(args[0]);
                      const Texts patterns(args[1]);
                      return MapText(args, arrow::utf8(),
                                     [&](int64_t i, std::string* out) -> Result<bool> {
                                       AppendDuration(values[i], per_second,
                                                      patterns[i] == "iso8601", out);
                                       return true;
                                     });
                    });
}

Result<ValuePtr> ToChar(CallSite call) {
  const TypePtr from = ValueType(call.arguments[0]->type());
  if (from->id() == Type::NA) return MakeNull(arrow::utf8());
  const bool stamp = from->id() == Type::TIMESTAMP;
  const bool time = arrow::is_time(from->id());
  if (!stamp && !time && from->id() != Type::DURATION && !arrow::is_date(from->id()) &&
      !IsText(*from)) {
    return WrongArgument(call, 0, "a date, a time, a timestamp or a duration");
  }
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr pattern, AnyAsText(call, 1));
  if (from->id() == Type::DURATION) {
    const auto duration_unit = static_cast<const arrow::DurationType&>(*from).unit();
    return DurationToChar(std::move(call.arguments[0]), std::move(pattern),
                          UnitsPerSecond(duration_unit));
  }
  const bool zoned =
      stamp && !static_cast<const arrow::TimestampType&>(*from).timezone().empty();
  // Microseconds reach every date; nanoseconds are kept where there are some.
  const auto unit =
      stamp ? static_cast<const arrow::TimestampType&>(*from).unit()
            : (IsText(*from) || time ? arrow::TimeUnit::NANO : arrow::TimeUnit::SECOND);
  ValuePtr value = std::move(call.arguments[0]);
  if (!zoned) {
    GLAIVE_ASSIGN_OR_RETURN(
        value,
        MakeCast(std::move(value), time ? arrow::time64(unit) : arrow::timestamp(unit)));
  }
  const int64_t per_second = UnitsPerSecond(unit);
  return MakeKernel(
      arrow::utf8(), {std::move(value), std::move(pattern)},
      [per_second, zoned, time](const KernelArgs& args) -> Result<ArrayPtr> {
        KernelArgs local = args;
        if (zoned) {
          GLAIVE_ASSIGN_OR_RETURN(local.args[0].array, ToLocal(args[0].array));
        }
        const Numbers<int64_t> instants(args[0]);
        const Numbers<int64_t> values(local[0]);
        const Texts patterns(args[1]);
        return MapText(
            args, arrow::utf8(), [&](int64_t i, std::string* out) -> Result<bool> {
              const int64_t per_day = per_second * kDaySeconds;
              Moment moment;
              moment.days = FloorDivide(values[i], per_day);
              moment.nanos =
                  (values[i] - moment.days * per_day) * (kSecondNanos / per_second);
              moment.has_date = !time;
              if (zoned) {
                moment.offset =
                    static_cast<int32_t>((values[i] - instants[i]) / per_second);
              }
              GLAIVE_RETURN_NOT_OK(FormatMoment(moment, patterns[i], out));
              return true;
            });
      });
}

// to_time(text[, pattern...]) or the time of a timestamp as its clock shows it.
Result<ValuePtr> ToTime(CallSite call) {
  const TypePtr from = ValueType(call.arguments[0]->type());
  const TypePtr type = arrow::time64(arrow::TimeUnit::NANO);
  if (from->id() == Type::NA) return MakeNull(type);
  if (from->id() == Type::TIMESTAMP && call.arguments.size() == 1) {
    const auto unit = static_cast<const arrow::TimestampType&>(*from).unit();
    const int64_t per_second = UnitsPerSecond(unit);
    return MakeKernel(type, std::move(call.arguments),
                      [type, per_second](const KernelArgs& args) -> Result<ArrayPtr> {
                        KernelArgs local = args;
                        GLAIVE_ASSIGN_OR_RETURN(local.args[0].array,
                                                ToLocal(args[0].array));
                        const Numbers<int64_t> values(local[0]);
                        const int64_t per_day = per_second * kDaySeconds;
                        return MapNumbers<int64_t>(local, type, [&](int64_t i) {
                          return (values[i] - FloorDivide(values[i], per_day) * per_day) *
                                 (kSecondNanos / per_second);
                        });
                      });
  }
  if (!IsText(*from)) {
    return EvaluationError("expression: function to_time of a value of type ",
                           from->ToString());
  }
  std::vector<ValuePtr> operands;
  for (size_t i = 0; i < call.arguments.size(); ++i) {
    GLAIVE_ASSIGN_OR_RETURN(ValuePtr text, TextArgument(call, i));
    operands.push_back(Coerce(std::move(text), arrow::utf8()));
  }
  return MakeKernel(type, std::move(operands), [type](const KernelArgs& args) {
    std::vector<Texts> texts;
    for (const Arg& arg : args.args) texts.emplace_back(arg);
    return TryMapNumbers<
        int64_t>(args, type, [&](int64_t i, int64_t* out) -> Result<bool> {
      static constexpr std::array<std::string_view, 2> kUsual = {"%H:%M:%S%.f", "%H:%M"};
      const size_t count = texts.size() > 1 ? texts.size() - 1 : kUsual.size();
      for (size_t k = 0; k < count; ++k) {
        const std::string_view pattern = texts.size() > 1 ? texts[k + 1][i] : kUsual[k];
        GLAIVE_ASSIGN_OR_RETURN(const auto time, ParseTimeOfDay(texts[0][i], pattern));
        if (!time) continue;
        *out = *time;
        return true;
      }
      return EvaluationError("expression: '", texts[0][i].substr(0, 100),
                             "' cannot be read as a time");
    });
  });
}

}  // namespace

Result<ValuePtr> ParseByPatterns(const CallSite& call) {
  std::vector<ValuePtr> operands;
  for (size_t i = 0; i < call.arguments.size(); ++i) {
    GLAIVE_ASSIGN_OR_RETURN(ValuePtr text, TextArgument(call, i));
    operands.push_back(Coerce(std::move(text), arrow::utf8()));
  }
  const TypePtr type = arrow::timestamp(arrow::TimeUnit::NANO);
  return MakeKernel(
      type, std::move(operands), [type](const KernelArgs& args) -> Result<ArrayPtr> {
        const Texts texts(args[0]);
        std::vector<Texts> patterns;
        for (size_t k = 1; k < args.size(); ++k) patterns.emplace_back(args[k]);
        KernelArgs first;
        first.args.push_back(args[0]);
        first.rows = args.rows;
        return TryMapNumbers<int64_t>(
            first, type, [&](int64_t i, int64_t* out) -> Result<bool> {
              for (size_t k = 0; k < patterns.size(); ++k) {
                if (args[k + 1].IsNull(i)) continue;
                GLAIVE_ASSIGN_OR_RETURN(const auto moment,
                                        ParseMoment(texts[i], patterns[k][i]));
                if (!moment) continue;
                int64_t day = 0;
                if (__builtin_mul_overflow(moment->days, kDayNanos64, &day) ||
                    __builtin_add_overflow(day, moment->nanos, out)) {
                  return InvalidInput("expression: '", texts[i].substr(0, 100),
                                      "' is out of the range of nanoseconds");
                }
                return true;
              }
              return InvalidInput("expression: the text '", texts[i].substr(0, 100),
                                  "' does not fit the pattern '",
                                  patterns.back()[i].substr(0, 100), "'");
            });
      });
}

const std::vector<FunctionEntry>& TimeFormatFunctions() {
  static const std::vector<FunctionEntry> functions = {
      {"to_char", 2, 2, ToChar},
      {"date_format", 2, 2, ToChar},
      {"to_time", 1, SIZE_MAX, ToTime},
  };
  return functions;
}

}  // namespace glaive::expr
