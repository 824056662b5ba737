// Methods of glaive._glaive.Dataset and Table that change columns and metadata.
#include "schema_changes.h"

#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <arrow/record_batch.h>
#include <arrow/type.h>
#include <nanobind/stl/tuple.h>

#include "arrow_interop.h"
#include "bindings.h"
#include "exec/add_columns.h"
#include "exec/alter_columns.h"
#include "format/table.pb.h"
#include "fragments.h"
#include "table/metadata_change.h"

namespace glaive::python {
namespace {

using table::Dataset;
using NamedExpressions = std::vector<std::pair<std::string, std::string>>;
// Path, new name, nullability, and a schema of one field that has the new type.
using PyAlteration =
    std::tuple<std::string, std::optional<std::string>, std::optional<bool>, nb::object>;
using PyEntries = std::vector<std::pair<std::string, std::optional<std::string>>>;
using PyFieldUpdate = std::tuple<std::string, PyEntries, bool>;  // path, entries, replace

std::unique_ptr<PyDataset> Wrap(const PyDataset& self, Dataset::Ptr dataset) {
  return std::make_unique<PyDataset>(std::move(dataset), self.uri);
}

exec::ColumnChangeOptions MakeOptions(std::optional<int64_t> batch_size,
                                      nb::object progress, Call* call) {
  exec::ColumnChangeOptions options;
  if (batch_size) {
    if (*batch_size <= 0) {
      Raise(InvalidInput("Invalid input, batch_size must be positive"));
    }
    options.batch_rows = *batch_size;
  }
  options.progress = ProgressHook(std::move(progress), call);
  options.cancel = call->token();
  return options;
}

std::vector<table::ColumnAlteration> ToAlterations(
    const std::vector<PyAlteration>& alterations) {
  std::vector<table::ColumnAlteration> out;
  for (const auto& [path, rename, nullable, type] : alterations) {
    table::ColumnAlteration one;
    one.path = path;
    one.rename = rename;
    one.nullable = nullable;
    if (!type.is_none()) one.type = ImportSchema(type)->field(0)->type();
    out.push_back(std::move(one));
  }
  return out;
}

std::vector<table::FieldMapUpdate> ToFieldUpdates(
    const std::vector<PyFieldUpdate>& updates) {
  std::vector<table::FieldMapUpdate> out;
  for (const auto& [path, entries, replace] : updates) {
    out.push_back({path, {entries, replace}});
  }
  return out;
}

table::MetadataMap ParseMap(const std::string& name) {
  if (name == "config") return table::MetadataMap::kConfig;
  if (name == "table") return table::MetadataMap::kTable;
  if (name == "schema") return table::MetadataMap::kSchema;
  Raise(InvalidInput("there is no metadata map '", name, "'"));
}

}  // namespace

void BindDatasetSchemaChanges(nb::class_<PyDataset>& c) {
  using nb::literals::operator""_a;
  const auto none = nb::none();
  c.def(
       "add_columns",
       [](PyDataset& self, const NamedExpressions& expressions,
          std::optional<int64_t> batch_size, nb::object progress,
          std::shared_ptr<CancelHandle> cancel) {
         Call call(std::nullopt, std::move(cancel));
         const auto options = MakeOptions(batch_size, std::move(progress), &call);
         return Wrap(self, call.Run([&] {
           return exec::AddColumns(self.dataset, expressions, options);
         }));
       },
       "expressions"_a, nb::kw_only(), "batch_size"_a = none, "progress"_a = none,
       "cancel"_a = none)
      .def(
          "add_null_columns",
          [](PyDataset& self, nb::object schema) {
            Call call;
            const auto columns = ImportSchema(schema);
            return Wrap(self, call.Run([&] {
              return exec::AddNullColumns(self.dataset, *columns);
            }));
          },
          "schema"_a)
      .def(
          "add_columns_from_reader",
          [](PyDataset& self, nb::object data, nb::object progress,
             std::shared_ptr<CancelHandle> cancel) {
            Call call(std::nullopt, std::move(cancel));
            const auto options = MakeOptions(std::nullopt, std::move(progress), &call);
            auto stream = ImportStream(data, &call);
            return Wrap(self, call.Run([&]() -> Result<Dataset::Ptr> {
              auto added = exec::AddColumnsFromReader(self.dataset, *stream, options);
              stream.reset();
              return added;
            }));
          },
          "data"_a, nb::kw_only(), "progress"_a = none, "cancel"_a = none)
      .def(
          "merge_columns",
          [](PyDataset& self, nb::object data, const std::string& left_on,
             const std::string& right_on) {
            Call call;
            const auto options = MakeOptions(std::nullopt, nb::none(), &call);
            auto stream = ImportStream(data, &call);
            return Wrap(self, call.Run([&]() -> Result<Dataset::Ptr> {
              auto merged =
                  exec::MergeColumns(self.dataset, *stream, left_on, right_on, options);
              stream.reset();
              return merged;
            }));
          },
          "data"_a, "left_on"_a, "right_on"_a)
      .def(
          "write_fragment_columns",
          [](PyDataset& self, int64_t fragment_id, nb::object data, bool replace) {
            Call call;
            const auto options = MakeOptions(std::nullopt, nb::none(), &call);
            auto stream = ImportStream(data, &call);
            auto made = call.Run([&]() -> Result<exec::FragmentWithColumns> {
              const int index = self.dataset->FindFragment(fragment_id);
              if (index < 0) {
                return InvalidInput("Invalid input, there is no fragment ", fragment_id,
                                    " in version ", self.dataset->version(), " of ",
                                    self.uri);
              }
              auto written = exec::WriteFragmentColumns(self.dataset, index, *stream,
                                                        replace, options);
              stream.reset();
              return written;
            });
            return nb::make_tuple(FragmentToDict(*made.fragment),
                                  ToPyArrow(made.schema.ToArrow()),
                                  FieldList(made.schema), made.field_ids);
          },
          "fragment_id"_a, "data"_a, nb::kw_only(), "replace"_a = false)
      .def(
          "alter_columns",
          [](PyDataset& self, const std::vector<PyAlteration>& alterations) {
            Call call;
            const auto changes = ToAlterations(alterations);
            const auto options = MakeOptions(std::nullopt, nb::none(), &call);
            return Wrap(self, call.Run([&] {
              return exec::AlterColumns(self.dataset, changes, options);
            }));
          },
          "alterations"_a)
      .def(
          "drop_columns",
          [](PyDataset& self, const std::vector<std::string>& columns) {
            Call call;
            return Wrap(
                self, call.Run([&] { return exec::DropColumns(self.dataset, columns); }));
          },
          "columns"_a)
      .def(
          "update_metadata",
          [](PyDataset& self, const std::string& map, const PyEntries& entries,
             bool replace) {
            Call call;
            const table::MetadataMap which = ParseMap(map);
            const table::MapUpdate update{entries, replace};
            return Wrap(self, call.Run([&] {
              return table::UpdateMetadata(*self.dataset, which, update);
            }));
          },
          "map"_a, "entries"_a, "replace"_a)
      .def(
          "update_field_metadata",
          [](PyDataset& self, const std::vector<PyFieldUpdate>& updates) {
            Call call;
            const auto changes = ToFieldUpdates(updates);
            return Wrap(self, call.Run([&] {
              return table::UpdateFieldMetadata(*self.dataset, changes);
            }));
          },
          "updates"_a);
}

void BindTableSchemaChanges(nb::class_<db::Table>& c) {
  using nb::literals::operator""_a;
  c.def(
       "add_columns",
       [](db::Table& self, const NamedExpressions& expressions) {
         Call call;
         return call.Run([&] { return self.AddColumns(expressions, call.token()); });
       },
       "expressions"_a)
      .def(
          "add_null_columns",
          [](db::Table& self, nb::object schema) {
            Call call;
            const auto columns = ImportSchema(schema);
            return call.Run([&] { return self.AddNullColumns(*columns); });
          },
          "schema"_a)
      .def(
          "merge_columns",
          [](db::Table& self, nb::object data, const std::string& left_on,
             const std::string& right_on) {
            Call call;
            auto stream = ImportStream(data, &call);
            return call.Run([&]() -> Result<int64_t> {
              auto version = self.MergeColumns(*stream, left_on, right_on, call.token());
              stream.reset();
              return version;
            });
          },
          "data"_a, "left_on"_a, "right_on"_a)
      .def(
          "alter_columns",
          [](db::Table& self, const std::vector<PyAlteration>& alterations) {
            Call call;
            const auto changes = ToAlterations(alterations);
            return call.Run([&] { return self.AlterColumns(changes, call.token()); });
          },
          "alterations"_a)
      .def(
          "drop_columns",
          [](db::Table& self, const std::vector<std::string>& columns) {
            Call call;
            return call.Run([&] { return self.DropColumns(columns); });
          },
          "columns"_a)
      .def(
          "update_field_metadata",
          [](db::Table& self, const std::vector<PyFieldUpdate>& updates) {
            Call call;
            const auto changes = ToFieldUpdates(updates);
            return call.Run([&] { return self.UpdateFieldMetadata(changes); });
          },
          "updates"_a)
      .def(
          "set_unenforced_primary_key",
          [](db::Table& self, const std::vector<std::string>& columns) {
            Call call;
            return call.Run([&] { return self.SetUnenforcedPrimaryKey(columns); });
          },
          "columns"_a);
}

}  // namespace glaive::python
