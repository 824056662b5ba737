// Carries a delete over to a newer version whose fragments lost other rows meanwhile.
#pragma once

#include "base/status.h"
#include "table/dataset.h"

namespace glaive::table {

struct Snapshot;

// Rewrites `transaction` (a Delete made on `read`) for `newest`: unions the deletion
// vectors of fragments that both changed and writes them anew. With `merge` false no
// fragment of ours was changed by others and only the data files are refreshed. Returns
// false when a row of ours is gone or a fragment was rewritten: the whole operation must
// run again.
Result<bool> RebaseDelete(const TableEnv& env, const DeletedRows& rows,
                          const Snapshot& read, const Snapshot& newest, bool merge,
                          lance::table::Transaction* transaction);

}  // namespace glaive::table
