// to_char(), and to_timestamp() and to_date() with patterns.
#include "expr/func_time_format.h"

#include <arrow/array.h>
#include <arrow/scalar.h>
#include <arrow/type.h>

#include "base/evaluation_error.h"
#include "expr/calendar.h"
#include "expr/coercion.h"
#include "expr/function.h"
#include "expr/kernel.h"
#include "expr/time_format.h"

namespace glaive::expr {
namespace {

using arrow::Type;

Result<ValuePtr> ToChar(CallSite call) {
  const TypePtr from = ValueType(call.arguments[0]->type());
  if (from->id() == Type::NA) return MakeNull(arrow::utf8());
  const bool stamp = from->id() == Type::TIMESTAMP;
  if (!stamp && !arrow::is_date(from->id()) && !IsText(*from)) {
    if (arrow::is_time(from->id()) || from->id() == Type::DURATION || IsInterval(*from)) {
      return NotSupported("expression: to_char of a value of type ", from->ToString(),
                          " is not supported");
    }
    return WrongArgument(call, 0, "a date or a timestamp");
  }
  if (stamp && !static_cast<const arrow::TimestampType&>(*from).timezone().empty()) {
    return NotSupported(
        "expression: to_char of a timestamp with a zone is not supported");
  }
  // Microseconds reach every date; nanoseconds are kept where there are some.
  const auto unit =
      stamp ? static_cast<const arrow::TimestampType&>(*from).unit()
            : (IsText(*from) ? arrow::TimeUnit::NANO : arrow::TimeUnit::SECOND);
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr value,
                          MakeCast(std::move(call.arguments[0]), arrow::timestamp(unit)));
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr pattern, AnyAsText(call, 1));
  const int64_t per_second = UnitsPerSecond(unit);
  return MakeKernel(
      arrow::utf8(), {std::move(value), std::move(pattern)},
      [per_second](const KernelArgs& args) {
        const Numbers<int64_t> values(args[0]);
        const Texts patterns(args[1]);
        return MapText(
            args, arrow::utf8(), [&](int64_t i, std::string* out) -> Result<bool> {
              const int64_t per_day = per_second * kDaySeconds;
              Moment moment;
              moment.days = FloorDivide(values[i], per_day);
              moment.nanos =
                  (values[i] - moment.days * per_day) * (kSecondNanos / per_second);
              GLAIVE_RETURN_NOT_OK(FormatMoment(moment, patterns[i], out));
              return true;
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
  };
  return functions;
}

}  // namespace glaive::expr
