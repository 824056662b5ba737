// Takes rows of a snapshot away: the new deletion vectors of its fragments, and how they
// carry over to a newer version.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "table/dataset.h"

namespace glaive::table {

struct Snapshot;
class UnsyncedFiles;

// Writes the deletion vectors of `snapshot` without `rows` and puts the changed and the
// emptied fragments into `transaction`, a Delete or an Update. Appends the paths of the
// files written to `files`, also when it fails; a few of them are left to `unsynced`.
// InvalidInput for fragments or offsets that the snapshot does not have.
Status WriteRowDeletions(const TableEnv& env, const Snapshot& snapshot,
                         const DeletedRows& rows, lance::table::Transaction* transaction,
                         std::vector<std::string>* files, UnsyncedFiles* unsynced);

// Rewrites `transaction` (made on `read` by WriteRowDeletions) for `newest`: unions the
// deletion vectors of fragments that both changed and writes them anew. With `merge`
// false no fragment of ours was changed by others and only the data files are refreshed.
// Returns false when a row of ours is gone or a fragment was rewritten: the whole
// operation must run again. Keeps `files` and `unsynced` up to date.
Result<bool> RebaseRowDeletions(const TableEnv& env, const DeletedRows& rows,
                                const Snapshot& read, const Snapshot& newest, bool merge,
                                lance::table::Transaction* transaction,
                                std::vector<std::string>* files, UnsyncedFiles* unsynced);

// Best effort: litter of a failed commit.
void DeleteFiles(io::ObjectStore& store, std::vector<std::string>* files);

}  // namespace glaive::table
