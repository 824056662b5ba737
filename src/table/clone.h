// The first version of a shallow clone: the manifest of another table's version, all of
// whose files stay where they are.
#pragma once

#include <optional>
#include <string>

#include "base/status.h"
#include "table/dataset.h"

namespace glaive::table {

// Puts the manifest at `target` under the same version number. `source_branch`: the
// branch that `source` is of; `branch`: the one that is made, unset for a table of its
// own. AlreadyExists when the target has that version.
Status CloneManifest(const Dataset& source, const TableEnv& target,
                     const std::optional<std::string>& source_branch,
                     const std::optional<std::string>& branch, CommitOutcome* outcome);

}  // namespace glaive::table
