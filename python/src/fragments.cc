#include "fragments.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include <arrow/record_batch.h>
#include <arrow/type.h>
#include <google/protobuf/util/json_util.h>

#include "arrow_interop.h"
#include "call.h"
#include "db/environment.h"
#include "file/file_reader.h"
#include "format/table.pb.h"
#include "format/transaction.pb.h"
#include "io/object_store.h"
#include "table/commit.h"
#include "table/deletion_file.h"
#include "table/deletion_vector.h"
#include "table/fragment_writer.h"
#include "table/names.h"
#include "table/schema_change.h"
#include "table/write.h"

namespace glaive::python {
namespace {

using lance::table::DataFragment;
using lance::table::Transaction;
using table::Dataset;
using Destination = std::variant<PyDataset*, std::string>;

template <typename Repeated>
nb::list ToList(const Repeated& values) {
  nb::list out;
  for (auto value : values) out.append(value);
  return out;
}

nb::object FileToPython(const lance::table::DataFile& file) {
  nb::dict out;
  out["path"] = file.path();
  out["fields"] = ToList(file.fields());
  out["column_indices"] = ToList(file.column_indices());
  out["file_major_version"] = file.file_major_version();
  out["file_minor_version"] = file.file_minor_version();
  out["file_size_bytes"] =
      file.file_size_bytes() ? nb::cast(file.file_size_bytes()) : nb::none();
  out["base_id"] = file.has_base_id() ? nb::cast(file.base_id()) : nb::none();
  return out;
}

nb::object DeletionFileToPython(uint64_t fragment_id,
                                const lance::table::DeletionFile& file) {
  const bool bitmap = file.file_type() == lance::table::DeletionFile::BITMAP;
  nb::dict out;
  out["path"] = "_deletions/" + std::to_string(fragment_id) + "-" +
                std::to_string(file.read_version()) + "-" + std::to_string(file.id()) +
                (bitmap ? ".bin" : ".arrow");
  out["file_type"] = bitmap ? "bitmap" : "array";
  out["read_version"] = file.read_version();
  out["id"] = file.id();
  out["num_deleted_rows"] = file.num_deleted_rows();
  out["base_id"] = file.has_base_id() ? nb::cast(file.base_id()) : nb::none();
  return out;
}

Result<table::TableEnv> EnvOf(const Destination& dest) {
  if (const auto* uri = std::get_if<std::string>(&dest)) {
    return db::OpenTableEnv(*uri, /*create=*/true);
  }
  return std::get<PyDataset*>(dest)->dataset->env();
}

// The newest version, or null where there is no table yet.
Result<Dataset::Ptr> Newest(const table::TableEnv& env) {
  auto opened = Dataset::Open(env);
  if (opened.ok() || KindOf(opened.status()) != ErrorKind::kNotFound) return opened;
  return Dataset::Ptr();
}

// Data files that no version has yet. The ids of the fragments are given by the commit.
nb::list WriteFragments(nb::object data, const Destination& dest, const std::string& mode,
                        std::optional<int64_t> max_rows_per_file,
                        std::optional<int64_t> max_bytes_per_file,
                        std::optional<std::string> data_storage_version) {
  table::FragmentWriterOptions options;
  if (max_rows_per_file) options.max_rows_per_file = *max_rows_per_file;
  if (max_bytes_per_file) options.max_bytes_per_file = *max_bytes_per_file;
  if (options.max_rows_per_file <= 0 || options.max_bytes_per_file <= 0) {
    Raise(InvalidInput("Invalid input, the bounds of a file must be positive"));
  }
  std::optional<file::FileVersion> version;
  if (data_storage_version) {
    version = Unwrap(file::ParseFileVersion(*data_storage_version));
  }
  Call call;
  auto stream = ImportStream(data, &call);
  const auto written = call.Run([&]() -> Result<std::vector<DataFragment>> {
    if (mode != "append") {  // before a directory is made
      GLAIVE_RETURN_NOT_OK(table::CheckColumnNames(*stream->schema()));
    }
    GLAIVE_ASSIGN_OR_RETURN(table::TableEnv env, EnvOf(dest));
    GLAIVE_ASSIGN_OR_RETURN(const Dataset::Ptr current, Newest(env));
    if (mode == "create" && current != nullptr) {
      return table::DatasetAlreadyExists(*env.store);
    }
    file::Schema schema;
    if (mode == "append" && current != nullptr) {
      GLAIVE_ASSIGN_OR_RETURN(
          schema, table::SchemaForAppend(current->schema(), *stream->schema()));
    } else {
      GLAIVE_ASSIGN_OR_RETURN(schema, file::Schema::FromArrow(*stream->schema()));
      if (!version) version = table::VersionForOldBlobs(schema);
    }
    options.version = version.value_or(current != nullptr ? current->file_version()
                                                          : file::kDefaultFileVersion);
    table::FragmentWriter writer(env, std::move(schema), options);
    while (true) {
      GLAIVE_RETURN_NOT_OK(call.token()->CheckOnCaller());
      std::shared_ptr<arrow::RecordBatch> batch;
      GLAIVE_RETURN_NOT_OK(stream->ReadNext(&batch));
      if (batch == nullptr) break;
      if (batch->num_rows() > 0) GLAIVE_RETURN_NOT_OK(writer.Write(*batch));
    }
    stream.reset();
    GLAIVE_ASSIGN_OR_RETURN(std::vector<DataFragment> fragments, writer.Finish());
    writer.Keep();
    return fragments;
  });
  nb::list out;
  for (const DataFragment& fragment : written) out.append(FragmentToDict(fragment));
  return out;
}

// Field ids in the order of a walk over the schema.
Status SetIds(const std::vector<int32_t>& ids, int32_t parent,
              std::vector<file::Field>* fields, size_t* next) {
  for (file::Field& field : *fields) {
    if (*next >= ids.size() || ids[*next] < 0) {
      return InvalidInput("Invalid input, the schema has more fields than field ids");
    }
    field.id = ids[(*next)++];
    field.parent_id = parent;
    GLAIVE_RETURN_NOT_OK(SetIds(ids, field.id, &field.children, next));
  }
  return Status::OK();
}

// Columns of a known name keep their ids, as do members of structs; others get new ones.
void KeepIds(const std::vector<file::Field>& known, int32_t parent, int32_t* next,
             std::vector<file::Field>* fields) {
  static const std::vector<file::Field> kNone;
  for (file::Field& field : *fields) {
    const auto same = std::find_if(known.begin(), known.end(), [&](const auto& other) {
      return other.name == field.name;
    });
    field.id = same == known.end() ? (*next)++ : same->id;
    field.parent_id = parent;
    KeepIds(same == known.end() ? kNone : same->children, field.id, next,
            &field.children);
  }
}

Result<file::Schema> SchemaOf(const arrow::Schema& arrow_schema,
                              const std::optional<std::vector<int32_t>>& ids,
                              const Dataset* keep_ids_of) {
  GLAIVE_ASSIGN_OR_RETURN(file::Schema schema, file::Schema::FromArrow(arrow_schema));
  std::vector<file::Field> fields = schema.fields();
  if (ids) {
    size_t next = 0;
    GLAIVE_RETURN_NOT_OK(SetIds(*ids, -1, &fields, &next));
    if (next != ids->size()) {
      return InvalidInput("Invalid input, the schema has fewer fields than field ids");
    }
  } else if (keep_ids_of != nullptr) {
    GLAIVE_ASSIGN_OR_RETURN(int32_t next, keep_ids_of->max_field_id());
    ++next;
    KeepIds(keep_ids_of->schema().fields(), -1, &next, &fields);
  }
  return file::Schema(std::move(fields), schema.metadata());
}

// The file version that all data files have; unset without files.
Result<std::optional<file::FileVersion>> CommonVersion(
    const google::protobuf::RepeatedPtrField<DataFragment>& fragments) {
  std::optional<file::FileVersion> common;
  for (const DataFragment& fragment : fragments) {
    for (const auto& file : fragment.files()) {
      GLAIVE_ASSIGN_OR_RETURN(
          const auto version,
          file::ParseFileVersion(std::to_string(file.file_major_version()) + "." +
                                 std::to_string(file.file_minor_version())));
      if (common && *common != version) {
        return InvalidInput(
            "Invalid input, the data files of an overwrite have different file versions");
      }
      common = version;
    }
  }
  return common;
}

// What plain values of fragments do not carry is taken over from the version that the
// transaction was made on: in which versions rows were made and changed.
void RestoreLineage(const Dataset& dataset,
                    google::protobuf::RepeatedPtrField<DataFragment>* fragments) {
  for (DataFragment& fragment : *fragments) {
    const int index = dataset.FindFragment(static_cast<int64_t>(fragment.id()));
    if (index < 0) continue;
    const DataFragment& old = dataset.fragment(index);
    if (old.physical_rows() != fragment.physical_rows()) continue;
    if (!fragment.has_inline_row_ids() && old.has_inline_row_ids()) {
      fragment.set_inline_row_ids(old.inline_row_ids());
    }
    if (!fragment.has_inline_created_at_versions() &&
        old.has_inline_created_at_versions()) {
      fragment.set_inline_created_at_versions(old.inline_created_at_versions());
    }
    if (!fragment.has_inline_last_updated_at_versions() &&
        old.has_inline_last_updated_at_versions()) {
      fragment.set_inline_last_updated_at_versions(old.inline_last_updated_at_versions());
    }
  }
}

std::unique_ptr<PyDataset> CommitJson(const Destination& dest, const std::string& json,
                                      nb::object schema,
                                      std::optional<std::vector<int32_t>> field_ids,
                                      std::optional<int64_t> read_version,
                                      int max_retries, bool stable_row_ids,
                                      bool v2_manifest_paths,
                                      std::optional<double> timeout) {
  std::shared_ptr<arrow::Schema> arrow_schema;
  if (!schema.is_none()) arrow_schema = ImportSchema(schema);
  Call call(timeout, nullptr);
  std::string uri;
  auto committed = call.Run([&]() -> Result<Dataset::Ptr> {
    Transaction transaction;
    const auto parsed = google::protobuf::util::JsonStringToMessage(json, &transaction);
    if (!parsed.ok()) {
      return InvalidInput("Invalid input, the operation cannot be read: ",
                          std::string(parsed.message()));
    }
    GLAIVE_ASSIGN_OR_RETURN(const table::TableEnv env, EnvOf(dest));
    uri = std::holds_alternative<std::string>(dest) ? env.store->root()
                                                    : std::get<PyDataset*>(dest)->uri;
    Dataset::Ptr read;
    if (read_version && *read_version > 0) {
      GLAIVE_ASSIGN_OR_RETURN(read, Dataset::Open(env, *read_version));
    } else {
      GLAIVE_ASSIGN_OR_RETURN(read, Newest(env));
    }
    if (read == nullptr && !transaction.has_overwrite()) {
      return NotFound("Dataset at path ", uri, " was not found");
    }
    if (arrow_schema != nullptr) {
      const bool keep = !transaction.has_overwrite();
      GLAIVE_ASSIGN_OR_RETURN(
          const file::Schema fields,
          SchemaOf(*arrow_schema, field_ids, keep ? read.get() : nullptr));
      auto* out =
          transaction.has_overwrite() ? transaction.mutable_overwrite()->mutable_schema()
          : transaction.has_merge()   ? transaction.mutable_merge()->mutable_schema()
                                      : transaction.mutable_project()->mutable_schema();
      fields.ToProto(out);
      if (transaction.has_overwrite()) {
        for (const auto& [key, value] : fields.metadata()) {
          (*transaction.mutable_overwrite()->mutable_schema_metadata())[key] = value;
        }
      }
    }
    if (read != nullptr) {
      if (transaction.has_delete_()) {
        RestoreLineage(*read, transaction.mutable_delete_()->mutable_updated_fragments());
      }
      if (transaction.has_update()) {
        RestoreLineage(*read, transaction.mutable_update()->mutable_updated_fragments());
      }
      if (transaction.has_merge()) {
        RestoreLineage(*read, transaction.mutable_merge()->mutable_fragments());
      }
    }
    table::CommitOptions options;
    options.max_retries = max_retries;
    options.manifest.stable_row_ids = stable_row_ids;
    options.scheme =
        v2_manifest_paths ? table::NamingScheme::kV2 : table::NamingScheme::kV1;
    if (transaction.has_overwrite()) {
      GLAIVE_ASSIGN_OR_RETURN(options.manifest.file_version,
                              CommonVersion(transaction.overwrite().fragments()));
    }
    transaction.set_read_version(
        read == nullptr ? 0 : static_cast<uint64_t>(read->version()));
    if (read != nullptr && !options.manifest.file_version) {
      return read->Commit(std::move(transaction), max_retries);
    }
    table::SnapshotPtr base;
    if (read != nullptr) {
      const auto state = table::StateOf(env);
      GLAIVE_ASSIGN_OR_RETURN(base, table::NewestSnapshot(env, *state));
      transaction.set_read_version(base == nullptr ? 0 : base->version());
    }
    table::CommitOutcome outcome;
    GLAIVE_ASSIGN_OR_RETURN(
        const table::SnapshotPtr made,
        table::CommitTransaction(env, base, std::move(transaction), options, &outcome));
    return Dataset::Open(env, static_cast<int64_t>(made->version()));
  });
  return std::make_unique<PyDataset>(std::move(committed), std::move(uri));
}

// The fragment without the live rows whose offsets are given, as a commit takes it: its
// deletion file is written. None when no row is left.
nb::object DeleteInFragment(PyDataset& self, int64_t fragment_id, nb::object offsets) {
  std::vector<uint32_t> gone;
  for (const int64_t offset : ImportOffsets(offsets, "offsets")) {
    if (offset < 0 || offset > std::numeric_limits<uint32_t>::max()) {
      Raise(InvalidInput("Invalid input, ", offset, " is no offset of a row"));
    }
    gone.push_back(static_cast<uint32_t>(offset));
  }
  std::sort(gone.begin(), gone.end());
  Call call;
  const auto left = call.Run([&]() -> Result<std::optional<DataFragment>> {
    const Dataset& dataset = *self.dataset;
    const int index = dataset.FindFragment(fragment_id);
    if (index < 0) {
      return InvalidInput("Invalid input, version ", dataset.version(), " of ", self.uri,
                          " has no fragment ", fragment_id);
    }
    DataFragment fragment = dataset.fragment(index);
    if (gone.empty()) return std::optional(std::move(fragment));
    const int64_t physical = dataset.physical_rows(index);
    if (gone.back() >= physical) {
      return InvalidInput("Invalid input, fragment ", fragment_id, " has ", physical,
                          " rows, not one at ", gone.back());
    }
    GLAIVE_ASSIGN_OR_RETURN(const auto before, dataset.deletions(index));
    const auto after = before == nullptr ? table::DeletionVector::FromOffsets(gone)
                                         : before->Union(gone);
    if (after->size() >= physical) return std::optional<DataFragment>();
    GLAIVE_ASSIGN_OR_RETURN(
        *fragment.mutable_deletion_file(),
        table::WriteDeletionFile(*dataset.env().store, fragment.id(),
                                 static_cast<uint64_t>(dataset.version()), *after,
                                 /*always_bitmap=*/false));
    return std::optional(std::move(fragment));
  });
  return left ? nb::object(FragmentToDict(*left)) : nb::none();
}

// A data file that lies below the table's data already, as a fragment of its own.
nb::dict FragmentOfFile(PyDataset& self, const std::string& name, uint64_t fragment_id) {
  Call call;
  return FragmentToDict(call.Run([&]() -> Result<DataFragment> {
    const Dataset& dataset = *self.dataset;
    const std::string path = table::DataFilePath(name);
    GLAIVE_ASSIGN_OR_RETURN(auto object, dataset.env().store->Open(path));
    const int64_t bytes = object->size_bytes();
    GLAIVE_ASSIGN_OR_RETURN(const auto reader, file::FileReader::Open(std::move(object)));
    GLAIVE_ASSIGN_OR_RETURN(const file::Projection all, reader->ProjectAll());
    DataFragment fragment;
    fragment.set_id(fragment_id);
    fragment.set_physical_rows(static_cast<uint64_t>(reader->num_rows()));
    auto* file = fragment.add_files();
    file->set_path(name);
    file->set_file_size_bytes(static_cast<uint64_t>(bytes));
    const auto [major, minor] = file::DataFileVersion(reader->version());
    file->set_file_major_version(major);
    file->set_file_minor_version(minor);
    for (const auto& [id, column] : all.columns) {
      const std::string name_in_file = table::PathOfField(all.schema, id);
      const file::Field* theirs = table::FindField(all.schema, name_in_file);
      const file::Field* ours = table::FindField(dataset.schema(), name_in_file);
      if (theirs == nullptr || ours == nullptr ||
          ours->logical_type != theirs->logical_type) {
        return SchemaMismatch(
            "file ", path, " has a column '", name_in_file, "' (",
            theirs == nullptr ? "?" : theirs->logical_type, "), which table ", self.uri,
            ours == nullptr ? " does not have" : " has as " + ours->logical_type);
      }
      file->add_fields(ours->id);
      file->add_column_indices(column);
    }
    return fragment;
  }));
}

void AppendFields(const std::vector<file::Field>& fields, nb::list* out) {
  for (const auto& field : fields) {
    nb::dict metadata;
    for (const auto& [key, value] : field.metadata) metadata[key.c_str()] = value;
    nb::dict one;
    one["id"] = field.id;
    one["parent_id"] = field.parent_id;
    one["name"] = field.name;
    one["logical_type"] = field.logical_type;
    one["nullable"] = field.nullable;
    one["metadata"] = std::move(metadata);
    out->append(std::move(one));
    AppendFields(field.children, out);
  }
}

}  // namespace

nb::list FieldList(const file::Schema& schema) {
  nb::list out;
  AppendFields(schema.fields(), &out);
  return out;
}

nb::dict FragmentToDict(const DataFragment& fragment) {
  nb::list files;
  for (const auto& file : fragment.files()) files.append(FileToPython(file));
  nb::dict out;
  out["id"] = fragment.id();
  out["physical_rows"] = fragment.physical_rows();
  out["num_deletions"] = fragment.deletion_file().num_deleted_rows();
  out["files"] = std::move(files);
  out["deletion_file"] =
      fragment.has_deletion_file()
          ? DeletionFileToPython(fragment.id(), fragment.deletion_file())
          : nb::none();
  const auto inlined = [&out](const char* name, bool there, const std::string& bytes) {
    out[name] = there ? nb::object(nb::bytes(bytes.data(), bytes.size())) : nb::none();
  };
  inlined("row_id_meta", fragment.has_inline_row_ids(), fragment.inline_row_ids());
  inlined("created_at_version_meta", fragment.has_inline_created_at_versions(),
          fragment.inline_created_at_versions());
  inlined("last_updated_at_version_meta", fragment.has_inline_last_updated_at_versions(),
          fragment.inline_last_updated_at_versions());
  return out;
}

void BindFragments(nb::class_<PyDataset>& c) {
  using namespace nb::literals;  // NOLINT(google-build-using-namespace)
  const nb::handle none = nb::none();
  c.def_static("write_fragments", &WriteFragments, "data"_a, "dest"_a, nb::kw_only(),
               "mode"_a = "append", "max_rows_per_file"_a = none,
               "max_bytes_per_file"_a = none, "data_storage_version"_a = none)
      .def("delete_in_fragment", &DeleteInFragment, "fragment_id"_a, "offsets"_a)
      .def("fragment_of_file", &FragmentOfFile, "name"_a, "fragment_id"_a)
      .def_static("commit", &CommitJson, "dest"_a, "operation"_a, nb::kw_only(),
                  "schema"_a.none() = none, "field_ids"_a = none, "read_version"_a = none,
                  "max_retries"_a = 20, "stable_row_ids"_a = false,
                  "v2_manifest_paths"_a = true, "timeout"_a = none);
}

}  // namespace glaive::python
