// Text that comes from disk must be valid UTF-8: Arrow's consumers rely on it.
#pragma once

#include <arrow/type_fwd.h>

#include "base/status.h"

namespace glaive::file {

// Corruption when a string of `data`, at any level and in dictionaries, is not valid
// UTF-8. Offsets must be in bounds already. Costs one pass over the bytes, none for other
// types.
Status CheckUtf8(const arrow::ArrayData& data);

}  // namespace glaive::file
