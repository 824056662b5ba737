// Upkeep of a table on request: fold small fragments, remove old versions.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "base/status.h"
#include "db/table.h"
#include "exec/compact.h"
#include "table/cleanup.h"

namespace glaive::db {

// Of upstream's.
inline constexpr int64_t kDefaultPruneAgeUs = int64_t{7} * 24 * 3600 * 1'000'000;

struct OptimizeOptions {
  int64_t prune_older_than_us = kDefaultPruneAgeUs;
  bool delete_unverified = false;              // see table::CleanupOptions
  std::function<void(int64_t rows)> progress;  // rows rewritten
  CancelToken* cancel = nullptr;
};

struct OptimizeOutcome {
  exec::CompactionMetrics compaction;
  table::CleanupStats prune;
};

// Compacts with the settings of the table, then removes old versions, tagged ones
// excepted. When compaction fails, old versions are removed all the same, and its error
// is returned; a compaction that others overtake again and again is no error: it is left
// out, and a later call does it.
Result<OptimizeOutcome> Optimize(Table& table, const OptimizeOptions& options);

}  // namespace glaive::db
