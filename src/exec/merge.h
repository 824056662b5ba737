// Merges a stream of rows into a table by key: update, insert, delete in one commit.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <arrow/type_fwd.h>

#include "base/status.h"
#include "exec/retry_policy.h"
#include "file/version.h"
#include "table/dataset.h"

namespace glaive {
class CancelToken;
}

namespace glaive::exec {

// What happens to a row of the table whose key the source has.
enum class MatchedAction : uint8_t { kKeep, kUpdate, kDelete, kFail };

// Several source rows with one key.
enum class SourceDuplicates : uint8_t {
  kFail,       // an error when a row of the table would be changed by two of them
  kFirstSeen,  // all but the first are left out
};

struct MergeOptions {
  // Top-level columns that form the key. Empty: the table's unenforced primary key.
  std::vector<std::string> on;
  MatchedAction matched = MatchedAction::kKeep;
  // SQL over `target.column` and `source.column`: updates only where true. Empty: none.
  std::string update_condition;
  bool insert_not_matched = false;
  bool delete_not_in_source = false;
  // SQL over the table's columns: deletes only where true. Empty: none.
  std::string delete_condition;
  SourceDuplicates duplicates = SourceDuplicates::kFail;
  // A column of booleans without nulls in the source, none of the table: where true, the
  // rows with this key are deleted and nothing is updated or inserted. Then each key of
  // the source also has one row at most afterwards, however many the table had. Only with
  // kUpdate.
  std::string tombstone_column;
  // Committed with the rows, also when there is none (see table::RowUpdate).
  std::vector<table::CompactedGeneration> compacted;
  // What is recorded for the shards in `compacted` when the source was made, in their
  // order (0: nothing). Conflict when it is not the same any more: some of these rows are
  // in the table already, and may have been changed there since. Empty: not checked.
  std::vector<uint64_t> compacted_before;
  // The columns that the source was made for. SchemaMismatch when those of the table are
  // not the same any more: other ids, names or types. Null: columns go by their names.
  std::shared_ptr<const file::Schema> made_for;
  std::optional<file::FileVersion> file_version;  // unset: the table's
  // Source rows and their keys beyond this are spilled to temporary files. 0: a share of
  // the runtime's budget.
  int64_t memory_bytes = 0;
  // The batches of the source lie in the caller's memory anyway: they are never spilled.
  bool source_in_memory = false;
  // Directory of temporary files. Empty: that of the system. Files in it have no name, so
  // that nothing stays behind however the process ends.
  std::string spill_directory;
  RetryPolicy retry;
  CancelToken* cancel = nullptr;
};

struct MergeResult {
  table::Dataset::Ptr dataset;
  int64_t num_inserted_rows = 0;
  int64_t num_updated_rows = 0;
  int64_t num_deleted_rows = 0;
  int64_t num_skipped_duplicates = 0;
  int num_attempts = 1;
  // How it ran.
  int64_t source_rows = 0;
  int64_t spilled_bytes = 0;
  int num_passes = 0;  // over the keys of the table
  int64_t num_files_written = 0;
  int64_t bytes_written = 0;
};

// Rows match when all key columns are equal: text and bytes exactly, numbers by value,
// floats by their bits (NaN equals NaN, -0.0 differs from 0.0); a null key matches
// nothing. A source row that matches several rows of the table updates each. Columns that
// the source lacks keep their values in updated rows and are null in inserted ones.
//
// `source`: columns of the table, by name, in any order, with the types that
// Dataset::arrow_schema shows. It is read once; concurrent commits make the merge run
// again on what was kept of it. Commits a version even when nothing changes, as upstream
// does. InvalidInput: no key, an unknown or nested key column, a key column that the
// source lacks, no clause, conditions that do not parse, several source rows for one row
// of the table, a match with kFail; SchemaMismatch: unknown columns, other types. The
// table is unchanged then and no file is left behind.
Result<MergeResult> MergeInsert(table::Dataset::Ptr dataset,
                                std::shared_ptr<arrow::RecordBatchReader> source,
                                const MergeOptions& options);

// What MergeInsert would do with a source of this schema, for people to read; the same
// errors for wrong options.
Result<std::string> ExplainMerge(const table::Dataset& dataset,
                                 const arrow::Schema& source,
                                 const MergeOptions& options);
// Does everything but the commit, and tells how it went.
Result<std::string> AnalyzeMerge(table::Dataset::Ptr dataset,
                                 std::shared_ptr<arrow::RecordBatchReader> source,
                                 const MergeOptions& options);

}  // namespace glaive::exec
