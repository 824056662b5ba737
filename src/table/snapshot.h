// One version of a table in memory, and the process-wide state of the table it belongs
// to.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <arrow/type_fwd.h>

#include "base/status.h"
#include "file/schema.h"
#include "file/version.h"
#include "table/dataset.h"
#include "table/fragment_list.h"
#include "table/version_directory.h"
#include "table/writer_turn.h"

namespace glaive::table {

struct ManifestFile;

struct TableSchema {
  file::Schema schema;
  std::shared_ptr<arrow::Schema> arrow;
};

// Tells a manifest from another one that later took its name (a table dropped and made
// anew).
struct ManifestIdentity {
  int64_t size_bytes = 0;
  int64_t modified_us = 0;
  friend bool operator==(const ManifestIdentity&, const ManifestIdentity&) = default;
};

// A newer manifest that a power cut left in parts, so that the snapshot shown is older.
struct TornManifest {
  uint64_t version = 0;
  std::string path;
  ManifestIdentity identity;
};

// Immutable; thread-safe.
struct Snapshot {
  Snapshot();
  ~Snapshot();

  VersionRef ref;
  std::string path;  // of the manifest
  ManifestIdentity identity;
  std::shared_ptr<lance::table::Manifest> header;  // without fragments
  std::shared_ptr<const FragmentList> fragments;
  std::shared_ptr<const TableSchema> schema;
  std::shared_ptr<const std::string> index_section;  // serialized; null: none
  file::FileVersion file_version = file::kDefaultFileVersion;
  std::shared_ptr<const Bases> bases;  // null: all files are the table's own

  // Only where the newest version was asked for; ascending.
  std::vector<TornManifest> torn;

  // See table/view.h. A view never becomes the newest snapshot of a table.
  bool is_view = false;
  bool anonymous_rows = false;

  uint64_t version() const { return ref.version; }
  // The newest version whose name is taken; the next commit goes above it.
  uint64_t last_taken_version() const {
    return torn.empty() ? ref.version : torn.back().version;
  }
  bool stable_row_ids() const;
  int64_t memory_bytes() const;
};
using SnapshotPtr = std::shared_ptr<const Snapshot>;

// What this process knows of one table; held by the runtime's cache under the store's
// root.
struct TableState {
  // In-process writers queue here, so that they do not collide with each other.
  std::mutex commit_mutex;
  // The same for operations that choose rows before they commit.
  std::shared_ptr<WriterQueue> writers = std::make_shared<WriterQueue>();

  std::mutex mutex;    // guards the members below
  SnapshotPtr newest;  // the newest version seen; to be checked before use
  // Transactions of the newest versions, so that rebasing need not read them back.
  std::deque<std::pair<uint64_t, std::shared_ptr<const lance::table::Transaction>>>
      recent;
};
std::shared_ptr<TableState> StateOf(const TableEnv& env);
// Remembers `snapshot` (and the transaction that made it, if known).
void Publish(const TableEnv& env, TableState& state, SnapshotPtr snapshot,
             std::shared_ptr<const lance::table::Transaction> transaction = nullptr);

Result<ManifestFile> LoadManifest(io::ObjectStore& store, VersionRef ref);
// Whether the version's manifest does not parse and LooksTorn. False when it is gone.
Result<bool> ManifestIsTorn(io::ObjectStore& store, VersionRef ref);
// The schema of a header's fields.
Result<std::shared_ptr<const TableSchema>> MakeTableSchema(
    const lance::table::Manifest& header);
// Loads one version. `previous`: a snapshot whose fragments may be shared; may be null.
// NotFound when the manifest does not exist.
Result<SnapshotPtr> LoadSnapshot(const TableEnv& env, VersionRef ref,
                                 const Snapshot* previous = nullptr,
                                 std::vector<TornManifest> torn = {});
Result<ManifestIdentity> IdentifyManifest(io::ObjectStore& store,
                                          const std::string& path);

// The newest version, torn manifests passed over (the error of the newest of them when no
// whole one is left). Costs two look-ups when this process has seen it before. Nullptr
// when there is no table.
Result<SnapshotPtr> NewestSnapshot(const TableEnv& env, TableState& state);

Status TableNotFound(const io::ObjectStore& store);

}  // namespace glaive::table
