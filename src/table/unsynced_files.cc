#include "table/unsynced_files.h"

#include <map>
#include <mutex>
#include <utility>

#include "format/table.pb.h"
#include "format/transaction.pb.h"
#include "io/object_store.h"
#include "runtime/fork.h"
#include "runtime/runtime.h"
#include "table/dataset.h"
#include "table/names.h"

namespace glaive::table {
namespace {

using Writer = std::unique_ptr<io::ObjectWriter>;
using Fragments = google::protobuf::RepeatedPtrField<lance::table::DataFragment>;

struct Registry {
  std::mutex mutex;
  std::map<std::string, Writer> files;  // by owner's prefix and path
};

// A forked child starts empty: what its parent writes is the parent's.
Registry& AllFiles() {
  static auto* files =
      new ForkAware<Registry>([] { return std::make_unique<Registry>(); });
  return files->get();
}

// Visits the fragments that a transaction brings or changes.
template <typename Visit>
void ForEachFragments(const lance::table::Transaction& transaction, Visit visit) {
  if (transaction.has_append()) visit(transaction.append().fragments());
  if (transaction.has_overwrite()) visit(transaction.overwrite().fragments());
  if (transaction.has_merge()) visit(transaction.merge().fragments());
  if (transaction.has_delete_()) visit(transaction.delete_().updated_fragments());
  if (transaction.has_update()) {
    visit(transaction.update().updated_fragments());
    visit(transaction.update().new_fragments());
  }
}

// "//" ends the root, as no path has it.
std::string Prefix(const io::ObjectStore& store) { return store.root() + "//"; }

// Takes what the transaction names out of the registry.
std::vector<Writer> TakeNamed(const io::ObjectStore& store,
                              const lance::table::Transaction& transaction) {
  std::vector<Writer> taken;
  Registry& all = AllFiles();
  const std::string prefix = Prefix(store);
  std::lock_guard lock(all.mutex);
  const auto first = all.files.lower_bound(prefix);
  if (first == all.files.end() || !first->first.starts_with(prefix)) return taken;
  const auto take = [&](const std::string& path) {
    const auto found = all.files.find(prefix + path);
    if (found == all.files.end()) return;
    taken.push_back(std::move(found->second));
    all.files.erase(found);
  };
  ForEachFragments(transaction, [&](const Fragments& fragments) {
    for (const auto& fragment : fragments) {
      for (const auto& file : fragment.files()) {
        if (!file.has_base_id()) take(DataFilePath(file.path()));
      }
      if (fragment.has_deletion_file() && !fragment.deletion_file().has_base_id()) {
        take(DeletionFilePath(fragment.id(), fragment.deletion_file()));
      }
    }
  });
  return taken;
}

}  // namespace

UnsyncedFiles::UnsyncedFiles(const io::ObjectStore& store) : prefix_(Prefix(store)) {}

UnsyncedFiles::~UnsyncedFiles() {
  std::vector<Writer> dropped;  // destroyed without the lock
  Registry& all = AllFiles();
  std::lock_guard lock(all.mutex);
  for (const std::string& key : keys_) {
    const auto found = all.files.find(key);
    if (found == all.files.end()) continue;
    dropped.push_back(std::move(found->second));
    all.files.erase(found);
  }
}

void UnsyncedFiles::Add(const std::string& path, Writer complete) {
  {
    std::lock_guard lock(mutex_);
    keys_.push_back(prefix_ + path);
  }
  Registry& all = AllFiles();
  std::lock_guard lock(all.mutex);
  all.files.insert_or_assign(prefix_ + path, std::move(complete));
}

bool UnsyncedFiles::Drop(const std::string& path) {
  Writer dropped;  // destroyed without the lock
  Registry& all = AllFiles();
  std::lock_guard lock(all.mutex);
  const auto found = all.files.find(prefix_ + path);
  if (found == all.files.end()) return false;
  dropped = std::move(found->second);
  all.files.erase(found);
  return true;
}

Status FinishUnsynced(const TableEnv& env, const lance::table::Transaction& transaction,
                      const std::vector<std::function<Status()>>& beside) {
  const std::vector<Writer> files = TakeNamed(*env.store, transaction);
  // Every file has its name, and its bytes are on their way, before the first sync: one
  // write of the file system's journal then serves them all.
  for (const Writer& file : files) GLAIVE_RETURN_NOT_OK(file->Publish());
  // A sync waits for the disk, not for a processor: all of them at once.
  return env.runtime->ParallelFor(
      static_cast<int64_t>(files.size() + beside.size()), [&](int64_t i) {
        const auto task = static_cast<size_t>(i);
        return task < files.size() ? files[task]->Sync() : beside[task - files.size()]();
      });
}

}  // namespace glaive::table
