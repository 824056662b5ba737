#include "db/merge.h"

#include <utility>

#include <arrow/record_batch.h>
#include <arrow/type.h>

#include "db/coerce.h"

namespace glaive::db {
namespace {

// The table's columns that the source has, in its order.
Result<std::shared_ptr<arrow::Schema>> TargetOf(const table::Dataset& dataset,
                                                const arrow::Schema& source) {
  const auto shown = dataset.arrow_schema();
  arrow::FieldVector fields;
  for (const auto& column : source.fields()) {
    auto field = shown->GetFieldByName(column->name());
    if (field == nullptr) {
      return SchemaMismatch("Field '", column->name(), "' not found in target schema");
    }
    for (const auto& other : fields) {
      if (other->name() == field->name()) {
        return SchemaMismatch("column '", column->name(), "' comes twice");
      }
    }
    fields.push_back(std::move(field));
  }
  return arrow::schema(std::move(fields), shown->metadata());
}

// The source in the table's types; `in_memory` is cleared when that takes copies.
Result<std::shared_ptr<arrow::RecordBatchReader>> Coerce(
    const table::Dataset& dataset, std::shared_ptr<arrow::RecordBatchReader> source,
    bool* in_memory) {
  GLAIVE_ASSIGN_OR_RETURN(auto target, TargetOf(dataset, *source->schema()));
  if (!source->schema()->Equals(*target, /*check_metadata=*/false)) *in_memory = false;
  // A key of 2.5 must not meet the row 2. NaN vectors are taken, as upstream does here.
  return CoerceToSchema(std::move(source), std::move(target), /*reject_nan=*/false,
                        Fractions::kRefuse);
}

}  // namespace

Result<exec::MergeResult> MergeInto(table::Dataset::Ptr dataset,
                                    std::shared_ptr<arrow::RecordBatchReader> source,
                                    exec::MergeOptions options) {
  GLAIVE_ASSIGN_OR_RETURN(auto rows,
                          Coerce(*dataset, std::move(source), &options.source_in_memory));
  auto merged = exec::MergeInsert(std::move(dataset), std::move(rows), options);
  if (!merged.ok() && KindOf(merged.status()) == ErrorKind::kTimeout) {
    return TimedOut("merge insert timed out");
  }
  return merged;
}

Result<std::string> ExplainMerge(const table::Dataset& dataset,
                                 const arrow::Schema& source,
                                 const exec::MergeOptions& options) {
  GLAIVE_ASSIGN_OR_RETURN(const auto target, TargetOf(dataset, source));
  return exec::ExplainMerge(dataset, *target, options);
}

Result<std::string> AnalyzeMerge(table::Dataset::Ptr dataset,
                                 std::shared_ptr<arrow::RecordBatchReader> source,
                                 exec::MergeOptions options) {
  GLAIVE_ASSIGN_OR_RETURN(auto rows,
                          Coerce(*dataset, std::move(source), &options.source_in_memory));
  return exec::AnalyzeMerge(std::move(dataset), std::move(rows), options);
}

}  // namespace glaive::db
