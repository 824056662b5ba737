// Which shard a row belongs to.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <arrow/type_fwd.h>

#include "base/status.h"
#include "file/schema.h"
#include "format/memwal.pb.h"
#include "memwal/names.h"

namespace glaive::memwal {

using ShardingSpec = lance::table::ShardingSpec;
enum class ShardingKind : uint8_t;  // mem_wal_index.h

// Sets the number of shards and the one sharding spec that says how a table is sharded
// (none for kManual). InvalidInput as upstream words it: an unknown column, a type that
// cannot be a shard key, a number of buckets outside [1, 1024].
Status AddShardingSpec(const file::Schema& schema, ShardingKind kind,
                       const std::string& column, int64_t num_buckets,
                       lance::table::MemWalIndexDetails* details);

// The bucket of each value in [0, num_buckets): murmur3-x86-32 in upstream's variant;
// null: 0. InvalidInput for a type that cannot be bucketed.
Result<std::vector<int32_t>> Buckets(const arrow::Array& values, int32_t num_buckets);

// One column per field of `spec`, named by its field_id. `schema` maps the source ids to
// columns of `batch`. InvalidInput as upstream words it for unknown transforms, missing
// parameters and columns; NotSupported for expressions.
Result<std::shared_ptr<arrow::RecordBatch>> EvaluateSpec(const arrow::RecordBatch& batch,
                                                         const ShardingSpec& spec,
                                                         const file::Schema& schema);

struct ShardRows {
  ShardId shard;
  std::vector<int64_t> rows;  // ascending; empty: all of the batch
};
// How the rows of `batch` spread over shards by the first field of `spec`, each shard as
// LanceDB derives its id; in the order of their first rows. InvalidInput for a null
// identity value.
Result<std::vector<ShardRows>> Route(const arrow::RecordBatch& batch,
                                     const ShardingSpec& spec,
                                     const file::Schema& schema);
// Whether rows that keep their key can come to belong to another shard: the shard is
// decided by a column that is not among `key_ids`.
bool RowsMayMove(const ShardingSpec& spec, const std::vector<int32_t>& key_ids);
// All shards that `spec` can name in advance (unsharded, buckets); empty for identity.
std::vector<ShardId> KnownShards(const ShardingSpec& spec);

}  // namespace glaive::memwal
