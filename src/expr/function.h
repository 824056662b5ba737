// The functions that an expression may call, by name.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "expr/bound.h"

namespace glaive::expr {

// One call being bound.
struct CallSite {
  std::string_view name;  // lower case
  std::vector<ValuePtr> arguments;
};
using FunctionBuilder = Result<ValuePtr> (*)(CallSite call);

struct FunctionEntry {
  std::string_view name;
  size_t least;  // number of arguments
  size_t most;
  FunctionBuilder build;
};

// The functions of one kind; each kind has a file func_*.cc.
const std::vector<FunctionEntry>& MathFunctions();
const std::vector<FunctionEntry>& TextFunctions();
const std::vector<FunctionEntry>& SearchFunctions();
const std::vector<FunctionEntry>& RegexFunctions();
const std::vector<FunctionEntry>& TimeFunctions();
const std::vector<FunctionEntry>& ListFunctions();
const std::vector<FunctionEntry>& ListShapeFunctions();
const std::vector<FunctionEntry>& VectorFunctions();
const std::vector<FunctionEntry>& MapFunctions();
const std::vector<FunctionEntry>& StructFunctions();
const std::vector<FunctionEntry>& JsonFunctions();
const std::vector<FunctionEntry>& ConditionalFunctions();

// InvalidInput for names that upstream does not know either, and for arguments that do
// not fit; NotSupported for those that it knows and that are not built.
Result<ValuePtr> MakeCall(CallSite call);
bool IsKnownFunction(std::string_view name);

// For builders.
// The argument as a string (dictionaries are decoded, large strings stay large); other
// types are InvalidInput.
Result<ValuePtr> TextArgument(const CallSite& call, size_t i);
// As utf8, whatever it is: numbers, dates and booleans are written as text.
Result<ValuePtr> AnyAsText(const CallSite& call, size_t i);
Result<ValuePtr> NumberArgument(const CallSite& call, size_t i,
                                const std::shared_ptr<arrow::DataType>& type);
Status WrongArgument(const CallSite& call, size_t i, std::string_view wanted);
// The constant text of an argument; nullptr when it is none or NULL.
const arrow::Buffer* ConstantText(const ValuePtr& value);

// What the operators share with functions of the same meaning.
Result<ValuePtr> TemporalArithmetic(const std::string& op, ValuePtr left, ValuePtr right);
Result<ValuePtr> ConcatLists(ValuePtr left, ValuePtr right);
Result<ValuePtr> MakeListValue(std::vector<ValuePtr> elements);
Result<ValuePtr> ListElement(ValuePtr list, ValuePtr index);
Result<ValuePtr> ListSlice(std::vector<ValuePtr> arguments);
Result<ValuePtr> StructMember(ValuePtr value, const std::string& name);
Result<ValuePtr> MapElement(ValuePtr map, ValuePtr key);
Result<BoolPtr> MakeRegexTest(ValuePtr text, ValuePtr pattern, bool ignore_case);
// A SIMILAR TO pattern in the syntax of regular expressions.
Result<ValuePtr> MakeCase(std::vector<BoolPtr> conditions, std::vector<ValuePtr> values,
                          ValuePtr otherwise);

}  // namespace glaive::expr
