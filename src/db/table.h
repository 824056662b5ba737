// A table handle: follows the versions of a table, or is pinned to one.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <arrow/type_fwd.h>

#include "base/status.h"
#include "runtime/fork.h"
#include "table/dataset.h"

namespace glaive::table {
struct BranchEntry;       // table/branches.h
struct ColumnAlteration;  // table/schema_change.h
struct FieldMapUpdate;    // table/metadata_change.h
}  // namespace glaive::table
namespace glaive::exec {
struct MergeOptions;   // exec/merge.h
struct MergeResult;    // exec/merge.h
struct UpdateOptions;  // exec/update.h
}  // namespace glaive::exec
namespace glaive::memwal {
struct UpkeepSettings;     // memwal/upkeep.h
struct BucketStats;        // memwal/converge.h
struct CheckpointOptions;  // memwal/converge.h
struct CheckpointOutcome;  // memwal/converge.h
struct CompactOptions;     // memwal/converge.h
struct CompactOutcome;     // memwal/converge.h
}  // namespace glaive::memwal

namespace glaive::db {

struct MaintenanceSettings;  // db/maintenance.h
struct LsmWriteOptions;      // db/lsm.h
struct LsmWriteSpec;         // db/lsm.h
struct ReadSource;           // db/read_source.h

// A version number or the name of a tag.
using VersionRef = std::variant<int64_t, std::string>;

// The snapshot of `ref`; NotFound when there is no such version or tag.
Result<table::Dataset::Ptr> CheckoutRef(const table::Dataset& dataset,
                                        const VersionRef& ref);

// How old a snapshot may be before a read looks for a newer version. Unset: reads never
// look; zero: each read does.
using ReadConsistency = std::optional<std::chrono::nanoseconds>;

struct AddOptions {
  bool overwrite = false;  // replace data and schema
  // For overwrites; see ApplyNewTableOptions.
  std::map<std::string, std::string> storage_options;
  std::function<void(int64_t rows)> progress;
  CancelToken* cancel = nullptr;
};

struct DeleteOutcome {
  int64_t num_deleted_rows = 0;
  int64_t version = 0;
};

struct UpdateOutcome {
  int64_t num_updated_rows = 0;
  int64_t version = 0;
};

// Which way a merge goes on a table with an LSM write path.
struct MergeRouting {
  // Unset: through the LSM path exactly when the table has one. True: InvalidInput when
  // it has none. False: on the base table.
  std::optional<bool> use_lsm;
  // LSM path: rows of more than one shard in one call are InvalidInput.
  bool single_shard = false;
};

// Thread-safe. Reads take a snapshot and run on it; writes build on the latest version
// and move the handle to their result. A pinned handle shows one version and refuses
// writes (InvalidInput).
class Table {
 public:
  Table(std::string name, std::string uri, table::Dataset::Ptr dataset,
        ReadConsistency consistency, bool pinned);

  const std::string& name() const { return name_; }
  const std::string& uri() const { return uri_; }

  // The snapshot to read from now. Closed after Close.
  Result<table::Dataset::Ptr> Snapshot();
  // The same with the fresh rows of the table's LSM write path, where it has one; see
  // OpenReadSource.
  Result<ReadSource> Source(std::optional<bool> use_lsm);
  // The newest version, which the handle then shows; for writers. InvalidInput when
  // pinned.
  Result<table::Dataset::Ptr> LatestForWrite();

  // What happened since the last call that the user should hear of: see
  // table::Dataset::warnings(). Each is told once.
  std::vector<std::string> TakeWarnings();

  bool is_open() const;
  bool is_pinned() const;
  void Close();

  // On a table with an LSM write path Add, Delete, Update and MergeInsert go through it:
  // they are durable and visible on return, commit no version, and rows are replaced by
  // key. See db/lsm.h.

  // Streams `data` in (see CoerceToSchema for what is accepted); returns the new version.
  Result<int64_t> Add(std::shared_ptr<arrow::RecordBatchReader> data,
                      const AddOptions& options);
  Result<DeleteOutcome> Delete(const std::string& predicate,
                               CancelToken* cancel = nullptr);
  Result<UpdateOutcome> Update(const exec::UpdateOptions& options);
  // See MergeInto; the handle then shows the new version. Through the LSM path only
  // upserts by the primary key go: others are InvalidInput.
  // `num_rows` (may be null): rows written; through the LSM path rows that a later one of
  // the same key replaces are counted as well.
  Result<exec::MergeResult> MergeInsert(std::shared_ptr<arrow::RecordBatchReader> source,
                                        const exec::MergeOptions& options,
                                        const MergeRouting& routing = {},
                                        int64_t* num_rows = nullptr);

  // The LSM write path; see db/lsm.h and memwal/converge.h. InvalidInput without one,
  // but for GetLsmStats (nullopt) and CloseLsmWriters (nothing to do).
  Result<int64_t> SetLsmWriteSpec(const LsmWriteSpec& spec);
  Result<int64_t> UnsetLsmWriteSpec();
  Result<std::optional<LsmWriteSpec>> GetLsmWriteSpec();
  // Flushes and closes the writers that this process has for the table.
  Status CloseLsmWriters();
  // The number of generations made.
  Result<int64_t> FlushLsm();
  Result<memwal::CompactOutcome> CompactLsm(const memwal::CompactOptions& options);
  Result<memwal::CheckpointOutcome> CheckpointLsm(
      const memwal::CheckpointOptions& options);
  Result<std::optional<std::vector<memwal::BucketStats>>> GetLsmStats(
      bool include_generation_rows);

  // Columns and metadata; each returns the new version. See exec/add_columns.h,
  // exec/alter_columns.h and table/metadata_change.h.
  Result<int64_t> AddColumns(
      const std::vector<std::pair<std::string, std::string>>& expressions,
      CancelToken* cancel = nullptr);
  Result<int64_t> AddNullColumns(const arrow::Schema& columns);
  Result<int64_t> MergeColumns(arrow::RecordBatchReader& data, const std::string& left_on,
                               const std::string& right_on,
                               CancelToken* cancel = nullptr);
  Result<int64_t> AlterColumns(std::span<const table::ColumnAlteration> alterations,
                               CancelToken* cancel = nullptr);
  Result<int64_t> DropColumns(std::span<const std::string> paths);
  Result<int64_t> UpdateFieldMetadata(std::span<const table::FieldMapUpdate> updates);
  Result<int64_t> SetUnenforcedPrimaryKey(std::span<const std::string> columns);

  // Branches; see table/branches.h. Writes through the handle of one do not touch others.
  // `from` unset: the main one, whatever branch this handle is on.
  Result<std::optional<std::string>> CurrentBranch();
  Result<std::shared_ptr<Table>> CreateBranch(const std::string& name,
                                              const std::optional<std::string>& from,
                                              std::optional<int64_t> from_version);
  // A handle that follows the branch, or is pinned to `version`.
  Result<std::shared_ptr<Table>> CheckoutBranch(const std::string& name,
                                                std::optional<int64_t> version);
  Result<std::map<std::string, table::BranchEntry>> ListBranches();
  Status DeleteBranch(const std::string& name);

  Status Checkout(const VersionRef& ref);
  Status CheckoutLatest();
  // Commits the content of `ref`, or of the pinned version, as a new version, and follows
  // the latest again. InvalidInput without `ref` on a handle that is not pinned.
  Result<int64_t> Restore(const std::optional<VersionRef>& ref);

  // How upkeep by itself treats the table from the next write on; see db/maintenance.h.
  // Null: not at all. To be set before the handle is shared.
  void set_maintenance(std::shared_ptr<const MaintenanceSettings> settings) {
    maintenance_ = std::move(settings);
  }

  // The same for the generations of an LSM write path; see memwal/upkeep.h.
  void set_lsm_upkeep(std::shared_ptr<const memwal::UpkeepSettings> settings) {
    lsm_upkeep_ = std::move(settings);
  }

  // Moves the handle to `dataset`, a version of this table, unless it shows something
  // newer or was pinned meanwhile.
  void Advance(const table::Dataset::Ptr& dataset);

 private:
  using DatasetChange =
      std::function<Result<table::Dataset::Ptr>(table::Dataset::Ptr latest)>;
  std::shared_ptr<Table> HandleFor(table::Dataset::Ptr dataset, bool pinned) const;
  // Runs `change` on the latest version and shows its result.
  Result<int64_t> Change(const DatasetChange& change);

  LsmWriteOptions LsmOptions(CancelToken* cancel) const;
  // Advance to what a write made, of which upkeep is told.
  void Wrote(const table::Dataset::Ptr& dataset);
  // The same for a compaction of the LSM path.
  Status WroteMerged(const table::Dataset::Ptr& base, int64_t generations);
  void NoteWarnings(const table::Dataset& dataset);

  const std::string name_;
  const std::string uri_;
  const ReadConsistency consistency_;
  std::shared_ptr<const MaintenanceSettings> maintenance_;
  std::shared_ptr<const memwal::UpkeepSettings> lsm_upkeep_;

  mutable ForkSafeMutex mutex_;  // guards what follows; never held during I/O
  table::Dataset::Ptr dataset_;  // null when closed
  bool pinned_;
  std::chrono::steady_clock::time_point last_check_;
  std::vector<std::string> warnings_;  // noted so far; those from told_ on are news
  size_t told_ = 0;
};

// Sizes of a snapshot's fragments, rows.
struct FragmentStats {
  int64_t num_fragments = 0;
  int64_t num_small_fragments = 0;  // fewer than 100,000 rows
  int64_t min = 0, max = 0, mean = 0, p25 = 0, p50 = 0, p75 = 0, p99 = 0;
};

struct TableStats {
  int64_t total_bytes = 0;  // of data and deletion files, as the manifest knows them
  int64_t num_rows = 0;
  int64_t num_indices = 0;
  FragmentStats fragments;
};

// True when the manifests of this table carry 20-digit names that count down.
Result<bool> UsesV2ManifestPaths(const table::Dataset& dataset);

Result<TableStats> ComputeStats(const table::Dataset& dataset);

}  // namespace glaive::db
