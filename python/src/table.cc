// glaive._glaive.Table.
#include "db/table.h"

#include <utility>

#include <arrow/record_batch.h>
#include <arrow/type.h>

#include "arrow_interop.h"
#include "bindings.h"
#include "branches.h"
#include "changes.h"
#include "format/table.pb.h"
#include "lsm.h"
#include "readable-inl.h"
#include "schema_changes.h"
#include "table/migrate_names.h"

namespace glaive::python {
namespace {

using StringMap = std::map<std::string, std::string>;

Result<db::ReadSource> SourceOf(db::Table& self, std::optional<bool> use_lsm) {
  return self.Source(use_lsm);
}

table::Dataset::Ptr Snapshot(db::Table& self) {
  Call call;
  auto snapshot = call.Run([&] { return self.Snapshot(); });
  Warn(self.TakeWarnings());
  return snapshot;
}

int64_t Add(db::Table& self, nb::object data, const std::string& mode,
            nb::object progress, std::optional<StringMap> storage_options) {
  Call call;
  db::AddOptions options;
  if (mode != "append" && mode != "overwrite") {
    Raise(InvalidInput("Invalid input, mode must be \"append\" or \"overwrite\", not \"",
                       mode, "\""));
  }
  options.overwrite = mode == "overwrite";
  if (storage_options) options.storage_options = std::move(*storage_options);
  options.progress = ProgressHook(std::move(progress), &call);
  options.cancel = call.token();
  auto stream = ImportStream(data, &call);
  const int64_t version = call.Run([&] { return self.Add(std::move(stream), options); });
  Warn(self.TakeWarnings());
  return version;
}

}  // namespace

void BindTable(nb::module_& m) {
  using nb::literals::operator""_a;
  nb::class_<db::Table> c(m, "Table");
  c.def_prop_ro("name", &db::Table::name)
      .def_prop_ro("uri", &db::Table::uri)
      .def_prop_ro("is_open", &db::Table::is_open)
      .def_prop_ro("is_pinned", &db::Table::is_pinned)
      .def("close", &db::Table::Close, nb::call_guard<nb::gil_scoped_release>())
      .def("version", [](db::Table& self) { return Snapshot(self)->version(); })
      .def("schema",
           [](db::Table& self) { return ToPyArrow(Snapshot(self)->arrow_schema()); })
      .def("add", &Add, "data"_a, nb::kw_only(), "mode"_a = "append",
           "progress"_a = nb::none(), "storage_options"_a = nb::none())
      .def(
          "delete",
          [](db::Table& self, const std::string& predicate) {
            Call call;
            auto outcome = call.Run([&] { return self.Delete(predicate, call.token()); });
            Warn(self.TakeWarnings());
            return std::pair(outcome.num_deleted_rows, outcome.version);
          },
          "predicate"_a)
      .def(
          "checkout",
          [](db::Table& self, const db::VersionRef& version) {
            Call call;
            call.Run([&] { return self.Checkout(version); });
          },
          "version"_a)
      .def("checkout_latest",
           [](db::Table& self) {
             Call call;
             call.Run([&] { return self.CheckoutLatest(); });
             Warn(self.TakeWarnings());
           })
      .def(
          "restore",
          [](db::Table& self, const std::optional<db::VersionRef>& version) {
            Call call;
            return call.Run([&] { return self.Restore(version); });
          },
          "version"_a = nb::none())
      .def("uses_v2_manifest_paths",
           [](db::Table& self) {
             Call call;
             return call.Run([&]() -> Result<bool> {
               GLAIVE_ASSIGN_OR_RETURN(auto dataset, self.Snapshot());
               return db::UsesV2ManifestPaths(*dataset);
             });
           })
      .def("migrate_manifest_names",
           [](db::Table& self) {
             Call call;
             call.Run([&]() -> Status {
               GLAIVE_ASSIGN_OR_RETURN(auto dataset, self.Snapshot());
               return table::MigrateManifestNames(dataset->env());
             });
           })
      .def("dataset", [](db::Table& self) {
        return std::make_unique<PyDataset>(Snapshot(self), self.uri());
      });
  ReadableMethods<db::Table, &SourceOf>::Bind(c);
  BindTableSchemaChanges(c);
  BindTableBranches(c);
  BindTableChanges(c);
  BindTableLsm(c);
}

}  // namespace glaive::python
