#include "expr/blake.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace glaive::expr {
namespace {

// Square roots of the first primes, as in SHA-2.
constexpr std::array<uint64_t, 8> kWideStart = {
    0x6a09e667f3bcc908, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b, 0xa54ff53a5f1d36f1,
    0x510e527fade682d1, 0x9b05688c2b3e6c1f, 0x1f83d9abfb41bd6b, 0x5be0cd19137e2179};

template <typename Word>
constexpr std::array<Word, 8> Start() {
  std::array<Word, 8> start{};
  for (size_t i = 0; i < 8; ++i) {
    start[i] = static_cast<Word>(kWideStart[i] >> (64 - 8 * sizeof(Word)));
  }
  return start;
}

// In which order the rounds of BLAKE2 take the words of a block.
constexpr std::array<std::array<uint8_t, 16>, 10> kOrders = {{
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
    {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
    {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4},
    {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
    {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13},
    {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
    {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11},
    {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
    {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5},
    {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0},
}};

template <typename Word>
using State = std::array<Word, 16>;

template <typename Word>
constexpr std::array<int, 4> Rotations() {
  if constexpr (sizeof(Word) == 8) {
    return {32, 24, 16, 63};
  } else {
    return {16, 12, 8, 7};
  }
}

template <typename Word>
void Mix(State<Word>& v, size_t a, size_t b, size_t c, size_t d, Word x, Word y) {
  constexpr std::array<int, 4> kRotations = Rotations<Word>();
  v[a] = static_cast<Word>(v[a] + v[b] + x);
  v[d] = std::rotr(static_cast<Word>(v[d] ^ v[a]), kRotations[0]);
  v[c] = static_cast<Word>(v[c] + v[d]);
  v[b] = std::rotr(static_cast<Word>(v[b] ^ v[c]), kRotations[1]);
  v[a] = static_cast<Word>(v[a] + v[b] + y);
  v[d] = std::rotr(static_cast<Word>(v[d] ^ v[a]), kRotations[2]);
  v[c] = static_cast<Word>(v[c] + v[d]);
  v[b] = std::rotr(static_cast<Word>(v[b] ^ v[c]), kRotations[3]);
}

// Columns, then diagonals; word(i) is the i-th word that the round takes.
template <typename Word, typename Take>
void Round(State<Word>& v, const Take& word) {
  for (size_t i = 0; i < 4; ++i) {
    Mix(v, i, 4 + i, 8 + i, 12 + i, word(2 * i), word(2 * i + 1));
  }
  for (size_t i = 0; i < 4; ++i) {
    Mix(v, i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4, word(8 + 2 * i),
        word(9 + 2 * i));
  }
}

template <typename Word>
State<Word> LoadBlock(std::string_view bytes) {
  State<Word> words{};
  for (size_t i = 0; i < bytes.size(); ++i) {
    words[i / sizeof(Word)] |= static_cast<Word>(static_cast<unsigned char>(bytes[i]))
                               << (8 * (i % sizeof(Word)));
  }
  return words;
}

template <typename Word, size_t kWords>
void Store(const std::array<Word, kWords>& words, size_t count, std::string* out) {
  for (size_t i = 0; i < count * sizeof(Word); ++i) {
    out->push_back(
        static_cast<char>(words[i / sizeof(Word)] >> (8 * (i % sizeof(Word)))));
  }
}

template <typename Word>
void Blake2(std::string_view data, int rounds, std::string* out) {
  constexpr size_t kBlock = 16 * sizeof(Word);
  const std::array<Word, 8> start = Start<Word>();
  std::array<Word, 8> h = start;
  // No key, and the length of the digest.
  h[0] ^= static_cast<Word>(0x01010000 ^ (8 * sizeof(Word)));
  size_t at = 0;
  bool last = false;
  do {
    const std::string_view block = data.substr(at, kBlock);
    at += block.size();
    last = at == data.size();
    const State<Word> m = LoadBlock<Word>(block);
    State<Word> v{};
    std::copy(h.begin(), h.end(), v.begin());
    std::copy(start.begin(), start.end(), v.begin() + 8);
    v[12] ^= static_cast<Word>(at);
    if constexpr (sizeof(Word) == 4) v[13] ^= static_cast<Word>(uint64_t{at} >> 32);
    if (last) v[14] = static_cast<Word>(~v[14]);
    for (int r = 0; r < rounds; ++r) {
      const auto& order = kOrders[static_cast<size_t>(r) % kOrders.size()];
      Round(v, [&](size_t i) { return m[order[i]]; });
    }
    for (size_t i = 0; i < 8; ++i) h[i] ^= v[i] ^ v[i + 8];
  } while (!last);
  Store(h, 8, out);
}

// BLAKE3: a tree over chunks of 1,024 bytes.
constexpr size_t kChunk = 1024;
constexpr size_t kSmallBlock = 64;
constexpr uint32_t kChunkStart = 1;
constexpr uint32_t kChunkEnd = 2;
constexpr uint32_t kParent = 4;
constexpr uint32_t kRoot = 8;
using Chain = std::array<uint32_t, 8>;

State<uint32_t> Compress(const Chain& chain, State<uint32_t> m, uint64_t counter,
                         uint32_t length, uint32_t flags) {
  static constexpr std::array<uint8_t, 16> kNext = {2, 6,  3,  10, 7, 0,  4,  13,
                                                    1, 11, 12, 5,  9, 14, 15, 8};
  constexpr std::array<uint32_t, 8> kStart = Start<uint32_t>();
  State<uint32_t> v{};
  std::copy(chain.begin(), chain.end(), v.begin());
  std::copy(kStart.begin(), kStart.begin() + 4, v.begin() + 8);
  v[12] = static_cast<uint32_t>(counter);
  v[13] = static_cast<uint32_t>(counter >> 32);
  v[14] = length;
  v[15] = flags;
  for (int r = 0; r < 7; ++r) {
    Round(v, [&](size_t i) { return m[i]; });
    State<uint32_t> next{};
    for (size_t i = 0; i < 16; ++i) next[i] = m[kNext[i]];
    m = next;
  }
  for (size_t i = 0; i < 8; ++i) {
    v[i] ^= v[i + 8];
    v[i + 8] ^= chain[i];
  }
  return v;
}

Chain FirstHalf(const State<uint32_t>& v) {
  Chain chain{};
  std::copy(v.begin(), v.begin() + 8, chain.begin());
  return chain;
}

Chain OfChunk(std::string_view chunk, uint64_t counter, uint32_t root) {
  Chain chain = Start<uint32_t>();
  size_t at = 0;
  bool last = false;
  do {
    const std::string_view block = chunk.substr(at, kSmallBlock);
    uint32_t flags = at == 0 ? kChunkStart : 0;
    at += block.size();
    last = at == chunk.size();
    if (last) flags |= kChunkEnd | root;
    chain = FirstHalf(Compress(chain, LoadBlock<uint32_t>(block), counter,
                               static_cast<uint32_t>(block.size()), flags));
  } while (!last);
  return chain;
}

Chain OfParent(const Chain& left, const Chain& right, uint32_t root) {
  State<uint32_t> block{};
  std::copy(left.begin(), left.end(), block.begin());
  std::copy(right.begin(), right.end(), block.begin() + 8);
  return FirstHalf(Compress(Start<uint32_t>(), block, 0, kSmallBlock, kParent | root));
}

}  // namespace

void AppendBlake2b(std::string_view data, std::string* out) {
  Blake2<uint64_t>(data, 12, out);
}

void AppendBlake2s(std::string_view data, std::string* out) {
  Blake2<uint32_t>(data, 10, out);
}

void AppendBlake3(std::string_view data, std::string* out) {
  // Subtrees that are complete, from the largest; a number with n trailing zeros closes n
  // of them.
  std::vector<Chain> open;
  uint64_t counter = 0;
  while (data.size() > kChunk) {
    Chain chain = OfChunk(data.substr(0, kChunk), counter++, 0);
    data.remove_prefix(kChunk);
    for (uint64_t total = counter; total % 2 == 0; total /= 2) {
      chain = OfParent(open.back(), chain, 0);
      open.pop_back();
    }
    open.push_back(chain);
  }
  Chain chain = OfChunk(data, counter, open.empty() ? kRoot : 0);
  while (!open.empty()) {
    chain = OfParent(open.back(), chain, open.size() == 1 ? kRoot : 0);
    open.pop_back();
  }
  Store(chain, 8, out);
}

}  // namespace glaive::expr
