// Reads rows of one page of a file of version 2.1 or later.
//
// Layout: docs/format/pages.md.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "base/status.h"
#include "encoding/levels_read.h"
#include "encoding/value_sink.h"
#include "io/object_store.h"

namespace lance::encodings21 {
class BlobLayout;
class ConstantLayout;
class FullZipLayout;
class MiniBlockLayout;
class PageLayout;
}  // namespace lance::encodings21

namespace glaive::file {

// What a page reader needs to know; everything referred to outlives the reader.
struct PageContext {
  io::RandomAccessObject* object = nullptr;
  std::span<const io::ByteRange> buffers;
  int64_t num_rows = 0;  // slots outside of all layers, as the page counts them
  const encoding::ValueShape* shape = nullptr;
  std::span<const encoding::PathLayer> path;
  int64_t max_decoded_bytes = 0;
};

// Immutable after construction, so that several threads may read at once.
class PageReader {
 public:
  explicit PageReader(encoding::LevelRules rules) : rules_(std::move(rules)) {}
  virtual ~PageReader() = default;

  const encoding::LevelRules& rules() const { return rules_; }
  // Appends the rows at `rows` (ascending, disjoint, not empty, within the page): levels
  // to `levels`, which is empty before, and the values of visible entries to `values`.
  virtual Status Read(std::span<const encoding::ValueRange> rows,
                      encoding::LevelBatch* levels,
                      encoding::ValueSink* values) const = 0;
  // One range of rows becomes a view of the file.
  virtual bool is_zero_copy() const { return false; }
  // Memory that the prepared page holds.
  virtual int64_t memory_bytes() const { return 256; }

 private:
  encoding::LevelRules rules_;
};

// Reads what the page keeps ready (chunk table, dictionary, repetition index).
Result<std::unique_ptr<PageReader>> MakePageReader(const PageContext& context,
                                                   std::string_view layout);

// The kinds of pages; called by MakePageReader.
Result<std::unique_ptr<PageReader>> MakeLayoutReader(
    const PageContext& context, const lance::encodings21::PageLayout& layout);
Result<std::unique_ptr<PageReader>> MakeMiniBlockReader(
    const PageContext& context, const lance::encodings21::MiniBlockLayout& layout);
Result<std::unique_ptr<PageReader>> MakeFullZipReader(
    const PageContext& context, const lance::encodings21::FullZipLayout& layout);
Result<std::unique_ptr<PageReader>> MakeConstantReader(
    const PageContext& context, const lance::encodings21::ConstantLayout& layout);
Result<std::unique_ptr<PageReader>> MakeBlobReader(
    const PageContext& context, const lance::encodings21::BlobLayout& layout);

// The layers of a layout as the numbers stored.
template <typename Layout>
std::vector<int> LayerNumbers(const Layout& layout) {
  return std::vector<int>(layout.layers().begin(), layout.layers().end());
}

}  // namespace glaive::file
