// glaive._glaive.Dataset.
#include "table/dataset.h"

#include <utility>

#include <arrow/buffer.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>

#include "arrow_interop.h"
#include "bindings.h"
#include "branches.h"
#include "changes.h"
#include "db/environment.h"
#include "format/table.pb.h"
#include "fragments.h"
#include "io/object_store.h"
#include "memwal.h"
#include "readable-inl.h"
#include "schema_changes.h"
#include "table/bases.h"
#include "table/migrate_names.h"
#include "table/schema_change.h"

namespace glaive::python {
namespace {

using StringMap = std::map<std::string, std::string>;
using table::Dataset;

// A version of a dataset is what was committed: fresh rows of an LSM write path are read
// through a table, or through glaive.lance's LsmScanner.
Result<db::ReadSource> SourceOf(PyDataset& self, std::optional<bool> use_lsm) {
  if (use_lsm == true) {
    return InvalidInput("a dataset is read without fresh rows: use an LsmScanner");
  }
  return db::ReadSource{self.dataset, nullptr};
}

std::unique_ptr<PyDataset> Wrap(Dataset::Ptr dataset, std::string uri) {
  Warn(dataset->warnings());
  return std::make_unique<PyDataset>(std::move(dataset), std::move(uri));
}

// As users see it: absolute for paths.
std::string ShownUri(const table::TableEnv& env, const std::string& uri) {
  return uri.find("://") == std::string::npos ? env.store->root() : uri;
}

std::unique_ptr<PyDataset> Open(const std::string& uri,
                                std::optional<db::VersionRef> version,
                                std::optional<int64_t> asof_us,
                                std::optional<StringMap> /*storage_options*/) {
  Call call;
  std::string shown;
  auto dataset = call.Run([&]() -> Result<Dataset::Ptr> {
    auto env = db::OpenTableEnv(uri, /*create=*/false);
    if (!env.ok()) {
      if (KindOf(env.status()) != ErrorKind::kNotFound) return env.status();
      return NotFound("Dataset at path ", uri, " was not found");
    }
    shown = ShownUri(*env, uri);
    if (version && std::holds_alternative<int64_t>(*version) && !asof_us) {
      auto opened = Dataset::Open(*env, std::get<int64_t>(*version));
      if (!opened.ok() && KindOf(opened.status()) == ErrorKind::kNotFound) {
        return NotFound("Dataset at path ", uri, ", version ",
                        std::get<int64_t>(*version),
                        " was not found: ", opened.status().message());
      }
      return opened;
    }
    auto opened = Dataset::Open(*env);
    if (!opened.ok() && KindOf(opened.status()) == ErrorKind::kNotFound) {
      return NotFound("Dataset at path ", uri,
                      " was not found: ", opened.status().message());
    }
    GLAIVE_ASSIGN_OR_RETURN(auto latest, std::move(opened));
    if (version) return db::CheckoutRef(*latest, *version);
    if (asof_us) return latest->CheckoutAsOf(*asof_us);
    return latest;
  });
  return Wrap(std::move(dataset), std::move(shown));
}

bool Exists(const std::string& uri, std::optional<StringMap> /*storage_options*/) {
  Call call;
  return call.Run([&]() -> Result<bool> {
    auto env = db::OpenTableEnv(uri, /*create=*/false);
    if (!env.ok() && KindOf(env.status()) == ErrorKind::kNotFound) return false;
    GLAIVE_RETURN_NOT_OK(env.status());
    return Dataset::Exists(*env);
  });
}

table::WriteMode ParseMode(const std::string& mode) {
  if (mode == "create") return table::WriteMode::kCreate;
  if (mode == "append") return table::WriteMode::kAppend;
  if (mode == "overwrite") return table::WriteMode::kOverwrite;
  Raise(InvalidInput("Invalid mode ", mode, ": it must be create, append or overwrite"));
}

std::unique_ptr<PyDataset> Write(
    nb::object data, const std::variant<PyDataset*, std::string>& dest,
    const std::string& mode, std::optional<int64_t> max_rows_per_file,
    std::optional<int64_t> max_bytes_per_file,
    std::optional<std::string> data_storage_version, bool stable_row_ids,
    bool v2_manifest_paths, std::optional<StringMap> transaction_properties,
    nb::object progress, std::optional<StringMap> /*storage_options*/) {
  Call call;
  table::WriteOptions options;
  options.mode = ParseMode(mode);
  if (max_rows_per_file) {
    if (*max_rows_per_file <= 0) {
      Raise(InvalidInput("Invalid input, max_rows_per_file must be positive"));
    }
    options.max_rows_per_file = *max_rows_per_file;
  }
  if (max_bytes_per_file) {
    if (*max_bytes_per_file <= 0) {
      Raise(InvalidInput("Invalid input, max_bytes_per_file must be positive"));
    }
    options.max_bytes_per_file = *max_bytes_per_file;
  }
  if (data_storage_version) {
    options.file_version = Unwrap(file::ParseFileVersion(*data_storage_version));
  }
  options.stable_row_ids = stable_row_ids;
  options.v2_manifest_paths = v2_manifest_paths;
  if (transaction_properties)
    options.transaction_properties = std::move(*transaction_properties);
  options.progress = ProgressHook(std::move(progress), &call);
  options.cancel = call.token();

  std::shared_ptr<arrow::Schema> schema_only;
  std::shared_ptr<arrow::RecordBatchReader> stream;
  if (IsSchemaOnly(data)) {
    schema_only = ImportSchema(data);
  } else {
    stream = ImportStream(data, &call);
  }
  std::string shown;
  std::vector<std::string> warnings;
  auto dataset = call.Run([&]() -> Result<Dataset::Ptr> {
    if (options.mode != table::WriteMode::kAppend) {  // before a directory is made
      GLAIVE_RETURN_NOT_OK(
          table::CheckColumnNames(schema_only ? *schema_only : *stream->schema()));
    }
    table::TableEnv env;
    if (const auto* uri = std::get_if<std::string>(&dest)) {
      GLAIVE_ASSIGN_OR_RETURN(env, db::OpenTableEnv(*uri, /*create=*/true));
      shown = ShownUri(env, *uri);
    } else {
      const PyDataset& other = *std::get<PyDataset*>(dest);
      env = other.dataset->env();
      shown = other.uri;
    }
    if (options.mode != table::WriteMode::kCreate) {
      auto current = Dataset::Open(env);
      if (current.ok()) {
        warnings = (*current)->warnings();
      } else if (KindOf(current.status()) != ErrorKind::kNotFound) {
        return current.status();
      } else if (options.mode == table::WriteMode::kAppend) {
        // An append to nothing creates, as upstream does.
        options.mode = table::WriteMode::kCreate;
      }
    }
    auto written = schema_only ? Dataset::WriteEmpty(env, *schema_only, options)
                               : Dataset::Write(env, *stream, options);
    stream.reset();
    if (!written.ok() && KindOf(written.status()) == ErrorKind::kAlreadyExists) {
      return AlreadyExists("Dataset already exists: ", shown);
    }
    return written;
  });
  Warn(warnings);
  return Wrap(std::move(dataset), std::move(shown));
}

void Drop(const std::string& uri, bool ignore_not_found) {
  Call call;
  call.Run([&]() -> Status {
    auto env = db::OpenTableEnv(uri, /*create=*/false);
    bool exists = env.ok();
    if (!exists && KindOf(env.status()) != ErrorKind::kNotFound) return env.status();
    if (exists) {
      GLAIVE_ASSIGN_OR_RETURN(auto content,
                              env->store->List("_versions", /*recursive=*/false));
      exists = !content.empty();
    }
    if (exists) return env->store->DeleteTree("");
    if (ignore_not_found) return Status::OK();
    return NotFound("Dataset at path ", uri, " was not found");
  });
}

template <typename Map>
nb::dict ToDict(const Map& map) {
  nb::dict out;
  for (const auto& [key, value] : map)
    out[key.c_str()] = nb::str(value.data(), value.size());
  return out;
}

nb::object FragmentToPython(const Dataset& dataset, int index) {
  nb::dict out = FragmentToDict(dataset.fragment(index));
  out["physical_rows"] = dataset.physical_rows(index);
  out["num_deletions"] = dataset.physical_rows(index) - dataset.live_rows(index);
  return out;
}

// Position of a fragment, or -1. Fragments are in id order.
int FindFragment(const Dataset& dataset, int64_t id) {
  int low = 0, high = dataset.num_fragments();
  while (low < high) {
    const int middle = low + (high - low) / 2;
    if (static_cast<int64_t>(dataset.fragment(middle).id()) < id) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low < dataset.num_fragments() &&
      static_cast<int64_t>(dataset.fragment(low).id()) == id) {
    return low;
  }
  return -1;
}

nb::object TakeFragmentOffsets(PyDataset& self, int64_t fragment_id, nb::object offsets,
                               nb::object columns, bool with_row_id,
                               bool with_row_address, bool nested) {
  auto wanted = ImportOffsets(offsets, "offsets");
  const Columns parsed = ParseColumns(columns);
  Call call;
  return ToPyArrow(call.Run([&]() -> Result<std::shared_ptr<arrow::Table>> {
    const Dataset& dataset = *self.dataset;
    const int index = FindFragment(dataset, fragment_id);
    if (index < 0) {
      return InvalidInput("Invalid input, there is no fragment ", fragment_id,
                          " in version ", dataset.version(), " of ", self.uri);
    }
    int64_t before = 0;
    for (int i = 0; i < index; ++i) before += dataset.live_rows(i);
    const int64_t rows = dataset.live_rows(index);
    for (int64_t& offset : wanted) {
      if (offset >= rows) {
        return InvalidInput("Invalid input, offset ", offset,
                            " is out of range: fragment ", fragment_id, " of ", self.uri,
                            " has ", rows, " rows");
      }
      offset += before;
    }
    GLAIVE_ASSIGN_OR_RETURN(auto selection, MakeSelection(dataset, parsed, with_row_id,
                                                          with_row_address, nested));
    return exec::TakeOffsets(dataset, wanted, selection);
  }));
}

nb::bytes ReadDataFile(PyDataset& self, const std::string& path, int64_t offset,
                       int64_t length, std::optional<uint32_t> base_id) {
  Call call;
  auto bytes = call.Run([&]() -> Result<std::shared_ptr<arrow::Buffer>> {
    if (offset < 0 || length < 0) {
      return InvalidInput("Invalid input, offset and length must not be negative");
    }
    lance::table::DataFile named;
    named.set_path(path);
    if (base_id) named.set_base_id(*base_id);
    GLAIVE_ASSIGN_OR_RETURN(const auto place, table::PlaceOf(self.dataset->env(), named));
    GLAIVE_ASSIGN_OR_RETURN(auto file, place.store->Open(place.path));
    return file->Read({offset, length});
  });
  return nb::bytes(bytes->data(), static_cast<size_t>(bytes->size()));
}

}  // namespace

void BindDataset(nb::module_& m) {
  using nb::literals::operator""_a;
  const auto none = nb::none();
  nb::class_<PyDataset> c(m, "Dataset");
  c.def_static("open", &Open, "uri"_a, "version"_a = none, nb::kw_only(),
               "asof_us"_a = none, "storage_options"_a = none)
      .def_static("exists", &Exists, "uri"_a, nb::kw_only(), "storage_options"_a = none)
      .def_static("write", &Write, "data"_a, "dest"_a, nb::kw_only(), "mode"_a = "create",
                  "max_rows_per_file"_a = none, "max_bytes_per_file"_a = none,
                  "data_storage_version"_a = none, "enable_stable_row_ids"_a = false,
                  "enable_v2_manifest_paths"_a = true, "transaction_properties"_a = none,
                  "progress"_a = none, "storage_options"_a = none)
      .def_static("drop", &Drop, "uri"_a, nb::kw_only(), "ignore_not_found"_a = false)
      .def_prop_ro("uri", [](PyDataset& self) { return self.uri; })
      .def_prop_ro("version", [](PyDataset& self) { return self.dataset->version(); })
      .def_prop_ro("timestamp_us",
                   [](PyDataset& self) {
                     const auto& time = self.dataset->manifest().timestamp();
                     return time.seconds() * 1000000 + time.nanos() / 1000;
                   })
      .def_prop_ro(
          "schema",
          [](PyDataset& self) { return ToPyArrow(self.dataset->arrow_schema()); })
      .def_prop_ro("fields",
                   [](PyDataset& self) { return FieldList(self.dataset->schema()); })
      .def_prop_ro(
          "data_storage_version",
          [](PyDataset& self) {
            return std::string(file::FileVersionName(self.dataset->file_version()));
          })
      .def_prop_ro("has_stable_row_ids",
                   [](PyDataset& self) { return self.dataset->has_stable_row_ids(); })
      .def_prop_ro("max_field_id",
                   [](PyDataset& self) { return self.dataset->schema().max_id(); })
      .def_prop_ro(
          "config",
          [](PyDataset& self) { return ToDict(self.dataset->manifest().config()); })
      .def_prop_ro("table_metadata",
                   [](PyDataset& self) {
                     return ToDict(self.dataset->manifest().table_metadata());
                   })
      .def("latest",
           [](PyDataset& self) {
             Call call;
             return Wrap(call.Run([&] { return self.dataset->Latest(); }), self.uri);
           })
      .def("latest_version",
           [](PyDataset& self) {
             Call call;
             return call.Run([&] { return self.dataset->Latest(); })->version();
           })
      .def(
          "checkout",
          [](PyDataset& self, const db::VersionRef& version) {
            Call call;
            auto found =
                call.Run([&] { return db::CheckoutRef(*self.dataset, version); });
            // A tag may name a version of another branch.
            const std::string& root = found->env().store->root();
            std::string uri = root == self.dataset->env().store->root() ? self.uri : root;
            return Wrap(std::move(found), std::move(uri));
          },
          "version"_a)
      .def("restore",
           [](PyDataset& self) {
             Call call;
             return Wrap(call.Run([&] { return self.dataset->Restore(); }), self.uri);
           })
      .def("num_fragments", [](PyDataset& self) { return self.dataset->num_fragments(); })
      .def("fragment_ids",
           [](PyDataset& self) {
             nb::list out;
             for (int i = 0; i < self.dataset->num_fragments(); ++i) {
               out.append(self.dataset->fragment(i).id());
             }
             return out;
           })
      .def(
          "fragment",
          [](PyDataset& self, int64_t fragment_id) -> nb::object {
            const int index = FindFragment(*self.dataset, fragment_id);
            if (index < 0) return nb::none();
            return FragmentToPython(*self.dataset, index);
          },
          "fragment_id"_a)
      .def("take_fragment_offsets", &TakeFragmentOffsets, "fragment_id"_a, "offsets"_a,
           "columns"_a = none, nb::kw_only(), "with_row_id"_a = false,
           "with_row_address"_a = false, "nested"_a = false)
      .def("read_data_file", &ReadDataFile, "path"_a, "offset"_a, "length"_a,
           "base_id"_a = none)
      .def("migrate_manifest_names",
           [](PyDataset& self) {
             Call call;
             call.Run([&] { return table::MigrateManifestNames(self.dataset->env()); });
           })
      .def("uses_v2_manifest_paths", [](PyDataset& self) {
        Call call;
        return call.Run([&] { return db::UsesV2ManifestPaths(*self.dataset); });
      });
  ReadableMethods<PyDataset, &SourceOf>::Bind(c);
  BindDatasetSchemaChanges(c);
  BindDatasetBranches(c);
  BindDatasetChanges(c);
  BindDatasetMemWal(c);
  BindFragments(c);
}

}  // namespace glaive::python
