// Regular expressions: regexp_like, regexp_match, regexp_replace, regexp_count,
// regexp_instr and the operators ~ and ~*.
//
// Arrow brings the matcher (RE2). Patterns are written for upstream's engine, which is
// the same but for a few letters: ToRe2 translates them.
#include <arrow/array.h>
#include <arrow/array/concatenate.h>
#include <arrow/array/util.h>
#include <arrow/builder.h>
#include <arrow/compute/api.h>
#include <arrow/scalar.h>
#include <arrow/type.h>

#include "expr/coercion.h"
#include "expr/function.h"
#include "expr/kernel.h"
#include "expr/utf8_text.h"

namespace glaive::expr {
namespace {

using arrow::Type;

// What the classes of upstream's engine hold: it knows all of Unicode.
std::string_view UnicodeClass(char letter, bool inside) {
  switch (letter) {
    case 'd':
      return "\\p{Nd}";
    case 'D':
      return "\\P{Nd}";
    case 'w':
      return inside ? "\\p{L}\\p{M}\\p{Nd}\\p{Pc}" : "[\\p{L}\\p{M}\\p{Nd}\\p{Pc}]";
    case 'W':
      return inside ? std::string_view() : "[^\\p{L}\\p{M}\\p{Nd}\\p{Pc}]";
    case 's':
      return inside ? "\\s\\v\\x{85}\\p{Z}" : "[\\s\\v\\x{85}\\p{Z}]";
    case 'S':
      return inside ? std::string_view() : "[^\\s\\v\\x{85}\\p{Z}]";
    default:
      return {};
  }
}

// `name_groups`: capturing groups get the names g1, g2, ... in order; *groups is their
// number.
// `names`, when given, takes the names that the groups have in the pattern.
std::string ToRe2(std::string_view pattern, bool name_groups, int* groups,
                  std::vector<std::string>* names = nullptr) {
  std::string out;
  bool in_class = false;
  *groups = 0;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c == '\\' && i + 1 < pattern.size()) {
      const std::string_view known = UnicodeClass(pattern[i + 1], in_class);
      if (known.empty()) {
        out.append(pattern.substr(i, 2));
      } else {
        out.append(known);
      }
      ++i;
      continue;
    }
    if (in_class) {
      in_class = c != ']';
      out.push_back(c);
      continue;
    }
    if (c == '[') {
      in_class = true;
      out.push_back(c);
      // A bracket right at the start of a class is a member of it.
      if (i + 1 < pattern.size() && pattern[i + 1] == '^') out.push_back(pattern[++i]);
      if (i + 1 < pattern.size() && pattern[i + 1] == ']') out.push_back(pattern[++i]);
      continue;
    }
    if (c != '(') {
      out.push_back(c);
      continue;
    }
    size_t name = std::string_view::npos;  // where the name of a named group begins
    const std::string_view rest = pattern.substr(i + 1);
    if (rest.starts_with("?P<")) name = 3;
    if (rest.starts_with("?<")) name = 2;
    const bool capturing = name != std::string_view::npos || !rest.starts_with('?');
    if (!capturing) {
      out.push_back(c);
      continue;
    }
    ++*groups;
    if (names != nullptr) names->emplace_back();
    if (name != std::string_view::npos) {
      const size_t end = rest.find('>');
      if (end == std::string_view::npos) {  // malformed: let the matcher say so
        out.push_back(c);
        continue;
      }
      out.append(name_groups ? "(?P<g" + std::to_string(*groups) + ">"
                             : "(?P<" + std::string(rest.substr(name, end - name)) + ">");
      if (names != nullptr) names->back() = rest.substr(name, end - name);
      i += end + 1;
    } else {
      out.append(name_groups ? "(?P<g" + std::to_string(*groups) + ">" : "(");
    }
  }
  return out;
}

// A pattern in which blanks and what is behind # have no meaning, without them.
std::string WithoutBlanks(std::string_view pattern) {
  std::string out;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c == '\\' && i + 1 < pattern.size()) {
      out.push_back(c);
      out.push_back(pattern[++i]);
    } else if (c == '#') {
      while (i < pattern.size() && pattern[i] != '\n') ++i;
    } else if (c != ' ' && !(c >= '\t' && c <= '\r')) {
      out.push_back(c);
    }
  }
  return out;
}

// Flags as in regexp_like(text, pattern, 'im'): put in front of the pattern.
Result<std::string> WithFlags(std::string_view pattern, std::string_view flags,
                              bool* global) {
  std::string letters;
  bool extended = false;
  for (char c : flags) {
    switch (c) {
      case 'g':
        if (global != nullptr) {
          *global = true;
          break;
        }
        return InvalidInput("expression: this function does not take the flag 'g'");
      case 'i':
      case 'm':
      case 's':
      case 'U':
        letters.push_back(c);
        break;
      case 'R':
      case 'u':  // Unicode, as always
        break;
      case 'x':
        extended = true;
        break;
      default:
        return NotSupported("expression: flag '", std::string(1, c),
                            "' of regular expressions is not supported");
    }
  }
  // Flags that the pattern itself begins with.
  if (pattern.starts_with("(?")) {
    const size_t end = pattern.find_first_not_of("imsUux", 2);
    if (end != std::string_view::npos && end > 2 && pattern[end] == ')') {
      for (char c : pattern.substr(2, end - 2)) {
        if (c == 'x') extended = true;
        if (c != 'x' && c != 'u') letters.push_back(c);
      }
      pattern.remove_prefix(end + 1);
    }
  }
  std::string whole = letters.empty() ? std::string() : "(?" + letters + ")";
  whole += extended ? WithoutBlanks(pattern) : std::string(pattern);
  return whole;
}

Status BadPattern(std::string_view pattern, const Status& status) {
  return InvalidInput(
      "expression: '", pattern.substr(0, 200),
      "' is not a regular expression that can be used: ", status.message());
}

Result<ArrayPtr> Call(const char* name, const ArrayPtr& texts,
                      const arrow::compute::FunctionOptions& options,
                      std::string_view pattern) {
  auto result = arrow::compute::CallFunction(name, {texts}, &options);
  if (!result.ok()) return BadPattern(pattern, result.status());
  return result->make_array();
}

Result<ArrayPtr> Expand(const Arg& arg, int64_t rows) {
  if (!arg.constant() || rows == 1) return arg.array;
  GLAIVE_ASSIGN_OR_RETURN(auto scalar, arg.array->GetScalar(0));
  return arrow::MakeArrayFromScalar(*scalar, rows);
}

// run(texts, i) for runs of rows that share their other arguments; `i` is the first row.
// With constant arguments that is one run.
template <typename Run>
Result<ArrayPtr> ByPattern(const KernelArgs& args, const TypePtr& type, const Run& run) {
  GLAIVE_ASSIGN_OR_RETURN(ArrayPtr texts, Expand(args[0], args.rows));
  bool constant = true;
  bool null = false;
  for (size_t k = 1; k < args.size(); ++k) {
    constant &= args[k].constant();
    null |= args[k].constant() && args[k].IsNull(0);
  }
  if (null) return arrow::MakeArrayOfNull(type, args.rows);
  if (constant) return run(texts, 0);
  std::vector<ArrayPtr> pieces;
  const auto same = [&](int64_t i, int64_t j) {
    for (size_t k = 1; k < args.size(); ++k) {
      if (args[k].constant()) continue;
      if (!args[k].array->RangeEquals(*args[k].array, i, i + 1, j)) return false;
    }
    return true;
  };
  for (int64_t i = 0; i < args.rows;) {
    int64_t end = i + 1;
    while (end < args.rows && same(i, end)) ++end;
    bool any_null = false;
    for (size_t k = 1; k < args.size(); ++k) any_null |= args[k].IsNull(i);
    ArrayPtr piece;
    if (any_null) {
      GLAIVE_ASSIGN_OR_RETURN(piece, arrow::MakeArrayOfNull(type, end - i));
    } else {
      GLAIVE_ASSIGN_OR_RETURN(piece, run(texts->Slice(i, end - i), i));
    }
    pieces.push_back(std::move(piece));
    i = end;
  }
  if (pieces.empty()) return arrow::MakeEmptyArray(type);
  return arrow::Concatenate(pieces);
}

// text, pattern and flags as operands; flags are empty when the call has none.
Result<std::vector<ValuePtr>> PatternOperands(const CallSite& call, size_t flags_at) {
  std::vector<ValuePtr> values;
  for (size_t i = 0; i < 2; ++i) {
    GLAIVE_ASSIGN_OR_RETURN(ValuePtr value, TextArgument(call, i));
    values.push_back(std::move(value));
  }
  if (call.arguments.size() > flags_at) {
    GLAIVE_ASSIGN_OR_RETURN(ValuePtr flags, TextArgument(call, flags_at));
    values.push_back(std::move(flags));
  } else {
    values.push_back(ConstantOf(std::make_shared<arrow::StringScalar>("")));
  }
  return values;
}

// A constant pattern is tried at once, so that its mistakes are told before any row.
Status CheckPattern(const ValuePtr& pattern, const ValuePtr& flags) {
  const arrow::Buffer* text = ConstantText(pattern);
  const arrow::Buffer* letters = ConstantText(flags);
  if (text == nullptr || letters == nullptr) return Status::OK();
  bool global = false;
  GLAIVE_ASSIGN_OR_RETURN(const std::string whole,
                          WithFlags(text->ToString(), letters->ToString(), &global));
  int groups = 0;
  arrow::compute::MatchSubstringOptions options(ToRe2(whole, false, &groups));
  GLAIVE_ASSIGN_OR_RETURN(
      ArrayPtr probe, arrow::MakeArrayFromScalar(arrow::StringScalar(std::string()), 1));
  return Call("match_substring_regex", probe, options, whole).status();
}

ValuePtr TestValue(std::vector<ValuePtr> operands) {
  return MakeKernel(arrow::boolean(), std::move(operands), [](const KernelArgs& args) {
    const Texts patterns(args[1]);
    const Texts flags(args[2]);
    return ByPattern(args, arrow::boolean(),
                     [&](const ArrayPtr& texts, int64_t i) -> Result<ArrayPtr> {
                       GLAIVE_ASSIGN_OR_RETURN(const std::string pattern,
                                               WithFlags(patterns[i], flags[i], nullptr));
                       int groups = 0;
                       const arrow::compute::MatchSubstringOptions options(
                           ToRe2(pattern, false, &groups));
                       return Call("match_substring_regex", texts, options, pattern);
                     });
  });
}

Result<ValuePtr> RegexpLike(CallSite call) {
  GLAIVE_ASSIGN_OR_RETURN(auto operands, PatternOperands(call, 2));
  GLAIVE_RETURN_NOT_OK(CheckPattern(operands[1], operands[2]));
  return TestValue(std::move(operands));
}

// The groups of the first match, or all of it when there are none; null without a match.
Result<ValuePtr> RegexpMatch(CallSite call) {
  GLAIVE_ASSIGN_OR_RETURN(auto operands, PatternOperands(call, 2));
  GLAIVE_RETURN_NOT_OK(CheckPattern(operands[1], operands[2]));
  const TypePtr text_type = operands[0]->type();
  const TypePtr type = arrow::list(arrow::field("item", text_type));
  return MakeKernel(type, std::move(operands), [type, text_type](const KernelArgs& args) {
    const Texts patterns(args[1]);
    const Texts flags(args[2]);
    return ByPattern(
        args, type, [&](const ArrayPtr& texts, int64_t i) -> Result<ArrayPtr> {
          GLAIVE_ASSIGN_OR_RETURN(const std::string pattern,
                                  WithFlags(patterns[i], flags[i], nullptr));
          int groups = 0;
          std::string named = ToRe2(pattern, true, &groups);
          if (groups == 0) named = "(?P<g1>" + named + ")";
          const arrow::compute::ExtractRegexOptions options(named);
          GLAIVE_ASSIGN_OR_RETURN(ArrayPtr found,
                                  Call("extract_regex", texts, options, pattern));
          const auto& matches = static_cast<const arrow::StructArray&>(*found);
          std::vector<int32_t> offsets = {0};
          std::vector<Texts> columns;
          for (int g = 0; g < matches.num_fields(); ++g) {
            columns.emplace_back(Arg{matches.field(g), 1});
          }
          const auto count = static_cast<int64_t>(columns.size());
          TextBuilder values(text_type, texts->length() * count);
          Words valid(static_cast<size_t>(WordCount(texts->length())) + 1);
          for (int64_t row = 0; row < texts->length(); ++row) {
            if (!matches.IsNull(row)) {
              SetBit(valid.data(), row);
              for (const Texts& column : columns) {
                values.text()->append(column[row]);
                GLAIVE_RETURN_NOT_OK(values.Close());
              }
            }
            offsets.push_back(offsets.back() +
                              (matches.IsNull(row) ? 0 : static_cast<int32_t>(count)));
          }
          GLAIVE_ASSIGN_OR_RETURN(ArrayPtr items, values.Finish());
          GLAIVE_ASSIGN_OR_RETURN(auto bitmap, ToBuffer(valid, texts->length()));
          return arrow::MakeArray(arrow::ArrayData::Make(
              type, texts->length(),
              {bitmap, arrow::Buffer::FromVector(std::move(offsets))}, {items->data()}));
        });
  });
}

// \1, $1, ${1} and ${name} stand for groups, $$ for a dollar sign.
std::string ToRe2Replacement(std::string_view text,
                             const std::vector<std::string>& names) {
  std::string out;
  const auto digit = [&](size_t i) {
    return i < text.size() && text[i] >= '0' && text[i] <= '9';
  };
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\') {
      if (digit(i + 1)) {
        out.append(text.substr(i, 2));
        ++i;
      } else {
        out.append("\\\\");
      }
    } else if (text[i] == '$' && i + 1 < text.size() && text[i + 1] == '$') {
      out.push_back('$');
      ++i;
    } else if (text[i] == '$' && digit(i + 1)) {
      out.push_back('\\');
      out.push_back(text[++i]);
    } else if (text[i] == '$' && i + 1 < text.size() && text[i + 1] == '{') {
      const size_t end = text.find('}', i);
      const std::string_view name =
          end == std::string_view::npos ? "" : text.substr(i + 2, end - i - 2);
      if (name.size() == 1 && digit(i + 2)) {
        out.append("\\").append(name);
      } else {
        // Groups beyond the ninth, and names of no group, stand for nothing.
        for (size_t g = 0; g < names.size() && g < 9; ++g) {
          if (!name.empty() && names[g] == name) out.append("\\" + std::to_string(g + 1));
        }
      }
      i = end == std::string_view::npos ? text.size() : end;
    } else {
      out.push_back(text[i]);
    }
  }
  return out;
}

Result<ValuePtr> RegexpReplace(CallSite call) {
  GLAIVE_ASSIGN_OR_RETURN(auto operands, PatternOperands(call, 3));
  GLAIVE_RETURN_NOT_OK(CheckPattern(operands[1], operands[2]));
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr replacement, TextArgument(call, 2));
  operands.push_back(std::move(replacement));
  const TypePtr type = operands[0]->type();
  return MakeKernel(type, std::move(operands), [type](const KernelArgs& args) {
    const Texts patterns(args[1]);
    const Texts flags(args[2]);
    const Texts replacements(args[3]);
    return ByPattern(
        args, type, [&](const ArrayPtr& texts, int64_t i) -> Result<ArrayPtr> {
          bool global = false;
          GLAIVE_ASSIGN_OR_RETURN(const std::string pattern,
                                  WithFlags(patterns[i], flags[i], &global));
          int groups = 0;
          std::vector<std::string> names;
          const std::string translated = ToRe2(pattern, false, &groups, &names);
          const arrow::compute::ReplaceSubstringOptions options(
              translated, ToRe2Replacement(replacements[i], names), global ? -1 : 1);
          return Call("replace_substring_regex", texts, options, pattern);
        });
  });
}

// Matches that do not overlap, from character `start` (1-based) on.
Result<ValuePtr> RegexpCount(CallSite call) {
  GLAIVE_ASSIGN_OR_RETURN(auto operands, PatternOperands(call, 3));
  GLAIVE_RETURN_NOT_OK(CheckPattern(operands[1], operands[2]));
  if (call.arguments.size() > 2) {
    GLAIVE_ASSIGN_OR_RETURN(ValuePtr start, NumberArgument(call, 2, arrow::int64()));
    CallSite tail{"substr", {operands[0], std::move(start)}};
    GLAIVE_ASSIGN_OR_RETURN(operands[0], MakeCall(std::move(tail)));
  }
  ValuePtr counted =
      MakeKernel(arrow::int64(), std::move(operands), [](const KernelArgs& args) {
        const Texts patterns(args[1]);
        const Texts flags(args[2]);
        return ByPattern(
            args, arrow::int64(),
            [&](const ArrayPtr& texts, int64_t i) -> Result<ArrayPtr> {
              GLAIVE_ASSIGN_OR_RETURN(const std::string pattern,
                                      WithFlags(patterns[i], flags[i], nullptr));
              int groups = 0;
              const arrow::compute::MatchSubstringOptions options(
                  ToRe2(pattern, false, &groups));
              GLAIVE_ASSIGN_OR_RETURN(ArrayPtr counts, Call("count_substring_regex",
                                                            texts, options, pattern));
              GLAIVE_ASSIGN_OR_RETURN(arrow::Datum wide, CastTo(counts, arrow::int64()));
              return wide.make_array();
            });
      });
  // Nothing is counted in a null.
  CallSite zero{
      "coalesce",
      {std::move(counted), ConstantOf(std::make_shared<arrow::Int64Scalar>(int64_t{0}))}};
  return MakeCall(std::move(zero));
}

// 1-based character of the first match; 0 when there is none.
Result<ValuePtr> RegexpInstr(CallSite call) {
  if (call.arguments.size() > 2) {
    return NotSupported(
        "expression: function regexp_instr with more than 2 arguments is not supported");
  }
  GLAIVE_ASSIGN_OR_RETURN(auto operands, PatternOperands(call, 3));
  GLAIVE_RETURN_NOT_OK(CheckPattern(operands[1], operands[2]));
  return MakeKernel(arrow::int64(), std::move(operands), [](const KernelArgs& args) {
    const Texts patterns(args[1]);
    const Texts flags(args[2]);
    return ByPattern(
        args, arrow::int64(), [&](const ArrayPtr& texts, int64_t i) -> Result<ArrayPtr> {
          GLAIVE_ASSIGN_OR_RETURN(const std::string pattern,
                                  WithFlags(patterns[i], flags[i], nullptr));
          int groups = 0;
          const arrow::compute::MatchSubstringOptions options(
              ToRe2(pattern, false, &groups));
          GLAIVE_ASSIGN_OR_RETURN(ArrayPtr found,
                                  Call("find_substring_regex", texts, options, pattern));
          GLAIVE_ASSIGN_OR_RETURN(arrow::Datum wide, CastTo(found, arrow::int64()));
          const ArrayPtr places = wide.make_array();
          const Numbers<int64_t> bytes(Arg{places, 1});
          const Texts values(Arg{texts, 1});
          KernelArgs one;
          one.args.push_back({places, 1});
          one.rows = texts->length();
          return MapNumbers<int64_t>(one, arrow::int64(), [&](int64_t row) {
            if (places->IsNull(row) || bytes[row] < 0) return int64_t{0};
            const auto prefix = static_cast<size_t>(bytes[row]);
            return CountChars(values[row].substr(0, prefix)) + 1;
          });
        });
  });
}

}  // namespace

Result<BoolPtr> MakeRegexTest(ValuePtr text, ValuePtr pattern, bool ignore_case) {
  CallSite call{"regexp_like", {std::move(text), std::move(pattern)}};
  if (ignore_case) {
    call.arguments.push_back(ConstantOf(std::make_shared<arrow::StringScalar>("i")));
  }
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr test, RegexpLike(std::move(call)));
  return MakeFromValue(std::move(test));
}

const std::vector<FunctionEntry>& RegexFunctions() {
  static const std::vector<FunctionEntry> functions = {
      {"regexp_count", 2, 4, RegexpCount},     {"regexp_instr", 2, 6, RegexpInstr},
      {"regexp_like", 2, 3, RegexpLike},       {"regexp_match", 2, 3, RegexpMatch},
      {"regexp_replace", 3, 4, RegexpReplace},
  };
  return functions;
}

}  // namespace glaive::expr
