// Old names of manifests brought to the present scheme.
#pragma once

#include "base/status.h"

namespace glaive::table {

struct TableEnv;

// Renames the manifests of a table from the first scheme ({version}.manifest) to the
// second, oldest first; nothing happens when there are none. Writers of this process
// wait. Other processes must not write meanwhile: until the last file is renamed they
// find the names mixed, which is Corruption, as it is after a crash; a second call
// finishes what the first one left.
Status MigrateManifestNames(const TableEnv& env);

}  // namespace glaive::table
