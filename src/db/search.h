// From what callers name of a search to what the executor needs.
#pragma once

#include "base/status.h"
#include "exec/nearest.h"
#include "table/dataset.h"

namespace glaive::db {

// Fills in `column` when it is empty, `multivector` by the column's type, and `metric` by
// the column's index when that is asked for.
// InvalidInput names the column when it is none of vectors or of another dimension than
// the queries.
Status ResolveSearch(const table::Dataset& dataset, exec::NearestOptions* options);

}  // namespace glaive::db
