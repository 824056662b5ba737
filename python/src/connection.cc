// glaive._glaive.Connection.
#include "db/connection.h"

#include <chrono>
#include <utility>

#include <arrow/record_batch.h>
#include <arrow/type.h>

#include "arrow_interop.h"
#include "bindings.h"
#include "branches.h"
#include "call.h"

namespace glaive::python {
namespace {

using StringMap = std::map<std::string, std::string>;

// Longer intervals mean "never" in practice and would overflow the clock.
constexpr double kMaxIntervalSeconds = 1e9;

db::ReadConsistency ParseInterval(std::optional<double> seconds) {
  if (!seconds) return std::nullopt;
  if (!(*seconds >= 0)) {
    Raise(InvalidInput("Invalid input, read_consistency_interval must not be negative"));
  }
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(std::min(*seconds, kMaxIntervalSeconds)));
}

std::shared_ptr<db::Connection> Connect(const std::string& uri,
                                        std::optional<double> interval,
                                        std::optional<StringMap> storage_options) {
  db::ConnectionOptions options;
  options.read_consistency = ParseInterval(interval);
  if (storage_options) options.storage_options = std::move(*storage_options);
  Call call;
  return call.Run([&] { return db::Connection::Open(uri, std::move(options)); });
}

db::CreateMode ParseMode(const std::string& mode) {
  if (mode == "create") return db::CreateMode::kCreate;
  if (mode == "overwrite") return db::CreateMode::kOverwrite;
  if (mode == "exist_ok") return db::CreateMode::kExistOk;
  Raise(InvalidInput(
      "Invalid input, mode must be \"create\", \"overwrite\" or \"exist_ok\", not \"",
      mode, "\""));
}

std::shared_ptr<db::Table> CreateTable(db::Connection& self, const std::string& name,
                                       nb::object data, const std::string& mode,
                                       std::optional<StringMap> storage_options,
                                       nb::object progress,
                                       const std::string& directory) {
  Call call;
  db::CreateTableOptions options;
  options.directory = directory;
  options.mode = ParseMode(mode);
  if (storage_options) options.storage_options = std::move(*storage_options);
  options.progress = ProgressHook(std::move(progress), &call);
  options.cancel = call.token();
  if (IsSchemaOnly(data)) {
    auto schema = ImportSchema(data);
    return call.Run([&] { return self.CreateEmptyTable(name, *schema, options); });
  }
  auto stream = ImportStream(data, &call);
  return call.Run([&]() -> Result<std::shared_ptr<db::Table>> {
    auto table = self.CreateTable(name, *stream, options);
    stream.reset();
    return table;
  });
}

}  // namespace

void BindConnection(nb::module_& m) {
  using nb::literals::operator""_a;
  const auto none = nb::none();
  nb::class_<db::Connection> c(m, "Connection");
  BindConnectionClones(c);
  c.def(nb::new_(&Connect), "uri"_a, nb::kw_only(), "read_consistency_interval"_a = none,
        "storage_options"_a = none)
      .def_prop_ro("uri", &db::Connection::uri)
      .def_prop_ro(
          "read_consistency_interval",
          [](db::Connection& self) -> std::optional<double> {
            if (!self.read_consistency()) return std::nullopt;
            return std::chrono::duration<double>(*self.read_consistency()).count();
          })
      .def_prop_ro("is_open", &db::Connection::is_open)
      .def("close", &db::Connection::Close)
      .def(
          "table_names",
          [](db::Connection& self, std::optional<std::string> start_after,
             std::optional<int64_t> limit) {
            Call call;
            return call.Run([&] { return self.TableNames(start_after, limit); });
          },
          "start_after"_a = none, "limit"_a = none)
      .def(
          "table_exists",
          [](db::Connection& self, const std::string& name) {
            Call call;
            return call.Run([&] { return self.TableExists(name); });
          },
          "name"_a)
      .def("table_uri", &db::Connection::TableUri, "name"_a)
      .def(
          "open_table",
          [](db::Connection& self, const std::string& name,
             std::optional<db::VersionRef> version, const std::string& directory) {
            Call call;
            auto table =
                call.Run([&] { return self.OpenTable(name, version, directory); });
            Warn(table->TakeWarnings());
            return table;
          },
          "name"_a, nb::kw_only(), "version"_a = none, "directory"_a = "")
      .def("create_table", &CreateTable, "name"_a, "data"_a, nb::kw_only(),
           "mode"_a = "create", "storage_options"_a = none, "progress"_a = none,
           "directory"_a = "")
      .def(
          "drop_table",
          [](db::Connection& self, const std::string& name, bool ignore_missing,
             const std::string& directory) {
            Call call;
            call.Run([&] { return self.DropTable(name, ignore_missing, directory); });
          },
          "name"_a, nb::kw_only(), "ignore_missing"_a = false, "directory"_a = "")
      .def("drop_all_tables",
           [](db::Connection& self) {
             Call call;
             call.Run([&] { return self.DropAllTables(); });
           })
      .def(
          "rename_table",
          [](db::Connection& self, const std::string& from, const std::string& to) {
            Call call;
            call.Run([&] { return self.RenameTable(from, to); });
          },
          "cur_name"_a, "new_name"_a);
}

}  // namespace glaive::python
