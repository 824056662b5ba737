// Parses the encoder hints of a field's metadata.
#include "encoding/encode_options.h"

#include <charconv>
#include <cstdlib>
#include <string_view>

namespace glaive::encoding {
namespace {

using Metadata = std::map<std::string, std::string>;

std::optional<std::string> Find(const Metadata& metadata, std::string_view key) {
  auto it = metadata.find("lance-encoding:" + std::string(key));
  if (it == metadata.end()) return std::nullopt;
  return it->second;
}

std::optional<int64_t> FindInt(const Metadata& metadata, std::string_view key) {
  auto text = Find(metadata, key);
  if (!text) return std::nullopt;
  int64_t value = 0;
  auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc() || end != text->data() + text->size()) return std::nullopt;
  return value;
}

std::optional<double> FindDouble(const Metadata& metadata, std::string_view key) {
  auto text = Find(metadata, key);
  if (!text) return std::nullopt;
  double value = 0;
  auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc() || end != text->data() + text->size()) return std::nullopt;
  return value;
}

Scheme ParseScheme(const std::optional<std::string>& text, Scheme fallback) {
  if (!text) return fallback;
  if (*text == "none") return Scheme::kNone;
  if (*text == "lz4") return Scheme::kLz4;
  if (*text == "zstd") return Scheme::kZstd;
  if (*text == "fsst") return Scheme::kFsst;
  return fallback;
}

}  // namespace

EncodeOptions ParseEncodeOptions(const Metadata& metadata, bool v2_2) {
  EncodeOptions out;
  out.v2_2 = v2_2;
  out.compression = ParseScheme(Find(metadata, "compression"), Scheme::kDefault);
  if (auto level = FindInt(metadata, "compression-level");
      level && *level >= 0 && *level <= 22) {
    out.compression_level = static_cast<int>(*level);
  }
  if (auto bss = Find(metadata, "bss")) {
    out.bss = *bss == "on"    ? BssMode::kOn
              : *bss == "off" ? BssMode::kOff
                              : BssMode::kAuto;
  }
  if (auto threshold = FindDouble(metadata, "rle-threshold");
      threshold && *threshold >= 0) {
    out.rle_threshold = threshold;
  }
  if (auto layout = Find(metadata, "structural-encoding")) {
    out.structural = *layout == "miniblock" ? Structural::kMiniBlock
                     : *layout == "fullzip" ? Structural::kFullZip
                                            : Structural::kAuto;
  }
  if (auto bytes = FindInt(metadata, "minichunk-size");
      bytes && *bytes >= 16 && *bytes <= 32768) {
    out.minichunk_bytes = *bytes;
  }
  if (auto divisor = FindInt(metadata, "dict-divisor"); divisor && *divisor > 0) {
    out.dict_divisor = *divisor;
  }
  if (auto ratio = FindDouble(metadata, "dict-size-ratio");
      ratio && *ratio > 0 && *ratio <= 1) {
    out.dict_size_ratio = *ratio;
  }
  out.dict_values = ParseScheme(Find(metadata, "dict-values-compression"), Scheme::kLz4);
  if (auto level = FindInt(metadata, "dict-values-compression-level");
      level && *level >= 0 && *level <= 22) {
    out.dict_values_level = static_cast<int>(*level);
  }
  return out;
}

}  // namespace glaive::encoding
