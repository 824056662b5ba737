// Decodes the value buffers of one mini-block chunk.
//
// Layout: docs/format/codecs.md.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/status.h"
#include "encoding/value_sink.h"

namespace lance::encodings21 {
class CompressiveEncoding;
}

namespace glaive::encoding {

// Built once per page from its description; immutable, thread-safe.
class MiniBlockCodec {
 public:
  virtual ~MiniBlockCodec() = default;
  // Value buffers that a chunk holds for this codec.
  virtual int num_buffers() const = 0;
  // Appends the values at `ranges` (ascending, disjoint, within [0, num_values)) of a
  // chunk. Buffer sizes are checked here; Corruption when they do not fit `num_values`.
  virtual Status Decode(std::span<const Bytes> buffers, int64_t num_values,
                        std::span<const ValueRange> ranges, ValueSink* out) const = 0;
  // No chunk whose buffers total `bytes` holds more values than this; bounds corrupt
  // counts.
  virtual int64_t MaxValues(int64_t bytes) const = 0;
};

// NotSupported or Corruption when `encoding` cannot give values of `shape`, which must
// outlive the codec.
Result<std::unique_ptr<MiniBlockCodec>> MakeMiniBlockCodec(
    const lance::encodings21::CompressiveEncoding& encoding, const ValueShape& shape);

// Bytes per value that a fixed-width encoding (of dictionary indices) yields.
Result<int64_t> DecodedWidth(const lance::encodings21::CompressiveEncoding& encoding);

// Appends row-major tuples: children back to back, each `widths[i]` bytes.
Status AppendTuples(const uint8_t* rows, int64_t count, std::span<const int64_t> widths,
                    ValueSink* out);
// Checks that fields of these widths can be the children of a packed struct of `shape`.
Status CheckTuple(std::span<const int64_t> widths, const ValueShape& shape);

}  // namespace glaive::encoding
