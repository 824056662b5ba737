// The condition under which a merge updates a matched row: SQL over `target.x` and
// `source.x`.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <arrow/type_fwd.h>

#include "base/status.h"
#include "exec/bound_columns.h"
#include "expr/predicate.h"
#include "table/dataset.h"

namespace glaive::exec {

// Immutable; thread-safe.
struct UpdateCondition {
  std::shared_ptr<const expr::Predicate> predicate;
  std::vector<int> source_columns;       // of the source's schema
  std::unique_ptr<BoundColumns> target;  // columns of the table

  // `source` and `target` are null when the condition names none of their columns. One
  // byte per pair: whether it is true.
  Result<std::vector<uint8_t>> Evaluate(
      int64_t pairs, const std::shared_ptr<arrow::RecordBatch>& source_rows,
      const std::shared_ptr<arrow::RecordBatch>& target_rows) const;
};

Result<std::unique_ptr<UpdateCondition>> MakeUpdateCondition(
    const table::Dataset& dataset, const arrow::Schema& source, const std::string& sql);

}  // namespace glaive::exec
