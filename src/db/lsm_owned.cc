#include "db/lsm_owned.h"

#include <algorithm>
#include <chrono>

#include "io/object_store.h"
#include "memwal/shard_manifest.h"
#include "runtime/cancel.h"
#include "table/backoff.h"

namespace glaive::db {
namespace {

constexpr int kMostClaims = 16;
constexpr std::chrono::microseconds kSlot{500};
constexpr int64_t kMostSlots = 64;

// Whether all shards that exist have a writer here that was not fenced, as far as it
// knows: taking a snapshot makes it look.
Result<bool> OwnsAll(const LsmPath& path, const OwnedShards::Writers& writers) {
  GLAIVE_ASSIGN_OR_RETURN(const auto shards,
                          memwal::ListShards(*path.base()->env().store));
  return std::all_of(shards.begin(), shards.end(), [&](const memwal::ShardId& shard) {
    const auto found = writers.find(shard);
    return found != writers.end() && !found->second->is_closed() &&
           found->second->health().ok();
  });
}

}  // namespace

Result<OwnedShards> OwnedShards::Claim(const LsmPath& path,
                                       const std::set<memwal::ShardId>& also,
                                       CancelToken* cancel) {
  for (int attempt = 0; attempt < kMostClaims; ++attempt) {
    if (attempt > 0) {
      if (cancel != nullptr) GLAIVE_RETURN_NOT_OK(cancel->Check());
      table::PauseAtRandom(kSlot, std::min<int64_t>(kMostSlots, int64_t{1} << attempt));
    }
    OwnedShards owned;
    // Those that are made come before those that are listed: of two processes that each
    // make one, the later one to list sees both.
    for (const memwal::ShardId& shard : also) {
      GLAIVE_ASSIGN_OR_RETURN(owned.writers_[shard], path.Writer(shard));
    }
    GLAIVE_ASSIGN_OR_RETURN(const auto shards,
                            memwal::ListShards(*path.base()->env().store));
    for (const memwal::ShardId& shard : shards) {
      if (also.contains(shard)) continue;
      GLAIVE_ASSIGN_OR_RETURN(owned.writers_[shard], path.Writer(shard));
    }
    GLAIVE_ASSIGN_OR_RETURN(owned.snapshot_, path.Fresh());
    GLAIVE_ASSIGN_OR_RETURN(const bool all, OwnsAll(path, owned.writers_));
    if (all) return owned;
  }
  return RetryableConflict("shards of table ", path.base()->env().store->root(),
                           " are claimed by other processes all the time; try again "
                           "later");
}

Result<bool> OwnedShards::Cover(const LsmPath& path, const ShardBatches& pending) {
  bool added = false;
  for (const auto& [shard, batches] : pending.shards()) {
    if (writers_.contains(shard)) continue;
    GLAIVE_ASSIGN_OR_RETURN(auto writer, path.Writer(shard));
    if (writer->epoch() != 1) return false;
    writers_[shard] = std::move(writer);
    added = true;
  }
  // A row that may move could have gone to a shard that somebody else made.
  return added && path.rows_may_move() ? OwnsAll(path, writers_) : Result<bool>(true);
}

}  // namespace glaive::db
