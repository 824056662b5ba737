#include "index/text/bit_packing.h"

#include <array>
#include <bit>

namespace glaive::text {

void PackBits(std::span<const uint32_t, kPackedValues> values, std::string* out) {
  constexpr size_t kLanes = 4;
  uint32_t all = 0;
  for (const uint32_t value : values) all |= value;
  const auto bits = static_cast<size_t>(std::bit_width(all));
  out->push_back(static_cast<char>(bits));
  std::array<uint64_t, kLanes> open{};  // bits of each lane that are not written yet
  size_t held = 0;                      // how many, in every lane
  for (size_t i = 0; i < kPackedValues; i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      open[lane] |= uint64_t{values[i + lane]} << held;
    }
    held += bits;
    if (held < 32) continue;
    for (uint64_t& word : open) {
      for (int shift = 0; shift < 32; shift += 8) {
        out->push_back(static_cast<char>(word >> shift));
      }
      word >>= 32;
    }
    held -= 32;
  }
}

void AppendVarint(uint64_t value, std::string* out) {
  for (; value >= 0x80; value >>= 7) out->push_back(static_cast<char>(value | 0x80));
  out->push_back(static_cast<char>(value));
}

}  // namespace glaive::text
