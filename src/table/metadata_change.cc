#include "table/metadata_change.h"

#include <algorithm>
#include <map>

#include <arrow/type.h>

#include "format/table.pb.h"
#include "format/transaction.pb.h"
#include "table/schema_change.h"
#include "table/update_map.h"

namespace glaive::table {
namespace {

using lance::table::Transaction;
using lance::table::UpdateMap;

constexpr char kKeyPosition[] = "lance-schema:unenforced-primary-key:position";

void ToProto(const MapUpdate& update, UpdateMap* out) {
  if (update.replace) {
    out->Clear();
    out->set_replace(true);
  }
  for (const auto& [key, value] : update.entries) {
    if (out->replace() && !value) {
      // Nothing is left of the old map: there is no key to remove.
      auto* entries = out->mutable_update_entries();
      entries->erase(
          std::remove_if(entries->begin(), entries->end(),
                         [&key = key](const auto& e) { return e.key() == key; }),
          entries->end());
      continue;
    }
    lance::table::UpdateMapEntry* entry = nullptr;
    for (auto& known : *out->mutable_update_entries()) {
      if (known.key() == key) entry = &known;
    }
    if (entry == nullptr) entry = out->add_update_entries();
    entry->set_key(key);
    if (value) {
      entry->set_value(*value);
    } else {
      entry->clear_value();
    }
  }
}

void CollectPaths(const std::vector<file::Field>& fields,
                  std::vector<std::string>* prefix, std::string* out) {
  for (const file::Field& field : fields) {
    prefix->push_back(field.name);
    *out += out->empty() ? "'" : ", '";
    *out += file::FormatFieldPath(*prefix) + "'";
    CollectPaths(field.children, prefix, out);
    prefix->pop_back();
  }
}

Status UnknownField(const file::Schema& schema, const std::string& path) {
  std::string known;
  std::vector<std::string> prefix;
  CollectPaths(schema.fields(), &prefix, &known);
  return SchemaMismatch("Field '", path, "' not found.\nAvailable fields: [", known, "]");
}

file::Field* Find(std::vector<file::Field>* fields, int32_t id) {
  for (file::Field& field : *fields) {
    if (field.id == id) return &field;
    if (file::Field* found = Find(&field.children, id)) return found;
  }
  return nullptr;
}

}  // namespace

Result<Dataset::Ptr> UpdateMetadata(const Dataset& dataset, MetadataMap map,
                                    const MapUpdate& update) {
  Transaction transaction;
  auto* operation = transaction.mutable_update_config();
  switch (map) {
    case MetadataMap::kConfig:
      ToProto(update, operation->mutable_config_updates());
      break;
    case MetadataMap::kTable:
      ToProto(update, operation->mutable_table_metadata_updates());
      break;
    case MetadataMap::kSchema:
      ToProto(update, operation->mutable_schema_metadata_updates());
      break;
  }
  return dataset.Commit(std::move(transaction));
}

Result<Dataset::Ptr> UpdateFieldMetadata(const Dataset& dataset,
                                         std::span<const FieldMapUpdate> updates) {
  Transaction transaction;
  auto* maps = transaction.mutable_update_config()->mutable_field_metadata_updates();
  for (const FieldMapUpdate& update : updates) {
    const file::Field* field = FindField(dataset.schema(), update.path);
    if (field == nullptr) return UnknownField(dataset.schema(), update.path);
    ToProto(update.update, &(*maps)[field->id]);
  }
  std::vector<file::Field> fields = dataset.schema().fields();
  for (const auto& [id, map] : *maps) ApplyUpdateMap(map, &Find(&fields, id)->metadata);
  const file::Schema after(std::move(fields));
  const auto key = PrimaryKeyOf(dataset.schema());
  if (!key.empty() && PrimaryKeyOf(after) != key) {
    return InvalidInput(
        "the unenforced primary key is a reserved key and cannot be changed once set");
  }
  GLAIVE_RETURN_NOT_OK(CheckPrimaryKey(after));
  return dataset.Commit(std::move(transaction));
}

Result<Dataset::Ptr> SetUnenforcedPrimaryKey(const Dataset& dataset,
                                             std::span<const std::string> columns) {
  constexpr char kWhat[] = "set_unenforced_primary_key: ";
  if (columns.empty()) return InvalidInput(kWhat, "a column is required");
  if (columns.size() > 1) {
    return InvalidInput(kWhat, "compound primary keys are not supported, got ",
                        columns.size(), " columns");
  }
  if (!PrimaryKeyOf(dataset.schema()).empty()) {
    return InvalidInput(kWhat,
                        "an unenforced primary key is already set on this table; "
                        "changing it is not supported");
  }
  const file::Field* field = FindField(dataset.schema(), columns[0]);
  if (field == nullptr) {
    return InvalidInput(kWhat, "column '", columns[0], "' not found on table");
  }
  switch (field->type->id()) {
    case arrow::Type::INT32:
    case arrow::Type::INT64:
    case arrow::Type::STRING:
    case arrow::Type::LARGE_STRING:
    case arrow::Type::BINARY:
    case arrow::Type::LARGE_BINARY:
    case arrow::Type::FIXED_SIZE_BINARY:
      break;
    default:
      return InvalidInput(kWhat, "column '", columns[0], "' has dtype ",
                          field->type->ToString(),
                          " which is not supported as a primary key. Supported: Int32, "
                          "Int64, Utf8, LargeUtf8, Binary, LargeBinary, "
                          "FixedSizeBinary");
  }
  FieldMapUpdate update;
  update.path = columns[0];
  update.update.entries = {{kKeyPosition, "1"}};
  return UpdateFieldMetadata(dataset, std::span(&update, 1));
}

}  // namespace glaive::table
