#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

#include "table/data_file.h"
#include "table/deletion_vector.h"
#include "table/next_manifest_builder.h"
#include "table/row_ids.h"
#include "table/transaction.h"

namespace glaive::table {
namespace {

using lance::table::DataFragment;
using lance::table::Transaction;

constexpr int32_t kTombstone = -2;

std::vector<uint64_t> Expand(const std::vector<RowIdRun>& runs) {
  std::vector<uint64_t> ids;
  for (const RowIdRun& run : runs) {
    for (uint64_t i = 0; i < run.count; ++i) ids.push_back(run.first_id + i);
  }
  return ids;
}

// One version per row.
Result<std::vector<uint64_t>> ExpandVersions(const std::string& serialized,
                                             int64_t rows) {
  GLAIVE_ASSIGN_OR_RETURN(const auto runs, DecodeRowVersions(serialized, rows));
  std::vector<uint64_t> versions;
  versions.reserve(static_cast<size_t>(rows));
  for (const RowVersionRun& run : runs) {
    versions.insert(versions.end(), static_cast<size_t>(run.count), run.version);
  }
  return versions;
}

// The ids and versions of the rows of a changed fragment, unless it brings them.
Status KeepLineage(FragmentState& state, DataFragment* fragment) {
  GLAIVE_RETURN_NOT_OK(state.status());
  const DataFragment& current = state.message();
  if (fragment->row_id_sequence_case() == DataFragment::ROW_ID_SEQUENCE_NOT_SET &&
      current.has_inline_row_ids()) {
    fragment->set_inline_row_ids(current.inline_row_ids());
  }
  if (fragment->created_at_version_sequence_case() ==
          DataFragment::CREATED_AT_VERSION_SEQUENCE_NOT_SET &&
      current.has_inline_created_at_versions()) {
    fragment->set_inline_created_at_versions(current.inline_created_at_versions());
  }
  if (fragment->last_updated_at_version_sequence_case() ==
          DataFragment::LAST_UPDATED_AT_VERSION_SEQUENCE_NOT_SET &&
      current.has_inline_last_updated_at_versions()) {
    fragment->set_inline_last_updated_at_versions(
        current.inline_last_updated_at_versions());
  }
  return Status::OK();
}

bool RewritesColumns(const Transaction& transaction) {
  return transaction.has_update() &&
         transaction.update().update_mode() == Transaction::Update::REWRITE_COLUMNS;
}

std::string EncodeVersions(const std::vector<uint64_t>& versions) {
  std::string serialized;
  for (size_t i = 0; i < versions.size();) {
    size_t end = i;
    while (end < versions.size() && versions[end] == versions[i]) ++end;
    serialized += EncodeRowVersions(static_cast<int64_t>(end - i), versions[i]);
    i = end;
  }
  return serialized;
}

}  // namespace

Status NextManifestBuilder::AddNew(const Fragments& fragments) {
  for (const DataFragment& incoming : fragments) {
    DataFragment fragment = incoming;
    uint64_t id =
        header().has_max_fragment_id() ? uint64_t{header().max_fragment_id()} + 1 : 0;
    if (id >= std::numeric_limits<uint32_t>::max()) {
      return InvalidInput("the table has used up its fragment ids");
    }
    fragment.set_id(id);
    new_ids_.push_back(id);
    RaiseMaxFragmentId(id);
    GLAIVE_RETURN_NOT_OK(CheckNew(&fragment));
    GLAIVE_RETURN_NOT_OK(AssignLineage(&fragment));
    GLAIVE_RETURN_NOT_OK(AddOwned(fragment));
  }
  return Status::OK();
}

// What upstream checks before it accepts a manifest.
Status NextManifestBuilder::CheckNew(DataFragment* fragment) {
  auto* files = fragment->mutable_files();
  for (int i = files->size() - 1; i >= 0; --i) {
    const auto& fields = files->Get(i).fields();
    if (!fields.empty() && std::all_of(fields.begin(), fields.end(),
                                       [](int32_t f) { return f == kTombstone; })) {
      files->DeleteSubrange(i, 1);
    }
  }
  if (fragment->physical_rows() == 0) {
    return InvalidInput("a new fragment must have rows and say how many");
  }
  for (const auto& file : fragment->files()) {
    if (file.fields().empty()) {
      return InvalidInput("data file ", file.path(), " lists no fields");
    }
    GLAIVE_ASSIGN_OR_RETURN(const file::FileVersion version, DataFileVersionOf(file));
    if (version != next_.file_version) mixed_versions_ = true;
  }
  return Status::OK();
}

// Rows that brought their ids and the versions they were created at keep them; the
// others, always the last of the fragment, get new ones.
Status NextManifestBuilder::AssignLineage(DataFragment* fragment) {
  const bool brings_ids =
      fragment->row_id_sequence_case() != DataFragment::ROW_ID_SEQUENCE_NOT_SET;
  if (!stable_) {
    if (!brings_ids) return Status::OK();
    return InvalidInput("a new fragment brings row ids, but the table has none");
  }
  const auto rows = static_cast<int64_t>(fragment->physical_rows());
  int64_t brought = 0;
  std::vector<RowIdRun> runs;
  if (brings_ids) {
    if (!fragment->has_inline_row_ids()) {
      return NotSupported("new fragments whose row ids lie in their data files");
    }
    GLAIVE_ASSIGN_OR_RETURN(runs, DecodeFirstRowIdRuns(fragment->inline_row_ids(), rows));
    for (const RowIdRun& run : runs) {
      brought += static_cast<int64_t>(run.count);
      if (run.first_id >= header().next_row_id() ||
          run.count > header().next_row_id() - run.first_id) {
        return InvalidInput("a new fragment brings row id ",
                            run.first_id + (run.count - 1),
                            ", which the table never gave to a row");
      }
    }
  }
  const auto fresh = static_cast<uint64_t>(rows - brought);
  const uint64_t first = header().next_row_id();
  if (fresh > std::numeric_limits<uint64_t>::max() - first) {
    return InvalidInput("the table has used up its row ids");
  }
  if (!brings_ids) {
    fragment->set_inline_row_ids(EncodeRowIdRange(first, first + fresh));
  } else if (fresh > 0) {
    // Sequences concatenate.
    fragment->mutable_inline_row_ids()->append(EncodeRowIdRange(first, first + fresh));
  }
  header().set_next_row_id(first + fresh);
  fragment->set_inline_last_updated_at_versions(EncodeRowVersions(rows, version_));
  if (brought == 0) {
    fragment->set_inline_created_at_versions(EncodeRowVersions(rows, version_));
    return Status::OK();
  }
  if (!fragment->has_inline_created_at_versions()) {
    GLAIVE_ASSIGN_OR_RETURN(*fragment->mutable_inline_created_at_versions(),
                            CreatedVersions(Expand(runs)));
  }
  GLAIVE_RETURN_NOT_OK(
      DecodeRowVersions(fragment->inline_created_at_versions(), brought).status());
  if (fresh > 0) {
    fragment->mutable_inline_created_at_versions()->append(
        EncodeRowVersions(static_cast<int64_t>(fresh), version_));
  }
  return Status::OK();
}

// All fragments, some of them changed, without the removed ones.
Status NextManifestBuilder::KeepExcept(const Fragments& updated_fragments,
                                       const FragmentIds& removed_ids) {
  std::map<uint64_t, const DataFragment*> updated;
  for (const DataFragment& fragment : updated_fragments) {
    updated[fragment.id()] = &fragment;
  }
  std::set<uint64_t> removed(removed_ids.begin(), removed_ids.end());
  next_.serialized.reserve(current_->fragments->size() + 16);
  next_.summaries.reserve(current_->fragments->size() + 16);
  for (int i = 0; i < current_->fragments->size(); ++i) {
    const uint64_t id = current_->fragments->summary(i).id;
    if (!removed.empty() && removed.erase(id) > 0) {
      RememberFieldIds(current_->fragments->state(i).message());
      continue;
    }
    auto it = updated.empty() ? updated.end() : updated.find(id);
    if (it == updated.end()) {
      Keep(current_, i);
      continue;
    }
    if (it->second->physical_rows() != current_->fragments->summary(i).physical_rows) {
      return InvalidInput("the ", OperationName(transaction_), " gives fragment ", id,
                          " ", it->second->physical_rows(), " rows, but it has ",
                          current_->fragments->summary(i).physical_rows);
    }
    DataFragment fragment = *it->second;
    GLAIVE_RETURN_NOT_OK(KeepLineage(current_->fragments->state(i), &fragment));
    if (RewritesColumns(transaction_)) {
      GLAIVE_RETURN_NOT_OK(ApplyColumnUpdate(&fragment));
    }
    GLAIVE_RETURN_NOT_OK(AddOwned(fragment));
    updated.erase(it);
  }
  if (!updated.empty() || !removed.empty()) {
    return InvalidInput("the ", OperationName(transaction_), " names fragment ",
                        updated.empty() ? *removed.begin() : updated.begin()->first,
                        ", which the table does not have");
  }
  return Status::OK();
}

Status NextManifestBuilder::ApplyUpdate() {
  const auto& operation = transaction_.update();
  GLAIVE_RETURN_NOT_OK(
      indices_.RecordCompacted(operation.compacted_sstables(), version_));
  GLAIVE_RETURN_NOT_OK(
      KeepExcept(operation.updated_fragments(), operation.removed_fragment_ids()));
  GLAIVE_RETURN_NOT_OK(AddNew(operation.new_fragments()));

  std::vector<uint32_t> sources;
  for (const DataFragment& fragment : operation.updated_fragments()) {
    sources.push_back(static_cast<uint32_t>(fragment.id()));
  }
  if (RewritesColumns(transaction_)) {
    const std::vector<int32_t> fields(operation.fields_modified().begin(),
                                      operation.fields_modified().end());
    return indices_.Uncover(fields, sources);
  }
  if (!stable_) return Status::OK();
  // Entries of an index by row id stay right for rows that moved with the values of the
  // indexed columns unchanged.
  for (uint64_t id : operation.removed_fragment_ids()) {
    sources.push_back(static_cast<uint32_t>(id));
  }
  std::vector<uint32_t> moved;
  for (int i = 0; i < operation.new_fragments_size(); ++i) {
    const DataFragment& fragment = operation.new_fragments(i);
    if (!fragment.has_inline_row_ids()) continue;
    const auto rows = static_cast<int64_t>(fragment.physical_rows());
    GLAIVE_ASSIGN_OR_RETURN(const auto runs,
                            DecodeFirstRowIdRuns(fragment.inline_row_ids(), rows));
    int64_t brought = 0;
    for (const RowIdRun& run : runs) brought += static_cast<int64_t>(run.count);
    if (brought == rows) {
      moved.push_back(static_cast<uint32_t>(new_ids_[static_cast<size_t>(i)]));
    }
  }
  const std::vector<int32_t> changed(
      operation.fields_for_preserving_frag_bitmap().begin(),
      operation.fields_for_preserving_frag_bitmap().end());
  return indices_.CoverMovedRows(changed, sources, moved);
}

// Rows of a fragment got new values in place.
Status NextManifestBuilder::ApplyColumnUpdate(DataFragment* fragment) {
  RememberFieldIds(*fragment);
  if (!stable_) return CheckNew(fragment);
  GLAIVE_RETURN_NOT_OK(CheckNew(fragment));
  const auto& operation = transaction_.update();
  const auto rows = static_cast<int64_t>(fragment->physical_rows());
  std::vector<uint32_t> offsets;
  const auto list = operation.updated_fragment_offsets().find(fragment->id());
  const auto bitmap = operation.updated_fragment_offset_bitmaps().find(fragment->id());
  if (bitmap != operation.updated_fragment_offset_bitmaps().end()) {
    const std::string& bytes = bitmap->second;
    GLAIVE_ASSIGN_OR_RETURN(
        const auto set,
        DeletionVector::ParseBitmap(
            {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, rows));
    offsets = set->ToOffsets();
  } else if (list != operation.updated_fragment_offsets().end()) {
    offsets.assign(list->second.values().begin(), list->second.values().end());
  } else {
    fragment->set_inline_last_updated_at_versions(EncodeRowVersions(rows, version_));
    return Status::OK();
  }
  std::vector<uint64_t> versions(static_cast<size_t>(rows), 1);
  if (fragment->has_inline_last_updated_at_versions()) {
    GLAIVE_ASSIGN_OR_RETURN(
        versions, ExpandVersions(fragment->inline_last_updated_at_versions(), rows));
  } else if (fragment->has_last_updated_at_versions_in_data_file()) {
    return NotSupported(
        "updates in place of fragments whose row versions lie in their "
        "data files");
  }
  for (uint32_t offset : offsets) {
    if (offset >= versions.size()) {
      return InvalidInput("the update names row ", offset, " of fragment ",
                          fragment->id(), ", which has ", rows, " rows");
    }
    versions[offset] = version_;
  }
  fragment->set_inline_last_updated_at_versions(EncodeVersions(versions));
  return Status::OK();
}

// The versions at which rows were created, looked up in the fragments that an update
// takes them from.
Result<std::string> NextManifestBuilder::CreatedVersions(
    const std::vector<uint64_t>& row_ids) {
  std::unordered_map<uint64_t, uint64_t> created;
  for (uint64_t id : row_ids) created[id] = 0;
  size_t missing = created.size();
  std::set<uint64_t> sources(transaction_.update().removed_fragment_ids().begin(),
                             transaction_.update().removed_fragment_ids().end());
  for (const DataFragment& fragment : transaction_.update().updated_fragments()) {
    sources.insert(fragment.id());
  }
  for (uint64_t source : sources) {
    const int index = current_->fragments->Find(source);
    if (index < 0) continue;
    const DataFragment& fragment = current_->fragments->state(index).message();
    const auto rows = static_cast<int64_t>(fragment.physical_rows());
    if (!fragment.has_inline_row_ids() ||
        fragment.has_created_at_versions_in_data_file()) {
      return NotSupported(
          "moving rows whose ids or versions lie in data files, when "
          "the update does not bring them");
    }
    GLAIVE_ASSIGN_OR_RETURN(const auto ids,
                            DecodeRowIds(fragment.inline_row_ids(), rows));
    std::vector<uint64_t> versions(static_cast<size_t>(rows), 1);
    if (fragment.has_inline_created_at_versions()) {
      GLAIVE_ASSIGN_OR_RETURN(
          versions, ExpandVersions(fragment.inline_created_at_versions(), rows));
    }
    for (size_t i = 0; i < ids.size(); ++i) {
      auto wanted = created.find(ids[i]);
      if (wanted == created.end() || wanted->second != 0) continue;
      wanted->second = std::max<uint64_t>(versions[i], 1);
      --missing;
    }
  }
  if (missing > 0) {
    return InvalidInput("a new fragment brings the ids of ", missing,
                        " rows that the changed fragments do not have");
  }
  std::vector<uint64_t> versions;
  versions.reserve(row_ids.size());
  for (uint64_t id : row_ids) versions.push_back(created[id]);
  return EncodeVersions(versions);
}

// The old fragments of a group must stand next to each other, as they were read.
Status NextManifestBuilder::CheckGroup(const Transaction::RewriteGroup& group,
                                       int* first) {
  if (group.old_fragments_size() == 0) {
    return InvalidInput("a group of a rewrite names no old fragment");
  }
  uint64_t before = 0;
  for (int i = 0; i < group.old_fragments_size(); ++i) {
    const uint64_t id = group.old_fragments(i).id();
    const int index = current_->fragments->Find(id);
    if (index < 0) {
      return InvalidInput("the rewrite names fragment ", id,
                          ", which the table does not have");
    }
    if (i == 0) *first = index;
    if (index != *first + i) {
      return InvalidInput("the fragments of a group of a rewrite must follow each other");
    }
    const FragmentSummary& summary = current_->fragments->summary(index);
    before += summary.physical_rows - summary.deleted_rows;
    RememberFieldIds(current_->fragments->state(index).message());
  }
  uint64_t after = 0;
  for (const DataFragment& fragment : group.new_fragments()) {
    after += fragment.physical_rows() - fragment.deletion_file().num_deleted_rows();
  }
  if (before == after) return Status::OK();
  return InvalidInput("the rewrite puts ", after, " rows in the place of ", before);
}

// A fragment of a rewrite has an id that was reserved, or gets one.
Status NextManifestBuilder::FinishRewritten(DataFragment* fragment) {
  if (fragment->id() == 0) {
    fragment->set_id(
        header().has_max_fragment_id() ? uint64_t{header().max_fragment_id()} + 1 : 0);
  } else if (current_->fragments->Find(fragment->id()) >= 0 ||
             std::count(new_ids_.begin(), new_ids_.end(), fragment->id()) > 0) {
    return InvalidInput("the rewrite adds fragment ", fragment->id(),
                        ", but the table has one with that id");
  }
  if (fragment->id() >= std::numeric_limits<uint32_t>::max()) {
    return InvalidInput("the table has used up its fragment ids");
  }
  new_ids_.push_back(fragment->id());
  RaiseMaxFragmentId(fragment->id());
  GLAIVE_RETURN_NOT_OK(CheckNew(fragment));
  const bool has_ids =
      fragment->row_id_sequence_case() != DataFragment::ROW_ID_SEQUENCE_NOT_SET;
  if (has_ids != stable_) {
    return InvalidInput(stable_ ? "rewritten fragments must bring the ids of their rows"
                                : "rewritten fragments bring row ids, but the table has "
                                  "none");
  }
  if (fragment->has_inline_row_ids()) {
    GLAIVE_RETURN_NOT_OK(DecodeRowIdRuns(fragment->inline_row_ids(),
                                         static_cast<int64_t>(fragment->physical_rows()))
                             .status());
  }
  return Status::OK();
}

Status NextManifestBuilder::ApplyRewrite() {
  const auto& operation = transaction_.rewrite();
  if (operation.groups_size() == 0 &&
      operation.old_fragments_size() + operation.new_fragments_size() > 0) {
    return NotSupported("the deprecated form of Rewrite, without groups");
  }
  std::set<int> replaced;
  std::vector<IndexEditor::RewrittenGroup> groups;
  std::vector<DataFragment> added;
  for (const auto& group : operation.groups()) {
    int first = 0;
    GLAIVE_RETURN_NOT_OK(CheckGroup(group, &first));
    auto& ids = groups.emplace_back();
    for (int i = 0; i < group.old_fragments_size(); ++i) {
      if (!replaced.insert(first + i).second) {
        return InvalidInput("the rewrite names fragment ", group.old_fragments(i).id(),
                            " twice");
      }
      ids.old_ids.push_back(static_cast<uint32_t>(group.old_fragments(i).id()));
    }
    for (const DataFragment& incoming : group.new_fragments()) {
      added.push_back(incoming);
      GLAIVE_RETURN_NOT_OK(FinishRewritten(&added.back()));
      ids.new_ids.push_back(static_cast<uint32_t>(added.back().id()));
    }
  }
  std::sort(added.begin(), added.end(),
            [](const auto& a, const auto& b) { return a.id() < b.id(); });
  auto next = added.begin();
  for (int i = 0; i < current_->fragments->size(); ++i) {
    if (replaced.count(i) > 0) continue;
    for (; next != added.end() && next->id() < current_->fragments->summary(i).id;
         ++next) {
      GLAIVE_RETURN_NOT_OK(AddOwned(*next));
    }
    Keep(current_, i);
  }
  for (; next != added.end(); ++next) GLAIVE_RETURN_NOT_OK(AddOwned(*next));
  return indices_.Rewrite(operation, groups, stable_);
}

}  // namespace glaive::table
