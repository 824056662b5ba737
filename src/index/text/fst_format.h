// Constants of the format that the builder and the reader of token maps share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace glaive::text {

inline constexpr uint64_t kFstVersion = 3;
inline constexpr size_t kFstHeaderBytes = 16;  // version and type
inline constexpr size_t kFstFooterBytes = 20;  // keys, root, checksum
// Addresses: of the empty final node, which is not written, and of none.
inline constexpr uint64_t kFstEmptyFinal = 0;
inline constexpr uint64_t kFstNone = 1;

// State bytes.
inline constexpr uint8_t kFstOneNext = 0xC0;
inline constexpr uint8_t kFstOne = 0x80;
inline constexpr uint8_t kFstFinal = 0x40;
inline constexpr uint8_t kFstLowBits = 0x3F;
// Nodes with more transitions have an index of 256 bytes.
inline constexpr size_t kFstIndexFrom = 32;

// Inputs that fit into the state byte: number i + 1 stands for character i.
inline constexpr std::string_view kFstCommonInputs =
    "te/oasripcnw.hlm-du012g=:bf3y5&_4v9678k%?xCDASFIBEjPTzRNM+LOqHGW";
inline constexpr size_t kFstNumCommon = 63;

// As the last four bytes have it, over everything before them.
uint32_t FstChecksum(std::span<const uint8_t> bytes);

}  // namespace glaive::text
