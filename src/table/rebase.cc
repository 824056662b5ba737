#include "table/rebase.h"

#include <algorithm>
#include <memory>
#include <string>

#include "format/table.pb.h"
#include "format/transaction.pb.h"
#include "io/object_store.h"
#include "table/deletion_file.h"
#include "table/deletion_vector.h"
#include "table/names.h"
#include "table/snapshot.h"

namespace glaive::table {
namespace {

using lance::table::DataFragment;

bool SameFiles(const DataFragment& a, const DataFragment& b) {
  if (a.files_size() != b.files_size()) return false;
  for (int i = 0; i < a.files_size(); ++i) {
    const auto& x = a.files(i);
    const auto& y = b.files(i);
    if (x.path() != y.path() || x.base_id() != y.base_id() ||
        !std::equal(x.fields().begin(), x.fields().end(), y.fields().begin(),
                    y.fields().end())) {
      return false;
    }
  }
  return true;
}

bool SameDeletions(const DataFragment& a, const DataFragment& b) {
  if (a.has_deletion_file() != b.has_deletion_file()) return false;
  return a.deletion_file().SerializeAsString() == b.deletion_file().SerializeAsString();
}

}  // namespace

Result<bool> RebaseDelete(const TableEnv& env, const DeletedRows& rows,
                          const Snapshot& read, const Snapshot& newest, bool merge,
                          lance::table::Transaction* transaction) {
  auto* operation = transaction->mutable_delete_();
  auto* updated = operation->mutable_updated_fragments();
  lance::table::Transaction::Delete result;
  result.set_predicate(operation->predicate());
  bool merged = false;
  for (const auto& [fragment_id, offsets] : rows) {
    const auto id = static_cast<uint64_t>(fragment_id);
    const int before = read.fragments->Find(id);
    const int now = newest.fragments->Find(id);
    if (before < 0 || now < 0) return false;
    FragmentState& then_state = read.fragments->state(before);
    FragmentState& now_state = newest.fragments->state(now);
    GLAIVE_RETURN_NOT_OK(now_state.status());
    const DataFragment& current = now_state.message();
    if (SameDeletions(then_state.message(), current)) {
      // Nobody else deleted here. Take over what else became of the fragment (a dropped
      // column).
      auto ours = std::find_if(updated->begin(), updated->end(),
                               [id](const auto& f) { return f.id() == id; });
      if (ours == updated->end()) {
        result.add_deleted_fragment_ids(id);
      } else {
        DataFragment refreshed = current;
        *refreshed.mutable_deletion_file() = ours->deletion_file();
        *result.add_updated_fragments() = std::move(refreshed);
      }
      continue;
    }
    if (!merge || !SameFiles(then_state.message(), current)) return false;
    const int64_t physical_rows = newest.fragments->summary(now).physical_rows;
    GLAIVE_ASSIGN_OR_RETURN(auto theirs,
                            ReadDeletionFile(*env.store, current, physical_rows));
    if (!theirs || theirs->Intersects(offsets)) return false;
    // Rows that were deleted before we looked are in theirs, unless somebody restored
    // them.
    auto both = theirs->Union(offsets);
    merged = true;
    for (const DataFragment& fragment : *updated) {
      if (fragment.id() != id) continue;
      // Written by us for the older version and never published: best effort to leave no
      // litter.
      Status ignored = env.store->Delete(DeletionFilePath(id, fragment.deletion_file()));
      static_cast<void>(ignored.ok());
    }
    if (both->size() >= physical_rows) {
      result.add_deleted_fragment_ids(id);
      continue;
    }
    DataFragment fragment = current;
    GLAIVE_ASSIGN_OR_RETURN(*fragment.mutable_deletion_file(),
                            WriteDeletionFile(*env.store, id, newest.version(), *both,
                                              /*always_bitmap=*/true));
    *result.add_updated_fragments() = std::move(fragment);
  }
  *operation = std::move(result);
  if (merged) transaction->set_read_version(newest.version());
  return true;
}

}  // namespace glaive::table
