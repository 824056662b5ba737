// The methods of glaive::Table that change rows in place.
#include <utility>

#include <arrow/record_batch.h>

#include "db/table.h"
#include "exec/merge.h"
#include "exec/update.h"
#include "glaive/glaive.h"

namespace glaive {

Result<UpdateResult> Table::Update(
    const std::string& predicate,
    const std::vector<std::pair<std::string, std::string>>& expressions) {
  exec::UpdateOptions options;
  options.where = predicate;
  for (const auto& [column, sql] : expressions) {
    options.assignments.push_back({column, sql, nullptr});
  }
  GLAIVE_ASSIGN_OR_RETURN(const auto outcome, impl_->Update(options));
  return UpdateResult{outcome.num_updated_rows, outcome.version};
}

Result<MergeResult> Table::MergeInsert(std::shared_ptr<arrow::RecordBatchReader> source,
                                       const MergeRequest& request) {
  exec::MergeOptions options;
  options.on = request.on;
  switch (request.matched) {
    case WhenMatched::kKeep:
      break;
    case WhenMatched::kUpdate:
      options.matched = exec::MatchedAction::kUpdate;
      break;
    case WhenMatched::kDelete:
      options.matched = exec::MatchedAction::kDelete;
      break;
    case WhenMatched::kFail:
      options.matched = exec::MatchedAction::kFail;
      break;
  }
  options.update_condition = request.update_condition;
  options.insert_not_matched = request.insert_not_matched;
  options.delete_not_in_source = request.delete_not_in_source;
  options.delete_condition = request.delete_condition;
  if (request.keep_first_duplicate) {
    options.duplicates = exec::SourceDuplicates::kFirstSeen;
  }
  GLAIVE_ASSIGN_OR_RETURN(const auto done,
                          impl_->MergeInsert(std::move(source), options));
  MergeResult result;
  result.num_inserted_rows = done.num_inserted_rows;
  result.num_updated_rows = done.num_updated_rows;
  result.num_deleted_rows = done.num_deleted_rows;
  result.num_attempts = done.num_attempts;
  result.version = done.dataset->version();
  return result;
}

}  // namespace glaive
