// Rows that are not flushed yet: batches in the order they came, and an index of their
// keys.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <shared_mutex>
#include <span>
#include <string_view>
#include <vector>

#include <arrow/type_fwd.h>

#include "base/status.h"
#include "memwal/fresh_schema.h"
#include "memwal/wal_entry.h"

namespace glaive {
class Runtime;
}

namespace glaive::memwal {

// One writer appends, any number of readers look at it meanwhile. A reader fixes a
// watermark (a number of batches) first; what lies beyond is not there for it. Nobody
// waits for anybody.
class Memtable {
 public:
  Memtable(std::shared_ptr<const FreshSchema> schema, uint64_t generation);
  ~Memtable();

  const FreshSchema& schema() const { return *schema_; }
  const std::shared_ptr<const FreshSchema>& shared_schema() const { return schema_; }
  uint64_t generation() const { return generation_; }

  // Batches of the storage schema; all or none are appended. One thread at a time.
  // `runtime`: for many rows at once, of which the first are indexed in parallel.
  Status Append(const BatchVector& batches, Runtime* runtime = nullptr);

  int64_t num_batches() const;
  int64_t num_rows() const;
  // Bytes of the rows (the part of their buffers that the batches show).
  int64_t row_bytes() const;
  // Heap that the memtable pins: buffers once each, index, bloom filter.
  int64_t resident_bytes() const;
  // Bytes of the values of the key: eight for an int64, those of a text and its offset.
  int64_t key_bytes() const;
  // Whether some key came twice (never turns back).
  bool has_overrides() const;

  // What a reader sees. Cheap to make and to copy; keeps the memtable alive.
  class View;
  // `visible_batches`: at most num_batches().
  View Read(int64_t visible_batches) const;

 private:
  friend class View;
  struct Impl;
  const std::shared_ptr<const FreshSchema> schema_;
  const uint64_t generation_;
  std::shared_ptr<Impl> impl_;
};

class Memtable::View {
 public:
  uint64_t generation() const;
  const FreshSchema& schema() const;
  const std::shared_ptr<const FreshSchema>& shared_schema() const;
  int64_t num_rows() const;
  // As of the memtable, of what the view shows; both look at each batch.
  int64_t row_bytes() const;
  int64_t key_bytes() const;
  const BatchVector& batches() const;
  // Row position of the newest row of an encoded key below the watermark, or -1.
  int64_t Find(std::string_view key) const;
  bool IsTombstone(int64_t row) const;
  // The row as a batch of one row (storage schema), zero-copy.
  std::shared_ptr<arrow::RecordBatch> Row(int64_t row) const;
  // Calls `visit` with each distinct key of the rows in [first_row, num_rows()).
  void VisitKeys(int64_t first_row,
                 const std::function<void(std::string_view key)>& visit) const;
  // LSB-first bits over num_rows(): 1 for the newest row of its key that is no tombstone.
  // Without a primary key: all rows. Cached in the view.
  const std::vector<uint8_t>& live() const;
  int64_t num_live() const;
  // Offsets of rows that a later row of the same key replaces (within the view),
  // ascending.
  std::vector<uint32_t> Superseded() const;

 private:
  friend class Memtable;
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace glaive::memwal
