// Where everything is in a Lance file: footer, global buffers, columns and their pages.
//
// Layout: docs/format/file.md.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <arrow/type_fwd.h>

#include "base/status.h"
#include "file/schema.h"
#include "file/version.h"
#include "io/object_store.h"

namespace glaive::file {

// One page of a column. All buffers lie within the file.
struct PageInfo {
  int64_t num_rows = 0;  // as stored: slots of the column, see ColumnInfo
  int64_t priority = 0;
  std::vector<io::ByteRange> buffers;
  std::string encoding;  // serialised ArrayEncoding (2.0) or PageLayout (2.1 and later)
};

struct ColumnInfo {
  std::vector<PageInfo> pages;
  std::vector<io::ByteRange> buffers;  // of the column itself
  bool is_blob = false;                // 2.0 only: values lie outside the pages
};

// Immutable once opened.
struct FileMetadata {
  std::string path;
  int64_t size_bytes = 0;
  FileVersion version = kDefaultFileVersion;
  uint16_t footer_major = 0;
  uint16_t footer_minor = 0;
  int64_t num_rows = 0;
  Schema schema;
  std::vector<io::ByteRange> global_buffers;  // the first holds the schema
  std::vector<io::ByteRange> column_metadata;

  int num_columns() const { return static_cast<int>(column_metadata.size()); }
  // Decodes the metadata of one column. Corruption names file and column.
  Result<ColumnInfo> ReadColumn(int column) const;

  // The end of the file, from `tail_offset` on: holds all metadata.
  std::shared_ptr<arrow::Buffer> tail;
  int64_t tail_offset = 0;
};

// Corruption when the object is no Lance file or is damaged, NotSupported for other
// versions.
Result<FileMetadata> ReadFileMetadata(io::RandomAccessObject& object);

}  // namespace glaive::file
