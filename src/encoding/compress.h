// General compression of one unit, in the frame that pages use.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include <arrow/type_fwd.h>

#include "base/status.h"
#include "encoding/encode_options.h"
#include "encoding/out_bytes.h"
#include "format/encodings21.pb.h"

namespace arrow::util {
class Codec;
}

namespace glaive::encoding {

// LZ4: u32 size, block. Zstd: u64 size, frame. Not thread-safe: one per task.
class Compressor {
 public:
  // `scheme` is kLz4 or kZstd; `level` counts for Zstd only (absent or 0: the library's
  // default).
  static Result<Compressor> Make(Scheme scheme, std::optional<int> level);
  Compressor(Compressor&&) noexcept;
  Compressor& operator=(Compressor&&) noexcept;
  ~Compressor();

  // Appends the compressed unit to `out`. Empty input stays empty.
  Status Append(std::span<const uint8_t> bytes, OutBytes* out);
  void Describe(lance::encodings21::BufferCompression* out) const;

 private:
  Compressor() = default;
  Scheme scheme_ = Scheme::kLz4;
  std::optional<int> level_;
  std::unique_ptr<arrow::util::Codec> codec_;
};

}  // namespace glaive::encoding
