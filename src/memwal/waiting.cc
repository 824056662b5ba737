#include "memwal/waiting.h"

#include <algorithm>
#include <utility>

#include "io/object_store.h"

namespace glaive::memwal {

Result<std::shared_ptr<const MemWalDetails>> RequireDetails(const table::Dataset& base) {
  GLAIVE_ASSIGN_OR_RETURN(auto details, ReadDetails(base));
  if (details != nullptr) return details;
  return InvalidInput("table ", base.env().store->root(),
                      " has no LSM write path: give it one first (initialize_mem_wal, "
                      "set_lsm_write_spec)");
}

Result<Waiting> FindWaiting(const table::Dataset& base, ShardManifests& manifests) {
  Waiting waiting;
  GLAIVE_ASSIGN_OR_RETURN(const auto details, RequireDetails(base));
  waiting.merged = CompactedGeneration(*details, manifests.shard());
  GLAIVE_ASSIGN_OR_RETURN(waiting.manifest, manifests.ReadLatest());
  if (!waiting.manifest) return waiting;
  for (const auto& generation : waiting.manifest->sstables()) {
    if (generation.generation() > waiting.merged) {
      waiting.generations.push_back(generation);
    }
  }
  std::sort(waiting.generations.begin(), waiting.generations.end(),
            [](const auto& a, const auto& b) { return a.generation() < b.generation(); });
  return waiting;
}

bool IsComplete(const Waiting& waiting) {
  if (!waiting.manifest) return true;
  uint64_t next = waiting.merged + 1;
  for (const auto& generation : waiting.generations) {
    if (generation.generation() != next) return false;
    ++next;
  }
  return next >= waiting.manifest->current_generation();
}

}  // namespace glaive::memwal
