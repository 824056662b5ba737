// The versioned state of a shard: who writes it, what is flushed, where replay starts.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/status.h"
#include "format/memwal.pb.h"
#include "memwal/names.h"
#include "table/dataset.h"

namespace glaive::memwal {

using ShardManifest = lance::table::ShardManifest;

// The shards that have a directory, ascending.
Result<std::vector<ShardId>> ListShards(io::ObjectStore& store);

// Manifests of one shard. Thread-safe. `store` is rooted at the table.
class ShardManifests {
 public:
  ShardManifests(std::shared_ptr<io::ObjectStore> store, ShardId shard);

  const ShardId& shard() const { return shard_; }

  // The newest one; nullopt when the shard does not exist. Found from the hint and by
  // probing forward; a missing, stale or too high hint is no error. Corruption when it
  // does not decode, or when its version or shard differ from its name.
  Result<std::optional<ShardManifest>> ReadLatest();
  // The same, but at most one look-up when nothing is newer than `known`.
  Result<ShardManifest> ReadLatestAfter(const ShardManifest& known);
  Result<std::vector<uint64_t>> ListVersions();

  // Claims the shard for a new writer: commits the next version with epoch + 1 (version
  // 1, epoch 1, generation 1 for a new shard, with `spec_id`). Everything else, unknown
  // fields included, is carried over. InvalidInput when the shard is sealed; Fenced when
  // another writer claims at the same time; IoError after 16 collisions.
  Result<ShardManifest> Claim(uint32_t spec_id);

  // Commits a successor of the newest manifest. `change` edits a copy (version already
  // raised); it may be called again after a lost race, and an error from it ends the
  // update. Fenced when the stored epoch is above `epoch`; with `epoch` unset it stays
  // what it is (for collectors: bumps that keep the epoch do not disturb the writer, who
  // reads again and goes on). At most 10 lost races, then IoError.
  Result<ShardManifest> Update(std::optional<uint64_t> epoch, const ShardManifest& known,
                               const std::function<Status(ShardManifest*)>& change);

  // Fenced when the stored epoch is above `epoch`.
  Status CheckFence(uint64_t epoch);

 private:
  Status Put(const ShardManifest& manifest);

  const std::shared_ptr<io::ObjectStore> store_;
  const ShardId shard_;
};

// The error of a writer with `epoch` that finds `stored` in the manifest.
Status FencedError(const ShardId& shard, uint64_t epoch, uint64_t stored);

}  // namespace glaive::memwal
