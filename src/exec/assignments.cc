#include "exec/assignments.h"

#include <algorithm>
#include <set>
#include <utility>

#include <arrow/array.h>
#include <arrow/buffer.h>
#include <arrow/compute/api.h>
#include <arrow/type.h>

namespace glaive::exec {
namespace {

Status CheckAssignments(const file::Schema& schema,
                        const std::vector<Assignment>& assignments) {
  if (assignments.empty()) {
    return InvalidInput(
        "Invalid input, at least one column must be specified in an update");
  }
  std::set<std::string> seen;
  for (const Assignment& assignment : assignments) {
    if (!seen.insert(assignment.column).second) {
      return InvalidInput("Invalid input, column '", assignment.column,
                          "' is given two values in one update");
    }
    if (schema.FindTopLevel(assignment.column) != nullptr) continue;
    if (auto path = file::ParseFieldPath(assignment.column);
        path.ok() && path->size() > 1 && schema.FindByPath(*path) != nullptr) {
      return NotSupported("updating the member '", assignment.column,
                          "' of a struct: give the whole column '", (*path)[0],
                          "' a value");
    }
    std::string known;
    for (const auto& field : schema.fields()) {
      known += (known.empty() ? "" : ", ") + field.name;
    }
    return InvalidInput("Invalid input, Column '", assignment.column,
                        "' does not exist in dataset schema; there are: ", known);
  }
  return Status::OK();
}

Result<std::shared_ptr<arrow::Array>> BindValue(
    const Assignment& assignment, const std::shared_ptr<arrow::DataType>& type) {
  std::shared_ptr<arrow::Array> value = assignment.value;
  if (!value->type()->Equals(*type)) {
    auto cast = arrow::compute::Cast(*value, type);
    if (!cast.ok()) {
      return InvalidInput("Invalid input, the value for column '", assignment.column,
                          "' is of type ", value->type()->ToString(), ", not ",
                          type->ToString());
    }
    value = std::move(*cast);
  }
  if (value->length() != 1) {
    return InvalidInput("Invalid input, column '", assignment.column,
                        "' needs one value, not ", value->length());
  }
  return value;
}

}  // namespace

Result<std::vector<NewColumn>> BindAssignments(
    const file::Schema& schema, const arrow::Schema& shown,
    const std::vector<Assignment>& assignments) {
  GLAIVE_RETURN_NOT_OK(CheckAssignments(schema, assignments));
  std::vector<NewColumn> columns(schema.fields().size());
  for (size_t c = 0; c < columns.size(); ++c) {
    const std::string& name = schema.fields()[c].name;
    const auto assignment =
        std::find_if(assignments.begin(), assignments.end(),
                     [&](const Assignment& a) { return a.column == name; });
    if (assignment == assignments.end()) continue;
    const auto& type = shown.field(static_cast<int>(c))->type();
    if (assignment->value != nullptr) {
      GLAIVE_ASSIGN_OR_RETURN(columns[c].value, BindValue(*assignment, type));
      continue;
    }
    auto expression =
        expr::ScalarExpr::MakeCastTo(assignment->sql, schema, type, expr::ExtraColumns());
    if (!expression.ok()) {
      return WithContext(expression.status(), "column '" + name + "'");
    }
    columns[c].expression = std::move(*expression);
  }
  return columns;
}

Result<std::shared_ptr<arrow::Array>> RepeatValue(
    const std::shared_ptr<arrow::Array>& value, int64_t rows) {
  GLAIVE_ASSIGN_OR_RETURN(auto zeros, arrow::AllocateBuffer(rows * 8));
  std::fill_n(zeros->mutable_data(), rows * 8, uint8_t{0});
  const arrow::Int64Array picks(rows, std::move(zeros));
  return arrow::compute::Take(*value, picks,
                              arrow::compute::TakeOptions::NoBoundsCheck());
}

}  // namespace glaive::exec
