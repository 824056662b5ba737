// Functions on bytes: digests and notations.
#pragma once

#include <vector>

#include "expr/function.h"

namespace glaive::expr {

const std::vector<FunctionEntry>& BytesFunctions();

}  // namespace glaive::expr
