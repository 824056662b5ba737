// Block form of integers and strings: levels of a chunk, dictionary items, all-null
// levels.
#pragma once

#include <cstdint>
#include <span>

#include "base/status.h"
#include "encoding/encode_options.h"
#include "encoding/out_bytes.h"
#include "encoding/values.h"
#include "format/encodings21.pb.h"

namespace glaive::encoding {

// One encoding for all levels of a page, applied chunk by chunk.
class LevelCodec {
 public:
  // Chosen from the whole page. `allow_rle`: the grammar of 2.2.
  static LevelCodec Choose(std::span<const uint16_t> levels, bool allow_rle);
  // The bit-packed or raw form, whose size per chunk is bounded by that of the page's
  // width.
  static LevelCodec ChooseWithoutRle(std::span<const uint16_t> levels) {
    return Choose(levels, false);
  }

  bool is_rle() const { return kind_ == Kind::kRle; }
  void Append(std::span<const uint16_t> levels, OutBytes* out) const;
  void Describe(lance::encodings21::CompressiveEncoding* out) const;

 private:
  enum class Kind : uint8_t { kFlat, kInline, kOutOfLine, kRle };
  Kind kind_ = Kind::kFlat;
  int width_ = 16;
};

// Items of a dictionary page, in the most compact form that readers accept there.
Status EncodeDictionaryItems(const FixedValues& items, const EncodeOptions& options,
                             OutBytes* out,
                             lance::encodings21::CompressiveEncoding* encoding);
Status EncodeDictionaryItems(const VariableValues& items, const EncodeOptions& options,
                             OutBytes* out,
                             lance::encodings21::CompressiveEncoding* encoding);

}  // namespace glaive::encoding
