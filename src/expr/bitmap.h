// Helpers for row masks: bit i of word i / 64 belongs to row i; bits past the last row
// are zero.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <vector>

namespace glaive::expr {

using Words = std::vector<uint64_t>;

inline int64_t WordCount(int64_t rows) { return (rows + 63) / 64; }

inline void ClearTail(uint64_t* words, int64_t rows) {
  if (rows % 64 != 0) words[rows / 64] &= (uint64_t{1} << (rows % 64)) - 1;
}

inline void FillMask(uint64_t* words, int64_t rows, bool value) {
  std::fill_n(words, WordCount(rows), value ? ~uint64_t{0} : 0);  // also of no words
  if (value) ClearTail(words, rows);
}

inline int64_t CountMask(const uint64_t* words, int64_t rows) {
  int64_t count = 0;
  for (int64_t w = 0; w < WordCount(rows); ++w) count += std::popcount(words[w]);
  return count;
}

// 64 bits (or `rows`, when fewer are left) of an Arrow bitmap from any bit position; the
// rest zero.
inline uint64_t LoadBits(const uint8_t* bitmap, int64_t bit, int64_t rows) {
  const uint8_t* from = bitmap + bit / 8;
  const int shift = static_cast<int>(bit % 8);
  uint64_t word = 0;
  if (rows >= 64) {
    std::memcpy(&word, from, 8);
    if (shift == 0) return word;
    return (word >> shift) | (static_cast<uint64_t>(from[8]) << (64 - shift));
  }
  const int64_t bytes = (shift + rows + 7) / 8;  // at most 9
  std::memcpy(&word, from, static_cast<size_t>(bytes < 8 ? bytes : 8));
  word >>= shift;
  if (bytes == 9) word |= static_cast<uint64_t>(from[8]) << (64 - shift);
  return rows == 0 ? 0 : word & (~uint64_t{0} >> (64 - rows));
}

// words &= bitmap[offset ...]
inline void AndBitmap(uint64_t* words, int64_t rows, const uint8_t* bitmap,
                      int64_t offset) {
  for (int64_t w = 0; w < WordCount(rows); ++w) {
    words[w] &= LoadBits(bitmap, offset + w * 64, rows - w * 64);
  }
}

inline void CopyBitmap(uint64_t* words, int64_t rows, const uint8_t* bitmap,
                       int64_t offset) {
  for (int64_t w = 0; w < WordCount(rows); ++w) {
    words[w] = LoadBits(bitmap, offset + w * 64, rows - w * 64);
  }
}

// words[i] = test(i), 64 rows at a time, without branches: eight results of 0 or 1 are
// gathered into one byte by a multiplication.
template <typename Test>
inline void FillWith(uint64_t* words, int64_t rows, const Test& test) {
  int64_t row = 0;
  for (; row + 64 <= rows; row += 64) {
    uint8_t results[64];
    for (int i = 0; i < 64; ++i) results[i] = static_cast<uint8_t>(test(row + i));
    uint64_t word = 0;
    for (int i = 0; i < 8; ++i) {
      uint64_t eight = 0;
      std::memcpy(&eight, results + i * 8, 8);
      word |= ((eight * 0x0102040810204080ULL) >> 56) << (i * 8);
    }
    words[row / 64] = word;
  }
  if (row < rows) {
    uint64_t word = 0;
    for (int i = 0; row + i < rows; ++i)
      word |= static_cast<uint64_t>(test(row + i)) << i;
    words[row / 64] = word;
  }
}

}  // namespace glaive::expr
