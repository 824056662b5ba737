// One version of a Lance table: an immutable snapshot, and the commits that lead to the
// next.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <arrow/type_fwd.h>

#include "base/status.h"
#include "file/schema.h"
#include "file/version.h"

namespace lance::table {
class DataFragment;
class Manifest;
class Transaction;
}  // namespace lance::table

namespace glaive {
class Runtime;
class CancelToken;
namespace io {
class ObjectStore;
}
}  // namespace glaive

namespace glaive::table {

class Bases;           // table/bases.h
class DeletionVector;  // table/deletion_vector.h
class FragmentReader;  // table/fragment_reader.h
class RowIdIndex;      // table/row_id_index.h
class WriterTurn;      // table/writer_turn.h
enum class TurnKind : uint8_t;

// Everything a table needs from outside. Copied freely.
struct TableEnv {
  std::shared_ptr<Runtime> runtime;
  std::shared_ptr<io::ObjectStore> store;  // rooted at the table's directory
  // Of a branch: rooted at the table that it belongs to, where tags and branches are
  // listed. Null elsewhere, or when not known.
  std::shared_ptr<io::ObjectStore> main_store = nullptr;
  // Where files that lie under other roots are; snapshots set it. Null: nowhere.
  std::shared_ptr<const Bases> bases = nullptr;
};

// What a failed commit leaves behind decides whether its files may be deleted.
enum class CommitOutcome : uint8_t {
  kCommitted,
  kNotCommitted,  // no manifest of ours exists
  kUnknown,       // the store failed in a way that does not tell
};

enum class WriteMode : uint8_t { kCreate, kAppend, kOverwrite };

struct WriteOptions {
  WriteMode mode = WriteMode::kCreate;
  int64_t max_rows_per_file = 1048576;
  int64_t max_bytes_per_file = int64_t{90} << 30;
  std::optional<file::FileVersion>
      file_version;               // unset: the table's, or 2.2 for a new one
  bool stable_row_ids = false;    // new tables only
  bool v2_manifest_paths = true;  // new tables only
  std::map<std::string, std::string> transaction_properties;
  int max_retries = 20;  // 0: fail at the first conflict
  // Rows written so far; called on the writing thread after each batch.
  std::function<void(int64_t rows)> progress;
  CancelToken* cancel = nullptr;
};

struct VersionInfo {
  int64_t version = 0;
  int64_t timestamp_us = 0;
  std::map<std::string, std::string> metadata;
};

struct TagInfo {
  int64_t version = 0;
  int64_t manifest_size = 0;
  std::optional<std::string> branch;
  // Microseconds since 1970, where the tag says so.
  std::optional<int64_t> created_us;
  std::optional<int64_t> updated_us;
  std::map<std::string, std::string> metadata;
};

// Rows to delete: per fragment, physical offsets in ascending order.
using DeletedRows = std::map<int64_t, std::vector<uint32_t>>;

// All generations of a shard (16 bytes of a UUID) up to this one are in the table.
struct CompactedGeneration {
  std::string shard;
  uint64_t generation = 0;
};

// Rows that an update or upsert takes away and brings, chosen by looking at a snapshot.
struct RowUpdate {
  RowUpdate();
  ~RowUpdate();
  RowUpdate(RowUpdate&&) noexcept;
  RowUpdate& operator=(RowUpdate&&) noexcept;

  // Old places of rows that are replaced, and rows that are removed for good.
  DeletedRows deleted;
  // Written, without ids (see FragmentWriter). On tables with stable row ids a fragment
  // of replaced rows brings the ids that they had (inline_row_ids, and
  // inline_created_at_versions); a fragment of new rows brings none, so keep the two
  // apart. The commit fills in the rest of the lineage.
  std::vector<lance::table::DataFragment> new_fragments;
  // Top-level or nested field ids whose values differ; empty: all may.
  std::vector<uint32_t> fields_modified;
  // Generations of an LSM write path that these rows are, or include: recorded in the
  // same version. The commit fails when one is not newer than what is recorded, and is a
  // RetryableConflict when older ones of the same shard were merged meanwhile.
  std::vector<CompactedGeneration> compacted;
  // Serialized KeyExistenceFilter of the inserted keys, so that two upserts that insert
  // the same key conflict; empty: none.
  std::string inserted_keys;
};

// Immutable; all const methods are thread-safe. Operations that change the table return
// the snapshot of the version they committed.
class Dataset : public std::enable_shared_from_this<Dataset> {
 public:
  using Ptr = std::shared_ptr<Dataset>;

  // The newest version by default; manifests that a power cut tore are passed over then,
  // see warnings(). NotFound when there is no table, NotSupported on unknown feature
  // flags (by number and name).
  static Result<Ptr> Open(TableEnv env, std::optional<int64_t> version = std::nullopt);
  static Result<bool> Exists(const TableEnv& env);
  // Creates, appends or overwrites, streaming. The reader is consumed batch by batch.
  static Result<Ptr> Write(TableEnv env, arrow::RecordBatchReader& data,
                           const WriteOptions& options);
  // A new table (or, with kOverwrite, version) without rows.
  static Result<Ptr> WriteEmpty(TableEnv env, const arrow::Schema& schema,
                                const WriteOptions& options);

  const TableEnv& env() const;
  int64_t version() const;
  // Without its fragments, which stay serialized until asked for: see fragment().
  const lance::table::Manifest& manifest() const;
  // Size of the manifest file.
  int64_t manifest_size_bytes() const;
  const file::Schema& schema() const;
  std::shared_ptr<arrow::Schema> arrow_schema() const;
  // Indices by name; those that only serve the table itself are not counted.
  Result<int64_t> CountIndices() const;
  // What a user should hear about how this version was found: newer manifests that are
  // empty or torn, as a power cut leaves them, and were passed over. Each names its file.
  std::vector<std::string> warnings() const;
  bool has_stable_row_ids() const;
  // Serialized IndexSection; null when the version has no indices.
  std::shared_ptr<const std::string> index_section() const;
  file::FileVersion file_version() const;

  // The highest field id that the table ever gave, as far as it knows (dropped columns
  // included); new columns get higher ones, or the commit is refused.
  Result<int32_t> max_field_id() const;

  // Fragments in id order.
  int num_fragments() const;
  // An empty message when its bytes are corrupt; OpenFragment then says so.
  const lance::table::DataFragment& fragment(int index) const;
  int64_t fragment_id(int index) const;
  // Index of a fragment id, or -1.
  int FindFragment(int64_t fragment_id) const;
  int64_t physical_rows(int index) const;
  int64_t live_rows(int index) const;
  int64_t count_rows() const;  // physical minus deleted, from metadata only
  // Null when nothing is deleted in the fragment. Cached.
  Result<std::shared_ptr<const DeletionVector>> deletions(int index) const;
  // Cached per snapshot; files and their decoded metadata are shared through the
  // runtime's cache.
  Result<std::shared_ptr<const FragmentReader>> OpenFragment(int index) const;
  // Stable row id -> row address, built on first use. Only with stable row ids.
  Result<std::shared_ptr<const RowIdIndex>> row_id_index() const;

  // The newest version; *this when nothing is newer. Costs two look-ups then: that the
  // manifest still is the same, and that the next version's name is free.
  Result<Ptr> Latest() const;
  Result<bool> IsLatest() const;
  Result<Ptr> Checkout(int64_t version) const;
  Result<Ptr> CheckoutTag(std::string_view tag) const;
  // The newest version whose timestamp is <= `timestamp_us`.
  Result<Ptr> CheckoutAsOf(int64_t timestamp_us) const;
  Result<std::vector<VersionInfo>> ListVersions() const;
  // A new version with the content of this one.
  Result<Ptr> Restore() const;

  Result<std::map<std::string, TagInfo>> ListTags() const;
  // Of versions of the branch that this is a version of. Tags of all branches share one
  // name space.
  Status CreateTag(std::string_view name, int64_t version) const;
  Status UpdateTag(std::string_view name, int64_t version) const;
  Status DeleteTag(std::string_view name) const;

  // Deletes the given rows, which were chosen by looking at this snapshot. Rebases over
  // appends and over deletes of other rows; RetryableConflict when a row is gone or
  // rewritten: choose again on Latest(). With no rows a version is committed all the
  // same, as upstream does.
  Result<Ptr> CommitDelete(const DeletedRows& rows, std::string_view predicate) const;

  // The same for a RowUpdate, committed as one Update (mode REWRITE_ROWS). Whoever wrote
  // the new fragments deletes them when `outcome` says kNotCommitted.
  Result<Ptr> CommitUpdate(const RowUpdate& update, CommitOutcome* outcome,
                           int max_retries = 20) const;

  // Writers of this process that choose rows and then commit take turns: kAmongOthers
  // around a first attempt, kAlone around the attempts after a lost race (give the first
  // turn back before). Then N threads that write all succeed, one after the other.
  Result<WriterTurn> TakeTurn(TurnKind kind, CancelToken* cancel = nullptr) const;

  // Commits a ready transaction on top of the newest version, with rebase and retries.
  // `outcome` may be null.
  Result<Ptr> Commit(lance::table::Transaction transaction, int max_retries = 20,
                     CommitOutcome* outcome = nullptr) const;

  ~Dataset();

 private:
  friend class DatasetBuilder;
  Dataset();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace glaive::table
