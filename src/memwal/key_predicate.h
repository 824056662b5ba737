// Filters that name rows by their key, which a look-up answers instead of a scan.
#pragma once

#include <memory>
#include <string>

#include <arrow/type_fwd.h>

#include "base/status.h"

namespace glaive::memwal {

// The keys that `filter` asks for when it is nothing but `key = literal`,
// `literal = key` or `key IN (literals)`, with literals that are values of the type as
// they stand; null otherwise (and when it does not parse: whoever evaluates it says
// where). A null literal is no key.
std::shared_ptr<arrow::Array> KeysAskedFor(const std::string& filter,
                                           const std::string& key,
                                           const std::shared_ptr<arrow::DataType>& type);

}  // namespace glaive::memwal
