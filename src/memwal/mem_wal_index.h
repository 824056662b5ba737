// The system index __lance_mem_wal of the base table: how a table says that it has an LSM
// write path, how rows are sharded, and which generations are merged.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "format/memwal.pb.h"
#include "memwal/names.h"
#include "table/dataset.h"

namespace glaive::memwal {

using MemWalDetails = lance::table::MemWalIndexDetails;

// Null when the table has no LSM write path. Cached by the uuid of the entry.
Result<std::shared_ptr<const MemWalDetails>> ReadDetails(const table::Dataset& base);

// The highest generation of `shard` that is merged into the base; 0: none.
uint64_t CompactedGeneration(const MemWalDetails& details, const ShardId& shard);

enum class ShardingKind : uint8_t { kManual, kUnsharded, kBucket, kIdentity };

struct InitializeOptions {
  ShardingKind sharding = ShardingKind::kManual;
  std::string column;       // bucket and identity
  int64_t num_buckets = 0;  // bucket
  // Unset: every index that the table has or will have.
  std::optional<std::vector<std::string>> maintained_indexes;
  std::map<std::string, std::string> writer_config_defaults;
};

// The names of all indices of the table, for InitializeOptions::maintained_indexes. The
// error of the first that cannot be maintained says what there is to choose from.
Result<std::vector<std::string>> AllMaintainableIndices(const table::Dataset& base);

// Commits a version with the index entry. InvalidInput: already initialized, an unknown
// column or index, a type that cannot be a shard key or a primary key, a number of
// buckets outside [1, 1024], an index of a kind that no memtable maintains. NotSupported:
// a full-text index with a tokenizer that is not built.
Result<table::Dataset::Ptr> Initialize(const table::Dataset::Ptr& base,
                                       const InitializeOptions& options);
// Commits a version without the entry; _mem_wal/ stays. InvalidInput when there is none.
Result<table::Dataset::Ptr> Drop(const table::Dataset::Ptr& base);

struct CompactedMarker {
  ShardId shard;
  uint64_t generation = 0;
};
// Records progress alone (an UpdateMemWalState). InvalidInput: a shard twice, no entry,
// progress that is not greater than what is recorded.
Result<table::Dataset::Ptr> CommitMarkers(const table::Dataset::Ptr& base,
                                          const std::vector<CompactedMarker>& markers);

}  // namespace glaive::memwal
