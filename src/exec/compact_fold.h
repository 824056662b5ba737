// The small compactions that upkeep makes by itself.
//
// Only the newest fragments are folded, and into one that takes their place at the end:
// rows keep their order in the whole table, also when somebody appends meanwhile. A
// fragment is taken in when all that came after it has as many rows, so each row is
// rewritten a number of times that grows with the logarithm of the table.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "exec/compact.h"

namespace glaive::exec {

struct FoldOptions {
  // A fold begins when it makes one fragment of so many.
  int min_fragments = 64;
  // What is this large stays as it is.
  int64_t max_rows = 1048576;
  int64_t max_bytes = int64_t{256} << 20;
};

// Position of the first fragment that a fold would take, all after it included, or -1.
// Costs little for tables that need none.
Result<int> PlanFold(const table::Dataset& dataset, const FoldOptions& options);

// One fold of the newest version, if there is something to fold; the outcome's metrics
// say so. RetryableConflict when a concurrent change of rows was faster: it wins.
Result<CompactionOutcome> Fold(const table::Dataset& dataset, const FoldOptions& options,
                               CancelToken* cancel = nullptr);

}  // namespace glaive::exec
