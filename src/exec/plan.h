// What the operators of one snapshot share: fragment positions, and plans by selection
// and filter.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <arrow/type_fwd.h>

#include "base/status.h"
#include "exec/bound_columns.h"
#include "exec/scan.h"
#include "expr/predicate.h"
#include "runtime/fork.h"
#include "table/dataset.h"

namespace glaive::exec {

// Values of meta columns for a set of rows; those that nobody asked for are null.
struct MetaColumns {
  std::shared_ptr<arrow::Array> row_id;
  std::shared_ptr<arrow::Array> row_address;
  std::shared_ptr<arrow::Array> row_offset;
  std::shared_ptr<arrow::Array> row_created_at;
  std::shared_ptr<arrow::Array> row_updated_at;
  std::shared_ptr<arrow::Array> distance;
  std::shared_ptr<arrow::Array> query_index;

  // By name of the meta column; nullptr when there is none.
  const std::shared_ptr<arrow::Array>* Find(const std::string& name) const;
};

struct MetaNeeds {
  bool row_id = false;
  bool row_address = false;
  bool row_offset = false;
  bool row_created_at = false;
  bool row_updated_at = false;
  bool any() const {
    return row_id || row_address || row_offset || row_created_at || row_updated_at;
  }
  void Add(const std::vector<std::string>& names);
};

// A Selection resolved: which columns are read, and how the output is made of them.
struct OutputPlan {
  struct Column {
    int read_index = -1;  // >= 0: this column of the batch read
    std::string meta;     // else, when set: this meta column
    std::shared_ptr<const expr::ScalarExpr> expression;  // else: computed
    std::shared_ptr<arrow::Field> json;  // set: holds JSON, stored like this
  };
  std::shared_ptr<arrow::Schema> schema;
  std::vector<Column> columns;
  std::unique_ptr<BoundColumns> read;
  MetaNeeds needs;
  bool computes = false;  // some column is an expression

  // `read_batch` holds the columns of `read`; may be null when there are none.
  Result<std::shared_ptr<arrow::RecordBatch>> Assemble(
      const std::shared_ptr<arrow::RecordBatch>& read_batch, int64_t rows,
      const MetaColumns& meta) const;
};

struct FilterPlan {
  std::shared_ptr<const expr::Predicate> predicate;
  std::unique_ptr<BoundColumns> read;
  MetaNeeds needs;

  // `read_batch` with the meta columns that the predicate names.
  Result<std::shared_ptr<arrow::RecordBatch>> Input(
      const std::shared_ptr<arrow::RecordBatch>& read_batch, int64_t rows,
      const MetaColumns& meta) const;
};

// Which meta columns beside those of every scan an expression may name.
enum class SearchColumns : uint8_t {
  kScan,
  kOneQuery,     // _distance
  kManyQueries,  // _distance and query_index
};

// Kept in the runtime's cache for as long as the snapshot lives there. Thread-safe.
class SnapshotState {
 public:
  explicit SnapshotState(const table::Dataset& dataset);

  // The one of `dataset`.
  static std::shared_ptr<const SnapshotState> Of(const table::Dataset& dataset);

  // Live rows before fragment `index`; one entry more than fragments.
  const std::vector<int64_t>& live_begin() const { return live_begin_; }
  // Fragment that holds live row `ordinal`, which must be in range.
  int FragmentOfOrdinal(int64_t ordinal) const;

  using OutputPtr = std::shared_ptr<const OutputPlan>;
  using FilterPtr = std::shared_ptr<const FilterPlan>;
  Result<OutputPtr> Output(const table::Dataset& dataset, const Selection& select,
                           SearchColumns search = SearchColumns::kScan) const;
  Result<FilterPtr> Filter(const table::Dataset& dataset, const std::string& sql,
                           SearchColumns search = SearchColumns::kScan) const;
  // Columns by quoted path.
  Result<std::shared_ptr<const BoundColumns>> Columns(
      const table::Dataset& dataset, const std::vector<std::string>& paths) const;

 private:
  std::weak_ptr<const table::Dataset> owner_;
  std::vector<int64_t> live_begin_;
  mutable ForkSafeMutex mutex_;
  // Bounded: cleared when full. Guarded by mutex_.
  mutable std::map<std::string, OutputPtr> outputs_;
  mutable std::map<std::string, FilterPtr> filters_;
  mutable std::map<std::string, std::shared_ptr<const BoundColumns>> columns_;
};

Result<std::shared_ptr<const OutputPlan>> MakeOutputPlan(const table::Dataset& dataset,
                                                         const Selection& select,
                                                         SearchColumns search);

}  // namespace glaive::exec
