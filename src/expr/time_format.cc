#include "expr/time_format.h"

#include <algorithm>
#include <array>

#include "expr/calendar.h"
#include "expr/token.h"

namespace glaive::expr {
namespace {

constexpr std::array<std::string_view, 12> kMonths = {
    "January", "February", "March",     "April",   "May",      "June",
    "July",    "August",   "September", "October", "November", "December"};
constexpr std::array<std::string_view, 7> kWeekdays = {
    "Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"};
constexpr size_t kShort = 3;  // letters of an abbreviated name

// A conversion of a pattern: what is behind '%'.
struct Conversion {
  char padding = 0;  // '-', '_' or '0' when given
  bool dot = false;  // %.3f
  int digits = -1;   // of %3f, %.3f
  int colons = 0;    // of %:z
  char letter = 0;
};

Status BadPattern(std::string_view pattern) {
  return InvalidInput("expression: '", pattern.substr(0, 100),
                      "' is no pattern of dates and times");
}

// Reads a conversion at `*at`, which is behind the '%'.
Result<Conversion> NextConversion(std::string_view pattern, size_t* at) {
  Conversion conversion;
  const auto peek = [&] { return *at < pattern.size() ? pattern[*at] : '\0'; };
  if (peek() == '-' || peek() == '_' || peek() == '0') {
    conversion.padding = peek();
    ++*at;
  } else {
    for (; peek() == ':'; ++*at) ++conversion.colons;
    if (peek() == '.') {
      conversion.dot = true;
      ++*at;
    }
    if (peek() == '3' || peek() == '6' || peek() == '9') {
      conversion.digits = peek() - '0';
      ++*at;
    }
  }
  conversion.letter = peek();
  if (conversion.letter == '\0') return BadPattern(pattern);
  ++*at;
  if ((conversion.dot || conversion.digits >= 0) && conversion.letter != 'f') {
    return BadPattern(pattern);
  }
  if (conversion.colons > 2 || (conversion.colons > 0 && conversion.letter != 'z')) {
    return BadPattern(pattern);
  }
  return conversion;
}

// Patterns that stand for others; empty: none.
std::string_view Expanded(char letter) {
  switch (letter) {
    case 'D':
    case 'x':
      return "%m/%d/%y";
    case 'F':
      return "%Y-%m-%d";
    case 'v':
      return "%e-%b-%Y";
    case 'R':
      return "%H:%M";
    case 'T':
    case 'X':
      return "%H:%M:%S";
    case 'r':
      return "%I:%M:%S %p";
    case 'c':
      return "%a %b %e %H:%M:%S %Y";
    case '+':
      return "%Y-%m-%dT%H:%M:%S%.f%:z";
    default:
      return {};
  }
}

void AppendNumber(int64_t value, int width, char usual, char asked, std::string* out) {
  const char padding = asked == 0 ? usual : asked;
  std::string digits = std::to_string(value < 0 ? -value : value);
  const auto missing = static_cast<size_t>(width) > digits.size()
                           ? static_cast<size_t>(width) - digits.size()
                           : 0;
  if (padding == '_') out->append(missing, ' ');
  if (value < 0) out->push_back('-');
  if (padding == '0') out->append(missing, '0');
  out->append(digits);
}

void AppendFraction(int64_t nanos, const Conversion& conversion, std::string* out) {
  int digits = conversion.digits;
  if (conversion.dot && digits < 0) {
    if (nanos == 0) return;
    digits = nanos % 1000000 == 0 ? 3 : nanos % 1000 == 0 ? 6 : 9;
  }
  if (digits < 0) digits = 9;
  if (conversion.dot) out->push_back('.');
  for (int k = digits; k < 9; ++k) nanos /= 10;
  AppendNumber(nanos, digits, '0', 0, out);
}

struct Week {
  int64_t year;
  int64_t week;
};
// Weeks from Monday; the first has the year's first Thursday.
Week IsoWeek(int64_t days) {
  const int64_t monday = days - (((days + 3) % 7 + 7) % 7);
  const Civil thursday = CivilFromDays(monday + 3);
  const int64_t first = DaysFromCivil(thursday.year, 1, 1);
  return {thursday.year, (monday + 3 - first) / 7 + 1};
}

// +0100, +01:00 or +01:00:00
void AppendOffset(int32_t seconds, int colons, std::string* out) {
  out->push_back(seconds < 0 ? '-' : '+');
  const int64_t value = seconds < 0 ? -static_cast<int64_t>(seconds) : seconds;
  AppendNumber(value / 3600, 2, '0', 0, out);
  if (colons > 0) out->push_back(':');
  AppendNumber(value / 60 % 60, 2, '0', 0, out);
  if (colons < 2) return;
  out->push_back(':');
  AppendNumber(value % 60, 2, '0', 0, out);
}

Status FormatOne(const Moment& moment, const Conversion& conversion,
                 std::string_view pattern, std::string* out) {
  const Civil civil = CivilFromDays(moment.days);
  const int64_t weekday = ((moment.days + 4) % 7 + 7) % 7;  // 0: Sunday
  const int64_t day_of_year = moment.days - DaysFromCivil(civil.year, 1, 1) + 1;
  const int64_t second = moment.nanos / kSecondNanos;
  const int64_t hour = second / 3600;
  const int64_t hour12 = hour % 12 == 0 ? 12 : hour % 12;
  const auto number = [&](int64_t value, int width, char usual = '0') {
    AppendNumber(value, width, usual, conversion.padding, out);
    return Status::OK();
  };
  const auto text = [&](std::string_view value) {
    out->append(value);
    return Status::OK();
  };
  constexpr std::string_view kOfDates = "YCymbhBdeaAwuUWGgVjqs";
  if (!moment.has_date && kOfDates.find(conversion.letter) != std::string_view::npos) {
    return BadPattern(pattern);
  }
  switch (conversion.letter) {
    case 'Y':
      if (civil.year > 9999) out->push_back('+');
      return number(civil.year, 4);
    case 'C':
      return number(FloorDivide(civil.year, 100), 2);
    case 'y':
      return number(((civil.year % 100) + 100) % 100, 2);
    case 'm':
      return number(civil.month, 2);
    case 'b':
    case 'h':
      return text(kMonths[static_cast<size_t>(civil.month - 1)].substr(0, kShort));
    case 'B':
      return text(kMonths[static_cast<size_t>(civil.month - 1)]);
    case 'd':
      return number(civil.day, 2);
    case 'e':
      return number(civil.day, 2, '_');
    case 'a':
      return text(kWeekdays[static_cast<size_t>(weekday)].substr(0, kShort));
    case 'A':
      return text(kWeekdays[static_cast<size_t>(weekday)]);
    case 'w':
      return number(weekday, 1);
    case 'u':
      return number(weekday == 0 ? 7 : weekday, 1);
    case 'U':
      return number((day_of_year + 6 - weekday) / 7, 2);
    case 'W':
      return number((day_of_year + 6 - (weekday + 6) % 7) / 7, 2);
    case 'G':
      return number(IsoWeek(moment.days).year, 4);
    case 'g':
      return number(((IsoWeek(moment.days).year % 100) + 100) % 100, 2);
    case 'V':
      return number(IsoWeek(moment.days).week, 2);
    case 'j':
      return number(day_of_year, 3);
    case 'q':
      return number((civil.month - 1) / 3 + 1, 1);
    case 'H':
      return number(hour, 2);
    case 'k':
      return number(hour, 2, '_');
    case 'I':
      return number(hour12, 2);
    case 'l':
      return number(hour12, 2, '_');
    case 'P':
      return text(hour < 12 ? "am" : "pm");
    case 'p':
      return text(hour < 12 ? "AM" : "PM");
    case 'M':
      return number(second / 60 % 60, 2);
    case 'S':
      return number(second % 60, 2);
    case 'f':
      AppendFraction(moment.nanos % kSecondNanos, conversion, out);
      return Status::OK();
    case 's':
      return number(moment.days * kDaySeconds + second - moment.offset.value_or(0), 1);
    case 'z':
    case 'Z':
      if (!moment.offset) return BadPattern(pattern);
      AppendOffset(*moment.offset, conversion.letter == 'Z' ? 1 : conversion.colons, out);
      return Status::OK();
    case 't':
      return text("\t");
    case 'n':
      return text("\n");
    case '%':
      return text("%");
    default:
      return BadPattern(pattern);
  }
}

// What a text said, part by part.
struct Parts {
  std::optional<int64_t> year;
  std::optional<int64_t> month;
  std::optional<int64_t> day;
  std::optional<int64_t> day_of_year;
  std::optional<int64_t> hour;
  std::optional<int64_t> hour12;
  std::optional<bool> afternoon;
  std::optional<int64_t> minute;
  std::optional<int64_t> second;
  std::optional<int64_t> nanos;
  std::optional<int64_t> instant;  // seconds since 1970
  int64_t offset = 0;              // seconds that the zone is before UTC
};

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  Result<bool> Match(std::string_view pattern) {
    for (size_t at = 0; at < pattern.size();) {
      const char c = pattern[at++];
      if (IsSpace(c)) {
        SkipSpace();
      } else if (c != '%') {
        if (!Accept(c)) return false;
      } else {
        GLAIVE_ASSIGN_OR_RETURN(const Conversion conversion,
                                NextConversion(pattern, &at));
        const std::string_view expanded = Expanded(conversion.letter);
        GLAIVE_ASSIGN_OR_RETURN(const bool matches, expanded.empty()
                                                        ? One(conversion, pattern)
                                                        : Match(expanded));
        if (!matches) return false;
      }
    }
    return true;
  }
  bool AtEnd() const { return at_ == text_.size(); }
  std::optional<Moment> Finish() const;
  std::optional<int64_t> TimeOfDay() const;

 private:
  static bool IsSpace(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
  static bool IsDigit(char c) { return c >= '0' && c <= '9'; }
  char Peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void SkipSpace() {
    while (at_ < text_.size() && IsSpace(text_[at_])) ++at_;
  }
  bool Accept(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  bool Number(size_t most, int64_t low, int64_t high, std::optional<int64_t>* out) {
    SkipSpace();
    int64_t value = 0;
    size_t digits = 0;
    while (digits < most && IsDigit(Peek())) {
      value = value * 10 + (text_[at_++] - '0');
      ++digits;
    }
    return digits > 0 && value >= low && value <= high && Set(value, out);
  }
  // A part that comes twice must say the same.
  template <typename T>
  static bool Set(T value, std::optional<T>* out) {
    if (out->has_value() && **out != value) return false;
    *out = value;
    return true;
  }
  template <size_t kCount>
  std::optional<size_t> Name(const std::array<std::string_view, kCount>& names,
                             bool full) {
    for (size_t i = 0; i < kCount; ++i) {
      for (const size_t length : {names[i].size(), kShort}) {
        if (!full && length != kShort) continue;
        if (ToLowerAscii(text_.substr(at_, length)) !=
            ToLowerAscii(names[i].substr(0, length))) {
          continue;
        }
        at_ += length;
        return i;
      }
    }
    return std::nullopt;
  }
  bool Fraction(const Conversion& conversion) {
    if (conversion.dot) {
      if (Peek() != '.') return conversion.digits < 0;  // %.f may be missing
      ++at_;
    }
    int64_t value = 0;
    int digits = 0;
    const int most = conversion.digits < 0 ? 9 : conversion.digits;
    while (digits < most && IsDigit(Peek())) {
      value = value * 10 + (text_[at_++] - '0');
      ++digits;
    }
    if (digits == 0 || (conversion.digits >= 0 && digits != most)) return false;
    // %f alone counts nanoseconds; behind a point digits count from the left.
    if (conversion.dot || conversion.digits >= 0) {
      for (; digits < 9; ++digits) value *= 10;
      if (conversion.digits < 0) {
        while (IsDigit(Peek())) ++at_;
      }
    }
    return Set(value, &parts_.nanos);
  }
  bool Offset() {
    SkipSpace();
    if (Accept('Z')) return true;
    const bool minus = Peek() == '-';
    if (!minus && Peek() != '+') return false;
    ++at_;
    std::optional<int64_t> hours;
    std::optional<int64_t> minutes;
    if (!Number(2, 0, 99, &hours)) return false;
    Accept(':');
    if (!Number(2, 0, 59, &minutes)) return false;
    parts_.offset = (*hours * 3600 + *minutes * 60) * (minus ? -1 : 1);
    return true;
  }
  Result<bool> One(const Conversion& conversion, std::string_view pattern);

  std::string_view text_;
  size_t at_ = 0;
  Parts parts_;
};

Result<bool> Reader::One(const Conversion& conversion, std::string_view pattern) {
  std::optional<int64_t> number;
  switch (conversion.letter) {
    case 'Y': {
      SkipSpace();
      const bool minus = Peek() == '-';
      const bool sign = minus || Peek() == '+';
      if (sign) ++at_;
      if (!Number(sign ? 6 : 4, 0, 262142, &number)) return false;
      return Set(minus ? -*number : *number, &parts_.year);
    }
    case 'y':
      if (!Number(2, 0, 99, &number)) return false;
      return Set(*number + (*number < 70 ? 2000 : 1900), &parts_.year);
    case 'm':
      return Number(2, 1, 12, &parts_.month);
    case 'd':
    case 'e':
      return Number(2, 1, 31, &parts_.day);
    case 'j':
      return Number(3, 1, 366, &parts_.day_of_year);
    case 'H':
    case 'k':
      return Number(2, 0, 23, &parts_.hour);
    case 'I':
    case 'l':
      return Number(2, 1, 12, &parts_.hour12);
    case 'M':
      return Number(2, 0, 59, &parts_.minute);
    case 'S':
      return Number(2, 0, 60, &parts_.second);
    case 'f':
      return Fraction(conversion);
    case 's': {
      SkipSpace();
      const bool minus = Accept('-');
      if (!Number(18, 0, INT64_MAX, &number)) return false;
      return Set(minus ? -*number : *number, &parts_.instant);
    }
    case 'b':
    case 'h':
    case 'B': {
      const auto month = Name(kMonths, conversion.letter == 'B');
      return month && Set(static_cast<int64_t>(*month) + 1, &parts_.month);
    }
    case 'a':
    case 'A':
      return Name(kWeekdays, conversion.letter == 'A').has_value();
    case 'p':
    case 'P': {
      const std::string half = ToLowerAscii(text_.substr(at_, 2));
      if (half != "am" && half != "pm") return false;
      at_ += 2;
      return Set(half == "pm", &parts_.afternoon);
    }
    case 'z':
      return Offset();
    case '%':
      return Accept('%');
    case 't':
    case 'n':
      SkipSpace();
      return true;
    default:
      return NotSupported("expression: reading %", std::string(1, conversion.letter),
                          " of the pattern '", pattern.substr(0, 100),
                          "' is not supported");
  }
}

std::optional<int64_t> Reader::TimeOfDay() const {
  std::optional<int64_t> hour = parts_.hour;
  if (!hour && parts_.hour12 && parts_.afternoon) {
    hour = *parts_.hour12 % 12 + (*parts_.afternoon ? 12 : 0);
  }
  if (!hour || !parts_.minute) return std::nullopt;
  const int64_t seconds = *hour * 3600 + *parts_.minute * 60 + parts_.second.value_or(0);
  // A leap second at the end of the day is the next midnight.
  return seconds % kDaySeconds * kSecondNanos + parts_.nanos.value_or(0);
}

std::optional<Moment> Reader::Finish() const {
  Moment moment;
  if (parts_.instant) {
    const int64_t seconds = *parts_.instant;
    moment.days = FloorDivide(seconds, kDaySeconds);
    moment.nanos =
        (seconds - moment.days * kDaySeconds) * kSecondNanos + parts_.nanos.value_or(0);
    return moment;
  }
  if (!parts_.year) return std::nullopt;
  if (parts_.month && parts_.day) {
    const auto month = static_cast<int>(*parts_.month);
    if (*parts_.day > DaysInMonth(*parts_.year, month)) return std::nullopt;
    moment.days = DaysFromCivil(*parts_.year, month, static_cast<int>(*parts_.day));
  } else if (parts_.day_of_year) {
    if (*parts_.day_of_year > (IsLeapYear(*parts_.year) ? 366 : 365)) return std::nullopt;
    moment.days = DaysFromCivil(*parts_.year, 1, 1) + *parts_.day_of_year - 1;
  } else {
    return std::nullopt;
  }
  std::optional<int64_t> hour = parts_.hour;
  if (!hour && parts_.hour12 && parts_.afternoon) {
    hour = *parts_.hour12 % 12 + (*parts_.afternoon ? 12 : 0);
  }
  if (!hour || !parts_.minute) return moment;  // the date alone
  int64_t seconds = *hour * 3600 + *parts_.minute * 60 + parts_.second.value_or(0);
  seconds -= parts_.offset;
  const int64_t shift = FloorDivide(seconds, kDaySeconds);
  moment.days += shift;
  moment.nanos = (seconds - shift * kDaySeconds) * kSecondNanos;
  if (parts_.second) moment.nanos += parts_.nanos.value_or(0);
  return moment;
}

}  // namespace

Status FormatMoment(const Moment& moment, std::string_view pattern, std::string* out) {
  for (size_t at = 0; at < pattern.size();) {
    const char c = pattern[at++];
    if (c != '%') {
      out->push_back(c);
      continue;
    }
    GLAIVE_ASSIGN_OR_RETURN(const Conversion conversion, NextConversion(pattern, &at));
    const std::string_view expanded = Expanded(conversion.letter);
    GLAIVE_RETURN_NOT_OK(expanded.empty() ? FormatOne(moment, conversion, pattern, out)
                                          : FormatMoment(moment, expanded, out));
  }
  return Status::OK();
}

Result<std::optional<Moment>> ParseMoment(std::string_view text,
                                          std::string_view pattern) {
  Reader reader(text);
  GLAIVE_ASSIGN_OR_RETURN(const bool matches, reader.Match(pattern));
  if (!matches || !reader.AtEnd()) return std::optional<Moment>();
  return reader.Finish();
}

Result<std::optional<int64_t>> ParseTimeOfDay(std::string_view text,
                                              std::string_view pattern) {
  Reader reader(text);
  GLAIVE_ASSIGN_OR_RETURN(const bool matches, reader.Match(pattern));
  if (!matches || !reader.AtEnd()) return std::optional<int64_t>();
  return reader.TimeOfDay();
}

}  // namespace glaive::expr
