// Methods of glaive._glaive.Dataset, Table and Connection for branches and clones.
#include "branches.h"

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "bindings.h"
#include "db/environment.h"
#include "format/table.pb.h"
#include "io/object_store.h"
#include "table/branches.h"

namespace glaive::python {
namespace {

using table::Dataset;
using StringMap = std::map<std::string, std::string>;

// A version of another branch lies in a directory of its own.
std::unique_ptr<PyDataset> Wrap(const PyDataset& self, Dataset::Ptr dataset) {
  Warn(dataset->warnings());
  std::string uri = dataset->env().store->root() == self.dataset->env().store->root()
                        ? self.uri
                        : dataset->env().store->root();
  return std::make_unique<PyDataset>(std::move(dataset), std::move(uri));
}

nb::dict BranchesToPython(const std::map<std::string, table::BranchEntry>& branches) {
  nb::dict out;
  for (const auto& [name, info] : branches) {
    nb::list identifier;
    for (const auto& [version, id] : info.identifier) {
      identifier.append(nb::make_tuple(version, id));
    }
    nb::dict metadata;
    for (const auto& [key, value] : info.metadata) metadata[key.c_str()] = value;
    nb::dict one;
    one["parent_branch"] =
        info.parent_branch ? nb::cast(*info.parent_branch) : nb::none();
    one["branch_identifier"] = std::move(identifier);
    one["parent_version"] = info.parent_version;
    one["create_at"] = info.create_at;
    one["manifest_size"] = info.manifest_size;
    one["metadata"] = std::move(metadata);
    out[name.c_str()] = std::move(one);
  }
  return out;
}

}  // namespace

void BindDatasetBranches(nb::class_<PyDataset>& c) {
  using nb::literals::operator""_a;
  const auto none = nb::none();
  c.def_prop_ro("branch", [](PyDataset& self) { return table::BranchOf(*self.dataset); })
      .def("list_branches",
           [](PyDataset& self) {
             Call call;
             return BranchesToPython(
                 call.Run([&] { return table::ListBranches(*self.dataset); }));
           })
      .def(
          "create_branch",
          [](PyDataset& self, const std::string& name) {
            Call call;
            return Wrap(
                self, call.Run([&] { return table::CreateBranch(*self.dataset, name); }));
          },
          "name"_a)
      .def(
          "checkout_branch",
          [](PyDataset& self, const std::optional<std::string>& name,
             std::optional<int64_t> version) {
            Call call;
            return Wrap(self, call.Run([&] {
              return table::CheckoutBranch(*self.dataset, name, version);
            }));
          },
          "name"_a.none(), "version"_a = none)
      .def(
          "delete_branch",
          [](PyDataset& self, const std::string& name) {
            Call call;
            call.Run([&] { return table::DeleteBranch(*self.dataset, name); });
          },
          "name"_a)
      .def(
          "replace_branch_metadata",
          [](PyDataset& self, const std::string& name, const StringMap& metadata) {
            Call call;
            call.Run([&] {
              return table::ReplaceBranchMetadata(*self.dataset, name, metadata);
            });
          },
          "name"_a, "metadata"_a)
      .def(
          "shallow_clone",
          [](PyDataset& self, const std::string& uri) {
            Call call;
            auto clone = call.Run([&]() -> Result<Dataset::Ptr> {
              GLAIVE_ASSIGN_OR_RETURN(auto env, db::OpenTableEnv(uri, /*create=*/true));
              return table::ShallowClone(*self.dataset, env);
            });
            return Wrap(self, std::move(clone));
          },
          "uri"_a);
}

void BindTableBranches(nb::class_<db::Table>& c) {
  using nb::literals::operator""_a;
  const auto none = nb::none();
  c.def("current_branch",
        [](db::Table& self) {
          Call call;
          return call.Run([&] { return self.CurrentBranch(); });
        })
      .def("list_branches",
           [](db::Table& self) {
             Call call;
             return BranchesToPython(call.Run([&] { return self.ListBranches(); }));
           })
      .def(
          "create_branch",
          [](db::Table& self, const std::string& name,
             const std::optional<std::string>& from, std::optional<int64_t> version) {
            Call call;
            return call.Run([&] { return self.CreateBranch(name, from, version); });
          },
          "name"_a, "from_branch"_a = none, "from_version"_a = none)
      .def(
          "checkout_branch",
          [](db::Table& self, const std::string& name, std::optional<int64_t> version) {
            Call call;
            return call.Run([&] { return self.CheckoutBranch(name, version); });
          },
          "name"_a, "version"_a = none)
      .def(
          "delete_branch",
          [](db::Table& self, const std::string& name) {
            Call call;
            call.Run([&] { return self.DeleteBranch(name); });
          },
          "name"_a);
}

void BindConnectionClones(nb::class_<db::Connection>& c) {
  using nb::literals::operator""_a;
  c.def(
      "clone_table",
      [](db::Connection& self, const std::string& name, const std::string& source_uri,
         const std::optional<db::VersionRef>& version) {
        Call call;
        return call.Run([&] { return self.CloneTable(name, source_uri, version); });
      },
      "name"_a, "source_uri"_a, nb::kw_only(), "version"_a = nb::none());
}

}  // namespace glaive::python
