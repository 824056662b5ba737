// Convergence that runs by itself in a process that writes: compaction when generations
// pile up, then collection. At most once per shard over all processes, by a lease.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "base/status.h"
#include "memwal/names.h"
#include "memwal/shard_manifest.h"
#include "table/dataset.h"

namespace glaive::memwal {

struct UpkeepSettings {
  bool enabled = true;
  // Compact once so many generations wait, or when the oldest has waited so long.
  int64_t max_generations = 4;
  std::chrono::milliseconds max_wait = std::chrono::seconds(60);
  std::chrono::milliseconds collect_grace = std::chrono::minutes(10);
  // Called with the version that a compaction committed, on the thread of upkeep.
  std::function<void(const table::Dataset::Ptr&)> on_compacted;
};
// From GLAIVE_LSM_UPKEEP (0, false, off: none) and the storage options `lsm_upkeep`,
// `lsm_upkeep_max_generations`, `lsm_upkeep_max_wait`, `lsm_upkeep_collect_grace`.
// InvalidInput names what does not parse.
Result<UpkeepSettings> ParseUpkeepSettings(
    const std::map<std::string, std::string>& storage_options);

// A generation was published. Cheap; never blocks on I/O.
void NoteGeneration(const table::Dataset::Ptr& base, const ShardId& shard,
                    int64_t waiting_generations, const UpkeepSettings& settings);
// The same for the callback of a ShardWriter: counts the generations of `manifest` that
// the base does not have, as far as upkeep knows.
void NoteFlush(const table::Dataset::Ptr& base, const ShardManifest& manifest,
               const UpkeepSettings& settings);
// Generations of the shard were merged by a caller: what they leave is to be collected
// after the grace.
void NoteMerged(const table::Dataset::Ptr& base, const ShardId& shard,
                const UpkeepSettings& settings);
// Back-pressure for a thread that flushes: waits while more than `most_generations` of
// the shard wait for upkeep of this process, but not longer than `most`. True when they
// do not.
bool WaitForFanOut(const table::Dataset& base, const ShardId& shard,
                   int64_t most_generations, std::chrono::milliseconds most);
// True when nothing was left to do before the time was over.
bool WaitForUpkeep(std::chrono::milliseconds most);
// Whether upkeep (of this process) is compacting the shard now.
bool IsCompacting(const table::Dataset& base, const ShardId& shard);

}  // namespace glaive::memwal
