// Keys of rows, out of any number of columns of any type, in a form to hash and compare.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include <arrow/type_fwd.h>

#include "base/status.h"

namespace glaive::exec {

// The keys of one batch. Either `words` or `views` counts, as KeyCodec::fixed says.
// Moving a batch keeps its views valid.
struct KeyBatch {
  int64_t rows = 0;
  const uint64_t* words = nullptr;      // one per row
  std::vector<std::string_view> views;  // one per row
  std::vector<uint8_t> is_null;         // one per row; empty: none

  bool IsNull(int64_t i) const {
    return !is_null.empty() && is_null[static_cast<size_t>(i)] != 0;
  }

  // What `words` and `views` point into.
  std::vector<uint64_t> own_words;
  std::vector<char> own_bytes;
  std::vector<std::shared_ptr<arrow::Array>> arrays;
};

inline uint64_t MixWords(uint64_t a, uint64_t b) {
  const auto product = static_cast<unsigned __int128>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

inline uint64_t HashWord(uint64_t key, uint64_t seed) {
  return MixWords(key ^ seed ^ 0x9E3779B97F4A7C15u, 0xD6E8FEB86659FD93u);
}

inline uint64_t HashBytes(std::string_view key, uint64_t seed) {
  constexpr uint64_t kA = 0x9E3779B97F4A7C15u;
  constexpr uint64_t kB = 0xC2B2AE3D27D4EB4Fu;
  const auto load8 = [](const char* p) {
    uint64_t v;
    std::memcpy(&v, p, 8);
    return v;
  };
  const char* p = key.data();
  size_t left = key.size();
  uint64_t state = seed ^ MixWords(key.size() ^ kA, kB);
  for (; left > 16; left -= 16, p += 16) {
    state = MixWords(load8(p) ^ kA, load8(p + 8) ^ state);
  }
  uint64_t low = 0, high = 0;
  if (left >= 8) {
    low = load8(p);
    high = load8(p + left - 8);
  } else if (left >= 4) {
    uint32_t a, b;
    std::memcpy(&a, p, 4);
    std::memcpy(&b, p + left - 4, 4);
    low = a;
    high = b;
  } else if (left > 0) {
    const auto byte = [p](size_t i) { return uint64_t{static_cast<uint8_t>(p[i])}; };
    low = byte(0) << 16 | byte(left / 2) << 8 | byte(left - 1);
  }
  return MixWords(low ^ kB, high ^ state ^ kA);
}

// Immutable; thread-safe.
class KeyCodec {
 public:
  KeyCodec() = default;
  // The key columns in order. NotSupported names a column whose type makes no key.
  static Result<KeyCodec> Make(std::vector<std::shared_ptr<arrow::Field>> fields);

  const std::vector<std::shared_ptr<arrow::Field>>& fields() const { return fields_; }
  // One column of at most 8 bytes: keys are words.
  bool fixed() const { return fixed_; }

  // `columns`: arrays of the types of fields(), of one length.
  Result<KeyBatch> Decode(
      const std::vector<std::shared_ptr<arrow::Array>>& columns) const;

  // "a = 1, b = 'x'" for errors, of row `row` of such columns.
  std::string Describe(const std::vector<std::shared_ptr<arrow::Array>>& columns,
                       int64_t row) const;

 private:
  std::vector<std::shared_ptr<arrow::Field>> fields_;
  bool fixed_ = false;
};

}  // namespace glaive::exec
