// The condition under which a merge updates a matched row: SQL over `target.x` and
// `source.x`, and over the row id and address of the table's row.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <arrow/type_fwd.h>

#include "base/status.h"
#include "exec/bound_columns.h"
#include "expr/predicate.h"
#include "table/dataset.h"

namespace glaive::exec {

// Where the rows of the table are: their row ids and addresses, one each per pair, as far
// as the condition needs them.
struct PairPlaces {
  std::vector<uint64_t> ids;
  std::vector<uint64_t> addresses;
};

// Immutable; thread-safe.
struct UpdateCondition {
  std::shared_ptr<const expr::Predicate> predicate;
  std::vector<int> source_columns;       // of the source's schema
  std::unique_ptr<BoundColumns> target;  // columns of the table
  // Whether _rowid and _rowaddr of the table's row are named.
  std::array<bool, 2> needs_place = {false, false};

  // `source` and `target` are null when the condition names none of their columns. One
  // byte per pair: whether it is true.
  Result<std::vector<uint8_t>> Evaluate(
      int64_t pairs, const std::shared_ptr<arrow::RecordBatch>& source_rows,
      const std::shared_ptr<arrow::RecordBatch>& target_rows,
      const PairPlaces& places) const;
};

Result<std::unique_ptr<UpdateCondition>> MakeUpdateCondition(
    const table::Dataset& dataset, const arrow::Schema& source, const std::string& sql);

}  // namespace glaive::exec
