// How a full-text index makes tokens of texts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace lance::table {
class InvertedIndexDetails;
}

namespace glaive::text {

// Of the format, as it is written here.
inline constexpr int kTextIndexVersion = 2;
inline constexpr uint64_t kTextBlockSize = 128;

// With upstream's defaults. What the code analyser adds is kept, so that it can be named.
struct TokenizerParams {
  std::optional<std::string> lance_tokenizer;  // "text" or "json"
  std::string base_tokenizer = "simple";
  std::string language = "English";
  bool with_position = false;
  std::optional<uint64_t> max_token_length = 40;  // in bytes; tokens of so many go
  bool lower_case = true;
  bool stem = true;
  bool remove_stop_words = true;
  std::optional<std::vector<std::string>> custom_stop_words;
  bool ascii_folding = true;
  uint32_t min_ngram_length = 3;
  uint32_t max_ngram_length = 3;
  bool prefix_only = false;
  uint64_t block_size = kTextBlockSize;  // of posting lists
  bool split_identifiers = false;
  bool split_on_numerics = false;
  bool preserve_original = false;
  bool index_operators = false;

  bool operator==(const TokenizerParams&) const = default;
};

// The value of `params` in an index file: keys that are missing have their default,
// unknown ones are passed over. Corruption: no such JSON, or values of wrong types.
Result<TokenizerParams> ParseTokenizerParams(std::string_view json);

// The same text as upstream writes it: every key, in its order.
std::string ToJson(const TokenizerParams& params);

// What an index entry of a manifest says; nullopt when it says nothing, as those of old
// writers. Custom stop words are never in it. Corruption.
Result<std::optional<TokenizerParams>> ParamsOfDetails(
    const lance::table::InvertedIndexDetails& details);

// The entry of an index of version 2 with these settings.
lance::table::InvertedIndexDetails ToDetails(const TokenizerParams& params);

// NotSupported, by name: tokenizers that are not built; InvalidInput: values that no
// tokenizer takes.
Status CheckTokenizerParams(const TokenizerParams& params);

}  // namespace glaive::text
