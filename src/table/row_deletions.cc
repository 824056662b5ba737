#include "table/row_deletions.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>

#include "format/table.pb.h"
#include "format/transaction.pb.h"
#include "io/object_store.h"
#include "runtime/runtime.h"
#include "table/deletion_file.h"
#include "table/deletion_vector.h"
#include "table/fragment_open.h"
#include "table/names.h"
#include "table/snapshot.h"
#include "table/unsynced_files.h"

namespace glaive::table {
namespace {

using lance::table::DataFile;
using lance::table::DataFragment;
using lance::table::Transaction;
using Fragments = google::protobuf::RepeatedPtrField<DataFragment>;
using FragmentIds = google::protobuf::RepeatedField<uint64_t>;

// More deletion files than this are not held in memory until the commit.
constexpr size_t kMostUnsynced = 16;

Fragments* UpdatedOf(Transaction* transaction) {
  return transaction->has_update()
             ? transaction->mutable_update()->mutable_updated_fragments()
             : transaction->mutable_delete_()->mutable_updated_fragments();
}
FragmentIds* RemovedOf(Transaction* transaction) {
  return transaction->has_update()
             ? transaction->mutable_update()->mutable_removed_fragment_ids()
             : transaction->mutable_delete_()->mutable_deleted_fragment_ids();
}

bool SameFile(const DataFile& x, const DataFile& y) {
  return x.path() == y.path() && x.has_base_id() == y.has_base_id() &&
         x.base_id() == y.base_id() &&
         std::equal(x.fields().begin(), x.fields().end(), y.fields().begin(),
                    y.fields().end());
}

// Whether a fragment still has the columns that it had, or lost some whole files.
bool OnlyLostFiles(const DataFragment& before, const DataFragment& now) {
  return std::all_of(now.files().begin(), now.files().end(), [&](const DataFile& file) {
    return std::any_of(before.files().begin(), before.files().end(),
                       [&](const DataFile& old) { return SameFile(old, file); });
  });
}

bool SameDeletions(const DataFragment& a, const DataFragment& b) {
  if (a.has_deletion_file() != b.has_deletion_file()) return false;
  return a.deletion_file().SerializeAsString() == b.deletion_file().SerializeAsString();
}

Status CheckRows(const TableEnv& env, const Snapshot& snapshot, int64_t id,
                 const std::vector<uint32_t>& offsets) {
  const int index = id < 0 ? -1 : snapshot.fragments->Find(static_cast<uint64_t>(id));
  if (index < 0) {
    return InvalidInput("version ", snapshot.version(), " of table ", env.store->root(),
                        " has no fragment ", id);
  }
  const int64_t physical = snapshot.fragments->summary(index).physical_rows;
  for (size_t i = 0; i < offsets.size(); ++i) {
    if (offsets[i] >= physical || (i > 0 && offsets[i] <= offsets[i - 1])) {
      return InvalidInput("rows to delete of fragment ", id, " must ascend and be below ",
                          physical);
    }
  }
  return snapshot.fragments->state(index).status();
}

void Forget(const std::string& path, std::vector<std::string>* files) {
  files->erase(std::remove(files->begin(), files->end(), path), files->end());
}

}  // namespace

Status WriteRowDeletions(const TableEnv& env, const Snapshot& snapshot,
                         const DeletedRows& rows, Transaction* transaction,
                         std::vector<std::string>* files, UnsyncedFiles* unsynced) {
  struct Work {
    uint64_t id = 0;
    int index = 0;
    const std::vector<uint32_t>* offsets = nullptr;
    bool emptied = false;
    DataFragment updated;
  };
  std::vector<Work> work;
  for (const auto& [id, offsets] : rows) {
    if (offsets.empty()) continue;
    GLAIVE_RETURN_NOT_OK(CheckRows(env, snapshot, id, offsets));
    Work& fragment = work.emplace_back();
    fragment.id = static_cast<uint64_t>(id);
    fragment.index = snapshot.fragments->Find(fragment.id);
    fragment.offsets = &offsets;
  }
  UnsyncedFiles* const later = work.size() <= kMostUnsynced ? unsynced : nullptr;
  std::mutex mutex;  // guards files
  auto write = [&](int64_t i) -> Status {
    Work& fragment = work[static_cast<size_t>(i)];
    FragmentState& state = snapshot.fragments->state(fragment.index);
    const FragmentSummary& summary = snapshot.fragments->summary(fragment.index);
    std::shared_ptr<const DeletionVector> after;
    if (summary.has_deletion_file) {
      GLAIVE_ASSIGN_OR_RETURN(auto before,
                              LoadDeletions(env, state, summary.physical_rows));
      after = before->Union(*fragment.offsets);
    } else {
      after = DeletionVector::FromOffsets(*fragment.offsets);
    }
    fragment.emptied = after->size() >= summary.physical_rows;
    if (fragment.emptied) return Status::OK();
    fragment.updated = state.message();
    GLAIVE_ASSIGN_OR_RETURN(*fragment.updated.mutable_deletion_file(),
                            WriteDeletionFile(*env.store, fragment.id, snapshot.version(),
                                              *after, /*always_bitmap=*/false, later));
    std::lock_guard lock(mutex);
    files->push_back(DeletionFilePath(fragment.id, fragment.updated.deletion_file()));
    return Status::OK();
  };
  if (work.size() == 1) {
    GLAIVE_RETURN_NOT_OK(write(0));
  } else {
    GLAIVE_RETURN_NOT_OK(
        env.runtime->ParallelFor(static_cast<int64_t>(work.size()), write));
  }
  for (Work& fragment : work) {
    if (fragment.emptied) {
      RemovedOf(transaction)->Add(fragment.id);
    } else {
      *UpdatedOf(transaction)->Add() = std::move(fragment.updated);
    }
  }
  return Status::OK();
}

Result<bool> RebaseRowDeletions(const TableEnv& env, const DeletedRows& rows,
                                const Snapshot& read, const Snapshot& newest, bool merge,
                                Transaction* transaction, std::vector<std::string>* files,
                                UnsyncedFiles* unsynced) {
  Fragments* updated = UpdatedOf(transaction);
  Fragments new_updated;
  FragmentIds new_removed;
  bool merged = false;
  TableEnv now_env = env;
  now_env.bases = newest.bases;
  for (const auto& [fragment_id, offsets] : rows) {
    if (offsets.empty()) continue;
    const auto id = static_cast<uint64_t>(fragment_id);
    const int before = read.fragments->Find(id);
    const int now = newest.fragments->Find(id);
    if (before < 0 || now < 0) return false;
    FragmentState& then_state = read.fragments->state(before);
    FragmentState& now_state = newest.fragments->state(now);
    GLAIVE_RETURN_NOT_OK(now_state.status());
    const DataFragment& current = now_state.message();
    if (!OnlyLostFiles(then_state.message(), current)) return false;
    if (SameDeletions(then_state.message(), current)) {
      // Nobody else deleted here. Take over what else became of the fragment (a dropped
      // column).
      auto ours = std::find_if(updated->begin(), updated->end(),
                               [id](const auto& f) { return f.id() == id; });
      if (ours == updated->end()) {
        new_removed.Add(id);
      } else {
        DataFragment refreshed = current;
        *refreshed.mutable_deletion_file() = ours->deletion_file();
        *new_updated.Add() = std::move(refreshed);
      }
      continue;
    }
    if (!merge) return false;
    const int64_t physical_rows = newest.fragments->summary(now).physical_rows;
    GLAIVE_ASSIGN_OR_RETURN(auto theirs,
                            LoadDeletions(now_env, now_state, physical_rows));
    if (!theirs || theirs->Intersects(offsets)) return false;
    // Rows that were deleted before we looked are in theirs, unless somebody restored
    // them.
    auto both = theirs->Union(offsets);
    merged = true;
    for (const DataFragment& fragment : *updated) {
      if (fragment.id() != id) continue;
      // Written by us for the older version and never published: best effort to leave no
      // litter.
      const std::string path = DeletionFilePath(id, fragment.deletion_file());
      if (!unsynced->Drop(path)) {
        Status ignored = env.store->Delete(path);
        static_cast<void>(ignored.ok());
      }
      Forget(path, files);
    }
    if (both->size() >= physical_rows) {
      new_removed.Add(id);
      continue;
    }
    DataFragment fragment = current;
    GLAIVE_ASSIGN_OR_RETURN(*fragment.mutable_deletion_file(),
                            WriteDeletionFile(*env.store, id, newest.version(), *both,
                                              /*always_bitmap=*/true));
    files->push_back(DeletionFilePath(id, fragment.deletion_file()));
    *new_updated.Add() = std::move(fragment);
  }
  *updated = std::move(new_updated);
  *RemovedOf(transaction) = std::move(new_removed);
  if (merged) transaction->set_read_version(newest.version());
  return true;
}

void DeleteFiles(io::ObjectStore& store, std::vector<std::string>* files) {
  for (const std::string& path : *files) {
    Status ignored = store.Delete(path);
    static_cast<void>(ignored.ok());
  }
  files->clear();
}

}  // namespace glaive::table
