// Delete by predicate: find the rows, commit, and look again when a concurrent commit was
// faster.
#include <utility>
#include <vector>

#include "exec/find_rows.h"
#include "exec/retry.h"
#include "exec/scan.h"
#include "runtime/cancel.h"

namespace glaive::exec {

Result<DeleteResult> Delete(table::Dataset::Ptr dataset, const std::string& predicate,
                            CancelToken* cancel, const RetryPolicy& retry) {
  if (predicate.empty()) {
    return InvalidInput("delete needs a predicate; to delete all rows pass 'true'");
  }
  return RunWithRetries(
      std::move(dataset), retry, "delete", cancel,
      [&](const table::Dataset::Ptr& snapshot, int) -> Result<DeleteResult> {
        if (cancel != nullptr) GLAIVE_RETURN_NOT_OK(cancel->CheckOnCaller());
        GLAIVE_ASSIGN_OR_RETURN(const auto found, FindRows(*snapshot, predicate, cancel));
        DeleteResult result;
        for (const FoundRows& range : found) {
          result.num_deleted_rows += static_cast<int64_t>(range.offsets.size());
        }
        GLAIVE_ASSIGN_OR_RETURN(
            result.dataset,
            snapshot->CommitDelete(ToDeletedRows(*snapshot, found), predicate));
        return result;
      });
}

}  // namespace glaive::exec
