#include "encoding/bitunpack.h"

#include <cstring>
#include <limits>
#include <type_traits>

namespace glaive::encoding {
namespace {

constexpr int kOrder[8] = {0, 4, 2, 6, 1, 5, 3, 7};

template <typename T>
constexpr T MaskOf(int width) {
  return width >= std::numeric_limits<T>::digits ? std::numeric_limits<T>::max()
                                                 : static_cast<T>((T{1} << width) - 1);
}

template <typename T>
T Load(const uint8_t* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

}  // namespace

// The inner loops run over lanes that are contiguous in memory with one shift for all of
// them, so the compiler turns them into vector code.
template <typename T>
void UnpackBlock(const uint8_t* in, int width, T* out) {
  constexpr int kBits = std::numeric_limits<T>::digits;
  constexpr int kLanes = 1024 / kBits;
  constexpr int kRowBytes = 128;  // kLanes words
  if (width == 0) {
    std::memset(out, 0, 1024 * sizeof(T));
    return;
  }
  const T mask = MaskOf<T>(width);
  for (int row = 0; row < kBits; ++row) {
    const int bit = row * width;
    const int shift = bit % kBits;
    const uint8_t* __restrict low = in + (bit / kBits) * kRowBytes;
    T* __restrict to = out + kOrder[row / 8] * 16 + (row % 8) * 128;
    if (shift + width <= kBits) {
      for (int lane = 0; lane < kLanes; ++lane) {
        T value = Load<T>(low + lane * static_cast<int>(sizeof(T)));
        to[lane] = static_cast<T>(static_cast<T>(value >> shift) & mask);
      }
    } else {
      const uint8_t* __restrict high = low + kRowBytes;
      const int up = kBits - shift;
      for (int lane = 0; lane < kLanes; ++lane) {
        T value = Load<T>(low + lane * static_cast<int>(sizeof(T)));
        T next = Load<T>(high + lane * static_cast<int>(sizeof(T)));
        to[lane] = static_cast<T>(
            (static_cast<T>(value >> shift) | static_cast<T>(next << up)) & mask);
      }
    }
  }
}

template <typename T>
T UnpackValue(const uint8_t* in, int width, int index) {
  constexpr int kBits = std::numeric_limits<T>::digits;
  constexpr int kLanes = 1024 / kBits;
  if (width == 0) return 0;
  // index = order[row / 8] * 16 + (row % 8) * 128 + lane, with lane < kLanes; the low
  // seven bits hold order * 16 + lane. `order` takes the values kOrder[0 .. kBits / 8), a
  // lane spans the rest.
  const int rest = index % 128;
  const int lane = rest % kLanes;
  int group = 0;
  while (kOrder[group] * 16 != rest - lane) ++group;
  const int row = group * 8 + index / 128;
  const int bit = row * width;
  const int shift = bit % kBits;
  const uint8_t* low = in + (bit / kBits) * 128 + lane * static_cast<int>(sizeof(T));
  auto value = static_cast<T>(Load<T>(low) >> shift);
  if (shift + width > kBits) {
    value = static_cast<T>(value | static_cast<T>(Load<T>(low + 128) << (kBits - shift)));
  }
  return static_cast<T>(value & MaskOf<T>(width));
}

template void UnpackBlock<uint8_t>(const uint8_t*, int, uint8_t*);
template void UnpackBlock<uint16_t>(const uint8_t*, int, uint16_t*);
template void UnpackBlock<uint32_t>(const uint8_t*, int, uint32_t*);
template void UnpackBlock<uint64_t>(const uint8_t*, int, uint64_t*);
template uint8_t UnpackValue<uint8_t>(const uint8_t*, int, int);
template uint16_t UnpackValue<uint16_t>(const uint8_t*, int, int);
template uint32_t UnpackValue<uint32_t>(const uint8_t*, int, int);
template uint64_t UnpackValue<uint64_t>(const uint8_t*, int, int);

}  // namespace glaive::encoding
