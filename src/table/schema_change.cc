#include "table/schema_change.h"

#include <algorithm>
#include <cctype>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include <arrow/type.h>
#include <arrow/type_traits.h>

#include "format/file.pb.h"
#include "format/table.pb.h"
#include "io/object_store.h"
#include "table/manifest.h"
#include "table/snapshot.h"
#include "table/version_directory.h"

namespace glaive::table {
namespace {

using file::Field;
using file::Schema;
using Fields = std::vector<Field>;

constexpr char kPrimaryKey[] = "lance-schema:unenforced-primary-key";
constexpr char kPrimaryKeyPosition[] = "lance-schema:unenforced-primary-key:position";

// Types follow from logical types and children: they are made anew after an edit.
Result<Schema> Retyped(Fields fields, std::map<std::string, std::string> metadata) {
  google::protobuf::RepeatedPtrField<lance::file::Field> messages;
  Schema(std::move(fields)).ToProto(&messages);
  return Schema::FromProto(messages, std::move(metadata));
}

const Field* FindIn(const Fields& fields, std::span<const std::string> path) {
  const Fields* level = &fields;
  const Field* found = nullptr;
  for (const std::string& name : path) {
    const auto it = std::find_if(level->begin(), level->end(),
                                 [&](const Field& f) { return f.name == name; });
    if (it == level->end()) return nullptr;
    found = &*it;
    level = &found->children;
  }
  return found;
}

bool FindTrail(const Fields& fields, int32_t id, std::vector<const Field*>* trail) {
  for (const Field& field : fields) {
    trail->push_back(&field);
    if (field.id == id || FindTrail(field.children, id, trail)) return true;
    trail->pop_back();
  }
  return false;
}

Field* Find(Fields* fields, int32_t id) {
  for (Field& field : *fields) {
    if (field.id == id) return &field;
    if (Field* found = Find(&field.children, id)) return found;
  }
  return nullptr;
}

void Renumber(Field* field, int32_t parent_id, int32_t* next_id) {
  field->id = (*next_id)++;
  field->parent_id = parent_id;
  for (Field& child : field->children) Renumber(&child, field->id, next_id);
}

Status CheckTopLevelName(const std::string& name) {
  if (name.empty()) return SchemaMismatch("the name of a column must not be empty");
  if (name.find('.') != std::string::npos) {
    return SchemaMismatch(
        "Top level field ", name,
        " cannot contain `.`. Maybe you meant to create a struct field?");
  }
  // A column of such a name could not be told from what scans add by themselves.
  for (const std::string_view reserved :
       {"_rowid", "_rowaddr", "_rowoffset", "_row_created_at_version",
        "_row_last_updated_at_version"}) {
    if (name == reserved) {
      return SchemaMismatch("The column ", name,
                            " is a reserved name and cannot be used in a Lance dataset; "
                            "choose another one");
    }
  }
  return Status::OK();
}

bool IsStruct(const Field& field) {
  return field.logical_type == "struct" && !field.is_packed_struct() &&
         !field.is_blob_v2();
}

std::string DebugName(const arrow::DataType& type) { return type.ToString(); }

// Adds `given` to `level`, whose fields belong to `parent_id`. `added` gets what is new.
Status Merge(const Field& given, const std::string& path, int32_t parent_id,
             int32_t* next_id, Fields* level, Fields* added) {
  const auto known = std::find_if(level->begin(), level->end(),
                                  [&](const Field& f) { return f.name == given.name; });
  if (known == level->end()) {
    Field fresh = given;
    Renumber(&fresh, parent_id, next_id);
    level->push_back(fresh);
    added->push_back(std::move(fresh));
    return Status::OK();
  }
  if (known->logical_type != given.logical_type) {
    return InvalidInput("Type conflicts between ", path, "(", DebugName(*known->type),
                        ") and ", path, "(", DebugName(*given.type), ")");
  }
  if (!IsStruct(*known) || !IsStruct(given)) {
    return InvalidInput("Column ", path, " already exists in the dataset");
  }
  Field part = *known;
  part.children.clear();
  for (const Field& child : given.children) {
    GLAIVE_RETURN_NOT_OK(Merge(child, path + "." + child.name, known->id, next_id,
                               &known->children, &part.children));
  }
  added->push_back(std::move(part));
  return Status::OK();
}

// Maps, packed structs and blobs are stored as a whole.
Status CheckParentsSplit(const Schema& schema, int32_t id, const char* what) {
  std::vector<const Field*> trail;
  FindTrail(schema.fields(), id, &trail);
  for (const Field* parent : trail) {
    if (parent->id != id && (parent->logical_type == "map" || parent->owns_column())) {
      return NotSupported(what, " a part of column '", parent->name,
                          "', which is stored as a whole");
    }
  }
  return Status::OK();
}

bool Remove(Fields* fields, const std::set<int32_t>& ids) {
  bool any = false;
  for (auto it = fields->begin(); it != fields->end();) {
    bool gone = ids.count(it->id) > 0;
    if (!gone && Remove(&it->children, ids)) {
      any = true;
      gone = it->children.empty();
    }
    any |= gone;
    it = gone ? fields->erase(it) : it + 1;
  }
  return any;
}

Status CheckNames(const Fields& fields, const std::string& where) {
  std::set<std::string> names;
  for (const Field& field : fields) {
    if (!names.insert(field.name).second) {
      return SchemaMismatch("Duplicate field name \"", field.name, "\" in schema", where);
    }
    if (!field.children.empty()) {
      GLAIVE_RETURN_NOT_OK(CheckNames(
          field.children, where + (where.empty() ? ", below " : ".") + field.name));
    }
  }
  return Status::OK();
}

bool IsInteger(arrow::Type::type id) { return arrow::is_integer(id); }
bool IsFloat(arrow::Type::type id) { return arrow::is_floating(id); }
bool IsText(arrow::Type::type id) {
  return id == arrow::Type::STRING || id == arrow::Type::LARGE_STRING;
}
bool IsBinary(arrow::Type::type id) {
  return id == arrow::Type::BINARY || id == arrow::Type::LARGE_BINARY;
}
bool IsDate(arrow::Type::type id) {
  return id == arrow::Type::DATE32 || id == arrow::Type::DATE64;
}
bool IsTime(arrow::Type::type id) {
  return id == arrow::Type::TIME32 || id == arrow::Type::TIME64;
}
bool IsList(arrow::Type::type id) {
  return id == arrow::Type::LIST || id == arrow::Type::LARGE_LIST ||
         id == arrow::Type::FIXED_SIZE_LIST;
}

bool IsKeyField(const Field& field) {
  if (field.metadata.count(kPrimaryKeyPosition) > 0) return true;
  const auto flag = field.metadata.find(kPrimaryKey);
  if (flag == field.metadata.end()) return false;
  std::string text = flag->second;
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text == "true" || text == "1" || text == "yes";
}

void CollectKey(const Fields& fields, std::vector<int32_t>* ids) {
  for (const Field& field : fields) {
    if (IsKeyField(field)) ids->push_back(field.id);
    CollectKey(field.children, ids);
  }
}

Status CheckKeyField(const Field& field, bool parents_fit) {
  const bool is_key = IsKeyField(field);
  const bool fits = parents_fit && !field.nullable;
  if (is_key && !fits) {
    return SchemaMismatch(
        "Primary key column and all its ancestors must not be nullable: Field(id=",
        field.id, ", name=", field.name, ", type=", field.logical_type, ")");
  }
  if (is_key && !field.is_leaf()) {
    return SchemaMismatch("Primary key column must be a leaf: Field(id=", field.id,
                          ", name=", field.name, ", type=", field.logical_type, ")");
  }
  for (const Field& child : field.children) {
    GLAIVE_RETURN_NOT_OK(CheckKeyField(child, fits && field.logical_type == "struct"));
  }
  return Status::OK();
}

}  // namespace

const Field* FindField(const Schema& schema, std::string_view path) {
  if (auto parsed = file::ParseFieldPath(path); parsed.ok()) {
    if (const Field* found = FindIn(schema.fields(), *parsed)) return found;
  }
  return schema.FindTopLevel(path);
}

std::string PathOfField(const Schema& schema, int32_t id) {
  std::vector<const Field*> trail;
  if (!FindTrail(schema.fields(), id, &trail)) return "";
  std::vector<std::string> names;
  for (const Field* field : trail) names.push_back(field->name);
  return file::FormatFieldPath(names);
}

Result<int32_t> NextFieldId(const Dataset& dataset) {
  GLAIVE_ASSIGN_OR_RETURN(const int32_t max, dataset.max_field_id());
  if (max >= std::numeric_limits<int32_t>::max() - (1 << 20)) {
    return InvalidInput("table ", dataset.env().store->root(),
                        " has used up its field ids");
  }
  return max + 1;
}

Status CheckColumnNames(const arrow::Schema& columns) {
  std::set<std::string_view> names;
  for (const auto& field : columns.fields()) {
    GLAIVE_RETURN_NOT_OK(CheckTopLevelName(field->name()));
    if (!names.insert(field->name()).second) {
      return SchemaMismatch("Duplicate field name \"", field->name(),
                            "\": the schema has two columns named so");
    }
  }
  return Status::OK();
}

Result<AddedFields> AddFields(const Schema& table, const arrow::Schema& fields,
                              int32_t first_id) {
  GLAIVE_RETURN_NOT_OK(CheckColumnNames(fields));
  GLAIVE_ASSIGN_OR_RETURN(const Schema given, Schema::FromArrow(fields));
  Fields merged = table.fields();
  Fields added;
  int32_t next_id = first_id;
  for (const Field& field : given.fields()) {
    GLAIVE_RETURN_NOT_OK(Merge(field, field.name, -1, &next_id, &merged, &added));
  }
  auto metadata = table.metadata();
  for (const auto& [key, value] : given.metadata()) metadata[key] = value;
  AddedFields result;
  GLAIVE_ASSIGN_OR_RETURN(result.schema, Retyped(std::move(merged), metadata));
  GLAIVE_ASSIGN_OR_RETURN(result.added, Retyped(std::move(added), std::move(metadata)));
  return result;
}

Result<Schema> DropFields(const Schema& table, std::span<const std::string> paths) {
  std::set<int32_t> ids;
  for (const std::string& path : paths) {
    const Field* field = FindField(table, path);
    if (field == nullptr) {
      return NotFound("Column ", path, " does not exist in the dataset");
    }
    GLAIVE_RETURN_NOT_OK(CheckParentsSplit(table, field->id, "dropping"));
    ids.insert(field->id);
  }
  Fields left = table.fields();
  Remove(&left, ids);
  if (left.empty()) return InvalidInput("Cannot drop all columns from a dataset");
  return Retyped(std::move(left), table.metadata());
}

bool CanCast(const arrow::DataType& from, const arrow::DataType& to) {
  const auto a = from.id();
  const auto b = to.id();
  if (from.Equals(to)) return true;
  if (a == arrow::Type::DICTIONARY || b == arrow::Type::DICTIONARY) {
    const auto value = [](const arrow::DataType& type) -> const arrow::DataType& {
      if (type.id() != arrow::Type::DICTIONARY) return type;
      return *static_cast<const arrow::DictionaryType&>(type).value_type();
    };
    return CanCast(value(from), value(to));
  }
  if (IsList(a) && IsList(b)) {
    if (a == arrow::Type::FIXED_SIZE_LIST && b == arrow::Type::FIXED_SIZE_LIST &&
        static_cast<const arrow::FixedSizeListType&>(from).list_size() !=
            static_cast<const arrow::FixedSizeListType&>(to).list_size()) {
      return false;
    }
    return CanCast(*from.field(0)->type(), *to.field(0)->type());
  }
  if (a == arrow::Type::TIMESTAMP) {
    return b == arrow::Type::TIMESTAMP || IsDate(b) || IsTime(b);
  }
  return (IsInteger(a) && IsInteger(b)) || (IsFloat(a) && IsFloat(b)) ||
         (IsText(a) && IsText(b)) || (IsBinary(a) && IsBinary(b)) ||
         (arrow::is_decimal(a) && arrow::is_decimal(b)) || (IsTime(a) && IsTime(b)) ||
         (a == arrow::Type::DURATION && b == arrow::Type::DURATION) ||
         (IsDate(a) && (IsDate(b) || b == arrow::Type::TIMESTAMP));
}

Result<AlteredFields> AlterFields(const Schema& table,
                                  std::span<const ColumnAlteration> alterations,
                                  int32_t first_id) {
  AlteredFields result;
  Fields fields = table.fields();
  int32_t next_id = first_id;
  for (const ColumnAlteration& change : alterations) {
    const Field* old = FindField(table, change.path);
    if (old == nullptr) {
      return InvalidInput("Column \"", change.path, "\" does not exist in the dataset");
    }
    const int32_t old_id = old->id;
    Field* field = Find(&fields, old_id);
    if (field == nullptr) {
      return InvalidInput("column '", change.path,
                          "' is cast by another alteration of the same call");
    }
    if (change.rename) {
      if (old->parent_id < 0) {
        GLAIVE_RETURN_NOT_OK(CheckTopLevelName(*change.rename));
      } else if (change.rename->empty()) {
        return SchemaMismatch("the name of a field must not be empty ('", change.path,
                              "')");
      }
      field->name = *change.rename;
    }
    if (change.nullable && *change.nullable != field->nullable) {
      if (!*change.nullable) result.made_non_null.push_back(old_id);
      field->nullable = *change.nullable;
    }
    if (change.type == nullptr) continue;
    const bool is_json = old->logical_type == "json";
    if (is_json || old->is_blob() || !CanCast(*old->type, *change.type)) {
      return InvalidInput("Cannot cast column \"", change.path, "\" from ",
                          is_json ? "json" : DebugName(*old->type), " to ",
                          DebugName(*change.type));
    }
    if (old->type->Equals(*change.type)) continue;
    GLAIVE_RETURN_NOT_OK(CheckParentsSplit(table, old_id, "casting"));
    GLAIVE_ASSIGN_OR_RETURN(const Schema typed,
                            Schema::FromArrow(*arrow::schema({arrow::field(
                                field->name, change.type, field->nullable)})));
    Field replacement = typed.fields()[0];
    Renumber(&replacement, field->parent_id, &next_id);
    result.casts.push_back({old_id, replacement.id});
    *field = std::move(replacement);
  }
  GLAIVE_RETURN_NOT_OK(CheckNames(fields, ""));
  GLAIVE_ASSIGN_OR_RETURN(result.schema, Retyped(std::move(fields), table.metadata()));
  GLAIVE_RETURN_NOT_OK(CheckPrimaryKey(result.schema));
  return result;
}

std::vector<int32_t> PrimaryKeyOf(const Schema& schema) {
  std::vector<int32_t> ids;
  CollectKey(schema.fields(), &ids);
  return ids;
}

Status CheckNotIndexed(const Dataset& dataset, std::span<const FieldCast> casts) {
  io::ObjectStore& store = *dataset.env().store;
  GLAIVE_ASSIGN_OR_RETURN(const auto ref,
                          FindVersion(store, static_cast<uint64_t>(dataset.version())));
  if (!ref) {
    return NotFound("table ", store.root(), " has no version ", dataset.version(),
                    " any more");
  }
  GLAIVE_ASSIGN_OR_RETURN(const ManifestFile manifest, LoadManifest(store, *ref));
  if (!manifest.index_section) return Status::OK();
  lance::table::IndexSection section;
  if (!section.ParseFromArray(manifest.index_section->data(),
                              static_cast<int>(manifest.index_section->size()))) {
    return Corruption("the index section of version ", dataset.version(), " of table ",
                      store.root(), " does not decode");
  }
  std::string columns, indices;
  std::set<std::string> names;
  for (const FieldCast& cast : casts) {
    bool indexed = false;
    for (const auto& index : section.indices()) {
      if (std::count(index.fields().begin(), index.fields().end(), cast.old_id) == 0) {
        continue;
      }
      indexed = true;
      if (!names.insert(index.name()).second) continue;
      indices += (indices.empty() ? "" : ", ") + index.name();
    }
    const Field* field = dataset.schema().FindById(cast.old_id);
    if (indexed && field != nullptr) {
      columns += (columns.empty() ? "" : ", ") + field->name;
    }
  }
  if (names.empty()) return Status::OK();
  return InvalidInput(
      "Cannot cast column(s) [", columns, "] to a new type: they have ", names.size(),
      " index(es) attached: [", indices,
      "]. Drop the indices with drop_index() first, and create them again "
      "afterwards");
}

Status CheckPrimaryKey(const Schema& schema) {
  for (const Field& field : schema.fields()) {
    GLAIVE_RETURN_NOT_OK(CheckKeyField(field, true));
  }
  return Status::OK();
}

void FieldsToProto(const Schema& schema,
                   const google::protobuf::RepeatedPtrField<lance::file::Field>& current,
                   google::protobuf::RepeatedPtrField<lance::file::Field>* out) {
  google::protobuf::RepeatedPtrField<lance::file::Field> fresh;
  schema.ToProto(&fresh);
  std::map<int32_t, const lance::file::Field*> known;
  for (const auto& field : current) {
    if (field.id() >= 0) known[field.id()] = &field;
  }
  for (auto& field : fresh) {
    const auto it = known.find(field.id());
    if (it == known.end() || it->second->logical_type() != field.logical_type()) {
      *out->Add() = std::move(field);
      continue;
    }
    lance::file::Field* kept = out->Add();
    *kept = *it->second;
    kept->set_name(field.name());
    kept->set_parent_id(field.parent_id());
    kept->set_nullable(field.nullable());
    kept->set_extension_name(field.extension_name());
    kept->mutable_metadata()->swap(*field.mutable_metadata());
    kept->set_unenforced_primary_key(field.unenforced_primary_key());
    kept->set_unenforced_primary_key_position(field.unenforced_primary_key_position());
  }
}

}  // namespace glaive::table
