#include "expr/token.h"

#include <algorithm>
#include <array>

namespace glaive::expr {
namespace {

constexpr size_t kExcerptBytes = 24;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsSpace(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool IsWordStart(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}
bool IsWordPart(char c) { return IsWordStart(c) || IsDigit(c) || c == '$'; }

int HexValue(char c) {
  if (IsDigit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// Longest first, so that a prefix never hides a longer operator.
constexpr std::array<std::string_view, 38> kSymbols = {
    "!~~*", "<=>", "!~*", "!~~", "~~*", "==", "!=", "<>", "<=", ">=", "||", "::", "<<",
    ">>",   "!~",  "~*",  "~~",  "=",   "<",  ">",  "+",  "-",  "*",  "/",  "%",  "(",
    ")",    ",",   ".",   "[",   "]",   ";",  "~",  "&",  "|",  "^",  ":",  "?"};

// Length of the valid UTF-8 prefix: strings become Arrow strings, which must be valid.
size_t ValidPrefix(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  size_t i = 0;
  while (i < text.size()) {
    const unsigned char first = byte(i);
    if (first < 0x80) {
      ++i;
      continue;
    }
    const size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
    if (first < 0xC2 || first > 0xF4 || i + length > text.size()) return i;
    for (size_t k = 1; k < length; ++k) {
      if ((byte(i + k) & 0xC0) != 0x80) return i;
    }
    // Over-long forms, surrogates, and beyond the last code point.
    const unsigned char second = byte(i + 1);
    if ((first == 0xE0 && second < 0xA0) || (first == 0xED && second >= 0xA0) ||
        (first == 0xF0 && second < 0x90) || (first == 0xF4 && second >= 0x90)) {
      return i;
    }
    i += length;
  }
  return i;
}

class Tokenizer {
 public:
  explicit Tokenizer(std::string_view sql) : sql_(sql) {}

  Result<std::vector<Token>> Run() {
    for (;;) {
      GLAIVE_RETURN_NOT_OK(SkipBlanks());
      if (at_ >= sql_.size()) break;
      Token token;
      token.begin = at_;
      GLAIVE_RETURN_NOT_OK(Next(&token));
      token.end = at_;
      tokens_.push_back(std::move(token));
    }
    Token end;
    end.begin = end.end = sql_.size();
    tokens_.push_back(std::move(end));
    return std::move(tokens_);
  }

 private:
  char Peek(size_t ahead = 0) const {
    return at_ + ahead < sql_.size() ? sql_[at_ + ahead] : '\0';
  }

  // White space and both kinds of comments; /* */ nests, as in standard SQL.
  Status SkipBlanks() {
    while (at_ < sql_.size()) {
      if (IsSpace(sql_[at_])) {
        ++at_;
      } else if (Peek() == '-' && Peek(1) == '-') {
        while (at_ < sql_.size() && sql_[at_] != '\n') ++at_;
      } else if (Peek() == '/' && Peek(1) == '*') {
        const size_t begin = at_;
        int depth = 0;
        do {
          if (at_ >= sql_.size()) return ErrorAt(sql_, begin, "comment is not closed");
          if (Peek() == '/' && Peek(1) == '*') {
            ++depth;
            at_ += 2;
          } else if (Peek() == '*' && Peek(1) == '/') {
            --depth;
            at_ += 2;
          } else {
            ++at_;
          }
        } while (depth > 0);
      } else {
        break;
      }
    }
    return Status::OK();
  }

  Status Next(Token* token) {
    const char c = Peek();
    if (c == '\'') return Quoted('\'', TokenKind::kString, token);
    if (c == '"') return Quoted('"', TokenKind::kDoubleQuoted, token);
    if (c == '`') return Quoted('`', TokenKind::kQuotedName, token);
    if ((c == 'x' || c == 'X') && Peek(1) == '\'') {
      ++at_;
      GLAIVE_RETURN_NOT_OK(Quoted('\'', TokenKind::kHex, token));
      return DecodeHex(token);
    }
    if (IsDigit(c) || (c == '.' && IsDigit(Peek(1)))) return Number(token);
    if (c == '$') return DollarQuoted(token);
    if (IsWordStart(c)) {
      token->kind = TokenKind::kWord;
      while (at_ < sql_.size() && IsWordPart(sql_[at_]))
        token->text.push_back(sql_[at_++]);
      return Status::OK();
    }
    for (std::string_view symbol : kSymbols) {
      if (sql_.substr(at_, symbol.size()) == symbol) {
        token->kind = TokenKind::kSymbol;
        token->text = symbol;
        at_ += symbol.size();
        return Status::OK();
      }
    }
    return ErrorAt(sql_, at_, "unexpected character");
  }

  // A doubled quote inside stands for one.
  Status Quoted(char quote, TokenKind kind, Token* token) {
    const size_t begin = at_++;
    token->kind = kind;
    for (;;) {
      if (at_ >= sql_.size()) {
        return ErrorAt(
            sql_, begin,
            quote == '\'' ? "string is not closed" : "quoted name is not closed");
      }
      if (sql_[at_] != quote) {
        token->text.push_back(sql_[at_++]);
      } else if (Peek(1) == quote) {
        token->text.push_back(quote);
        at_ += 2;
      } else {
        ++at_;
        return Status::OK();
      }
    }
  }

  // $$text$$ or $tag$text$tag$: nothing in it is special.
  Status DollarQuoted(Token* token) {
    size_t end = at_ + 1;
    while (end < sql_.size() && (IsWordStart(sql_[end]) || IsDigit(sql_[end]))) ++end;
    if (end >= sql_.size() || sql_[end] != '$') {
      return ErrorAt(sql_, at_, "unexpected character");
    }
    const std::string_view tag = sql_.substr(at_, end + 1 - at_);
    const size_t close = sql_.find(tag, end + 1);
    if (close == std::string_view::npos) {
      return ErrorAt(sql_, at_, "string is not closed");
    }
    token->kind = TokenKind::kString;
    token->text = sql_.substr(end + 1, close - end - 1);
    at_ = close + tag.size();
    return Status::OK();
  }

  Status DecodeHex(Token* token) {
    std::string bytes;
    const std::string& digits = token->text;
    if (digits.size() % 2 != 0) {
      return ErrorAt(sql_, token->begin,
                     "hexadecimal literal has an odd number of digits");
    }
    for (size_t i = 0; i < digits.size(); i += 2) {
      const int high = HexValue(digits[i]);
      const int low = HexValue(digits[i + 1]);
      if (high < 0 || low < 0) {
        return ErrorAt(sql_, token->begin,
                       "hexadecimal literal holds other characters than 0-9A-F");
      }
      bytes.push_back(static_cast<char>(high * 16 + low));
    }
    token->text = std::move(bytes);
    return Status::OK();
  }

  Status Number(Token* token) {
    if (Peek() == '0' && (Peek(1) == 'x' || Peek(1) == 'X')) {
      at_ += 2;
      token->kind = TokenKind::kHex;
      while (HexValue(Peek()) >= 0) token->text.push_back(sql_[at_++]);
      if (token->text.empty() || IsWordPart(Peek())) {
        return ErrorAt(sql_, token->begin, "malformed hexadecimal literal");
      }
      if (token->text.size() % 2 != 0) token->text.insert(0, "0");
      return DecodeHex(token);
    }
    token->kind = TokenKind::kNumber;
    const size_t begin = at_;
    while (IsDigit(Peek())) ++at_;
    if (Peek() == '.') {
      ++at_;
      while (IsDigit(Peek())) ++at_;
    }
    if (Peek() == 'e' || Peek() == 'E') {
      const size_t sign = (Peek(1) == '+' || Peek(1) == '-') ? 1 : 0;
      if (IsDigit(Peek(1 + sign))) {
        at_ += 1 + sign;
        while (IsDigit(Peek())) ++at_;
      }
    }
    token->text = sql_.substr(begin, at_ - begin);
    return Status::OK();
  }

  std::string_view sql_;
  size_t at_ = 0;
  std::vector<Token> tokens_;
};

}  // namespace

Result<std::vector<Token>> Tokenize(std::string_view sql) {
  if (const size_t valid = ValidPrefix(sql); valid < sql.size()) {
    return InvalidInput("expression: it is no valid UTF-8 from position ", valid + 1);
  }
  return Tokenizer(sql).Run();
}

Status ErrorAt(std::string_view sql, size_t begin, std::string_view what) {
  begin = std::min(begin, sql.size());
  if (begin == sql.size()) {
    return InvalidInput("expression '", sql.substr(0, 200), "': ", what, " at position ",
                        begin + 1, " (the end)");
  }
  std::string near(sql.substr(begin, kExcerptBytes));
  // Not in the middle of a UTF-8 sequence.
  size_t end = begin + near.size();
  while (end < sql.size() && !near.empty() &&
         (static_cast<unsigned char>(sql[end]) & 0xC0) == 0x80) {
    near.pop_back();
    --end;
  }
  for (char& c : near) {
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  }
  return InvalidInput("expression: ", what, " at position ", begin + 1, " near '", near,
                      "'");
}

std::string ToLowerAscii(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + ('a' - 'A'));
  }
  return lower;
}

}  // namespace glaive::expr
