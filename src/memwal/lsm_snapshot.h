// What a read of a table with an LSM write path looks at: the base, generations and
// memtables, each with the rows hidden that something newer replaces.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "memwal/memtable.h"
#include "memwal/names.h"
#include "memwal/shard_manifest.h"
#include "memwal/shard_writer.h"
#include "table/dataset.h"

namespace glaive::memwal {

// The generations of a shard, as a caller names them (or as a manifest does).
struct ShardSnapshot {
  ShardId shard;
  uint32_t spec_id = 0;
  uint64_t current_generation = 1;
  std::vector<std::pair<uint64_t, std::string>> generations;  // number, directory
};

enum class Freshness : uint8_t {
  kFresh,        // also rows that are only in the log: of writers of this process from
                 // their memtables, of others by reading the tail of their log
  kGenerations,  // flushed generations only
};

// Immutable; thread-safe. Each primary key survives in exactly one source.
class LsmSnapshot : public std::enable_shared_from_this<LsmSnapshot> {
 public:
  using Ptr = std::shared_ptr<const LsmSnapshot>;

  // All shards of the table. Generations that are merged into `base` are left out.
  // InvalidInput when the table has no LSM write path or no primary key.
  static Result<Ptr> Open(table::Dataset::Ptr base, Freshness freshness);
  // The shards that the caller names, and nothing else; `writer`'s own shard (may be
  // null) comes from its memtables and manifest. Upstream's scanners: merged generations
  // are not left out, a shard that is named twice counts once. `key_columns`: used
  // instead of the primary key that the table declares; then there need not be one.
  static Result<Ptr> OpenShards(table::Dataset::Ptr base,
                                const std::vector<ShardSnapshot>& shards,
                                const std::shared_ptr<ShardWriter>& writer,
                                const std::vector<std::string>& key_columns = {});

  // What was given, or a newer version, where generations were merged and removed
  // meanwhile.
  const table::Dataset::Ptr& base() const;
  // The columns of the primary key, in key order.
  const std::vector<std::string>& key_columns() const;
  // The base with the rows hidden that fresher sources replace or delete.
  Result<table::Dataset::Ptr> MaskedBase() const;

  // A generation, seen with the base's columns and names, its superseded rows and
  // tombstones hidden.
  struct GenerationSource {
    ShardId shard;
    uint64_t generation = 0;
    table::Dataset::Ptr dataset;
  };
  Result<std::vector<GenerationSource>> MaskedGenerations() const;

  // Rows of one memtable (or of a log's tail) that are live and newest, as batches of the
  // base's columns.
  struct MemorySource {
    ShardId shard;
    uint64_t generation = 0;
    BatchVector batches;
  };
  Result<std::vector<MemorySource>> LiveMemory() const;

  int64_t num_generations() const;
  // True when nothing is fresher than the base.
  bool only_base() const;

  ~LsmSnapshot();
  struct Impl;  // memwal/lsm_sources.h

 private:
  friend class LsmSources;
  explicit LsmSnapshot(std::unique_ptr<Impl> impl);
  const std::unique_ptr<Impl> impl_;
};

}  // namespace glaive::memwal
