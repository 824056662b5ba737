// How fresh rows get into the base table: flush, compaction of generations by key, and
// the collection of what nobody needs any more.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "memwal/mem_wal_index.h"
#include "memwal/names.h"
#include "memwal/shard_manifest.h"
#include "table/dataset.h"

namespace glaive {
class CancelToken;
}

namespace glaive::memwal {

struct CompactOptions {
  // The most generations that one commit takes, oldest first.
  int max_generations = 64;
  int64_t memory_bytes = 0;  // 0: a share of the runtime's budget
  CancelToken* cancel = nullptr;
};

struct CompactOutcome {
  table::Dataset::Ptr base;  // as of the last commit
  int64_t generations_consumed = 0;
  int64_t generations_remaining = 0;
  int64_t rows_merged = 0;   // upserted
  int64_t rows_deleted = 0;  // by tombstones
  // Another process merged the same generations first.
  bool lost_race = false;
};

// Merges the oldest generations of `shard` into the base by key, tombstones included, in
// one commit that also records the progress: exactly once, whoever else compacts. Bounded
// memory: keys of superseded rows are filtered before rows are read, and what the merge
// keeps is spilled. Nothing happens (and nothing is committed) when no generation is
// left. Schema changes of the base meanwhile are followed by field id.
Result<CompactOutcome> CompactShard(table::Dataset::Ptr base, const ShardId& shard,
                                    const CompactOptions& options = {});

// Removes generations that are merged (first from the shard manifest, then from disk),
// log entries that are flushed, old shard manifests, and directories of attempts that
// were never published. Never what a reader of this process holds, what is younger than
// `grace`, the newest entries that fence a stalled writer, or the newest manifest.
struct CollectOptions {
  std::chrono::milliseconds grace = std::chrono::minutes(10);
};
struct CollectOutcome {
  int64_t generations_removed = 0;
  int64_t log_entries_removed = 0;
  int64_t manifests_removed = 0;
  int64_t orphans_removed = 0;
  int64_t bytes_removed = 0;
  // Something is only too young, or in use, to be removed: worth another call later.
  bool more_later = false;
};
Result<CollectOutcome> CollectShard(const table::Dataset& base, const ShardId& shard,
                                    const CollectOptions& options = {});

// --- whole tables ------------------------------------------------------------------

struct GenerationStats {
  uint64_t generation = 0;
  int64_t bytes = 0;
  std::optional<int64_t> rows;
};
struct LiveMemtableStats {
  uint64_t generation = 0;
  int64_t rows = 0;
  int64_t bytes = 0;
  int64_t batches = 0;
  std::vector<std::string> indexes;
};
// Of one shard; the fields of LanceDB's stats.
struct BucketStats {
  ShardId shard;
  bool sealed = false;
  uint64_t writer_epoch = 0;
  uint64_t manifest_version = 0;
  uint64_t current_generation = 0;
  uint64_t replay_after_wal_entry_position = 0;
  uint64_t wal_entry_position_last_seen = 0;
  std::vector<GenerationStats> generations;  // not merged yet, ascending
  bool compacting = false;
  std::optional<std::vector<LiveMemtableStats>> memtables;  // oldest first
  // Beyond upstream's.
  std::string durability;   // "fsync" or "os", of a writer of this process
  int64_t log_entries = 0;  // behind the last generation
  int64_t log_bytes = 0;
};
// Nullopt exactly when the table has no LSM write path.
Result<std::optional<std::vector<BucketStats>>> GetLsmStats(
    const table::Dataset::Ptr& base, bool include_generation_rows);

// Every shard's fresh rows become generations: through the writers of this process; rows
// that only the log of a dead writer holds by claiming, replaying and flushing. A shard
// that another process writes is claimed as well: that writer is fenced, which is what
// upstream does. Returns the number of generations made. InvalidInput without an LSM
// write path (as all below).
Result<int64_t> FlushLsm(const table::Dataset::Ptr& base);

// One pass over all shards: merges what is there.
Result<CompactOutcome> CompactLsm(table::Dataset::Ptr base,
                                  const CompactOptions& options = {});

struct CheckpointOptions {
  CompactOptions compact;
  std::vector<ShardId> shards;  // empty: all
  std::optional<std::chrono::milliseconds> timeout;
  // Generations of the target set that are left, after each pass.
  std::function<void(int64_t remaining, int64_t total)> progress;
};
struct CheckpointOutcome {
  table::Dataset::Ptr base;
  int64_t generations_consumed = 0;
  int64_t generations_remaining = 0;  // of those seen at the flush
  int64_t passes = 0;                 // compaction passes that were run
  bool converged = false;
};
// Flush, then compaction until what was fresh at the flush is in the base. Puts go on
// meanwhile; their rows are not waited for. Idempotent, and may be abandoned at any
// point. On a converged table: one flush and no pass.
Result<CheckpointOutcome> CheckpointLsm(table::Dataset::Ptr base,
                                        const CheckpointOptions& options = {});

}  // namespace glaive::memwal
