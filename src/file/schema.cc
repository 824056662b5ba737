#include "file/schema.h"

#include <algorithm>
#include <cctype>
#include <functional>
#include <set>
#include <unordered_set>
#include <utility>

#include <arrow/type.h>
#include <arrow/util/key_value_metadata.h>

#include "file/extension.h"
#include "format/file.pb.h"

namespace glaive::file {
namespace {

constexpr char kBlobKey[] = "lance-encoding:blob";
constexpr char kPackedKey[] = "lance-encoding:packed";
constexpr char kBlobV2[] = "lance.blob.v2";
constexpr char kPrimaryKey[] = "lance-schema:unenforced-primary-key";
constexpr char kPrimaryKeyPosition[] = "lance-schema:unenforced-primary-key:position";
constexpr int kMaxDepth = 64;

using Metadata = std::map<std::string, std::string>;

Metadata ToMap(const std::shared_ptr<const arrow::KeyValueMetadata>& metadata) {
  Metadata out;
  if (!metadata) return out;
  for (int64_t i = 0; i < metadata->size(); ++i)
    out[metadata->key(i)] = metadata->value(i);
  return out;
}

std::shared_ptr<arrow::KeyValueMetadata> FromMap(const Metadata& metadata) {
  if (metadata.empty()) return nullptr;
  std::vector<std::string> keys, values;
  for (const auto& [key, value] : metadata) {
    keys.push_back(key);
    values.push_back(value);
  }
  return arrow::key_value_metadata(std::move(keys), std::move(values));
}

bool IsTrue(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text == "true" || text == "1" || text == "yes";
}

const std::string* Find(const Metadata& metadata, const char* key) {
  auto it = metadata.find(key);
  return it == metadata.end() ? nullptr : &it->second;
}

bool EqualIgnoringCase(std::string_view a, std::string_view b) {
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) {
           return std::tolower(static_cast<unsigned char>(x)) ==
                  std::tolower(static_cast<unsigned char>(y));
         });
}

bool IsListLogical(std::string_view logical_type) {
  return logical_type.starts_with("list") || logical_type.starts_with("large_list");
}

// The Arrow type of a field with children, from its logical type and the children.
Result<std::shared_ptr<arrow::DataType>> TypeFromChildren(const Field& field) {
  const std::string& logical = field.logical_type;
  if (logical == "struct") {
    std::vector<std::shared_ptr<arrow::Field>> members;
    for (const Field& child : field.children) members.push_back(child.ToArrow());
    return arrow::struct_(std::move(members));
  }
  if (field.children.size() != 1) {
    return Corruption("field '", field.name, "' of type '", logical, "' has ",
                      field.children.size(), " children instead of one");
  }
  auto child = field.children[0].ToArrow();
  if (logical == "list" || logical == "list.struct") return arrow::list(std::move(child));
  if (logical == "large_list" || logical == "large_list.struct") {
    return arrow::large_list(std::move(child));
  }
  if (logical == "map") {
    auto made = arrow::MapType::Make(std::move(child));
    if (!made.ok()) {
      return Corruption("field '", field.name, "': ", made.status().message());
    }
    return made;
  }
  constexpr std::string_view kPrefix = "fixed_size_list:struct:";
  if (logical.starts_with(kPrefix)) {
    GLAIVE_ASSIGN_OR_RETURN(auto like, ParseLogicalType("fixed_size_list:int8:" +
                                                        logical.substr(kPrefix.size())));
    return arrow::fixed_size_list(
        std::move(child),
        static_cast<const arrow::FixedSizeListType&>(*like).list_size());
  }
  return Corruption("field '", field.name, "' of type '", logical,
                    "' must not have children");
}

Result<Field> FieldFromArrow(const arrow::Field& given, const std::string& path,
                             int32_t parent_id, int32_t* next_id, int depth) {
  if (depth > kMaxDepth) {
    return NotSupported("column '", path, "' is nested deeper than ", kMaxDepth,
                        " levels");
  }
  Field out;
  auto storage = StorageField(given.Copy());
  out.name = given.name();
  out.id = (*next_id)++;
  out.parent_id = parent_id;
  out.nullable = given.nullable();
  out.metadata = ToMap(storage->metadata());
  const arrow::DataType& type = *storage->type();

  const std::string* extension = Find(out.metadata, kExtensionNameKey);
  if (extension && (*extension == "lance.json" || *extension == "arrow.json")) {
    out.metadata[kExtensionNameKey] = "lance.json";
    out.logical_type = "json";
    out.type = arrow::large_binary();
    return out;
  }
  auto logical = LogicalTypeOf(type);
  bool struct_vector = type.id() == arrow::Type::FIXED_SIZE_LIST &&
                       type.field(0)->type()->id() == arrow::Type::STRUCT;
  if (struct_vector) {
    int32_t size = static_cast<const arrow::FixedSizeListType&>(type).list_size();
    if (size <= 0)
      return NotSupported("column '", path, "': list size must be at least 1");
    logical = "fixed_size_list:struct:" + std::to_string(size);
  }
  if (!logical.ok()) return WithContext(logical.status(), "column '" + path + "'");
  out.logical_type = *logical;

  bool nested = type.id() == arrow::Type::STRUCT || type.id() == arrow::Type::MAP ||
                IsListLogical(out.logical_type) || struct_vector;
  if (!nested) {
    GLAIVE_ASSIGN_OR_RETURN(out.type, ParseLogicalType(out.logical_type));
    // Names and nullability of a vector's items are not stored: the parsed form is what
    // readers see.
    return out;
  }
  if (type.id() == arrow::Type::MAP &&
      static_cast<const arrow::MapType&>(type).keys_sorted()) {
    return NotSupported("column '", path, "': maps with sorted keys cannot be stored");
  }
  std::set<std::string> names;
  for (const auto& child : type.fields()) {
    if (type.id() == arrow::Type::STRUCT && !names.insert(child->name()).second) {
      return InvalidInput("column '", path, "' has two members named '", child->name(),
                          "'");
    }
    GLAIVE_ASSIGN_OR_RETURN(
        Field converted,
        FieldFromArrow(*child, path + "." + child->name(), out.id, next_id, depth + 1));
    out.children.push_back(std::move(converted));
  }
  if (out.children.empty()) {
    out.type = arrow::struct_(arrow::FieldVector{});
    return out;
  }
  GLAIVE_ASSIGN_OR_RETURN(out.type, TypeFromChildren(out));
  return out;
}

lance::file::Field::Encoding EncodingOf(const Field& field) {
  const std::string& logical = field.logical_type;
  if (logical.starts_with("dict:")) return lance::file::Field::DICTIONARY;
  if (logical == "string" || logical == "large_string" || logical == "binary" ||
      logical == "large_binary" || logical == "json") {
    return lance::file::Field::VAR_BINARY;
  }
  if (logical == "struct" || logical == "null") return lance::file::Field::NONE;
  return lance::file::Field::PLAIN;
}

void AppendProto(const Field& field,
                 google::protobuf::RepeatedPtrField<lance::file::Field>* out) {
  lance::file::Field* pb = out->Add();
  pb->set_name(field.name);
  pb->set_id(field.id);
  pb->set_parent_id(field.parent_id);
  pb->set_logical_type(field.logical_type);
  pb->set_nullable(field.nullable);
  pb->set_encoding(EncodingOf(field));
  if (pb->encoding() == lance::file::Field::DICTIONARY) pb->mutable_dictionary();
  for (const auto& [key, value] : field.metadata) (*pb->mutable_metadata())[key] = value;
  if (const std::string* name = Find(field.metadata, kExtensionNameKey)) {
    pb->set_extension_name(*name);
  }
  if (const std::string* key = Find(field.metadata, kPrimaryKey); key && IsTrue(*key)) {
    pb->set_unenforced_primary_key(true);
  }
  if (const std::string* position = Find(field.metadata, kPrimaryKeyPosition)) {
    pb->set_unenforced_primary_key(true);
    uint32_t value = 0;
    for (char c : *position) {
      if (c < '0' || c > '9' || value > 100000000) break;
      value = value * 10 + static_cast<uint32_t>(c - '0');
    }
    pb->set_unenforced_primary_key_position(value);
  }
  for (const Field& child : field.children) AppendProto(child, out);
}

// Gives every node of the tree its type, inner nodes last.
Status ResolveTypes(Field* field, int depth) {
  if (depth > kMaxDepth)
    return Corruption("field '", field->name, "' is nested too deeply");
  for (Field& child : field->children) {
    GLAIVE_RETURN_NOT_OK(ResolveTypes(&child, depth + 1));
  }
  if (field->children.empty() && field->logical_type == "struct") {
    field->type = arrow::struct_(arrow::FieldVector{});
    return Status::OK();
  }
  if (field->children.empty()) {
    auto parsed = ParseLogicalType(field->logical_type);
    if (!parsed.ok()) return WithContext(parsed.status(), "field '" + field->name + "'");
    field->type = *parsed;
    return Status::OK();
  }
  GLAIVE_ASSIGN_OR_RETURN(field->type, TypeFromChildren(*field));
  return Status::OK();
}

const Field* FindIn(const std::vector<Field>& fields, int32_t id) {
  for (const Field& field : fields) {
    if (field.id == id) return &field;
    if (const Field* found = FindIn(field.children, id)) return found;
  }
  return nullptr;
}

const Field* FindName(const std::vector<Field>& fields, std::string_view name) {
  for (const Field& field : fields) {
    if (field.name == name) return &field;
  }
  const Field* found = nullptr;
  for (const Field& field : fields) {
    if (!EqualIgnoringCase(field.name, name)) continue;
    if (found) return nullptr;  // ambiguous
    found = &field;
  }
  return found;
}

// Walks `path` and reports every node on the way, list items included.
bool Walk(const std::vector<Field>& fields, std::span<const std::string> path,
          std::vector<const Field*>* trail) {
  const std::vector<Field>* level = &fields;
  for (const std::string& segment : path) {
    const Field* next = FindName(*level, segment);
    // "tags.name" reaches through the unnamed item of a list of structs.
    while (!next && !trail->empty() && trail->back()->children.size() == 1 &&
           trail->back()->logical_type != "struct") {
      const Field* item = &trail->back()->children[0];
      trail->push_back(item);
      next = FindName(item->children, segment);
    }
    if (!next) return false;
    trail->push_back(next);
    level = &next->children;
  }
  return true;
}

void Retype(Field* field) {
  auto type = TypeFromChildren(*field);
  if (type.ok()) field->type = *type;
}

// Adds the nodes of `trail` below `level`; the last one with its whole sub-tree.
void Graft(std::vector<Field>* level, std::span<const Field* const> trail) {
  const Field& node = *trail[0];
  auto it = std::find_if(level->begin(), level->end(), [&](const Field& f) {
    return f.id == node.id && f.name == node.name;
  });
  // Packed structs, blobs and maps are read whole.
  bool whole = trail.size() == 1 || node.owns_column() || node.logical_type == "map";
  if (whole) {
    if (it == level->end()) {
      level->push_back(node);
    } else {
      *it = node;
    }
    return;
  }
  if (it == level->end()) {
    Field partial = node;
    partial.children.clear();
    level->push_back(std::move(partial));
    it = level->end() - 1;
  }
  Graft(&it->children, trail.subspan(1));
  Retype(&*it);
}

bool PruneByIds(const Field& field, const std::unordered_set<int32_t>& ids, Field* out) {
  if (ids.contains(field.id)) {
    *out = field;
    return true;
  }
  Field partial = field;
  partial.children.clear();
  for (const Field& child : field.children) {
    Field kept;
    if (PruneByIds(child, ids, &kept)) partial.children.push_back(std::move(kept));
  }
  if (partial.children.empty()) return false;
  if (field.logical_type == "map" || field.owns_column()) {
    *out = field;
    return true;
  }
  Retype(&partial);
  *out = std::move(partial);
  return true;
}

void CollectColumns(const Field& field, bool v2_0, std::vector<const Field*>* out) {
  if (v2_0 || field.owns_column()) out->push_back(&field);
  if (field.is_packed_struct() || field.is_blob()) return;
  for (const Field& child : field.children) CollectColumns(child, v2_0, out);
}

Field DescriptorsIn(const Field& field) {
  Field out = field;
  if (!field.is_blob_v2()) {
    bool changed = false;
    for (Field& child : out.children) {
      Field shown = DescriptorsIn(child);
      changed |= shown.type != child.type;
      child = std::move(shown);
    }
    if (changed) Retype(&out);
    return out;
  }
  constexpr std::pair<const char*, const char*> kMembers[] = {
      {"kind", "uint8"},     {"position", "uint64"}, {"size", "uint64"},
      {"blob_id", "uint32"}, {"blob_uri", "string"},
  };
  out.metadata = {{kBlobKey, "true"}, {kPackedKey, "true"}};
  out.children.clear();
  for (const auto& [name, logical_type] : kMembers) {
    Field member;
    member.name = name;
    member.logical_type = logical_type;
    member.type = *ParseLogicalType(logical_type);
    member.nullable = false;
    out.children.push_back(std::move(member));
  }
  Retype(&out);
  return out;
}

int32_t MaxId(const std::vector<Field>& fields) {
  int32_t max = -1;
  for (const Field& field : fields)
    max = std::max({max, field.id, MaxId(field.children)});
  return max;
}

}  // namespace

bool Field::is_packed_struct() const {
  if (logical_type != "struct") return false;
  for (const char* key : {kPackedKey, "packed"}) {
    const std::string* value = Find(metadata, key);
    if (value && IsTrue(*value)) return true;
  }
  return false;
}

bool Field::is_blob() const {
  if (Find(metadata, kBlobKey)) return true;
  const std::string* extension = Find(metadata, kExtensionNameKey);
  return extension && *extension == kBlobV2;
}

bool Field::is_blob_v2() const {
  const std::string* extension = Find(metadata, kExtensionNameKey);
  return extension && *extension == kBlobV2 && logical_type == "struct" &&
         !is_packed_struct();
}

bool Field::owns_column() const { return is_leaf() || is_packed_struct() || is_blob(); }

std::shared_ptr<arrow::Field> Field::ToArrow() const {
  return arrow::field(name, type, nullable, FromMap(metadata));
}

Schema::Schema(std::vector<Field> fields, std::map<std::string, std::string> metadata)
    : fields_(std::move(fields)), metadata_(std::move(metadata)) {}

Result<Schema> Schema::FromArrow(const arrow::Schema& schema, int32_t first_id) {
  std::vector<Field> fields;
  std::set<std::string> names;
  int32_t next_id = first_id;
  for (const auto& field : schema.fields()) {
    if (!names.insert(field->name()).second) {
      return InvalidInput("the schema has two columns named '", field->name(), "'");
    }
    GLAIVE_ASSIGN_OR_RETURN(Field converted,
                            FieldFromArrow(*field, field->name(), -1, &next_id, 0));
    fields.push_back(std::move(converted));
  }
  return Schema(std::move(fields), ToMap(schema.metadata()));
}

Result<Schema> Schema::FromProto(
    const google::protobuf::RepeatedPtrField<lance::file::Field>& fields,
    Metadata metadata) {
  // Children follow their parents, so one stack of open nodes rebuilds the tree.
  struct Node {
    Field field;
    int parent = -1;
  };
  std::vector<Node> nodes;
  nodes.reserve(static_cast<size_t>(fields.size()));
  std::map<int32_t, int> by_id;
  int blob_owner = -1;  // a blob descriptor's members carry no ids and follow it directly
  for (const lance::file::Field& pb : fields) {
    Node node;
    Field& f = node.field;
    f.name = pb.name();
    f.id = pb.id();
    f.parent_id = pb.parent_id();
    f.logical_type = pb.logical_type();
    f.nullable = pb.nullable();
    for (const auto& [key, value] : pb.metadata()) f.metadata[key] = value;
    if (!pb.extension_name().empty())
      f.metadata.emplace(kExtensionNameKey, pb.extension_name());
    if (f.id < 0 && f.parent_id < 0 && blob_owner >= 0) {
      node.parent = blob_owner;
    } else if (f.parent_id >= 0) {
      auto parent = by_id.find(f.parent_id);
      if (parent == by_id.end()) {
        return Corruption("schema: field '", f.name, "' names parent ", f.parent_id,
                          ", which does not come before it");
      }
      node.parent = parent->second;
    }
    int index = static_cast<int>(nodes.size());
    if (f.id >= 0) {
      if (!by_id.emplace(f.id, index).second) {
        return Corruption("schema: field id ", f.id, " is given twice ('", f.name, "')");
      }
      blob_owner = f.is_packed_struct() && f.is_blob() ? index : -1;
    }
    nodes.push_back(std::move(node));
  }
  // Moves children into parents, last first, so that a node is complete when it moves.
  std::vector<std::vector<Field>> children(nodes.size());
  std::vector<Field> roots;
  for (size_t i = nodes.size(); i-- > 0;) {
    std::reverse(children[i].begin(), children[i].end());
    nodes[i].field.children = std::move(children[i]);
    auto& target =
        nodes[i].parent < 0 ? roots : children[static_cast<size_t>(nodes[i].parent)];
    target.push_back(std::move(nodes[i].field));
  }
  std::reverse(roots.begin(), roots.end());
  for (Field& root : roots) GLAIVE_RETURN_NOT_OK(ResolveTypes(&root, 0));
  return Schema(std::move(roots), std::move(metadata));
}

Result<Schema> Schema::FromProto(const lance::file::Schema& schema) {
  Metadata metadata;
  for (const auto& [key, value] : schema.metadata()) metadata[key] = value;
  return FromProto(schema.fields(), std::move(metadata));
}

void Schema::ToProto(
    google::protobuf::RepeatedPtrField<lance::file::Field>* fields) const {
  for (const Field& field : fields_) AppendProto(field, fields);
}

void Schema::ToProto(lance::file::Schema* schema) const {
  ToProto(schema->mutable_fields());
  for (const auto& [key, value] : metadata_) (*schema->mutable_metadata())[key] = value;
}

std::shared_ptr<arrow::Schema> Schema::ToArrow() const {
  std::vector<std::shared_ptr<arrow::Field>> out;
  for (const Field& field : fields_) out.push_back(field.ToArrow());
  return arrow::schema(std::move(out), FromMap(metadata_));
}

int32_t Schema::max_id() const { return MaxId(fields_); }

const Field* Schema::FindById(int32_t id) const { return FindIn(fields_, id); }

const Field* Schema::FindByPath(std::span<const std::string> path) const {
  std::vector<const Field*> trail;
  if (path.empty() || !Walk(fields_, path, &trail)) return nullptr;
  return trail.back();
}

const Field* Schema::FindTopLevel(std::string_view name) const {
  for (const Field& field : fields_) {
    if (field.name == name) return &field;
  }
  return nullptr;
}

Result<Schema> Schema::Project(std::span<const std::string> paths) const {
  std::vector<Field> out;
  for (const std::string& text : paths) {
    std::vector<const Field*> trail;
    auto path = ParseFieldPath(text);
    if (!path.ok() || !Walk(fields_, *path, &trail)) {
      // A column whose own name holds dots may be named without quotes, when no member of
      // a struct is meant.
      const Field* whole = FindTopLevel(text);
      if (whole == nullptr) {
        GLAIVE_RETURN_NOT_OK(path.status());
        std::string known;
        for (const Field& field : fields_)
          known += (known.empty() ? "" : ", ") + field.name;
        return NotFound("column '", text, "' does not exist; the columns are: ", known);
      }
      trail.assign(1, whole);
    }
    Graft(&out, trail);
  }
  return Schema(std::move(out), metadata_);
}

Schema Schema::ProjectByIds(std::span<const int32_t> ids) const {
  std::unordered_set<int32_t> wanted(ids.begin(), ids.end());
  std::vector<Field> out;
  for (const Field& field : fields_) {
    Field kept;
    if (PruneByIds(field, wanted, &kept)) out.push_back(std::move(kept));
  }
  return Schema(std::move(out), metadata_);
}

Schema Schema::WithBlobDescriptors() const {
  std::vector<Field> fields;
  for (const Field& field : fields_) fields.push_back(DescriptorsIn(field));
  return Schema(std::move(fields), metadata_);
}

std::vector<const Field*> Schema::ColumnFields(bool v2_0) const {
  std::vector<const Field*> out;
  for (const Field& field : fields_) CollectColumns(field, v2_0, &out);
  return out;
}

}  // namespace glaive::file
