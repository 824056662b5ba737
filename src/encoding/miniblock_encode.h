// Value encoders of mini-block pages: they cut the values of a page into chunks.
//
// Rules: docs/format/file.md, sections "Compressive encodings" and "Writer decisions".
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <arrow/buffer.h>

#include "base/status.h"
#include "encoding/encode_options.h"
#include "encoding/values.h"
#include "format/encodings21.pb.h"

namespace glaive::encoding {

struct MiniBlockValues {
  // The bytes of one value buffer for all chunks, back to back.
  struct Stream {
    std::shared_ptr<arrow::Buffer> bytes;
    std::vector<uint32_t> sizes;  // per chunk
  };
  lance::encodings21::CompressiveEncoding encoding;
  std::vector<Stream> streams;
  std::vector<uint32_t> chunk_values;  // powers of two of at least 2, except the last

  int64_t num_chunks() const { return static_cast<int64_t>(chunk_values.size()); }
};

// The codec is chosen from the values and the options. `count` must be at least 1.
Result<MiniBlockValues> EncodeMiniBlock(const FixedValues& values,
                                        const EncodeOptions& options);
Result<MiniBlockValues> EncodeMiniBlock(const VariableValues& values,
                                        const EncodeOptions& options);
Result<MiniBlockValues> EncodeMiniBlock(const FixedListValues& values,
                                        const EncodeOptions& options);
// Rows of `row_bits` that several non-null fixed-width members were packed into.
Result<MiniBlockValues> EncodeMiniBlockPacked(const FixedValues& rows,
                                              const std::vector<int64_t>& member_bits,
                                              const EncodeOptions& options);

// Values per chunk of a raw value of `bits`.
int64_t FlatChunkValues(int64_t bits);

// FSST is worth trying for these values (which are then compressed as a whole page).
bool WantsFsst(const VariableValues& values, const EncodeOptions& options);

}  // namespace glaive::encoding
