#include "memwal/sha1.h"

#include <bit>
#include <string>

namespace glaive::memwal {
namespace {

constexpr size_t kBlockBytes = 64;

void AddBlock(const uint8_t* block, std::array<uint32_t, 5>* state) {
  std::array<uint32_t, 80> w;
  for (size_t i = 0; i < 16; ++i) {
    w[i] = uint32_t{block[4 * i]} << 24 | uint32_t{block[4 * i + 1]} << 16 |
           uint32_t{block[4 * i + 2]} << 8 | uint32_t{block[4 * i + 3]};
  }
  for (size_t i = 16; i < w.size(); ++i) {
    w[i] = std::rotl(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
  }
  auto [a, b, c, d, e] = *state;
  for (size_t i = 0; i < w.size(); ++i) {
    uint32_t f, k;
    if (i < 20) {
      f = (b & c) | (~b & d);
      k = 0x5a827999;
    } else if (i < 40) {
      f = b ^ c ^ d;
      k = 0x6ed9eba1;
    } else if (i < 60) {
      f = (b & c) | (b & d) | (c & d);
      k = 0x8f1bbcdc;
    } else {
      f = b ^ c ^ d;
      k = 0xca62c1d6;
    }
    const uint32_t next = std::rotl(a, 5) + f + e + k + w[i];
    e = d;
    d = c;
    c = std::rotl(b, 30);
    b = a;
    a = next;
  }
  (*state)[0] += a;
  (*state)[1] += b;
  (*state)[2] += c;
  (*state)[3] += d;
  (*state)[4] += e;
}

}  // namespace

std::array<uint8_t, 20> Sha1(std::string_view prefix, std::string_view rest) {
  std::string message;
  message.reserve(prefix.size() + rest.size() + 2 * kBlockBytes);
  message += prefix;
  message += rest;
  const uint64_t bits = uint64_t{message.size()} * 8;
  message += '\x80';
  while (message.size() % kBlockBytes != kBlockBytes - 8) message += '\0';
  for (int shift = 56; shift >= 0; shift -= 8) {
    message += static_cast<char>(bits >> shift);
  }
  std::array<uint32_t, 5> state = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476,
                                   0xc3d2e1f0};
  for (size_t at = 0; at < message.size(); at += kBlockBytes) {
    AddBlock(reinterpret_cast<const uint8_t*>(message.data()) + at, &state);
  }
  std::array<uint8_t, 20> digest;
  for (size_t i = 0; i < digest.size(); ++i) {
    digest[i] = static_cast<uint8_t>(state[i / 4] >> (24 - 8 * (i % 4)));
  }
  return digest;
}

}  // namespace glaive::memwal
