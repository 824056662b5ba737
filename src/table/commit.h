// The commit loop: check against what came first, rebase, put the next manifest if
// absent, retry.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "table/dataset.h"
#include "table/next_manifest.h"
#include "table/snapshot.h"

namespace glaive::table {

class UnsyncedFiles;

struct CommitOptions {
  int max_retries = 20;
  NextManifestOptions manifest;
  NamingScheme scheme = NamingScheme::kV2;  // new tables only
  // Of a Delete or Update: lets it rebase row by row.
  const DeletedRows* deleted_rows = nullptr;
  // Deletion files of the transaction; goes with `deleted_rows`, kept up to date.
  std::vector<std::string>* deletion_files = nullptr;
  // Those of them that are still to be written; goes with `deleted_rows` too.
  UnsyncedFiles* unsynced = nullptr;
};

// `read` is the snapshot that the transaction was made on; null creates a table
// (AlreadyExists when there is one). Its uuid is filled in when empty. Files that it
// names and that are not on the disk yet (see UnsyncedFiles) are brought there first.
// Errors: RetryableConflict, Conflict, TooManyRetries, and what the store says.
Result<SnapshotPtr> CommitTransaction(const TableEnv& env, SnapshotPtr read,
                                      lance::table::Transaction transaction,
                                      const CommitOptions& options,
                                      CommitOutcome* outcome);

Status DatasetAlreadyExists(const io::ObjectStore& store);

}  // namespace glaive::table
