#include <algorithm>
#include <string>
#include <utility>

#include <arrow/record_batch.h>

#include "exec/merge.h"
#include "format/table.pb.h"
#include "memwal/compact_source.h"
#include "memwal/converge.h"
#include "memwal/fresh_schema.h"
#include "memwal/waiting.h"
#include "runtime/cancel.h"
#include "runtime/runtime.h"
#include "table/fragment_writer.h"

namespace glaive::memwal {
namespace {

using lance::table::SsTable;

// How often a pass begins anew since the base's columns changed, or since what it was to
// merge was merged by others.
constexpr int kMostAttempts = 10;
constexpr int64_t kMostMemory = int64_t{64} << 20;
constexpr int64_t kBudgetShare = 8;

struct Merged {
  table::Dataset::Ptr base;
  int64_t upserted = 0;
  int64_t deleted = 0;
};

// Tables without a primary key: all rows are added.
Result<Merged> AppendRows(const table::Dataset& base, arrow::RecordBatchReader& rows,
                          const table::CompactedGeneration& progress,
                          CancelToken* cancel) {
  table::FragmentWriterOptions limits;
  limits.version = base.file_version();
  table::FragmentWriter writer(base.env(), base.schema(), limits);
  Merged merged;
  while (true) {
    if (cancel != nullptr) GLAIVE_RETURN_NOT_OK(cancel->CheckOnCaller());
    std::shared_ptr<arrow::RecordBatch> batch;
    GLAIVE_RETURN_NOT_OK(rows.ReadNext(&batch));
    if (batch == nullptr) break;
    merged.upserted += batch->num_rows();
    GLAIVE_RETURN_NOT_OK(writer.Write(*batch));
  }
  table::RowUpdate update;
  GLAIVE_ASSIGN_OR_RETURN(update.new_fragments, writer.Finish());
  update.compacted = {progress};
  table::CommitOutcome outcome = table::CommitOutcome::kNotCommitted;
  auto committed = base.CommitUpdate(update, &outcome);
  if (outcome != table::CommitOutcome::kNotCommitted) writer.Keep();
  GLAIVE_ASSIGN_OR_RETURN(merged.base, std::move(committed));
  return merged;
}

Result<Merged> MergeRows(const table::Dataset::Ptr& base, const ShardId& shard,
                         uint64_t merged_before, const std::vector<SsTable>& generations,
                         const CompactOptions& options) {
  GLAIVE_ASSIGN_OR_RETURN(const auto fresh, FreshSchema::Make(*base));
  std::vector<std::string> directories;
  for (const SsTable& generation : generations) {
    GLAIVE_ASSIGN_OR_RETURN(directories.emplace_back(),
                            GenerationDir(shard, generation.path()));
  }
  int64_t memory = options.memory_bytes;
  if (memory <= 0) {
    memory =
        std::min(kMostMemory, base->env().runtime->memory().limit_bytes() / kBudgetShare);
  }
  CompactSourceOptions read;
  read.key_names = fresh->key_names();
  read.key_memory_bytes = memory;
  read.cancel = options.cancel;
  GLAIVE_ASSIGN_OR_RETURN(auto source, ReadGenerations(base, directories, read));
  const table::CompactedGeneration progress{std::string(shard.bytes()),
                                            generations.back().generation()};
  if (read.key_names.empty()) {
    return AppendRows(*base, *source.reader, progress, options.cancel);
  }
  exec::MergeOptions merge;
  merge.on = read.key_names;
  merge.matched = exec::MatchedAction::kUpdate;
  merge.insert_not_matched = true;
  merge.tombstone_column = kTombstone;
  merge.made_for = std::make_shared<const file::Schema>(base->schema());
  merge.compacted = {progress};
  merge.compacted_before = {merged_before};
  if (!source.unique) merge.duplicates = exec::SourceDuplicates::kFirstSeen;
  merge.memory_bytes = memory;
  merge.cancel = options.cancel;
  GLAIVE_ASSIGN_OR_RETURN(auto result,
                          exec::MergeInsert(base, std::move(source.reader), merge));
  return Merged{std::move(result.dataset),
                result.num_inserted_rows + result.num_updated_rows,
                result.num_deleted_rows};
}

// Whether an attempt may have failed since the ground moved under it.
bool MayBeStale(const Status& status) {
  switch (KindOf(status)) {
    case ErrorKind::kConflict:        // somebody merges the same generations
    case ErrorKind::kInvalidInput:    // stale progress
    case ErrorKind::kSchemaMismatch:  // columns changed
    case ErrorKind::kNotFound:        // a generation was collected
    case ErrorKind::kRetryableConflict:
    case ErrorKind::kTooManyRetries:
      return true;
    default:
      return false;
  }
}

}  // namespace

Result<CompactOutcome> CompactShard(table::Dataset::Ptr base, const ShardId& shard,
                                    const CompactOptions& options) {
  if (options.max_generations < 1) {
    return InvalidInput("a compaction takes at least one generation, not ",
                        options.max_generations);
  }
  CompactOutcome outcome;
  ShardManifests manifests(base->env().store, shard);
  GLAIVE_ASSIGN_OR_RETURN(base, base->Latest());
  for (int attempt = 1;; ++attempt) {
    if (options.cancel != nullptr) {
      GLAIVE_RETURN_NOT_OK(options.cancel->CheckOnCaller());
    }
    GLAIVE_ASSIGN_OR_RETURN(Waiting waiting, FindWaiting(*base, manifests));
    auto& generations = waiting.generations;
    outcome.base = base;
    outcome.generations_remaining = static_cast<int64_t>(generations.size());
    if (generations.empty()) return outcome;
    if (generations.size() > static_cast<size_t>(options.max_generations)) {
      generations.resize(static_cast<size_t>(options.max_generations));
    }
    const uint64_t last = generations.back().generation();
    auto merged = MergeRows(base, shard, waiting.merged, generations, options);
    if (merged.ok()) {
      outcome.base = merged->base;
      outcome.generations_consumed = static_cast<int64_t>(generations.size());
      outcome.generations_remaining -= outcome.generations_consumed;
      outcome.rows_merged = merged->upserted;
      outcome.rows_deleted = merged->deleted;
      return outcome;
    }
    if (!MayBeStale(merged.status())) return merged.status();
    GLAIVE_ASSIGN_OR_RETURN(auto latest, base->Latest());
    const bool moved = latest->version() != base->version();
    base = std::move(latest);
    GLAIVE_ASSIGN_OR_RETURN(const Waiting now, FindWaiting(*base, manifests));
    outcome.base = base;
    outcome.generations_remaining = static_cast<int64_t>(now.generations.size());
    if (now.merged >= last) {
      outcome.lost_race = true;
      return outcome;
    }
    if (!moved || attempt == kMostAttempts) return merged.status();
  }
}

}  // namespace glaive::memwal
