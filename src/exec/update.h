// Updates rows: the chosen rows are written again with new values, the old ones deleted.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <arrow/type_fwd.h>

#include "base/status.h"
#include "exec/retry_policy.h"
#include "file/version.h"
#include "table/dataset.h"

namespace glaive {
class CancelToken;
}

namespace glaive::exec {

// A new value for a top-level column: an expression over the row as it was, or a value.
struct Assignment {
  std::string column;
  std::string sql;
  // One value of the column's type, as users see it (JSON as text). Null: `sql` counts.
  std::shared_ptr<arrow::Array> value;
};

struct UpdateOptions {
  std::string where;  // empty: all rows
  std::vector<Assignment> assignments;
  std::optional<file::FileVersion> file_version;  // unset: the table's
  RetryPolicy retry;
  CancelToken* cancel = nullptr;
};

struct UpdateResult {
  table::Dataset::Ptr dataset;
  int64_t num_updated_rows = 0;
};

// Commits a version even when no row is chosen, as upstream does. InvalidInput: no or an
// unknown column, an expression that does not parse or whose value does not fit, a null
// where the column has none. Runs again when a concurrent commit touched a chosen row.
// Columns without an assignment keep exactly what was written, blobs included.
Result<UpdateResult> Update(table::Dataset::Ptr dataset, const UpdateOptions& options);

}  // namespace glaive::exec
