// Branches: lines of versions of their own, below `tree/`, which begin as a shallow clone
// of a version of the table; and shallow clones elsewhere.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "table/dataset.h"

namespace glaive::table {

struct BranchEntry {
  std::optional<std::string> parent_branch;  // unset: the main one
  int64_t parent_version = 0;
  int64_t create_at = 0;  // seconds since 1970
  int64_t manifest_size = 0;
  // The way here from the main branch: versions that were left, with a random id for each
  // branch. Empty in files of old writers.
  std::vector<std::pair<int64_t, std::string>> identifier;
  std::map<std::string, std::string> metadata;
};

// The branch that this is a version of; unset: the main one.
std::optional<std::string> BranchOf(const Dataset& dataset);

// Rooted at the table that the branch belongs to; of the main branch: its own store.
Result<std::shared_ptr<io::ObjectStore>> MainStore(const Dataset& dataset);

Result<std::map<std::string, BranchEntry>> ListBranches(const Dataset& dataset);

// Begins a branch at this version, and returns its first version, which has the same
// number. InvalidInput for names that cannot be; AlreadyExists.
Result<Dataset::Ptr> CreateBranch(const Dataset& dataset, std::string_view name);

// A version, or the newest one, of another branch. Unset and "main": the main one.
Result<Dataset::Ptr> CheckoutBranch(const Dataset& dataset,
                                    const std::optional<std::string>& name,
                                    std::optional<int64_t> version);

// NotFound when there is none; Conflict when another branch begins on it or a tag names
// one of its versions.
Status DeleteBranch(const Dataset& dataset, std::string_view name);

Status ReplaceBranchMetadata(const Dataset& dataset, std::string_view name,
                             const std::map<std::string, std::string>& metadata);

// A table of its own at `target`, which begins with the files of this version where they
// are. AlreadyExists when there is a table.
Result<Dataset::Ptr> ShallowClone(const Dataset& dataset, const TableEnv& target);

}  // namespace glaive::table
