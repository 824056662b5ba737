// Lists made of numbers, times and text, and text made of lists.
#include <charconv>
#include <cmath>
#include <memory>
#include <optional>
#include <string>

#include <arrow/array.h>
#include <arrow/scalar.h>
#include <arrow/type.h>
#include <arrow/type_traits.h>

#include "base/evaluation_error.h"
#include "expr/calendar.h"
#include "expr/cast.h"
#include "expr/coercion.h"
#include "expr/function.h"
#include "expr/kernel.h"
#include "expr/lists.h"
#include "expr/temporal.h"

namespace glaive::expr {
namespace {

using arrow::Type;
using Interval = arrow::MonthDayNanoIntervalType::MonthDayNanos;

// How many elements the lists of one evaluation may have together.
constexpr int64_t kMostElements = int64_t{1} << 26;

TypePtr ListOf(const TypePtr& element) {
  return arrow::list(arrow::field("item", element));
}

// begin, end and step of each row; next(i, at) is the value behind `at`, or nothing where
// it is out of range; forwards(i) says whether the steps of the row go up.
template <typename Forwards, typename Next>
Result<ArrayPtr> Series(const KernelArgs& args, const TypePtr& type, bool closed,
                        const Forwards& forwards, const Next& next) {
  const Numbers<int64_t> begins(args[0]);
  const Numbers<int64_t> ends(args[1]);
  Words valid(static_cast<size_t>(WordCount(args.rows)) + 1);
  CommonValidity(args, valid.data());
  std::vector<int64_t> values;
  ListPicker picker(args.rows);
  for (int64_t i = 0; i < args.rows; ++i) {
    if (!GetBit(valid.data(), i)) {
      picker.CloseNull();
      continue;
    }
    GLAIVE_ASSIGN_OR_RETURN(const bool up, forwards(i));
    const int64_t end = ends[i];
    std::optional<int64_t> at = begins[i];
    while (at && (up ? *at < end : *at > end || (closed && *at == end))) {
      if (static_cast<int64_t>(values.size()) >= kMostElements) {
        return EvaluationError("expression: a range of more than ", kMostElements,
                               " elements is too much");
      }
      picker.Pick(static_cast<int64_t>(values.size()));
      values.push_back(*at);
      at = next(i, *at);
    }
    if (up && closed && at && *at == end) {
      picker.Pick(static_cast<int64_t>(values.size()));
      values.push_back(*at);
    }
    picker.Close();
  }
  const auto count = static_cast<int64_t>(values.size());
  return picker.Finish(std::make_shared<arrow::NumericArray<arrow::Int64Type>>(
                           count, arrow::Buffer::FromVector(std::move(values))),
                       type);
}

Status ZeroStep() {
  return EvaluationError("expression: the step of a range must not be 0");
}

// Dates, or timestamps, by an interval.
Result<ValuePtr> TimeRange(CallSite call, bool closed) {
  if (call.arguments.size() != 3 || !IsInterval(*call.arguments[2]->type())) {
    return InvalidInput("expression: function ", call.name,
                        " of dates or timestamps needs an interval as its step");
  }
  TypePtr element = arrow::date32();
  for (size_t i = 0; i < 2; ++i) {
    const TypePtr type = ValueType(call.arguments[i]->type());
    if (type->id() == Type::NA || type->id() == Type::DATE32) continue;
    if (type->id() != Type::TIMESTAMP && !IsText(*type)) {
      return WrongArgument(call, i, "a date or a timestamp");
    }
    const std::string zone =
        type->id() == Type::TIMESTAMP
            ? static_cast<const arrow::TimestampType&>(*type).timezone()
            : "";
    element = arrow::timestamp(arrow::TimeUnit::NANO, zone);
  }
  const bool dates = element->id() == Type::DATE32;
  // Dates are moved as seconds.
  const TypePtr moved = dates ? arrow::timestamp(arrow::TimeUnit::SECOND) : element;
  std::vector<ValuePtr> operands;
  for (size_t i = 0; i < 2; ++i) {
    GLAIVE_ASSIGN_OR_RETURN(ValuePtr bound, MakeCast(call.arguments[i], moved));
    operands.push_back(std::move(bound));
  }
  operands.push_back(std::move(call.arguments[2]));
  const int64_t per_second = dates ? 1 : kSecondNanos;
  const TypePtr type = ListOf(moved);
  ValuePtr list = MakeKernel(
      type, std::move(operands),
      [type, closed, per_second](const KernelArgs& args) -> Result<ArrayPtr> {
        KernelArgs local = args;
        const TypePtr moved_type = type->field(0)->type();
        for (size_t k = 0; k < 2; ++k) {
          GLAIVE_ASSIGN_OR_RETURN(local.args[k].array, ToLocal(args[k].array));
        }
        const Numbers<Interval> steps(args[2]);
        const TypePtr plain = ListOf(local.args[0].array->type());
        const auto step = [&](int64_t i) {
          const Interval value = steps[i];
          return MonthDayNano{value.months, value.days, value.nanoseconds};
        };
        GLAIVE_ASSIGN_OR_RETURN(
            ArrayPtr made,
            Series(
                local, ListOf(arrow::int64()), closed,
                [&](int64_t i) -> Result<bool> {
                  const MonthDayNano value = step(i);
                  if (value.months == 0 && value.days == 0 && value.nanos == 0) {
                    return ZeroStep();
                  }
                  return value.months > 0 ||
                         (value.months == 0 &&
                          (value.days > 0 || (value.days == 0 && value.nanos > 0)));
                },
                [&](int64_t i, int64_t at) -> std::optional<int64_t> {
                  const auto next = AddInterval(at, per_second, step(i), 1);
                  // Steps below the unit would go nowhere.
                  if (next && *next == at) return std::nullopt;
                  return next;
                }));
        const auto& lists = static_cast<const arrow::ListArray&>(*made);
        auto viewed = lists.values()->View(plain->field(0)->type());
        GLAIVE_RETURN_NOT_OK(viewed.status());
        ArrayPtr values = *viewed;
        GLAIVE_ASSIGN_OR_RETURN(values, FromLocal(values, moved_type));
        auto data = made->data()->Copy();
        data->type = type;
        data->child_data = {values->data()};
        return arrow::MakeArray(data);
      });
  return MakeCast(std::move(list), ListOf(element));
}

// range(end), range(begin, end[, step]); generate_series has the end with it.
Result<ValuePtr> Range(CallSite call) {
  const bool closed = call.name == "generate_series";
  for (const ValuePtr& argument : call.arguments) {
    const TypePtr type = ValueType(argument->type());
    if (arrow::is_integer(type->id()) || type->id() == Type::NA) continue;
    return TimeRange(std::move(call), closed);
  }
  std::vector<ValuePtr> operands;
  for (size_t i = 0; i < call.arguments.size(); ++i) {
    GLAIVE_ASSIGN_OR_RETURN(ValuePtr bound, NumberArgument(call, i, arrow::int64()));
    operands.push_back(std::move(bound));
  }
  const auto number = [](int64_t value) {
    return ConstantOf(std::make_shared<arrow::Int64Scalar>(value));
  };
  if (operands.size() == 1) operands.insert(operands.begin(), number(0));
  if (operands.size() == 2) operands.push_back(number(1));
  const TypePtr type = ListOf(arrow::int64());
  return MakeKernel(type, std::move(operands), [type, closed](const KernelArgs& args) {
    const Numbers<int64_t> steps(args[2]);
    return Series(
        args, type, closed,
        [&](int64_t i) -> Result<bool> {
          if (steps[i] == 0) return ZeroStep();
          return steps[i] > 0;
        },
        [&](int64_t i, int64_t at) -> std::optional<int64_t> {
          if (__builtin_add_overflow(at, steps[i], &at)) return std::nullopt;
          return at;
        });
  });
}

// The characters of a text, each for itself.
void Characters(std::string_view text, std::vector<std::string_view>* pieces) {
  for (size_t at = 0; at < text.size();) {
    size_t end = at + 1;
    while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) {
      ++end;
    }
    pieces->push_back(text.substr(at, end - at));
    at = end;
  }
}

// string_to_array(text, separator[, text that is read as null]); without a separator each
// character is an element.
Result<ValuePtr> StringToArray(CallSite call) {
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr text, TextArgument(call, 0));
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr separator, TextArgument(call, 1));
  std::vector<ValuePtr> operands = {std::move(text), std::move(separator)};
  if (call.arguments.size() == 3) {
    GLAIVE_ASSIGN_OR_RETURN(ValuePtr null, TextArgument(call, 2));
    operands.push_back(std::move(null));
  }
  const TypePtr type = ListOf(arrow::utf8());
  return MakeKernel(
      type, std::move(operands), [type](const KernelArgs& args) -> Result<ArrayPtr> {
        const Texts texts(args[0]);
        const Texts separators(args[1]);
        std::vector<std::string_view> pieces;
        std::vector<bool> nulls;
        std::vector<std::string_view> found;
        ListPicker picker(args.rows);
        for (int64_t i = 0; i < args.rows; ++i) {
          if (args[0].IsNull(i)) {
            picker.CloseNull();
            continue;
          }
          found.clear();
          std::string_view rest = texts[i];
          if (args[1].IsNull(i)) {
            Characters(rest, &found);
            rest = {};
          }
          const std::string_view mark = separators[i];
          while (!rest.empty()) {
            const size_t at = mark.empty() ? std::string_view::npos : rest.find(mark);
            found.push_back(rest.substr(0, at));
            if (at == std::string_view::npos) break;
            rest.remove_prefix(at + mark.size());
            if (rest.empty()) found.emplace_back();
          }
          const bool named = args.size() == 3 && !args[2].IsNull(i);
          for (std::string_view piece : found) {
            picker.Pick(static_cast<int64_t>(pieces.size()));
            pieces.push_back(piece);
            nulls.push_back(named && piece == Texts(args[2])[i]);
          }
          picker.Close();
        }
        TextBuilder builder(arrow::utf8(), static_cast<int64_t>(pieces.size()));
        for (size_t k = 0; k < pieces.size(); ++k) {
          if (nulls[k]) {
            builder.CloseNull();
            continue;
          }
          builder.text()->append(pieces[k]);
          GLAIVE_RETURN_NOT_OK(builder.Close());
        }
        GLAIVE_ASSIGN_OR_RETURN(ArrayPtr elements, builder.Finish());
        return picker.Finish(elements, type);
      });
}

// A number without a fraction has none here, other than in a cast.
template <typename T>
void AppendNumber(T value, std::string* out) {
  if (std::isnan(value)) {
    out->append("NaN");
    return;
  }
  char text[512];
  const auto end =
      std::to_chars(text, text + sizeof(text), value, std::chars_format::fixed);
  out->append(text, end.ptr);
}

// Elements of lists as text; what is inside of inner lists counts as elements too.
class ElementTexts {
 public:
  static Result<std::unique_ptr<ElementTexts>> Of(const ArrayPtr& values) {
    auto made = std::make_unique<ElementTexts>();
    made->values_ = values;
    if (IsList(*values->type())) {
      made->lists_.emplace(Arg{values, 1});
      GLAIVE_ASSIGN_OR_RETURN(made->inner_, Of(made->lists_->values()));
      return made;
    }
    if (values->type_id() != Type::FLOAT && values->type_id() != Type::DOUBLE) {
      GLAIVE_ASSIGN_OR_RETURN(made->values_,
                              CastArray(values, arrow::utf8(), CastFailure::kError));
      made->texts_.emplace(Arg{made->values_, 1});
    }
    return made;
  }

  // `null`: what stands for nulls; nullptr leaves them out.
  void Append(int64_t i, std::string_view separator, const std::string_view* null,
              bool* first, std::string* out) const {
    if (lists_ && values_->IsValid(i)) {
      for (int64_t k = lists_->begin(i); k < lists_->end(i); ++k) {
        inner_->Append(k, separator, null, first, out);
      }
      return;
    }
    if (values_->IsNull(i) && null == nullptr) return;
    if (!*first) out->append(separator);
    *first = false;
    if (values_->IsNull(i)) {
      out->append(*null);
    } else if (texts_) {
      out->append((*texts_)[i]);
    } else if (values_->type_id() == Type::FLOAT) {
      AppendNumber(static_cast<const arrow::FloatArray&>(*values_).Value(i), out);
    } else {
      AppendNumber(static_cast<const arrow::DoubleArray&>(*values_).Value(i), out);
    }
  }

 private:
  ArrayPtr values_;
  std::optional<Lists> lists_;
  std::optional<Texts> texts_;
  std::unique_ptr<ElementTexts> inner_;
};

Result<ValuePtr> ToText(CallSite call) {
  const TypePtr element = ElementType(*call.arguments[0]->type());
  if (element == nullptr) {
    if (call.arguments[0]->type()->id() == Type::NA) return MakeNull(arrow::utf8());
    return WrongArgument(call, 0, "a list");
  }
  ValuePtr list = std::move(call.arguments[0]);
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr separator, TextArgument(call, 1));
  std::vector<ValuePtr> operands = {std::move(list), std::move(separator)};
  if (call.arguments.size() == 3) {
    GLAIVE_ASSIGN_OR_RETURN(ValuePtr null, TextArgument(call, 2));
    operands.push_back(std::move(null));
  }
  return MakeKernel(
      arrow::utf8(), std::move(operands), [](const KernelArgs& args) -> Result<ArrayPtr> {
        const Lists lists(args[0]);
        GLAIVE_ASSIGN_OR_RETURN(const auto items, ElementTexts::Of(lists.values()));
        const Texts separators(args[1]);
        const Texts nulls(args[args.size() - 1]);
        const bool named_nulls = args.size() == 3;
        return MapText(args, arrow::utf8(),
                       [&](int64_t i, std::string* out) -> Result<bool> {
                         bool first = true;
                         const std::string_view null = nulls[i];
                         for (int64_t k = lists.begin(i); k < lists.end(i); ++k) {
                           items->Append(k, separators[i], named_nulls ? &null : nullptr,
                                         &first, out);
                         }
                         return true;
                       });
      });
}

}  // namespace

const std::vector<FunctionEntry>& ListMakeFunctions() {
  static const std::vector<FunctionEntry> functions = {
      {"array_join", 2, 3, ToText},
      {"array_to_string", 2, 3, ToText},
      {"generate_series", 2, 3, Range},
      {"list_join", 2, 3, ToText},
      {"list_to_string", 2, 3, ToText},
      {"range", 1, 3, Range},
      {"string_to_array", 2, 3, StringToArray},
      {"string_to_list", 2, 3, StringToArray},
  };
  return functions;
}

}  // namespace glaive::expr
