// Packs unsigned integers into blocks of 1,024 in the interleaved ("FastLanes") order.
//
// Layout: docs/format/file.md, section "Bit packing". Pure functions, thread-safe.
#pragma once

#include <cstdint>

namespace glaive::encoding {

inline constexpr int64_t kBitpackBlock = 1024;

// Bytes of a packed block of values of `width` bits, whatever the word type.
constexpr int64_t PackedBlockBytes(int width) { return 128 * width; }

// Bits needed for the largest of `count` values; 0 when all are zero.
template <typename T>
int MaxBitWidth(const T* values, int64_t count);

// Packs exactly kBitpackBlock values whose width is at most `width` (0 to 8 * sizeof(T))
// into PackedBlockBytes(width) bytes. T: uint8_t, uint16_t, uint32_t or uint64_t.
template <typename T>
void PackBlock(const T* values, int width, uint8_t* out);

// As above for fewer values; the rest of the block is zero.
template <typename T>
void PackPartialBlock(const T* values, int64_t count, int width, uint8_t* out);

}  // namespace glaive::encoding
