// A lease per shard, so that of all processes only one compacts it by itself. Correctness
// never depends on it: two that compact at the same time only waste work.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "base/status.h"
#include "memwal/names.h"

namespace glaive::io {
class ObjectStore;
}

namespace glaive::memwal {

// _mem_wal/{shard}/compaction.lease: {"holder":"...","expires_ms":n}.
std::string LeasePath(const ShardId& shard);

// Gives the lease back when it goes.
class Lease {
 public:
  // Null when somebody else holds it. One that has expired, or that does not parse, is
  // taken over.
  static Result<std::unique_ptr<Lease>> Take(std::shared_ptr<io::ObjectStore> store,
                                             const ShardId& shard,
                                             std::chrono::milliseconds duration);
  ~Lease();
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  // Until `duration` from now. False when it was lost meanwhile.
  Result<bool> Renew(std::chrono::milliseconds duration);

 private:
  Lease(std::shared_ptr<io::ObjectStore> store, std::string path, std::string holder)
      : store_(std::move(store)), path_(std::move(path)), holder_(std::move(holder)) {}

  const std::shared_ptr<io::ObjectStore> store_;
  const std::string path_;
  const std::string holder_;
};

// By anybody, as far as can be told.
bool LeaseIsHeld(io::ObjectStore& store, const ShardId& shard);

}  // namespace glaive::memwal
