// Unpacks blocks of 1024 bit-packed integers in the interleaved (FastLanes) order.
//
// Layout: docs/format/codecs.md, section "Order of packed bits".
#pragma once

#include <cstdint>

#include "encoding/bitpack.h"

namespace glaive::encoding {

inline constexpr int64_t kPackedBlockValues = kBitpackBlock;

// `in` holds PackedBlockBytes(width) bytes, any alignment; `out` takes 1024 values.
// T: uint8_t, uint16_t, uint32_t, uint64_t; 0 <= width <= bits of T.
template <typename T>
void UnpackBlock(const uint8_t* in, int width, T* out);

// Value `index` (0..1023) of a packed block.
template <typename T>
T UnpackValue(const uint8_t* in, int width, int index);

extern template void UnpackBlock<uint8_t>(const uint8_t*, int, uint8_t*);
extern template void UnpackBlock<uint16_t>(const uint8_t*, int, uint16_t*);
extern template void UnpackBlock<uint32_t>(const uint8_t*, int, uint32_t*);
extern template void UnpackBlock<uint64_t>(const uint8_t*, int, uint64_t*);
extern template uint8_t UnpackValue<uint8_t>(const uint8_t*, int, int);
extern template uint16_t UnpackValue<uint16_t>(const uint8_t*, int, int);
extern template uint32_t UnpackValue<uint32_t>(const uint8_t*, int, int);
extern template uint64_t UnpackValue<uint64_t>(const uint8_t*, int, int);

}  // namespace glaive::encoding
