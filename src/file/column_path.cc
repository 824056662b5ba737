#include "file/column_path.h"

#include <utility>

#include <arrow/array/data.h>
#include <arrow/type.h>

namespace glaive::file {
namespace {

using encoding::PathNode;

PathNode NodeOf(const arrow::DataType& type) {
  switch (type.id()) {
    case arrow::Type::STRUCT:
      return PathNode::kStruct;
    case arrow::Type::FIXED_SIZE_LIST:
      return PathNode::kFixedStruct;
    default:
      return PathNode::kList;
  }
}

void CollectFrom(const Field& field, bool every_field, std::vector<const Field*>* fields,
                 std::vector<int>* child, std::vector<ColumnPath>* out) {
  fields->push_back(&field);
  const bool whole = field.owns_column();
  if (whole || every_field) out->emplace_back(*fields, *child);
  if (!whole) {
    for (size_t i = 0; i < field.children.size(); ++i) {
      child->push_back(static_cast<int>(i));
      CollectFrom(field.children[i], every_field, fields, child, out);
      child->pop_back();
    }
  }
  fields->pop_back();
}

// `type` with `below` as its only member or item. Maps become lists.
std::shared_ptr<arrow::DataType> WithOnly(const arrow::DataType& type,
                                          std::shared_ptr<arrow::Field> below) {
  switch (type.id()) {
    case arrow::Type::STRUCT:
      return arrow::struct_({std::move(below)});
    case arrow::Type::LARGE_LIST:
      return arrow::large_list(std::move(below));
    case arrow::Type::FIXED_SIZE_LIST:
      return arrow::fixed_size_list(
          std::move(below),
          static_cast<const arrow::FixedSizeListType&>(type).list_size());
    default:
      return arrow::list(std::move(below));
  }
}

}  // namespace

ColumnPath::ColumnPath(std::vector<const Field*> fields, std::vector<int> child)
    : fields_(std::move(fields)), child_(std::move(child)) {
  types_.resize(fields_.size());
  types_.back() = fields_.back()->type;
  for (size_t i = fields_.size() - 1; i-- > 0;) {
    types_[i] =
        WithOnly(*fields_[i]->type, fields_[i + 1]->ToArrow()->WithType(types_[i + 1]));
  }
  for (size_t i = 0; i + 1 < fields_.size(); ++i)
    nodes_.push_back(NodeOf(*fields_[i]->type));
  nodes_.push_back(PathNode::kLeaf);
}

std::vector<ColumnPath> ColumnPath::Collect(const Field& field, bool every_field) {
  std::vector<ColumnPath> out;
  std::vector<const Field*> fields;
  std::vector<int> child;
  CollectFrom(field, every_field, &fields, &child, &out);
  return out;
}

std::string ColumnPath::name() const {
  std::vector<std::string> names;
  for (const Field* field : fields_) names.push_back(field->name);
  return FormatFieldPath(names);
}

std::shared_ptr<arrow::ArrayData> ColumnPath::Prune(
    const std::shared_ptr<arrow::ArrayData>& data) const {
  return PruneFrom(data, 0);
}

std::shared_ptr<arrow::ArrayData> ColumnPath::PruneFrom(
    const std::shared_ptr<arrow::ArrayData>& data, size_t depth) const {
  if (depth == child_.size()) return data;
  std::shared_ptr<arrow::ArrayData> below = data->child_data[0];
  if (data->type->id() == arrow::Type::STRUCT) {
    below = data->child_data[static_cast<size_t>(child_[depth])];
  }
  return arrow::ArrayData::Make(types_[depth], data->length, data->buffers,
                                {PruneFrom(below, depth + 1)}, data->null_count.load(),
                                data->offset);
}

}  // namespace glaive::file
