#include "file/assemble.h"

#include <limits>
#include <string>
#include <utility>

#include <arrow/array/data.h>
#include <arrow/buffer.h>
#include <arrow/type.h>

namespace glaive::file {
namespace {

using encoding::LayerSink;
using encoding::PathLayer;
using encoding::StructureSink;
using encoding::ValueRange;
using encoding::ValueShape;
using encoding::ValueSink;

bool IsListType(const arrow::DataType& type) {
  return type.id() == arrow::Type::LIST || type.id() == arrow::Type::LARGE_LIST ||
         type.id() == arrow::Type::MAP;
}

PathLayer LayerOf(const Field& field) {
  PathLayer layer;
  layer.is_list = IsListType(*field.type);
  if (!field.owns_column() && field.type->id() == arrow::Type::FIXED_SIZE_LIST) {
    layer.dimension =
        static_cast<const arrow::FixedSizeListType&>(*field.type).list_size();
  }
  return layer;
}

// An array and the layers above it that its parents still need.
struct Built {
  std::shared_ptr<arrow::ArrayData> data;
  std::vector<LayerSink> layers;  // of the first leaf, inner-most first
  size_t next = 0;                // layer of the parent
};

class Assembler {
 public:
  Assembler(std::span<const ValueRange> rows, int64_t num_rows, const LeafLookup& lookup)
      : rows_(rows), num_rows_(num_rows), lookup_(lookup) {}

  Result<Built> Build(const Field& field) {
    trail_.push_back(LayerOf(field));
    auto built = field.owns_column() ? BuildLeaf(field) : BuildNested(field);
    trail_.pop_back();
    return built;
  }

 private:
  Result<Built> BuildLeaf(const Field& field);
  Result<Built> BuildNested(const Field& field);
  Result<std::shared_ptr<arrow::ArrayData>> BuildList(const Field& field, Built* child);

  std::span<const ValueRange> rows_;
  int64_t num_rows_;
  const LeafLookup& lookup_;
  std::vector<PathLayer> trail_;  // outer-most first
};

Status Wrong(const Field& field, const std::string& what) {
  return Corruption("column '", field.name, "': ", what);
}

Result<Built> Assembler::BuildLeaf(const Field& field) {
  const std::vector<PathLayer> path(trail_.rbegin(), trail_.rend());
  GLAIVE_ASSIGN_OR_RETURN(const ColumnReader* reader, lookup_(field, path));
  StructureSink structure(path);
  ValueSink values(reader->shape());
  if (!rows_.empty()) GLAIVE_RETURN_NOT_OK(reader->Read(rows_, &structure, &values));
  Built out;
  out.layers = std::move(structure.layers());
  out.next = 1;
  if (out.layers.back().length() != num_rows_) {
    return Wrong(field, "levels give " + std::to_string(out.layers.back().length()) +
                            " rows instead of " + std::to_string(num_rows_));
  }
  LayerSink& leaf = out.layers[0];
  const bool empty_struct = reader->shape().kind == ValueShape::Kind::kStruct &&
                            reader->shape().children.empty();
  if (!empty_struct && leaf.length() != values.length()) {
    return Wrong(field, std::to_string(values.length()) + " values for " +
                            std::to_string(leaf.length()) + " slots");
  }
  for (int64_t slot : values.must_be_null()) {
    if (leaf.validity.IsValid(slot)) {
      return Wrong(field, "a value refers to an entry that its dictionary does not have");
    }
  }
  if (empty_struct) {
    // Stored as if null throughout; such structs have no nulls.
    out.data = arrow::ArrayData::Make(reader->type(), leaf.length(), {nullptr}, 0);
    return out;
  }
  const int64_t nulls = leaf.validity.null_count();
  GLAIVE_ASSIGN_OR_RETURN(out.data, values.Finish(leaf.validity.Finish(), nulls));
  return out;
}

template <typename Offset>
std::shared_ptr<arrow::Buffer> OffsetsBuffer(const std::vector<int64_t>& ends) {
  auto made =
      arrow::AllocateBuffer(static_cast<int64_t>((ends.size() + 1) * sizeof(Offset)));
  if (!made.ok()) return nullptr;
  std::shared_ptr<arrow::Buffer> buffer = std::move(*made);
  auto* out = reinterpret_cast<Offset*>(buffer->mutable_data());
  out[0] = 0;
  for (size_t i = 0; i < ends.size(); ++i) out[i + 1] = static_cast<Offset>(ends[i]);
  return buffer;
}

Result<std::shared_ptr<arrow::ArrayData>> Assembler::BuildList(const Field& field,
                                                               Built* child) {
  LayerSink& layer = child->layers[child->next];
  const int64_t items = layer.offsets.empty() ? 0 : layer.offsets.back();
  if (static_cast<int64_t>(layer.offsets.size()) != layer.length() ||
      items != child->data->length) {
    return Wrong(field, "lists of " + std::to_string(items) + " items, " +
                            std::to_string(child->data->length) + " are there");
  }
  std::shared_ptr<arrow::Buffer> offsets;
  if (field.type->id() == arrow::Type::LARGE_LIST) {
    offsets = OffsetsBuffer<int64_t>(layer.offsets);
  } else {
    if (items > std::numeric_limits<int32_t>::max()) {
      return ResourceExhausted("column '", field.name,
                               "': more than 2^31 list items in one ",
                               "batch: read fewer rows at a time");
    }
    offsets = OffsetsBuffer<int32_t>(layer.offsets);
  }
  if (!offsets) return ResourceExhausted("out of memory for list offsets");
  const int64_t nulls = layer.validity.null_count();
  const int64_t length = layer.length();
  return arrow::ArrayData::Make(ReadType(field), length,
                                {layer.validity.Finish(), std::move(offsets)},
                                {child->data}, nulls);
}

Result<Built> Assembler::BuildNested(const Field& field) {
  std::vector<std::shared_ptr<arrow::ArrayData>> children;
  Built out;
  for (size_t i = 0; i < field.children.size(); ++i) {
    GLAIVE_ASSIGN_OR_RETURN(Built child, Build(field.children[i]));
    if (i == 0) {
      out = std::move(child);
      children.push_back(out.data);
      continue;
    }
    if (child.data->length != children[0]->length) {
      return Wrong(field, "members '" + field.children[0].name + "' and '" +
                              field.children[i].name + "' differ in length");
    }
    children.push_back(std::move(child.data));
  }
  LayerSink& layer = out.layers[out.next];
  const int64_t length = layer.length();
  if (layer.is_list) {
    GLAIVE_ASSIGN_OR_RETURN(out.data, BuildList(field, &out));
    ++out.next;
    return out;
  }
  const int64_t dimension = LayerOf(field).dimension;
  if (children[0]->length != length * dimension) {
    return Wrong(field, std::to_string(children[0]->length) + " items for " +
                            std::to_string(length) + " slots");
  }
  const int64_t nulls = layer.validity.null_count();
  out.data = arrow::ArrayData::Make(ReadType(field), length, {layer.validity.Finish()},
                                    std::move(children), nulls);
  ++out.next;
  return out;
}

// True when a blob lies at or below `field`.
bool HoldsBlobs(const Field& field) {
  if (IsBlobV1(field)) return true;
  if (field.owns_column()) return false;
  for (const Field& child : field.children) {
    if (HoldsBlobs(child)) return true;
  }
  return false;
}

}  // namespace

bool IsBlobV1(const Field& field) {
  return field.is_blob() && field.logical_type != "struct";
}

const std::shared_ptr<arrow::DataType>& BlobDescriptorType() {
  static const std::shared_ptr<arrow::DataType> type = arrow::struct_(
      {arrow::field("position", arrow::uint64()), arrow::field("size", arrow::uint64())});
  return type;
}

std::shared_ptr<arrow::DataType> ReadType(const Field& field) {
  if (!HoldsBlobs(field)) return field.type;
  if (IsBlobV1(field)) return BlobDescriptorType();
  std::vector<std::shared_ptr<arrow::Field>> members;
  for (const Field& child : field.children) {
    members.push_back(child.ToArrow()->WithType(ReadType(child)));
  }
  switch (field.type->id()) {
    case arrow::Type::STRUCT:
      return arrow::struct_(members);
    case arrow::Type::LIST:
      return arrow::list(members[0]);
    case arrow::Type::LARGE_LIST:
      return arrow::large_list(members[0]);
    case arrow::Type::FIXED_SIZE_LIST:
      return arrow::fixed_size_list(
          members[0],
          static_cast<const arrow::FixedSizeListType&>(*field.type).list_size());
    default:
      return std::make_shared<arrow::MapType>(members[0]);
  }
}

Result<std::shared_ptr<arrow::ArrayData>> AssembleField(const Field& field,
                                                        std::span<const ValueRange> rows,
                                                        int64_t num_rows,
                                                        const LeafLookup& lookup) {
  GLAIVE_ASSIGN_OR_RETURN(Built built, Assembler(rows, num_rows, lookup).Build(field));
  return std::move(built.data);
}

}  // namespace glaive::file
