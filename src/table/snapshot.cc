#include "table/snapshot.h"

#include <limits>
#include <map>
#include <vector>

#include <arrow/buffer.h>
#include <arrow/type.h>

#include "file/json_columns.h"
#include "format/table.pb.h"
#include "format/transaction.pb.h"
#include "io/object_store.h"
#include "runtime/runtime.h"
#include "table/bases.h"
#include "table/data_file.h"
#include "table/deletion_file.h"
#include "table/deletion_vector.h"
#include "table/feature_flags.h"
#include "table/manifest.h"

namespace glaive::table {
namespace {

constexpr size_t kRecentTransactions = 64;

std::string StateKey(const TableEnv& env) { return "table-state:" + env.store->root(); }

Status ParseFragment(const ManifestFile& manifest, const FragmentSummary& summary,
                     lance::table::DataFragment* fragment) {
  if (fragment->ParseFromArray(manifest.bytes.view.data() + summary.offset,
                               static_cast<int>(summary.length))) {
    return Status::OK();
  }
  return Corruption("fragment ", summary.id, " of the manifest does not decode");
}

Result<file::FileVersion> FileVersionOf(const ManifestFile& manifest) {
  const lance::table::Manifest& header = *manifest.header;
  if (header.has_data_format() && !header.data_format().version().empty()) {
    const std::string& format = header.data_format().file_format();
    if (!format.empty() && format != "lance") {
      return NotSupported("tables of data format '", format, "'");
    }
    return file::ParseFileVersion(header.data_format().version());
  }
  // Old writers: the files know.
  for (const FragmentSummary& summary : manifest.fragments) {
    lance::table::DataFragment fragment;
    GLAIVE_RETURN_NOT_OK(ParseFragment(manifest, summary, &fragment));
    for (const auto& file : fragment.files()) return DataFileVersionOf(file);
  }
  if (header.reader_feature_flags() & kFlagV2Format) return file::kDefaultFileVersion;
  return NotSupported("tables of the legacy data storage version 0.1");
}

// Manifests of old writers do not say how many rows a fragment has or lost: ask its
// files, and complete the serialized message, so that the next commit keeps the answer.
Status FillRowCounts(const TableEnv& env, ManifestFile* manifest) {
  std::string added;
  for (FragmentSummary& summary : manifest->fragments) {
    const bool no_rows = summary.physical_rows == 0 && summary.has_files;
    const bool no_deleted = summary.has_deletion_file && summary.deleted_rows == 0;
    if (!no_rows && !no_deleted) continue;
    lance::table::DataFragment fragment;
    GLAIVE_RETURN_NOT_OK(ParseFragment(*manifest, summary, &fragment));
    if (no_rows) {
      GLAIVE_ASSIGN_OR_RETURN(auto reader, OpenDataFile(env, fragment.files(0)));
      fragment.set_physical_rows(static_cast<uint64_t>(reader->num_rows()));
    }
    if (no_deleted) {
      GLAIVE_ASSIGN_OR_RETURN(
          auto deletions,
          ReadDeletionFile(env, fragment,
                           static_cast<int64_t>(fragment.physical_rows())));
      fragment.mutable_deletion_file()->set_num_deleted_rows(
          static_cast<uint64_t>(deletions->size()));
    }
    const std::string serialized = fragment.SerializeAsString();
    GLAIVE_ASSIGN_OR_RETURN(FragmentSummary filled, SummarizeFragment(serialized));
    const size_t offset = manifest->bytes.view.size() + added.size();
    if (offset + serialized.size() > std::numeric_limits<uint32_t>::max()) {
      return Corruption("the manifest is too large");
    }
    filled.offset = static_cast<uint32_t>(offset);
    added += serialized;
    summary = filled;
  }
  if (added.empty()) return Status::OK();
  // The sections are views of the old bytes: point them to the same place of the new
  // ones.
  const char* old_begin = manifest->bytes.view.data();
  SharedBytes bytes = SharedBytes::FromString(std::string(manifest->bytes.view) + added);
  for (auto* view : {&manifest->index_section, &manifest->transaction_section}) {
    if (*view) {
      *view = bytes.view.substr(static_cast<size_t>((*view)->data() - old_begin),
                                (*view)->size());
    }
  }
  manifest->bytes = std::move(bytes);
  return Status::OK();
}

}  // namespace

Snapshot::Snapshot() = default;
Snapshot::~Snapshot() = default;

bool Snapshot::stable_row_ids() const {
  return (header->reader_feature_flags() & kFlagStableRowIds) != 0;
}

int64_t Snapshot::memory_bytes() const {
  return static_cast<int64_t>(fragments->memory_bytes() + 4 * header->ByteSizeLong() +
                              (index_section ? index_section->size() : 0) + 1024);
}

std::shared_ptr<TableState> StateOf(const TableEnv& env) {
  const std::string key = StateKey(env);
  auto found = env.runtime->cache().Get<TableState>(key);
  if (found) return std::const_pointer_cast<TableState>(found);
  // Two threads may both come here. The loser's state works as well: it only misses out
  // on queueing with the other's writers.
  auto state = std::make_shared<TableState>();
  env.runtime->cache().Put(key, state, sizeof(TableState));
  return state;
}

void Publish(const TableEnv& env, TableState& state, SnapshotPtr snapshot,
             std::shared_ptr<const lance::table::Transaction> transaction) {
  const int64_t bytes =
      snapshot->memory_bytes() + static_cast<int64_t>(sizeof(TableState));
  {
    std::lock_guard lock(state.mutex);
    if (transaction) {
      state.recent.emplace_back(snapshot->version(), std::move(transaction));
      if (state.recent.size() > kRecentTransactions) state.recent.pop_front();
    }
    state.newest = std::move(snapshot);
  }
  const std::string key = StateKey(env);
  auto found = env.runtime->cache().Get<TableState>(key);
  if (found.get() == &state) env.runtime->cache().Put(key, found, bytes);
}

Result<ManifestFile> LoadManifest(io::ObjectStore& store, VersionRef ref) {
  const std::string path = ManifestPath(ref.version, ref.scheme);
  GLAIVE_ASSIGN_OR_RETURN(auto buffer, store.Get(path));
  const std::string_view view(reinterpret_cast<const char*>(buffer->data()),
                              static_cast<size_t>(buffer->size()));
  auto manifest = ParseManifest({std::move(buffer), view});
  if (!manifest.ok()) {
    return WithContext(manifest.status(),
                       "manifest " + path + " of table " + store.root());
  }
  if (manifest->header->version() != ref.version) {
    return Corruption("manifest ", path, " of table ", store.root(),
                      " says it is version ", manifest->header->version(),
                      ", its name says ", ref.version);
  }
  return manifest;
}

Result<bool> ManifestIsTorn(io::ObjectStore& store, VersionRef ref) {
  auto buffer = store.Get(ManifestPath(ref.version, ref.scheme));
  if (KindOf(buffer.status()) == ErrorKind::kNotFound) return false;
  GLAIVE_RETURN_NOT_OK(buffer.status());
  const std::string_view view(reinterpret_cast<const char*>((*buffer)->data()),
                              static_cast<size_t>((*buffer)->size()));
  return !ParseManifest({*buffer, view}).ok() && LooksTorn(view);
}

Result<std::shared_ptr<const TableSchema>> MakeTableSchema(
    const lance::table::Manifest& header) {
  std::map<std::string, std::string> metadata(header.schema_metadata().begin(),
                                              header.schema_metadata().end());
  auto result = std::make_shared<TableSchema>();
  GLAIVE_ASSIGN_OR_RETURN(result->schema,
                          file::Schema::FromProto(header.fields(), std::move(metadata)));
  result->arrow = file::JsonToUser(result->schema.ToArrow());
  return result;
}

Result<ManifestIdentity> IdentifyManifest(io::ObjectStore& store,
                                          const std::string& path) {
  GLAIVE_ASSIGN_OR_RETURN(auto info, store.Head(path));
  return ManifestIdentity{info.size_bytes, info.modified_us};
}

Result<SnapshotPtr> LoadSnapshot(const TableEnv& env, VersionRef ref,
                                 const Snapshot* previous,
                                 std::vector<TornManifest> torn) {
  auto snapshot = std::make_shared<Snapshot>();
  snapshot->torn = std::move(torn);
  snapshot->ref = ref;
  snapshot->path = ManifestPath(ref.version, ref.scheme);
  GLAIVE_ASSIGN_OR_RETURN(ManifestFile manifest, LoadManifest(*env.store, ref));
  GLAIVE_ASSIGN_OR_RETURN(snapshot->identity,
                          IdentifyManifest(*env.store, snapshot->path));

  const std::string where =
      "table " + env.store->root() + ", version " + std::to_string(ref.version);
  auto check = [&]() -> Status {
    GLAIVE_RETURN_NOT_OK(CheckReaderFlags(*manifest.header));
    GLAIVE_ASSIGN_OR_RETURN(snapshot->bases, Bases::Make(env, *manifest.header));
    TableEnv with_bases = env;
    with_bases.bases = snapshot->bases;
    GLAIVE_ASSIGN_OR_RETURN(snapshot->file_version, FileVersionOf(manifest));
    GLAIVE_RETURN_NOT_OK(FillRowCounts(with_bases, &manifest));
    GLAIVE_ASSIGN_OR_RETURN(snapshot->schema, MakeTableSchema(*manifest.header));
    GLAIVE_ASSIGN_OR_RETURN(
        snapshot->fragments,
        FragmentList::Make(manifest.bytes, std::move(manifest.fragments),
                           previous == nullptr ? nullptr : previous->fragments.get()));
    const FragmentTraits& traits = snapshot->fragments->traits();
    const bool stable =
        (manifest.header->reader_feature_flags() & kFlagStableRowIds) != 0;
    if (stable && !traits.all_have_row_ids) {
      return Corruption("All fragments must have row ids");
    }
    return Status::OK();
  };
  if (Status status = check(); !status.ok()) return WithContext(status, where);
  if (manifest.index_section) {
    snapshot->index_section =
        std::make_shared<const std::string>(*manifest.index_section);
  }
  snapshot->header = std::move(manifest.header);
  return snapshot;
}

namespace {

// Whether the files that `known` was made of are still the same.
Result<bool> StillThere(io::ObjectStore& store, const Snapshot& known) {
  auto same = [&store](const std::string& path,
                       const ManifestIdentity& expected) -> Result<bool> {
    auto identity = IdentifyManifest(store, path);
    if (KindOf(identity.status()) == ErrorKind::kNotFound) return false;
    GLAIVE_RETURN_NOT_OK(identity.status());
    return *identity == expected;
  };
  GLAIVE_ASSIGN_OR_RETURN(bool there, same(known.path, known.identity));
  for (size_t i = 0; there && i < known.torn.size(); ++i) {
    GLAIVE_ASSIGN_OR_RETURN(there, same(known.torn[i].path, known.torn[i].identity));
  }
  return there;
}

// LoadSnapshot of the newest version, or, when its manifest is torn, of the newest that
// is whole.
Result<SnapshotPtr> LoadNewestWhole(const TableEnv& env, VersionRef newest,
                                    const Snapshot* known) {
  io::ObjectStore& store = *env.store;
  auto loaded = LoadSnapshot(env, newest, known);
  if (KindOf(loaded.status()) != ErrorKind::kCorruption) return loaded;
  const Status first_error = loaded.status();
  GLAIVE_ASSIGN_OR_RETURN(auto refs, ListVersionRefs(store));
  std::vector<TornManifest> torn;
  for (auto ref = refs.rbegin(); ref != refs.rend(); ++ref) {
    loaded = LoadSnapshot(env, *ref, known, {torn.rbegin(), torn.rend()});
    if (KindOf(loaded.status()) == ErrorKind::kNotFound) continue;  // cleaned up
    if (KindOf(loaded.status()) != ErrorKind::kCorruption) return loaded;
    GLAIVE_ASSIGN_OR_RETURN(const bool is_torn, ManifestIsTorn(store, *ref));
    if (!is_torn) return loaded.status();
    TornManifest& entry = torn.emplace_back();
    entry.version = ref->version;
    entry.path = ManifestPath(ref->version, ref->scheme);
    GLAIVE_ASSIGN_OR_RETURN(entry.identity, IdentifyManifest(store, entry.path));
  }
  return first_error;
}

}  // namespace

Result<SnapshotPtr> NewestSnapshot(const TableEnv& env, TableState& state) {
  SnapshotPtr known;
  {
    std::lock_guard lock(state.mutex);
    known = state.newest;
  }
  std::optional<VersionRef> newest;
  if (known) {
    GLAIVE_ASSIGN_OR_RETURN(const bool unchanged, StillThere(*env.store, *known));
    if (unchanged) {
      const uint64_t taken = known->last_taken_version();
      GLAIVE_ASSIGN_OR_RETURN(newest,
                              ProbeUpward(*env.store, {taken, known->ref.scheme}));
      if (newest->version == taken) return known;
    } else {
      // Cleaned up, or another table took its place: nothing remembered can be trusted.
      std::lock_guard lock(state.mutex);
      state.recent.clear();
      if (state.newest == known) state.newest.reset();
      known.reset();
    }
  }
  if (!newest) {
    GLAIVE_ASSIGN_OR_RETURN(newest, FindNewest(*env.store));
    if (!newest) return SnapshotPtr();
  }
  auto loaded = LoadNewestWhole(env, *newest, known.get());
  if (!loaded.ok() && KindOf(loaded.status()) == ErrorKind::kNotFound) {
    // It vanished between look-up and read: a clean-up, so look at what is there now.
    GLAIVE_ASSIGN_OR_RETURN(newest, FindNewestByListing(*env.store));
    if (!newest) return SnapshotPtr();
    loaded = LoadNewestWhole(env, *newest, known.get());
  }
  GLAIVE_RETURN_NOT_OK(loaded.status());
  Publish(env, state, *loaded);
  return *loaded;
}

Status TableNotFound(const io::ObjectStore& store) {
  return NotFound("Dataset at path ", store.root(), " was not found");
}

}  // namespace glaive::table
