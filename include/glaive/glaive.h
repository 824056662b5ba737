// Glaive: tables of vectors, text and structured data in the Lance format.
//
//   auto db = glaive::Connect("/data/library").ValueOrDie();
//   auto books = db.OpenTable("books").ValueOrDie();
//   auto hits = books.Search(vector).Where("year > 1990").Limit(5).ToTable();
//
// Data comes and goes as Arrow tables and streams. Failures are Arrow Status values with
// a kind (KindOf). The handles below are small: copy them freely. All methods are
// thread-safe unless said otherwise.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <arrow/type_fwd.h>

#include "glaive/evaluation_error.h"
#include "glaive/status.h"

namespace glaive {

namespace db {
class Connection;
class Table;
}  // namespace db

struct ConnectOptions {
  // How old a table's snapshot may be before a read looks for a newer version. Unset:
  // reads never look (Table::CheckoutLatest does); zero: each read does.
  std::optional<std::chrono::nanoseconds> read_consistency_interval;
  // "new_table_data_storage_version", "new_table_enable_v2_manifest_paths",
  // "new_table_enable_stable_row_ids": defaults of new tables.
  std::map<std::string, std::string> storage_options;
};

enum class CreateMode : uint8_t {
  kCreate,     // AlreadyExists when there is a table of this name
  kOverwrite,  // a new version with the new schema
  kExistOk,    // open what is there; the data is not looked at
};

// l2 is the squared Euclidean distance, cosine is 1 - cos, dot is 1 - dot product,
// hamming counts differing bits (uint8 columns).
enum class Distance : uint8_t { kL2, kCosine, kDot, kHamming };

struct Version {
  int64_t version = 0;
  int64_t timestamp_us = 0;  // since the Unix epoch
  std::map<std::string, std::string> metadata;
};

// What shall become of a column: "a.b" names a member of a struct.
struct ColumnChange {
  std::string path;
  std::optional<std::string> rename;
  std::optional<bool> nullable;
  std::shared_ptr<arrow::DataType> type;  // null: stays
};

struct DeleteResult {
  int64_t num_deleted_rows = 0;
  int64_t version = 0;
};

struct UpdateResult {
  int64_t num_updated_rows = 0;
  int64_t version = 0;
};

// What a merge does with a row whose key the source has.
enum class WhenMatched : uint8_t {
  kKeep,
  kUpdate,  // give it the source's values
  kDelete,
  kFail,  // an error, and nothing changes
};

// Rows match when all key columns are equal; a null key matches nothing.
struct MergeRequest {
  std::vector<std::string> on;  // key columns; empty: the unenforced primary key
  WhenMatched matched = WhenMatched::kKeep;
  // SQL over `target.x` and `source.x`: updates only where true. Empty: all matched rows.
  std::string update_condition;
  bool insert_not_matched = false;    // add source rows without a match
  bool delete_not_in_source = false;  // delete rows whose key the source lacks
  std::string delete_condition;       // only those for which it is true
  // Of several source rows with one key only the first counts. Otherwise they are an
  // error when they would change the same row.
  bool keep_first_duplicate = false;
};

struct MergeResult {
  int64_t num_inserted_rows = 0;
  int64_t num_updated_rows = 0;
  int64_t num_deleted_rows = 0;
  int num_attempts = 1;
  int64_t version = 0;
};

// How the rows of a table with an LSM write path spread over shards, each with a log and
// a writer of its own.
enum class Sharding : uint8_t {
  kUnsharded,
  kBucket,    // by the hash of a column
  kIdentity,  // by the values of a column
};

// An LSM write path: rows go to a write-ahead log, are durable and visible at once, and
// reach the base table later. Needs an unenforced primary key.
struct LsmWriteSpec {
  Sharding sharding = Sharding::kUnsharded;
  std::string column;       // kBucket, kIdentity
  int64_t num_buckets = 0;  // kBucket: 1 to 1024
  // Indices that the fresh rows are kept in as well. Unset: all that the table has when
  // the spec is set; an error when one of them cannot be.
  std::optional<std::vector<std::string>> maintained_indexes;
  // Configuration of the writers by name, e.g. {"max_memtable_rows", "50000"} or
  // {"durability", "os"} ("fsync": rows survive a power cut; "os": the death of the
  // process).
  std::map<std::string, std::string> writer_config_defaults;
};

// A flushed part of a shard that is not merged into the base table yet.
struct LsmGeneration {
  uint64_t generation = 0;
  int64_t bytes = 0;
  std::optional<int64_t> rows;  // when asked for
};

struct LsmMemtable {
  uint64_t generation = 0;
  int64_t rows = 0;
  int64_t bytes = 0;
  int64_t batches = 0;
};

struct LsmBucketStats {
  std::string shard_id;
  bool sealed = false;
  uint64_t writer_epoch = 0;
  uint64_t manifest_version = 0;
  uint64_t current_generation = 0;
  uint64_t replay_after_wal_entry_position = 0;
  uint64_t wal_entry_position_last_seen = 0;
  std::vector<LsmGeneration> generations;
  bool compacting = false;
  // Of the writer of this process; oldest first. Unset: it has none.
  std::optional<std::vector<LsmMemtable>> memtables;
  std::string durability;   // "fsync" or "os"; empty without a writer here
  int64_t log_entries = 0;  // behind the last generation
  int64_t log_bytes = 0;
};

struct LsmProgress {
  int64_t generations_consumed = 0;
  int64_t generations_remaining = 0;
  int64_t version = 0;  // of the base table
};

struct LsmCheckpoint {
  int64_t generations_consumed = 0;
  int64_t generations_remaining = 0;  // of those seen at the flush
  int64_t passes = 0;                 // of compaction
  bool converged = false;
  int64_t version = 0;  // of the base table
};

// A scan being put together. The snapshot is taken when it runs. Not thread-safe.
class Query {
 public:
  // Paths of columns ("a.b"; back-quotes protect odd characters) or meta columns (_rowid,
  // _rowaddr, _rowoffset). All columns when never called.
  Query& Select(std::vector<std::string> columns);
  // Output names and the SQL expressions that compute them.
  Query& SelectAs(std::vector<std::pair<std::string, std::string>> columns);
  Query& Where(std::string predicate);
  Query& Limit(int64_t rows);
  Query& Offset(int64_t rows);
  Query& WithRowId(bool on = true);
  Query& BatchRows(int64_t rows);
  Query& Timeout(std::chrono::nanoseconds timeout);
  // Whether fresh rows of an LSM write path are seen. They are, unless this says no.
  Query& UseLsm(bool on);

  Result<std::shared_ptr<arrow::Table>> ToTable() const;
  // Computes while it is read; keeps the snapshot alive.
  Result<std::shared_ptr<arrow::RecordBatchReader>> ToReader() const;
  // What will be done, for people to read.
  Result<std::string> Explain() const;

  struct State;  // of the library itself

 private:
  friend class Table;
  explicit Query(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

// A vector search being put together: exact, rows by ascending `_distance` (float32, last
// column), ties by row id; 10 rows unless Limit says otherwise. Not thread-safe.
class VectorQuery {
 public:
  VectorQuery& Select(std::vector<std::string> columns);
  VectorQuery& SelectAs(std::vector<std::pair<std::string, std::string>> columns);
  // Applied before the search; after it, on the rows found, when `prefilter` is false.
  VectorQuery& Where(std::string predicate, bool prefilter = true);
  VectorQuery& Limit(int64_t rows);
  VectorQuery& Offset(int64_t rows);
  VectorQuery& WithRowId(bool on = true);
  VectorQuery& Timeout(std::chrono::nanoseconds timeout);
  VectorQuery& UseLsm(bool on);
  // Needed when the table has several vector columns.
  VectorQuery& Column(std::string path);
  // Unset: that of the column's index where the table has one, kL2 otherwise.
  VectorQuery& DistanceType(Distance distance);
  // Keeps distances d with lower <= d < upper.
  VectorQuery& DistanceRange(std::optional<float> lower, std::optional<float> upper);

  Result<std::shared_ptr<arrow::Table>> ToTable() const;
  Result<std::string> Explain() const;

  struct State;  // of the library itself

 private:
  friend class Table;
  explicit VectorQuery(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

// A table handle. Reads take a snapshot; writes build on the latest version, and the
// handle then shows it. After Checkout it is pinned and refuses writes.
class Table {
 public:
  explicit Table(std::shared_ptr<db::Table> impl);  // for the library itself

  const std::string& name() const;
  const std::string& uri() const;
  Result<int64_t> version() const;
  Result<std::shared_ptr<arrow::Schema>> schema() const;
  Result<int64_t> CountRows(const std::string& predicate = "") const;
  // What happened since the last call that somebody should hear of, such as a newest
  // version whose manifest a power cut tore, so that an older one is shown.
  std::vector<std::string> TakeWarnings();

  // Appends; returns the new version. Columns are matched by name at every level, missing
  // nullable ones become null, numbers and strings are cast. Rows that do not fit are an
  // error and leave the table as it was.
  Result<int64_t> Add(std::shared_ptr<arrow::RecordBatchReader> data);
  Result<int64_t> Add(const std::shared_ptr<arrow::Table>& data);
  // Replaces data and schema.
  Result<int64_t> Overwrite(std::shared_ptr<arrow::RecordBatchReader> data);
  Result<DeleteResult> Delete(const std::string& predicate);
  // Columns and the SQL expressions, over the row as it was, of their new values, in the
  // rows for which the predicate is true (all rows when it is empty).
  Result<UpdateResult> Update(
      const std::string& predicate,
      const std::vector<std::pair<std::string, std::string>>& expressions);
  // Updates, inserts and deletes by key in one version. `source` may lack columns: they
  // keep their values in updated rows and are null in inserted ones. It is read once and
  // may be larger than memory.
  Result<MergeResult> MergeInsert(std::shared_ptr<arrow::RecordBatchReader> source,
                                  const MergeRequest& request);

  // Columns; each returns the new version. Data are written only for columns that are
  // computed or cast.
  // Name and SQL expression of each new column.
  Result<int64_t> AddColumns(
      const std::vector<std::pair<std::string, std::string>>& expressions);
  // Columns of nulls.
  Result<int64_t> AddColumns(const std::shared_ptr<arrow::Schema>& columns);
  Result<int64_t> AlterColumns(const std::vector<ColumnChange>& changes);
  Result<int64_t> DropColumns(const std::vector<std::string>& paths);

  Query Scan() const;
  VectorQuery Search(std::vector<float> vector) const;
  // Several queries (an array of lists of numbers): `Limit` rows each, with
  // `query_index`; one multi-vector query when the column holds lists of vectors.
  VectorQuery Search(std::shared_ptr<arrow::Array> vectors) const;
  // By position among the live rows, and by _rowid; in the order asked for.
  Result<std::shared_ptr<arrow::Table>> TakeOffsets(
      const std::vector<int64_t>& offsets,
      const std::vector<std::string>& columns = {}) const;
  Result<std::shared_ptr<arrow::Table>> TakeRowIds(
      const std::vector<uint64_t>& row_ids,
      const std::vector<std::string>& columns = {}) const;

  // Names the columns by which rows are the same, in this order; they hold no nulls and
  // are of types that can be compared by their bytes. Nobody checks that keys are unique.
  // InvalidInput when there is a key already.
  Result<int64_t> SetUnenforcedPrimaryKey(const std::vector<std::string>& columns);

  // The LSM write path. While it is set, Add, Delete, Update and upserts go through it:
  // they commit no version, and reads see their rows at once. All but GetLsmStats and
  // CloseLsmWriters are InvalidInput without one.
  Status SetLsmWriteSpec(const LsmWriteSpec& spec);
  Status UnsetLsmWriteSpec();
  Result<std::optional<LsmWriteSpec>> GetLsmWriteSpec() const;
  // Flushes and closes the writers that this process has for the table.
  Status CloseLsmWriters();
  // Fresh rows become generations; their number.
  Result<int64_t> FlushLsm();
  // One pass that merges what generations there are into the base table.
  Result<LsmProgress> CompactLsm();
  // Flushes, then compacts until what was fresh is in the base table. `progress` gets the
  // generations left and those there were, after each pass.
  Result<LsmCheckpoint> CheckpointLsm(
      std::optional<std::chrono::milliseconds> timeout = std::nullopt,
      std::function<void(int64_t remaining, int64_t total)> progress = nullptr);
  // Nullopt: the table has no LSM write path.
  Result<std::optional<std::vector<LsmBucketStats>>> GetLsmStats(
      bool include_generation_rows = false) const;

  Result<std::vector<Version>> ListVersions() const;
  Status Checkout(int64_t version);
  Status Checkout(const std::string& tag);
  Status CheckoutLatest();
  // Commits the pinned version's content as a new version, and unpins.
  Result<int64_t> Restore();

  Result<std::map<std::string, int64_t>> ListTags() const;
  Status CreateTag(const std::string& tag, int64_t version);
  Status UpdateTag(const std::string& tag, int64_t version);
  Status DeleteTag(const std::string& tag);

 private:
  std::shared_ptr<db::Table> impl_;
};

// A database: a directory of tables.
class Connection {
 public:
  explicit Connection(std::shared_ptr<db::Connection> impl);  // for the library itself

  const std::string& uri() const;
  Result<std::vector<std::string>> TableNames() const;
  Result<Table> OpenTable(const std::string& name) const;
  Result<Table> CreateTable(const std::string& name,
                            std::shared_ptr<arrow::RecordBatchReader> data,
                            CreateMode mode = CreateMode::kCreate) const;
  Result<Table> CreateTable(const std::string& name,
                            const std::shared_ptr<arrow::Table>& data,
                            CreateMode mode = CreateMode::kCreate) const;
  // Without rows.
  Result<Table> CreateTable(const std::string& name,
                            const std::shared_ptr<arrow::Schema>& schema,
                            CreateMode mode = CreateMode::kCreate) const;
  Status DropTable(const std::string& name) const;
  Status RenameTable(const std::string& from, const std::string& to) const;

 private:
  std::shared_ptr<db::Connection> impl_;
};

// `uri` is a path or file:// (made when missing), or memory:// (empty, gone with the last
// handle).
Result<Connection> Connect(const std::string& uri, const ConnectOptions& options = {});

// Ends the upkeep that runs by itself in this process, for good: what it is at is given
// up (nothing is lost; a later process goes on). It is called at exit too. A program that
// exits from amid its work while statics of its own still use Glaive calls it first.
void StopBackgroundWork();

}  // namespace glaive
