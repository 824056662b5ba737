#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "table/data_file.h"
#include "table/field_ids.h"
#include "table/next_manifest_builder.h"
#include "table/row_ids.h"
#include "table/transaction.h"
#include "table/update_map.h"

namespace glaive::table {
namespace {

using lance::file::Field;
using lance::table::DataFile;
using lance::table::DataFragment;
using FieldList = google::protobuf::RepeatedPtrField<Field>;

constexpr int32_t kTombstone = -2;
constexpr char kPrimaryKey[] = "lance-schema:unenforced-primary-key";
constexpr char kPrimaryKeyPosition[] = "lance-schema:unenforced-primary-key:position";

std::set<int32_t> IdsOf(const FieldList& fields) {
  std::set<int32_t> ids;
  for (const Field& field : fields) ids.insert(field.id());
  return ids;
}

// Columns of users, and the ids and versions of rows.
bool HoldsLiveField(const DataFile& file, const std::set<int32_t>& schema) {
  return std::any_of(file.fields().begin(), file.fields().end(),
                     [&](int32_t id) { return id < kTombstone || schema.count(id) > 0; });
}

void DropDeadFiles(const std::set<int32_t>& schema, DataFragment* fragment) {
  auto* files = fragment->mutable_files();
  for (int i = files->size() - 1; i >= 0; --i) {
    if (!HoldsLiveField(files->Get(i), schema)) files->DeleteSubrange(i, 1);
  }
}

bool SameFile(const DataFile& a, const DataFile& b) {
  return a.path() == b.path() && a.has_base_id() == b.has_base_id() &&
         a.base_id() == b.base_id();
}

bool BringsFile(const DataFragment& before, const DataFragment& after) {
  return !std::all_of(after.files().begin(), after.files().end(), [&](const auto& file) {
    return std::any_of(before.files().begin(), before.files().end(),
                       [&](const auto& old) { return SameFile(old, file); });
  });
}

std::string MetadataOf(const Field& field, const char* key) {
  const auto found = field.metadata().find(key);
  return found == field.metadata().end() ? std::string() : std::string(found->second);
}

bool IsTrue(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text == "true" || text == "1" || text == "yes";
}

// The primary key lives in the metadata of fields, and in fields of its own.
Status FollowPrimaryKey(const std::string& key_before, const std::string& position_before,
                        bool table_has_key, Field* field) {
  const std::string key = MetadataOf(*field, kPrimaryKey);
  const std::string position = MetadataOf(*field, kPrimaryKeyPosition);
  if (key == key_before && position == position_before) return Status::OK();
  if (table_has_key) {
    return InvalidInput(
        "the unenforced primary key is a reserved key and cannot be changed once set "
        "(column '",
        field->name(), "')");
  }
  field->set_unenforced_primary_key(IsTrue(key) || !position.empty());
  uint32_t value = 0;
  for (char c : position) {
    if (c < '0' || c > '9' || value > 100000000) break;
    value = value * 10 + static_cast<uint32_t>(c - '0');
  }
  field->set_unenforced_primary_key_position(value);
  return Status::OK();
}

}  // namespace

// A field that the table does not have yet must have an id that it never had.
Status NextManifestBuilder::CheckNewFields(const FieldList& schema) {
  std::map<int32_t, const Field*> known;
  for (const Field& field : header().fields()) known[field.id()] = &field;
  GLAIVE_ASSIGN_OR_RETURN(const int32_t max_id, MaxFieldId(*current_));
  RememberFieldId(max_id);
  std::set<int32_t> seen;
  for (const Field& field : schema) {
    if (field.id() < 0 || !seen.insert(field.id()).second) {
      return InvalidInput("column '", field.name(), "' has field id ", field.id(),
                          ", which is negative or taken twice");
    }
    const auto before = known.find(field.id());
    if (before != known.end()) {
      if (before->second->logical_type() == field.logical_type()) continue;
      return InvalidInput("column '", field.name(), "' changes its type from ",
                          before->second->logical_type(), " to ", field.logical_type(),
                          " and must have a new field id");
    }
    if (field.id() > max_id) continue;
    return InvalidInput("new column '", field.name(), "' has field id ", field.id(),
                        ", but the table has given all ids up to ", max_id);
  }
  return Status::OK();
}

Status NextManifestBuilder::ApplyMerge() {
  const auto& merge = transaction_.merge();
  GLAIVE_RETURN_NOT_OK(CheckNewFields(merge.schema()));
  const std::set<int32_t> schema = IdsOf(merge.schema());
  std::map<uint64_t, const DataFragment*> fragments;
  for (const DataFragment& fragment : merge.fragments()) {
    if (!fragments.emplace(fragment.id(), &fragment).second) {
      return InvalidInput("the merge names fragment ", fragment.id(), " twice");
    }
  }
  for (int i = 0; i < current_->fragments->size(); ++i) {
    const FragmentSummary& summary = current_->fragments->summary(i);
    const auto found = fragments.find(summary.id);
    if (found == fragments.end() ||
        found->second->physical_rows() != summary.physical_rows) {
      return InvalidInput(
          "a merge must keep every fragment with all its rows, but "
          "fragment ",
          summary.id, " has ", summary.physical_rows, " rows and comes ",
          found == fragments.end() ? "not back" : "back with others");
    }
    DataFragment fragment = *found->second;
    fragments.erase(found);
    FragmentState& state = current_->fragments->state(i);
    GLAIVE_RETURN_NOT_OK(state.status());
    DropDeadFiles(schema, &fragment);
    GLAIVE_RETURN_NOT_OK(CheckNew(&fragment));
    if (stable_) {
      const DataFragment& before = state.message();
      // Rows are what they were before the merge.
      if (fragment.row_id_sequence_case() == DataFragment::ROW_ID_SEQUENCE_NOT_SET &&
          before.has_inline_row_ids()) {
        fragment.set_inline_row_ids(before.inline_row_ids());
      }
      if (BringsFile(before, fragment)) {
        fragment.set_inline_last_updated_at_versions(
            EncodeRowVersions(summary.physical_rows, version_));
      }
    }
    if (fragment.SerializeAsString() == current_->fragments->serialized(i)) {
      Keep(current_, i);
    } else {
      GLAIVE_RETURN_NOT_OK(AddOwned(fragment));
    }
  }
  if (!fragments.empty()) {
    return InvalidInput("the merge names fragment ", fragments.begin()->first,
                        ", which the table does not have");
  }
  header().mutable_fields()->CopyFrom(merge.schema());
  // Without any, it was made by somebody who does not write them down.
  if (!merge.schema_metadata().empty()) {
    *header().mutable_schema_metadata() = merge.schema_metadata();
  }
  next_.schema_changed = true;
  return indices_.KeepColumns(header().fields());
}

Status NextManifestBuilder::ApplyProject() {
  const auto& project = transaction_.project();
  std::map<int32_t, const Field*> known;
  for (const Field& field : current_->header->fields()) known[field.id()] = &field;
  std::set<int32_t> schema;
  for (const Field& field : project.schema()) {
    const auto before = known.find(field.id());
    if (before == known.end() || before->second->logical_type() != field.logical_type()) {
      return InvalidInput("a projection cannot add column '", field.name(),
                          "' nor change its type");
    }
    if (!schema.insert(field.id()).second) {
      return InvalidInput("the projection names column '", field.name(), "' twice");
    }
  }
  GLAIVE_ASSIGN_OR_RETURN(const int32_t max_id, MaxFieldId(*current_));
  RememberFieldId(max_id);
  next_.serialized.reserve(current_->fragments->size());
  next_.summaries.reserve(current_->fragments->size());
  for (int i = 0; i < current_->fragments->size(); ++i) {
    const DataFragment& before = current_->fragments->state(i).message();
    const bool all_live =
        std::all_of(before.files().begin(), before.files().end(),
                    [&](const auto& file) { return HoldsLiveField(file, schema); });
    if (all_live) {
      Keep(current_, i);
      continue;
    }
    DataFragment fragment = before;
    DropDeadFiles(schema, &fragment);
    GLAIVE_RETURN_NOT_OK(AddOwned(fragment));
  }
  header().mutable_fields()->CopyFrom(project.schema());
  next_.schema_changed = true;
  return indices_.KeepColumns(header().fields());
}

Status NextManifestBuilder::ApplyDataReplacement() {
  const auto& operation = transaction_.data_replacement();
  std::map<uint64_t, const DataFile*> replacements;
  const DataFile* first = nullptr;
  for (const auto& group : operation.replacements()) {
    const DataFile& file = group.new_file();
    if (first == nullptr) first = &file;
    if (file.fields().empty() ||
        !std::equal(file.fields().begin(), file.fields().end(), first->fields().begin(),
                    first->fields().end())) {
      return InvalidInput(
          "all new files of a data replacement must hold the same fields");
    }
    if (!replacements.emplace(group.fragment_id(), &file).second) {
      return InvalidInput("the data replacement names fragment ", group.fragment_id(),
                          " twice");
    }
  }
  std::vector<uint32_t> replaced;
  for (int i = 0; i < current_->fragments->size(); ++i) {
    const FragmentSummary& summary = current_->fragments->summary(i);
    const auto found = replacements.find(summary.id);
    if (found == replacements.end()) {
      Keep(current_, i);
      continue;
    }
    const DataFile& file = *found->second;
    FragmentState& state = current_->fragments->state(i);
    GLAIVE_RETURN_NOT_OK(state.status());
    DataFragment fragment = state.message();
    DataFile* old = nullptr;
    bool known = false;
    for (DataFile& candidate : *fragment.mutable_files()) {
      if (std::equal(candidate.fields().begin(), candidate.fields().end(),
                     file.fields().begin(), file.fields().end()) &&
          candidate.file_major_version() == file.file_major_version() &&
          candidate.file_minor_version() == file.file_minor_version()) {
        old = &candidate;
      }
      for (int32_t id : candidate.fields()) {
        known |= std::count(file.fields().begin(), file.fields().end(), id) > 0;
      }
    }
    if (old != nullptr) {
      *old = file;
    } else if (!known) {
      *fragment.add_files() = file;
    } else {
      return InvalidInput("fragment ", summary.id,
                          " has no data file with exactly the fields of ", file.path());
    }
    GLAIVE_RETURN_NOT_OK(CheckNew(&fragment));
    if (stable_) {
      fragment.set_inline_last_updated_at_versions(
          EncodeRowVersions(summary.physical_rows, version_));
    }
    GLAIVE_RETURN_NOT_OK(AddOwned(fragment));
    replaced.push_back(summary.id);
    replacements.erase(found);
  }
  if (!replacements.empty()) {
    return InvalidInput("the data replacement names fragment ",
                        replacements.begin()->first, ", which the table does not have");
  }
  if (first == nullptr) return Status::OK();
  const std::vector<int32_t> fields(first->fields().begin(), first->fields().end());
  return indices_.Uncover(fields, replaced);
}

Status NextManifestBuilder::ApplyUpdateConfig() {
  const auto& update = transaction_.update_config();
  auto* config = header().mutable_config();
  // The deprecated form first; nobody writes both.
  for (const auto& [key, value] : update.upsert_values()) (*config)[key] = value;
  for (const std::string& key : update.delete_keys()) config->erase(key);
  ApplyUpdateMap(update.config_updates(), config);
  RememberFieldId(RememberedFieldId(*current_->header));
  ApplyUpdateMap(update.table_metadata_updates(), header().mutable_table_metadata());
  if (!update.schema_metadata().empty()) {
    next_.schema_changed = true;
    auto* metadata = header().mutable_schema_metadata();
    metadata->clear();
    for (const auto& [key, value] : update.schema_metadata()) (*metadata)[key] = value;
  }
  if (update.has_schema_metadata_updates()) {
    next_.schema_changed = true;
    ApplyUpdateMap(update.schema_metadata_updates(), header().mutable_schema_metadata());
  }
  auto* fields = header().mutable_fields();
  const bool has_key = std::any_of(fields->begin(), fields->end(), [](const Field& f) {
    return f.unenforced_primary_key();
  });
  auto change = [&](int64_t id, const auto& apply) -> Status {
    next_.schema_changed = true;
    auto field = std::find_if(fields->begin(), fields->end(),
                              [id](const auto& f) { return f.id() == id; });
    if (field == fields->end()) {
      return InvalidInput("the table has no field with id ", id);
    }
    const std::string key = MetadataOf(*field, kPrimaryKey);
    const std::string position = MetadataOf(*field, kPrimaryKeyPosition);
    apply(field->mutable_metadata());
    return FollowPrimaryKey(key, position, has_key, &*field);
  };
  for (const auto& [id, wanted] : update.field_metadata()) {
    GLAIVE_RETURN_NOT_OK(change(id, [&entries = wanted](auto* metadata) {
      metadata->clear();
      for (const auto& [key, value] : entries.metadata()) (*metadata)[key] = value;
    }));
  }
  for (const auto& [id, map] : update.field_metadata_updates()) {
    GLAIVE_RETURN_NOT_OK(change(
        id, [&updates = map](auto* metadata) { ApplyUpdateMap(updates, metadata); }));
  }
  return Status::OK();
}

Status NextManifestBuilder::ApplyCreateIndex() {
  const std::set<int32_t> schema = IdsOf(header().fields());
  for (const auto& index : transaction_.create_index().new_indices()) {
    for (int32_t id : index.fields()) {
      if (schema.count(id) == 0) {
        return InvalidInput("index ", index.name(), " is on field ", id,
                            ", which the table does not have");
      }
    }
  }
  return indices_.Create(transaction_.create_index());
}

void NextManifestBuilder::RememberFieldIds(const DataFragment& fragment) {
  RememberFieldId(MaxFieldIdOf(fragment));
}

// Writes the highest field id down where the next manifest would not know it.
Status NextManifestBuilder::KeepFieldIds() {
  if (vanishing_field_id_ <= RememberedFieldId(header())) return Status::OK();
  for (const Field& field : header().fields()) {
    if (field.id() >= vanishing_field_id_) return Status::OK();
  }
  for (std::string_view serialized : next_.serialized) {
    DataFragment fragment;
    if (!fragment.ParseFromArray(serialized.data(),
                                 static_cast<int>(serialized.size()))) {
      return Corruption("a fragment of the manifest does not decode");
    }
    if (MaxFieldIdOf(fragment) >= vanishing_field_id_) return Status::OK();
  }
  (*header().mutable_config())[kMaxFieldIdKey] = std::to_string(vanishing_field_id_);
  return Status::OK();
}

}  // namespace glaive::table
