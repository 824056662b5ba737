#include "file/json_columns.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <arrow/array/array_base.h>
#include <arrow/array/array_binary.h>
#include <arrow/array/builder_binary.h>
#include <arrow/array/util.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>
#include <arrow/util/key_value_metadata.h>

#include "encoding/jsonb.h"
#include "file/extension.h"

namespace glaive::file {
namespace {

constexpr char kUserName[] = "arrow.json";
constexpr char kStoredName[] = "lance.json";

enum class Direction { kToUser, kToStorage };

bool Named(const arrow::Field& field, std::string_view name) {
  if (!field.metadata()) return false;
  auto found = field.metadata()->Get(kExtensionNameKey);
  return found.ok() && *found == name;
}

bool Converts(const arrow::Field& field, Direction direction) {
  return Named(field, direction == Direction::kToUser ? kStoredName : kUserName);
}

bool AnyConverts(const arrow::Field& field, Direction direction) {
  if (Converts(field, direction)) return true;
  for (const auto& child : field.type()->fields()) {
    if (AnyConverts(*child, direction)) return true;
  }
  return false;
}

std::shared_ptr<arrow::Field> ConvertField(const std::shared_ptr<arrow::Field>& field,
                                           Direction direction);

std::shared_ptr<arrow::DataType> ConvertType(const arrow::DataType& type,
                                             Direction direction) {
  std::vector<std::shared_ptr<arrow::Field>> children;
  for (const auto& child : type.fields())
    children.push_back(ConvertField(child, direction));
  switch (type.id()) {
    case arrow::Type::LIST:
      return arrow::list(children[0]);
    case arrow::Type::LARGE_LIST:
      return arrow::large_list(children[0]);
    case arrow::Type::FIXED_SIZE_LIST:
      return arrow::fixed_size_list(
          children[0], static_cast<const arrow::FixedSizeListType&>(type).list_size());
    case arrow::Type::MAP:
      return std::make_shared<arrow::MapType>(children[0]);
    default:
      return arrow::struct_(std::move(children));
  }
}

std::shared_ptr<arrow::Field> ConvertField(const std::shared_ptr<arrow::Field>& field,
                                           Direction direction) {
  if (!AnyConverts(*field, direction)) return field;
  if (!Converts(*field, direction)) {
    return field->WithType(ConvertType(*field->type(), direction));
  }
  bool to_user = direction == Direction::kToUser;
  auto metadata = field->metadata()->Copy();
  (void)metadata->Set(kExtensionNameKey, to_user ? kUserName : kStoredName);
  (void)metadata->Set(kExtensionMetadataKey, "");
  return field->WithType(to_user ? arrow::utf8() : arrow::large_binary())
      ->WithMetadata(std::move(metadata));
}

// The bytes of value `i` of any array of strings or binaries.
class BytesView {
 public:
  static Result<BytesView> Make(const arrow::Array& array) {
    switch (array.type_id()) {
      case arrow::Type::STRING:
      case arrow::Type::BINARY:
      case arrow::Type::LARGE_STRING:
      case arrow::Type::LARGE_BINARY:
      case arrow::Type::STRING_VIEW:
      case arrow::Type::BINARY_VIEW:
        return BytesView(array);
      default:
        return InvalidInput("JSON needs text, got ", array.type()->ToString());
    }
  }
  std::string_view operator()(int64_t i) const {
    switch (array_->type_id()) {
      case arrow::Type::STRING:
      case arrow::Type::BINARY:
        return static_cast<const arrow::BinaryArray&>(*array_).GetView(i);
      case arrow::Type::STRING_VIEW:
      case arrow::Type::BINARY_VIEW:
        return static_cast<const arrow::BinaryViewArray&>(*array_).GetView(i);
      default:
        return static_cast<const arrow::LargeBinaryArray&>(*array_).GetView(i);
    }
  }

 private:
  explicit BytesView(const arrow::Array& array) : array_(&array) {}
  const arrow::Array* array_;
};

template <typename Builder>
Result<std::shared_ptr<arrow::Array>> ConvertValues(const arrow::Array& array,
                                                    Status (*convert)(std::string_view,
                                                                      std::string*)) {
  GLAIVE_ASSIGN_OR_RETURN(auto bytes, BytesView::Make(array));
  Builder builder;
  GLAIVE_RETURN_NOT_OK(builder.Reserve(array.length()));
  std::string value;
  for (int64_t i = 0; i < array.length(); ++i) {
    if (array.IsNull(i)) {
      GLAIVE_RETURN_NOT_OK(builder.AppendNull());
      continue;
    }
    value.clear();
    GLAIVE_RETURN_NOT_OK(convert(bytes(i), &value));
    GLAIVE_RETURN_NOT_OK(builder.Append(value));
  }
  return builder.Finish();
}

Result<std::shared_ptr<arrow::Array>> ConvertArray(
    const std::shared_ptr<arrow::Array>& array, const arrow::Field& field,
    Direction direction) {
  if (!AnyConverts(field, direction)) return array;
  if (Converts(field, direction)) {
    return direction == Direction::kToUser
               ? ConvertValues<arrow::StringBuilder>(*array, encoding::JsonbToJson)
               : ConvertValues<arrow::LargeBinaryBuilder>(*array, encoding::JsonToJsonb);
  }
  auto data = array->data()->Copy();
  data->type = ConvertType(*field.type(), direction);
  for (size_t i = 0; i < data->child_data.size(); ++i) {
    auto child = arrow::MakeArray(data->child_data[i]);
    GLAIVE_ASSIGN_OR_RETURN(
        auto converted,
        ConvertArray(child, *field.type()->field(static_cast<int>(i)), direction));
    data->child_data[i] = converted->data();
  }
  return arrow::MakeArray(data);
}

std::shared_ptr<arrow::Schema> ConvertSchema(const std::shared_ptr<arrow::Schema>& schema,
                                             Direction direction) {
  std::vector<std::shared_ptr<arrow::Field>> fields;
  bool changed = false;
  for (const auto& field : schema->fields()) {
    auto stored = direction == Direction::kToStorage ? StorageField(field) : field;
    fields.push_back(ConvertField(stored, direction));
    changed |= fields.back() != field;
  }
  return changed ? arrow::schema(std::move(fields), schema->metadata()) : schema;
}

Result<std::shared_ptr<arrow::RecordBatch>> ConvertBatch(
    const std::shared_ptr<arrow::RecordBatch>& batch, Direction direction) {
  std::vector<std::shared_ptr<arrow::Array>> columns;
  std::vector<std::shared_ptr<arrow::Field>> fields;
  bool changed = false;
  for (int i = 0; i < batch->num_columns(); ++i) {
    auto field = StorageField(batch->schema()->field(i));
    if (!AnyConverts(*field, direction)) {
      columns.push_back(batch->column(i));
      fields.push_back(batch->schema()->field(i));
      continue;
    }
    GLAIVE_ASSIGN_OR_RETURN(auto storage, StorageArray(batch->column(i)));
    auto converted = ConvertArray(storage, *field, direction);
    if (!converted.ok()) {
      return WithContext(converted.status(), "column '" + field->name() + "'");
    }
    columns.push_back(*std::move(converted));
    fields.push_back(ConvertField(field, direction));
    changed = true;
  }
  if (!changed) return batch;
  return arrow::RecordBatch::Make(
      arrow::schema(std::move(fields), batch->schema()->metadata()), batch->num_rows(),
      std::move(columns));
}

}  // namespace

bool HasJson(const arrow::Schema& schema) {
  for (const auto& field : schema.fields()) {
    auto storage = StorageField(field);
    if (AnyConverts(*storage, Direction::kToUser) ||
        AnyConverts(*storage, Direction::kToStorage)) {
      return true;
    }
  }
  return false;
}

std::shared_ptr<arrow::Schema> JsonToUser(const std::shared_ptr<arrow::Schema>& schema) {
  return ConvertSchema(schema, Direction::kToUser);
}

std::shared_ptr<arrow::Schema> JsonToStorage(
    const std::shared_ptr<arrow::Schema>& schema) {
  return ConvertSchema(schema, Direction::kToStorage);
}

Result<std::shared_ptr<arrow::RecordBatch>> JsonToUser(
    const std::shared_ptr<arrow::RecordBatch>& batch) {
  return ConvertBatch(batch, Direction::kToUser);
}

Result<std::shared_ptr<arrow::RecordBatch>> JsonToStorage(
    const std::shared_ptr<arrow::RecordBatch>& batch) {
  return ConvertBatch(batch, Direction::kToStorage);
}

bool HasStoredJson(const arrow::Field& stored) {
  return AnyConverts(stored, Direction::kToUser);
}

Result<std::shared_ptr<arrow::Array>> JsonToUser(
    const std::shared_ptr<arrow::Array>& array, const arrow::Field& stored) {
  auto converted = ConvertArray(array, stored, Direction::kToUser);
  if (!converted.ok()) {
    return WithContext(converted.status(), "column '" + stored.name() + "'");
  }
  return converted;
}

}  // namespace glaive::file
