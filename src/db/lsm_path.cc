#include "db/lsm_path.h"

#include <algorithm>
#include <chrono>
#include <optional>

#include <arrow/api.h>
#include <arrow/compute/api.h>

#include "db/lsm_owned.h"
#include "exec/row_bytes.h"
#include "exec/select_columns.h"
#include "format/memwal.pb.h"
#include "io/object_store.h"
#include "memwal/converge.h"
#include "memwal/lsm_read.h"
#include "memwal/lsm_state.h"
#include "memwal/upkeep.h"
#include "table/schema_change.h"

namespace glaive::db {
namespace {

using BatchPtr = std::shared_ptr<arrow::RecordBatch>;
using memwal::BatchVector;

// Generations of a shard from which on a flush waits for upkeep, and for how long. Those
// that are under way come on top: reads should look at no more than eight.
constexpr int64_t kMostGenerations = 6;
constexpr std::chrono::seconds kMostWait{30};

bool Holds(const file::Field& field, int32_t id) {
  return field.id == id ||
         std::any_of(field.children.begin(), field.children.end(),
                     [id](const file::Field& child) { return Holds(child, id); });
}

Result<BatchPtr> TakeRows(const BatchPtr& batch, const std::vector<int64_t>& rows) {
  if (rows.empty()) return batch;
  arrow::Int64Builder builder;
  GLAIVE_RETURN_NOT_OK(builder.AppendValues(rows));
  GLAIVE_ASSIGN_OR_RETURN(const auto picks, builder.Finish());
  GLAIVE_ASSIGN_OR_RETURN(const arrow::Datum taken, arrow::compute::Take(batch, picks));
  return taken.record_batch();
}

// Key columns of `batches` (all columns of the table) under their names.
Result<BatchPtr> KeysOf(const memwal::FreshSchema& schema, const BatchVector& batches) {
  std::vector<BatchPtr> keys;
  for (const BatchPtr& batch : batches) {
    GLAIVE_ASSIGN_OR_RETURN(auto picked, batch->SelectColumns(schema.key_columns()));
    keys.push_back(std::move(picked));
  }
  GLAIVE_ASSIGN_OR_RETURN(const auto table, arrow::Table::FromRecordBatches(keys));
  return table->CombineChunksToBatch();
}

Result<memwal::EncodedKeys> EncodedKeysOf(const LsmPath& path, const BatchPtr& batch) {
  GLAIVE_ASSIGN_OR_RETURN(const auto columns,
                          batch->SelectColumns(path.schema().key_columns()));
  return memwal::EncodeKeys(columns->columns());
}

// How many keys of `batches` exist, each counted once, and how many distinct ones there
// are.
Status CountKeys(const LsmPath& path, const BatchVector& batches,
                 const memwal::LsmSnapshot::Ptr& snapshot, LsmWriteOutcome* outcome) {
  GLAIVE_ASSIGN_OR_RETURN(const auto keys, KeysOf(path.schema(), batches));
  GLAIVE_ASSIGN_OR_RETURN(const memwal::EncodedKeys encoded,
                          memwal::EncodeKeys(keys->columns()));
  memwal::KeyMap distinct;
  std::vector<int64_t> first;
  for (int64_t i = 0; i < encoded.size(); ++i) {
    if (distinct.Put(encoded[i], static_cast<uint32_t>(i)) < 0) first.push_back(i);
  }
  GLAIVE_ASSIGN_OR_RETURN(
      const auto select,
      exec::SelectColumns(path.base()->schema(), path.schema().key_names()));
  GLAIVE_ASSIGN_OR_RETURN(const auto once,
                          first.size() == static_cast<size_t>(encoded.size())
                              ? Result<BatchPtr>(keys)
                              : TakeRows(keys, first));
  GLAIVE_ASSIGN_OR_RETURN(const auto found, memwal::LsmLookup(snapshot, *once, select));
  outcome->num_updated_rows += found->num_rows();
  outcome->num_inserted_rows += static_cast<int64_t>(first.size()) - found->num_rows();
  return Status::OK();
}

// Calls `write` with batches of at most `most` rows together (a single batch may have
// more).
Status InPieces(const BatchVector& batches, int64_t most,
                const std::function<Status(const BatchVector&)>& write) {
  BatchVector piece;
  int64_t rows = 0;
  for (const BatchPtr& batch : batches) {
    if (rows > 0 && rows + batch->num_rows() > most) {
      GLAIVE_RETURN_NOT_OK(write(piece));
      piece.clear();
      rows = 0;
    }
    piece.push_back(batch);
    rows += batch->num_rows();
  }
  return piece.empty() ? Status::OK() : write(piece);
}

}  // namespace

Result<LsmPath> LsmPath::Make(const table::Dataset::Ptr& base,
                              const LsmWriteOptions& options) {
  LsmPath path;
  path.upkeep_ = options.upkeep;
  path.base_ = base;
  GLAIVE_ASSIGN_OR_RETURN(path.details_, memwal::ReadDetails(*base));
  if (path.details_ == nullptr) {
    return InvalidInput("Invalid input, table ", base->env().store->root(),
                        " has no LSM write spec");
  }
  if (path.details_->sharding_specs_size() != 1) {
    return NotSupported("writing rows to shards that no sharding spec names (table ",
                        base->env().store->root(), ")");
  }
  GLAIVE_ASSIGN_OR_RETURN(path.schema_,
                          memwal::LsmState::Of(base->env())->SchemaOf(*base));
  if (path.schema_->key_names().empty()) {
    return InvalidInput("table ", base->env().store->root(),
                        " has a MemWAL index but no unenforced primary key");
  }
  memwal::WriterConfig config;
  // Entries without it replay in every release of the readers.
  config.write_generation = false;
  config.shard_spec_id = path.spec().spec_id();
  path.config_ =
      memwal::ApplyConfigDefaults({path.details_->writer_config_defaults().begin(),
                                   path.details_->writer_config_defaults().end()},
                                  config);
  for (const auto& field : path.spec().fields()) {
    for (const int32_t id : field.source_ids()) {
      for (const file::Field& column : base->schema().fields()) {
        if (Holds(column, id)) path.shard_columns_.insert(column.name);
      }
    }
  }
  path.rows_may_move_ =
      memwal::RowsMayMove(path.spec(), table::PrimaryKeyOf(base->schema()));
  return path;
}

const memwal::ShardingSpec& LsmPath::spec() const { return details_->sharding_specs(0); }

int64_t LsmPath::put_rows() const {
  return std::min(kLsmPutRows, config_.max_memtable_rows);
}

Result<std::shared_ptr<memwal::ShardWriter>> LsmPath::Writer(
    const memwal::ShardId& shard) const {
  GLAIVE_ASSIGN_OR_RETURN(auto writer,
                          memwal::WriterRegistry::Instance().Get(base_, shard, config_));
  if (upkeep_ == nullptr || !upkeep_->enabled || writer->has_on_flush()) return writer;
  writer->set_on_flush(
      [base = base_, upkeep = upkeep_](const memwal::ShardManifest& manifest) {
        memwal::NoteFlush(base, manifest, *upkeep);
        // Flushes wait, and puts behind them, rather than let reads look at ever more
        // generations.
        const auto shard_id = memwal::ShardId::FromBytes(manifest.shard_id().uuid());
        if (shard_id.ok()) {
          memwal::WaitForFanOut(*base, *shard_id, kMostGenerations, kMostWait);
        }
      });
  // Generations that earlier writers left.
  if (const auto view = writer->View(); view.ok()) {
    memwal::NoteFlush(base_, *view->manifest, *upkeep_);
  }
  return writer;
}

Result<memwal::LsmSnapshot::Ptr> LsmPath::Fresh() const {
  table::Dataset::Ptr base = base_;
  // What moved is merged by ourselves.
  if (rows_may_move_) {
    GLAIVE_ASSIGN_OR_RETURN(base, base->Latest());
  }
  return memwal::LsmSnapshot::Open(std::move(base), memwal::Freshness::kFresh);
}

Status LsmPath::Merge(const std::vector<memwal::ShardId>& shards,
                      CancelToken* cancel) const {
  for (const memwal::ShardId& shard : shards) {
    GLAIVE_RETURN_NOT_OK(Writer(shard).status());
  }
  memwal::CheckpointOptions options;
  options.shards = shards;
  options.compact.cancel = cancel;
  GLAIVE_ASSIGN_OR_RETURN(const auto outcome, memwal::CheckpointLsm(base_, options));
  if (!outcome.converged) {
    return RetryableConflict("rows of table ", base_->env().store->root(),
                             " that move to another shard could not be merged first: ",
                             outcome.generations_remaining,
                             " generations are left; try again later");
  }
  if (upkeep_ == nullptr) return Status::OK();
  if (upkeep_->on_compacted) upkeep_->on_compacted(outcome.base);
  for (const memwal::ShardId& shard : shards) {
    memwal::NoteMerged(outcome.base, shard, *upkeep_);
  }
  return Status::OK();
}

Status ShardBatches::Add(const LsmPath& path, const BatchPtr& batch) {
  GLAIVE_ASSIGN_OR_RETURN(const auto routed,
                          memwal::Route(*batch, path.spec(), path.base()->schema()));
  for (const memwal::ShardRows& part : routed) {
    GLAIVE_ASSIGN_OR_RETURN(auto rows, TakeRows(batch, part.rows));
    auto it = std::find_if(shards_.begin(), shards_.end(),
                           [&](const auto& s) { return s.first == part.shard; });
    if (it == shards_.end()) {
      shards_.emplace_back(part.shard, BatchVector());
      it = shards_.end() - 1;
    }
    it->second.push_back(std::move(rows));
  }
  rows_ += batch->num_rows();
  bytes_ += exec::RowBytes(*batch);
  return Status::OK();
}

Status PutAll(const LsmPath& path, const OwnedShards* owned, ShardBatches* pending,
              bool count, LsmWriteOutcome* outcome) {
  // Claimed before the keys are looked up, so that what is counted cannot change under
  // another process's hands.
  std::vector<std::shared_ptr<memwal::ShardWriter>> writers;
  for (const auto& [shard, batches] : pending->shards()) {
    if (owned != nullptr) {
      writers.push_back(owned->writer(shard));
      continue;
    }
    GLAIVE_ASSIGN_OR_RETURN(auto writer, path.Writer(shard));
    writers.push_back(std::move(writer));
  }
  if (count && !writers.empty()) {
    memwal::LsmSnapshot::Ptr snapshot;
    if (owned != nullptr) {
      snapshot = owned->snapshot();
    } else {
      GLAIVE_ASSIGN_OR_RETURN(snapshot, path.Fresh());
    }
    for (const auto& [shard, batches] : pending->shards()) {
      GLAIVE_RETURN_NOT_OK(CountKeys(path, batches, snapshot, outcome));
    }
  }
  size_t i = 0;
  for (const auto& [shard, batches] : pending->shards()) {
    memwal::ShardWriter& writer = *writers[i++];
    GLAIVE_RETURN_NOT_OK(
        InPieces(batches, path.put_rows(),
                 [&](const BatchVector& piece) { return writer.Put(piece); }));
  }
  outcome->num_rows += pending->rows();
  pending->Clear();
  return Status::OK();
}

Status DeleteAll(const LsmPath& path, const OwnedShards& owned, ShardBatches* pending) {
  for (const auto& [shard, batches] : pending->shards()) {
    memwal::ShardWriter& writer = *owned.writer(shard);
    GLAIVE_RETURN_NOT_OK(
        InPieces(batches, path.put_rows(),
                 [&](const BatchVector& piece) { return writer.Delete(piece); }));
  }
  pending->Clear();
  return Status::OK();
}

Result<std::vector<memwal::ShardId>> ShardsBeside(
    const LsmPath& path, const ShardBatches& pending,
    const memwal::LsmSnapshot::Ptr& snapshot) {
  std::set<memwal::ShardId> shards;
  for (const auto& [shard, batches] : pending.shards()) {
    GLAIVE_ASSIGN_OR_RETURN(const auto keys, KeysOf(path.schema(), batches));
    GLAIVE_ASSIGN_OR_RETURN(const auto beside,
                            memwal::LsmShardsBeside(snapshot, *keys, shard));
    shards.insert(beside.begin(), beside.end());
  }
  return std::vector<memwal::ShardId>(shards.begin(), shards.end());
}

Result<BatchVector> NewestOfEachKey(const LsmPath& path, const BatchVector& batches,
                                    memwal::KeyMap* keys) {
  BatchVector newest;
  for (size_t b = batches.size(); b-- > 0;) {
    GLAIVE_ASSIGN_OR_RETURN(const auto encoded, EncodedKeysOf(path, batches[b]));
    std::vector<int64_t> kept;
    for (int64_t i = encoded.size(); i-- > 0;) {
      if (keys->Put(encoded[i], 0) < 0) kept.push_back(i);
    }
    if (kept.empty()) continue;
    std::reverse(kept.begin(), kept.end());
    const bool all = static_cast<int64_t>(kept.size()) == encoded.size();
    GLAIVE_ASSIGN_OR_RETURN(
        auto rows, all ? Result<BatchPtr>(batches[b]) : TakeRows(batches[b], kept));
    newest.push_back(std::move(rows));
  }
  std::reverse(newest.begin(), newest.end());
  return newest;
}

Result<BatchPtr> WithoutKeys(const LsmPath& path, const BatchPtr& batch,
                             const memwal::KeyMap& keys) {
  GLAIVE_ASSIGN_OR_RETURN(const auto encoded, EncodedKeysOf(path, batch));
  std::vector<int64_t> kept;
  for (int64_t i = 0; i < encoded.size(); ++i) {
    if (keys.Find(encoded[i]) < 0) kept.push_back(i);
  }
  if (kept.empty()) return batch->Slice(0, 0);
  if (static_cast<int64_t>(kept.size()) == encoded.size()) return batch;
  return TakeRows(batch, kept);
}

}  // namespace glaive::db
