// A flushed generation, opened once per process: its rows, keys, tombstones and bloom
// filter.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <arrow/type_fwd.h>

#include "base/status.h"
#include "memwal/bloom.h"
#include "memwal/names.h"
#include "memwal/pk_sidecar.h"
#include "runtime/fork.h"
#include "table/dataset.h"
#include "table/deletion_vector.h"
#include "table/snapshot.h"

namespace glaive::memwal {

// The primary key of the base table: its columns there, in key order.
struct KeyColumns {
  std::vector<std::string> names;
  std::vector<int32_t> ids;
  std::vector<std::shared_ptr<arrow::DataType>> types;
  std::string cache_key;  // tells keys of other columns apart

  // InvalidInput when a column is not there or cannot be a key.
  static Result<KeyColumns> Make(const table::Dataset& base,
                                 const std::vector<std::string>& names);
};

// Thread-safe. Nothing but the manifest is read before it is asked for. What is known of
// a generation, and its keys, are kept by the runtime's cache, which must not hold this
// handle itself: it keeps the runtime alive.
class Generation {
 public:
  using Ptr = std::shared_ptr<const Generation>;
  // `env`: the base table's. `name`: as in the shard manifest. NotFound when it is gone.
  // What was open before costs no call of the store.
  static Result<Ptr> Open(const table::TableEnv& env, const ShardId& shard,
                          uint64_t number, const std::string& name,
                          const KeyColumns& keys);

  uint64_t number() const { return number_; }
  const std::string& directory() const { return facts_->directory; }
  // With the columns that it was written with.
  const table::Dataset::Ptr& dataset() const { return dataset_; }
  // The id of its column of tombstones, which may mean another column in the base by now.
  std::optional<int32_t> tombstone_field() const { return facts_->tombstone_field; }

  // Key -> newest row.
  Result<std::shared_ptr<const GenerationKeys>> keys() const;
  // False when the row's key is not in it for sure, without reading its keys.
  Result<bool> MayContain(std::span<const std::shared_ptr<arrow::Array>> key,
                          int64_t row) const;
  // Rows that say that a key was deleted; null: none.
  Result<std::shared_ptr<const table::DeletionVector>> tombstones() const;

  // Rows of the base table, by the files that hold their keys, which this generation
  // replaces. They never change, so they are kept here.
  struct Hits {
    ForkSafeMutex mutex;
    std::unordered_map<std::string, std::shared_ptr<const table::DeletionVector>> by_file;
  };
  Hits& hits() const { return facts_->hits; }

 private:
  // In the cache; knows nothing of the runtime.
  struct Facts {
    std::string directory;
    std::string cache_key;
    table::SnapshotPtr snapshot;
    std::vector<std::string> key_names;  // in the generation
    std::vector<std::shared_ptr<arrow::DataType>> key_types;
    std::optional<int32_t> tombstone_field;

    ForkSafeMutex mutex;  // guards the members below
    std::optional<KeyBloom> bloom;
    bool bloom_loaded = false;
    std::shared_ptr<const table::DeletionVector> tombstones;
    bool tombstones_loaded = false;

    Hits hits;
  };
  static Result<std::shared_ptr<Facts>> Load(const table::TableEnv& own,
                                             std::string directory, std::string cache_key,
                                             const KeyColumns& keys);

  Generation() = default;
  Result<std::shared_ptr<const table::DeletionVector>> ReadTombstones() const;

  uint64_t number_ = 0;
  std::shared_ptr<Facts> facts_;
  table::Dataset::Ptr dataset_;
};

}  // namespace glaive::memwal
