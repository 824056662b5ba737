// From what callers name (columns, one or several vectors) to what the executor needs.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include <arrow/type_fwd.h>

#include "base/status.h"
#include "exec/nearest.h"
#include "exec/scan.h"
#include "file/schema.h"
#include "table/dataset.h"

namespace glaive::db {

// The selection of the named columns: a name that is a column as it stands is that
// column, whatever characters it has; others are paths ("a.b", "`odd name`") or meta
// columns. Output names are the names as given. InvalidInput when a name is given twice.
Result<exec::Selection> SelectColumns(const file::Schema& schema,
                                      const std::vector<std::string>& names);

// Fills in `column` when it is empty, and `multivector` by the column's type.
// InvalidInput names the column when it is none of vectors or of another dimension than
// the queries.
Status ResolveSearch(const table::Dataset& dataset, exec::NearestOptions* options);

}  // namespace glaive::db
