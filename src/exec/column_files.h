// Data files that bring new columns to the fragments of a snapshot, and the transaction
// that adds them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <arrow/type_fwd.h>

#include "base/status.h"
#include "exec/fragment_rows.h"
#include "file/schema.h"
#include "table/dataset.h"
#include "table/unsynced_files.h"

namespace lance::table {
class DataFile;
class Transaction;
}  // namespace lance::table
namespace glaive {
class CancelToken;
namespace file {
class FileWriter;
struct EncodedRows;
}  // namespace file
}  // namespace glaive

namespace glaive::exec {

struct ColumnChangeOptions {
  // Rows that are read and computed at a time. 0: as fits.
  int64_t batch_rows = 0;
  // Rows of the table done so far; never called by two threads at once.
  std::function<void(int64_t rows)> progress;
  CancelToken* cancel = nullptr;
};

// Thread-safe. Files that no commit took are deleted by the destructor.
class ColumnFiles {
 public:
  // `columns`: what each file holds, with the ids of the table. May be empty: no files.
  ColumnFiles(table::Dataset::Ptr dataset, file::Schema columns,
              ColumnChangeOptions options = {});
  ~ColumnFiles();
  ColumnFiles(const ColumnFiles&) = delete;
  ColumnFiles& operator=(const ColumnFiles&) = delete;

  const table::Dataset& dataset() const { return *dataset_; }
  const file::Schema& columns() const { return columns_; }

  // The file of one fragment, being written. Used by one thread at a time.
  class Writer {
   public:
    ~Writer();
    // The next physical rows.
    Status Write(const arrow::RecordBatch& batch);
    // The next `count` physical rows, of which `live` holds those that are set in `mask`:
    // deleted ones repeat their neighbours, so that a column without nulls has none.
    Status WriteLive(const std::shared_ptr<arrow::RecordBatch>& live, const RowMask& mask,
                     int64_t count);
    // WriteLive in two steps, of which the first may run on any thread: for rows enough
    // to be a page, if `encodes_apart`.
    bool encodes_apart() const { return encodes_apart_; }
    Result<std::shared_ptr<const file::EncodedRows>> Encode(
        const std::shared_ptr<arrow::RecordBatch>& live, const RowMask& mask,
        int64_t count) const;
    Status Write(const file::EncodedRows& rows, int64_t count);
    Status Finish();

   private:
    friend class ColumnFiles;
    Writer(ColumnFiles* owner, int fragment, std::string name,
           std::unique_ptr<file::FileWriter> file, bool narrow);
    // The next `count` physical rows, see WriteLive.
    Result<std::shared_ptr<arrow::RecordBatch>> Whole(
        const std::shared_ptr<arrow::RecordBatch>& live, const RowMask& mask,
        int64_t count) const;

    ColumnFiles* const owner_;
    const int fragment_;
    const std::string name_;
    const std::unique_ptr<file::FileWriter> file_;
    const bool encodes_apart_;
  };
  Result<std::unique_ptr<Writer>> Open(int fragment);

  // The file of a fragment, for a commit that somebody else makes: it is on the disk, and
  // stays.
  Result<lance::table::DataFile> Keep(int fragment);
  // A Merge: every fragment with its new file and without files that hold no column of
  // `schema` any more. Errors as those of Dataset::Commit.
  Result<table::Dataset::Ptr> Commit(const file::Schema& schema,
                                     bool preserves_nullability = true);

 private:
  void Report(int64_t rows);

  const table::Dataset::Ptr dataset_;
  const file::Schema columns_;
  const ColumnChangeOptions options_;
  std::mutex mutex_;
  std::vector<std::string> paths_;                              // guarded by mutex_
  std::vector<std::unique_ptr<lance::table::DataFile>> files_;  // by fragment; by mutex_
  table::UnsyncedFiles unsynced_;
  int num_unsynced_ = 0;  // guarded by mutex_
  int64_t rows_ = 0;      // guarded by mutex_
  bool kept_ = false;
};

// From values that were read of live rows to those of the new columns; called on several
// threads at once.
using ColumnFunction = std::function<Result<std::shared_ptr<arrow::RecordBatch>>(
    const std::shared_ptr<arrow::RecordBatch>& live)>;

// Fills the files of all fragments for which `wanted` (null: all) is true, on all
// threads, with bounded memory. With `whole`, which must not fail where `function` does
// not, rows that are deleted are written as they are: parts of lists in different files
// must have the same lengths.
Status ComputeColumns(ColumnFiles* files, const OutputPlan& input,
                      const ColumnFunction& function,
                      const std::function<bool(int fragment)>& wanted,
                      const ColumnChangeOptions& options,
                      const ColumnFunction& whole = nullptr);

// Runs `change` on `dataset`, and again on the latest version when a concurrent commit
// was faster: see RunWithRetries.
Result<table::Dataset::Ptr> ChangeWithRetries(
    table::Dataset::Ptr dataset, const char* what, CancelToken* cancel,
    const std::function<Result<table::Dataset::Ptr>(const table::Dataset::Ptr&)>& change);

// `transaction` with the schema of a Merge or Project.
Result<table::Dataset::Ptr> CommitSchema(const table::Dataset& dataset,
                                         const file::Schema& schema,
                                         bool preserves_nullability);

}  // namespace glaive::exec
