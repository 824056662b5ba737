// Text to JsonPath.
#include <charconv>
#include <limits>
#include <optional>

#include "expr/json_path.h"
#include "expr/token.h"

namespace glaive::expr {
namespace {

using ExprPtr = std::shared_ptr<const JsonExpr>;
using Operand = JsonOperand;
using Kind = JsonExpr::Kind;

// Of conditions in conditions.
constexpr int kMaxNesting = 64;

void AppendUtf8(uint32_t c, std::string* out) {
  const auto put = [out](uint32_t byte) { out->push_back(static_cast<char>(byte)); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xC0 | (c >> 6));
    put(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    put(0xE0 | (c >> 12));
    put(0x80 | ((c >> 6) & 0x3F));
    put(0x80 | (c & 0x3F));
  } else {
    put(0xF0 | (c >> 18));
    put(0x80 | ((c >> 12) & 0x3F));
    put(0x80 | ((c >> 6) & 0x3F));
    put(0x80 | (c & 0x3F));
  }
}

// Each method reads at `at_` and returns false when that is not what it is for; the
// furthest place where something was missing is what an error tells.
class PathParser {
 public:
  explicit PathParser(std::string_view text) : text_(text) {}

  bool WholePath(std::vector<JsonStep>* steps) {
    Restart();
    if (!Accept('$') && !AtEnd() &&
        std::string_view(".:[?").find(Peek()) == std::string_view::npos) {
      JsonStep step;
      if (!RawName(&step.name)) return false;
      steps->push_back(std::move(step));
    }
    return Steps(true, steps) && Finished();
  }

  bool WholeCondition(ExprPtr* out) {
    Restart();
    // A sign here begins arithmetic.
    if (!AtEnd() && (Peek() == '+' || Peek() == '-')) return false;
    return Or(out) && Finished();
  }

  bool WholeArithmetic(ExprPtr* out) {
    Restart();
    int open = 0;
    for (; Accept('('); Skip()) ++open;
    auto expr = std::make_shared<JsonExpr>();
    if (!AtEnd() && (Peek() == '+' || Peek() == '-')) {
      expr->kind = Kind::kUnary;
      expr->op = text_[at_++];
      Skip();
      if (!ReadOperand(&expr->left)) return false;
    } else {
      expr->kind = Kind::kBinary;
      if (!ReadOperand(&expr->left)) return false;
      Skip();
      if (AtEnd() || std::string_view("+-*/%").find(Peek()) == std::string_view::npos) {
        return Missing("expected an operator");
      }
      expr->op = text_[at_++];
      Skip();
      if (!ReadOperand(&expr->right)) return false;
    }
    for (; open > 0; --open) {
      Skip();
      if (!Accept(')')) return Missing("expected ')'");
    }
    *out = std::move(expr);
    return Finished();
  }

  Status Error() const {
    return InvalidInput("expression: '", text_.substr(0, 200),
                        "' is not a JSON path: ", missing_, " at character ",
                        missing_at_ + 1);
  }

 private:
  void Restart() {
    at_ = 0;
    nesting_ = 0;
    inside_ = 0;
    Skip();
  }
  bool AtEnd() const { return at_ >= text_.size(); }
  char Peek() const { return text_[at_]; }
  void Skip() {
    while (!AtEnd() &&
           (Peek() == ' ' || Peek() == '\t' || Peek() == '\n' || Peek() == '\r')) {
      ++at_;
    }
  }
  bool Accept(char c) {
    if (AtEnd() || Peek() != c) return false;
    ++at_;
    return true;
  }
  bool AcceptText(std::string_view word) {
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }
  bool Missing(std::string_view what) {
    if (missing_.empty() || at_ >= missing_at_) {
      missing_ = what;
      missing_at_ = at_;
    }
    return false;
  }
  bool Finished() {
    Skip();
    return AtEnd() || Missing("unexpected text");
  }

  std::optional<uint32_t> Hex4() {
    if (text_.size() - at_ < 4) return std::nullopt;
    uint32_t value = 0;
    const char* begin = text_.data() + at_;
    const auto result = std::from_chars(begin, begin + 4, value, 16);
    if (result.ec != std::errc() || result.ptr != begin + 4) return std::nullopt;
    at_ += 4;
    return value;
  }

  // After a backslash.
  bool Escape(std::string* out) {
    if (AtEnd()) return Missing("expected an escaped character");
    static constexpr std::string_view kLetters = "\\\"/bfnrt";
    static constexpr std::string_view kMeanings = "\\\"/\b\f\n\r\t";
    const char c = Peek();
    const size_t place = kLetters.find(c);
    if (place != std::string_view::npos) {
      ++at_;
      out->push_back(kMeanings[place]);
      return true;
    }
    if (c != 'u') return Missing("unknown escape");
    ++at_;
    std::optional<uint32_t> code = Hex4();
    if (!code) return Missing("expected four hexadecimal digits");
    if (*code >= 0xD800 && *code < 0xDC00 && text_.substr(at_).starts_with("\\u")) {
      const size_t before = at_;
      at_ += 2;
      const std::optional<uint32_t> low = Hex4();
      if (low && *low >= 0xDC00 && *low < 0xE000) {
        code = 0x10000 + ((*code - 0xD800) << 10) + (*low - 0xDC00);
      } else {
        at_ = before;
      }
    }
    if (*code >= 0xD800 && *code < 0xE000) code = 0xFFFD;  // half of a pair
    AppendUtf8(*code, out);
    return true;
  }

  bool RawName(std::string* out) {
    static constexpr std::string_view kEnds = " .:[]()?@$|<>!=+-*/%\"',{}";
    while (!AtEnd() && kEnds.find(Peek()) == std::string_view::npos) {
      const char c = text_[at_++];
      if (c != '\\') {
        out->push_back(c);
      } else if (!Escape(out)) {
        return false;
      }
    }
    return !out->empty() || Missing("expected a name");
  }

  bool Quoted(std::string* out) {
    if (!Accept('"')) return Missing("expected '\"'");
    while (!AtEnd() && Peek() != '"') {
      const char c = text_[at_++];
      if (c != '\\') {
        out->push_back(c);
      } else if (!Escape(out)) {
        return false;
      }
    }
    if (!Accept('"')) return Missing("a quote is not closed");
    return !out->empty() || Missing("expected a text that is not empty");
  }

  bool Name(std::string* out) {
    return !AtEnd() && Peek() == '"' ? Quoted(out) : RawName(out);
  }

  // A whole number, with a sign perhaps.
  bool Whole(int64_t least, int64_t most, int64_t* out) {
    const size_t before = at_;
    if (!AtEnd() && Peek() == '+') ++at_;
    const auto result =
        std::from_chars(text_.data() + at_, text_.data() + text_.size(), *out);
    if (result.ec != std::errc() || *out < least || *out > most) {
      at_ = before;
      return Missing("expected a position");
    }
    at_ = static_cast<size_t>(result.ptr - text_.data());
    return true;
  }

  // 3, last, last - 1
  bool Bound(JsonBound* out) {
    Skip();
    if (!AcceptText("last")) return Whole(INT32_MIN, INT32_MAX, &out->offset);
    out->from_end = true;
    const size_t after = at_;
    Skip();
    const bool minus = Accept('-');
    if (!minus && !Accept('+')) {
      at_ = after;
      return true;
    }
    Skip();
    if (!Whole(INT32_MIN, INT32_MAX, &out->offset)) return false;
    if (minus) out->offset = -out->offset;
    return true;
  }

  // After "**".
  bool Levels(JsonStep* step) {
    if (!Accept('{')) return true;
    Skip();
    int64_t level = 0;
    if (!Whole(0, UINT8_MAX, &level)) return false;
    step->from_level = step->to_level = static_cast<uint32_t>(level);
    Skip();
    if (AcceptText("to")) {
      Skip();
      if (AcceptText("last")) {
        step->to_level = UINT32_MAX;
      } else {
        if (!Whole(0, UINT8_MAX, &level)) return false;
        step->to_level = static_cast<uint32_t>(level);
      }
      Skip();
    }
    return Accept('}') || Missing("expected '}'");
  }

  // After '['.
  bool InBrackets(JsonStep* step) {
    Skip();
    if (Accept('*')) {
      step->kind = JsonStep::Kind::kAnyElement;
    } else if (!AtEnd() && Peek() == '"') {
      step->kind = JsonStep::Kind::kName;
      if (!Quoted(&step->name)) return false;
    } else {
      step->kind = JsonStep::Kind::kPositions;
      do {
        JsonRange range;
        if (!Bound(&range.first)) return false;
        range.last = range.first;
        Skip();
        if (AcceptText("to")) {
          range.last = {};
          if (!Bound(&range.last)) return false;
          Skip();
        }
        step->positions.push_back(range);
      } while (Accept(','));
    }
    Skip();
    return Accept(']') || Missing("expected ']'");
  }

  bool Steps(bool filters, std::vector<JsonStep>* steps) {
    for (;;) {
      const size_t before = at_;
      Skip();
      JsonStep step;
      if (Accept('.')) {
        if (AcceptText("**")) {
          step.kind = JsonStep::Kind::kRecursive;
          if (!Levels(&step)) return false;
        } else if (Accept('*')) {
          step.kind = JsonStep::Kind::kAnyMember;
        } else if (!Name(&step.name)) {
          return false;
        }
      } else if (Accept(':')) {
        if (!Name(&step.name)) return false;
      } else if (Accept('[')) {
        if (!InBrackets(&step)) return false;
      } else if (filters && Accept('?')) {
        step.kind = JsonStep::Kind::kFilter;
        Skip();
        if (!Accept('(')) return Missing("expected '('");
        if (++nesting_ > kMaxNesting) return Missing("nested too deeply");
        ++inside_;
        if (!Or(&step.filter)) return false;
        --inside_;
        --nesting_;
        Skip();
        if (!Accept(')')) return Missing("expected ')'");
      } else {
        at_ = before;
        return true;
      }
      steps->push_back(std::move(step));
    }
  }

  // $... or @...
  bool RootedPath(bool filters, Operand* out) {
    if (Accept('$')) {
      out->kind = Operand::Kind::kRoot;
    } else if (inside_ > 0 && Accept('@')) {
      out->kind = Operand::Kind::kCurrent;
    } else {
      return Missing("expected a path");
    }
    return Steps(filters, &out->steps);
  }

  bool Number(Operand* out) {
    out->literal = JsonItem::Kind::kNumber;
    const size_t begin = at_;
    if (!AtEnd() && (Peek() == '+' || Peek() == '-')) ++at_;
    const bool negative = at_ > begin && text_[begin] == '-';
    const auto digits = [&] {
      const size_t from = at_;
      while (!AtEnd() && Peek() >= '0' && Peek() <= '9') ++at_;
      return at_ - from;
    };
    const size_t first = at_;
    const size_t count = digits();
    if (count > 0) {
      uint64_t value = 0;
      const auto result =
          std::from_chars(text_.data() + first, text_.data() + at_, value);
      const uint64_t limit =
          negative ? uint64_t{1} << 63
                   : (first > begin ? static_cast<uint64_t>(INT64_MAX) : UINT64_MAX);
      if (result.ec == std::errc() && value <= limit) {
        out->number.is_integer = true;
        out->number.is_signed = first > begin;
        out->number.integer =
            negative ? -static_cast<Int128>(value) : static_cast<Int128>(value);
        return true;
      }
    }
    size_t fraction = 0;
    if (!AtEnd() && Peek() == '.') {
      ++at_;
      fraction = digits();
    }
    if (count + fraction == 0) {
      at_ = first;
      return NamedNumber(negative, out) || Missing("expected a value");
    }
    if (!AtEnd() && (Peek() == 'e' || Peek() == 'E')) {
      const size_t before = at_++;
      if (!AtEnd() && (Peek() == '+' || Peek() == '-')) ++at_;
      if (digits() == 0) at_ = before;
    }
    const auto result =
        std::from_chars(text_.data() + first, text_.data() + at_, out->number.floating);
    if (result.ec != std::errc()) return Missing("a number is out of range");
    if (negative) out->number.floating = -out->number.floating;
    return true;
  }

  bool NamedNumber(bool negative, Operand* out) {
    const std::string rest = ToLowerAscii(text_.substr(at_, 8));
    double value = std::numeric_limits<double>::infinity();
    if (rest.starts_with("infinity")) {
      at_ += 8;
    } else if (rest.starts_with("inf")) {
      at_ += 3;
    } else if (rest.starts_with("nan")) {
      at_ += 3;
      value = std::numeric_limits<double>::quiet_NaN();
    } else {
      return false;
    }
    out->number.floating = negative ? -value : value;
    return true;
  }

  bool ReadOperand(Operand* out) {
    if (AtEnd()) return Missing("expected a value");
    if (Peek() == '$' || Peek() == '@') return RootedPath(false, out);
    if (Peek() == '"') {
      out->literal = JsonItem::Kind::kString;
      return Quoted(&out->text);
    }
    if (AcceptText("null")) return true;
    if (AcceptText("true") || AcceptText("false")) {
      out->literal = JsonItem::Kind::kBool;
      out->flag = text_[at_ - 2] == 'u';
      return true;
    }
    return Number(out);
  }

  bool Or(ExprPtr* out) { return Joined("||", Kind::kOr, out); }

  bool Joined(std::string_view symbol, Kind kind, ExprPtr* out) {
    const auto part = [&](ExprPtr* one) {
      return kind == Kind::kOr ? Joined("&&", Kind::kAnd, one) : Atom(one);
    };
    auto node = std::make_shared<JsonExpr>();
    node->kind = kind;
    for (;;) {
      ExprPtr one;
      if (!part(&one)) return false;
      node->children.push_back(std::move(one));
      const size_t before = at_;
      Skip();
      if (AcceptText(symbol)) continue;
      at_ = before;
      *out = node->children.size() == 1 ? node->children[0] : std::move(node);
      return true;
    }
  }

  bool Atom(ExprPtr* out) {
    Skip();
    if (Accept('(')) {
      if (++nesting_ > kMaxNesting) return Missing("nested too deeply");
      if (!Or(out)) return false;
      --nesting_;
      Skip();
      return Accept(')') || Missing("expected ')'");
    }
    auto expr = std::make_shared<JsonExpr>();
    const size_t before = at_;
    if (AcceptText("exists")) {
      Skip();
      if (Accept('(')) {
        expr->kind = Kind::kExists;
        if (++nesting_ > kMaxNesting) return Missing("nested too deeply");
        ++inside_;
        Skip();
        if (!RootedPath(true, &expr->left)) return false;
        --inside_;
        --nesting_;
        Skip();
        *out = std::move(expr);
        return Accept(')') || Missing("expected ')'");
      }
      at_ = before;
    }
    // As upstream: a sign goes with the right operand alone.
    if (!AtEnd() && (Peek() == '+' || Peek() == '-')) return Missing("expected a value");
    if (!ReadOperand(&expr->left)) return false;
    Skip();
    if (AcceptText("starts with")) {
      expr->kind = Kind::kStartsWith;
    } else {
      expr->kind = Kind::kCompare;
      if (AcceptText("==")) {
        expr->op = '=';
      } else if (AcceptText("!=") || AcceptText("<>")) {
        expr->op = '!';
      } else if (AcceptText("<=")) {
        expr->op = 'l';
      } else if (AcceptText(">=")) {
        expr->op = 'g';
      } else if (AcceptText("<")) {
        expr->op = '<';
      } else if (AcceptText(">")) {
        expr->op = '>';
      } else {
        return Missing("expected a comparison");
      }
    }
    Skip();
    if (!ReadOperand(&expr->right)) return false;
    *out = std::move(expr);
    return true;
  }

  std::string_view text_;
  size_t at_ = 0;
  int nesting_ = 0;
  int inside_ = 0;  // of a filter or exists(), where @ has a meaning
  std::string missing_;
  size_t missing_at_ = 0;
};

}  // namespace

Result<JsonPath> JsonPath::Parse(std::string_view text) {
  JsonPath path;
  PathParser parser(text);
  if (parser.WholePath(&path.steps_)) return path;
  path.steps_.clear();
  if (parser.WholeCondition(&path.expr_) || parser.WholeArithmetic(&path.expr_)) {
    return path;
  }
  return parser.Error();
}

}  // namespace glaive::expr
