// Scans, counts, takes and predicate deletes over one snapshot.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <arrow/type_fwd.h>

#include "base/status.h"
#include "exec/retry_policy.h"
#include "table/dataset.h"

namespace glaive {
class CancelToken;
}

namespace glaive::exec {

// Names of the meta columns that a projection may ask for.
inline constexpr char kRowId[] = "_rowid";
inline constexpr char kRowAddress[] = "_rowaddr";
inline constexpr char kRowOffset[] = "_rowoffset";
inline constexpr char kRowCreatedAt[] = "_row_created_at_version";
inline constexpr char kRowUpdatedAt[] = "_row_last_updated_at_version";
inline constexpr char kDistance[] = "_distance";
inline constexpr char kQueryIndex[] = "query_index";

struct Selection {
  // Output name and SQL expression, in order. A plain column path is the common case.
  // Unset: all columns.
  std::optional<std::vector<std::pair<std::string, std::string>>> columns;
  // The paths in `columns` keep their places: "a.b" gives a struct `a` of which only `b`
  // is left, once for all members of `a`, instead of a column of its own. Names must be
  // those of fields or of meta columns; lists are entered by the names of their items.
  bool nested = false;
  bool with_row_id = false;
  bool with_row_address = false;
};

struct ScanOptions {
  Selection select;
  std::string filter;  // empty: none
  std::optional<int64_t> limit;
  int64_t offset = 0;
  std::vector<int64_t> fragment_ids;  // empty: all
  bool in_order = true;               // rows in fragment order; otherwise as they come
  int64_t batch_rows = 8192;
  // Batches of a stream come from exactly `batch_rows` live rows of one fragment (its
  // last one from what is left), less those that the filter drops, as long as they stay
  // within batch_bytes. Otherwise they end where pages end.
  bool exact_batches = false;
  int64_t batch_bytes = int64_t{32} << 20;
  CancelToken* cancel = nullptr;  // must outlive the reader
};

// Streams; each ReadNext computes at most a few morsels ahead. The reader keeps the
// snapshot alive.
Result<std::shared_ptr<arrow::RecordBatchReader>> Scan(
    std::shared_ptr<const table::Dataset> dataset, ScanOptions options);
// The whole result at once, computed on all threads; big columns stay zero-copy chunks.
Result<std::shared_ptr<arrow::Table>> ScanToTable(
    std::shared_ptr<const table::Dataset> dataset, ScanOptions options);
Result<std::shared_ptr<arrow::Schema>> OutputSchema(const table::Dataset& dataset,
                                                    const Selection& select);

Result<int64_t> CountRows(const table::Dataset& dataset, const std::string& filter,
                          CancelToken* cancel = nullptr);

// Live-row ordinals in scan order, any order, repeats allowed; result rows in the order
// asked for. InvalidInput when one is out of range.
Result<std::shared_ptr<arrow::Table>> TakeOffsets(const table::Dataset& dataset,
                                                  std::span<const int64_t> offsets,
                                                  const Selection& select);
// By _rowid; ids that no longer exist are left out. Result in the order asked for.
Result<std::shared_ptr<arrow::Table>> TakeRowIds(const table::Dataset& dataset,
                                                 std::span<const uint64_t> row_ids,
                                                 const Selection& select);

struct DeleteResult {
  table::Dataset::Ptr dataset;
  int64_t num_deleted_rows = 0;
};
// Finds the rows, commits, and runs again on retryable conflicts.
Result<DeleteResult> Delete(table::Dataset::Ptr dataset, const std::string& predicate,
                            CancelToken* cancel = nullptr, const RetryPolicy& retry = {});

std::string ExplainScan(const table::Dataset& dataset, const ScanOptions& options);

}  // namespace glaive::exec
