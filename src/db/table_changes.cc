// Table methods that change rows in place.
#include <utility>

#include <arrow/record_batch.h>

#include "db/merge.h"
#include "db/table.h"
#include "exec/update.h"

namespace glaive::db {

Result<UpdateOutcome> Table::Update(const exec::UpdateOptions& options) {
  GLAIVE_ASSIGN_OR_RETURN(auto latest, LatestForWrite());
  GLAIVE_ASSIGN_OR_RETURN(auto result, exec::Update(std::move(latest), options));
  Wrote(result.dataset);
  return UpdateOutcome{result.num_updated_rows, result.dataset->version()};
}

Result<exec::MergeResult> Table::MergeInsert(
    std::shared_ptr<arrow::RecordBatchReader> source, const exec::MergeOptions& options) {
  GLAIVE_ASSIGN_OR_RETURN(auto latest, LatestForWrite());
  GLAIVE_ASSIGN_OR_RETURN(auto result,
                          MergeInto(std::move(latest), std::move(source), options));
  Wrote(result.dataset);
  return result;
}

}  // namespace glaive::db
