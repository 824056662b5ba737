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
                            CancelToken* cancel) {
  if (predicate.empty()) {
    return InvalidInput("delete needs a predicate; to delete all rows pass 'true'");
  }
  RetryLoop retry(RetryPolicy(), "delete");
  while (true) {
    if (cancel != nullptr) GLAIVE_RETURN_NOT_OK(cancel->CheckOnCaller());
    GLAIVE_ASSIGN_OR_RETURN(const auto found, FindRows(*dataset, predicate, cancel));
    DeleteResult result;
    for (const FoundRows& range : found) {
      result.num_deleted_rows += static_cast<int64_t>(range.offsets.size());
    }
    auto committed = dataset->CommitDelete(ToDeletedRows(*dataset, found), predicate);
    if (committed.ok()) {
      result.dataset = std::move(committed).ValueUnsafe();
      return result;
    }
    GLAIVE_RETURN_NOT_OK(retry.Failed(committed.status(), cancel));
    GLAIVE_ASSIGN_OR_RETURN(dataset, dataset->Latest());
  }
}

}  // namespace glaive::exec
