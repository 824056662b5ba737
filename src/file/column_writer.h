// Buffers one column and turns it into pages. One implementation per family of versions.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <arrow/type_fwd.h>

#include "base/status.h"
#include "encoding/page_encode.h"
#include "file/file_writer.h"
#include "file/page_sink.h"
#include "file/schema.h"
#include "format/file2.pb.h"

namespace glaive::file {

// Not thread-safe.
class ColumnWriter {
 public:
  virtual ~ColumnWriter() = default;

  // Whether Add can take `data`: called for all columns before any of them adds rows.
  virtual Status Accept(const arrow::ArrayData& data) const = 0;
  // The next rows of the top-level column that this column belongs to, in the layout of
  // CastForStorage. `batch_bytes`: size of the whole batch, to judge what keeping a
  // reference would pin.
  virtual Status Add(const std::shared_ptr<arrow::ArrayData>& data,
                     int64_t batch_bytes) = 0;
  // Writes what is buffered as pages.
  virtual Status Flush() = 0;
  // Whether pages can be made beside the column.
  virtual bool encodes_apart() const { return false; }
  // The pages of rows that Add would take. Thread-safe.
  virtual Result<std::vector<encoding::EncodedPage>> Encode(
      const std::shared_ptr<arrow::ArrayData>& data) const;
  // Writes such pages, after what is buffered.
  virtual Status AddPages(const std::vector<encoding::EncodedPage>& pages);
  // After the last Flush.
  virtual const lance::file::v2::ColumnMetadata& metadata() const = 0;
};

// Writers for all columns below one top-level field, in the order of their numbers.
// Adding to each of them adds the rows once. NotSupported names the column that this
// version cannot store.
Result<std::vector<std::unique_ptr<ColumnWriter>>> MakeColumnWriters(
    const Field& field, const FileWriterOptions& options, PageSink* sink);

// The two families.
Result<std::vector<std::unique_ptr<ColumnWriter>>> MakeStructuralColumnWriters(
    const Field& field, const FileWriterOptions& options, PageSink* sink);
Result<std::vector<std::unique_ptr<ColumnWriter>>> MakeColumnWriters20(
    const Field& field, const FileWriterOptions& options, PageSink* sink);

// Buffered bytes above which a column becomes a page.
int64_t PageBytes(const FileWriterOptions& options);

// Bytes of Arrow memory that the rows of `data` take, without what lies outside its
// slice.
int64_t SliceBytes(const arrow::ArrayData& data);

}  // namespace glaive::file
