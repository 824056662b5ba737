// LZ4 and Zstd through Arrow's codecs.
#include "encoding/compress.h"

#include <limits>

#include <arrow/util/compression.h>

namespace glaive::encoding {
namespace {

constexpr int kZstdDefaultLevel = 3;

}  // namespace

Compressor::Compressor(Compressor&&) noexcept = default;
Compressor& Compressor::operator=(Compressor&&) noexcept = default;
Compressor::~Compressor() = default;

Result<Compressor> Compressor::Make(Scheme scheme, std::optional<int> level) {
  Compressor out;
  out.scheme_ = scheme;
  out.level_ = level;
  if (scheme == Scheme::kLz4) {
    GLAIVE_ASSIGN_OR_RETURN(out.codec_,
                            arrow::util::Codec::Create(arrow::Compression::LZ4));
  } else {
    const int effective = level.value_or(0) == 0 ? kZstdDefaultLevel : *level;
    GLAIVE_ASSIGN_OR_RETURN(
        out.codec_, arrow::util::Codec::Create(arrow::Compression::ZSTD, effective));
  }
  return out;
}

Status Compressor::Append(std::span<const uint8_t> bytes, OutBytes* out) {
  if (bytes.empty()) return Status::OK();
  const int64_t size = static_cast<int64_t>(bytes.size());
  if (scheme_ == Scheme::kLz4) {
    if (bytes.size() > std::numeric_limits<int32_t>::max()) {
      return NotSupported("LZ4 compression of more than 2 GiB in one piece; use zstd");
    }
    out->Put(static_cast<uint32_t>(bytes.size()));
  } else {
    out->Put(static_cast<uint64_t>(bytes.size()));
  }
  const int64_t bound = codec_->MaxCompressedLen(size, bytes.data());
  const size_t before = out->size();
  uint8_t* at = out->Extend(static_cast<size_t>(bound));
  GLAIVE_ASSIGN_OR_RETURN(const int64_t written,
                          codec_->Compress(size, bytes.data(), bound, at));
  out->Truncate(before + static_cast<size_t>(written));
  return Status::OK();
}

void Compressor::Describe(lance::encodings21::BufferCompression* out) const {
  if (scheme_ == Scheme::kLz4) {
    out->set_scheme(lance::encodings21::COMPRESSION_ALGORITHM_LZ4);
  } else {
    out->set_scheme(lance::encodings21::COMPRESSION_ALGORITHM_ZSTD);
    out->set_level(level_.value_or(0));
  }
}

}  // namespace glaive::encoding
