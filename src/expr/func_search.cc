// Tests of one string against another. Constant patterns take the faster road of
// array_predicate.h, which the binder chooses.
#include <algorithm>
#include <vector>

#include <arrow/array.h>
#include <arrow/type.h>

#include "expr/coercion.h"
#include "expr/function.h"
#include "expr/kernel.h"
#include "expr/utf8_text.h"

namespace glaive::expr {
namespace {

Result<ValuePtr> TextPair(const CallSite& call,
                          bool (*test)(std::string_view, std::string_view)) {
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr text, TextArgument(call, 0));
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr part, TextArgument(call, 1));
  return MakeKernel(arrow::boolean(), {std::move(text), std::move(part)},
                    [test](const KernelArgs& args) {
                      const Texts texts(args[0]);
                      const Texts parts(args[1]);
                      return TryMapBools(args, [&](int64_t i, bool* out) -> Result<bool> {
                        *out = test(texts[i], parts[i]);
                        return true;
                      });
                    });
}

Result<ValuePtr> Contains(CallSite call) {
  return TextPair(call, [](std::string_view text, std::string_view part) {
    return text.find(part) != std::string_view::npos;
  });
}
Result<ValuePtr> StartsWith(CallSite call) {
  return TextPair(call, [](std::string_view text, std::string_view part) {
    return text.starts_with(part);
  });
}
Result<ValuePtr> EndsWith(CallSite call) {
  return TextPair(call, [](std::string_view text, std::string_view part) {
    return text.ends_with(part);
  });
}

// Letters and digits make words. Beyond ASCII everything counts as a letter but the
// blocks of punctuation and symbols that text has in practice.
bool IsWordChar(char32_t code) {
  if (code < 0x80) {
    return (code >= '0' && code <= '9') || (code >= 'a' && code <= 'z') ||
           (code >= 'A' && code <= 'Z');
  }
  if (code < 0xC0)
    return code == 0xAA || code == 0xB2 || code == 0xB3 || code == 0xB5 || code == 0xB9 ||
           code == 0xBA || (code >= 0xBC && code <= 0xBE);
  if (code == 0xD7 || code == 0xF7) return false;
  if (code >= 0x2000 && code <= 0x206F) return false;  // general punctuation
  if (code >= 0x20A0 && code <= 0x20CF) return false;  // currency
  if (code >= 0x2190 && code <= 0x245F) return false;  // arrows, operators, controls
  if (code >= 0x2500 && code <= 0x2BFF) return false;  // boxes, shapes, symbols
  if (code >= 0x3000 && code <= 0x3004) return false;  // CJK punctuation
  if (code >= 0x3008 && code <= 0x3020) return false;
  if (code >= 0xFF00 && code <= 0xFF0F) return false;  // full-width punctuation
  if (code >= 0xFF1A && code <= 0xFF20) return false;
  if (code >= 0xFF3B && code <= 0xFF40) return false;
  if (code >= 0xFF5B && code <= 0xFF65) return false;
  if (code >= 0x1F000 && code <= 0x1FAFF) return false;  // emoji
  return true;
}

void SplitWords(std::string_view text, std::vector<std::string_view>* words) {
  words->clear();
  size_t begin = std::string_view::npos;
  for (size_t at = 0; at < text.size(); at += CharBytes(text, at)) {
    if (IsWordChar(DecodeChar(text, at))) {
      if (begin == std::string_view::npos) begin = at;
    } else if (begin != std::string_view::npos) {
      words->push_back(text.substr(begin, at - begin));
      begin = std::string_view::npos;
    }
  }
  if (begin != std::string_view::npos) words->push_back(text.substr(begin));
}

// Whether every word of the second text is one of the first.
Result<ValuePtr> ContainsTokens(CallSite call) {
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr text, TextArgument(call, 0));
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr tokens, TextArgument(call, 1));
  return MakeKernel(
      arrow::boolean(), {std::move(text), std::move(tokens)}, [](const KernelArgs& args) {
        const Texts texts(args[0]);
        const Texts token_texts(args[1]);
        std::vector<std::string_view> wanted;
        std::vector<std::string_view> words;
        if (args[1].constant()) SplitWords(token_texts[0], &wanted);
        return TryMapBools(args, [&](int64_t i, bool* out) -> Result<bool> {
          if (!args[1].constant()) SplitWords(token_texts[i], &wanted);
          SplitWords(texts[i], &words);
          *out = std::all_of(wanted.begin(), wanted.end(), [&](std::string_view token) {
            return std::find(words.begin(), words.end(), token) != words.end();
          });
          return true;
        });
      });
}

}  // namespace

const std::vector<FunctionEntry>& SearchFunctions() {
  static const std::vector<FunctionEntry> functions = {
      {"contains", 2, 2, Contains},
      {"contains_tokens", 2, 2, ContainsTokens},
      {"ends_with", 2, 2, EndsWith},
      {"starts_with", 2, 2, StartsWith},
  };
  return functions;
}

}  // namespace glaive::expr
