// Delete by predicate: find the rows, commit, and look again when a concurrent commit was
// faster.
#include <chrono>
#include <utility>
#include <vector>

#include "exec/fragment_rows.h"
#include "exec/morsel.h"
#include "exec/scan.h"
#include "runtime/cancel.h"
#include "runtime/runtime.h"

namespace glaive::exec {
namespace {

constexpr int kMaxAttempts = 10;
constexpr auto kMaxTime = std::chrono::seconds(30);

Result<table::DeletedRows> FindRows(const table::Dataset& dataset,
                                    const std::string& predicate, CancelToken* cancel) {
  const auto state = SnapshotState::Of(dataset);
  GLAIVE_ASSIGN_OR_RETURN(auto plan, state->Filter(dataset, predicate));
  MorselOptions cut;
  cut.max_rows = 65536;
  cut.max_bytes = cut.task_bytes = INT64_MAX;
  GLAIVE_ASSIGN_OR_RETURN(const MorselPlan morsels,
                          CutMorsels(dataset, *plan->read, cut));
  std::vector<std::vector<uint32_t>> found(morsels.morsels.size());
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
          if (mask.count == 0) continue;
          found[m].reserve(static_cast<size_t>(mask.count));
          if (mask.all()) {
            for (int64_t i = 0; i < morsel.count; ++i) {
              found[m].push_back(static_cast<uint32_t>(morsel.start + i));
            }
          } else {
            for (int64_t offset : mask.Offsets(morsel.start)) {
              found[m].push_back(static_cast<uint32_t>(offset));
            }
          }
        }
        return Status::OK();
      },
      cancel));
  table::DeletedRows rows;
  for (size_t m = 0; m < found.size(); ++m) {
    if (found[m].empty()) continue;
    auto& offsets = rows[dataset.fragment_id(morsels.morsels[m].fragment)];
    offsets.insert(offsets.end(), found[m].begin(), found[m].end());
  }
  return rows;
}

}  // namespace

Result<DeleteResult> Delete(table::Dataset::Ptr dataset, const std::string& predicate,
                            CancelToken* cancel) {
  if (predicate.empty()) {
    return InvalidInput("delete needs a predicate; to delete all rows pass 'true'");
  }
  const auto began = std::chrono::steady_clock::now();
  for (int attempt = 1;; ++attempt) {
    if (cancel != nullptr) GLAIVE_RETURN_NOT_OK(cancel->CheckOnCaller());
    GLAIVE_ASSIGN_OR_RETURN(const table::DeletedRows rows,
                            FindRows(*dataset, predicate, cancel));
    DeleteResult result;
    for (const auto& [fragment, offsets] : rows) {
      result.num_deleted_rows += static_cast<int64_t>(offsets.size());
    }
    auto committed = dataset->CommitDelete(rows, predicate);
    if (committed.ok()) {
      result.dataset = std::move(committed).ValueUnsafe();
      return result;
    }
    if (KindOf(committed.status()) != ErrorKind::kRetryableConflict)
      return committed.status();
    if (attempt >= kMaxAttempts || std::chrono::steady_clock::now() - began > kMaxTime) {
      return MakeError(
          ErrorKind::kTooManyRetries,
          "delete gave up after " + std::to_string(attempt) +
              " attempts against concurrent commits: " + committed.status().message());
    }
    GLAIVE_ASSIGN_OR_RETURN(dataset, dataset->Latest());
  }
}

}  // namespace glaive::exec
