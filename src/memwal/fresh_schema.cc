#include "memwal/fresh_schema.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include <arrow/array.h>
#include <arrow/array/util.h>
#include <arrow/record_batch.h>
#include <arrow/scalar.h>
#include <arrow/type.h>
#include <arrow/util/key_value_metadata.h>

#include "expr/type_name.h"
#include "file/extension.h"
#include "file/write_cast.h"
#include "format/file.pb.h"
#include "memwal/conform_array.h"
#include "memwal/keys.h"

namespace glaive::memwal {
namespace {

using ArrayDataPtr = std::shared_ptr<arrow::ArrayData>;

// Indices of the top-level columns of the primary key, in key order.
Result<std::vector<int>> FindKey(const file::Schema& schema) {
  google::protobuf::RepeatedPtrField<lance::file::Field> fields;
  schema.ToProto(&fields);
  std::vector<std::pair<std::pair<uint32_t, int>, int>> keys;
  int column = -1;
  for (const auto& field : fields) {
    if (field.parent_id() < 0) ++column;
    if (!field.unenforced_primary_key()) continue;
    const auto& type = *schema.fields()[static_cast<size_t>(column)].type;
    if (field.parent_id() >= 0 || !IsKeyType(type)) {
      return InvalidInput("Primary key column '", field.name(), "' has unsupported type ",
                          expr::TypeName(type),
                          " for hashing; supported types: Int8/16/32/64, UInt8/16/32/64, "
                          "Boolean, Utf8/LargeUtf8, Binary/LargeBinary");
    }
    if (field.nullable()) {
      return InvalidInput("Primary key column '", field.name(), "' must not be nullable");
    }
    const uint32_t position = field.unenforced_primary_key_position();
    keys.push_back({{position == 0 ? UINT32_MAX : position, column}, column});
  }
  std::sort(keys.begin(), keys.end());
  std::vector<int> columns;
  for (const auto& key : keys) columns.push_back(key.second);
  return columns;
}

Status CheckSupported(const file::Field& field, const std::string& column) {
  if (field.is_blob() || field.is_blob_v2()) {
    return NotSupported("column '", column,
                        "' holds blobs; the LSM write path does not support them yet");
  }
  for (const file::Field& child : field.children) {
    GLAIVE_RETURN_NOT_OK(CheckSupported(child, column));
  }
  return Status::OK();
}

// `field`, which stands for `source`, with the ids of fields at every level.
std::shared_ptr<arrow::Field> WithIds(const arrow::Field& field,
                                      const file::Field& source, bool own_id = true) {
  std::shared_ptr<arrow::DataType> type = field.type();
  const auto child = [&](size_t i, bool with_id) {
    return WithIds(*field.type()->field(static_cast<int>(i)), source.children[i],
                   with_id);
  };
  if (!source.children.empty()) {
    switch (type->id()) {
      case arrow::Type::STRUCT: {
        arrow::FieldVector members;
        for (size_t i = 0; i < source.children.size(); ++i) {
          members.push_back(child(i, true));
        }
        type = arrow::struct_(std::move(members));
        break;
      }
      case arrow::Type::LIST:
        type = arrow::list(child(0, true));
        break;
      case arrow::Type::LARGE_LIST:
        type = arrow::large_list(child(0, true));
        break;
      case arrow::Type::FIXED_SIZE_LIST:
        type = arrow::fixed_size_list(
            child(0, true),
            static_cast<const arrow::FixedSizeListType&>(*type).list_size());
        break;
      case arrow::Type::MAP: {
        // Its entries carry none.
        auto made = arrow::MapType::Make(
            child(0, false), static_cast<const arrow::MapType&>(*type).keys_sorted());
        if (made.ok()) type = *made;
        break;
      }
      default:
        break;
    }
  }
  auto out =
      arrow::field(field.name(), std::move(type), field.nullable(), field.metadata());
  if (!own_id) return out;
  return out->WithMergedMetadata(
      arrow::key_value_metadata({kFieldIdKey}, {std::to_string(source.id)}));
}

Result<std::shared_ptr<arrow::Array>> NoTombstones(int64_t rows) {
  return arrow::MakeArrayFromScalar(arrow::BooleanScalar(false), rows);
}

}  // namespace

Result<std::shared_ptr<const FreshSchema>> FreshSchema::Make(const table::Dataset& base) {
  const file::Schema& schema = base.schema();
  std::shared_ptr<FreshSchema> fresh(new FreshSchema());
  GLAIVE_ASSIGN_OR_RETURN(fresh->key_columns_, FindKey(schema));
  for (int key : fresh->key_columns_) {
    fresh->key_names_.push_back(schema.fields()[static_cast<size_t>(key)].name);
  }
  fresh->logical_ = base.arrow_schema();
  fresh->fields_ = schema.fields();

  GLAIVE_ASSIGN_OR_RETURN(const int32_t base_max, base.max_field_id());
  const int32_t highest = std::max(base_max, schema.max_id());
  if (highest == std::numeric_limits<int32_t>::max()) {
    return NotSupported("the table has no field id left for the tombstone column");
  }
  std::vector<file::Field> stored = schema.fields();
  arrow::FieldVector storage, wal;
  for (size_t i = 0; i < stored.size(); ++i) {
    file::Field& field = stored[i];
    if (field.name == kTombstone) {
      return InvalidInput("column '", kTombstone,
                          "' has a name that the LSM write path needs for itself; rename "
                          "it");
    }
    GLAIVE_RETURN_NOT_OK(CheckSupported(field, field.name));
    const auto& keys = fresh->key_columns_;
    if (std::find(keys.begin(), keys.end(), static_cast<int>(i)) == keys.end()) {
      field.nullable = true;
    }
    fresh->field_ids_.push_back(field.id);
    storage.push_back(field.ToArrow());
    wal.push_back(WithIds(*storage.back(), field));
  }
  file::Field tombstone;
  tombstone.name = kTombstone;
  tombstone.id = highest + 1;
  GLAIVE_ASSIGN_OR_RETURN(tombstone.logical_type, file::LogicalTypeOf(*arrow::boolean()));
  tombstone.type = arrow::boolean();
  tombstone.nullable = false;
  fresh->field_ids_.push_back(tombstone.id);
  storage.push_back(tombstone.ToArrow());
  wal.push_back(storage.back());
  stored.push_back(std::move(tombstone));

  const auto metadata = fresh->logical_->metadata();
  fresh->storage_ = arrow::schema(std::move(storage), metadata);
  fresh->wal_ = arrow::schema(std::move(wal), metadata);
  fresh->generation_ =
      std::make_shared<const file::Schema>(std::move(stored), schema.metadata());
  return fresh;
}

Result<std::shared_ptr<arrow::RecordBatch>> FreshSchema::Shape(
    const arrow::RecordBatch& batch, int index) const {
  const auto mismatch = [&](const std::string& why) {
    return SchemaMismatch("batch ", index,
                          " does not match the base table schema: ", why);
  };
  const int common = std::min(batch.num_columns(), logical_->num_fields());
  for (int c = 0; c < common; ++c) {
    if (batch.column_name(c) != fields_[static_cast<size_t>(c)].name) {
      return SchemaMismatch(
          "batch ", index, " column ", c, " is named '", batch.column_name(c),
          "', but the base table schema declares '", fields_[static_cast<size_t>(c)].name,
          "' at that position; give the columns in the table's order");
    }
  }
  if (batch.num_columns() != logical_->num_fields()) {
    return mismatch("number of columns(" + std::to_string(batch.num_columns()) +
                    ") must match number of fields(" +
                    std::to_string(logical_->num_fields()) + ") in schema");
  }
  std::vector<ArrayDataPtr> columns;
  for (int c = 0; c < common; ++c) {
    const file::Field& field = fields_[static_cast<size_t>(c)];
    GLAIVE_ASSIGN_OR_RETURN(const auto array, file::StorageArray(batch.column(c)));
    auto conformed = ConformArray(array->data(), *arrow::field(field.name, array->type()),
                                  field, MatchMembers::kExactly);
    if (!conformed.ok()) {
      return mismatch(conformed.status().message() + " at column index " +
                      std::to_string(c));
    }
    if (!field.nullable && (*conformed)->GetNullCount() > 0) {
      return mismatch("Column '" + field.name +
                      "' is declared as non-nullable but contains null values");
    }
    Status nulls = file::CheckNulls(field, **conformed);
    if (!nulls.ok()) return mismatch(nulls.message());
    columns.push_back(*std::move(conformed));
  }
  GLAIVE_ASSIGN_OR_RETURN(const auto tombstone, NoTombstones(batch.num_rows()));
  columns.push_back(tombstone->data());
  return arrow::RecordBatch::Make(storage_, batch.num_rows(), std::move(columns));
}

Result<std::shared_ptr<arrow::RecordBatch>> FreshSchema::ShapeTombstones(
    const arrow::RecordBatch& keys) const {
  if (key_columns_.empty()) {
    return InvalidInput(
        "delete requires a primary key, but this shard has no primary key columns");
  }
  constexpr char kFailed[] =
      "failed to build tombstone batch (do the delete keys match the primary key?): ";
  std::vector<ArrayDataPtr> columns(static_cast<size_t>(storage_->num_fields()));
  for (size_t k = 0; k < key_columns_.size(); ++k) {
    const auto column = static_cast<size_t>(key_columns_[k]);
    const auto given = keys.GetColumnByName(key_names_[k]);
    if (given == nullptr) {
      return InvalidInput("delete keys batch is missing primary key column '",
                          key_names_[k], "'");
    }
    GLAIVE_ASSIGN_OR_RETURN(const auto array, file::StorageArray(given));
    auto conformed =
        ConformArray(array->data(), *arrow::field(key_names_[k], array->type()),
                     fields_[column], MatchMembers::kExactly);
    if (!conformed.ok()) {
      return InvalidInput(kFailed, conformed.status().message(), " at column index ",
                          column);
    }
    if ((*conformed)->GetNullCount() > 0) {
      return InvalidInput(kFailed, "Column '", key_names_[k],
                          "' is declared as non-nullable but contains null values");
    }
    columns[column] = *std::move(conformed);
  }
  for (int c = 0; c < logical_->num_fields(); ++c) {
    auto& column = columns[static_cast<size_t>(c)];
    if (column != nullptr) continue;
    GLAIVE_ASSIGN_OR_RETURN(
        const auto nulls,
        arrow::MakeArrayOfNull(storage_->field(c)->type(), keys.num_rows()));
    column = nulls->data();
  }
  GLAIVE_ASSIGN_OR_RETURN(
      const auto tombstones,
      arrow::MakeArrayFromScalar(arrow::BooleanScalar(true), keys.num_rows()));
  columns.back() = tombstones->data();
  return arrow::RecordBatch::Make(storage_, keys.num_rows(), std::move(columns));
}

Result<std::shared_ptr<arrow::RecordBatch>> FreshSchema::Conform(
    const arrow::RecordBatch& batch) const {
  const arrow::Schema& given = *batch.schema();
  // Columns of the batch by what they stand for: ids win over names.
  const auto find = [&](const std::string& name, int32_t id) {
    int by_name = -1;
    for (int c = 0; c < given.num_fields(); ++c) {
      const auto own = FieldIdOf(*given.field(c));
      if (own && *own == id) return c;
      if (!own && by_name < 0 && given.field(c)->name() == name) by_name = c;
    }
    return by_name;
  };
  std::vector<ArrayDataPtr> columns;
  for (int c = 0; c < logical_->num_fields(); ++c) {
    const file::Field& field = fields_[static_cast<size_t>(c)];
    const bool key =
        std::find(key_columns_.begin(), key_columns_.end(), c) != key_columns_.end();
    const int source = find(field.name, field.id);
    if (source < 0) {
      if (key) {
        return Corruption("batch is missing primary key column '", field.name, "'");
      }
      GLAIVE_ASSIGN_OR_RETURN(const auto nulls,
                              arrow::MakeArrayOfNull(field.type, batch.num_rows()));
      columns.push_back(nulls->data());
      continue;
    }
    // Types of extensions that Arrow knows come back as such.
    GLAIVE_ASSIGN_OR_RETURN(const auto array, file::StorageArray(batch.column(source)));
    auto conformed = ConformArray(array->data(), *file::StorageField(given.field(source)),
                                  field, MatchMembers::kById);
    if (!conformed.ok()) {
      return Corruption("column '", field.name, "': ", conformed.status().message());
    }
    if (key && (*conformed)->GetNullCount() > 0) {
      return Corruption("primary key column '", field.name, "' contains null values");
    }
    file::Field widened = field;
    widened.nullable = true;
    Status nulls = file::CheckNulls(widened, **conformed);
    if (!nulls.ok()) return Corruption(nulls.message());
    columns.push_back(*std::move(conformed));
  }
  const int tombstone = given.GetFieldIndex(kTombstone);
  if (tombstone < 0) {
    GLAIVE_ASSIGN_OR_RETURN(const auto none, NoTombstones(batch.num_rows()));
    columns.push_back(none->data());
  } else {
    const auto& data = batch.column_data(tombstone);
    if (data->type->id() != arrow::Type::BOOL || data->GetNullCount() > 0) {
      return Corruption("column '", kTombstone, "' is not a boolean for each row");
    }
    columns.push_back(data);
  }
  return arrow::RecordBatch::Make(storage_, batch.num_rows(), std::move(columns));
}

}  // namespace glaive::memwal
