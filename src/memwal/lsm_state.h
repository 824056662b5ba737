// What reads of one table with an LSM write path keep for the next ones. All of it can be
// made again, and lies in the runtime's cache, so nothing in it may keep the runtime.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include <arrow/type_fwd.h>

#include "base/status.h"
#include "memwal/base_keys.h"
#include "memwal/fresh_schema.h"
#include "memwal/generation_owners.h"
#include "memwal/log_tail.h"
#include "memwal/memtable.h"
#include "memwal/names.h"
#include "runtime/fork.h"
#include "table/dataset.h"
#include "table/deletion_vector.h"

namespace glaive::memwal {

using HiddenRows = std::shared_ptr<const table::DeletionVector>;  // null: none

// Rows of older sources that a memtable replaces. Grows with it.
struct MemtableHits {
  // Tells the memtable from others: its first batch.
  std::weak_ptr<arrow::RecordBatch> first_batch;
  int64_t rows = 0;  // of the memtable, that are taken into account
  std::unordered_map<std::string, HiddenRows> base;  // by file of keys

  std::vector<std::string> generation_list;  // for which this holds; oldest first
  int64_t generation_rows = 0;
  std::vector<HiddenRows> generations;

  // Rows of older memtables of the shard, by their first batch.
  struct Older {
    std::weak_ptr<arrow::RecordBatch> first_batch;
    int64_t rows = 0;
    HiddenRows hidden;
  };
  std::vector<Older> memtables;
};

struct LsmState {
  explicit LsmState(int64_t max_bytes) : max_owner_bytes(max_bytes) {}
  // Of the table in `env`.
  static std::shared_ptr<LsmState> Of(const table::TableEnv& env);
  // The schema of fresh rows for a version of the base.
  Result<std::shared_ptr<const FreshSchema>> SchemaOf(const table::Dataset& base);
  Result<std::shared_ptr<const BaseKeys>> KeysOf(
      const table::Dataset::Ptr& base, const std::vector<std::string>& key_columns);

  // Tells the cache how much `state` has grown to. What is too large for it is made anew
  // by the next read.
  static void Account(const table::TableEnv& env, const std::shared_ptr<LsmState>& state);

  const int64_t max_owner_bytes;
  std::atomic<int64_t> tail_bytes{0};
  std::atomic<int64_t> owner_bytes{0};
  std::atomic<int64_t> accounted_bytes{0};

  // Plain mutexes, as they are held for long; the cache of a forked child has no state
  // yet.
  std::mutex tail_mutex;
  std::map<ShardId, LogTail> tails;  // guarded by tail_mutex

  ForkSafeMutex schema_mutex;  // guards the members down to the next mutex
  std::shared_ptr<arrow::Schema> schema_of;
  std::shared_ptr<const FreshSchema> schema;
  std::weak_ptr<const table::Dataset> keys_of;
  std::vector<std::string> keys_by;
  std::shared_ptr<const BaseKeys> keys;

  std::mutex mutex;  // guards all below; held while keys are compared
  std::map<ShardId, GenerationOwners> owners;
  std::vector<std::unique_ptr<MemtableHits>> memory;

  // That of the memtable; a new one when there is none.
  MemtableHits& HitsOf(const Memtable::View& view);
};

}  // namespace glaive::memwal
