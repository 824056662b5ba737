// Rows by key through the LSM write path: upsert, delete and update by predicate.
#include <algorithm>
#include <optional>
#include <utility>

#include <arrow/api.h>

#include "db/coerce.h"
#include "db/lsm.h"
#include "db/lsm_owned.h"
#include "db/lsm_path.h"
#include "exec/assignments.h"
#include "exec/row_bytes.h"
#include "exec/select_columns.h"
#include "io/object_store.h"
#include "memwal/lsm_read.h"
#include "runtime/cancel.h"
#include "table/writer_turn.h"

namespace glaive::db {
namespace {

using BatchPtr = std::shared_ptr<arrow::RecordBatch>;
using memwal::BatchVector;

// How often a call may find that others have written to its shards meanwhile.
constexpr int kMostAttempts = 16;

Status WritersLost(const LsmPath& path) {
  return RetryableConflict("rows of table ", path.base()->env().store->root(),
                           " that this call changes are written all the time by others; "
                           "try again later");
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
    const std::optional<std::vector<std::string>>& columns, CancelToken* cancel) {
  memwal::LsmScanOptions options;
  options.scan.filter = predicate;
  options.scan.cancel = cancel;
  if (columns) {
    GLAIVE_ASSIGN_OR_RETURN(options.scan.select,
                            exec::SelectColumns(snapshot->base()->schema(), *columns));
  }
  return memwal::LsmScan(snapshot, std::move(options));
}

std::set<memwal::ShardId> ShardsOf(const ShardBatches& pending) {
  std::set<memwal::ShardId> shards;
  for (const auto& [shard, batches] : pending.shards()) shards.insert(shard);
  return shards;
}

// Puts rows of which some may come to belong to another shard than before. A key is fresh
// in one shard at a time: where it is in another one, that one is merged first.
Status PutMoving(const LsmPath& path, ShardBatches* pending,
                 const LsmWriteOptions& options, LsmWriteOutcome* outcome) {
  if (pending->rows() == 0) return Status::OK();
  for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
    GLAIVE_ASSIGN_OR_RETURN(
        table::WriterTurn turn,
        path.base()->TakeTurn(table::TurnKind::kAlone, options.cancel));
    GLAIVE_ASSIGN_OR_RETURN(const auto owned,
                            OwnedShards::Claim(path, ShardsOf(*pending), options.cancel));
    GLAIVE_ASSIGN_OR_RETURN(const auto beside,
                            ShardsBeside(path, *pending, owned.snapshot()));
    if (beside.empty()) return PutAll(path, &owned, pending, options.count, outcome);
    turn.GiveBack();
    GLAIVE_RETURN_NOT_OK(path.Merge(beside, options.cancel));
  }
  return WritersLost(path);
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
  const bool moves = path.rows_may_move();
  table::WriterTurn turn;
  if (!moves) {
    GLAIVE_ASSIGN_OR_RETURN(
        turn, base->TakeTurn(table::TurnKind::kAmongOthers, options.cancel));
  }
  const auto put = [&] {
    return moves ? PutMoving(path, &pending, options, &outcome)
                 : PutAll(path, nullptr, &pending, options.count, &outcome);
  };
  while (true) {
    BatchPtr batch;
    GLAIVE_RETURN_NOT_OK(shaped->ReadNext(&batch));
    if (batch == nullptr) break;
    GLAIVE_RETURN_NOT_OK(CheckCancel(options.cancel));
    GLAIVE_ASSIGN_OR_RETURN(batch, Complete(batch, *schema));
    for (int64_t begin = 0; begin < batch->num_rows(); begin += path.put_rows()) {
      BatchPtr slice = batch->Slice(begin, path.put_rows());
      // Where a key may have gone from shard to shard, its versions must not be in two.
      if (pending.rows() > 0 &&
          (moves || pending.rows() + slice->num_rows() > path.put_rows() ||
           pending.bytes() + exec::RowBytes(*slice) > kLsmPutBytes)) {
        GLAIVE_RETURN_NOT_OK(put());
      }
      if (moves) {
        memwal::KeyMap keys;
        const int64_t given = slice->num_rows();
        GLAIVE_ASSIGN_OR_RETURN(const auto newest, NewestOfEachKey(path, {slice}, &keys));
        slice = newest[0];
        outcome.num_rows += given - slice->num_rows();
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
  GLAIVE_RETURN_NOT_OK(put());
  return outcome;
}

Result<LsmWriteOutcome> LsmDelete(const table::Dataset::Ptr& base,
                                  const std::string& predicate,
                                  const LsmWriteOptions& options) {
  GLAIVE_ASSIGN_OR_RETURN(const LsmPath path, LsmPath::Make(base, options));
  // The key, and what decides the shard.
  std::vector<std::string> columns = path.schema().key_names();
  for (const std::string& name : path.shard_columns()) {
    if (std::find(columns.begin(), columns.end(), name) == columns.end()) {
      columns.push_back(name);
    }
  }
  GLAIVE_ASSIGN_OR_RETURN(const table::WriterTurn turn,
                          base->TakeTurn(table::TurnKind::kAlone, options.cancel));
  LsmWriteOutcome outcome;
  for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
    GLAIVE_ASSIGN_OR_RETURN(auto owned, OwnedShards::Claim(path, {}, options.cancel));
    GLAIVE_ASSIGN_OR_RETURN(
        auto chosen, ReadChosen(owned.snapshot(), predicate, columns, options.cancel));
    // False: what was chosen may be out of date; what is deleted is not chosen again.
    const auto flush = [&](ShardBatches* pending) -> Result<bool> {
      GLAIVE_ASSIGN_OR_RETURN(const bool covered, owned.Cover(path, *pending));
      if (!covered) return false;
      const int64_t rows = pending->rows();
      GLAIVE_RETURN_NOT_OK(DeleteAll(path, owned, pending));
      outcome.num_deleted_rows += rows;
      return true;
    };
    ShardBatches pending;
    bool valid = true;
    while (valid) {
      BatchPtr batch;
      GLAIVE_RETURN_NOT_OK(chosen->ReadNext(&batch));
      if (batch == nullptr) break;
      if (batch->num_rows() == 0) continue;
      if (pending.rows() > 0 && pending.rows() + batch->num_rows() > path.put_rows()) {
        GLAIVE_ASSIGN_OR_RETURN(valid, flush(&pending));
      }
      if (valid) GLAIVE_RETURN_NOT_OK(pending.Add(path, batch));
    }
    if (valid) {
      GLAIVE_ASSIGN_OR_RETURN(valid, flush(&pending));
    }
    if (valid) return outcome;
  }
  return WritersLost(path);
}

namespace {

// How the new rows of an update are made from the old ones.
struct UpdateColumns {
  std::vector<exec::NewColumn> columns;  // of the table, in order
  bool changes_key = false;
  bool changes_shard = false;  // perhaps
};

Result<UpdateColumns> BindUpdate(const LsmPath& path,
                                 const std::vector<exec::Assignment>& assignments) {
  UpdateColumns out;
  GLAIVE_ASSIGN_OR_RETURN(
      out.columns, exec::BindAssignments(path.base()->schema(), *path.schema().logical(),
                                         assignments));
  const auto& keys = path.schema().key_names();
  for (const exec::Assignment& assignment : assignments) {
    out.changes_key |=
        std::find(keys.begin(), keys.end(), assignment.column) != keys.end();
    out.changes_shard |= path.shard_columns().contains(assignment.column);
  }
  for (const exec::NewColumn& column : out.columns) {
    if (column.expression != nullptr && !column.expression->extra_columns().empty()) {
      return NotSupported("the meta column '", column.expression->extra_columns()[0],
                          "' in an update of a table with an LSM write path, whose "
                          "fresh rows have none");
    }
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
      GLAIVE_ASSIGN_OR_RETURN(auto array,
                              exec::RepeatValue(column.value, old->num_rows()));
      arrays.push_back(std::move(array));
    } else {
      arrays.push_back(old->column(static_cast<int>(c)));
    }
  }
  return arrow::RecordBatch::Make(old->schema(), old->num_rows(), std::move(arrays));
}

// Updates that leave every row where it is, piece by piece. False: nothing was written
// since what was chosen may be out of date.
Result<bool> UpdateInPlace(const LsmPath& path, const UpdateColumns& changes,
                           OwnedShards* owned, arrow::RecordBatchReader& chosen,
                           LsmWriteOutcome* outcome) {
  ShardBatches rows;
  const auto put = [&]() -> Result<bool> {
    GLAIVE_ASSIGN_OR_RETURN(const bool covered, owned->Cover(path, rows));
    if (!covered && outcome->num_rows > 0) return WritersLost(path);
    if (!covered) return false;
    GLAIVE_RETURN_NOT_OK(PutAll(path, owned, &rows, /*count=*/false, outcome));
    return true;
  };
  while (true) {
    BatchPtr batch;
    GLAIVE_RETURN_NOT_OK(chosen.ReadNext(&batch));
    if (batch == nullptr) break;
    if (batch->num_rows() == 0) continue;
    GLAIVE_ASSIGN_OR_RETURN(const BatchPtr made, NewRows(changes, batch));
    if (rows.rows() > 0 && (rows.rows() + made->num_rows() > path.put_rows() ||
                            rows.bytes() + exec::RowBytes(*made) > kLsmPutBytes)) {
      GLAIVE_ASSIGN_OR_RETURN(const bool covered, put());
      if (!covered) return false;
    }
    GLAIVE_RETURN_NOT_OK(rows.Add(path, made));
  }
  return put();
}

// Rows that get another key, or perhaps another shard.
struct Moved {
  ShardBatches put;     // the newest version of each key
  ShardBatches remove;  // old keys that no row has now
  int64_t rows = 0;
};

Result<Moved> PlanMoves(const LsmPath& path, const UpdateColumns& changes,
                        arrow::RecordBatchReader& chosen) {
  Moved moved;
  BatchVector old_rows, new_rows;
  while (true) {
    BatchPtr batch;
    GLAIVE_RETURN_NOT_OK(chosen.ReadNext(&batch));
    if (batch == nullptr) break;
    if (batch->num_rows() == 0) continue;
    moved.rows += batch->num_rows();
    GLAIVE_ASSIGN_OR_RETURN(auto made, NewRows(changes, batch));
    new_rows.push_back(std::move(made));
    if (changes.changes_key) old_rows.push_back(std::move(batch));
  }
  // A new key may be another row's old one.
  memwal::KeyMap keys;
  GLAIVE_ASSIGN_OR_RETURN(const auto newest, NewestOfEachKey(path, new_rows, &keys));
  for (const BatchPtr& batch : newest) {
    GLAIVE_RETURN_NOT_OK(moved.put.Add(path, batch));
  }
  for (const BatchPtr& batch : old_rows) {
    GLAIVE_ASSIGN_OR_RETURN(const auto gone, WithoutKeys(path, batch, keys));
    if (gone->num_rows() > 0) GLAIVE_RETURN_NOT_OK(moved.remove.Add(path, gone));
  }
  return moved;
}

}  // namespace

Result<LsmWriteOutcome> LsmUpdate(const table::Dataset::Ptr& base,
                                  const exec::UpdateOptions& update,
                                  const LsmWriteOptions& options) {
  GLAIVE_ASSIGN_OR_RETURN(const LsmPath path, LsmPath::Make(base, options));
  GLAIVE_ASSIGN_OR_RETURN(const UpdateColumns changes,
                          BindUpdate(path, update.assignments));
  const bool moves =
      path.rows_may_move() && (changes.changes_key || changes.changes_shard);
  for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
    GLAIVE_ASSIGN_OR_RETURN(table::WriterTurn turn,
                            base->TakeTurn(table::TurnKind::kAlone, options.cancel));
    GLAIVE_ASSIGN_OR_RETURN(auto owned, OwnedShards::Claim(path, {}, options.cancel));
    GLAIVE_ASSIGN_OR_RETURN(auto chosen, ReadChosen(owned.snapshot(), update.where,
                                                    std::nullopt, options.cancel));
    LsmWriteOutcome outcome;
    if (!moves && !changes.changes_key) {
      GLAIVE_ASSIGN_OR_RETURN(const bool valid,
                              UpdateInPlace(path, changes, &owned, *chosen, &outcome));
      if (!valid) continue;
      outcome.num_updated_rows = outcome.num_rows;
      return outcome;
    }
    GLAIVE_ASSIGN_OR_RETURN(Moved moved, PlanMoves(path, changes, *chosen));
    GLAIVE_ASSIGN_OR_RETURN(bool covered, owned.Cover(path, moved.put));
    if (covered) {
      GLAIVE_ASSIGN_OR_RETURN(covered, owned.Cover(path, moved.remove));
    }
    if (!covered) continue;
    if (moves) {
      GLAIVE_ASSIGN_OR_RETURN(const auto beside,
                              ShardsBeside(path, moved.put, owned.snapshot()));
      if (!beside.empty()) {
        turn.GiveBack();
        GLAIVE_RETURN_NOT_OK(path.Merge(beside, options.cancel));
        continue;
      }
    }
    // New rows first: a crash in between leaves both, and loses nothing.
    GLAIVE_RETURN_NOT_OK(PutAll(path, &owned, &moved.put, /*count=*/false, &outcome));
    GLAIVE_RETURN_NOT_OK(DeleteAll(path, owned, &moved.remove));
    outcome.num_rows = outcome.num_updated_rows = moved.rows;
    return outcome;
  }
  return WritersLost(path);
}

}  // namespace glaive::db
