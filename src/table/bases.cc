#include "table/bases.h"

#include <string_view>
#include <utility>

#include "format/table.pb.h"
#include "io/object_store.h"
#include "runtime/runtime.h"
#include "table/names.h"

namespace glaive::table {
namespace {

// What an open store costs the cache that keeps it for other snapshots.
constexpr int64_t kStoreBytes = 4096;

std::string_view WithoutScheme(std::string_view path) {
  constexpr std::string_view kFile = "file://";
  if (path.starts_with(kFile)) path.remove_prefix(kFile.size());
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  return path;
}

// `runtime`: whose cache keeps open stores for other snapshots; may be null.
Result<std::shared_ptr<io::ObjectStore>> OpenBase(const TableEnv& env, Runtime* runtime,
                                                  const std::string& path) {
  const std::string_view wanted = WithoutScheme(path);
  for (const auto& store : {env.store, env.main_store}) {
    if (store == nullptr) continue;
    const std::string_view root = WithoutScheme(store->root());
    if (wanted == root) return store;
    if (wanted.size() > root.size() && wanted.starts_with(root) &&
        wanted[root.size()] == '/') {
      return store->Child(wanted.substr(root.size() + 1));
    }
  }
  const std::string key = "base-store:" + path;
  if (runtime != nullptr) {
    if (auto cached = runtime->cache().Get<io::ObjectStore>(key)) {
      return std::const_pointer_cast<io::ObjectStore>(cached);
    }
  }
  auto opened = io::OpenStore(path, /*create=*/false);
  if (!opened.ok()) {
    return WithContext(opened.status(), "base path '" + path + "' of table " +
                                            env.store->root() +
                                            " (it was moved or removed)");
  }
  if (runtime != nullptr) runtime->cache().Put(key, *opened, kStoreBytes);
  return opened;
}

Status NoBases(const TableEnv& env, const std::string& path) {
  return Corruption("file ", path, " of table ", env.store->root(),
                    " lies under another base path, but the manifest names none");
}

}  // namespace

Result<std::shared_ptr<const Bases>> Bases::Make(const TableEnv& env,
                                                 const lance::table::Manifest& header) {
  if (header.base_paths_size() == 0) return std::shared_ptr<const Bases>();
  auto bases = std::make_shared<Bases>();
  bases->env_ = env;
  bases->env_.bases.reset();
  bases->runtime_ = env.runtime;
  bases->env_.runtime.reset();
  for (const auto& base : header.base_paths()) {
    Entry entry;
    entry.path = base.path();
    entry.is_dataset_root = base.is_dataset_root();
    if (!bases->entries_.emplace(base.id(), std::move(entry)).second) {
      return Corruption("the manifest names base path ", base.id(), " twice");
    }
  }
  return std::shared_ptr<const Bases>(std::move(bases));
}

Result<Bases::Base> Bases::Find(uint32_t id) const {
  std::string path;
  bool is_dataset_root;
  {
    std::lock_guard lock(mutex_);
    const auto found = entries_.find(id);
    if (found == entries_.end()) {
      return Corruption("table ", env_.store->root(), " has no base path ", id);
    }
    const Entry& entry = found->second;
    if (entry.store != nullptr) return Base{entry.store, entry.is_dataset_root};
    path = entry.path;
    is_dataset_root = entry.is_dataset_root;
  }
  // Several threads may open it; the last one's stays.
  GLAIVE_ASSIGN_OR_RETURN(auto store, OpenBase(env_, runtime_.lock().get(), path));
  std::lock_guard lock(mutex_);
  entries_.find(id)->second.store = store;
  return Base{std::move(store), is_dataset_root};
}

Result<FilePlace> PlaceOf(const TableEnv& env, const lance::table::DataFile& file) {
  if (!file.has_base_id()) return FilePlace{env.store, DataFilePath(file.path())};
  if (env.bases == nullptr) return NoBases(env, file.path());
  GLAIVE_ASSIGN_OR_RETURN(auto base, env.bases->Find(file.base_id()));
  return FilePlace{std::move(base.store),
                   base.is_dataset_root ? DataFilePath(file.path()) : file.path()};
}

Result<FilePlace> PlaceOf(const TableEnv& env, uint64_t fragment_id,
                          const lance::table::DeletionFile& file) {
  const std::string path = DeletionFilePath(fragment_id, file);
  if (!file.has_base_id()) return FilePlace{env.store, path};
  if (env.bases == nullptr) return NoBases(env, path);
  GLAIVE_ASSIGN_OR_RETURN(auto base, env.bases->Find(file.base_id()));
  if (!base.is_dataset_root) {
    return NotSupported("deletion file ", path,
                        " lies under a base path that is no table");
  }
  return FilePlace{std::move(base.store), path};
}

}  // namespace glaive::table
