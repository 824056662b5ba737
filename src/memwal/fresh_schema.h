// Schemas inside the fresh tier: what memtables, log entries and generations hold.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <arrow/type_fwd.h>

#include "base/status.h"
#include "file/schema.h"
#include "memwal/wal_entry.h"
#include "table/dataset.h"

namespace glaive::memwal {

inline constexpr char kTombstone[] = "_tombstone";
inline constexpr char kMemtableGen[] = "_memtable_gen";

// Immutable; derived from one version of the base table.
class FreshSchema {
 public:
  // InvalidInput when the primary key has a type that cannot be one, or is nullable,
  // naming the column; NotSupported for columns of blobs.
  static Result<std::shared_ptr<const FreshSchema>> Make(const table::Dataset& base);

  // Top-level columns of the primary key, in key order; empty: the table has none.
  const std::vector<int>& key_columns() const { return key_columns_; }
  const std::vector<std::string>& key_names() const { return key_names_; }
  // The columns of the base table as callers give them.
  const std::shared_ptr<arrow::Schema>& logical() const { return logical_; }
  // logical, with all columns but the key nullable, and `_tombstone` (bool, not null)
  // last: what memtables hold. Extension types are their storage types.
  const std::shared_ptr<arrow::Schema>& storage() const { return storage_; }
  // storage with the ids of fields in their metadata (lance:field_id): what log entries
  // declare.
  const std::shared_ptr<arrow::Schema>& wal() const { return wal_; }
  // storage with the table's field ids, `_tombstone` after the highest: what generations
  // are written with.
  const file::Schema& generation() const { return *generation_; }

  // A caller's batch -> storage (tombstone false), zero-copy. SchemaMismatch as the
  // specification words it: names in the same places, the same types, no nulls where the
  // table has none; `index` is the number of the batch.
  Result<std::shared_ptr<arrow::RecordBatch>> Shape(const arrow::RecordBatch& batch,
                                                    int index) const;
  // Keys to delete -> storage (tombstone true, all but the key null). InvalidInput names
  // the key column that is missing, null or of another type.
  Result<std::shared_ptr<arrow::RecordBatch>> ShapeTombstones(
      const arrow::RecordBatch& keys) const;
  // A batch of a log entry -> storage: by field id, then by name; missing columns become
  // null, a missing tombstone false, unknown columns are dropped. Corruption when a key
  // column is missing or a type differs.
  Result<std::shared_ptr<arrow::RecordBatch>> Conform(
      const arrow::RecordBatch& batch) const;

 private:
  FreshSchema() = default;
  std::vector<int> key_columns_;
  std::vector<std::string> key_names_;
  std::vector<file::Field> fields_;  // of the base table
  std::vector<int32_t> field_ids_;   // of the storage columns; the tombstone's last
  std::shared_ptr<arrow::Schema> logical_, storage_, wal_;
  std::shared_ptr<const file::Schema> generation_;
};

}  // namespace glaive::memwal
