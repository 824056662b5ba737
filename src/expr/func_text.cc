// Functions that make or measure strings.
#include <algorithm>
#include <array>
#include <cwctype>
#include <unordered_map>

#include <arrow/scalar.h>
#include <arrow/type.h>
#include <arrow/type_traits.h>

#include "expr/cast.h"
#include "expr/coercion.h"
#include "expr/function.h"
#include "expr/kernel.h"
#include "expr/utf8_text.h"

namespace glaive::expr {
namespace {

using arrow::Type;

bool IsLarge(const ValuePtr& value) { return value->type()->id() == Type::LARGE_STRING; }

// The type of lengths and positions in a string.
TypePtr CountType(const ValuePtr& text) {
  return IsLarge(text) ? arrow::int64() : arrow::int32();
}

// The first argument, as text when it is none: length(12) is 2.
Result<ValuePtr> FirstAsText(const CallSite& call) {
  const TypePtr type = ValueType(call.arguments[0]->type());
  if (IsText(*type) || type->id() == Type::NA || IsBytes(*type)) {
    return TextArgument(call, 0);
  }
  return AnyAsText(call, 0);
}

// count(text) or count(text, other), both strings.
template <typename Count>
Result<ValuePtr> Counting(const CallSite& call, const Count& count) {
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr text, TextArgument(call, 0));
  const TypePtr type = CountType(text);
  const auto run = [type, count]<typename T>(const KernelArgs& args) {
    const Texts texts(args[0]);
    if constexpr (std::is_invocable_v<Count, std::string_view>) {
      return MapNumbers<T>(args, type,
                           [&](int64_t i) { return static_cast<T>(count(texts[i])); });
    } else {
      const Texts others(args[1]);
      return MapNumbers<T>(args, type, [&](int64_t i) {
        return static_cast<T>(count(texts[i], others[i]));
      });
    }
  };
  std::vector<ValuePtr> operands = {std::move(text)};
  if constexpr (!std::is_invocable_v<Count, std::string_view>) {
    GLAIVE_ASSIGN_OR_RETURN(ValuePtr other, TextArgument(call, 1));
    operands.push_back(std::move(other));
  }
  return MakeKernel(type, std::move(operands), [type, run](const KernelArgs& args) {
    return type->id() == Type::INT64 ? run.template operator()<int64_t>(args)
                                     : run.template operator()<int32_t>(args);
  });
}

// make(i, args, out) appends the text of row i; the operands are as the caller made them.
template <typename Make>
ValuePtr Making(TypePtr type, std::vector<ValuePtr> operands, const Make& make) {
  return MakeKernel(type, std::move(operands), [type, make](const KernelArgs& args) {
    const auto row = make(args);
    return MapText(args, type, [&](int64_t i, std::string* out) -> Result<bool> {
      return row(i, out);
    });
  });
}

Result<ValuePtr> Length(CallSite call) {
  const TypePtr type = ValueType(call.arguments[0]->type());
  if (IsBytes(*type)) {
    return MakeFunction("binary_length", std::move(call.arguments), {}, arrow::int32());
  }
  GLAIVE_ASSIGN_OR_RETURN(call.arguments[0], FirstAsText(call));
  return Counting(call, [](std::string_view text) { return CountChars(text); });
}
Result<ValuePtr> OctetLength(CallSite call) {
  const TypePtr type = ValueType(call.arguments[0]->type());
  if (IsBytes(*type)) {
    return MakeFunction("binary_length", std::move(call.arguments), {}, arrow::int32());
  }
  return Counting(call, [](std::string_view text) { return text.size(); });
}
Result<ValuePtr> BitLength(CallSite call) {
  return Counting(call, [](std::string_view text) { return text.size() * 8; });
}
Result<ValuePtr> Ascii(CallSite call) {
  GLAIVE_ASSIGN_OR_RETURN(call.arguments[0], AnyAsText(call, 0));
  return Counting(call, [](std::string_view text) {
    return text.empty() ? 0 : static_cast<int64_t>(DecodeChar(text, 0));
  });
}
// 1-based position in characters; 0 when it does not occur.
Result<ValuePtr> StrPos(CallSite call) {
  return Counting(call, [](std::string_view text, std::string_view part) {
    const size_t at = text.find(part);
    return at == std::string_view::npos ? 0 : CountChars(text.substr(0, at)) + 1;
  });
}

// The place of the text in a list with commas, from 1; 0 when it is not there.
Result<ValuePtr> FindInSet(CallSite call) {
  return Counting(call, [](std::string_view text, std::string_view set) {
    int64_t place = 1;
    for (; !set.empty(); ++place) {
      const size_t comma = set.find(',');
      if (set.substr(0, comma) == text) return place;
      if (comma == std::string_view::npos) break;
      set.remove_prefix(comma + 1);
    }
    return int64_t{0};
  });
}

// The number of characters to insert, drop or change.
int64_t EditDistance(std::string_view a, std::string_view b) {
  std::u32string text;
  for (size_t at = 0; at < b.size(); at += CharBytes(b, at))
    text.push_back(DecodeChar(b, at));
  std::vector<int64_t> row(text.size() + 1);
  for (size_t j = 0; j < row.size(); ++j) row[j] = static_cast<int64_t>(j);
  int64_t i = 0;
  for (size_t at = 0; at < a.size(); at += CharBytes(a, at)) {
    const char32_t character = DecodeChar(a, at);
    int64_t diagonal = row[0];
    row[0] = ++i;
    for (size_t j = 1; j < row.size(); ++j) {
      const int64_t change = diagonal + (text[j - 1] == character ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({change, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}
Result<ValuePtr> Levenshtein(CallSite call) { return Counting(call, EditDistance); }

Result<ValuePtr> Case(CallSite call) {
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr text, TextArgument(call, 0));
  return MakeFunction(call.name == "lower" ? "utf8_lower" : "utf8_upper",
                      {std::move(text)});
}

// Letters after anything that is no letter and no digit are upper case, others lower.
Result<ValuePtr> InitCap(CallSite call) {
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr text, TextArgument(call, 0));
  const TypePtr type = text->type();
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr lower, MakeFunction("utf8_lower", {text}));
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr upper, MakeFunction("utf8_upper", {text}));
  return Making(
      type, {std::move(text), std::move(lower), std::move(upper)},
      [](const KernelArgs& args) {
        const Texts texts(args[0]);
        const Texts lowers(args[1]);
        const Texts uppers(args[2]);
        return [texts, lowers, uppers](int64_t i, std::string* out) {
          const std::string_view whole = texts[i];
          const std::string_view low = lowers[i];
          const std::string_view up = uppers[i];
          size_t l = 0;
          size_t u = 0;
          bool start = true;
          for (size_t at = 0; at < whole.size(); at += CharBytes(whole, at)) {
            const size_t low_bytes = l < low.size() ? CharBytes(low, l) : 0;
            const size_t up_bytes = u < up.size() ? CharBytes(up, u) : 0;
            out->append(start ? up.substr(u, up_bytes) : low.substr(l, low_bytes));
            const char c = whole[at];
            const bool word = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
                              (c >= 'A' && c <= 'Z') ||
                              static_cast<unsigned char>(c) >= 0x80;
            start = !word;
            l += low_bytes;
            u += up_bytes;
          }
          return true;
        };
      });
}

// Takes characters of `set` off the ends.
std::string_view Strip(std::string_view text, std::string_view set, bool left,
                       bool right) {
  const auto in_set = [&](std::string_view character) {
    for (size_t at = 0; at < set.size(); at += CharBytes(set, at)) {
      if (set.substr(at, CharBytes(set, at)) == character) return true;
    }
    return false;
  };
  while (left && !text.empty()) {
    const size_t bytes = CharBytes(text, 0);
    if (!in_set(text.substr(0, bytes))) break;
    text.remove_prefix(bytes);
  }
  while (right && !text.empty()) {
    size_t begin = text.size() - 1;
    while (begin > 0 && IsContinuation(text[begin])) --begin;
    if (!in_set(text.substr(begin))) break;
    text.remove_suffix(text.size() - begin);
  }
  return text;
}

Result<ValuePtr> TrimCall(CallSite call) {
  const bool left = call.name != "rtrim";
  const bool right = call.name != "ltrim";
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr text, TextArgument(call, 0));
  ValuePtr set = ConstantOf(std::make_shared<arrow::StringScalar>(" "));
  if (call.arguments.size() == 2) {
    GLAIVE_ASSIGN_OR_RETURN(set, TextArgument(call, 1));
  }
  const TypePtr type = text->type();
  return Making(type, {std::move(text), std::move(set)},
                [left, right](const KernelArgs& args) {
                  const Texts texts(args[0]);
                  const Texts sets(args[1]);
                  return [=](int64_t i, std::string* out) {
                    out->append(Strip(texts[i], sets[i], left, right));
                    return true;
                  };
                });
}

Result<ValuePtr> Chr(CallSite call) {
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr code, NumberArgument(call, 0, arrow::int64()));
  return Making(arrow::utf8(), {std::move(code)}, [](const KernelArgs& args) {
    const Numbers<int64_t> codes(args[0]);
    return [codes](int64_t i, std::string* out) -> Result<bool> {
      const int64_t value = codes[i];
      if (value < 0 || value > 0x10FFFF || (value >= 0xD800 && value < 0xE000)) {
        return InvalidInput("expression: chr(", value, ") is no character");
      }
      AppendChar(static_cast<char32_t>(value), out);
      return true;
    };
  });
}

// Null arguments count as empty text, unlike with ||.
Result<ValuePtr> Concat(CallSite call) {
  std::vector<ValuePtr> operands;
  bool large = false;
  for (size_t i = 0; i < call.arguments.size(); ++i) {
    const bool is_large =
        ValueType(call.arguments[i]->type())->id() == Type::LARGE_STRING;
    large |= is_large;
    GLAIVE_ASSIGN_OR_RETURN(
        ValuePtr text,
        MakeCast(call.arguments[i], is_large ? arrow::large_utf8() : arrow::utf8()));
    operands.push_back(std::move(text));
  }
  const TypePtr type = large ? arrow::large_utf8() : arrow::utf8();
  return MakeKernel(type, std::move(operands),
                    [type](const KernelArgs& args) -> Result<ArrayPtr> {
                      std::vector<Texts> texts;
                      for (const Arg& arg : args.args) texts.emplace_back(arg);
                      TextBuilder builder(type, args.rows);
                      for (int64_t i = 0; i < args.rows; ++i) {
                        for (size_t k = 0; k < texts.size(); ++k) {
                          if (!args[k].IsNull(i)) builder.text()->append(texts[k][i]);
                        }
                        GLAIVE_RETURN_NOT_OK(builder.Close());
                      }
                      return builder.Finish();
                    });
}

// Nulls behind the separator are left out; a null separator gives null.
Result<ValuePtr> ConcatWs(CallSite call) {
  std::vector<ValuePtr> operands;
  for (size_t i = 0; i < call.arguments.size(); ++i) {
    GLAIVE_ASSIGN_OR_RETURN(ValuePtr text, AnyAsText(call, i));
    operands.push_back(std::move(text));
  }
  return MakeKernel(arrow::utf8(), std::move(operands),
                    [](const KernelArgs& args) -> Result<ArrayPtr> {
                      std::vector<Texts> texts;
                      for (const Arg& arg : args.args) texts.emplace_back(arg);
                      TextBuilder builder(arrow::utf8(), args.rows);
                      for (int64_t i = 0; i < args.rows; ++i) {
                        if (args[0].IsNull(i)) {
                          builder.CloseNull();
                          continue;
                        }
                        bool first = true;
                        for (size_t k = 1; k < texts.size(); ++k) {
                          if (args[k].IsNull(i)) continue;
                          if (!first) builder.text()->append(texts[0][i]);
                          builder.text()->append(texts[k][i]);
                          first = false;
                        }
                        GLAIVE_RETURN_NOT_OK(builder.Close());
                      }
                      return builder.Finish();
                    });
}

// The first or last n characters; all but that many of the other end when n is negative.
Result<ValuePtr> Side(CallSite call) {
  const bool left = call.name == "left";
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr text, FirstAsText(call));
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr count, NumberArgument(call, 1, arrow::int64()));
  const TypePtr type = text->type();
  return Making(
      type, {std::move(text), std::move(count)}, [left](const KernelArgs& args) {
        const Texts texts(args[0]);
        const Numbers<int64_t> counts(args[1]);
        return [=](int64_t i, std::string* out) {
          const std::string_view value = texts[i];
          const int64_t n = counts[i];
          const int64_t chars = n >= 0 && left ? 0 : CountChars(value);
          if (left) {
            const int64_t keep = n >= 0 ? n : n < -chars ? 0 : chars + n;
            out->append(value.substr(0, ByteOfChar(value, keep)));
          } else {
            const int64_t skip =
                n >= 0 ? (n > chars ? 0 : chars - n) : (n < -chars ? chars : -n);
            out->append(value.substr(ByteOfChar(value, skip)));
          }
          return true;
        };
      });
}

// The longest text that one value may be padded or repeated to, in bytes.
constexpr int64_t kMostPadded = int64_t{1} << 24;

Result<ValuePtr> Pad(CallSite call) {
  const bool left = call.name == "lpad";
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr text, FirstAsText(call));
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr length, NumberArgument(call, 1, arrow::int64()));
  ValuePtr fill = ConstantOf(std::make_shared<arrow::StringScalar>(" "));
  if (call.arguments.size() == 3) {
    GLAIVE_ASSIGN_OR_RETURN(fill, TextArgument(call, 2));
  }
  const TypePtr type = text->type();
  return Making(type, {std::move(text), std::move(length), std::move(fill)},
                [left](const KernelArgs& args) {
                  const Texts texts(args[0]);
                  const Numbers<int64_t> lengths(args[1]);
                  const Texts fills(args[2]);
                  return [=](int64_t i, std::string* out) -> Result<bool> {
                    const std::string_view value = texts[i];
                    const std::string_view filling = fills[i];
                    const int64_t wanted = std::max<int64_t>(lengths[i], 0);
                    if (wanted > kMostPadded) {
                      return InvalidInput("expression: lpad() or rpad() to ", wanted,
                                          " characters is too much");
                    }
                    int64_t missing = wanted - CountChars(value);
                    if (missing <= 0) {
                      out->append(value.substr(0, ByteOfChar(value, wanted)));
                      return true;
                    }
                    if (!left) out->append(value);
                    const int64_t unit = CountChars(filling);
                    if (unit > 0) {
                      for (; missing >= unit; missing -= unit) out->append(filling);
                      out->append(filling.substr(0, ByteOfChar(filling, missing)));
                    }
                    if (left) out->append(value);
                    return true;
                  };
                });
}

Result<ValuePtr> Repeat(CallSite call) {
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr text, TextArgument(call, 0));
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr count, NumberArgument(call, 1, arrow::int64()));
  const TypePtr type = text->type();
  return Making(type, {std::move(text), std::move(count)}, [](const KernelArgs& args) {
    const Texts texts(args[0]);
    const Numbers<int64_t> counts(args[1]);
    return [=](int64_t i, std::string* out) -> Result<bool> {
      const std::string_view value = texts[i];
      if (counts[i] <= 0 || value.empty()) return true;
      if (counts[i] > kMostPadded / static_cast<int64_t>(value.size())) {
        return InvalidInput("expression: repeat() of ", value.size(), " bytes ",
                            counts[i], " times is too much");
      }
      for (int64_t k = 0; k < counts[i]; ++k) out->append(value);
      return true;
    };
  });
}

void ReplaceAll(std::string_view text, std::string_view from, std::string_view to,
                std::string* out) {
  if (from.empty()) {
    // Before every character and at the end.
    for (size_t at = 0; at < text.size(); at += CharBytes(text, at)) {
      out->append(to).append(text.substr(at, CharBytes(text, at)));
    }
    out->append(to);
    return;
  }
  for (;;) {
    const size_t at = text.find(from);
    out->append(text.substr(0, at));
    if (at == std::string_view::npos) return;
    out->append(to);
    text.remove_prefix(at + from.size());
  }
}

Result<ValuePtr> ThreeTexts(const CallSite& call,
                            void (*make)(std::string_view, std::string_view,
                                         std::string_view, std::string*)) {
  std::vector<ValuePtr> operands;
  for (size_t i = 0; i < 3; ++i) {
    GLAIVE_ASSIGN_OR_RETURN(ValuePtr text, TextArgument(call, i));
    operands.push_back(std::move(text));
  }
  const TypePtr type = operands[0]->type();
  return Making(type, std::move(operands), [make](const KernelArgs& args) {
    const Texts a(args[0]);
    const Texts b(args[1]);
    const Texts c(args[2]);
    return [=](int64_t i, std::string* out) {
      make(a[i], b[i], c[i], out);
      return true;
    };
  });
}

Result<ValuePtr> Replace(CallSite call) { return ThreeTexts(call, ReplaceAll); }

// Each character of `from` becomes the one at the same place in `to`, or nothing.
void TranslateText(std::string_view text, std::string_view from, std::string_view to,
                   std::string* out) {
  for (size_t at = 0; at < text.size(); at += CharBytes(text, at)) {
    const std::string_view character = text.substr(at, CharBytes(text, at));
    bool replaced = false;
    int64_t place = 0;
    for (size_t f = 0; f < from.size(); f += CharBytes(from, f), ++place) {
      if (from.substr(f, CharBytes(from, f)) != character) continue;
      const size_t t = ByteOfChar(to, place);
      if (t < to.size()) out->append(to.substr(t, CharBytes(to, t)));
      replaced = true;
      break;
    }
    if (!replaced) out->append(character);
  }
}
Result<ValuePtr> Translate(CallSite call) { return ThreeTexts(call, TranslateText); }

Result<ValuePtr> Reverse(CallSite call) {
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr text, FirstAsText(call));
  const TypePtr type = text->type();
  return Making(type, {std::move(text)}, [](const KernelArgs& args) {
    const Texts texts(args[0]);
    return [texts](int64_t i, std::string* out) {
      const std::string_view value = texts[i];
      size_t end = value.size();
      while (end > 0) {
        size_t begin = end - 1;
        while (begin > 0 && IsContinuation(value[begin])) --begin;
        out->append(value.substr(begin, end - begin));
        end = begin;
      }
      return true;
    };
  });
}

// Part n, counted from 1, or from the end when negative; empty when there is none.
Result<ValuePtr> SplitPart(CallSite call) {
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr text, TextArgument(call, 0));
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr separator, TextArgument(call, 1));
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr position, NumberArgument(call, 2, arrow::int64()));
  const TypePtr type = text->type();
  return Making(
      type, {std::move(text), std::move(separator), std::move(position)},
      [](const KernelArgs& args) {
        const Texts texts(args[0]);
        const Texts separators(args[1]);
        const Numbers<int64_t> positions(args[2]);
        return [=](int64_t i, std::string* out) -> Result<bool> {
          std::string_view value = texts[i];
          const std::string_view separator_text = separators[i];
          int64_t n = positions[i];
          if (n == 0)
            return InvalidInput("expression: split_part() counts from 1, not 0");
          if (separator_text.empty()) {
            // Nothing splits the text: it is the only part.
            if (n == 1 || n == -1) out->append(value);
            return true;
          }
          if (n < 0) {
            int64_t parts = 1;
            for (size_t at = value.find(separator_text); at != std::string_view::npos;
                 at = value.find(separator_text, at + separator_text.size())) {
              ++parts;
            }
            n = parts + n + 1;
            if (n < 1) return true;
          }
          for (; n > 1; --n) {
            const size_t at = value.find(separator_text);
            if (at == std::string_view::npos) return true;
            value.remove_prefix(at + separator_text.size());
          }
          out->append(value.substr(0, value.find(separator_text)));
          return true;
        };
      });
}

// Characters [start, start + length), counted from 1; what lies outside is left out.
Result<ValuePtr> Substr(CallSite call) {
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr text, TextArgument(call, 0));
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr start, NumberArgument(call, 1, arrow::int64()));
  std::vector<ValuePtr> operands = {std::move(text), std::move(start)};
  if (call.arguments.size() == 3) {
    GLAIVE_ASSIGN_OR_RETURN(ValuePtr length, NumberArgument(call, 2, arrow::int64()));
    operands.push_back(std::move(length));
  }
  const TypePtr type = operands[0]->type();
  return Making(type, std::move(operands), [](const KernelArgs& args) {
    const Texts texts(args[0]);
    const Numbers<int64_t> starts(args[1]);
    const Numbers<int64_t> lengths(args[args.size() - 1]);
    const bool bounded = args.size() == 3;
    return [=](int64_t i, std::string* out) -> Result<bool> {
      const std::string_view value = texts[i];
      const int64_t first = starts[i];
      const int64_t skip = std::max<int64_t>(first, 1) - 1;
      const size_t begin = ByteOfChar(value, skip);
      if (!bounded) {
        out->append(value.substr(begin));
        return true;
      }
      const int64_t count = lengths[i];
      if (count < 0) {
        return InvalidInput("expression: substr() with the negative length ", count);
      }
      int64_t end = 0;
      if (__builtin_add_overflow(first, count, &end)) end = first < 0 ? 0 : INT64_MAX;
      if (end - 1 <= skip) return true;
      const std::string_view rest = value.substr(begin);
      out->append(rest.substr(0, ByteOfChar(rest, end - 1 - skip)));
      return true;
    };
  });
}

// What stands before the n-th separator; from the right when n is negative.
Result<ValuePtr> SubstrIndex(CallSite call) {
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr text, TextArgument(call, 0));
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr separator, TextArgument(call, 1));
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr count, NumberArgument(call, 2, arrow::int64()));
  const TypePtr type = text->type();
  return Making(type, {std::move(text), std::move(separator), std::move(count)},
                [](const KernelArgs& args) {
                  const Texts texts(args[0]);
                  const Texts separators(args[1]);
                  const Numbers<int64_t> counts(args[2]);
                  return [=](int64_t i, std::string* out) {
                    const std::string_view value = texts[i];
                    const std::string_view mark = separators[i];
                    int64_t n = counts[i];
                    if (n == 0 || mark.empty() || value.empty()) return true;
                    if (n > 0) {
                      size_t at = 0;
                      for (;;) {
                        at = value.find(mark, at);
                        if (at == std::string_view::npos || --n == 0) break;
                        at += mark.size();
                      }
                      out->append(value.substr(0, at));
                      return true;
                    }
                    size_t at = value.size();
                    for (;;) {
                      if (at < mark.size()) {
                        at = std::string_view::npos;
                        break;
                      }
                      at = value.rfind(mark, at - mark.size());
                      if (at == std::string_view::npos || ++n == 0) break;
                    }
                    out->append(at == std::string_view::npos
                                    ? value
                                    : value.substr(at + mark.size()));
                    return true;
                  };
                });
}

Result<ValuePtr> Overlay(CallSite call) {
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr text, TextArgument(call, 0));
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr placing, TextArgument(call, 1));
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr start, NumberArgument(call, 2, arrow::int64()));
  std::vector<ValuePtr> operands = {std::move(text), std::move(placing),
                                    std::move(start)};
  if (call.arguments.size() == 4) {
    GLAIVE_ASSIGN_OR_RETURN(ValuePtr count, NumberArgument(call, 3, arrow::int64()));
    operands.push_back(std::move(count));
  }
  const TypePtr type = operands[0]->type();
  return Making(type, std::move(operands), [](const KernelArgs& args) {
    const Texts texts(args[0]);
    const Texts inserts(args[1]);
    const Numbers<int64_t> starts(args[2]);
    const Numbers<int64_t> counts(args[args.size() - 1]);
    const bool counted = args.size() == 4;
    return [=](int64_t i, std::string* out) {
      const std::string_view value = texts[i];
      const std::string_view insert = inserts[i];
      const int64_t replaced = counted ? counts[i] : CountChars(insert);
      const int64_t first = std::max<int64_t>(starts[i] - 1, 0);
      int64_t last = 0;
      if (__builtin_add_overflow(first, replaced, &last))
        last = replaced < 0 ? 0 : INT64_MAX;
      out->append(value.substr(0, ByteOfChar(value, first)));
      out->append(insert);
      out->append(value.substr(ByteOfChar(value, std::max<int64_t>(last, 0))));
      return true;
    };
  });
}

Result<ValuePtr> ToHex(CallSite call) {
  const bool is_unsigned =
      arrow::is_unsigned_integer(ValueType(call.arguments[0]->type())->id());
  const TypePtr type = is_unsigned ? arrow::uint64() : arrow::int64();
  const TypePtr from = ValueType(call.arguments[0]->type());
  if (!arrow::is_integer(from->id()) && from->id() != Type::NA) {
    return WrongArgument(call, 0, "a whole number");
  }
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr value, NumberArgument(call, 0, type));
  return Making(arrow::utf8(), {std::move(value)}, [](const KernelArgs& args) {
    const Numbers<uint64_t> values(args[0]);
    return [values](int64_t i, std::string* out) {
      char digits[16];
      int count = 0;
      uint64_t rest = values[i];
      do {
        digits[count++] = "0123456789abcdef"[rest % 16];
        rest /= 16;
      } while (rest != 0);
      while (count > 0) out->push_back(digits[--count]);
      return true;
    };
  });
}

}  // namespace

const std::vector<FunctionEntry>& TextFunctions() {
  static const std::vector<FunctionEntry> functions = {
      {"ascii", 1, 1, Ascii},
      {"bit_length", 1, 1, BitLength},
      {"btrim", 1, 2, TrimCall},
      {"char_length", 1, 1, Length},
      {"character_length", 1, 1, Length},
      {"chr", 1, 1, Chr},
      {"concat", 1, SIZE_MAX, Concat},
      {"concat_ws", 2, SIZE_MAX, ConcatWs},
      {"find_in_set", 2, 2, FindInSet},
      {"initcap", 1, 1, InitCap},
      {"instr", 2, 2, StrPos},
      {"left", 2, 2, Side},
      {"length", 1, 1, Length},
      {"levenshtein", 2, 2, Levenshtein},
      {"lower", 1, 1, Case},
      {"lpad", 2, 3, Pad},
      {"ltrim", 1, 2, TrimCall},
      {"octet_length", 1, 1, OctetLength},
      {"overlay", 3, 4, Overlay},
      {"position", 2, 2, StrPos},
      {"repeat", 2, 2, Repeat},
      {"replace", 3, 3, Replace},
      {"reverse", 1, 1, Reverse},
      {"right", 2, 2, Side},
      {"rpad", 2, 3, Pad},
      {"rtrim", 1, 2, TrimCall},
      {"split_part", 3, 3, SplitPart},
      {"strpos", 2, 2, StrPos},
      {"substr", 2, 3, Substr},
      {"substr_index", 3, 3, SubstrIndex},
      {"substring", 2, 3, Substr},
      {"substring_index", 3, 3, SubstrIndex},
      {"to_hex", 1, 1, ToHex},
      {"translate", 3, 3, Translate},
      {"trim", 1, 2, TrimCall},
      {"upper", 1, 1, Case},
  };
  return functions;
}

}  // namespace glaive::expr
