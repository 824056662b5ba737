#include "table/write.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include <arrow/record_batch.h>
#include <arrow/type.h>

#include "format/table.pb.h"
#include "format/transaction.pb.h"
#include "runtime/cancel.h"
#include "table/commit.h"
#include "table/fragment_writer.h"
#include "table/schema_change.h"

namespace glaive::table {
namespace {

using lance::table::DataFragment;

// Types that differ by layout only; the file writer converts between them.
std::string LayoutFamily(const std::string& logical_type) {
  if (logical_type == "large_string") return "string";
  if (logical_type == "large_binary") return "binary";
  if (logical_type == "large_list") return "list";
  if (logical_type == "large_list.struct") return "list.struct";
  if (logical_type.starts_with("dict:")) {
    // dict:{value}:{key}:{ordered}; the value type may hold colons itself.
    const size_t ordered = logical_type.rfind(':');
    const size_t key = ordered == std::string::npos || ordered == 0
                           ? std::string::npos
                           : logical_type.rfind(':', ordered - 1);
    if (key != std::string::npos) return LayoutFamily(logical_type.substr(5, key - 5));
  }
  return logical_type;
}

Status CheckField(const file::Field& table, const file::Field& data,
                  const std::string& path) {
  if (LayoutFamily(table.logical_type) != LayoutFamily(data.logical_type)) {
    return SchemaMismatch("Append with different schema: column `", path,
                          "` should have type ", table.logical_type, " but type was ",
                          data.logical_type);
  }
  if (table.logical_type != "struct") {
    // Element names differ between producers ("item", "element"), so children go by
    // position.
    if (table.children.size() != data.children.size()) return Status::OK();
    for (size_t i = 0; i < table.children.size(); ++i) {
      GLAIVE_RETURN_NOT_OK(CheckField(table.children[i], data.children[i],
                                      path + "." + table.children[i].name));
    }
    return Status::OK();
  }
  for (const file::Field& child : data.children) {
    const auto known =
        std::find_if(table.children.begin(), table.children.end(),
                     [&](const file::Field& f) { return f.name == child.name; });
    if (known == table.children.end()) {
      return SchemaMismatch("Append with different schema: unexpected field `", path, ".",
                            child.name, "`");
    }
    GLAIVE_RETURN_NOT_OK(CheckField(*known, child, path + "." + child.name));
  }
  for (const file::Field& child : table.children) {
    const bool found =
        std::any_of(data.children.begin(), data.children.end(),
                    [&](const file::Field& f) { return f.name == child.name; });
    if (!found) {
      return SchemaMismatch("Append with different schema: field `", path, ".",
                            child.name, "` is missing");
    }
  }
  return Status::OK();
}

Status WriteAll(arrow::RecordBatchReader& data, const WriteOptions& options,
                FragmentWriter* writer) {
  while (true) {
    if (options.cancel != nullptr) GLAIVE_RETURN_NOT_OK(options.cancel->CheckOnCaller());
    std::shared_ptr<arrow::RecordBatch> batch;
    GLAIVE_RETURN_NOT_OK(data.ReadNext(&batch));
    if (batch == nullptr) return Status::OK();
    if (batch->num_rows() == 0) continue;
    GLAIVE_RETURN_NOT_OK(writer->Write(*batch));
    if (options.progress) options.progress(writer->num_rows());
  }
}

Status CheckOptions(const WriteOptions& options) {
  if (options.max_rows_per_file <= 0) {
    return InvalidInput("max_rows_per_file must be positive, not ",
                        options.max_rows_per_file);
  }
  if (options.max_bytes_per_file <= 0) {
    return InvalidInput("max_bytes_per_file must be positive, not ",
                        options.max_bytes_per_file);
  }
  if (options.max_retries < 0) {
    return InvalidInput("max_retries must not be negative, but is ", options.max_retries);
  }
  return Status::OK();
}

bool Any(const std::vector<file::Field>& fields, bool (*is)(const file::Field&)) {
  return std::any_of(fields.begin(), fields.end(), [&](const file::Field& field) {
    return is(field) || Any(field.children, is);
  });
}

bool IsOldBlob(const file::Field& field) {
  return field.is_blob() && !field.is_blob_v2();
}

// What older versions cannot hold, or not always.
bool Needs2_2(const file::Field& field) {
  return field.is_blob_v2() || field.logical_type == "map" || field.is_packed_struct() ||
         (field.type->id() == arrow::Type::FIXED_SIZE_LIST &&
          field.type->field(0)->type()->id() == arrow::Type::STRUCT);
}

bool LostRace(const Status& status) {
  return KindOf(status) == ErrorKind::kRetryableConflict ||
         KindOf(status) == ErrorKind::kAlreadyExists;
}

}  // namespace

Result<file::Schema> SchemaForAppend(const file::Schema& table,
                                     const arrow::Schema& data) {
  std::set<std::string> names;
  for (const auto& field : data.fields()) {
    if (!names.insert(field->name()).second) {
      return SchemaMismatch("column `", field->name(), "` appears twice in the data");
    }
    if (table.FindTopLevel(field->name()) == nullptr) {
      return SchemaMismatch(
          "Append with different schema: fields did not match, unexpected=[",
          field->name(), "]");
    }
  }
  GLAIVE_ASSIGN_OR_RETURN(const file::Schema incoming, file::Schema::FromArrow(data));
  std::vector<file::Field> fields;
  for (const file::Field& field : table.fields()) {
    const file::Field* given = incoming.FindTopLevel(field.name);
    if (given == nullptr) {
      if (field.nullable) continue;
      return SchemaMismatch(
          "Append with different schema: fields did not match, missing=[", field.name,
          "]: the column is not nullable");
    }
    GLAIVE_RETURN_NOT_OK(CheckField(field, *given, field.name));
    fields.push_back(field);
  }
  if (fields.empty() && !table.fields().empty()) {
    return SchemaMismatch("the data has no column of the table");
  }
  return file::Schema(std::move(fields), table.metadata());
}

std::optional<file::FileVersion> VersionForOldBlobs(const file::Schema& schema) {
  if (!Any(schema.fields(), IsOldBlob) || Any(schema.fields(), Needs2_2)) {
    return std::nullopt;
  }
  return file::FileVersion::k2_1;
}

Result<SnapshotPtr> WriteTable(const TableEnv& env, arrow::RecordBatchReader& data,
                               const WriteOptions& options) {
  GLAIVE_RETURN_NOT_OK(CheckOptions(options));
  auto state = StateOf(env);
  GLAIVE_ASSIGN_OR_RETURN(SnapshotPtr current, NewestSnapshot(env, *state));
  if (options.mode == WriteMode::kCreate && current)
    return DatasetAlreadyExists(*env.store);

  lance::table::Transaction transaction;
  CommitOptions commit;
  commit.max_retries = options.max_retries;
  transaction.mutable_transaction_properties()->insert(
      options.transaction_properties.begin(), options.transaction_properties.end());
  file::Schema schema;
  file::FileVersion version;
  // Writing to a table that does not exist yet makes it, whatever the mode.
  const bool append = options.mode == WriteMode::kAppend && current;
  if (append) {
    GLAIVE_ASSIGN_OR_RETURN(schema,
                            SchemaForAppend(current->schema->schema, *data.schema()));
    version = options.file_version.value_or(current->file_version);
  } else {
    GLAIVE_RETURN_NOT_OK(CheckColumnNames(*data.schema()));
    GLAIVE_ASSIGN_OR_RETURN(schema, file::Schema::FromArrow(*data.schema()));
    commit.manifest.file_version = options.file_version;
    if (!options.file_version) commit.manifest.file_version = VersionForOldBlobs(schema);
    version = commit.manifest.file_version.value_or(current ? current->file_version
                                                            : file::kDefaultFileVersion);
    commit.manifest.stable_row_ids = options.stable_row_ids;
    commit.scheme = options.v2_manifest_paths ? NamingScheme::kV2 : NamingScheme::kV1;
  }

  FragmentWriterOptions limits;
  limits.version = version;
  limits.max_rows_per_file = options.max_rows_per_file;
  limits.max_bytes_per_file = options.max_bytes_per_file;
  FragmentWriter writer(env, schema, limits);
  GLAIVE_RETURN_NOT_OK(WriteAll(data, options, &writer));
  GLAIVE_ASSIGN_OR_RETURN(std::vector<DataFragment> fragments,
                          writer.Finish(LastFile::kLeftToCommit));
  google::protobuf::RepeatedPtrField<DataFragment>* added;
  if (append) {
    added = transaction.mutable_append()->mutable_fragments();
  } else {
    auto* overwrite = transaction.mutable_overwrite();
    schema.ToProto(overwrite->mutable_schema());
    for (const auto& [key, value] : schema.metadata()) {
      (*overwrite->mutable_schema_metadata())[key] = value;
    }
    added = overwrite->mutable_fragments();
  }
  for (DataFragment& fragment : fragments) *added->Add() = std::move(fragment);
  transaction.set_read_version(current ? current->version() : 0);

  CommitOutcome outcome = CommitOutcome::kNotCommitted;
  auto committed = CommitTransaction(env, current, transaction, commit, &outcome);
  // An overwrite keeps nothing of what was there, so it may as well follow another one
  // that came first: only the version that it names has to move.
  for (int attempt = 0;
       options.mode == WriteMode::kOverwrite && attempt < options.max_retries &&
       outcome == CommitOutcome::kNotCommitted && LostRace(committed.status());
       ++attempt) {
    GLAIVE_ASSIGN_OR_RETURN(current, NewestSnapshot(env, *state));
    transaction.set_read_version(current ? current->version() : 0);
    committed = CommitTransaction(env, current, transaction, commit, &outcome);
  }
  if (outcome != CommitOutcome::kNotCommitted) writer.Keep();
  return committed;
}

}  // namespace glaive::table
