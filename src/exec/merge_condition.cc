#include "exec/merge_condition.h"

#include <array>
#include <set>
#include <string_view>
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

Result<std::shared_ptr<arrow::Array>> MadeStruct(
    const arrow::Result<std::shared_ptr<arrow::StructArray>>& made) {
  GLAIVE_RETURN_NOT_OK(made.status());
  return std::shared_ptr<arrow::Array>(*made);
}

// The rows of a batch as one struct column.
Result<std::shared_ptr<arrow::Array>> AsStruct(
    const std::shared_ptr<arrow::RecordBatch>& batch) {
  return MadeStruct(
      arrow::StructArray::Make(batch->columns(), batch->schema()->fields()));
}

// As upstream: the condition knows where the row of the table is, and no other meta
// columns. They are target._rowid and target._rowaddr, or go without the `target.`.
constexpr std::array<const char*, 2> kPlaces = {"_rowid", "_rowaddr"};

std::vector<file::Field> WithPlaces(std::vector<file::Field> target) {
  for (const char* name : kPlaces) {
    file::Field& meta = target.emplace_back();
    meta.name = name;
    meta.logical_type = "uint64";
    meta.type = arrow::uint64();
  }
  return target;
}

}  // namespace

Result<std::vector<uint8_t>> UpdateCondition::Evaluate(
    int64_t pairs, const std::shared_ptr<arrow::RecordBatch>& source_rows,
    const std::shared_ptr<arrow::RecordBatch>& target_rows,
    const PairPlaces& places) const {
  arrow::FieldVector fields;
  arrow::ArrayVector arrays;
  arrow::FieldVector members;
  arrow::ArrayVector values;
  if (target_rows != nullptr) {
    members = target_rows->schema()->fields();
    values = target_rows->columns();
  }
  const std::vector<uint64_t>* const given[] = {&places.ids, &places.addresses};
  for (size_t k = 0; k < kPlaces.size(); ++k) {
    if (!needs_place[k]) continue;
    const auto field = arrow::field(kPlaces[k], arrow::uint64());
    const auto array = std::make_shared<arrow::UInt64Array>(
        pairs, arrow::Buffer::Wrap(given[k]->data(), given[k]->size()));
    members.push_back(field);
    values.push_back(array);
    fields.push_back(field);
    arrays.push_back(array);
  }
  if (!members.empty()) {
    GLAIVE_ASSIGN_OR_RETURN(auto target_struct,
                            MadeStruct(arrow::StructArray::Make(values, members)));
    fields.push_back(arrow::field(kTarget, target_struct->type()));
    arrays.push_back(std::move(target_struct));
  }
  if (source_rows != nullptr) {
    GLAIVE_ASSIGN_OR_RETURN(auto source_struct, AsStruct(source_rows));
    fields.push_back(arrow::field(kSource, source_struct->type()));
    arrays.push_back(std::move(source_struct));
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
  const file::Schema schema({StructOf(kTarget, WithPlaces(dataset.schema().fields())),
                             StructOf(kSource, std::move(given))});
  auto condition = std::make_unique<UpdateCondition>();
  expr::ExtraColumns places;
  for (const char* name : kPlaces) places.emplace_back(name, arrow::uint64());
  auto predicate = expr::Predicate::Make(sql, schema, places);
  if (!predicate.ok()) {
    return WithContext(predicate.status(),
                       "the condition of a merge names columns as target.x and source.x");
  }
  condition->predicate = std::move(*predicate);
  const auto need_place = [&](std::string_view name) {
    for (size_t k = 0; k < kPlaces.size(); ++k) {
      if (name != kPlaces[k]) continue;
      condition->needs_place[k] = true;
      return true;
    }
    return false;
  };
  for (const std::string& name : condition->predicate->extra_columns()) need_place(name);
  std::vector<std::string> target;
  std::set<int> from_source;
  for (const std::string& text : condition->predicate->columns()) {
    GLAIVE_ASSIGN_OR_RETURN(const auto path, file::ParseFieldPath(text));
    if (path.size() < 2) {
      return InvalidInput("the condition of a merge uses '", path[0],
                          "' as a whole; name its columns");
    }
    if (path[0] == kTarget) {
      if (need_place(path[1])) continue;
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
