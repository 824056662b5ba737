// The commit loop: check against what came first, rebase, put the next manifest if
// absent, retry.
#pragma once

#include <memory>

#include "base/status.h"
#include "table/dataset.h"
#include "table/next_manifest.h"
#include "table/snapshot.h"

namespace glaive::table {

struct CommitOptions {
  int max_retries = 20;
  NextManifestOptions manifest;
  NamingScheme scheme = NamingScheme::kV2;    // new tables only
  const DeletedRows* deleted_rows = nullptr;  // of a Delete: lets it rebase row by row
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
