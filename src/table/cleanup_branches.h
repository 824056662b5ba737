// The branches of a table, as a clean-up needs to know them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"

namespace glaive::io {
class ObjectStore;
}

namespace glaive::table {

struct BranchInfo {
  std::string name;
  std::string parent;  // empty: the main table
  uint64_t parent_version = 0;
};

// `main`: the store of the main table. Corruption when a branch file does not say which
// version the branch was made from.
Result<std::vector<BranchInfo>> ReadBranches(io::ObjectStore& main);

}  // namespace glaive::table
