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

struct CommitOptions {
  int max_retries = 20;
  NextManifestOptions manifest;
  NamingScheme scheme = NamingScheme::kV2;  // new tables only
  // Of a Delete or Update: lets it rebase row by row.
  const DeletedRows* deleted_rows = nullptr;
  // Deletion files of the transaction; goes with `deleted_rows`, kept up to date.
  std::vector<std::string>* deletion_files = nullptr;
};

// `read` is the snapshot that the transaction was made on; null creates a table
// (AlreadyExists when there is one). Its uuid is filled in when empty. Errors:
// RetryableConflict, Conflict, TooManyRetries, and what the store says.
Result<SnapshotPtr> CommitTransaction(const TableEnv& env, SnapshotPtr read,
                                      lance::table::Transaction transaction,
                                      const CommitOptions& options,
                                      CommitOutcome* outcome);

Status DatasetAlreadyExists(const io::ObjectStore& store);

}  // namespace glaive::table
