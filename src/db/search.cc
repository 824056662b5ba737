#include "db/search.h"

#include <optional>
#include <string>
#include <vector>

#include <arrow/array.h>
#include <arrow/type.h>

#include "exec/vector_index.h"
#include "file/schema.h"

namespace glaive::db {
namespace {

// The dimension of the query vectors, unset when their lists differ in length.
std::optional<int64_t> DimensionOf(const arrow::Array& queries) {
  if (queries.type_id() == arrow::Type::FIXED_SIZE_LIST) {
    return static_cast<const arrow::FixedSizeListType&>(*queries.type()).list_size();
  }
  if (queries.length() == 0) return std::nullopt;
  if (queries.type_id() == arrow::Type::LIST) {
    return static_cast<const arrow::ListArray&>(queries).value_length(0);
  }
  if (queries.type_id() == arrow::Type::LARGE_LIST) {
    return static_cast<const arrow::LargeListArray&>(queries).value_length(0);
  }
  return std::nullopt;
}

}  // namespace

Status ResolveSearch(const table::Dataset& dataset, exec::NearestOptions* options) {
  if (options->column.empty()) {
    GLAIVE_ASSIGN_OR_RETURN(
        options->column,
        exec::InferVectorColumn(dataset.schema(), DimensionOf(*options->queries)));
  }
  const file::Field* field = dataset.schema().FindTopLevel(options->column);
  if (field) {
    options->column = file::FormatFieldPath(std::vector{options->column});
  } else {
    GLAIVE_ASSIGN_OR_RETURN(auto path, file::ParseFieldPath(options->column));
    field = dataset.schema().FindByPath(path);
  }
  if (!field) {
    std::string known;
    for (const auto& top : dataset.schema().fields()) {
      known += (known.empty() ? "" : ", ") + top.name;
    }
    return InvalidInput("Invalid input, no vector column named '", options->column,
                        "'; the columns are ", known);
  }
  options->multivector =
      (field->type->id() == arrow::Type::LIST ||
       field->type->id() == arrow::Type::LARGE_LIST) &&
      field->type->field(0)->type()->id() == arrow::Type::FIXED_SIZE_LIST;
  if (options->metric_of_index) {
    GLAIVE_ASSIGN_OR_RETURN(const auto metric, exec::IndexMetric(dataset, field->id));
    options->metric = metric.value_or(options->metric);
  }
  return Status::OK();
}

}  // namespace glaive::db
