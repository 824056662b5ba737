// Changes of rows that depend on what the rows are: the shards are claimed first, so that
// nobody's write can come between reading and writing.
#pragma once

#include <map>
#include <memory>
#include <set>

#include "base/status.h"
#include "db/lsm_path.h"

namespace glaive {
class CancelToken;
}

namespace glaive::db {

// Everything that is acknowledged, and the writers of all shards that it lies in. What
// another process acknowledges later needs a claim that fences one of these writers. It
// takes all shards before it decides anything, too: of two that change rows at a time one
// sees the other's rows, or fails. Not thread-safe; to be used within a turn among the
// table's writers of this process.
class OwnedShards {
 public:
  using Writers = std::map<memwal::ShardId, std::shared_ptr<memwal::ShardWriter>>;

  // Claims the shards that exist, and those of `also`. RetryableConflict when others
  // claim them back all the time.
  static Result<OwnedShards> Claim(const LsmPath& path,
                                   const std::set<memwal::ShardId>& also,
                                   CancelToken* cancel);

  const memwal::LsmSnapshot::Ptr& snapshot() const { return snapshot_; }
  // Claims the shards of `pending` that nobody had yet. False: somebody has one of them,
  // or has made another one, since the snapshot was taken.
  Result<bool> Cover(const LsmPath& path, const ShardBatches& pending);
  // The writer of a covered shard.
  const std::shared_ptr<memwal::ShardWriter>& writer(const memwal::ShardId& shard) const {
    return writers_.at(shard);
  }

 private:
  OwnedShards() = default;
  memwal::LsmSnapshot::Ptr snapshot_;
  Writers writers_;
};

}  // namespace glaive::db
