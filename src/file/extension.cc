#include "file/extension.h"

#include <utility>
#include <vector>

#include <arrow/array/array_base.h>
#include <arrow/array/data.h>
#include <arrow/array/util.h>
#include <arrow/extension_type.h>
#include <arrow/type.h>
#include <arrow/util/key_value_metadata.h>

namespace glaive::file {
namespace {

std::shared_ptr<arrow::DataType> StorageType(
    const std::shared_ptr<arrow::DataType>& type) {
  switch (type->id()) {
    case arrow::Type::EXTENSION:
      return StorageType(static_cast<const arrow::ExtensionType&>(*type).storage_type());
    case arrow::Type::LIST:
      return arrow::list(StorageField(type->field(0)));
    case arrow::Type::LARGE_LIST:
      return arrow::large_list(StorageField(type->field(0)));
    case arrow::Type::FIXED_SIZE_LIST:
      return arrow::fixed_size_list(
          StorageField(type->field(0)),
          static_cast<const arrow::FixedSizeListType&>(*type).list_size());
    case arrow::Type::MAP: {
      auto made =
          arrow::MapType::Make(StorageField(type->field(0)),
                               static_cast<const arrow::MapType&>(*type).keys_sorted());
      return made.ok() ? *made : type;
    }
    case arrow::Type::STRUCT: {
      std::vector<std::shared_ptr<arrow::Field>> fields;
      for (const auto& field : type->fields()) fields.push_back(StorageField(field));
      return arrow::struct_(std::move(fields));
    }
    default:
      return type;
  }
}

std::shared_ptr<arrow::ArrayData> StorageData(
    const std::shared_ptr<arrow::ArrayData>& data,
    const std::shared_ptr<arrow::DataType>& type) {
  auto out = data->Copy();
  out->type = type;
  for (size_t i = 0;
       i < out->child_data.size() && static_cast<int>(i) < type->num_fields(); ++i) {
    out->child_data[i] =
        StorageData(out->child_data[i], type->field(static_cast<int>(i))->type());
  }
  return out;
}

}  // namespace

std::shared_ptr<arrow::Field> StorageField(const std::shared_ptr<arrow::Field>& field) {
  if (!HasExtension(*field->type())) return field;
  auto out = field->WithType(StorageType(field->type()));
  if (field->type()->id() != arrow::Type::EXTENSION) return out;
  const auto& extension = static_cast<const arrow::ExtensionType&>(*field->type());
  auto metadata = field->metadata() ? field->metadata()->Copy()
                                    : std::make_shared<arrow::KeyValueMetadata>();
  // Appending cannot fail; Set replaces a stale key.
  (void)metadata->Set(kExtensionNameKey, extension.extension_name());
  (void)metadata->Set(kExtensionMetadataKey, extension.Serialize());
  return out->WithMetadata(std::move(metadata));
}

bool HasExtension(const arrow::DataType& type) {
  if (type.id() == arrow::Type::EXTENSION) return true;
  for (const auto& field : type.fields()) {
    if (HasExtension(*field->type())) return true;
  }
  return false;
}

Result<std::shared_ptr<arrow::Array>> StorageArray(
    const std::shared_ptr<arrow::Array>& array) {
  if (!HasExtension(*array->type())) return array;
  return arrow::MakeArray(StorageData(array->data(), StorageType(array->type())));
}

}  // namespace glaive::file
