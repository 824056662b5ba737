// Writes one Lance file of version 2.0, 2.1 or 2.2.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <arrow/type_fwd.h>

#include "base/status.h"
#include "file/schema.h"
#include "file/version.h"

namespace glaive::io {
class ObjectStore;
class ObjectWriter;
}  // namespace glaive::io

namespace glaive::file {

struct FileWriterOptions {
  FileVersion version = kDefaultFileVersion;
  // A column becomes a page when more than this many bytes are buffered for it. 0: 8 MiB.
  int64_t page_bytes = 0;
  // Pages of version 2.0 are cut at this size.
  int64_t max_page_bytes = int64_t{32} << 20;
  // Ids of top-level fields of which blobs may lie outside of the table, named by uri:
  // rows that are written anew keep those that they had. Of other fields they are
  // refused.
  std::vector<int32_t> outside_blob_fields;
};

struct FileWriteSummary {
  std::string path;
  int64_t num_rows = 0;
  int64_t size_bytes = 0;
  // Field ids that own a column, and their column numbers, as a manifest's DataFile lists
  // them.
  std::vector<int32_t> field_ids;
  std::vector<int32_t> column_indices;
  // Files beside this one that hold blobs of it.
  std::vector<std::string> blob_files;
};

// Rows as pages of their own, not in a file yet.
struct EncodedRows;

// Not thread-safe, but for Encode. Memory is bounded by one page per column plus one
// batch. The object becomes visible at Finish; without it nothing is left behind.
class FileWriter {
 public:
  // `schema` gives names, ids, types and encoder hints (field metadata
  // `lance-encoding:*`).
  static Result<std::unique_ptr<FileWriter>> Make(io::ObjectStore& store,
                                                  std::string path, Schema schema,
                                                  FileWriterOptions options = {});
  ~FileWriter();

  // Columns are matched by name at every level and cast where the storage type differs
  // only by layout (views, offset width, dictionary index width). SchemaMismatch names
  // the column; nulls in a non-nullable field are InvalidInput.
  Status Write(const arrow::RecordBatch& batch);
  // Write in two steps, of which the first, which computes, may run on any thread and
  // beside everything else. Each batch becomes a page per column: for large batches. Not
  // for files of version 2.0, and not for blobs.
  bool encodes_apart() const;
  Result<std::shared_ptr<const EncodedRows>> Encode(
      const arrow::RecordBatch& batch) const;
  Status Write(const EncodedRows& rows);
  // Extra global buffer; returns its index (>= 1).
  Result<int> AddGlobalBuffer(std::shared_ptr<arrow::Buffer> bytes);
  // Key/value pair of the schema metadata in the file.
  void AddSchemaMetadata(std::string key, std::string value);
  // `unpublished`, when given, receives the complete object: the caller publishes it by
  // its Finish, or drops it.
  Result<FileWriteSummary> Finish(
      std::unique_ptr<io::ObjectWriter>* unpublished = nullptr);
  void Abort();

  int64_t num_rows() const;
  // Bytes written so far (pages flushed), for choosing when to start a new file.
  int64_t bytes_written() const;

 private:
  FileWriter();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace glaive::file
