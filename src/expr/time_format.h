// Dates and times written and read by patterns like '%Y-%m-%d %H:%M'.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace glaive::expr {

// An instant as a clock shows it: days since 1970-01-01 and nanoseconds of the day.
struct Moment {
  int64_t days = 0;
  int64_t nanos = 0;
  // Seconds that the clock is before UTC, where its zone is known.
  std::optional<int32_t> offset = std::nullopt;
  bool has_date = true;
};

// Appends `moment` as `pattern` has it. InvalidInput for a pattern that is wrong, or that
// asks for a zone or a date that the moment does not have. Thread-safe.
Status FormatMoment(const Moment& moment, std::string_view pattern, std::string* out);

// The moment that `text` says, or nullopt when it does not fit the pattern or leaves the
// date open; a time that is left open is midnight. NotSupported for parts of patterns
// that cannot be read. Thread-safe.
Result<std::optional<Moment>> ParseMoment(std::string_view text,
                                          std::string_view pattern);

// The time of the day that `text` says, in nanoseconds, or nullopt when it does not fit
// the pattern. NotSupported for parts of patterns that cannot be read. Thread-safe.
Result<std::optional<int64_t>> ParseTimeOfDay(std::string_view text,
                                              std::string_view pattern);

}  // namespace glaive::expr
