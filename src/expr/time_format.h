// Dates and times written and read by patterns like '%Y-%m-%d %H:%M'.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace glaive::expr {

// An instant without zone: days since 1970-01-01 and nanoseconds of the day.
struct Moment {
  int64_t days = 0;
  int64_t nanos = 0;
};

// Appends `moment` as `pattern` has it. InvalidInput for a pattern that is wrong, or that
// asks for a zone, which a moment does not have. Thread-safe.
Status FormatMoment(const Moment& moment, std::string_view pattern, std::string* out);

// The moment that `text` says, or nullopt when it does not fit the pattern or leaves the
// date open; a time that is left open is midnight. NotSupported for parts of patterns
// that cannot be read. Thread-safe.
Result<std::optional<Moment>> ParseMoment(std::string_view text,
                                          std::string_view pattern);

}  // namespace glaive::expr
