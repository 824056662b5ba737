#include "expr/function.h"

#include <algorithm>
#include <array>
#include <unordered_map>

#include <arrow/buffer.h>
#include <arrow/scalar.h>
#include <arrow/type.h>

#include "base/evaluation_error.h"
#include "expr/coercion.h"
#include "expr/func_bytes.h"
#include "expr/func_time_format.h"
#include "expr/kernel.h"

namespace glaive::expr {
namespace {

// Functions of upstream that are not built here, beside those on geometry (st_...).
constexpr std::array<std::string_view, 1> kUpstreamOnly = {"arrow_field"};

constexpr std::array<std::string_view, 16> kAggregates = {
    "sum",        "count",    "min",     "max",         "avg",        "mean",
    "median",     "stddev",   "var",     "first_value", "last_value", "array_agg",
    "string_agg", "bool_and", "bool_or", "nth_value"};

using Table = std::unordered_map<std::string_view, const FunctionEntry*>;

const Table& Functions() {
  static const Table table = [] {
    Table functions;
    for (const auto* kind :
         {&MathFunctions(), &TextFunctions(), &SearchFunctions(), &RegexFunctions(),
          &TimeFunctions(), &ListFunctions(), &ListShapeFunctions(), &VectorFunctions(),
          &MapFunctions(), &StructFunctions(), &JsonFunctions(), &ConditionalFunctions(),
          &BytesFunctions(), &TimeFormatFunctions()}) {
      for (const FunctionEntry& entry : *kind) functions.emplace(entry.name, &entry);
    }
    return functions;
  }();
  return table;
}

template <size_t kCount>
bool Has(const std::array<std::string_view, kCount>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// The known name with the fewest edits, when it is near enough to be meant.
std::string_view Nearest(std::string_view name) {
  std::string_view best;
  size_t best_cost = 3;
  for (const auto& [known, entry] : Functions()) {
    std::vector<size_t> row(known.size() + 1);
    for (size_t j = 0; j < row.size(); ++j) row[j] = j;
    for (size_t i = 1; i <= name.size(); ++i) {
      size_t diagonal = row[0];
      row[0] = i;
      for (size_t j = 1; j < row.size(); ++j) {
        const size_t keep = diagonal + (name[i - 1] == known[j - 1] ? 0 : 1);
        diagonal = row[j];
        row[j] = std::min({keep, row[j] + 1, row[j - 1] + 1});
      }
    }
    if (row.back() < best_cost || (row.back() == best_cost && known < best)) {
      best = known;
      best_cost = row.back();
    }
  }
  return best;
}

}  // namespace

bool IsKnownFunction(std::string_view name) {
  return Functions().find(name) != Functions().end();
}

Result<ValuePtr> MakeCall(CallSite call) {
  const auto found = Functions().find(call.name);
  if (found == Functions().end()) {
    if (Has(kUpstreamOnly, call.name) || call.name.starts_with("st_")) {
      return NotSupported("expression: function ", call.name, " is not supported");
    }
    if (Has(kAggregates, call.name)) {
      return EvaluationError("expression: function ", call.name,
                             " is an aggregate; an expression has one row at a time");
    }
    const std::string_view nearest =
        call.name.size() <= 40 ? Nearest(call.name) : std::string_view();
    return InvalidInput("expression: there is no function '", call.name, "'",
                        nearest.empty() ? "" : "; did you mean '", nearest,
                        nearest.empty() ? "" : "'?");
  }
  const FunctionEntry& entry = *found->second;
  const size_t count = call.arguments.size();
  if (count < entry.least || count > entry.most) {
    std::string wanted = std::to_string(entry.least);
    if (entry.most == SIZE_MAX) {
      wanted += " or more";
    } else if (entry.most != entry.least) {
      wanted += " to " + std::to_string(entry.most);
    }
    return InvalidInput("expression: function ", call.name, " takes ", wanted,
                        " arguments, not ", count);
  }
  return entry.build(std::move(call));
}

Status WrongArgument(const CallSite& call, size_t i, std::string_view wanted) {
  return InvalidInput("expression: function ", call.name, " needs ", wanted,
                      " as argument ", i + 1, ", found ",
                      call.arguments[i]->type()->ToString());
}

Result<ValuePtr> TextArgument(const CallSite& call, size_t i) {
  const ValuePtr& argument = call.arguments[i];
  const TypePtr type = ValueType(argument->type());
  if (type->id() == arrow::Type::NA) return MakeNull(arrow::utf8());
  if (!IsText(*type)) return WrongArgument(call, i, "a string");
  return Coerce(argument, type);
}

Result<ValuePtr> AnyAsText(const CallSite& call, size_t i) {
  return MakeCast(call.arguments[i], arrow::utf8());
}

Result<ValuePtr> NumberArgument(const CallSite& call, size_t i,
                                const std::shared_ptr<arrow::DataType>& type) {
  const ValuePtr& argument = call.arguments[i];
  const TypePtr from = ValueType(argument->type());
  if (from->id() == arrow::Type::NA) return MakeNull(type);
  if (!IsNumeric(*from)) return WrongArgument(call, i, "a number");
  return MakeCast(argument, type);
}

const arrow::Buffer* ConstantText(const ValuePtr& value) {
  if (value->constant() == nullptr) return nullptr;
  const arrow::Scalar& scalar = **value->constant();
  if (!scalar.is_valid || !IsText(*scalar.type)) return nullptr;
  return static_cast<const arrow::BaseBinaryScalar&>(scalar).value.get();
}

}  // namespace glaive::expr
