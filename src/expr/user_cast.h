// Which casts a user may write.
#pragma once

#include <arrow/type_fwd.h>

#include "base/status.h"

namespace glaive::expr {

// InvalidInput for casts that upstream does not take. Functions and operators convert
// more among themselves: see CheckCast.
Status CheckUserCast(const arrow::DataType& from, const arrow::DataType& to);

}  // namespace glaive::expr
