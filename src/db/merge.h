// Merges whatever rows callers have into a table.
#pragma once

#include <memory>
#include <string>

#include <arrow/type_fwd.h>

#include "base/status.h"
#include "exec/merge.h"
#include "table/dataset.h"

namespace glaive::db {

// exec::MergeInsert after bringing the source's columns, which may be some of the
// table's, into the table's types as CoerceToSchema does.
Result<exec::MergeResult> MergeInto(table::Dataset::Ptr dataset,
                                    std::shared_ptr<arrow::RecordBatchReader> source,
                                    exec::MergeOptions options);
// exec::ExplainMerge and exec::AnalyzeMerge for such a source.
Result<std::string> ExplainMerge(const table::Dataset& dataset,
                                 const arrow::Schema& source,
                                 const exec::MergeOptions& options);
Result<std::string> AnalyzeMerge(table::Dataset::Ptr dataset,
                                 std::shared_ptr<arrow::RecordBatchReader> source,
                                 exec::MergeOptions options);

}  // namespace glaive::db
