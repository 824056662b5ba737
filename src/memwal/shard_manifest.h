// The versioned state of a shard: who writes it, what is flushed, where replay starts.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
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
//
// Versions are dense. Whoever removes old ones removes the oldest first, keeps the newest
// two, and calls PutHint before: then a missing version is one that was never written as
// long as the one before it is still there, and a stalled process cannot fill a gap
// unnoticed.
class ShardManifests {
 public:
  ShardManifests(std::shared_ptr<io::ObjectStore> store, ShardId shard);

  const ShardId& shard() const { return shard_; }

  // The newest one; nullopt when the shard does not exist. Found from the hint and by
  // probing forward; a missing, stale or too high hint is no error. Corruption when it
  // does not decode, or when its version or shard differ from its name.
  Result<std::optional<ShardManifest>> ReadLatest();
  // The same, but two look-ups when nothing is newer than `known`.
  Result<ShardManifest> ReadLatestAfter(const ShardManifest& known);
  Result<std::vector<uint64_t>> ListVersions();  // ascending

  // Claims the shard for a new writer: commits the next version with epoch + 1 (version
  // 1, epoch 1, generation 1 for a new shard, with `spec_id`). Everything else, unknown
  // fields included, is carried over. InvalidInput when the shard is sealed; Fenced when
  // another writer claims at the same time; IoError after 16 collisions.
  Result<ShardManifest> Claim(uint32_t spec_id);

  // Commits a successor of the newest manifest. `change` edits a copy (version already
  // raised); it may be called again after a lost race, and an error from it ends the
  // update. Fenced when the stored epoch is above `epoch`; with `epoch` unset it stays
  // what it is (for collectors: bumps that keep the epoch do not disturb the writer, who
  // reads again and goes on). At most 10 lost races, then IoError. After an IoError it
  // may be unknown whether the version was stored: files that it refers to must stay.
  Result<ShardManifest> Update(std::optional<uint64_t> epoch, const ShardManifest& known,
                               const std::function<Status(ShardManifest*)>& change);

  // Fenced when the stored epoch is above `epoch`. `replay_after` (may be null): the
  // position up to which the log is flushed, as stored.
  Status CheckFence(uint64_t epoch, uint64_t* replay_after = nullptr);

  // Makes the hint name `version` durably; commits write it without that.
  Status PutHint(uint64_t version);

 private:
  Result<std::optional<ShardManifest>> Find(bool by_listing);
  Result<std::optional<uint64_t>> FindVersion(bool by_listing);
  // AlreadyExists: another process committed the version first.
  Status Put(const ShardManifest& manifest);

  const std::shared_ptr<io::ObjectStore> store_;
  const ShardId shard_;
};

// Corruption, with `name` in the message, unless the bytes are a manifest whose numbers
// lie within bounds (below 2^63).
Result<ShardManifest> ParseShardManifest(std::string_view bytes, const std::string& name);

// The error of a writer with `epoch` that finds `stored` in the manifest.
Status FencedError(const ShardId& shard, uint64_t epoch, uint64_t stored);

}  // namespace glaive::memwal
