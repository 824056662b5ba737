// Writes rows as data files of new fragments, which a transaction then adds to the table.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <arrow/type_fwd.h>

#include "base/status.h"
#include "file/schema.h"
#include "file/version.h"
#include "table/dataset.h"

namespace glaive::file {
class FileWriter;
}

namespace glaive::table {

class InFlightFiles;  // table/in_flight.h
class UnsyncedFiles;  // table/unsynced_files.h

// Where the last file of a writer is when it is finished.
enum class LastFile : uint8_t {
  kDurable,
  // The commit brings it to the disk, beside what else it has to. The writer must live
  // until then.
  kLeftToCommit,
};

struct FragmentWriterOptions {
  file::FileVersion version = file::kDefaultFileVersion;
  int64_t max_rows_per_file = 1048576;
  int64_t max_bytes_per_file = int64_t{90} << 30;
  std::vector<int32_t> outside_blob_fields;  // see file::FileWriterOptions
};

// Streams batches into data files of bounded size: one fragment per file, without an id,
// which the commit gives. Files are durable when Finish returns, but for what it leaves
// to the commit. Unless Keep is called, the destructor deletes them: a failed operation
// leaves nothing behind. Not thread-safe.
class FragmentWriter {
 public:
  // `schema`: the columns that the batches have, with the field ids of the table.
  FragmentWriter(const TableEnv& env, file::Schema schema, FragmentWriterOptions options);
  ~FragmentWriter();
  FragmentWriter(const FragmentWriter&) = delete;
  FragmentWriter& operator=(const FragmentWriter&) = delete;

  Status Write(const arrow::RecordBatch& batch);
  // Ends the current file; the next row begins a fragment of its own.
  Status CutFragment();
  // Rows written so far, over all files.
  int64_t num_rows() const { return num_rows_; }
  // Ends the last file. No writes after this.
  Result<std::vector<lance::table::DataFragment>> Finish(
      LastFile last = LastFile::kDurable);
  // The files are part of a committed version (or may be).
  void Keep() { kept_ = true; }
  // Keeps a clean-up of this process away from the files, until a version names them.
  // Whoever commits after the writer is gone holds on to it.
  std::shared_ptr<const void> in_flight() const { return in_flight_; }

 private:
  Status OpenFile();
  Status EndFile(LastFile last);

  io::ObjectStore& store_;
  const std::shared_ptr<io::ObjectStore> owned_store_;
  const std::shared_ptr<InFlightFiles> in_flight_;
  const std::unique_ptr<UnsyncedFiles> unsynced_;
  const file::Schema schema_;
  const FragmentWriterOptions options_;
  std::unique_ptr<file::FileWriter> writer_;
  std::string name_;
  std::vector<std::string> files_;
  std::vector<lance::table::DataFragment> fragments_;
  int64_t num_rows_ = 0;
  bool kept_ = false;
};

}  // namespace glaive::table
