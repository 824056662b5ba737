// Names of types: those of CAST, and those that arrow_typeof and arrow_cast use.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <arrow/type_fwd.h>

#include "base/status.h"

namespace glaive::expr {

// "Timestamp(µs)", "List(Int32)", ...
std::string TypeName(const arrow::DataType& type);
// The reverse, with the longer forms that upstream knows: "Timestamp(Second, None)".
// InvalidInput for what is no type.
Result<std::shared_ptr<arrow::DataType>> ParseTypeName(std::string_view text);

}  // namespace glaive::expr
