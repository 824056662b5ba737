#include "exec/find_rows.h"

#include <numeric>
#include <utility>

#include "exec/fragment_rows.h"
#include "exec/morsel.h"
#include "runtime/runtime.h"

namespace glaive::exec {

Result<std::vector<FoundRows>> FindRows(const table::Dataset& dataset,
                                        const std::string& predicate,
                                        CancelToken* cancel) {
  const auto state = SnapshotState::Of(dataset);
  SnapshotState::FilterPtr plan;
  const BoundColumns nothing(file::Schema(), dataset.num_fragments());
  const BoundColumns* widest = &nothing;
  if (!predicate.empty()) {
    GLAIVE_ASSIGN_OR_RETURN(plan, state->Filter(dataset, predicate));
    widest = plan->read.get();
  }
  MorselOptions cut;
  cut.max_rows = 65536;
  cut.max_bytes = cut.task_bytes = kMaxBatchBytes;
  GLAIVE_ASSIGN_OR_RETURN(const MorselPlan morsels, CutMorsels(dataset, *widest, cut));
  std::vector<FoundRows> found(morsels.morsels.size());
  GLAIVE_RETURN_NOT_OK(dataset.env().runtime->ParallelFor(
      static_cast<int64_t>(morsels.tasks.size()),
      [&](int64_t t) -> Status {
        const MorselTask& task = morsels.tasks[static_cast<size_t>(t)];
        for (size_t m = task.begin; m < task.end; ++m) {
          const Morsel& morsel = morsels.morsels[m];
          GLAIVE_ASSIGN_OR_RETURN(const auto fragment,
                                  FragmentRows::Open(dataset, *state, morsel.fragment));
          GLAIVE_ASSIGN_OR_RETURN(
              const RowMask mask,
              SelectRows(fragment, plan.get(), morsel.start, morsel.count));
          found[m] = {morsel.fragment, morsel.start, morsel.count, {}};
          if (mask.count == 0) continue;
          std::vector<uint32_t>& offsets = found[m].offsets;
          if (mask.all()) {
            offsets.resize(static_cast<size_t>(morsel.count));
            std::iota(offsets.begin(), offsets.end(),
                      static_cast<uint32_t>(morsel.start));
          } else {
            const std::vector<int64_t> places = mask.Offsets(morsel.start);
            offsets.assign(places.begin(), places.end());
          }
        }
        return Status::OK();
      },
      cancel));
  std::erase_if(found, [](const FoundRows& rows) { return rows.offsets.empty(); });
  return found;
}

table::DeletedRows ToDeletedRows(const table::Dataset& dataset,
                                 const std::vector<FoundRows>& found) {
  table::DeletedRows rows;
  for (const FoundRows& range : found) {
    auto& offsets = rows[dataset.fragment_id(range.fragment)];
    offsets.insert(offsets.end(), range.offsets.begin(), range.offsets.end());
  }
  return rows;
}

}  // namespace glaive::exec
