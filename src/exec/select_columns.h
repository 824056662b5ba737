// The selection that a list of column names means.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "exec/scan.h"
#include "file/schema.h"

namespace glaive::exec {

// The selection of the named columns: a name that is a column as it stands is that
// column, whatever characters it has; others are paths ("a.b", "`odd name`") or meta
// columns. Output names are the names as given. InvalidInput when a name is given twice.
Result<Selection> SelectColumns(const file::Schema& schema,
                                const std::vector<std::string>& names);

}  // namespace glaive::exec
