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

using Finish = std::function<Status()>;
using Fragments = google::protobuf::RepeatedPtrField<lance::table::DataFragment>;

struct Registry {
  std::mutex mutex;
  std::map<std::string, Finish> files;  // by owner's prefix and path
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
std::vector<Finish> TakeNamed(const io::ObjectStore& store,
                              const lance::table::Transaction& transaction) {
  std::vector<Finish> taken;
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
  std::vector<Finish> dropped;  // destroyed without the lock
  Registry& all = AllFiles();
  std::lock_guard lock(all.mutex);
  for (const std::string& key : keys_) {
    const auto found = all.files.find(key);
    if (found == all.files.end()) continue;
    dropped.push_back(std::move(found->second));
    all.files.erase(found);
  }
}

void UnsyncedFiles::Add(const std::string& path, Finish finish) {
  {
    std::lock_guard lock(mutex_);
    keys_.push_back(prefix_ + path);
  }
  Registry& all = AllFiles();
  std::lock_guard lock(all.mutex);
  all.files.insert_or_assign(prefix_ + path, std::move(finish));
}

void UnsyncedFiles::Add(const std::string& path,
                        std::unique_ptr<io::ObjectWriter> complete) {
  std::shared_ptr<io::ObjectWriter> shared = std::move(complete);
  Add(path, [shared] { return shared->Finish(); });
}

bool UnsyncedFiles::Drop(const std::string& path) {
  Registry& all = AllFiles();
  std::lock_guard lock(all.mutex);
  return all.files.erase(prefix_ + path) > 0;
}

Status FinishUnsynced(const TableEnv& env, const lance::table::Transaction& transaction) {
  const std::vector<Finish> files = TakeNamed(*env.store, transaction);
  // A sync waits for the disk, not for a processor: all of them at once.
  return env.runtime->ParallelFor(static_cast<int64_t>(files.size()), [&](int64_t i) {
    return files[static_cast<size_t>(i)]();
  });
}

}  // namespace glaive::table
