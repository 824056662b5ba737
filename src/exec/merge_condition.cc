#include "exec/merge_condition.h"

#include <set>
#include <utility>

#include <arrow/array.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>

#include "file/json_columns.h"

namespace glaive::exec {
namespace {

constexpr char kTarget[] = "target";
constexpr char kSource[] = "source";

file::Field StructOf(const char* name, std::vector<file::Field> children) {
  file::Field field;
  field.name = name;
  field.logical_type = "struct";
  arrow::FieldVector types;
  for (const file::Field& child : children) types.push_back(child.ToArrow());
  field.type = arrow::struct_(std::move(types));
  field.children = std::move(children);
  return field;
}

// The rows of a batch as one struct column.
Result<std::shared_ptr<arrow::Array>> AsStruct(
    const std::shared_ptr<arrow::RecordBatch>& batch) {
  return arrow::StructArray::Make(batch->columns(), batch->schema()->fields());
}

// Whether a condition would be right if rows of the table had their ids and addresses.
bool NamesMetaColumns(const table::Dataset& dataset, const file::Schema& condition,
                      const std::string& sql) {
  std::vector<file::Field> target = dataset.schema().fields();
  for (const auto& [name, type] : expr::RowMetaColumns()) {
    file::Field& meta = target.emplace_back();
    meta.name = name;
    meta.logical_type = "uint64";
    meta.type = type;
  }
  const file::Schema extended(
      {StructOf(kTarget, std::move(target)), condition.fields()[1]});
  return expr::Predicate::Make(sql, extended).ok();
}

}  // namespace

Result<std::vector<uint8_t>> UpdateCondition::Evaluate(
    int64_t pairs, const std::shared_ptr<arrow::RecordBatch>& source_rows,
    const std::shared_ptr<arrow::RecordBatch>& target_rows) const {
  arrow::FieldVector fields;
  arrow::ArrayVector arrays;
  for (const auto& [name, rows] :
       {std::pair(kTarget, target_rows), std::pair(kSource, source_rows)}) {
    if (rows == nullptr) continue;
    GLAIVE_ASSIGN_OR_RETURN(auto array, AsStruct(rows));
    fields.push_back(arrow::field(name, array->type()));
    arrays.push_back(std::move(array));
  }
  const auto batch = arrow::RecordBatch::Make(arrow::schema(std::move(fields)), pairs,
                                              std::move(arrays));
  std::vector<uint8_t> bits(static_cast<size_t>((pairs + 63) / 64 * 8));
  GLAIVE_RETURN_NOT_OK(predicate->Evaluate(*batch, bits.data()).status());
  std::vector<uint8_t> keep(static_cast<size_t>(pairs));
  for (size_t i = 0; i < keep.size(); ++i) keep[i] = (bits[i / 8] >> (i % 8)) & 1;
  return keep;
}

Result<std::unique_ptr<UpdateCondition>> MakeUpdateCondition(
    const table::Dataset& dataset, const arrow::Schema& source, const std::string& sql) {
  std::vector<file::Field> given;
  for (const auto& column : source.fields()) {
    const file::Field* field = dataset.schema().FindTopLevel(column->name());
    if (field != nullptr) given.push_back(*field);
  }
  const file::Schema schema({StructOf(kTarget, dataset.schema().fields()),
                             StructOf(kSource, std::move(given))});
  auto condition = std::make_unique<UpdateCondition>();
  auto predicate = expr::Predicate::Make(sql, schema, expr::ExtraColumns());
  if (!predicate.ok()) {
    if (NamesMetaColumns(dataset, schema, sql)) {
      return NotSupported("_rowid and other meta columns in the condition of a merge: ",
                          sql);
    }
    return WithContext(predicate.status(),
                       "the condition of a merge names columns as target.x and source.x");
  }
  condition->predicate = std::move(*predicate);
  std::vector<std::string> target;
  std::set<int> from_source;
  for (const std::string& text : condition->predicate->columns()) {
    GLAIVE_ASSIGN_OR_RETURN(const auto path, file::ParseFieldPath(text));
    if (path.size() < 2) {
      return InvalidInput("the condition of a merge uses '", path[0],
                          "' as a whole; name its columns");
    }
    if (path[0] == kTarget) {
      const std::string column[] = {path[1]};
      target.push_back(file::FormatFieldPath(column));
      continue;
    }
    const int index = source.GetFieldIndex(path[1]);
    if (index < 0) return InternalError("a bound column of the source is missing");
    const file::Field* field = dataset.schema().FindTopLevel(path[1]);
    if (field != nullptr && file::HasStoredJson(*field->ToArrow())) {
      return NotSupported("the JSON column 'source.", path[1],
                          "' in the condition of a merge");
    }
    from_source.insert(index);
  }
  condition->source_columns.assign(from_source.begin(), from_source.end());
  GLAIVE_ASSIGN_OR_RETURN(file::Schema read, dataset.schema().Project(target));
  condition->target =
      std::make_unique<BoundColumns>(std::move(read), dataset.num_fragments());
  return condition;
}

}  // namespace glaive::exec
