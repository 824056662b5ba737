#include "table/migrate_names.h"

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "io/object_store.h"
#include "table/names.h"
#include "table/snapshot.h"

namespace glaive::table {

Status MigrateManifestNames(const TableEnv& env) {
  const auto state = StateOf(env);
  std::lock_guard lock(state->commit_mutex);
  io::ObjectStore& store = *env.store;
  GLAIVE_ASSIGN_OR_RETURN(const auto names, store.ListNames(kVersionsDir));
  std::vector<uint64_t> versions;
  for (const std::string& name : names) {
    const auto parsed = ParseManifestName(name);
    if (!parsed || parsed->detached || parsed->scheme != NamingScheme::kV1) continue;
    versions.push_back(parsed->version);
  }
  std::sort(versions.begin(), versions.end());
  for (const uint64_t version : versions) {
    GLAIVE_RETURN_NOT_OK(store.Rename(ManifestPath(version, NamingScheme::kV1),
                                      ManifestPath(version, NamingScheme::kV2)));
  }
  return Status::OK();
}

}  // namespace glaive::table
