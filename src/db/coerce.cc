#include "db/coerce.h"

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <arrow/api.h>
#include <arrow/compute/api.h>
#include <arrow/util/bit_util.h>
#include <arrow/util/float16.h>

namespace glaive::db {
namespace {

using ArrayPtr = std::shared_ptr<arrow::Array>;

// The storage of extension arrays; views and storage-only differences are left to the
// file writer.
ArrayPtr StorageOf(const ArrayPtr& array) {
  if (array->type_id() != arrow::Type::EXTENSION) return array;
  return static_cast<const arrow::ExtensionArray&>(*array).storage();
}

bool IsListLike(const arrow::DataType& type) {
  switch (type.id()) {
    case arrow::Type::LIST:
    case arrow::Type::LARGE_LIST:
    case arrow::Type::FIXED_SIZE_LIST:
      return true;
    default:
      return false;
  }
}

Status CastError(const std::string& path, const std::string& what) {
  return SchemaMismatch("Cast error: column '", path, "': ", what);
}

Result<ArrayPtr> CoerceArray(const ArrayPtr& input, const arrow::Field& target,
                             const std::string& path, Fractions fractions);

// The buffer of validity bits aligned to offset 0, or null.
Result<std::shared_ptr<arrow::Buffer>> AlignedValidity(const arrow::Array& array) {
  if (array.null_count() == 0) return std::shared_ptr<arrow::Buffer>();
  if (array.offset() == 0) return array.null_bitmap();
  auto* pool = arrow::default_memory_pool();
  const int64_t bytes = arrow::bit_util::BytesForBits(array.length());
  GLAIVE_ASSIGN_OR_RETURN(auto bits, arrow::AllocateBuffer(bytes, pool));
  std::fill_n(bits->mutable_data(), bytes, uint8_t{0});
  for (int64_t i = 0; i < array.length(); ++i) {
    if (array.IsValid(i)) arrow::bit_util::SetBit(bits->mutable_data(), i);
  }
  return std::shared_ptr<arrow::Buffer>(std::move(bits));
}

Result<ArrayPtr> CoerceStruct(const ArrayPtr& input, const arrow::Field& target,
                              const std::string& path, Fractions fractions) {
  const auto& array = static_cast<const arrow::StructArray&>(*input);
  const auto& from = static_cast<const arrow::StructType&>(*array.type());
  const auto& to = static_cast<const arrow::StructType&>(*target.type());
  for (const auto& field : from.fields()) {
    if (to.GetFieldIndex(field->name()) < 0) {
      return InvalidInput("Invalid input, field '", path, ".", field->name(),
                          "' does not exist in table schema");
    }
  }
  std::vector<ArrayPtr> children;
  for (const auto& field : to.fields()) {
    const std::string child_path = path + "." + field->name();
    const int index = from.GetFieldIndex(field->name());
    if (index >= 0) {
      // Nulls below a null struct are no nulls of the member: the file writer tells them
      // apart.
      GLAIVE_ASSIGN_OR_RETURN(auto child,
                              CoerceArray(array.field(index), *field->WithNullable(true),
                                          child_path, fractions));
      children.push_back(std::move(child));
    } else if (field->nullable()) {
      GLAIVE_ASSIGN_OR_RETURN(auto child,
                              arrow::MakeArrayOfNull(field->type(), array.length()));
      children.push_back(std::move(child));
    } else {
      return SchemaMismatch(
          "Append with different schema: fields did not match, missing=[", child_path,
          "]; give the column values or make it nullable");
    }
  }
  GLAIVE_ASSIGN_OR_RETURN(auto validity, AlignedValidity(array));
  return std::make_shared<arrow::StructArray>(target.type(), array.length(),
                                              std::move(children), std::move(validity),
                                              array.null_count());
}

// The items that rows of a list array refer to, and offsets (one more than rows) into
// them.
struct ListParts {
  ArrayPtr values;
  std::vector<int64_t> offsets;
};

template <typename ListArrayType>
ListParts PartsOfVariable(const ListArrayType& array) {
  ListParts parts;
  const int64_t first = array.value_offset(0);
  parts.offsets.reserve(array.length() + 1);
  for (int64_t i = 0; i <= array.length(); ++i) {
    parts.offsets.push_back(static_cast<int64_t>(array.value_offset(i)) - first);
  }
  parts.values = array.values()->Slice(first, parts.offsets.back());
  return parts;
}

ListParts PartsOf(const arrow::Array& array) {
  switch (array.type_id()) {
    case arrow::Type::LIST:
      return PartsOfVariable(static_cast<const arrow::ListArray&>(array));
    case arrow::Type::LARGE_LIST:
      return PartsOfVariable(static_cast<const arrow::LargeListArray&>(array));
    default: {
      const auto& fixed = static_cast<const arrow::FixedSizeListArray&>(array);
      ListParts parts;
      const int64_t width = fixed.value_length();
      for (int64_t i = 0; i <= array.length(); ++i) parts.offsets.push_back(i * width);
      parts.values =
          fixed.values()->Slice((array.offset()) * width, array.length() * width);
      return parts;
    }
  }
}

// Items of the rows, exactly `width` per row; null rows get null items.
Result<ArrayPtr> FixedItems(const arrow::Array& array, const ListParts& parts,
                            int64_t width, const std::string& path) {
  bool dense = true;
  for (int64_t i = 0; i < array.length(); ++i) {
    const int64_t length = parts.offsets[i + 1] - parts.offsets[i];
    if (array.IsValid(i) && length != width) {
      return CastError(path, "cannot cast to FixedSizeListType of size " +
                                 std::to_string(width) + ": the value at index " +
                                 std::to_string(i) + " has length " +
                                 std::to_string(length));
    }
    dense = dense && length == width;
  }
  if (dense) return parts.values;
  arrow::Int64Builder indices;
  GLAIVE_RETURN_NOT_OK(indices.Reserve(array.length() * width));
  for (int64_t i = 0; i < array.length(); ++i) {
    for (int64_t j = 0; j < width; ++j) {
      if (array.IsValid(i)) {
        indices.UnsafeAppend(parts.offsets[i] + j);
      } else {
        indices.UnsafeAppendNull();
      }
    }
  }
  GLAIVE_ASSIGN_OR_RETURN(auto picks, indices.Finish());
  GLAIVE_ASSIGN_OR_RETURN(auto taken, arrow::compute::Take(parts.values, picks));
  return taken.make_array();
}

template <typename Offset>
Result<std::shared_ptr<arrow::Buffer>> OffsetBuffer(const std::vector<int64_t>& offsets,
                                                    const std::string& path) {
  if (offsets.back() > static_cast<int64_t>(std::numeric_limits<Offset>::max())) {
    return CastError(path,
                     "a batch holds more list items than the column's offsets can count; "
                     "pass smaller batches");
  }
  const int64_t bytes = static_cast<int64_t>(offsets.size() * sizeof(Offset));
  GLAIVE_ASSIGN_OR_RETURN(auto buffer, arrow::AllocateBuffer(bytes));
  auto* out = reinterpret_cast<Offset*>(buffer->mutable_data());
  for (size_t i = 0; i < offsets.size(); ++i) out[i] = static_cast<Offset>(offsets[i]);
  return std::shared_ptr<arrow::Buffer>(std::move(buffer));
}

Result<ArrayPtr> CoerceList(const ArrayPtr& input, const arrow::Field& target,
                            const std::string& path, Fractions fractions) {
  const arrow::Field& item = *target.type()->field(0);
  ListParts parts = PartsOf(*input);
  GLAIVE_ASSIGN_OR_RETURN(auto validity, AlignedValidity(*input));
  const std::string item_path = path + "." + item.name();
  const int64_t length = input->length();
  if (target.type()->id() == arrow::Type::FIXED_SIZE_LIST) {
    const auto& fixed = static_cast<const arrow::FixedSizeListType&>(*target.type());
    GLAIVE_ASSIGN_OR_RETURN(auto items,
                            FixedItems(*input, parts, fixed.list_size(), path));
    GLAIVE_ASSIGN_OR_RETURN(
        items, CoerceArray(items, *item.WithNullable(true), item_path, fractions));
    return std::make_shared<arrow::FixedSizeListArray>(
        target.type(), length, std::move(items), std::move(validity),
        input->null_count());
  }
  GLAIVE_ASSIGN_OR_RETURN(auto items,
                          CoerceArray(parts.values, item, item_path, fractions));
  if (target.type()->id() == arrow::Type::LIST) {
    GLAIVE_ASSIGN_OR_RETURN(auto offsets, OffsetBuffer<int32_t>(parts.offsets, path));
    return std::make_shared<arrow::ListArray>(target.type(), length, std::move(offsets),
                                              std::move(items), std::move(validity),
                                              input->null_count());
  }
  GLAIVE_ASSIGN_OR_RETURN(auto offsets, OffsetBuffer<int64_t>(parts.offsets, path));
  return std::make_shared<arrow::LargeListArray>(
      target.type(), length, std::move(offsets), std::move(items), std::move(validity),
      input->null_count());
}

Result<ArrayPtr> CastLeaf(const ArrayPtr& input,
                          const std::shared_ptr<arrow::DataType>& type,
                          const std::string& path, Fractions fractions) {
  arrow::Datum datum(input);
  // Fractions may be cut off, but what is out of the integer's range stays an error.
  if (fractions == Fractions::kCutOff && arrow::is_floating(input->type_id()) &&
      arrow::is_integer(type->id())) {
    if (input->type_id() == arrow::Type::HALF_FLOAT) {
      GLAIVE_ASSIGN_OR_RETURN(datum, arrow::compute::Cast(datum, arrow::float32()));
    }
    GLAIVE_ASSIGN_OR_RETURN(datum, arrow::compute::CallFunction("trunc", {datum}));
  }
  arrow::compute::CastOptions options = arrow::compute::CastOptions::Safe(type);
  options.allow_time_truncate = true;
  options.allow_decimal_truncate = true;
  auto cast = arrow::compute::Cast(datum, options);
  if (!cast.ok()) {
    const Status& error = cast.status();
    if (error.IsNotImplemented()) {
      return SchemaMismatch("Append with different schema: column '", path, "' has type ",
                            input->type()->ToString(), ", the table has ",
                            type->ToString());
    }
    if (error.IsOutOfMemory()) return error;
    return CastError(path, error.message());
  }
  return cast->make_array();
}

Status CheckNulls(const arrow::Array& array, const arrow::Field& target,
                  const std::string& path) {
  if (target.nullable() || array.null_count() == 0) return Status::OK();
  return InvalidInput(
      "Invalid input, The field `", path,
      "` contained null values even though the field is marked non-null in the "
      "schema");
}

// JSON text becomes the table's binary JSON in the file writer.
bool IsJson(const arrow::Field& field) {
  return field.metadata() && field.metadata()->Contains("ARROW:extension:name") &&
         *field.metadata()->Get("ARROW:extension:name") == "lance.json";
}

bool IsBlob(const arrow::Field& field) {
  return field.metadata() && field.metadata()->Contains("ARROW:extension:name") &&
         *field.metadata()->Get("ARROW:extension:name") == "lance.blob.v2";
}

// The member of a blob that plain values are meant for: bytes are contents, texts say
// where they lie. Null for other types.
const char* BlobMemberFor(const arrow::DataType& type) {
  switch (type.id()) {
    case arrow::Type::BINARY:
    case arrow::Type::LARGE_BINARY:
    case arrow::Type::BINARY_VIEW:
      return "data";
    case arrow::Type::STRING:
    case arrow::Type::LARGE_STRING:
    case arrow::Type::STRING_VIEW:
      return "uri";
    default:
      return nullptr;
  }
}

Result<ArrayPtr> WrapBlobs(const ArrayPtr& input, const arrow::Field& target,
                           const char* member, const std::string& path,
                           Fractions fractions) {
  std::vector<ArrayPtr> children;
  for (const auto& field : target.type()->fields()) {
    if (field->name() == member) {
      GLAIVE_ASSIGN_OR_RETURN(auto values,
                              CastLeaf(input, field->type(), path, fractions));
      children.push_back(std::move(values));
    } else {
      GLAIVE_ASSIGN_OR_RETURN(auto nulls,
                              arrow::MakeArrayOfNull(field->type(), input->length()));
      children.push_back(std::move(nulls));
    }
  }
  GLAIVE_ASSIGN_OR_RETURN(auto validity, AlignedValidity(*input));
  return std::make_shared<arrow::StructArray>(target.type(), input->length(),
                                              std::move(children), std::move(validity),
                                              input->null_count());
}

Result<ArrayPtr> CoerceArray(const ArrayPtr& given, const arrow::Field& target,
                             const std::string& path, Fractions fractions) {
  const arrow::DataType& to = *target.type();
  if (to.id() == arrow::Type::EXTENSION) {
    const auto& extension = static_cast<const arrow::ExtensionType&>(to);
    if (given->type()->Equals(to)) {
      GLAIVE_RETURN_NOT_OK(CheckNulls(*given, target, path));
      return given;
    }
    auto storage_field = target.WithType(extension.storage_type());
    GLAIVE_ASSIGN_OR_RETURN(
        auto storage, CoerceArray(StorageOf(given), *storage_field, path, fractions));
    return arrow::ExtensionType::WrapArray(target.type(), storage);
  }
  ArrayPtr input = StorageOf(given);
  GLAIVE_RETURN_NOT_OK(CheckNulls(*input, target, path));
  if (input->type()->Equals(to)) return input;
  if (input->type_id() == arrow::Type::NA) {
    return arrow::MakeArrayOfNull(target.type(), input->length());
  }
  if (to.id() == arrow::Type::STRUCT && input->type_id() == arrow::Type::STRUCT) {
    return CoerceStruct(input, target, path, fractions);
  }
  if (const char* member = BlobMemberFor(*input->type());
      member != nullptr && to.id() == arrow::Type::STRUCT && IsBlob(target)) {
    return WrapBlobs(input, target, member, path, fractions);
  }
  if (IsListLike(to) && IsListLike(*input->type()))
    return CoerceList(input, target, path, fractions);
  if (to.id() == arrow::Type::STRUCT || IsListLike(to) ||
      input->type_id() == arrow::Type::STRUCT) {
    return SchemaMismatch("Append with different schema: column '", path, "' has type ",
                          input->type()->ToString(), ", the table has ", to.ToString());
  }
  return CastLeaf(input, target.type(), path, fractions);
}

template <typename ArrayType, typename IsNan>
bool HasNan(const arrow::FixedSizeListArray& lists, IsNan is_nan) {
  const auto& values = static_cast<const ArrayType&>(*lists.values());
  const int64_t width = lists.value_length();
  const auto* raw = values.raw_values();
  for (int64_t i = 0; i < lists.length(); ++i) {
    if (lists.IsNull(i)) continue;
    const int64_t start = lists.value_offset(i);
    bool found = false;
    for (int64_t j = start; j < start + width; ++j) found |= is_nan(raw[j]);
    if (!found) continue;
    for (int64_t j = start; j < start + width; ++j) {
      if (values.IsValid(j) && is_nan(raw[j])) return true;
    }
  }
  return false;
}

Status RejectNan(const arrow::Array& array, const std::string& path) {
  if (array.type_id() != arrow::Type::FIXED_SIZE_LIST) return Status::OK();
  const auto& lists = static_cast<const arrow::FixedSizeListArray&>(array);
  bool nan = false;
  switch (lists.value_type()->id()) {
    case arrow::Type::FLOAT:
      nan = HasNan<arrow::FloatArray>(lists, [](float v) { return v != v; });
      break;
    case arrow::Type::DOUBLE:
      nan = HasNan<arrow::DoubleArray>(lists, [](double v) { return v != v; });
      break;
    case arrow::Type::HALF_FLOAT:
      nan = HasNan<arrow::HalfFloatArray>(
          lists, [](uint16_t v) { return (v & 0x7fff) > 0x7c00; });
      break;
    default:
      break;
  }
  if (!nan) return Status::OK();
  return InvalidInput("Vector column contains NaN values: column '", path,
                      "'; drop, fill or null them with on_bad_vectors");
}

class CoercingReader : public arrow::RecordBatchReader {
 public:
  CoercingReader(std::shared_ptr<arrow::RecordBatchReader> data,
                 std::shared_ptr<arrow::Schema> schema, std::vector<int> sources,
                 bool reject_nan, Fractions fractions)
      : data_(std::move(data)),
        schema_(std::move(schema)),
        sources_(std::move(sources)),
        reject_nan_(reject_nan),
        fractions_(fractions) {}

  std::shared_ptr<arrow::Schema> schema() const override { return schema_; }

  Status ReadNext(std::shared_ptr<arrow::RecordBatch>* out) override {
    std::shared_ptr<arrow::RecordBatch> batch;
    GLAIVE_RETURN_NOT_OK(data_->ReadNext(&batch));
    if (!batch) {
      out->reset();
      return Status::OK();
    }
    std::vector<ArrayPtr> columns;
    columns.reserve(sources_.size());
    for (size_t i = 0; i < sources_.size(); ++i) {
      const arrow::Field& field = *schema_->field(static_cast<int>(i));
      GLAIVE_ASSIGN_OR_RETURN(auto column, CoerceArray(batch->column(sources_[i]), field,
                                                       field.name(), fractions_));
      if (reject_nan_) GLAIVE_RETURN_NOT_OK(RejectNan(*StorageOf(column), field.name()));
      columns.push_back(std::move(column));
    }
    *out = arrow::RecordBatch::Make(schema_, batch->num_rows(), std::move(columns));
    return Status::OK();
  }

  Status Close() override { return data_->Close(); }

 private:
  std::shared_ptr<arrow::RecordBatchReader> data_;
  std::shared_ptr<arrow::Schema> schema_;
  std::vector<int> sources_;  // column of `data_` for each field of `schema_`
  bool reject_nan_;
  Fractions fractions_;
};

}  // namespace

Result<std::shared_ptr<arrow::RecordBatchReader>> CoerceToSchema(
    std::shared_ptr<arrow::RecordBatchReader> data, std::shared_ptr<arrow::Schema> target,
    bool reject_nan, Fractions fractions) {
  const auto given = data->schema();
  for (const auto& field : given->fields()) {
    if (target->GetFieldIndex(field->name()) < 0) {
      return InvalidInput("Invalid input, field '", field->name(),
                          "' does not exist in table schema");
    }
  }
  std::vector<int> sources;
  arrow::FieldVector fields;
  std::string missing;
  for (const auto& field : target->fields()) {
    const auto indices = given->GetAllFieldIndices(field->name());
    if (indices.size() > 1) {
      return InvalidInput("Invalid input, column '", field->name(), "' is given ",
                          indices.size(), " times");
    }
    if (indices.empty()) {
      if (!field->nullable()) missing += (missing.empty() ? "" : ", ") + field->name();
      continue;
    }
    sources.push_back(indices[0]);
    fields.push_back(IsJson(*field) ? given->field(indices[0]) : field);
  }
  if (!missing.empty()) {
    return SchemaMismatch(
        "Append with different schema: fields did not match, missing=[", missing,
        "], unexpected=[]; give the columns values or make them nullable");
  }
  auto schema = arrow::schema(std::move(fields), target->metadata());
  return std::make_shared<CoercingReader>(std::move(data), std::move(schema),
                                          std::move(sources), reject_nan, fractions);
}

}  // namespace glaive::db
