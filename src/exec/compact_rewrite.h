// Writes the live rows of some fragments of one version into new fragments.
#pragma once

#include <span>

#include "base/status.h"
#include "exec/compact.h"

namespace glaive::exec {

// `fragments`: positions in the snapshot, ascending. Row ids and the versions of rows go
// along on tables that have them. Nothing is left behind on failure.
Result<RewriteResult> RewriteFragments(const table::Dataset& dataset,
                                       std::span<const int> fragments,
                                       const CompactionOptions& options,
                                       const CompactionHooks& hooks);

}  // namespace glaive::exec
