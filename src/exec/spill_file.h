// A temporary file of record batches without a name: it is gone when it is closed,
// however the process ends.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <arrow/type_fwd.h>

#include "base/status.h"

namespace arrow::io {
class FileOutputStream;
}
namespace arrow::ipc {
class RecordBatchWriter;
}

namespace glaive::exec {

// Written first, then read any number of times. Types, metadata and dictionaries come
// back as they were. Not thread-safe.
class SpillFile {
 public:
  // `directory` empty: that of the system for temporary files.
  static Result<std::unique_ptr<SpillFile>> Make(const std::string& directory,
                                                 std::shared_ptr<arrow::Schema> schema);
  ~SpillFile();

  Status Write(const arrow::RecordBatch& batch);
  // No writes after this.
  Status Finish();
  int64_t size_bytes() const { return size_bytes_; }
  // Batches of the schema, from the first on. The file must outlive it.
  Result<std::shared_ptr<arrow::RecordBatchReader>> Read() const;

 private:
  SpillFile();
  std::shared_ptr<arrow::Schema> schema_;
  std::shared_ptr<arrow::Schema> plain_;  // without metadata at any level
  int fd_ = -1;
  int64_t size_bytes_ = 0;
  std::shared_ptr<arrow::io::FileOutputStream> out_;
  std::shared_ptr<arrow::ipc::RecordBatchWriter> writer_;
};

}  // namespace glaive::exec
