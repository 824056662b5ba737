// 128 integers in as many bits each as the largest one needs, in four lanes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace glaive::text {

inline constexpr size_t kPackedValues = 128;

// Appends a byte with the number of bits, 0 to 32, and 16 bytes per bit. Value i is in
// lane i % 4, in the order of i there, lowest bit first; the lanes are words of 32 bits
// that take turns.
void PackBits(std::span<const uint32_t, kPackedValues> values, std::string* out);

void AppendVarint(uint64_t value, std::string* out);

}  // namespace glaive::text
