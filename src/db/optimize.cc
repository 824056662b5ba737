#include "db/optimize.h"

#include <utility>

namespace glaive::db {
namespace {

// Others changed the table faster than it could be compacted. Nothing is lost: the next
// call plans anew.
bool Overtaken(const Status& status) {
  return KindOf(status) == ErrorKind::kRetryableConflict ||
         KindOf(status) == ErrorKind::kTooManyRetries;
}

Status CompactNow(Table& table, const table::Dataset::Ptr& dataset,
                  const OptimizeOptions& options, exec::CompactionMetrics* metrics) {
  GLAIVE_ASSIGN_OR_RETURN(const auto compaction,
                          exec::ParseCompactionOptions("{}", exec::ConfigOf(*dataset)));
  exec::CompactionHooks hooks;
  hooks.progress = options.progress;
  hooks.cancel = options.cancel;
  GLAIVE_ASSIGN_OR_RETURN(auto done, exec::Compact(dataset, compaction, hooks));
  *metrics = done.metrics;
  table.Advance(done.dataset);
  return Status::OK();
}

}  // namespace

Result<OptimizeOutcome> Optimize(Table& table, const OptimizeOptions& options) {
  OptimizeOutcome outcome;
  GLAIVE_ASSIGN_OR_RETURN(auto dataset, table.LatestForWrite());
  const Status compacted = CompactNow(table, dataset, options, &outcome.compaction);
  if (KindOf(compacted) == ErrorKind::kCancelled) return compacted;
  GLAIVE_ASSIGN_OR_RETURN(dataset, dataset->Latest());
  table.Advance(dataset);
  table::CleanupOptions cleanup;
  cleanup.older_than_us = options.prune_older_than_us;
  cleanup.delete_unverified = options.delete_unverified;
  cleanup.error_if_tagged_old_versions = false;
  cleanup.cancel = options.cancel;
  auto pruned = table::CleanUp(*dataset, cleanup);
  if (!Overtaken(compacted)) GLAIVE_RETURN_NOT_OK(compacted);
  GLAIVE_RETURN_NOT_OK(pruned.status());
  outcome.prune = pruned->stats;
  return outcome;
}

}  // namespace glaive::db
