// Reads one leaf column of a file of version 2.1 or later across its pages.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "file/file_metadata.h"
#include "file/page_reader.h"
#include "runtime/fork.h"

namespace glaive::file {

// Thread-safe. Pages are prepared at their first use and kept.
class ColumnReader {
 public:
  // `path`: the layers from the leaf to the top. `name` is for messages. Corruption when
  // the pages do not make up the file's rows. `info` must outlive the reader.
  static Result<std::unique_ptr<ColumnReader>> Make(
      std::shared_ptr<io::RandomAccessObject> object, const ColumnInfo& info,
      std::string name, std::shared_ptr<arrow::DataType> type,
      std::vector<encoding::PathLayer> path, int64_t num_file_rows,
      int64_t max_decoded_bytes);
  ~ColumnReader();

  const std::shared_ptr<arrow::DataType>& type() const { return shape_.type; }
  const encoding::ValueShape& shape() const { return shape_; }
  std::span<const encoding::PathLayer> path() const { return path_; }

  // Appends the rows of the file at `rows` (ascending, disjoint, not empty, within the
  // file).
  Status Read(std::span<const encoding::ValueRange> rows,
              encoding::StructureSink* structure, encoding::ValueSink* values) const;
  // First rows of the pages, then the number of rows of the file.
  std::vector<int64_t> PageBoundaries() const;
  int64_t memory_bytes() const { return memory_bytes_.load(std::memory_order_relaxed); }

 private:
  ColumnReader() = default;
  Result<const PageReader*> Page(size_t page) const;
  Status ReadPages(std::span<const encoding::ValueRange> rows,
                   encoding::StructureSink* structure, encoding::ValueSink* values) const;
  Status AtPage(size_t page, const Status& status) const;

  std::shared_ptr<io::RandomAccessObject> object_;
  const ColumnInfo* info_ = nullptr;
  std::string name_;
  encoding::ValueShape shape_;
  std::vector<encoding::PathLayer> path_;
  int64_t slots_per_row_ = 1;  // fixed-size lists of structs: pages count their items
  int64_t max_decoded_bytes_ = 0;
  std::vector<int64_t> first_slot_;  // of each page, then the total
  mutable std::vector<std::atomic<const PageReader*>> pages_;
  mutable ForkSafeMutex preparing_;  // guards only the creation of page readers
  mutable std::atomic<int64_t> memory_bytes_{0};
};

}  // namespace glaive::file
