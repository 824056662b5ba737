// Functions that write and read dates and times by patterns.
#pragma once

#include <vector>

#include "expr/function.h"

namespace glaive::expr {

const std::vector<FunctionEntry>& TimeFormatFunctions();

// to_timestamp(text, pattern, ...): a timestamp of nanoseconds by the first that fits.
Result<ValuePtr> ParseByPatterns(const CallSite& call);

}  // namespace glaive::expr
