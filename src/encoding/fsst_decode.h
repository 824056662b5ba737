// Expands strings compressed with a static symbol table (FSST).
//
// Layout: docs/format/codecs.md.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "base/status.h"
#include "encoding/value_sink.h"

namespace glaive::encoding {

// Immutable once parsed.
class FsstTable {
 public:
  // Bytes of a serialised table.
  static constexpr int64_t kSerialisedBytes = 2312;
  // A code expands to at most this many bytes; the output of Expand needs that much
  // slack.
  static constexpr int64_t kMaxSymbolBytes = 8;

  static Result<FsstTable> Parse(std::string_view serialised);

  // False when values are stored as they are.
  bool compressed() const { return compressed_; }
  // Expands `codes` at `out`, which has room for kMaxSymbolBytes * (codes.size() + 1)
  // bytes. Returns the number of bytes written, or -1 when the codes are not of this
  // table.
  int64_t Expand(Bytes codes, uint8_t* out) const;

 private:
  bool compressed_ = false;
  int num_symbols_ = 0;
  std::array<uint64_t, 256> symbols_{};
  std::array<uint8_t, 256> lengths_{};  // 0: no such symbol
};

}  // namespace glaive::encoding
