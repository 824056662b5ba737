#include "index/text/bit_packing.h"

#include <array>
#include <random>
#include <string>

#include <gtest/gtest.h>

namespace glaive::text {
namespace {

using Values = std::array<uint32_t, kPackedValues>;

// Bit by bit, as the format is described.
Values Unpack(const std::string& bytes) {
  const auto bits = static_cast<size_t>(static_cast<unsigned char>(bytes[0]));
  EXPECT_EQ(bytes.size(), 1 + 16 * bits);
  Values values{};
  for (size_t i = 0; i < kPackedValues; ++i) {
    for (size_t bit = 0; bit < bits; ++bit) {
      const size_t place = i / 4 * bits + bit;  // in the lane
      const size_t byte = 1 + (place / 32 * 4 + i % 4) * 4 + place % 32 / 8;
      if (bytes[byte] >> (place % 8) & 1) values[i] |= 1u << bit;
    }
  }
  return values;
}

TEST(BitPacking, EveryWidth) {
  std::mt19937 rng(7);
  for (uint32_t bits = 0; bits <= 32; ++bits) {
    Values values{};
    for (uint32_t& value : values) {
      value = bits == 0 ? 0 : static_cast<uint32_t>(rng()) >> (32 - bits);
    }
    if (bits > 0) values[17] |= 1u << (bits - 1);
    std::string bytes;
    PackBits(values, &bytes);
    EXPECT_EQ(static_cast<unsigned char>(bytes[0]), bits);
    EXPECT_EQ(Unpack(bytes), values);
  }
}

TEST(BitPacking, Varints) {
  std::string bytes;
  AppendVarint(0, &bytes);
  AppendVarint(127, &bytes);
  AppendVarint(128, &bytes);
  AppendVarint(UINT64_MAX, &bytes);
  EXPECT_EQ(bytes,
            std::string("\0\x7f\x80\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 14));
}

}  // namespace
}  // namespace glaive::text
