#include "encoding/decompress.h"

#include <memory>

#include <arrow/util/compression.h>

namespace glaive::encoding {
namespace {

using arrow::util::Codec;

// Largest factor by which a block can grow: an LZ4 length byte stands for 255 bytes; a
// Zstandard block of 4 bytes may stand for 128 KiB.
constexpr int64_t kLz4Growth = 256;
constexpr int64_t kZstdGrowth = 65536;

// One codec per thread: their contexts are not for sharing.
Result<Codec*> CodecFor(Compression scheme) {
  thread_local std::unique_ptr<Codec> lz4, zstd;
  auto& codec = scheme == Compression::kLz4 ? lz4 : zstd;
  if (!codec) {
    auto made = Codec::Create(scheme == Compression::kLz4 ? arrow::Compression::LZ4
                                                          : arrow::Compression::ZSTD);
    if (!made.ok()) return NotSupported("compression codec: ", made.status().message());
    codec = std::move(*made);
  }
  return codec.get();
}

bool IsBareZstdFrame(Bytes unit) {
  if (unit.size() < 8) return true;
  return LoadUnaligned<uint32_t>(unit.data()) == 0xFD2FB528U && (unit[4] & 0x10) == 0;
}

// The content size in the header of a Zstandard frame, or -1 when it is not there.
int64_t ZstdContentSize(Bytes frame) {
  if (frame.size() < 6 || LoadUnaligned<uint32_t>(frame.data()) != 0xFD2FB528U) return -1;
  const uint8_t descriptor = frame[4];
  const int size_flag = descriptor >> 6;
  const bool single_segment = (descriptor & 0x20) != 0;
  constexpr int kDictionaryBytes[4] = {0, 1, 2, 4};
  size_t at = 5 + (single_segment ? 0 : 1) +
              static_cast<size_t>(kDictionaryBytes[descriptor & 3]);
  int bytes = size_flag == 0 ? (single_segment ? 1 : 0) : 1 << size_flag;
  if (bytes == 0 || at + static_cast<size_t>(bytes) > frame.size()) return -1;
  uint64_t value = 0;
  std::memcpy(&value, frame.data() + at, static_cast<size_t>(bytes));
  if (bytes == 2) value += 256;
  return value > (uint64_t{1} << 40) ? -1 : static_cast<int64_t>(value);
}

}  // namespace

Status Decompress(Compression scheme, Bytes unit, ByteSink* out) {
  if (unit.empty()) return Status::OK();
  auto length = static_cast<int64_t>(unit.size());
  if (scheme == Compression::kNone) return out->Append(unit.data(), length);
  uint64_t declared = 0;
  int64_t growth = 0;
  if (scheme == Compression::kLz4) {
    if (length < 4) return Corruption("LZ4 unit of ", length, " bytes");
    declared = LoadUnaligned<uint32_t>(unit.data());
    unit = unit.subspan(4);
    growth = kLz4Growth;
  } else if (IsBareZstdFrame(unit)) {
    int64_t size = ZstdContentSize(unit);
    if (size < 0) return Corruption("Zstandard frame without a content size");
    declared = static_cast<uint64_t>(size);
    growth = kZstdGrowth;
  } else {
    declared = LoadUnaligned<uint64_t>(unit.data());
    unit = unit.subspan(8);
    growth = kZstdGrowth;
  }
  if (declared / static_cast<uint64_t>(growth) > unit.size()) {
    return Corruption("compressed unit of ", unit.size(), " bytes claims to hold ",
                      declared, " bytes");
  }
  auto size = static_cast<int64_t>(declared);
  if (size == 0) return Status::OK();
  GLAIVE_ASSIGN_OR_RETURN(Codec * codec, CodecFor(scheme));
  GLAIVE_RETURN_NOT_OK(out->Reserve(size));
  auto got = codec->Decompress(static_cast<int64_t>(unit.size()), unit.data(), size,
                               out->tail());
  if (!got.ok()) return Corruption("compressed unit: ", got.status().message());
  if (*got != size) {
    return Corruption("compressed unit holds ", *got, " bytes and claims ", size);
  }
  out->Advance(size);
  return Status::OK();
}

}  // namespace glaive::encoding
