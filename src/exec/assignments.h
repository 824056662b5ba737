// New values of columns, checked against a table and made ready to be computed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <arrow/type_fwd.h>

#include "base/status.h"
#include "exec/update.h"
#include "expr/predicate.h"
#include "file/schema.h"

namespace glaive::exec {

// Where the values of one column come from.
struct NewColumn {
  std::shared_ptr<const expr::ScalarExpr> expression;  // over the row as it was
  std::shared_ptr<arrow::Array> value;                 // or: one row, for all
  bool kept() const { return expression == nullptr && value == nullptr; }
};

// One for each column of `schema`, in its order; `shown` has their types as users see
// them, to which values are cast. InvalidInput: no assignment, two for one column, an
// unknown column, an expression or a value that does not fit. NotSupported: a member of a
// struct.
Result<std::vector<NewColumn>> BindAssignments(
    const file::Schema& schema, const arrow::Schema& shown,
    const std::vector<Assignment>& assignments);

// `value`, which has one row, `rows` times.
Result<std::shared_ptr<arrow::Array>> RepeatValue(
    const std::shared_ptr<arrow::Array>& value, int64_t rows);

}  // namespace glaive::exec
