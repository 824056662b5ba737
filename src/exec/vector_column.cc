#include "exec/vector_column.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <utility>

#include <arrow/array.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>

#include "exec/nearest.h"

namespace glaive::exec {
namespace {

// The items are bfloat16, kept as fixed-size binary of two bytes.
constexpr char kBFloat16Lists[] = "fixed_size_list:lance.bfloat16:";

std::optional<ElementType> ElementOf(const arrow::DataType& item) {
  switch (item.id()) {
    case arrow::Type::HALF_FLOAT:
      return ElementType::kFloat16;
    case arrow::Type::FLOAT:
      return ElementType::kFloat32;
    case arrow::Type::DOUBLE:
      return ElementType::kFloat64;
    case arrow::Type::UINT8:
      return ElementType::kUInt8;
    case arrow::Type::INT8:
      return ElementType::kInt8;
    default:
      return std::nullopt;
  }
}

bool SameIgnoringCase(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](unsigned char x, unsigned char y) {
                      return std::tolower(x) == std::tolower(y);
                    });
}

// Exact first, then ignoring case.
const file::Field* FindMember(const std::vector<file::Field>& fields,
                              std::string_view name) {
  const file::Field* found = nullptr;
  for (const file::Field& field : fields) {
    if (field.name == name) return &field;
    if (SameIgnoringCase(field.name, name)) found = &field;
  }
  return found;
}

// Fills element, dimension and multi when `field` holds vectors.
bool Describe(const file::Field& field, VectorColumn* column) {
  const arrow::DataType* type = field.type.get();
  const file::Field* holder = &field;
  if (type->id() == arrow::Type::LIST || type->id() == arrow::Type::LARGE_LIST) {
    column->multi = true;
    type = type->field(0)->type().get();
    holder = field.children.empty() ? nullptr : &field.children[0];
  }
  if (type->id() != arrow::Type::FIXED_SIZE_LIST) return false;
  column->dimension = static_cast<const arrow::FixedSizeListType&>(*type).list_size();
  const arrow::Field& item = *type->field(0);
  if (const auto element = ElementOf(*item.type())) {
    column->element = *element;
    return true;
  }
  if (holder != nullptr && holder->logical_type.starts_with(kBFloat16Lists) &&
      item.type()->id() == arrow::Type::FIXED_SIZE_BINARY &&
      static_cast<const arrow::FixedSizeBinaryType&>(*item.type()).byte_width() == 2) {
    column->element = ElementType::kBFloat16;
    return true;
  }
  return false;
}

void Walk(const std::vector<file::Field>& fields, std::vector<std::string>* path,
          std::vector<VectorColumn>* out) {
  for (const file::Field& field : fields) {
    path->push_back(field.name);
    VectorColumn column;
    if (Describe(field, &column)) {
      column.path = *path;
      column.name = file::FormatFieldPath(*path);
      out->push_back(std::move(column));
    } else if (field.type->id() == arrow::Type::STRUCT) {
      Walk(field.children, path, out);
    }
    path->pop_back();
  }
}

// The column's array, with the nulls of the structs around it.
Result<std::shared_ptr<arrow::Array>> ArrayOf(const VectorColumn& column,
                                              const arrow::RecordBatch& batch) {
  if (batch.num_columns() < 1) return InternalError("the vector column was not read");
  std::shared_ptr<arrow::Array> array = batch.column(0);
  for (size_t i = 1; i < column.path.size(); ++i) {
    if (array->type_id() != arrow::Type::STRUCT)
      return InternalError("expected a struct");
    const auto& parent = static_cast<const arrow::StructArray&>(*array);
    const int child = parent.struct_type()->GetFieldIndex(column.path[i]);
    if (child < 0) return InternalError("the vector column was not read");
    if (parent.null_count() == 0) {
      array = parent.field(child);
    } else {
      GLAIVE_ASSIGN_OR_RETURN(array, parent.GetFlattenedField(child));
    }
  }
  return array;
}

Status FillVectors(const VectorColumn& column, const arrow::FixedSizeListArray& list,
                   VectorBlock* block) {
  const int64_t dim = column.dimension;
  const auto& values = list.values();
  const int64_t first = (list.offset()) * dim;
  if (values->length() < first + list.length() * dim) {
    return Corruption("vector column '", column.name,
                      "' holds fewer values than its length says");
  }
  const auto& buffer = values->data()->buffers[1];
  if (list.length() > 0 && dim > 0 && buffer == nullptr) {
    return Corruption("vector column '", column.name, "' has no values");
  }
  block->num_vectors = list.length();
  block->data = buffer == nullptr ? nullptr
                                  : buffer->data() + (values->offset() + first) *
                                                         ElementBytes(column.element);
  block->valid = list.null_bitmap_data();
  block->valid_offset = list.offset();
  if (values->null_bitmap_data() != nullptr && values->null_count() > 0) {
    block->broken.assign(static_cast<size_t>(list.length()), false);
    for (int64_t i = 0; i < list.length(); ++i) {
      for (int64_t d = 0; d < dim; ++d) {
        if (values->IsNull(first + i * dim + d)) {
          block->broken[static_cast<size_t>(i)] = true;
          break;
        }
      }
    }
  }
  return Status::OK();
}

template <typename ListArray>
Status FillLists(const VectorColumn& column, const ListArray& lists, VectorBlock* block) {
  const int64_t rows = lists.length();
  const int64_t first = lists.value_offset(0);
  const int64_t last = lists.value_offset(rows);
  const auto inner = lists.values()->Slice(first, last - first);
  if (inner->type_id() != arrow::Type::FIXED_SIZE_LIST)
    return InternalError("expected vectors");
  GLAIVE_RETURN_NOT_OK(
      FillVectors(column, static_cast<const arrow::FixedSizeListArray&>(*inner), block));
  block->offsets.reserve(static_cast<size_t>(rows) * 2);
  // Pairs, since a null row may still span values.
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t begin = lists.value_offset(r) - first;
    block->offsets.push_back(begin);
    block->offsets.push_back(lists.IsNull(r) ? begin : lists.value_offset(r + 1) - first);
  }
  return Status::OK();
}

}  // namespace

std::string_view ElementTypeName(ElementType type) {
  switch (type) {
    case ElementType::kFloat16:
      return "float16";
    case ElementType::kBFloat16:
      return "bfloat16";
    case ElementType::kFloat32:
      return "float32";
    case ElementType::kFloat64:
      return "float64";
    case ElementType::kUInt8:
      return "uint8";
    case ElementType::kInt8:
      return "int8";
  }
  return "?";
}

int ElementBytes(ElementType type) {
  switch (type) {
    case ElementType::kFloat16:
    case ElementType::kBFloat16:
      return 2;
    case ElementType::kFloat32:
      return 4;
    case ElementType::kFloat64:
      return 8;
    default:
      return 1;
  }
}

std::vector<VectorColumn> AllVectorColumns(const file::Schema& schema) {
  std::vector<VectorColumn> columns;
  std::vector<std::string> path;
  Walk(schema.fields(), &path, &columns);
  return columns;
}

Result<VectorColumn> FindVectorColumn(const file::Schema& schema, std::string_view name) {
  VectorColumn column;
  std::vector<std::string> asked = {std::string(name)};
  if (schema.FindTopLevel(name) == nullptr) {
    if (auto path = file::ParseFieldPath(name); path.ok()) asked = std::move(*path);
  }
  const file::Field* field = nullptr;
  const std::vector<file::Field>* level = &schema.fields();
  for (const std::string& segment : asked) {
    field = FindMember(*level, segment);
    if (field == nullptr)
      return InvalidInput("vector column '", name, "' does not exist");
    column.path.push_back(field->name);
    level = &field->children;
  }
  column.name = file::FormatFieldPath(column.path);
  if (!Describe(*field, &column)) {
    return InvalidInput("column '", name,
                        "' is not a vector column (a fixed-size list of numbers, "
                        "or a list of such), but ",
                        field->type->ToString());
  }
  return column;
}

Result<std::string> InferVectorColumn(const file::Schema& schema,
                                      std::optional<int64_t> dimension) {
  std::vector<VectorColumn> candidates;
  const std::vector<VectorColumn> all = AllVectorColumns(schema);
  for (const VectorColumn& column : all) {
    if (!dimension || column.dimension == *dimension) candidates.push_back(column);
  }
  if (candidates.size() == 1) return candidates[0].name;
  if (all.empty()) {
    return InvalidInput(
        "There is no vector column in the data. Please specify the vector column "
        "name for vector search");
  }
  if (candidates.empty()) {
    // The only vector column: let the search itself say what does not fit.
    if (all.size() == 1) return all[0].name;
    return InvalidInput("There is no vector column in the data with dimension ",
                        *dimension,
                        ". Please specify the vector column name for vector search");
  }
  std::string names;
  for (const VectorColumn& column : candidates) {
    names += (names.empty() ? "" : ", ") + column.name;
  }
  return InvalidInput("More than one vector column found in the data: [", names,
                      "]. Please specify the vector column name for vector search");
}

Result<VectorBlock> BlockOf(const VectorColumn& column, const arrow::RecordBatch& batch) {
  GLAIVE_ASSIGN_OR_RETURN(auto array, ArrayOf(column, batch));
  VectorBlock block;
  block.owner = array;
  switch (array->type_id()) {
    case arrow::Type::FIXED_SIZE_LIST:
      GLAIVE_RETURN_NOT_OK(FillVectors(
          column, static_cast<const arrow::FixedSizeListArray&>(*array), &block));
      break;
    case arrow::Type::LIST:
      GLAIVE_RETURN_NOT_OK(
          FillLists(column, static_cast<const arrow::ListArray&>(*array), &block));
      break;
    case arrow::Type::LARGE_LIST:
      GLAIVE_RETURN_NOT_OK(
          FillLists(column, static_cast<const arrow::LargeListArray&>(*array), &block));
      break;
    default:
      return InternalError("vector column '", column.name, "' was read as ",
                           array->type()->ToString());
  }
  return block;
}

}  // namespace glaive::exec
