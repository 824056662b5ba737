#include "file/write_cast.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include <arrow/array.h>
#include <arrow/builder.h>
#include <arrow/type.h>
#include <arrow/util/align_util.h>
#include <arrow/util/bit_util.h>
#include <arrow/util/bitmap_ops.h>

#include "file/extension.h"

namespace glaive::file {
namespace {

using ArrayDataPtr = std::shared_ptr<arrow::ArrayData>;

Result<ArrayDataPtr> Cast(const std::shared_ptr<arrow::DataType>& want, ArrayDataPtr in,
                          const std::string& path);

Status Mismatch(const std::string& path, const arrow::DataType& want,
                const arrow::DataType& got) {
  return SchemaMismatch("column '", path, "' has type ", want.ToString(),
                        " but the data has type ", got.ToString());
}

bool IsText(arrow::Type::type id) {
  return id == arrow::Type::STRING || id == arrow::Type::LARGE_STRING ||
         id == arrow::Type::STRING_VIEW;
}

bool IsBytes(arrow::Type::type id) {
  return id == arrow::Type::BINARY || id == arrow::Type::LARGE_BINARY ||
         id == arrow::Type::BINARY_VIEW;
}

bool IsList(arrow::Type::type id) {
  return id == arrow::Type::LIST || id == arrow::Type::LARGE_LIST;
}

// Offsets of another width. The buffer begins with the offset of the first row.
template <typename From, typename To>
Result<std::shared_ptr<arrow::Buffer>> CastOffsets(const arrow::ArrayData& in,
                                                   const std::string& path) {
  GLAIVE_ASSIGN_OR_RETURN(auto out, arrow::AllocateBuffer((in.length + 1) * sizeof(To)));
  To* to = reinterpret_cast<To*>(out->mutable_data());
  if (in.length == 0) {
    to[0] = 0;
    return std::shared_ptr<arrow::Buffer>(std::move(out));
  }
  const From* from = in.GetValues<From>(1);
  if (from[in.length] > static_cast<From>(std::numeric_limits<To>::max())) {
    return SchemaMismatch("column '", path,
                          "' holds more than 2 GiB in one batch, too much for its type; "
                          "write smaller batches");
  }
  for (int64_t i = 0; i <= in.length; ++i) to[i] = static_cast<To>(from[i]);
  return std::shared_ptr<arrow::Buffer>(std::move(out));
}

Result<std::shared_ptr<arrow::Buffer>> AlignedValidity(const arrow::ArrayData& in) {
  if (in.buffers[0] == nullptr || in.offset == 0) return in.buffers[0];
  return arrow::internal::CopyBitmap(arrow::default_memory_pool(), in.buffers[0]->data(),
                                     in.offset, in.length);
}

// `in` with offsets of another width (strings, bytes or lists), its other buffers shared.
Result<ArrayDataPtr> WithOffsetWidth(const std::shared_ptr<arrow::DataType>& want,
                                     bool want_large, const arrow::ArrayData& in,
                                     const std::string& path) {
  auto out = in.Copy();
  out->type = want;
  GLAIVE_ASSIGN_OR_RETURN(out->buffers[0], AlignedValidity(in));
  if (want_large) {
    GLAIVE_ASSIGN_OR_RETURN(out->buffers[1], (CastOffsets<int32_t, int64_t>(in, path)));
  } else {
    GLAIVE_ASSIGN_OR_RETURN(out->buffers[1], (CastOffsets<int64_t, int32_t>(in, path)));
  }
  out->offset = 0;
  return out;
}

template <typename Builder>
Result<ArrayDataPtr> FromViewWith(const ArrayDataPtr& in, const std::string& path) {
  const arrow::BinaryViewArray views(in);
  Builder builder;
  GLAIVE_RETURN_NOT_OK(builder.Reserve(views.length()));
  for (int64_t i = 0; i < views.length(); ++i) {
    Status status =
        views.IsNull(i) ? builder.AppendNull() : builder.Append(views.GetView(i));
    if (!status.ok()) return WithContext(status, "column '" + path + "'");
  }
  GLAIVE_ASSIGN_OR_RETURN(auto out, builder.Finish());
  return out->data();
}

Result<ArrayDataPtr> FromView(const std::shared_ptr<arrow::DataType>& want,
                              const ArrayDataPtr& in, const std::string& path) {
  switch (want->id()) {
    case arrow::Type::STRING:
      return FromViewWith<arrow::StringBuilder>(in, path);
    case arrow::Type::LARGE_STRING:
      return FromViewWith<arrow::LargeStringBuilder>(in, path);
    case arrow::Type::BINARY:
      return FromViewWith<arrow::BinaryBuilder>(in, path);
    default:
      return FromViewWith<arrow::LargeBinaryBuilder>(in, path);
  }
}

Result<ArrayDataPtr> CastVariable(const std::shared_ptr<arrow::DataType>& want,
                                  const ArrayDataPtr& in, const std::string& path) {
  const arrow::Type::type id = in->type->id();
  if (id == arrow::Type::STRING_VIEW || id == arrow::Type::BINARY_VIEW) {
    ArrayDataPtr views = in;
    if (id == arrow::Type::STRING_VIEW) {  // the same layout
      views = in->Copy();
      views->type = arrow::binary_view();
    }
    return FromView(want, views, path);
  }
  const bool large =
      want->id() == arrow::Type::LARGE_STRING || want->id() == arrow::Type::LARGE_BINARY;
  return WithOffsetWidth(want, large, *in, path);
}

// Index of every row as int64, -1 for nulls.
template <typename T>
void ReadIndicesOf(const arrow::ArrayData& in, std::vector<int64_t>* out) {
  const T* values = in.GetValues<T>(1);
  const uint8_t* valid = in.buffers[0] ? in.buffers[0]->data() : nullptr;
  for (int64_t i = 0; i < in.length; ++i) {
    const bool ok = valid == nullptr || arrow::bit_util::GetBit(valid, in.offset + i);
    (*out)[static_cast<size_t>(i)] = ok ? static_cast<int64_t>(values[i]) : -1;
  }
}

Status ReadIndices(const arrow::DataType& index_type, const arrow::ArrayData& in,
                   std::vector<int64_t>* out) {
  out->resize(static_cast<size_t>(in.length));
  switch (index_type.id()) {
    case arrow::Type::INT8:
      ReadIndicesOf<int8_t>(in, out);
      break;
    case arrow::Type::UINT8:
      ReadIndicesOf<uint8_t>(in, out);
      break;
    case arrow::Type::INT16:
      ReadIndicesOf<int16_t>(in, out);
      break;
    case arrow::Type::UINT16:
      ReadIndicesOf<uint16_t>(in, out);
      break;
    case arrow::Type::INT32:
      ReadIndicesOf<int32_t>(in, out);
      break;
    case arrow::Type::UINT32:
      ReadIndicesOf<uint32_t>(in, out);
      break;
    default:
      ReadIndicesOf<int64_t>(in, out);
  }
  return Status::OK();
}

template <typename T>
Result<ArrayDataPtr> WriteIndicesOf(const std::shared_ptr<arrow::DataType>& type,
                                    const std::vector<int64_t>& indices,
                                    const std::string& path) {
  const int64_t count = static_cast<int64_t>(indices.size());
  GLAIVE_ASSIGN_OR_RETURN(auto values, arrow::AllocateBuffer(count * sizeof(T)));
  GLAIVE_ASSIGN_OR_RETURN(auto valid, arrow::AllocateEmptyBitmap(count));
  T* to = reinterpret_cast<T*>(values->mutable_data());
  int64_t nulls = 0;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t index = indices[static_cast<size_t>(i)];
    if (index > 0 && static_cast<uint64_t>(index) >
                         static_cast<uint64_t>(std::numeric_limits<T>::max())) {
      return SchemaMismatch("column '", path, "': dictionary index ", index,
                            " does not fit ", type->ToString());
    }
    to[i] = static_cast<T>(std::max<int64_t>(index, 0));
    if (index < 0) {
      ++nulls;
    } else {
      arrow::bit_util::SetBit(valid->mutable_data(), i);
    }
  }
  std::shared_ptr<arrow::Buffer> validity;
  if (nulls > 0) validity = std::move(valid);
  return arrow::ArrayData::Make(type, count, {validity, std::move(values)}, nulls);
}

Result<ArrayDataPtr> WriteIndices(const std::shared_ptr<arrow::DataType>& type,
                                  const arrow::DataType& index_type,
                                  const std::vector<int64_t>& indices,
                                  const std::string& path) {
  switch (index_type.id()) {
    case arrow::Type::INT8:
      return WriteIndicesOf<int8_t>(type, indices, path);
    case arrow::Type::UINT8:
      return WriteIndicesOf<uint8_t>(type, indices, path);
    case arrow::Type::INT16:
      return WriteIndicesOf<int16_t>(type, indices, path);
    case arrow::Type::UINT16:
      return WriteIndicesOf<uint16_t>(type, indices, path);
    case arrow::Type::INT32:
      return WriteIndicesOf<int32_t>(type, indices, path);
    case arrow::Type::UINT32:
      return WriteIndicesOf<uint32_t>(type, indices, path);
    case arrow::Type::UINT64:
      return WriteIndicesOf<uint64_t>(type, indices, path);
    default:
      return WriteIndicesOf<int64_t>(type, indices, path);
  }
}

// Items without the null ones, and where each old item went (-1: it was null).
Result<ArrayDataPtr> DropNullItems(const ArrayDataPtr& items,
                                   std::vector<int64_t>* moved) {
  const auto array = arrow::MakeArray(items);
  std::unique_ptr<arrow::ArrayBuilder> builder;
  GLAIVE_RETURN_NOT_OK(
      arrow::MakeBuilder(arrow::default_memory_pool(), items->type, &builder));
  const arrow::ArraySpan span(*items);
  int64_t kept = 0;
  for (int64_t i = 0; i < items->length; ++i) {
    const bool null = array->IsNull(i);
    moved->push_back(null ? -1 : kept++);
    if (!null) GLAIVE_RETURN_NOT_OK(builder->AppendArraySlice(span, i, 1));
  }
  GLAIVE_ASSIGN_OR_RETURN(auto out, builder->Finish());
  return out->data();
}

Result<ArrayDataPtr> CastDictionary(const std::shared_ptr<arrow::DataType>& want,
                                    const ArrayDataPtr& in, const std::string& path) {
  if (in->type->id() != arrow::Type::DICTIONARY) return Mismatch(path, *want, *in->type);
  const auto& to = static_cast<const arrow::DictionaryType&>(*want);
  const auto& from = static_cast<const arrow::DictionaryType&>(*in->type);
  GLAIVE_ASSIGN_OR_RETURN(ArrayDataPtr items,
                          Cast(to.value_type(), in->dictionary, path));
  const bool null_items = items->GetNullCount() > 0;
  if (!null_items && from.index_type()->Equals(to.index_type())) {
    if (items == in->dictionary && want->Equals(in->type)) return in;
    auto out = in->Copy();
    out->type = want;
    out->dictionary = std::move(items);
    return out;
  }
  std::vector<int64_t> indices;
  GLAIVE_RETURN_NOT_OK(ReadIndices(*from.index_type(), *in, &indices));
  if (null_items) {
    std::vector<int64_t> moved;
    GLAIVE_ASSIGN_OR_RETURN(items, DropNullItems(items, &moved));
    for (int64_t& index : indices) {
      if (index < 0) continue;
      if (index >= static_cast<int64_t>(moved.size())) {
        return InvalidInput("column '", path, "': dictionary index ", index,
                            " lies outside the dictionary of ", moved.size(), " items");
      }
      index = moved[static_cast<size_t>(index)];
    }
  }
  GLAIVE_ASSIGN_OR_RETURN(ArrayDataPtr out,
                          WriteIndices(want, *to.index_type(), indices, path));
  out->dictionary = std::move(items);
  return out;
}

Result<ArrayDataPtr> CastStruct(const std::shared_ptr<arrow::DataType>& want,
                                const ArrayDataPtr& in, const std::string& path) {
  const auto& to = static_cast<const arrow::StructType&>(*want);
  const auto& from = static_cast<const arrow::StructType&>(*in->type);
  if (from.num_fields() > to.num_fields()) {
    for (const auto& member : from.fields()) {
      if (to.GetFieldIndex(member->name()) < 0) {
        return SchemaMismatch("column '", path, "' has no member '", member->name(), "'");
      }
    }
  }
  std::vector<ArrayDataPtr> children;
  bool same = from.num_fields() == to.num_fields();
  for (int i = 0; i < to.num_fields(); ++i) {
    const std::string& name = to.field(i)->name();
    const int at = from.GetFieldIndex(name);
    if (at < 0) {
      return SchemaMismatch("column '", path, ".", name, "' is missing in the data");
    }
    const ArrayDataPtr& child = in->child_data[static_cast<size_t>(at)];
    GLAIVE_ASSIGN_OR_RETURN(ArrayDataPtr cast,
                            Cast(to.field(i)->type(), child, path + "." + name));
    same = same && at == i && cast == child;
    children.push_back(std::move(cast));
  }
  if (same) return in;
  auto out = in->Copy();
  out->type = want;
  out->child_data = std::move(children);
  return out;
}

// Shares everything but the type and the first child.
ArrayDataPtr WithChild(const std::shared_ptr<arrow::DataType>& want,
                       const ArrayDataPtr& in, ArrayDataPtr child) {
  if (child == in->child_data[0]) return in;
  auto out = in->Copy();
  out->type = want;
  out->child_data[0] = std::move(child);
  return out;
}

// Entries of maps are matched by position: their names differ between producers.
Result<ArrayDataPtr> CastMap(const std::shared_ptr<arrow::DataType>& want,
                             const ArrayDataPtr& in, const std::string& path) {
  if (in->type->id() != arrow::Type::MAP) return Mismatch(path, *want, *in->type);
  const auto& to = static_cast<const arrow::MapType&>(*want);
  const ArrayDataPtr& entries = in->child_data[0];
  auto out = entries->Copy();
  out->type = to.value_type();
  const std::shared_ptr<arrow::DataType> types[] = {to.key_type(), to.item_type()};
  const char* const names[] = {".key", ".value"};
  for (size_t i = 0; i < 2; ++i) {
    GLAIVE_ASSIGN_OR_RETURN(out->child_data[i],
                            Cast(types[i], entries->child_data[i], path + names[i]));
  }
  auto map = in->Copy();
  map->type = want;
  map->child_data[0] = std::move(out);
  return map;
}

Result<ArrayDataPtr> Cast(const std::shared_ptr<arrow::DataType>& want, ArrayDataPtr in,
                          const std::string& path) {
  const arrow::Type::type to = want->id();
  const arrow::Type::type from = in->type->id();
  if (to == arrow::Type::DICTIONARY) return CastDictionary(want, in, path);
  if (to == arrow::Type::MAP) return CastMap(want, in, path);
  if (to == arrow::Type::STRUCT && from == to) return CastStruct(want, in, path);
  if (IsList(to) && IsList(from)) {
    GLAIVE_ASSIGN_OR_RETURN(ArrayDataPtr child,
                            Cast(want->field(0)->type(), in->child_data[0],
                                 path + "." + want->field(0)->name()));
    if (to == from) return WithChild(want, in, std::move(child));
    GLAIVE_ASSIGN_OR_RETURN(
        auto out, WithOffsetWidth(want, to == arrow::Type::LARGE_LIST, *in, path));
    out->child_data[0] = std::move(child);
    return out;
  }
  if (to == arrow::Type::FIXED_SIZE_LIST && from == to) {
    const auto& list = static_cast<const arrow::FixedSizeListType&>(*want);
    if (static_cast<const arrow::FixedSizeListType&>(*in->type).list_size() !=
        list.list_size()) {
      return Mismatch(path, *want, *in->type);
    }
    GLAIVE_ASSIGN_OR_RETURN(ArrayDataPtr child,
                            Cast(list.value_type(), in->child_data[0], path + ".item"));
    return WithChild(want, in, std::move(child));
  }
  if ((IsText(to) && IsText(from)) || (IsBytes(to) && IsBytes(from))) {
    if (to == from) return in;
    return CastVariable(want, in, path);
  }
  if (!want->Equals(*in->type)) return Mismatch(path, *want, *in->type);
  return in;
}

bool Required(const arrow::DataType& type) {
  if (type.id() == arrow::Type::FIXED_SIZE_LIST &&
      type.field(0)->type()->id() != arrow::Type::STRUCT) {
    return false;  // items of vectors are always nullable
  }
  return std::any_of(type.fields().begin(), type.fields().end(), [](const auto& f) {
    return !f->nullable() || Required(*f->type());
  });
}

bool SlotIsNull(const arrow::ArrayData& data, int64_t i) {
  if (data.type->id() == arrow::Type::NA) return true;
  return data.buffers[0] != nullptr &&
         !arrow::bit_util::GetBit(data.buffers[0]->data(), data.offset + i);
}

Status ContainsNulls(const std::string& path) {
  return InvalidInput(
      "The field `", path,
      "` contained null values even though the field is marked non-null in "
      "the schema");
}

// `reachable`: per row of `data`, whether its ancestors are valid; empty means all.
Status Check(const arrow::DataType& type, bool nullable, const arrow::ArrayData& data,
             std::vector<uint8_t> reachable, const std::string& path) {
  const bool nulls =
      type.id() == arrow::Type::NA ? data.length > 0 : data.GetNullCount() > 0;
  if (!nullable && nulls) {
    for (int64_t i = 0; i < data.length; ++i) {
      const bool seen = reachable.empty() || reachable[static_cast<size_t>(i)];
      if (seen && SlotIsNull(data, i)) return ContainsNulls(path);
    }
  }
  if (!Required(type)) return Status::OK();
  if (nulls) {
    if (reachable.empty()) reachable.assign(static_cast<size_t>(data.length), 1);
    for (int64_t i = 0; i < data.length; ++i) {
      if (SlotIsNull(data, i)) reachable[static_cast<size_t>(i)] = 0;
    }
  }
  if (type.id() == arrow::Type::STRUCT) {
    for (int i = 0; i < type.num_fields(); ++i) {
      const auto child =
          data.child_data[static_cast<size_t>(i)]->Slice(data.offset, data.length);
      GLAIVE_RETURN_NOT_OK(Check(*type.field(i)->type(), type.field(i)->nullable(),
                                 *child, reachable, path + "." + type.field(i)->name()));
    }
    return Status::OK();
  }
  // Lists and fixed-size lists: rows of the child that belong to reachable, valid rows.
  const auto& item = type.field(0);
  const std::string item_path = path + "." + item->name();
  const arrow::ArrayData& child = *data.child_data[0];
  std::vector<uint8_t> below(static_cast<size_t>(child.length), 0);
  for (int64_t i = 0; i < data.length; ++i) {
    if (!reachable.empty() && !reachable[static_cast<size_t>(i)]) continue;
    int64_t first;
    int64_t last;
    if (type.id() == arrow::Type::FIXED_SIZE_LIST) {
      const int64_t size = static_cast<const arrow::FixedSizeListType&>(type).list_size();
      first = (data.offset + i) * size;
      last = first + size;
    } else if (type.id() == arrow::Type::LARGE_LIST) {
      first = data.GetValues<int64_t>(1)[i];
      last = data.GetValues<int64_t>(1)[i + 1];
    } else {
      first = data.GetValues<int32_t>(1)[i];
      last = data.GetValues<int32_t>(1)[i + 1];
    }
    std::fill(below.begin() + first, below.begin() + last, uint8_t{1});
  }
  return Check(*item->type(), item->nullable(), child, std::move(below), item_path);
}

}  // namespace

Result<ArrayDataPtr> CastForStorage(const Field& field,
                                    const std::shared_ptr<arrow::Array>& array) {
  std::shared_ptr<arrow::Array> storage = array;
  if (HasExtension(*array->type())) {
    GLAIVE_ASSIGN_OR_RETURN(storage, StorageArray(array));
  }
  GLAIVE_ASSIGN_OR_RETURN(ArrayDataPtr out,
                          Cast(field.type, storage->data(), field.name));
  if (!arrow::util::CheckAlignment(*out, arrow::util::kValueAlignment)) {
    GLAIVE_ASSIGN_OR_RETURN(
        out, arrow::util::EnsureAlignment(out, arrow::util::kValueAlignment,
                                          arrow::default_memory_pool()));
  }
  return out;
}

Status CheckNulls(const Field& field, const arrow::ArrayData& data) {
  return Check(*field.type, field.nullable, data, {}, field.name);
}

}  // namespace glaive::file
