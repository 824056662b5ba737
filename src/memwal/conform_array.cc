#include "memwal/conform_array.h"

#include <charconv>
#include <string>

#include <arrow/array.h>
#include <arrow/type.h>
#include <arrow/util/key_value_metadata.h>

#include "expr/type_name.h"
#include "file/write_cast.h"

namespace glaive::memwal {
namespace {

using ArrayDataPtr = std::shared_ptr<arrow::ArrayData>;

bool IsNested(arrow::Type::type id) {
  return id == arrow::Type::STRUCT || id == arrow::Type::LIST ||
         id == arrow::Type::LARGE_LIST || id == arrow::Type::FIXED_SIZE_LIST ||
         id == arrow::Type::MAP;
}

// The member of `from` that `to` means, or -1.
int FindMember(const arrow::DataType& from, const file::Field& to) {
  int by_name = -1;
  for (int i = 0; i < from.num_fields(); ++i) {
    const auto id = FieldIdOf(*from.field(i));
    if (id && *id == to.id) return i;
    if (!id && by_name < 0 && from.field(i)->name() == to.name) by_name = i;
  }
  return by_name;
}

Result<ArrayDataPtr> ConformStruct(const ArrayDataPtr& data, const arrow::DataType& from,
                                   const file::Field& to, MatchMembers match) {
  ArrayDataPtr out = data->Copy();
  out->type = to.type;
  out->child_data.clear();
  for (size_t i = 0; i < to.children.size(); ++i) {
    const file::Field& child = to.children[i];
    const int member =
        match == MatchMembers::kExactly ? static_cast<int>(i) : FindMember(from, child);
    if (member >= 0) {
      GLAIVE_ASSIGN_OR_RETURN(auto conformed,
                              ConformArray(data->child_data[static_cast<size_t>(member)],
                                           *from.field(member), child, match));
      out->child_data.push_back(std::move(conformed));
      continue;
    }
    if (!child.nullable) {
      return InvalidInput("member '", child.name, "' is missing and must not be null");
    }
    GLAIVE_ASSIGN_OR_RETURN(
        const auto nulls,
        arrow::MakeArrayOfNull(child.type, data->offset + data->length));
    out->child_data.push_back(nulls->data());
  }
  return out;
}

}  // namespace

std::optional<int32_t> FieldIdOf(const arrow::Field& field) {
  if (!field.HasMetadata()) return std::nullopt;
  const auto found = field.metadata()->Get(kFieldIdKey);
  if (!found.ok()) return std::nullopt;
  int32_t id = 0;
  const char* end = found->data() + found->size();
  const auto [stop, error] = std::from_chars(found->data(), end, id);
  if (error != std::errc() || stop != end) return std::nullopt;
  return id;
}

bool SameShape(const arrow::DataType& a, const arrow::DataType& b, MatchMembers match) {
  if (a.id() != b.id()) return false;
  if (!IsNested(a.id())) return a.Equals(b, /*check_metadata=*/false);
  if (a.id() == arrow::Type::FIXED_SIZE_LIST &&
      static_cast<const arrow::FixedSizeListType&>(a).list_size() !=
          static_cast<const arrow::FixedSizeListType&>(b).list_size()) {
    return false;
  }
  const bool is_struct = a.id() == arrow::Type::STRUCT;
  if (is_struct && match == MatchMembers::kById) return true;
  if (a.num_fields() != b.num_fields()) return false;
  for (int i = 0; i < a.num_fields(); ++i) {
    if (is_struct && a.field(i)->name() != b.field(i)->name()) return false;
    if (!SameShape(*a.field(i)->type(), *b.field(i)->type(), match)) return false;
  }
  return true;
}

Result<ArrayDataPtr> ConformArray(const ArrayDataPtr& data, const arrow::Field& from,
                                  const file::Field& to, MatchMembers match) {
  const arrow::DataType& type = *from.type();
  if (!SameShape(type, *to.type, match)) {
    return SchemaMismatch("column types must match schema types, expected ",
                          expr::TypeName(*to.type), " but found ", expr::TypeName(type));
  }
  if (to.children.empty() || !IsNested(type.id())) {
    if (data->type->Equals(*to.type, /*check_metadata=*/true)) return data;
    ArrayDataPtr out = data->Copy();
    out->type = to.type;
    return out;
  }
  if (type.id() == arrow::Type::STRUCT) return ConformStruct(data, type, to, match);
  // Lists, and maps, whose entries are a struct.
  ArrayDataPtr out = data->Copy();
  out->type = to.type;
  const file::Field& item = to.children[0];
  const arrow::Field& from_item = *type.field(0);
  if (type.id() != arrow::Type::MAP) {
    GLAIVE_ASSIGN_OR_RETURN(out->child_data[0],
                            ConformArray(data->child_data[0], from_item, item, match));
    return out;
  }
  // Entries of maps carry no id; their members are key and value by position.
  if (item.children.size() != 2) return InternalError("a map without key and value");
  ArrayDataPtr entries = data->child_data[0]->Copy();
  entries->type = item.type;
  for (size_t i = 0; i < 2; ++i) {
    GLAIVE_ASSIGN_OR_RETURN(entries->child_data[i],
                            ConformArray(entries->child_data[i],
                                         *from_item.type()->field(static_cast<int>(i)),
                                         item.children[i], match));
  }
  out->child_data[0] = std::move(entries);
  return out;
}

}  // namespace glaive::memwal
