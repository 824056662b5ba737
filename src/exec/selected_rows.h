// Runs a filter over the morsels of a task.
#pragma once

#include "base/status.h"
#include "exec/fragment_rows.h"
#include "exec/morsel.h"
#include "table/dataset.h"

namespace glaive::exec {

// Calls visit(m, fragment, mask) for each morsel of `task`, in order, that has rows which
// are not deleted and which `filter` (null: all) keeps: its number in the plan, its
// fragment, and which of its rows these are. A Status that is not OK ends it.
template <typename Visit>
Status ForEachSelection(const table::Dataset& dataset, const SnapshotState& state,
                        const FilterPlan* filter, const MorselPlan& plan,
                        const MorselTask& task, Visit&& visit) {
  for (size_t m = task.begin; m < task.end; ++m) {
    const Morsel& morsel = plan.morsels[m];
    GLAIVE_ASSIGN_OR_RETURN(const auto fragment,
                            FragmentRows::Open(dataset, state, morsel.fragment));
    GLAIVE_ASSIGN_OR_RETURN(const RowMask mask,
                            SelectRows(fragment, filter, morsel.start, morsel.count));
    if (mask.count == 0) continue;
    GLAIVE_RETURN_NOT_OK(visit(m, fragment, mask));
  }
  return Status::OK();
}

}  // namespace glaive::exec
