// Writes expressions in the notation of plans.
#pragma once

#include <string>

#include "expr/ast.h"
#include "file/schema.h"

namespace glaive::expr {

// `id = Int64(1) AND name LIKE Utf8("a%")`: literals carry the type of the column they
// meet.
std::string FormatNode(const Node& node, const file::Schema& schema);

}  // namespace glaive::expr
