// Whether an expression gives the same value each time, from its syntax.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace glaive::expr {

// The name of a function in `sql` whose value is another one each time, or at another
// time (random, uuid, now, current_date, ...); empty when there is none.
Result<std::string> VolatileFunction(std::string_view sql);

}  // namespace glaive::expr
