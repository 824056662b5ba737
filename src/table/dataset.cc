#include "table/dataset.h"

#include <algorithm>
#include <limits>
#include <mutex>
#include <set>
#include <string_view>
#include <utility>

#include <arrow/record_batch.h>
#include <arrow/type.h>

#include "format/table.pb.h"
#include "format/transaction.pb.h"
#include "io/object_store.h"
#include "runtime/fork.h"
#include "runtime/runtime.h"
#include "table/branches.h"
#include "table/commit.h"
#include "table/dataset_builder.h"
#include "table/deletion_vector.h"
#include "table/field_ids.h"
#include "table/fragment_open.h"
#include "table/live_versions.h"
#include "table/manifest.h"
#include "table/names.h"
#include "table/row_deletions.h"
#include "table/row_id_index.h"
#include "table/row_ids.h"
#include "table/snapshot.h"
#include "table/tags.h"
#include "table/unsynced_files.h"
#include "table/view.h"
#include "table/write.h"
#include "table/writer_turn.h"

namespace glaive::table {
namespace {

using lance::table::Transaction;

int64_t TimestampUs(const lance::table::Manifest& header) {
  // Untrusted values: wrap instead of overflowing.
  return static_cast<int64_t>(static_cast<uint64_t>(header.timestamp().seconds()) *
                                  1000000u +
                              static_cast<uint64_t>(header.timestamp().nanos() / 1000));
}

Result<VersionInfo> Describe(const ManifestFile& manifest) {
  uint64_t rows = 0, files = 0, deleted = 0, deletion_files = 0, bytes = 0;
  for (const FragmentSummary& s : manifest.fragments) {
    GLAIVE_ASSIGN_OR_RETURN(
        const FragmentFiles of_fragment,
        SummarizeFiles(manifest.bytes.view.substr(s.offset, s.length)));
    files += of_fragment.count;
    bytes += of_fragment.bytes;
    rows += s.physical_rows;
    deleted += s.deleted_rows;
    deletion_files += s.has_deletion_file ? 1 : 0;
  }
  VersionInfo info;
  info.version = static_cast<int64_t>(manifest.header->version());
  info.timestamp_us = TimestampUs(*manifest.header);
  info.metadata = {{"total_data_file_rows", std::to_string(rows)},
                   {"total_data_files", std::to_string(files)},
                   {"total_deletion_file_rows", std::to_string(deleted)},
                   {"total_deletion_files", std::to_string(deletion_files)},
                   {"total_files_size", std::to_string(bytes)},
                   {"total_fragments", std::to_string(manifest.fragments.size())},
                   {"total_rows", std::to_string(rows - deleted)}};
  return info;
}

Status NoSuchVersion(const io::ObjectStore& store, int64_t version) {
  return NotFound("Dataset at path ", store.root(), "/", kVersionsDir, "/", version,
                  ".manifest was not found: the table has no version ", version);
}

std::vector<RowIdRun> ToRuns(std::span<const uint64_t> ids) {
  std::vector<RowIdRun> runs;
  for (uint64_t id : ids) {
    if (!runs.empty() && runs.back().first_id + runs.back().count == id) {
      runs.back().count++;
    } else {
      runs.push_back({id, 1});
    }
  }
  return runs;
}

}  // namespace

struct Dataset::Impl {
  TableEnv env;
  SnapshotPtr snapshot;
  std::optional<LiveVersion> live;
  ForkSafeMutex mutex;
  std::shared_ptr<const RowIdIndex> row_id_index;  // guarded by mutex
  // Of fragments that belong to a view; guarded by mutex.
  std::map<int, std::shared_ptr<const FragmentReader>> readers;
};

Dataset::Ptr DatasetBuilder::Make(TableEnv env, SnapshotPtr snapshot) {
  Dataset::Ptr dataset(new Dataset());
  dataset->impl_->env = std::move(env);
  dataset->impl_->env.bases = snapshot->bases;
  dataset->impl_->live.emplace(*dataset->impl_->env.store,
                               static_cast<int64_t>(snapshot->version()));
  dataset->impl_->snapshot = std::move(snapshot);
  return dataset;
}

Dataset::Ptr DatasetBuilder::MakeView(
    TableEnv env, SnapshotPtr snapshot,
    std::map<int, std::shared_ptr<const FragmentReader>> readers) {
  Dataset::Ptr view = Make(std::move(env), std::move(snapshot));
  view->impl_->readers = std::move(readers);
  return view;
}

const SnapshotPtr& DatasetBuilder::SnapshotOf(const Dataset& dataset) {
  return dataset.impl_->snapshot;
}

bool HasAnonymousRows(const Dataset& dataset) {
  return DatasetBuilder::SnapshotOf(dataset)->anonymous_rows;
}

namespace {

// Rows that a view hides are in the table: a commit that started from it would lose them.
Status CheckNoView(const Snapshot& snapshot, const io::ObjectStore& store) {
  if (!snapshot.is_view) return Status::OK();
  return InvalidInput("a view of version ", snapshot.version(), " of table ",
                      store.root(), " cannot be written to");
}

}  // namespace

Dataset::Dataset() : impl_(std::make_unique<Impl>()) {}
Dataset::~Dataset() = default;

Result<Dataset::Ptr> Dataset::Open(TableEnv env, std::optional<int64_t> version) {
  auto state = StateOf(env);
  if (!version) {
    GLAIVE_ASSIGN_OR_RETURN(SnapshotPtr newest, NewestSnapshot(env, *state));
    if (!newest) return TableNotFound(*env.store);
    return DatasetBuilder::Make(std::move(env), std::move(newest));
  }
  std::optional<VersionRef> ref;
  if (*version > 0) {
    GLAIVE_ASSIGN_OR_RETURN(ref,
                            FindVersion(*env.store, static_cast<uint64_t>(*version)));
  }
  if (!ref) {
    GLAIVE_ASSIGN_OR_RETURN(const bool exists, Exists(env));
    return exists ? NoSuchVersion(*env.store, *version) : TableNotFound(*env.store);
  }
  SnapshotPtr known;
  {
    std::lock_guard lock(state->mutex);
    known = state->newest;
  }
  GLAIVE_ASSIGN_OR_RETURN(SnapshotPtr snapshot, LoadSnapshot(env, *ref, known.get()));
  return DatasetBuilder::Make(std::move(env), std::move(snapshot));
}

Result<bool> Dataset::Exists(const TableEnv& env) {
  GLAIVE_ASSIGN_OR_RETURN(auto newest, FindNewest(*env.store));
  return newest.has_value();
}

Result<Dataset::Ptr> Dataset::Write(TableEnv env, arrow::RecordBatchReader& data,
                                    const WriteOptions& options) {
  GLAIVE_ASSIGN_OR_RETURN(SnapshotPtr snapshot, WriteTable(env, data, options));
  return DatasetBuilder::Make(std::move(env), std::move(snapshot));
}

Result<Dataset::Ptr> Dataset::WriteEmpty(TableEnv env, const arrow::Schema& schema,
                                         const WriteOptions& options) {
  auto copy = arrow::schema(schema.fields(), schema.metadata());
  GLAIVE_ASSIGN_OR_RETURN(auto reader, arrow::RecordBatchReader::Make({}, copy));
  return Write(std::move(env), *reader, options);
}

const TableEnv& Dataset::env() const { return impl_->env; }
int64_t Dataset::version() const {
  return static_cast<int64_t>(impl_->snapshot->version());
}
const lance::table::Manifest& Dataset::manifest() const {
  return *impl_->snapshot->header;
}
int64_t Dataset::manifest_size_bytes() const {
  return impl_->snapshot->identity.size_bytes;
}
const file::Schema& Dataset::schema() const { return impl_->snapshot->schema->schema; }
std::shared_ptr<arrow::Schema> Dataset::arrow_schema() const {
  return impl_->snapshot->schema->arrow;
}
Result<int64_t> Dataset::CountIndices() const {
  const auto& serialized = impl_->snapshot->index_section;
  if (serialized == nullptr) return 0;
  lance::table::IndexSection section;
  if (!section.ParseFromString(*serialized)) {
    return Corruption("the index section of version ", version(), " of table ",
                      impl_->env.store->root(), " does not decode");
  }
  // Each index may consist of several segments.
  std::set<std::string_view> names;
  for (const auto& index : section.indices()) {
    if (!index.name().starts_with("__lance_")) names.insert(index.name());
  }
  return static_cast<int64_t>(names.size());
}
std::vector<std::string> Dataset::warnings() const {
  const Snapshot& snapshot = *impl_->snapshot;
  std::vector<std::string> warnings;
  for (const TornManifest& torn : snapshot.torn) {
    warnings.push_back("manifest " + torn.path + " of table " + impl_->env.store->root() +
                       " is empty or torn, as after a power cut: version " +
                       std::to_string(snapshot.version()) +
                       " is used instead of version " + std::to_string(torn.version));
  }
  return warnings;
}
bool Dataset::has_stable_row_ids() const { return impl_->snapshot->stable_row_ids(); }
std::shared_ptr<const std::string> Dataset::index_section() const {
  return impl_->snapshot->index_section;
}
file::FileVersion Dataset::file_version() const { return impl_->snapshot->file_version; }

Result<int32_t> Dataset::max_field_id() const { return MaxFieldId(*impl_->snapshot); }

int Dataset::num_fragments() const { return impl_->snapshot->fragments->size(); }
const lance::table::DataFragment& Dataset::fragment(int index) const {
  return impl_->snapshot->fragments->state(index).message();
}
int64_t Dataset::fragment_id(int index) const {
  return static_cast<int64_t>(impl_->snapshot->fragments->summary(index).id);
}
int Dataset::FindFragment(int64_t fragment_id) const {
  if (fragment_id < 0) return -1;
  return impl_->snapshot->fragments->Find(static_cast<uint64_t>(fragment_id));
}
int64_t Dataset::physical_rows(int index) const {
  return impl_->snapshot->fragments->summary(index).physical_rows;
}
int64_t Dataset::live_rows(int index) const {
  const FragmentSummary& summary = impl_->snapshot->fragments->summary(index);
  return int64_t{summary.physical_rows} - summary.deleted_rows;
}
int64_t Dataset::count_rows() const {
  const FragmentList& fragments = *impl_->snapshot->fragments;
  return fragments.total_physical_rows() - fragments.total_deleted_rows();
}

Result<std::shared_ptr<const DeletionVector>> Dataset::deletions(int index) const {
  const FragmentList& fragments = *impl_->snapshot->fragments;
  if (!fragments.summary(index).has_deletion_file) {
    return std::shared_ptr<const DeletionVector>();
  }
  return LoadDeletions(impl_->env, fragments.state(index),
                       fragments.summary(index).physical_rows);
}

Result<std::shared_ptr<const FragmentReader>> Dataset::OpenFragment(int index) const {
  const FragmentList& fragments = *impl_->snapshot->fragments;
  const auto& state = fragments.shared_state(index);
  if (state->of_view()) {
    std::lock_guard lock(impl_->mutex);
    if (auto known = impl_->readers.find(index); known != impl_->readers.end()) {
      return known->second;
    }
  }
  GLAIVE_ASSIGN_OR_RETURN(
      auto reader,
      OpenFragmentReader(impl_->env, state, fragments.summary(index).physical_rows));
  if (state->of_view()) {
    std::lock_guard lock(impl_->mutex);
    impl_->readers[index] = reader;
  }
  return reader;
}

Result<std::shared_ptr<const RowIdIndex>> Dataset::row_id_index() const {
  if (!has_stable_row_ids()) {
    return InvalidInput("table ", impl_->env.store->root(), " has no stable row ids");
  }
  std::lock_guard lock(impl_->mutex);
  if (impl_->row_id_index) return impl_->row_id_index;
  const FragmentList& fragments = *impl_->snapshot->fragments;
  std::vector<RowIdSource> sources(static_cast<size_t>(fragments.size()));
  for (int i = 0; i < fragments.size(); ++i) {
    RowIdSource& source = sources[static_cast<size_t>(i)];
    source.fragment_id = fragment_id(i);
    if (fragments.summary(i).has_inline_row_ids) {
      GLAIVE_ASSIGN_OR_RETURN(source.deletions, deletions(i));
      GLAIVE_ASSIGN_OR_RETURN(
          source.runs, DecodeRowIdRuns(fragment(i).inline_row_ids(), physical_rows(i)));
    } else {
      GLAIVE_ASSIGN_OR_RETURN(auto reader, OpenFragment(i));
      GLAIVE_ASSIGN_OR_RETURN(source.deletions, deletions(i));
      GLAIVE_ASSIGN_OR_RETURN(auto ids, reader->row_ids());
      source.runs = ToRuns(ids);
    }
  }
  auto index = BuildRowIdIndex(sources);
  if (!index.ok())
    return WithContext(index.status(), "table " + impl_->env.store->root());
  impl_->row_id_index = *index;
  return impl_->row_id_index;
}

Result<Dataset::Ptr> Dataset::Latest() const {
  auto state = StateOf(impl_->env);
  {
    std::lock_guard lock(state->mutex);
    if (!state->newest && !impl_->snapshot->is_view) state->newest = impl_->snapshot;
  }
  GLAIVE_ASSIGN_OR_RETURN(SnapshotPtr newest, NewestSnapshot(impl_->env, *state));
  if (!newest) return TableNotFound(*impl_->env.store);
  if (newest == impl_->snapshot)
    return std::const_pointer_cast<Dataset>(shared_from_this());
  return DatasetBuilder::Make(impl_->env, std::move(newest));
}

Result<bool> Dataset::IsLatest() const {
  GLAIVE_ASSIGN_OR_RETURN(Ptr latest, Latest());
  return latest->version() == version();
}

Result<Dataset::Ptr> Dataset::Checkout(int64_t version) const {
  return Open(impl_->env, version);
}

Result<Dataset::Ptr> Dataset::CheckoutTag(std::string_view tag) const {
  GLAIVE_ASSIGN_OR_RETURN(auto main, MainStore(*this));
  GLAIVE_ASSIGN_OR_RETURN(const TagInfo info, ReadTag(*main, tag));
  if (info.branch == BranchOf(*this)) return Checkout(info.version);
  return CheckoutBranch(*this, info.branch, info.version);
}

Result<Dataset::Ptr> Dataset::CheckoutAsOf(int64_t timestamp_us) const {
  GLAIVE_ASSIGN_OR_RETURN(auto refs, ListVersionRefs(*impl_->env.store));
  for (auto ref = refs.rbegin(); ref != refs.rend(); ++ref) {
    auto manifest = LoadManifest(*impl_->env.store, *ref);
    if (!manifest.ok()) {
      GLAIVE_ASSIGN_OR_RETURN(const bool torn, ManifestIsTorn(*impl_->env.store, *ref));
      if (torn) continue;
      return manifest.status();
    }
    if (TimestampUs(*manifest->header) > timestamp_us) continue;
    return Checkout(static_cast<int64_t>(ref->version));
  }
  return NotFound("table ", impl_->env.store->root(), " has no version as old as ",
                  timestamp_us, " microseconds since 1970");
}

Result<std::vector<VersionInfo>> Dataset::ListVersions() const {
  GLAIVE_ASSIGN_OR_RETURN(auto refs, ListVersionRefs(*impl_->env.store));
  std::vector<std::optional<VersionInfo>> found(refs.size());
  GLAIVE_RETURN_NOT_OK(impl_->env.runtime->ParallelFor(
      static_cast<int64_t>(refs.size()), [&](int64_t i) -> Status {
        auto manifest = LoadManifest(*impl_->env.store, refs[static_cast<size_t>(i)]);
        if (!manifest.ok()) {
          // Cleaned up since it was listed.
          if (KindOf(manifest.status()) == ErrorKind::kNotFound) return Status::OK();
          GLAIVE_ASSIGN_OR_RETURN(
              const bool torn,
              ManifestIsTorn(*impl_->env.store, refs[static_cast<size_t>(i)]));
          return torn ? Status::OK() : manifest.status();
        }
        GLAIVE_ASSIGN_OR_RETURN(found[static_cast<size_t>(i)], Describe(*manifest));
        return Status::OK();
      }));
  std::vector<VersionInfo> versions;
  for (auto& info : found) {
    if (info) versions.push_back(std::move(*info));
  }
  return versions;
}

Result<Dataset::Ptr> Dataset::Restore() const {
  GLAIVE_RETURN_NOT_OK(CheckNoView(*impl_->snapshot, *impl_->env.store));
  auto state = StateOf(impl_->env);
  GLAIVE_ASSIGN_OR_RETURN(SnapshotPtr newest, NewestSnapshot(impl_->env, *state));
  if (!newest) return TableNotFound(*impl_->env.store);
  Transaction transaction;
  transaction.set_read_version(newest->version());
  transaction.mutable_restore()->set_version(impl_->snapshot->version());
  CommitOutcome outcome;
  GLAIVE_ASSIGN_OR_RETURN(
      SnapshotPtr committed,
      CommitTransaction(impl_->env, newest, std::move(transaction), {}, &outcome));
  return DatasetBuilder::Make(impl_->env, std::move(committed));
}

Result<std::map<std::string, TagInfo>> Dataset::ListTags() const {
  GLAIVE_ASSIGN_OR_RETURN(auto main, MainStore(*this));
  return ReadTags(*main);
}

namespace {

// What a tag says of a version, or the error of one that is not there.
Result<TagInfo> MakeTag(const Dataset& dataset, int64_t version) {
  io::ObjectStore& store = *dataset.env().store;
  std::optional<VersionRef> ref;
  if (version > 0) {
    GLAIVE_ASSIGN_OR_RETURN(ref, FindVersion(store, static_cast<uint64_t>(version)));
  }
  if (!ref) {
    return NotFound("Version not found error: version ",
                    BranchOf(dataset).value_or("main"), ":", version, " does not exist");
  }
  GLAIVE_ASSIGN_OR_RETURN(auto info, store.Head(ManifestPath(ref->version, ref->scheme)));
  TagInfo tag;
  tag.version = version;
  tag.manifest_size = info.size_bytes;
  tag.branch = BranchOf(dataset);
  return tag;
}

}  // namespace

Status Dataset::CreateTag(std::string_view name, int64_t version) const {
  GLAIVE_ASSIGN_OR_RETURN(auto main, MainStore(*this));
  GLAIVE_ASSIGN_OR_RETURN(const TagInfo tag, MakeTag(*this, version));
  return PutNewTag(*main, name, tag);
}

Status Dataset::UpdateTag(std::string_view name, int64_t version) const {
  GLAIVE_ASSIGN_OR_RETURN(auto main, MainStore(*this));
  GLAIVE_ASSIGN_OR_RETURN(const TagInfo tag, MakeTag(*this, version));
  return ReplaceTag(*main, name, tag);
}

Status Dataset::DeleteTag(std::string_view name) const {
  GLAIVE_ASSIGN_OR_RETURN(auto main, MainStore(*this));
  return RemoveTag(*main, name);
}

namespace {

// Commits a Delete or Update that takes `rows` away.
Result<SnapshotPtr> CommitRows(const TableEnv& env, const SnapshotPtr& snapshot,
                               const DeletedRows& rows, Transaction transaction,
                               int max_retries, CommitOutcome* outcome) {
  *outcome = CommitOutcome::kNotCommitted;
  transaction.set_read_version(snapshot->version());
  std::vector<std::string> files;
  UnsyncedFiles unsynced(*env.store);
  CommitOptions options;
  options.max_retries = max_retries;
  options.deleted_rows = &rows;
  options.deletion_files = &files;
  options.unsynced = &unsynced;
  auto commit = [&]() -> Result<SnapshotPtr> {
    GLAIVE_RETURN_NOT_OK(
        WriteRowDeletions(env, *snapshot, rows, &transaction, &files, &unsynced));
    return CommitTransaction(env, snapshot, std::move(transaction), options, outcome);
  };
  auto committed = commit();
  if (!committed.ok() && *outcome == CommitOutcome::kNotCommitted) {
    DeleteFiles(*env.store, &files);
  }
  return committed;
}

}  // namespace

Result<Dataset::Ptr> Dataset::CommitDelete(const DeletedRows& rows,
                                           std::string_view predicate) const {
  GLAIVE_RETURN_NOT_OK(CheckNoView(*impl_->snapshot, *impl_->env.store));
  Transaction transaction;
  transaction.mutable_delete_()->set_predicate(std::string(predicate));
  CommitOutcome outcome;
  GLAIVE_ASSIGN_OR_RETURN(
      SnapshotPtr committed,
      CommitRows(impl_->env, impl_->snapshot, rows, std::move(transaction),
                 CommitOptions().max_retries, &outcome));
  return DatasetBuilder::Make(impl_->env, std::move(committed));
}

RowUpdate::RowUpdate() = default;
RowUpdate::~RowUpdate() = default;
RowUpdate::RowUpdate(RowUpdate&&) noexcept = default;
RowUpdate& RowUpdate::operator=(RowUpdate&&) noexcept = default;

Result<Dataset::Ptr> Dataset::CommitUpdate(const RowUpdate& update,
                                           CommitOutcome* outcome,
                                           int max_retries) const {
  CommitOutcome unused;
  if (outcome == nullptr) outcome = &unused;
  *outcome = CommitOutcome::kNotCommitted;
  GLAIVE_RETURN_NOT_OK(CheckNoView(*impl_->snapshot, *impl_->env.store));
  Transaction transaction;
  auto* operation = transaction.mutable_update();
  operation->set_update_mode(Transaction::Update::REWRITE_ROWS);
  for (const auto& fragment : update.new_fragments) {
    *operation->add_new_fragments() = fragment;
  }
  for (uint32_t id : update.fields_modified) {
    operation->add_fields_for_preserving_frag_bitmap(id);
  }
  if (update.fields_modified.empty()) {
    for (const auto& field : manifest().fields()) {
      operation->add_fields_for_preserving_frag_bitmap(static_cast<uint32_t>(field.id()));
    }
  }
  for (const CompactedGeneration& compacted : update.compacted) {
    auto* marker = operation->add_compacted_sstables();
    marker->mutable_shard_id()->set_uuid(compacted.shard);
    marker->set_generation(compacted.generation);
  }
  if (!update.inserted_keys.empty() &&
      !operation->mutable_inserted_rows()->ParseFromString(update.inserted_keys)) {
    return InvalidInput("the filter of inserted keys does not decode");
  }
  GLAIVE_ASSIGN_OR_RETURN(SnapshotPtr committed,
                          CommitRows(impl_->env, impl_->snapshot, update.deleted,
                                     std::move(transaction), max_retries, outcome));
  return DatasetBuilder::Make(impl_->env, std::move(committed));
}

Result<WriterTurn> Dataset::TakeTurn(TurnKind kind, CancelToken* cancel) const {
  auto queue = StateOf(impl_->env)->writers;
  GLAIVE_RETURN_NOT_OK(queue->Enter(kind, cancel));
  return WriterTurn(std::move(queue), kind);
}

Result<Dataset::Ptr> Dataset::Commit(Transaction transaction, int max_retries,
                                     CommitOutcome* outcome) const {
  CommitOutcome unused;
  if (outcome == nullptr) outcome = &unused;
  *outcome = CommitOutcome::kNotCommitted;
  GLAIVE_RETURN_NOT_OK(CheckNoView(*impl_->snapshot, *impl_->env.store));
  if (transaction.read_version() == 0)
    transaction.set_read_version(impl_->snapshot->version());
  if (transaction.read_version() != impl_->snapshot->version()) {
    return InvalidInput("the transaction was made on version ",
                        transaction.read_version(), ", not on version ", version(),
                        " of table ", impl_->env.store->root());
  }
  CommitOptions options;
  options.max_retries = max_retries;
  GLAIVE_ASSIGN_OR_RETURN(SnapshotPtr committed,
                          CommitTransaction(impl_->env, impl_->snapshot,
                                            std::move(transaction), options, outcome));
  return DatasetBuilder::Make(impl_->env, std::move(committed));
}

}  // namespace glaive::table
