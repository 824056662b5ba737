// Whether an expression can be null, from its syntax and the columns it names.
#pragma once

#include <string_view>

#include "base/status.h"
#include "file/schema.h"

namespace glaive::expr {

// True when no row can make the expression NULL. False says nothing: most functions are
// taken to return NULL, as upstream takes them. The expression must bind to `schema`.
Result<bool> NeverNull(std::string_view sql, const file::Schema& schema);

}  // namespace glaive::expr
