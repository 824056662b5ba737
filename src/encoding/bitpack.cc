// The packing loops: one row of lanes at a time, so that the compiler can use vector
// registers.
#include "encoding/bitpack.h"

#include <bit>
#include <cstring>
#include <limits>

namespace glaive::encoding {
namespace {

constexpr int kOrder[8] = {0, 4, 2, 6, 1, 5, 3, 7};

}  // namespace

template <typename T>
int MaxBitWidth(const T* values, int64_t count) {
  T all = 0;
  if (count == kBitpackBlock) {
    // A known count lets the compiler use vector registers.
    for (int64_t i = 0; i < kBitpackBlock; ++i) all = static_cast<T>(all | values[i]);
  } else {
    for (int64_t i = 0; i < count; ++i) all = static_cast<T>(all | values[i]);
  }
  return std::bit_width(all);
}

template <typename T>
void PackBlock(const T* values, int width, uint8_t* out) {
  constexpr int kBits = std::numeric_limits<T>::digits;
  constexpr int kLanes = static_cast<int>(kBitpackBlock) / kBits;
  if (width == 0) return;
  // Words under construction: `low` collects one row of lanes until its word is full.
  T low[kLanes] = {};
  int word = 0;
  int used = 0;  // bits of `low` already taken
  for (int row = 0; row < kBits; ++row) {
    const T* in = values + kOrder[row / 8] * 16 + (row % 8) * 128;
    for (int lane = 0; lane < kLanes; ++lane) {
      low[lane] = static_cast<T>(low[lane] | static_cast<T>(in[lane] << used));
    }
    used += width;
    if (used < kBits) continue;
    std::memcpy(out + static_cast<size_t>(word) * sizeof(low), low, sizeof(low));
    ++word;
    used -= kBits;
    const int taken = width - used;  // bits of this row that the finished word holds
    if (used == 0) {
      std::memset(low, 0, sizeof(low));
    } else {
      for (int lane = 0; lane < kLanes; ++lane)
        low[lane] = static_cast<T>(in[lane] >> taken);
    }
  }
}

template <typename T>
void PackPartialBlock(const T* values, int64_t count, int width, uint8_t* out) {
  T block[kBitpackBlock];
  std::memcpy(block, values, static_cast<size_t>(count) * sizeof(T));
  std::memset(block + count, 0, static_cast<size_t>(kBitpackBlock - count) * sizeof(T));
  PackBlock(block, width, out);
}

#define GLAIVE_INSTANTIATE(T)                          \
  template int MaxBitWidth<T>(const T*, int64_t);      \
  template void PackBlock<T>(const T*, int, uint8_t*); \
  template void PackPartialBlock<T>(const T*, int64_t, int, uint8_t*);
GLAIVE_INSTANTIATE(uint8_t)
GLAIVE_INSTANTIATE(uint16_t)
GLAIVE_INSTANTIATE(uint32_t)
GLAIVE_INSTANTIATE(uint64_t)
#undef GLAIVE_INSTANTIATE

}  // namespace glaive::encoding
