// Stable row id -> row address over all fragments of one snapshot.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/status.h"
#include "table/row_ids.h"

namespace glaive::table {

// (fragment id << 32) | physical offset.
struct RowAddress {
  uint64_t value = 0;
  static RowAddress Make(int64_t fragment_id, uint32_t offset) {
    return {(static_cast<uint64_t>(fragment_id) << 32) | offset};
  }
  int64_t fragment_id() const { return static_cast<int64_t>(value >> 32); }
  uint32_t offset() const { return static_cast<uint32_t>(value); }
};

// Immutable; thread-safe.
class RowIdIndex {
 public:
  virtual ~RowIdIndex() = default;
  // Nullopt when no live row has this id.
  virtual std::optional<RowAddress> Find(uint64_t row_id) const = 0;
};

class DeletionVector;

// What the index needs of one fragment.
struct RowIdSource {
  int64_t fragment_id = 0;
  std::vector<RowIdRun> runs;                       // ids by physical offset
  std::shared_ptr<const DeletionVector> deletions;  // null: none
};

// Corruption when two live rows have the same id.
Result<std::shared_ptr<const RowIdIndex>> BuildRowIdIndex(
    std::span<const RowIdSource> sources);

}  // namespace glaive::table
