// Branches of a table, and clones, as handles see them.
#include <optional>
#include <utility>

#include "db/connection.h"
#include "db/environment.h"
#include "db/table.h"
#include "table/branches.h"

namespace glaive::db {
namespace {

constexpr char kMain[] = "main";

}  // namespace

std::shared_ptr<Table> Table::HandleFor(table::Dataset::Ptr dataset, bool pinned) const {
  auto table =
      std::make_shared<Table>(name_, uri_, std::move(dataset), consistency_, pinned);
  table->set_lsm_upkeep(lsm_upkeep_);
  return table;
}

Result<std::optional<std::string>> Table::CurrentBranch() {
  GLAIVE_ASSIGN_OR_RETURN(auto snapshot, Snapshot());
  return table::BranchOf(*snapshot);
}

Result<std::shared_ptr<Table>> Table::CreateBranch(const std::string& name,
                                                   const std::optional<std::string>& from,
                                                   std::optional<int64_t> from_version) {
  GLAIVE_ASSIGN_OR_RETURN(auto snapshot, Snapshot());
  GLAIVE_ASSIGN_OR_RETURN(
      auto source, table::CheckoutBranch(*snapshot, from.value_or(kMain), from_version));
  GLAIVE_ASSIGN_OR_RETURN(auto branch, table::CreateBranch(*source, name));
  return HandleFor(std::move(branch), /*pinned=*/false);
}

Result<std::shared_ptr<Table>> Table::CheckoutBranch(const std::string& name,
                                                     std::optional<int64_t> version) {
  GLAIVE_ASSIGN_OR_RETURN(auto snapshot, Snapshot());
  GLAIVE_ASSIGN_OR_RETURN(auto branch, table::CheckoutBranch(*snapshot, name, version));
  return HandleFor(std::move(branch), version.has_value());
}

Result<std::map<std::string, table::BranchEntry>> Table::ListBranches() {
  GLAIVE_ASSIGN_OR_RETURN(auto snapshot, Snapshot());
  return table::ListBranches(*snapshot);
}

Status Table::DeleteBranch(const std::string& name) {
  GLAIVE_ASSIGN_OR_RETURN(auto snapshot, Snapshot());
  return table::DeleteBranch(*snapshot, name);
}

Result<std::shared_ptr<Table>> Connection::CloneTable(
    std::string_view name, const std::string& source_uri,
    const std::optional<VersionRef>& version) {
  GLAIVE_RETURN_NOT_OK(CheckUsable(name));
  auto source_env = OpenTableEnv(source_uri, /*create=*/false);
  if (!source_env.ok()) {
    return WithContext(source_env.status(),
                       "Dataset at path " + source_uri + " was not found");
  }
  GLAIVE_ASSIGN_OR_RETURN(auto source, table::Dataset::Open(*source_env));
  if (version) {
    GLAIVE_ASSIGN_OR_RETURN(source, CheckoutRef(*source, *version));
  }
  GLAIVE_ASSIGN_OR_RETURN(auto clone, table::ShallowClone(*source, EnvOf(name)));
  return MakeHandle(name, std::move(clone), /*pinned=*/false);
}

}  // namespace glaive::db
