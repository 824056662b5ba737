// Reads one Lance file of version 2.0, 2.1 or 2.2.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <arrow/type_fwd.h>

#include "base/status.h"
#include "file/schema.h"
#include "file/version.h"

namespace glaive {
class Cache;
namespace io {
class ObjectStore;
class RandomAccessObject;
}  // namespace io
}  // namespace glaive

namespace glaive::file {

struct FileMetadata;  // file/file_metadata.h: footer, descriptor, column metadata

// What to read: a schema (any sub-tree) and where each of its column-owning fields lives.
struct Projection {
  Schema schema;
  // Field id -> column number of the file, for every column-owning field of `schema`.
  std::map<int32_t, int32_t> columns;
};

struct FileReaderOptions {
  // Upper bound for what one decoded page may allocate, bytes: guards against corrupt
  // lengths.
  int64_t max_decoded_page_bytes = int64_t{1} << 36;
};

// Immutable after Open; all const methods may run on several threads at once. Decoded
// page state (chunk tables, dictionaries, repetition indices) is prepared on first use
// and kept.
class FileReader {
 public:
  static Result<std::shared_ptr<FileReader>> Open(
      std::shared_ptr<io::RandomAccessObject> object, FileReaderOptions options = {});
  ~FileReader();

  FileVersion version() const;
  int64_t num_rows() const;
  const Schema& schema() const;          // as stored in the file
  const FileMetadata& metadata() const;  // for `dump`
  // The whole file, columns numbered as the version's rule says.
  Result<Projection> ProjectAll() const;
  // The named fields of the file's own schema.
  Result<Projection> Project(std::span<const std::string> paths) const;
  // Extra global buffers (index >= 1).
  Result<std::shared_ptr<arrow::Buffer>> GlobalBuffer(int index) const;
  int num_global_buffers() const;

  // Rows [start, start + count). Fixed-width uncompressed data within one page is a
  // zero-copy view of the file. InvalidInput when the range lies outside the file.
  Result<std::shared_ptr<arrow::RecordBatch>> ReadRange(const Projection& projection,
                                                        int64_t start,
                                                        int64_t count) const;
  // The rows at `rows` (any order, repeats allowed), in that order. One read for a
  // fixed-width value, two for a variable-width one.
  Result<std::shared_ptr<arrow::RecordBatch>> Take(const Projection& projection,
                                                   std::span<const int64_t> rows) const;
  // ReadRange and Take return large binaries kept out of line as struct<position: uint64,
  // size: uint64>, and those of the second kind as the descriptors that the file holds.
  // This replaces such columns of `batch`, which one of them returned, by their bytes, at
  // every level of structs and lists. `written`: the columns as they were written.
  Result<std::shared_ptr<arrow::RecordBatch>> LoadBlobs(
      const Schema& written, const std::shared_ptr<arrow::RecordBatch>& batch) const;
  // Where files beside this one are, which hold blobs of the second kind. Before the
  // reader is shared.
  void SetFilesBeside(std::shared_ptr<io::ObjectStore> store, std::string path);
  // The bytes of a blob column (a projection of that one top-level field) at `rows`, as
  // in Take: a LargeBinary array.
  Result<std::shared_ptr<arrow::Array>> TakeBlobs(const Projection& projection,
                                                  std::span<const int64_t> rows) const;
  // First rows of the pages of one column, plus num_rows() at the end: a scan that cuts
  // its ranges here never copies a zero-copy column.
  Result<std::vector<int64_t>> PageBoundaries(int32_t column) const;
  // Rough bytes per row of a projection on disk; for choosing batch sizes.
  int64_t EstimateRowBytes(const Projection& projection) const;

  // Bytes that this reader keeps in memory (metadata and prepared pages), for cache
  // accounting.
  int64_t memory_bytes() const;

 private:
  FileReader();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace glaive::file
