// Reads over a base table, its generations and memtables as if they were one table: the
// newest version of a key decides first, then the filter.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <arrow/type_fwd.h>

#include "base/status.h"
#include "exec/nearest.h"
#include "exec/scan.h"
#include "memwal/lsm_snapshot.h"

namespace glaive::memwal {

struct LsmScanOptions {
  // As exec::ScanOptions: fields and meta columns; `_rowid` and `_rowaddr` are null for
  // rows that are not in the base.
  exec::ScanOptions scan;
  bool with_memtable_gen = false;  // `_memtable_gen` (uint64), last; 0: the base
};

// Newest sources first, then the base in its order. Limit and offset apply to the whole.
// Each batch is computed when it is asked for.
Result<std::shared_ptr<arrow::RecordBatchReader>> LsmScan(LsmSnapshot::Ptr snapshot,
                                                          LsmScanOptions options);
Result<std::shared_ptr<arrow::Table>> LsmScanToTable(LsmSnapshot::Ptr snapshot,
                                                     LsmScanOptions options);
Result<int64_t> LsmCountRows(LsmSnapshot::Ptr snapshot, const std::string& filter,
                             CancelToken* cancel = nullptr);
Result<std::shared_ptr<arrow::Schema>> LsmOutputSchema(const LsmSnapshot& snapshot,
                                                       const LsmScanOptions& options);

// Exact nearest neighbours over all sources: the same rows, distances and order as a
// plain table of the same rows would give (ties: base by row id, then fresher ones).
Result<std::shared_ptr<arrow::Table>> LsmNearest(LsmSnapshot::Ptr snapshot,
                                                 exec::NearestOptions options);

// The rows of some keys. `keys`: one column per key column, in key order, one row per key
// (values are cast to the key's type where that is exact; null: no row). Each key touches
// the memtables, then the generations newest first, then the base through a key index
// that is built once per data file and cached. The result has the selected columns; rows
// in no order, missing keys are left out.
Result<std::shared_ptr<arrow::Table>> LsmLookup(LsmSnapshot::Ptr snapshot,
                                                const arrow::RecordBatch& keys,
                                                const exec::Selection& select);

// Shards other than `home` that hold versions of some of the keys (given as for
// LsmLookup), or say that they were deleted, which are not in the base yet; ascending.
Result<std::vector<ShardId>> LsmShardsBeside(const LsmSnapshot::Ptr& snapshot,
                                             const arrow::RecordBatch& keys,
                                             const ShardId& home);

// Rows by their positions in a scan of everything; any order, repeats allowed, the result
// in the order asked for. InvalidInput when one is out of range.
Result<std::shared_ptr<arrow::Table>> LsmTakeOffsets(LsmSnapshot::Ptr snapshot,
                                                     std::span<const int64_t> offsets,
                                                     const exec::Selection& select);

std::string ExplainLsmScan(const LsmSnapshot& snapshot, const LsmScanOptions& options);

}  // namespace glaive::memwal
