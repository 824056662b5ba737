#include "expr/literal.h"

#include <cmath>
#include <cstdlib>

#include "expr/calendar.h"

namespace glaive::expr {
namespace {

constexpr int kMaxDigits = 38;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

Int128 PowerOfTen(int exponent) {
  Int128 power = 1;
  for (int i = 0; i < exponent; ++i) power *= 10;
  return power;
}

// Reads text from the front.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  bool done() const { return at_ == text_.size(); }
  bool Accept(char c) {
    if (done() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool AcceptText(std::string_view text) {
    if (text_.substr(at_, text.size()) != text) return false;
    at_ += text.size();
    return true;
  }
  // Exactly `digits` digits.
  std::optional<int> Digits(int digits) {
    int value = 0;
    for (int i = 0; i < digits; ++i, ++at_) {
      if (done() || !IsDigit(text_[at_])) return std::nullopt;
      value = value * 10 + (text_[at_] - '0');
    }
    return value;
  }
  // 1 to 9 digits after a decimal point, as nanoseconds.
  std::optional<int64_t> Fraction() {
    int64_t value = 0;
    int digits = 0;
    while (!done() && IsDigit(text_[at_]) && digits < 9) {
      value = value * 10 + (text_[at_++] - '0');
      ++digits;
    }
    if (digits == 0 || (!done() && IsDigit(text_[at_]))) return std::nullopt;
    for (; digits < 9; ++digits) value *= 10;
    return value;
  }

 private:
  std::string_view text_;
  size_t at_ = 0;
};

std::optional<int64_t> ReadDate(Reader* in) {
  const bool negative = in->Accept('-');
  const auto year = in->Digits(4);
  if (!year || !in->Accept('-')) return std::nullopt;
  const auto month = in->Digits(2);
  if (!month || !in->Accept('-')) return std::nullopt;
  const auto day = in->Digits(2);
  if (!day || *month < 1 || *month > 12) return std::nullopt;
  const int y = negative ? -*year : *year;
  if (*day < 1 || *day > DaysInMonth(y, *month)) return std::nullopt;
  return DaysFromCivil(y, *month, *day);
}

// `full`: hours and minutes alone are no time.
std::optional<Int128> ReadTime(Reader* in, bool full) {
  const auto hour = in->Digits(2);
  if (!hour || *hour > 23 || !in->Accept(':')) return std::nullopt;
  const auto minute = in->Digits(2);
  if (!minute || *minute > 59) return std::nullopt;
  int64_t seconds = *hour * 3600 + *minute * 60;
  int64_t nanos = 0;
  const bool has_seconds = in->Accept(':');
  if (full && !has_seconds) return std::nullopt;
  if (has_seconds) {
    const auto second = in->Digits(2);
    // A leap second counts as the first second of the next minute.
    if (!second || *second > 60) return std::nullopt;
    seconds += *second;
    if (in->Accept('.')) {
      const auto fraction = in->Fraction();
      if (!fraction) return std::nullopt;
      nanos = *fraction;
    }
  }
  return static_cast<Int128>(seconds) * 1000000000 + nanos;
}

// "Z", "+01:00", "+0100" or "+01": seconds to subtract.
std::optional<int64_t> ReadZone(Reader* in) {
  if (in->Accept('Z') || in->Accept('z')) return 0;
  const bool east = in->Accept('+');
  if (!east && !in->Accept('-')) return std::nullopt;
  const auto hours = in->Digits(2);
  if (!hours || *hours > 23) return std::nullopt;
  int64_t seconds = *hours * 3600;
  if (in->Accept(':') || !in->done()) {
    const auto minutes = in->Digits(2);
    if (!minutes || *minutes > 59) return std::nullopt;
    seconds += *minutes * 60;
  }
  return east ? seconds : -seconds;
}

}  // namespace

Number Number::Parse(std::string_view text) {
  Number number;
  const std::string owned(text);
  number.value = std::strtod(owned.c_str(), nullptr);
  number.is_integer = text.find_first_of(".eE") == std::string_view::npos;
  if (!text.empty() && text[0] == '-') {
    number.negative = true;
    text.remove_prefix(1);
  }
  Int128 mantissa = 0;
  int digits = 0;
  int64_t scale = 0;
  bool point = false;
  size_t i = 0;
  for (; i < text.size() && (IsDigit(text[i]) || text[i] == '.'); ++i) {
    if (text[i] == '.') {
      point = true;
      continue;
    }
    if (digits < kMaxDigits) {
      mantissa = mantissa * 10 + (text[i] - '0');
      if (mantissa != 0) ++digits;
      if (point) ++scale;
    } else {
      number.sticky |= text[i] != '0';
      if (!point) --scale;
    }
  }
  if (i < text.size()) {  // the exponent
    const int64_t exponent =
        std::strtoll(owned.c_str() + (number.negative ? 1 : 0) + i + 1, nullptr, 10);
    scale -= std::max<int64_t>(-1000000, std::min<int64_t>(1000000, exponent));
  }
  if (mantissa == 0) scale = 0;
  number.mantissa = number.negative ? -mantissa : mantissa;
  number.huge = mantissa != 0 && digits - scale > kMaxDigits;
  // Far below any digit that a column can hold: only the sign of the rest matters.
  if (scale > 2 * kMaxDigits) {
    number.mantissa = 0;
    number.sticky = mantissa != 0;
    scale = 0;
  }
  number.scale = static_cast<int>(std::max<int64_t>(scale, -kMaxDigits));
  return number;
}

std::optional<int64_t> ParseDate(std::string_view text) {
  Reader in(text);
  const auto days = ReadDate(&in);
  return in.done() ? days : std::nullopt;
}

std::optional<Int128> ParseTime(std::string_view text) {
  Reader in(text);
  const auto nanos = ReadTime(&in, false);
  return in.done() ? nanos : std::nullopt;
}

std::optional<Int128> ParseTimestamp(std::string_view text, bool* zoned) {
  Reader in(text);
  if (zoned != nullptr) *zoned = false;
  const auto days = ReadDate(&in);
  if (!days) return std::nullopt;
  Int128 nanos = static_cast<Int128>(*days) * 86400 * 1000000000;
  if (in.done()) return nanos;
  if (!in.Accept('T') && !in.Accept('t') && !in.Accept(' ')) return std::nullopt;
  const auto time = ReadTime(&in, true);
  if (!time) return std::nullopt;
  nanos += *time;
  if (in.done()) return nanos;
  if (zoned != nullptr) *zoned = true;
  in.Accept(' ');
  if (in.AcceptText("UTC"))
    return in.done() ? std::optional<Int128>(nanos) : std::nullopt;
  const auto zone = ReadZone(&in);
  if (!zone || !in.done()) return std::nullopt;
  return nanos - static_cast<Int128>(*zone) * 1000000000;
}

Result<std::optional<Literal>> LiteralOf(const Node& node) {
  Literal literal;
  switch (node.kind) {
    case NodeKind::kNull:
      break;
    case NodeKind::kBool:
      literal.kind = LiteralKind::kBool;
      literal.flag = node.flag;
      break;
    case NodeKind::kNumber:
      literal.kind = LiteralKind::kNumber;
      literal.number = Number::Parse(node.text);
      break;
    case NodeKind::kString:
      literal.kind = LiteralKind::kString;
      literal.bytes = node.text;
      break;
    case NodeKind::kBinary:
      literal.kind = LiteralKind::kBinary;
      literal.bytes = node.text;
      break;
    case NodeKind::kDate: {
      literal.kind = LiteralKind::kDate;
      const auto days = ParseDate(node.text);
      if (!days)
        return InvalidInput("expression: '", node.text, "' is not a date (YYYY-MM-DD)");
      literal.days = *days;
      break;
    }
    case NodeKind::kTime: {
      literal.kind = LiteralKind::kTime;
      const auto nanos = ParseTime(node.text);
      if (!nanos)
        return InvalidInput("expression: '", node.text, "' is not a time (HH:MM:SS)");
      literal.nanos = *nanos;
      break;
    }
    case NodeKind::kTimestamp: {
      literal.kind = LiteralKind::kTimestamp;
      const auto nanos = ParseTimestamp(node.text);
      if (!nanos) {
        return InvalidInput(
            "expression: '", node.text,
            "' is not a timestamp (YYYY-MM-DD HH:MM:SS[.fraction][zone])");
      }
      literal.nanos = *nanos;
      break;
    }
    default:
      return std::nullopt;
  }
  return literal;
}

std::string_view LiteralKindName(LiteralKind kind) {
  switch (kind) {
    case LiteralKind::kNull:
      return "NULL";
    case LiteralKind::kBool:
      return "a boolean";
    case LiteralKind::kNumber:
      return "a number";
    case LiteralKind::kString:
      return "a string";
    case LiteralKind::kBinary:
      return "binary data";
    case LiteralKind::kDate:
      return "a date";
    case LiteralKind::kTime:
      return "a time";
    case LiteralKind::kTimestamp:
      return "a timestamp";
  }
  return "a value";
}

Floor FloorDiv(Int128 value, Int128 divisor) {
  Floor floor;
  floor.value = value / divisor;
  floor.exact = floor.value * divisor == value;
  if (!floor.exact && value < 0) --floor.value;
  return floor;
}

Floor FloorOf(const Number& number, int scale) {
  Floor floor;
  if (number.huge) {
    floor.overflow = number.negative ? -1 : 1;
    return floor;
  }
  const int shift = scale - number.scale;
  if (shift >= 0) {
    Int128 scaled = 0;
    if (shift > kMaxDigits && number.mantissa != 0) {
      floor.overflow = number.negative ? -1 : 1;
      return floor;
    }
    if (__builtin_mul_overflow(number.mantissa, PowerOfTen(std::min(shift, kMaxDigits)),
                               &scaled)) {
      floor.overflow = number.negative ? -1 : 1;
      return floor;
    }
    floor.value = scaled;
  } else if (shift < -kMaxDigits) {
    floor.value = number.mantissa < 0 ? -1 : 0;
    floor.exact = number.mantissa == 0;
  } else {
    floor = FloorDiv(number.mantissa, PowerOfTen(-shift));
  }
  if (number.sticky) {
    // The dropped digits move the number away from zero, by less than one step of the
    // mantissa.
    if (floor.exact && number.negative) --floor.value;
    floor.exact = false;
  }
  return floor;
}

IntegerTest ReduceToInteger(CompareOp op, const Floor& floor, Int128 min, Int128 max) {
  IntegerTest test;
  const auto constant = [&](bool always) {
    test.kind = always ? IntegerTest::Kind::kAlways : IntegerTest::Kind::kNever;
    return test;
  };
  const bool wants_less =
      op == CompareOp::kNe || op == CompareOp::kLt || op == CompareOp::kLe;
  const bool wants_more =
      op == CompareOp::kNe || op == CompareOp::kGt || op == CompareOp::kGe;
  if (floor.overflow > 0 || (floor.overflow == 0 && floor.value > max))
    return constant(wants_less);
  if (floor.overflow < 0 || floor.value < min) return constant(wants_more);
  test.value = floor.value;
  test.op = op;
  if (floor.exact) return test;
  switch (op) {
    case CompareOp::kEq:
      return constant(false);
    case CompareOp::kNe:
      return constant(true);
    case CompareOp::kLt:
    case CompareOp::kLe:
      test.op = CompareOp::kLe;
      return test;
    case CompareOp::kGt:
    case CompareOp::kGe:
      test.op = CompareOp::kGt;
      return test;
  }
  return test;
}

CompareOp Flip(CompareOp op) {
  switch (op) {
    case CompareOp::kLt:
      return CompareOp::kGt;
    case CompareOp::kLe:
      return CompareOp::kGe;
    case CompareOp::kGt:
      return CompareOp::kLt;
    case CompareOp::kGe:
      return CompareOp::kLe;
    default:
      return op;
  }
}

}  // namespace glaive::expr
