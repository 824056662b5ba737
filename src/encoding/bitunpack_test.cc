#include "encoding/bitunpack.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace glaive::encoding {
namespace {

// The packing rule of the format, value by value: an independent model of UnpackBlock.
template <typename T>
std::vector<uint8_t> PackSlowly(const std::vector<T>& values, int width) {
  constexpr int kBits = 8 * sizeof(T);
  constexpr int kLanes = 1024 / kBits;
  constexpr int kOrder[8] = {0, 4, 2, 6, 1, 5, 3, 7};
  std::vector<T> words(static_cast<size_t>(kLanes * width), 0);
  for (int lane = 0; lane < kLanes; ++lane) {
    for (int row = 0; row < kBits; ++row) {
      const T value =
          values[static_cast<size_t>(kOrder[row / 8] * 16 + (row % 8) * 128 + lane)];
      for (int b = 0; b < width; ++b) {
        const int bit = row * width + b;
        if ((value >> b) & 1) {
          T& word = words[static_cast<size_t>(kLanes * (bit / kBits) + lane)];
          word = static_cast<T>(word | static_cast<T>(T{1} << (bit % kBits)));
        }
      }
    }
  }
  std::vector<uint8_t> out(words.size() * sizeof(T));
  if (!out.empty()) std::memcpy(out.data(), words.data(), out.size());
  return out;
}

template <typename T>
void CheckAllWidths() {
  std::mt19937_64 random(7);
  for (int width = 0; width <= static_cast<int>(8 * sizeof(T)); ++width) {
    const T mask = width == 0 ? T{0}
                              : static_cast<T>(~T{0}) >>
                                    (8 * sizeof(T) - static_cast<size_t>(width));
    std::vector<T> values(1024);
    for (T& value : values) value = static_cast<T>(random()) & mask;
    std::vector<uint8_t> packed = PackSlowly(values, width);
    ASSERT_EQ(static_cast<int64_t>(packed.size()), PackedBlockBytes(width));
    packed.insert(packed.begin(), 0xAB);  // any alignment
    std::vector<T> got(1024, static_cast<T>(~T{0}));
    UnpackBlock<T>(packed.data() + 1, width, got.data());
    ASSERT_EQ(got, values) << "width " << width;
    for (int i = 0; i < 1024; ++i) {
      ASSERT_EQ(UnpackValue<T>(packed.data() + 1, width, i),
                values[static_cast<size_t>(i)])
          << "width " << width << " value " << i;
    }
  }
}

TEST(Bitunpack, EveryWidthOf8) { CheckAllWidths<uint8_t>(); }
TEST(Bitunpack, EveryWidthOf16) { CheckAllWidths<uint16_t>(); }
TEST(Bitunpack, EveryWidthOf32) { CheckAllWidths<uint32_t>(); }
TEST(Bitunpack, EveryWidthOf64) { CheckAllWidths<uint64_t>(); }

// Words of the format's own example: 0..1023 at 10 bits in 32-bit words.
TEST(Bitunpack, KnownWords) {
  std::vector<uint32_t> values(1024);
  for (uint32_t i = 0; i < 1024; ++i) values[i] = i;
  std::vector<uint8_t> packed = PackSlowly(values, 10);
  uint32_t words[4];
  std::memcpy(words, packed.data(), sizeof(words));
  EXPECT_EQ(words[0], 0x10020000U);
  EXPECT_EQ(words[1], 0x50120401U);
  EXPECT_EQ(words[2], 0x90220802U);
  EXPECT_EQ(words[3], 0xd0320c03U);
  std::vector<uint32_t> got(1024);
  UnpackBlock<uint32_t>(packed.data(), 10, got.data());
  EXPECT_EQ(got, values);
}

}  // namespace
}  // namespace glaive::encoding
