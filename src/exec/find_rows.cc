#include "exec/find_rows.h"

#include <numeric>
#include <utility>

#include "exec/selected_rows.h"
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
        return ForEachSelection(
            dataset, *state, plan.get(), morsels, morsels.tasks[static_cast<size_t>(t)],
            [&](size_t m, const FragmentRows&, const RowMask& mask) -> Status {
              const Morsel& morsel = morsels.morsels[m];
              found[m] = {morsel.fragment, morsel.start, morsel.count, {}};
              std::vector<uint32_t>& offsets = found[m].offsets;
              if (mask.all()) {
                offsets.resize(static_cast<size_t>(morsel.count));
                std::iota(offsets.begin(), offsets.end(),
                          static_cast<uint32_t>(morsel.start));
              } else {
                const std::vector<int64_t> places = mask.Offsets(morsel.start);
                offsets.assign(places.begin(), places.end());
              }
              return Status::OK();
            });
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
