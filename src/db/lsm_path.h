// The writers behind an LSM write path: rows and deletes by key, to the shards that they
// belong to.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <arrow/type_fwd.h>

#include "base/status.h"
#include "db/lsm.h"
#include "memwal/fresh_schema.h"
#include "memwal/keys.h"
#include "memwal/lsm_snapshot.h"
#include "memwal/mem_wal_index.h"
#include "memwal/shard_writer.h"
#include "memwal/sharding.h"
#include "table/dataset.h"

namespace glaive::db {

class OwnedShards;

// What one put holds at most: more is cut, so that a long stream stays within memory.
inline constexpr int64_t kLsmPutRows = 65536;
inline constexpr int64_t kLsmPutBytes = int64_t{32} << 20;

// The write path of one version of a table. Thread-safe.
class LsmPath {
 public:
  // InvalidInput: the table has no LSM write path, or no primary key.
  static Result<LsmPath> Make(const table::Dataset::Ptr& base,
                              const LsmWriteOptions& options);

  const table::Dataset::Ptr& base() const { return base_; }
  const memwal::ShardingSpec& spec() const;
  const memwal::FreshSchema& schema() const { return *schema_; }
  int64_t put_rows() const;
  // Columns of the table that decide the shard, perhaps by a member.
  const std::set<std::string>& shard_columns() const { return shard_columns_; }
  // Whether a row can come to belong to another shard than an older version of its key.
  // Such a key may be fresh in one shard only, since shards are merged by themselves: see
  // MergeBeside.
  bool rows_may_move() const { return rows_may_move_; }

  Result<std::shared_ptr<memwal::ShardWriter>> Writer(const memwal::ShardId& shard) const;
  // Everything that is acknowledged.
  Result<memwal::LsmSnapshot::Ptr> Fresh() const;
  // Brings the fresh rows of these shards into the base. Not to be called while a turn
  // among the table's writers is held.
  Status Merge(const std::vector<memwal::ShardId>& shards, CancelToken* cancel) const;

 private:
  LsmPath() = default;
  table::Dataset::Ptr base_;
  std::shared_ptr<const memwal::MemWalDetails> details_;
  std::shared_ptr<const memwal::FreshSchema> schema_;
  memwal::WriterConfig config_;
  std::shared_ptr<const memwal::UpkeepSettings> upkeep_;
  std::set<std::string> shard_columns_;
  bool rows_may_move_ = false;
};

// Batches of several calls to the writers, by shard in the order of their first rows.
class ShardBatches {
 public:
  Status Add(const LsmPath& path, const std::shared_ptr<arrow::RecordBatch>& batch);
  using Shards = std::vector<std::pair<memwal::ShardId, memwal::BatchVector>>;
  const Shards& shards() const { return shards_; }
  int64_t rows() const { return rows_; }
  int64_t bytes() const { return bytes_; }
  void Clear() { *this = ShardBatches(); }

 private:
  Shards shards_;
  int64_t rows_ = 0;
  int64_t bytes_ = 0;
};

// Upserts `pending` and clears it; counts what is new and what replaces a row if `count`.
// Through the writers of `owned`, which must cover it, or, when that is null, through
// whichever are open.
Status PutAll(const LsmPath& path, const OwnedShards* owned, ShardBatches* pending,
              bool count, LsmWriteOutcome* outcome);
// Deletes the keys of `pending`, whose rows need hold no other column, and clears it.
// `owned` must cover it.
Status DeleteAll(const LsmPath& path, const OwnedShards& owned, ShardBatches* pending);

// Shards in which keys of `pending` are fresh although they belong to another one now.
Result<std::vector<memwal::ShardId>> ShardsBeside(
    const LsmPath& path, const ShardBatches& pending,
    const memwal::LsmSnapshot::Ptr& snapshot);
// The rows of `batches` without those that a later one of the same key replaces. `keys`:
// receives all keys.
Result<memwal::BatchVector> NewestOfEachKey(const LsmPath& path,
                                            const memwal::BatchVector& batches,
                                            memwal::KeyMap* keys);
// The rows of `batch` whose keys are not among `keys`.
Result<std::shared_ptr<arrow::RecordBatch>> WithoutKeys(
    const LsmPath& path, const std::shared_ptr<arrow::RecordBatch>& batch,
    const memwal::KeyMap& keys);

}  // namespace glaive::db
