#include "table/live_versions.h"

#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "io/object_store.h"
#include "runtime/fork.h"

namespace glaive::table {
namespace {

struct Registry {
  std::mutex mutex;
  // Root -> version -> how many hold it.
  std::unordered_map<std::string, std::map<int64_t, int64_t>> roots;
};

// A forked child starts empty. Objects that it inherited are not announced there, and
// letting go of them finds nothing to take back.
Registry& TheRegistry() {
  static auto* registry =
      new ForkAware<Registry>([] { return std::make_unique<Registry>(); });
  return registry->get();
}

}  // namespace

LiveVersion::LiveVersion(const io::ObjectStore& store, int64_t version)
    : root_(store.root()), version_(version) {
  Registry& registry = TheRegistry();
  std::lock_guard lock(registry.mutex);
  registry.roots[root_][version_]++;
}

LiveVersion::~LiveVersion() {
  Registry& registry = TheRegistry();
  std::lock_guard lock(registry.mutex);
  auto root = registry.roots.find(root_);
  if (root == registry.roots.end()) return;
  auto version = root->second.find(version_);
  if (version == root->second.end()) return;
  if (--version->second == 0) root->second.erase(version);
  if (root->second.empty()) registry.roots.erase(root);
}

std::vector<int64_t> LiveVersions(const io::ObjectStore& store) {
  Registry& registry = TheRegistry();
  std::lock_guard lock(registry.mutex);
  std::vector<int64_t> versions;
  if (auto root = registry.roots.find(store.root()); root != registry.roots.end()) {
    for (const auto& [version, count] : root->second) versions.push_back(version);
  }
  return versions;
}

}  // namespace glaive::table
