// Words of the JSONB layout, shared by its two directions.
#pragma once

#include <cstdint>

namespace glaive::encoding::jsonb {

inline constexpr int kMaxDepth = 200;

// Container headers: kind in the top bits, number of entries below.
inline constexpr uint32_t kArray = 0x80000000;
inline constexpr uint32_t kObject = 0x40000000;
inline constexpr uint32_t kScalar = 0x20000000;
inline constexpr uint32_t kHeaderKind = 0xE0000000;
inline constexpr uint32_t kHeaderCount = 0x1FFFFFFF;

// Entries: type in the top nibble, payload length below.
inline constexpr uint32_t kNullEntry = 0x00000000;
inline constexpr uint32_t kStringEntry = 0x10000000;
inline constexpr uint32_t kNumberEntry = 0x20000000;
inline constexpr uint32_t kFalseEntry = 0x30000000;
inline constexpr uint32_t kTrueEntry = 0x40000000;
inline constexpr uint32_t kContainerEntry = 0x50000000;
inline constexpr uint32_t kEntryType = 0xF0000000;
inline constexpr uint32_t kEntryLength = 0x0FFFFFFF;

// First byte of a number's payload; the rest is big-endian in as few bytes as hold the
// value.
enum NumberTag : uint8_t {
  kZero = 0x00,
  kNan = 0x10,
  kInfinity = 0x20,
  kNegativeInfinity = 0x30,
  kInt = 0x40,
  kUint = 0x50,
  kFloat = 0x60,
};

}  // namespace glaive::encoding::jsonb
