// What an LsmSnapshot is made of; for the files that read it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <arrow/type_fwd.h>

#include "base/status.h"
#include "memwal/base_keys.h"
#include "memwal/generation.h"
#include "memwal/live_generations.h"
#include "memwal/lsm_snapshot.h"
#include "memwal/memtable.h"
#include "runtime/fork.h"
#include "table/dataset.h"
#include "table/fragment_reader.h"

namespace glaive::memwal {

// The fresh sources of one shard.
struct ShardSources {
  ShardId shard;
  std::vector<Memtable::View> memory;        // newest first
  std::vector<Generation::Ptr> generations;  // oldest first, none that is in memory
};

// A source with the columns of the base, in which each row is the newest of its key.
struct LsmSource {
  table::Dataset::Ptr dataset;
  ShardId shard;
  uint64_t generation = 0;  // 0: the base
  bool in_memory = false;
};

struct LsmSnapshot::Impl {
  table::Dataset::Ptr base;
  KeyColumns keys;
  std::vector<ShardSources> shards;  // those with fresh rows
  std::optional<LiveGenerations> live;

  // Newest first; made when first asked for. Guarded by mutex.
  mutable ForkSafeMutex mutex;
  mutable std::shared_ptr<const std::vector<LsmSource>> fresh;
  mutable table::Dataset::Ptr masked_base;
  mutable std::shared_ptr<const BaseKeys> base_keys;
  mutable std::map<std::string, table::Dataset::Ptr> plain_generations;

  Status Mask() const;
};

class LsmSources {
 public:
  static const LsmSnapshot::Impl& Of(const LsmSnapshot& snapshot) {
    return *snapshot.impl_;
  }
  // Newest first; sources without live rows are left out, but for the base, which is
  // last.
  static Result<std::vector<LsmSource>> All(const LsmSnapshot& snapshot);
  static Result<std::shared_ptr<const BaseKeys>> KeysOfBase(const LsmSnapshot& snapshot);
  // A generation with the columns of the base and all of its rows.
  static Result<table::Dataset::Ptr> PlainGeneration(const LsmSnapshot& snapshot,
                                                     const Generation& generation);
  // The fields of a memtable's batches; the last one, the tombstone, is not shown.
  static std::shared_ptr<const file::Schema> StoredSchema(const Memtable::View& view);
};

}  // namespace glaive::memwal
