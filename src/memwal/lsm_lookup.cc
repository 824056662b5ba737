// Rows by primary key: memtables, then generations newest first, then the base.
#include <algorithm>
#include <optional>
#include <utility>

#include <arrow/array.h>
#include <arrow/array/concatenate.h>
#include <arrow/array/util.h>
#include <arrow/compute/api.h>
#include <arrow/compute/initialize.h>
#include <arrow/record_batch.h>
#include <arrow/scalar.h>
#include <arrow/table.h>
#include <arrow/type.h>

#include "exec/plan.h"
#include "exec/take.h"
#include "memwal/keys.h"
#include "memwal/lsm_read.h"
#include "memwal/lsm_sources.h"
#include "table/memory_rows.h"

namespace glaive::memwal {
namespace {

using ArrayPtr = std::shared_ptr<arrow::Array>;
using BatchPtr = std::shared_ptr<arrow::RecordBatch>;

// `array` as `type`, null where a value has no place there.
Result<ArrayPtr> CastKeys(const ArrayPtr& array,
                          const std::shared_ptr<arrow::DataType>& type) {
  if (array->type()->Equals(*type)) return array;
  auto whole = arrow::compute::Cast(*array, type);
  if (whole.ok()) return *whole;
  if (whole.status().IsNotImplemented()) {
    return InvalidInput("keys of type ", array->type()->ToString(),
                        " cannot be looked up in a column of type ", type->ToString());
  }
  // Some value does not fit: it is no key of the table, the others may be.
  arrow::ArrayVector parts;
  for (int64_t i = 0; i < array->length(); ++i) {
    auto one = arrow::compute::Cast(*array->Slice(i, 1), type);
    if (one.ok()) {
      parts.push_back(std::move(*one));
    } else {
      GLAIVE_ASSIGN_OR_RETURN(auto null, arrow::MakeArrayOfNull(type, 1));
      parts.push_back(std::move(null));
    }
  }
  return arrow::Concatenate(parts);
}

// The keys of a look-up: each once, without nulls.
struct Wanted {
  arrow::ArrayVector columns;
  EncodedKeys keys;
  std::vector<int64_t> open;  // not found yet
};

Result<Wanted> Encode(const KeyColumns& key_columns, const arrow::RecordBatch& keys) {
  static const Status initialized = arrow::compute::Initialize();
  GLAIVE_RETURN_NOT_OK(initialized);
  const size_t arity = key_columns.names.size();
  if (static_cast<size_t>(keys.num_columns()) != arity) {
    return InvalidInput("Expected ", arity, " primary key values, got ",
                        keys.num_columns());
  }
  Wanted wanted;
  for (size_t c = 0; c < arity; ++c) {
    GLAIVE_ASSIGN_OR_RETURN(
        auto column, CastKeys(keys.column(static_cast<int>(c)), key_columns.types[c]));
    wanted.columns.push_back(std::move(column));
  }
  GLAIVE_ASSIGN_OR_RETURN(wanted.keys, EncodeKeys(wanted.columns));
  std::optional<KeyMap> seen;
  if (wanted.keys.size() > 1) seen.emplace();
  for (int64_t k = 0; k < wanted.keys.size(); ++k) {
    const bool null =
        std::any_of(wanted.columns.begin(), wanted.columns.end(),
                    [k](const ArrayPtr& column) { return column->IsNull(k); });
    if (null || (seen && seen->Put(wanted.keys[k], 0) >= 0)) continue;
    wanted.open.push_back(k);
  }
  return wanted;
}

class Lookup {
 public:
  Lookup(const LsmSnapshot& snapshot, std::shared_ptr<const exec::OutputPlan> plan,
         const exec::Selection& select)
      : snapshot_(snapshot),
        impl_(LsmSources::Of(snapshot)),
        plan_(std::move(plan)),
        select_(select) {}

  Status Run(Wanted* wanted) {
    for (const ShardSources& shard : impl_.shards) {
      for (const Memtable::View& view : shard.memory) {
        GLAIVE_RETURN_NOT_OK(InMemory(view, wanted));
      }
    }
    if (wanted->open.empty()) return Status::OK();
    for (const ShardSources& shard : impl_.shards) {
      for (size_t g = shard.generations.size(); g-- > 0;) {
        if (wanted->open.empty()) return Status::OK();
        GLAIVE_RETURN_NOT_OK(InGeneration(*shard.generations[g], wanted));
      }
    }
    return InBase(wanted);
  }

  std::vector<BatchPtr> TakeBatches() { return std::move(batches_); }

 private:
  // Keeps the keys that `find` does not find; it says so by false.
  template <typename Find>
  static Status Filter(Wanted* wanted, const Find& find) {
    size_t kept = 0;
    for (size_t i = 0; i < wanted->open.size(); ++i) {
      const int64_t k = wanted->open[i];
      GLAIVE_ASSIGN_OR_RETURN(const bool found, find(k));
      if (!found) wanted->open[kept++] = k;
    }
    wanted->open.resize(kept);
    return Status::OK();
  }

  Status InMemory(const Memtable::View& view, Wanted* wanted) {
    std::vector<BatchPtr> rows;
    GLAIVE_RETURN_NOT_OK(Filter(wanted, [&](int64_t k) -> Result<bool> {
      const int64_t row = view.Find(wanted->keys[k]);
      if (row < 0) return false;
      if (!view.IsTombstone(row)) rows.push_back(view.Row(row));
      return true;
    }));
    if (rows.empty()) return Status::OK();
    const auto count = static_cast<int64_t>(rows.size());
    BatchPtr read;
    if (!plan_->read->empty()) {
      const auto stored = LsmSources::StoredSchema(view);
      GLAIVE_ASSIGN_OR_RETURN(auto reader,
                              table::MakeMemoryRows(stored, stored->fields().size() - 1,
                                                    std::move(rows), nullptr));
      GLAIVE_ASSIGN_OR_RETURN(const auto projection, reader->Bind(plan_->read->schema()));
      GLAIVE_ASSIGN_OR_RETURN(read, reader->ReadRange(projection, 0, count));
    }
    exec::MetaColumns meta;
    if (plan_->needs.any()) {
      GLAIVE_ASSIGN_OR_RETURN(auto nulls, arrow::MakeArrayOfNull(arrow::uint64(), count));
      meta.row_id = meta.row_address = meta.row_offset = nulls;
      meta.row_created_at = meta.row_updated_at = nulls;
    }
    GLAIVE_ASSIGN_OR_RETURN(auto batch, plan_->Assemble(read, count, meta));
    batches_.push_back(std::move(batch));
    return Status::OK();
  }

  Status InGeneration(const Generation& generation, Wanted* wanted) {
    std::shared_ptr<const GenerationKeys> keys;
    std::shared_ptr<const table::DeletionVector> tombstones;
    std::vector<exec::RowPlace> places;
    GLAIVE_RETURN_NOT_OK(Filter(wanted, [&](int64_t k) -> Result<bool> {
      GLAIVE_ASSIGN_OR_RETURN(const bool may, generation.MayContain(wanted->columns, k));
      if (!may) return false;
      if (keys == nullptr) {
        GLAIVE_ASSIGN_OR_RETURN(keys, generation.keys());
      }
      const int64_t row = keys->Find(wanted->keys[k]);
      if (row < 0) return false;
      if (places.empty()) {
        GLAIVE_ASSIGN_OR_RETURN(tombstones, generation.tombstones());
      }
      if (tombstones == nullptr || !tombstones->Contains(static_cast<uint32_t>(row))) {
        places.push_back({0, row});
      }
      return true;
    }));
    if (places.empty()) return Status::OK();
    GLAIVE_ASSIGN_OR_RETURN(auto rows,
                            LsmSources::PlainGeneration(snapshot_, generation));
    return Take(*rows, places);
  }

  Status InBase(Wanted* wanted) {
    if (wanted->open.empty()) return Status::OK();
    GLAIVE_ASSIGN_OR_RETURN(const auto index, LsmSources::KeysOfBase(snapshot_));
    EncodedKeys keys;
    for (const int64_t k : wanted->open) {
      const std::string_view key = wanted->keys[k];
      keys.bytes.insert(keys.bytes.end(), key.begin(), key.end());
      keys.ends.push_back(static_cast<uint32_t>(keys.bytes.size()));
    }
    GLAIVE_ASSIGN_OR_RETURN(const auto found, index->FindLive(*impl_.base, keys));
    std::vector<exec::RowPlace> places;
    for (const auto& place : found) {
      if (place) places.push_back({place->fragment, int64_t{place->offset}});
    }
    return places.empty() ? Status::OK() : Take(*impl_.base, places);
  }

  Status Take(const table::Dataset& dataset, const std::vector<exec::RowPlace>& places) {
    const auto state = exec::SnapshotState::Of(dataset);
    GLAIVE_ASSIGN_OR_RETURN(const auto plan, state->Output(dataset, select_));
    GLAIVE_ASSIGN_OR_RETURN(const auto taken, exec::TakeRows(dataset, *state, *plan->read,
                                                             plan->needs, places));
    GLAIVE_ASSIGN_OR_RETURN(
        auto batch,
        plan->Assemble(taken.batch, static_cast<int64_t>(places.size()), taken.meta));
    batches_.push_back(std::move(batch));
    return Status::OK();
  }

  const LsmSnapshot& snapshot_;
  const LsmSnapshot::Impl& impl_;
  const std::shared_ptr<const exec::OutputPlan> plan_;
  const exec::Selection& select_;
  std::vector<BatchPtr> batches_;
};

}  // namespace

Result<std::shared_ptr<arrow::Table>> LsmLookup(LsmSnapshot::Ptr snapshot,
                                                const arrow::RecordBatch& keys,
                                                const exec::Selection& select) {
  const LsmSnapshot::Impl& impl = LsmSources::Of(*snapshot);
  GLAIVE_ASSIGN_OR_RETURN(
      auto plan, exec::SnapshotState::Of(*impl.base)->Output(*impl.base, select));
  GLAIVE_ASSIGN_OR_RETURN(Wanted wanted, Encode(impl.keys, keys));
  const auto schema = plan->schema;
  Lookup lookup(*snapshot, std::move(plan), select);
  GLAIVE_RETURN_NOT_OK(lookup.Run(&wanted));
  return arrow::Table::FromRecordBatches(schema, lookup.TakeBatches());
}

Result<std::vector<ShardId>> LsmShardsBeside(const LsmSnapshot::Ptr& snapshot,
                                             const arrow::RecordBatch& keys,
                                             const ShardId& home) {
  const LsmSnapshot::Impl& impl = LsmSources::Of(*snapshot);
  GLAIVE_ASSIGN_OR_RETURN(const Wanted wanted, Encode(impl.keys, keys));
  const auto holds = [&](const ShardSources& shard) -> Result<bool> {
    for (const Memtable::View& view : shard.memory) {
      for (const int64_t k : wanted.open) {
        if (view.Find(wanted.keys[k]) >= 0) return true;
      }
    }
    for (const Generation::Ptr& generation : shard.generations) {
      std::shared_ptr<const GenerationKeys> held;
      for (const int64_t k : wanted.open) {
        GLAIVE_ASSIGN_OR_RETURN(const bool may,
                                generation->MayContain(wanted.columns, k));
        if (!may) continue;
        if (held == nullptr) {
          GLAIVE_ASSIGN_OR_RETURN(held, generation->keys());
        }
        if (held->Find(wanted.keys[k]) >= 0) return true;
      }
    }
    return false;
  };
  std::vector<ShardId> beside;
  for (const ShardSources& shard : impl.shards) {
    if (shard.shard == home) continue;
    GLAIVE_ASSIGN_OR_RETURN(const bool found, holds(shard));
    if (found) beside.push_back(shard.shard);
  }
  std::sort(beside.begin(), beside.end());
  return beside;
}

}  // namespace glaive::memwal
