// Which generations of a shard are not in the base yet.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/status.h"
#include "memwal/mem_wal_index.h"
#include "memwal/shard_manifest.h"
#include "table/dataset.h"

namespace glaive::memwal {

struct Waiting {
  uint64_t merged = 0;  // the highest generation that the base has
  std::vector<lance::table::SsTable> generations;  // ascending
  std::optional<ShardManifest> manifest;           // none: the shard does not exist
};

// Of the base as it is given, and of the shard's newest manifest, which is read after
// it: what is merged meanwhile is in both. InvalidInput without an LSM write path.
Result<Waiting> FindWaiting(const table::Dataset& base, ShardManifests& manifests);

// False when generations are in neither: they were merged into a newer base, and
// collected, since `base` was opened. Readers look at Latest() then, and again at the
// shard. (Generations are numbered without gaps; one that upstream gave up stays missing
// in the newest base too, which is no reason to look for ever.)
bool IsComplete(const Waiting& waiting);

// The details of the LSM write path; InvalidInput when the table has none.
Result<std::shared_ptr<const MemWalDetails>> RequireDetails(const table::Dataset& base);

}  // namespace glaive::memwal
