// The rows of a shard that only its log holds, for shards that no writer of this process
// serves.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "memwal/fresh_schema.h"
#include "memwal/memtable.h"
#include "memwal/shard_manifest.h"
#include "memwal/wal.h"
#include "table/dataset.h"

namespace glaive::memwal {

// Kept from read to read and extended: what was read before costs two look-ups. Not
// thread-safe; views that were handed out stay valid.
class LogTail {
 public:
  // Memtables newest first, without empty ones, as a writer would rebuild them that opens
  // the shard at `manifest`.
  Result<std::vector<Memtable::View>> Read(const table::TableEnv& env,
                                           const ShardManifest& manifest,
                                           std::shared_ptr<const FreshSchema> schema);
  int64_t resident_bytes() const;

 private:
  struct Part {
    std::unique_ptr<Memtable> rows;
    uint64_t first_position = 0, last_position = 0;
  };
  // Whether what was read is still what a reader at `manifest` would read first.
  Result<bool> StillHolds(const table::TableEnv& env, const ShardManifest& manifest,
                          const FreshSchema& schema) const;
  Status Add(const WalEntry& entry, const std::string& name);

  std::shared_ptr<const FreshSchema> schema_;
  ShardId shard_;
  std::vector<Part> parts_;  // oldest first
  uint64_t next_position_ = 0;
  // The newest entry that was read, to notice a table that was dropped and made anew.
  std::optional<std::pair<int64_t, int64_t>> newest_;  // size, modified
};

}  // namespace glaive::memwal
