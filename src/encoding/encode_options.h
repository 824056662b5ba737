// What a field's metadata asks of the encoder, and the facts of the file version it
// writes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace glaive::encoding {

enum class Scheme : uint8_t { kDefault, kNone, kLz4, kZstd, kFsst };
enum class BssMode : uint8_t { kAuto, kOn, kOff };
enum class Structural : uint8_t { kAuto, kMiniBlock, kFullZip };

struct EncodeOptions {
  // The grammar of 2.2: wide chunk words, constant pages, run-length levels, 64-bit
  // dictionaries.
  bool v2_2 = true;
  Scheme compression = Scheme::kDefault;
  std::optional<int> compression_level;
  BssMode bss = BssMode::kAuto;
  std::optional<double> rle_threshold;
  Structural structural = Structural::kAuto;
  int64_t minichunk_bytes = 4096;
  int64_t dict_divisor = 2;
  double dict_size_ratio = 0.8;
  Scheme dict_values = Scheme::kLz4;
  std::optional<int> dict_values_level;

  bool general() const {
    return compression == Scheme::kLz4 || compression == Scheme::kZstd;
  }
};

// Reads the `lance-encoding:*` keys. Values that make no sense are ignored, as in other
// writers.
EncodeOptions ParseEncodeOptions(const std::map<std::string, std::string>& metadata,
                                 bool v2_2);

}  // namespace glaive::encoding
