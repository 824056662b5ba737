// Days, months and years of the proleptic Gregorian calendar; units of time.
#pragma once

#include <cstdint>

#include <arrow/type_fwd.h>

namespace glaive::expr {

struct Civil {
  int64_t year;
  int month;  // 1 to 12
  int day;    // 1 to 31
};

// Days since 1970-01-01.
inline int64_t DaysFromCivil(int64_t year, int month, int day) {
  year -= month <= 2 ? 1 : 0;
  const int64_t era = (year >= 0 ? year : year - 399) / 400;
  const int64_t year_of_era = year - era * 400;
  const int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  const int64_t day_of_era =
      year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
  return era * 146097 + day_of_era - 719468;
}

inline Civil CivilFromDays(int64_t days) {
  days += 719468;
  const int64_t era = (days >= 0 ? days : days - 146096) / 146097;
  const int64_t day_of_era = days - era * 146097;
  const int64_t year_of_era =
      (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
  const int64_t day_of_year =
      day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const int64_t shifted = (5 * day_of_year + 2) / 153;
  Civil civil{};
  civil.day = static_cast<int>(day_of_year - (153 * shifted + 2) / 5 + 1);
  civil.month = static_cast<int>(shifted < 10 ? shifted + 3 : shifted - 9);
  civil.year = year_of_era + era * 400 + (civil.month <= 2 ? 1 : 0);
  return civil;
}

inline bool IsLeapYear(int64_t year) {
  return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}
inline int DaysInMonth(int64_t year, int month) {
  constexpr int kDays[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  return month == 2 && IsLeapYear(year) ? 29 : kDays[month - 1];
}

// The same day `months` later, or the last of that month when it is shorter.
inline int64_t AddMonths(int64_t days, int64_t months) {
  Civil civil = CivilFromDays(days);
  const int64_t count = civil.year * 12 + (civil.month - 1) + months;
  civil.year = count >= 0 ? count / 12 : -((11 - count) / 12);
  civil.month = static_cast<int>(count - civil.year * 12) + 1;
  const int last = DaysInMonth(civil.year, civil.month);
  return DaysFromCivil(civil.year, civil.month, civil.day < last ? civil.day : last);
}

inline int64_t FloorDivide(int64_t value, int64_t divisor) {
  const int64_t quotient = value / divisor;
  return quotient - (value % divisor != 0 && (value < 0) != (divisor < 0) ? 1 : 0);
}

inline int64_t UnitsPerSecond(arrow::TimeUnit::type unit) {
  switch (unit) {
    case arrow::TimeUnit::SECOND:
      return 1;
    case arrow::TimeUnit::MILLI:
      return 1000;
    case arrow::TimeUnit::MICRO:
      return 1000000;
    case arrow::TimeUnit::NANO:
      return 1000000000;
  }
  return 1;
}

inline constexpr int64_t kDaySeconds = 86400;
inline constexpr int64_t kSecondNanos = 1000000000;
inline constexpr int64_t kDayNanos64 = kDaySeconds * kSecondNanos;

}  // namespace glaive::expr
