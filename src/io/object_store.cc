#include "io/object_store.h"

namespace glaive::io {

std::vector<Status> ObjectStore::DeleteMany(std::span<const std::string> paths) {
  std::vector<Status> outcomes;
  outcomes.reserve(paths.size());
  for (const std::string& path : paths) outcomes.push_back(Delete(path));
  return outcomes;
}

Result<int64_t> ObjectStore::DeleteTemporaries(std::string_view, int64_t) { return 0; }

}  // namespace glaive::io
