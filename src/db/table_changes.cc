// Table methods that change rows in place.
#include <algorithm>
#include <utility>

#include <arrow/record_batch.h>

#include "db/lsm.h"
#include "db/merge.h"
#include "db/table.h"
#include "exec/update.h"
#include "io/object_store.h"
#include "memwal/fresh_schema.h"
#include "memwal/lsm_state.h"
#include "memwal/mem_wal_index.h"

namespace glaive::db {
namespace {

// Only upserts by the primary key can be told without looking at the base.
Status CheckLsmMerge(const table::Dataset& base, const exec::MergeOptions& options) {
  GLAIVE_ASSIGN_OR_RETURN(const auto schema,
                          memwal::LsmState::Of(base.env())->SchemaOf(base));
  const auto& keys = schema->key_names();
  if (keys.empty()) {
    return InvalidInput("table ", base.env().store->root(),
                        " has a MemWAL index but no unenforced primary key");
  }
  if (!options.on.empty() && options.on != keys) {
    std::string names;
    for (const std::string& key : keys) names += (names.empty() ? "" : ", ") + key;
    return InvalidInput(
        "Invalid input, a merge through the LSM write path matches rows by the primary "
        "key (",
        names, "); call use_lsm(false) to merge into the base table by other columns");
  }
  if (options.matched != exec::MatchedAction::kUpdate ||
      !options.update_condition.empty() || !options.insert_not_matched ||
      options.delete_not_in_source) {
    return InvalidInput(
        "Invalid input, a merge through the LSM write path must be an upsert "
        "(when_matched_update_all without a condition and when_not_matched_insert_all); "
        "call use_lsm(false) to merge into the base table");
  }
  if (options.duplicates == exec::SourceDuplicates::kFirstSeen) {
    return InvalidInput(
        "Invalid input, the LSM write path keeps the last of several source rows with "
        "one key, not the first; call use_lsm(false) to merge into the base table");
  }
  return Status::OK();
}

}  // namespace

Result<UpdateOutcome> Table::Update(const exec::UpdateOptions& options) {
  GLAIVE_ASSIGN_OR_RETURN(auto latest, LatestForWrite());
  GLAIVE_ASSIGN_OR_RETURN(const auto lsm, memwal::ReadDetails(*latest));
  if (lsm != nullptr) {
    GLAIVE_ASSIGN_OR_RETURN(const auto outcome,
                            LsmUpdate(latest, options, LsmOptions(options.cancel)));
    Advance(latest);
    return UpdateOutcome{outcome.num_updated_rows, latest->version()};
  }
  GLAIVE_ASSIGN_OR_RETURN(auto result, exec::Update(std::move(latest), options));
  Wrote(result.dataset);
  return UpdateOutcome{result.num_updated_rows, result.dataset->version()};
}

Result<exec::MergeResult> Table::MergeInsert(
    std::shared_ptr<arrow::RecordBatchReader> source, const exec::MergeOptions& options,
    const MergeRouting& routing, int64_t* num_rows) {
  GLAIVE_ASSIGN_OR_RETURN(auto latest, LatestForWrite());
  if (routing.use_lsm.value_or(true)) {
    GLAIVE_ASSIGN_OR_RETURN(const auto lsm, memwal::ReadDetails(*latest));
    if (lsm == nullptr && routing.use_lsm) {
      return InvalidInput(
          "Invalid input, use_lsm(true) was set but the table has no MemWAL "
          "write spec (table '",
          name_, "': see set_lsm_write_spec)");
    }
    if (lsm != nullptr) {
      GLAIVE_RETURN_NOT_OK(CheckLsmMerge(*latest, options));
      LsmWriteOptions lsm_options = LsmOptions(options.cancel);
      lsm_options.single_shard = routing.single_shard;
      GLAIVE_ASSIGN_OR_RETURN(const auto outcome,
                              LsmUpsert(latest, std::move(source), lsm_options));
      exec::MergeResult result;
      result.dataset = latest;
      result.num_inserted_rows = outcome.num_inserted_rows;
      result.num_updated_rows = outcome.num_updated_rows;
      if (num_rows != nullptr) *num_rows = outcome.num_rows;
      Advance(latest);
      return result;
    }
  }
  GLAIVE_ASSIGN_OR_RETURN(auto result,
                          MergeInto(std::move(latest), std::move(source), options));
  if (num_rows != nullptr) {
    *num_rows = result.num_updated_rows + result.num_inserted_rows;
  }
  Wrote(result.dataset);
  return result;
}

}  // namespace glaive::db
