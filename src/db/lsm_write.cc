// Rows by key through the LSM write path: upsert, delete and update by predicate.
#include <algorithm>
#include <chrono>
#include <functional>
#include <set>
#include <utility>

#include <arrow/api.h>
#include <arrow/compute/api.h>

#include "db/coerce.h"
#include "db/lsm.h"
#include "expr/predicate.h"
#include "file/schema.h"
#include "format/memwal.pb.h"
#include "io/object_store.h"
#include "memwal/keys.h"
#include "memwal/lsm_read.h"
#include "memwal/lsm_snapshot.h"
#include "memwal/lsm_state.h"
#include "memwal/mem_wal_index.h"
#include "memwal/shard_writer.h"
#include "memwal/sharding.h"
#include "memwal/upkeep.h"
#include "runtime/cancel.h"
#include "table/writer_turn.h"

namespace glaive::db {
namespace {

using BatchPtr = std::shared_ptr<arrow::RecordBatch>;
using memwal::BatchVector;

// What one put holds at most: more is cut, so that a long stream stays within memory.
constexpr int64_t kPutRows = 65536;
constexpr int64_t kPutBytes = int64_t{32} << 20;
// Generations of a shard from which on a flush waits for upkeep, and for how long. Those
// that are under way come on top: reads should look at no more than eight.
constexpr int64_t kMostGenerations = 6;
constexpr std::chrono::seconds kMostWait{30};

int64_t BytesOf(const arrow::RecordBatch& batch) {
  int64_t bytes = 0;
  for (const auto& column : batch.columns()) {
    for (const auto& buffer : column->data()->buffers) {
      if (buffer != nullptr) bytes += buffer->size();
    }
  }
  return bytes;
}

// The write path of one version of a table.
class LsmPath {
 public:
  static Result<LsmPath> Make(const table::Dataset::Ptr& base,
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
    return path;
  }

  const table::Dataset::Ptr& base() const { return base_; }
  const memwal::ShardingSpec& spec() const { return details_->sharding_specs(0); }
  const memwal::FreshSchema& schema() const { return *schema_; }
  int64_t put_rows() const { return std::min(kPutRows, config_.max_memtable_rows); }

  Result<std::shared_ptr<memwal::ShardWriter>> Writer(
      const memwal::ShardId& shard) const {
    GLAIVE_ASSIGN_OR_RETURN(
        auto writer, memwal::WriterRegistry::Instance().Get(base_, shard, config_));
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

  // Names of the columns that decide the shard.
  std::set<std::string> ShardColumns() const {
    std::set<std::string> names;
    for (const auto& field : spec().fields()) {
      for (const int32_t id : field.source_ids()) {
        if (const auto* column = base_->schema().FindById(id)) names.insert(column->name);
      }
    }
    return names;
  }

 private:
  LsmPath() = default;
  table::Dataset::Ptr base_;
  std::shared_ptr<const memwal::MemWalDetails> details_;
  std::shared_ptr<const memwal::FreshSchema> schema_;
  memwal::WriterConfig config_;
  std::shared_ptr<const memwal::UpkeepSettings> upkeep_;
};

Result<BatchPtr> TakeRows(const BatchPtr& batch, const std::vector<int64_t>& rows) {
  if (rows.empty()) return batch;
  arrow::Int64Builder builder;
  GLAIVE_RETURN_NOT_OK(builder.AppendValues(rows));
  GLAIVE_ASSIGN_OR_RETURN(const auto picks, builder.Finish());
  GLAIVE_ASSIGN_OR_RETURN(const arrow::Datum taken, arrow::compute::Take(batch, picks));
  return taken.record_batch();
}

// Batches of several calls to the writers, by shard in the order of their first rows.
class ShardBatches {
 public:
  Status Add(const LsmPath& path, const BatchPtr& batch) {
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
    bytes_ += BytesOf(*batch);
    return Status::OK();
  }
  using Shards = std::vector<std::pair<memwal::ShardId, BatchVector>>;
  const Shards& shards() const { return shards_; }
  int64_t rows() const { return rows_; }
  int64_t bytes() const { return bytes_; }
  void Clear() { *this = ShardBatches(); }

 private:
  Shards shards_;
  int64_t rows_ = 0;
  int64_t bytes_ = 0;
};

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
  exec::Selection select;
  select.columns.emplace();
  for (const std::string& name : path.schema().key_names()) {
    const std::string path_text = file::FormatFieldPath(std::vector<std::string>{name});
    select.columns->emplace_back(name, path_text);
  }
  GLAIVE_ASSIGN_OR_RETURN(const auto once,
                          first.size() == static_cast<size_t>(encoded.size())
                              ? Result<BatchPtr>(keys)
                              : TakeRows(keys, first));
  GLAIVE_ASSIGN_OR_RETURN(const auto found, memwal::LsmLookup(snapshot, *once, select));
  outcome->num_updated_rows += found->num_rows();
  outcome->num_inserted_rows += static_cast<int64_t>(first.size()) - found->num_rows();
  return Status::OK();
}

Result<memwal::LsmSnapshot::Ptr> Fresh(const table::Dataset::Ptr& base) {
  return memwal::LsmSnapshot::Open(base, memwal::Freshness::kFresh);
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

Status PutAll(const LsmPath& path, ShardBatches* pending, bool count,
              LsmWriteOutcome* outcome) {
  // Claimed before the keys are looked up, so that what is counted cannot change under
  // another process's hands.
  std::vector<std::shared_ptr<memwal::ShardWriter>> writers;
  for (const auto& [shard, batches] : pending->shards()) {
    GLAIVE_ASSIGN_OR_RETURN(auto writer, path.Writer(shard));
    writers.push_back(std::move(writer));
  }
  if (count && !writers.empty()) {
    GLAIVE_ASSIGN_OR_RETURN(const auto snapshot, Fresh(path.base()));
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

// Columns in the table's order; missing nullable ones become null.
Result<BatchPtr> Complete(const BatchPtr& batch, const arrow::Schema& schema) {
  if (batch->schema()->Equals(schema, /*check_metadata=*/false)) return batch;
  arrow::ArrayVector columns;
  for (const auto& field : schema.fields()) {
    auto column = batch->GetColumnByName(field->name());
    if (column == nullptr) {
      if (!field->nullable()) {
        return SchemaMismatch("Invalid input, input is missing column '", field->name(),
                              "' required by the table schema");
      }
      GLAIVE_ASSIGN_OR_RETURN(column,
                              arrow::MakeArrayOfNull(field->type(), batch->num_rows()));
    }
    columns.push_back(std::move(column));
  }
  return arrow::RecordBatch::Make(arrow::schema(schema.fields()), batch->num_rows(),
                                  std::move(columns));
}

Status CheckCancel(CancelToken* cancel) {
  return cancel == nullptr ? Status::OK() : cancel->Check();
}

// Rows that a predicate chooses among the newest versions, read to be changed.
Result<std::shared_ptr<arrow::RecordBatchReader>> ReadChosen(
    const memwal::LsmSnapshot::Ptr& snapshot, const std::string& predicate,
    std::optional<std::vector<std::string>> columns, CancelToken* cancel) {
  memwal::LsmScanOptions options;
  options.scan.filter = predicate;
  options.scan.cancel = cancel;
  if (columns) {
    options.scan.select.columns.emplace();
    for (std::string& name : *columns) {
      std::string text = file::FormatFieldPath(std::vector<std::string>{name});
      options.scan.select.columns->emplace_back(std::move(name), std::move(text));
    }
  }
  return memwal::LsmScan(snapshot, std::move(options));
}

// The shards that exist or may exist are claimed, so that nobody else changes the rows
// between their being read and written.
Status ClaimAll(const LsmPath& path) {
  GLAIVE_ASSIGN_OR_RETURN(auto shards, memwal::ListShards(*path.base()->env().store));
  for (const memwal::ShardId& shard : shards) {
    GLAIVE_RETURN_NOT_OK(path.Writer(shard).status());
  }
  return Status::OK();
}

}  // namespace

Result<LsmWriteOutcome> LsmUpsert(const table::Dataset::Ptr& base,
                                  std::shared_ptr<arrow::RecordBatchReader> rows,
                                  const LsmWriteOptions& options) {
  GLAIVE_ASSIGN_OR_RETURN(const LsmPath path, LsmPath::Make(base, options));
  const auto& schema = path.schema().logical();
  GLAIVE_ASSIGN_OR_RETURN(auto shaped,
                          CoerceToSchema(std::move(rows), schema, /*reject_nan=*/true));
  LsmWriteOutcome outcome;
  ShardBatches pending;
  std::optional<memwal::ShardId> only;
  GLAIVE_ASSIGN_OR_RETURN(const table::WriterTurn turn,
                          base->TakeTurn(table::TurnKind::kAmongOthers, options.cancel));
  while (true) {
    BatchPtr batch;
    GLAIVE_RETURN_NOT_OK(shaped->ReadNext(&batch));
    if (batch == nullptr) break;
    GLAIVE_RETURN_NOT_OK(CheckCancel(options.cancel));
    GLAIVE_ASSIGN_OR_RETURN(batch, Complete(batch, *schema));
    for (int64_t begin = 0; begin < batch->num_rows(); begin += path.put_rows()) {
      const BatchPtr slice = batch->Slice(begin, path.put_rows());
      if (pending.rows() > 0 && (pending.rows() + slice->num_rows() > path.put_rows() ||
                                 pending.bytes() + BytesOf(*slice) > kPutBytes)) {
        GLAIVE_RETURN_NOT_OK(PutAll(path, &pending, options.count, &outcome));
      }
      GLAIVE_RETURN_NOT_OK(pending.Add(path, slice));
      if (options.single_shard && !pending.shards().empty()) {
        if (!only) only = pending.shards().front().first;
        if (pending.shards().size() > 1 || !(pending.shards().front().first == *only)) {
          return InvalidInput(
              "Invalid input, input batches route to multiple shards, which "
              "validate_single_shard(True) refuses; without it the rows are spread");
        }
      }
    }
  }
  GLAIVE_RETURN_NOT_OK(PutAll(path, &pending, options.count, &outcome));
  return outcome;
}

Result<LsmWriteOutcome> LsmDelete(const table::Dataset::Ptr& base,
                                  const std::string& predicate,
                                  const LsmWriteOptions& options) {
  GLAIVE_ASSIGN_OR_RETURN(const LsmPath path, LsmPath::Make(base, options));
  GLAIVE_ASSIGN_OR_RETURN(const table::WriterTurn turn,
                          base->TakeTurn(table::TurnKind::kAlone, options.cancel));
  GLAIVE_RETURN_NOT_OK(ClaimAll(path));
  GLAIVE_ASSIGN_OR_RETURN(const auto snapshot, Fresh(base));
  // The key, and what decides the shard.
  std::vector<std::string> columns = path.schema().key_names();
  for (const std::string& name : path.ShardColumns()) {
    if (std::find(columns.begin(), columns.end(), name) == columns.end()) {
      columns.push_back(name);
    }
  }
  GLAIVE_ASSIGN_OR_RETURN(auto chosen,
                          ReadChosen(snapshot, predicate, columns, options.cancel));
  LsmWriteOutcome outcome;
  const auto flush = [&](ShardBatches* pending) -> Status {
    for (const auto& [shard, batches] : pending->shards()) {
      GLAIVE_ASSIGN_OR_RETURN(const auto writer, path.Writer(shard));
      GLAIVE_RETURN_NOT_OK(
          InPieces(batches, path.put_rows(),
                   [&](const BatchVector& piece) { return writer->Delete(piece); }));
    }
    outcome.num_deleted_rows += pending->rows();
    pending->Clear();
    return Status::OK();
  };
  ShardBatches pending;
  while (true) {
    BatchPtr batch;
    GLAIVE_RETURN_NOT_OK(chosen->ReadNext(&batch));
    if (batch == nullptr) break;
    if (batch->num_rows() == 0) continue;
    if (pending.rows() > 0 && pending.rows() + batch->num_rows() > path.put_rows()) {
      GLAIVE_RETURN_NOT_OK(flush(&pending));
    }
    GLAIVE_RETURN_NOT_OK(pending.Add(path, batch));
  }
  GLAIVE_RETURN_NOT_OK(flush(&pending));
  return outcome;
}

namespace {

// How the new rows of an update are made from the old ones.
struct UpdateColumns {
  struct Column {
    std::shared_ptr<const expr::ScalarExpr> expression;  // null: `value`, or kept
    std::shared_ptr<arrow::Array> value;                 // one row
  };
  std::vector<Column> columns;  // of the table, in order
  bool changes_key = false;
};

Result<UpdateColumns> BindUpdate(const LsmPath& path,
                                 const std::vector<exec::Assignment>& assignments) {
  if (assignments.empty()) {
    return InvalidInput(
        "Invalid input, at least one column must be specified in an update");
  }
  const auto& schema = *path.schema().logical();
  const auto& keys = path.schema().key_names();
  const auto shard_columns = path.ShardColumns();
  UpdateColumns out;
  out.columns.resize(static_cast<size_t>(schema.num_fields()));
  for (const exec::Assignment& assignment : assignments) {
    const int index = schema.GetFieldIndex(assignment.column);
    if (index < 0) {
      return InvalidInput(
          "Invalid input, Column '", assignment.column,
          "' does not exist in dataset schema; there are: ", schema.ToString());
    }
    auto& column = out.columns[static_cast<size_t>(index)];
    if (column.expression != nullptr || column.value != nullptr) {
      return InvalidInput("Invalid input, column '", assignment.column,
                          "' is given two values in one update");
    }
    const bool is_key =
        std::find(keys.begin(), keys.end(), assignment.column) != keys.end();
    if (shard_columns.contains(assignment.column) && !is_key) {
      return NotSupported("updating column '", assignment.column,
                          "', which decides the shard of a row and is not part of its "
                          "primary key: delete the rows and write them again");
    }
    out.changes_key |= is_key;
    const auto& type = schema.field(index)->type();
    if (assignment.value == nullptr) {
      auto expression =
          expr::ScalarExpr::MakeCastTo(assignment.sql, path.base()->schema(), type);
      if (!expression.ok()) {
        return WithContext(expression.status(), "column '" + assignment.column + "'");
      }
      column.expression = std::move(*expression);
      if (!column.expression->extra_columns().empty()) {
        return NotSupported("the meta column '", column.expression->extra_columns()[0],
                            "' in an update of a table with an LSM write path, whose "
                            "fresh rows have none");
      }
      continue;
    }
    if (assignment.value->length() != 1) {
      return InvalidInput("Invalid input, column '", assignment.column,
                          "' needs one value, not ", assignment.value->length());
    }
    auto cast = arrow::compute::Cast(*assignment.value, type);
    if (!cast.ok()) {
      return InvalidInput("Invalid input, the value for column '", assignment.column,
                          "' is of type ", assignment.value->type()->ToString(), ", not ",
                          type->ToString());
    }
    column.value = std::move(*cast);
  }
  return out;
}

Result<BatchPtr> NewRows(const UpdateColumns& update, const BatchPtr& old) {
  arrow::ArrayVector arrays;
  for (size_t c = 0; c < update.columns.size(); ++c) {
    const auto& column = update.columns[c];
    if (column.expression != nullptr) {
      GLAIVE_ASSIGN_OR_RETURN(auto array, column.expression->Evaluate(*old));
      arrays.push_back(std::move(array));
    } else if (column.value != nullptr) {
      GLAIVE_ASSIGN_OR_RETURN(const auto scalar, column.value->GetScalar(0));
      GLAIVE_ASSIGN_OR_RETURN(auto array,
                              arrow::MakeArrayFromScalar(*scalar, old->num_rows()));
      arrays.push_back(std::move(array));
    } else {
      arrays.push_back(old->column(static_cast<int>(c)));
    }
  }
  return arrow::RecordBatch::Make(old->schema(), old->num_rows(), std::move(arrays));
}

}  // namespace

Result<LsmWriteOutcome> LsmUpdate(const table::Dataset::Ptr& base,
                                  const exec::UpdateOptions& update,
                                  const LsmWriteOptions& options) {
  GLAIVE_ASSIGN_OR_RETURN(const LsmPath path, LsmPath::Make(base, options));
  GLAIVE_ASSIGN_OR_RETURN(const UpdateColumns changes,
                          BindUpdate(path, update.assignments));
  GLAIVE_ASSIGN_OR_RETURN(const table::WriterTurn turn,
                          base->TakeTurn(table::TurnKind::kAlone, options.cancel));
  GLAIVE_RETURN_NOT_OK(ClaimAll(path));
  GLAIVE_ASSIGN_OR_RETURN(const auto snapshot, Fresh(base));
  GLAIVE_ASSIGN_OR_RETURN(
      auto chosen, ReadChosen(snapshot, update.where, std::nullopt, options.cancel));
  LsmWriteOutcome outcome;
  ShardBatches old_rows, new_rows;
  // Old keys go before new ones come: a new key may be another row's old one.
  const auto flush = [&]() -> Status {
    for (const auto& [shard, batches] : old_rows.shards()) {
      GLAIVE_ASSIGN_OR_RETURN(const auto writer, path.Writer(shard));
      GLAIVE_RETURN_NOT_OK(
          InPieces(batches, path.put_rows(),
                   [&](const BatchVector& piece) { return writer->Delete(piece); }));
    }
    old_rows.Clear();
    const int64_t rows = new_rows.rows();
    GLAIVE_RETURN_NOT_OK(PutAll(path, &new_rows, /*count=*/false, &outcome));
    outcome.num_updated_rows += rows;
    return Status::OK();
  };
  while (true) {
    BatchPtr batch;
    GLAIVE_RETURN_NOT_OK(chosen->ReadNext(&batch));
    if (batch == nullptr) break;
    if (batch->num_rows() == 0) continue;
    GLAIVE_ASSIGN_OR_RETURN(const BatchPtr made, NewRows(changes, batch));
    // With changing keys everything is one step: see above.
    if (!changes.changes_key && new_rows.rows() > 0 &&
        (new_rows.rows() + made->num_rows() > path.put_rows() ||
         new_rows.bytes() + BytesOf(*made) > kPutBytes)) {
      GLAIVE_RETURN_NOT_OK(flush());
    }
    if (changes.changes_key) GLAIVE_RETURN_NOT_OK(old_rows.Add(path, batch));
    GLAIVE_RETURN_NOT_OK(new_rows.Add(path, made));
  }
  GLAIVE_RETURN_NOT_OK(flush());
  return outcome;
}

}  // namespace glaive::db
