// What a read of a table handle looks at: one version of the table alone, or with the
// fresh rows of its LSM write path on top.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <arrow/type_fwd.h>

#include "base/status.h"
#include "exec/nearest.h"
#include "exec/scan.h"
#include "table/dataset.h"

namespace glaive::memwal {
class LsmSnapshot;  // memwal/lsm_snapshot.h
}

namespace glaive::db {

struct ReadSource {
  table::Dataset::Ptr base;
  // Null: the base alone.
  std::shared_ptr<const memwal::LsmSnapshot> fresh;
};

// `use_lsm` unset: with fresh rows exactly when the table has an LSM write path and the
// handle is not `pinned` to a version. True: InvalidInput without such a path, and on a
// pinned handle. False: the base alone.
Result<ReadSource> OpenReadSource(table::Dataset::Ptr base, bool pinned,
                                  std::optional<bool> use_lsm);

// As the functions of exec/scan.h and exec/nearest.h of the same names. Fresh rows have
// no row ids and addresses: these are null for them.
Result<std::shared_ptr<arrow::RecordBatchReader>> Scan(const ReadSource& source,
                                                       exec::ScanOptions options);
Result<std::shared_ptr<arrow::Table>> ScanToTable(const ReadSource& source,
                                                  exec::ScanOptions options);
Result<int64_t> CountRows(const ReadSource& source, const std::string& filter,
                          CancelToken* cancel = nullptr);
Result<std::shared_ptr<arrow::Table>> Nearest(const ReadSource& source,
                                              exec::NearestOptions options);
Result<std::string> ExplainScan(const ReadSource& source,
                                const exec::ScanOptions& options);
Result<std::string> ExplainNearest(const ReadSource& source,
                                   const exec::NearestOptions& options);
// Positions in a scan: fresh rows come first.
Result<std::shared_ptr<arrow::Table>> TakeOffsets(const ReadSource& source,
                                                  std::span<const int64_t> offsets,
                                                  const exec::Selection& select);
// Rows of the base; ids of rows that a fresh one replaces or deletes are left out, as
// ids that no longer exist are.
Result<std::shared_ptr<arrow::Table>> TakeRowIds(const ReadSource& source,
                                                 std::span<const uint64_t> row_ids,
                                                 const exec::Selection& select);

}  // namespace glaive::db
