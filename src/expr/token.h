// Splits SQL expression text into tokens.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace glaive::expr {

enum class TokenKind : uint8_t {
  kEnd,
  kWord,          // name or key word, as written
  kQuotedName,    // `name`, unescaped
  kDoubleQuoted,  // "text", unescaped: a name when a column has it, otherwise a string
  kString,        // 'text', unescaped
  kHex,           // X'CAFE' or 0xCAFE: `text` holds the decoded bytes
  kNumber,
  kSymbol,  // operator or punctuation, in `text`
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string text;
  size_t begin = 0;  // byte offsets in the source
  size_t end = 0;
};

// All tokens, closed by one kEnd. InvalidInput with the place of the first character that
// starts no token, or of a quote that is never closed.
Result<std::vector<Token>> Tokenize(std::string_view sql);

// An InvalidInput error that points at `begin`: "<what> at position 7 near 'x = = 1'".
Status ErrorAt(std::string_view sql, size_t begin, std::string_view what);

// ASCII only; key words and function names are compared in this form.
std::string ToLowerAscii(std::string_view text);

}  // namespace glaive::expr
