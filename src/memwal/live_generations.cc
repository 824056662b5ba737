#include "memwal/live_generations.h"

#include <map>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "io/object_store.h"
#include "runtime/fork.h"

namespace glaive::memwal {
namespace {

struct Registry {
  std::mutex mutex;
  // Root of the table -> directory -> how many hold it.
  std::unordered_map<std::string, std::map<std::string, int>> roots;
};

// A forked child starts empty: what it inherited is not announced there, and letting go
// of it finds nothing to take back.
Registry& TheRegistry() {
  static auto* registry =
      new ForkAware<Registry>([] { return std::make_unique<Registry>(); });
  return registry->get();
}

}  // namespace

LiveGenerations::LiveGenerations(const io::ObjectStore& table,
                                 std::vector<std::string> directories)
    : root_(table.root()), directories_(std::move(directories)) {
  Registry& registry = TheRegistry();
  std::lock_guard lock(registry.mutex);
  for (const std::string& directory : directories_) registry.roots[root_][directory]++;
}

LiveGenerations::~LiveGenerations() {
  Registry& registry = TheRegistry();
  std::lock_guard lock(registry.mutex);
  auto root = registry.roots.find(root_);
  if (root == registry.roots.end()) return;
  for (const std::string& directory : directories_) {
    auto found = root->second.find(directory);
    if (found == root->second.end()) continue;
    if (--found->second == 0) root->second.erase(found);
  }
  if (root->second.empty()) registry.roots.erase(root);
}

std::set<std::string> FindLiveGenerations(const io::ObjectStore& table) {
  Registry& registry = TheRegistry();
  std::lock_guard lock(registry.mutex);
  std::set<std::string> live;
  if (auto root = registry.roots.find(table.root()); root != registry.roots.end()) {
    for (const auto& [directory, count] : root->second) live.insert(directory);
  }
  return live;
}

}  // namespace glaive::memwal
