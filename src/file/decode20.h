// Decodes pages of file version 2.0.
//
// Layout: docs/format/file-2.0.md.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "encoding/value_sink.h"
#include "file/file_metadata.h"

namespace lance::encodings {
class ArrayEncoding;
}

namespace glaive::file {

// One page whose encoding tree refers to its buffers by number. Cheap to make; not
// thread-safe, the page and object it refers to are.
class Page20 {
 public:
  Page20(io::RandomAccessObject& object, const PageInfo& page)
      : object_(object), page_(page) {}

  // Appends the values at `rows` (ascending, disjoint, below `num_rows`) and their
  // validity.
  Status Decode(const lance::encodings::ArrayEncoding& encoding, int64_t num_rows,
                std::span<const encoding::ValueRange> rows, encoding::ValueSink* values,
                encoding::ValiditySink* validity) const;
  // Appends unsigned 64-bit values of an encoding without nulls.
  Status DecodeNumbers(const lance::encodings::ArrayEncoding& encoding,
                       std::span<const encoding::ValueRange> rows,
                       std::vector<uint64_t>* out) const;

 private:
  using Ranges = std::span<const encoding::ValueRange>;

  struct Slices {
    std::vector<std::shared_ptr<arrow::Buffer>> buffers;
  };

  Result<io::ByteRange> BufferOf(const lance::encodings::ArrayEncoding& encoding) const;
  // Bytes [start * width, ...) of the flat buffer for each range.
  Result<Slices> FlatSlices(const lance::encodings::ArrayEncoding& encoding,
                            int64_t width, Ranges rows) const;
  Status DecodeFlat(const lance::encodings::ArrayEncoding& encoding, Ranges rows,
                    encoding::ValueSink* values) const;
  Status DecodeBitmap(const lance::encodings::ArrayEncoding& encoding, Ranges rows,
                      encoding::BitSink* bits, encoding::ValiditySink* validity) const;
  Status DecodeNullable(const lance::encodings::ArrayEncoding& encoding, int64_t num_rows,
                        Ranges rows, encoding::ValueSink* values,
                        encoding::ValiditySink* validity) const;
  Status DecodeBinary(const lance::encodings::ArrayEncoding& encoding, Ranges rows,
                      encoding::ValueSink* values,
                      encoding::ValiditySink* validity) const;
  Status DecodeFsst(const lance::encodings::ArrayEncoding& encoding, int64_t num_rows,
                    Ranges rows, encoding::ValueSink* values,
                    encoding::ValiditySink* validity) const;
  Status DecodeDictionary(const lance::encodings::ArrayEncoding& encoding,
                          int64_t num_rows, Ranges rows, encoding::ValueSink* values,
                          encoding::ValiditySink* validity) const;
  Status DecodeFixedSizeBinary(const lance::encodings::ArrayEncoding& encoding,
                               Ranges rows, encoding::ValueSink* values) const;
  Status DecodePackedStruct(const lance::encodings::ArrayEncoding& encoding, Ranges rows,
                            encoding::ValueSink* values) const;
  Status DecodeBitpacked(const lance::encodings::ArrayEncoding& encoding, Ranges rows,
                         encoding::ValueSink* values) const;
  Status DecodePackedBlocks(const lance::encodings::ArrayEncoding& encoding,
                            int64_t num_rows, Ranges rows,
                            encoding::ValueSink* values) const;

  io::RandomAccessObject& object_;
  const PageInfo& page_;
};

}  // namespace glaive::file
