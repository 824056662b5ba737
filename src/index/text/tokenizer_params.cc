#include "index/text/tokenizer_params.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <nlohmann/json.hpp>

#include "format/inverted_index.pb.h"
#include "index/text/stemmer.h"

namespace glaive::text {
namespace {

using Json = nlohmann::ordered_json;

// Members of one object, as far as they are what they must be.
class Members {
 public:
  explicit Members(const Json& object) : object_(object) {}

  template <typename T>
  void Take(const char* key, T* out) {
    const auto found = object_.find(key);
    if (found == object_.end()) return;
    if (!Read(*found, out) && wrong_ == nullptr) wrong_ = key;
  }
  const char* wrong() const { return wrong_; }

 private:
  static bool Read(const Json& value, bool* out) {
    if (!value.is_boolean()) return false;
    *out = value.get<bool>();
    return true;
  }
  static bool Read(const Json& value, std::string* out) {
    if (!value.is_string()) return false;
    *out = value.get<std::string>();
    return true;
  }
  static bool Read(const Json& value, uint64_t* out) {
    if (!value.is_number_unsigned()) return false;
    *out = value.get<uint64_t>();
    return true;
  }
  static bool Read(const Json& value, uint32_t* out) {
    uint64_t wide = 0;
    if (!Read(value, &wide) || wide > std::numeric_limits<uint32_t>::max()) return false;
    *out = static_cast<uint32_t>(wide);
    return true;
  }
  template <typename T>
  static bool Read(const Json& value, std::vector<T>* out) {
    if (!value.is_array()) return false;
    for (const Json& item : value) {
      if (!Read(item, &out->emplace_back())) return false;
    }
    return true;
  }
  template <typename T>
  static bool Read(const Json& value, std::optional<T>* out) {
    if (value.is_null()) {
      out->reset();
      return true;
    }
    return Read(value, &out->emplace());
  }

  const Json& object_;
  const char* wrong_ = nullptr;
};

bool IsBaseTokenizer(std::string_view name) {
  return name == "simple" || name == "whitespace" || name == "raw" || name == "ngram";
}

}  // namespace

Result<TokenizerParams> ParseTokenizerParams(std::string_view json) {
  const Json object = Json::parse(json.begin(), json.end(), nullptr, false);
  if (!object.is_object()) {
    return Corruption("the params of a full-text index are no JSON object");
  }
  TokenizerParams params;
  Members members(object);
  members.Take("lance_tokenizer", &params.lance_tokenizer);
  members.Take("base_tokenizer", &params.base_tokenizer);
  members.Take("language", &params.language);
  members.Take("with_position", &params.with_position);
  members.Take("max_token_length", &params.max_token_length);
  members.Take("lower_case", &params.lower_case);
  members.Take("stem", &params.stem);
  members.Take("remove_stop_words", &params.remove_stop_words);
  members.Take("custom_stop_words", &params.custom_stop_words);
  members.Take("ascii_folding", &params.ascii_folding);
  members.Take("min_ngram_length", &params.min_ngram_length);
  members.Take("max_ngram_length", &params.max_ngram_length);
  members.Take("prefix_only", &params.prefix_only);
  members.Take("block_size", &params.block_size);
  members.Take("split_identifiers", &params.split_identifiers);
  members.Take("split_on_numerics", &params.split_on_numerics);
  members.Take("preserve_original", &params.preserve_original);
  members.Take("index_operators", &params.index_operators);
  if (members.wrong() != nullptr) {
    return Corruption("the params of a full-text index have a wrong value for ",
                      members.wrong());
  }
  return params;
}

std::string ToJson(const TokenizerParams& params) {
  const auto optional = [](const auto& value) { return value ? Json(*value) : Json(); };
  Json object;
  object["lance_tokenizer"] = optional(params.lance_tokenizer);
  object["base_tokenizer"] = params.base_tokenizer;
  object["language"] = params.language;
  object["with_position"] = params.with_position;
  object["max_token_length"] = optional(params.max_token_length);
  object["lower_case"] = params.lower_case;
  object["stem"] = params.stem;
  object["remove_stop_words"] = params.remove_stop_words;
  object["custom_stop_words"] = optional(params.custom_stop_words);
  object["ascii_folding"] = params.ascii_folding;
  object["min_ngram_length"] = params.min_ngram_length;
  object["max_ngram_length"] = params.max_ngram_length;
  object["prefix_only"] = params.prefix_only;
  object["block_size"] = params.block_size;
  object["split_identifiers"] = params.split_identifiers;
  object["split_on_numerics"] = params.split_on_numerics;
  object["preserve_original"] = params.preserve_original;
  object["index_operators"] = params.index_operators;
  return object.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<std::optional<TokenizerParams>> ParamsOfDetails(
    const lance::table::InvertedIndexDetails& details) {
  if (!details.has_base_tokenizer()) return std::nullopt;
  TokenizerParams params;
  params.base_tokenizer = details.base_tokenizer();
  const Json language = Json::parse(details.language(), nullptr, false);
  if (!language.is_string()) {
    return Corruption("the details of a full-text index name no language");
  }
  params.language = language.get<std::string>();
  params.with_position = details.with_position();
  params.max_token_length.reset();
  if (details.has_max_token_length()) {
    params.max_token_length = details.max_token_length();
  }
  params.lower_case = details.lower_case();
  params.stem = details.stem();
  params.remove_stop_words = details.remove_stop_words();
  params.ascii_folding = details.ascii_folding();
  params.min_ngram_length = details.min_ngram_length();
  params.max_ngram_length = details.max_ngram_length();
  params.prefix_only = details.prefix_only();
  if (details.has_block_size()) params.block_size = details.block_size();
  return params;
}

lance::table::InvertedIndexDetails ToDetails(const TokenizerParams& params) {
  lance::table::InvertedIndexDetails details;
  details.set_base_tokenizer(params.base_tokenizer);
  details.set_language(Json(params.language).dump());
  details.set_with_position(params.with_position);
  if (params.max_token_length) {
    details.set_max_token_length(static_cast<uint32_t>(std::min<uint64_t>(
        *params.max_token_length, std::numeric_limits<uint32_t>::max())));
  }
  details.set_lower_case(params.lower_case);
  details.set_stem(params.stem);
  details.set_remove_stop_words(params.remove_stop_words);
  details.set_ascii_folding(params.ascii_folding);
  details.set_min_ngram_length(params.min_ngram_length);
  details.set_max_ngram_length(params.max_ngram_length);
  details.set_prefix_only(params.prefix_only);
  details.set_block_size(static_cast<uint32_t>(params.block_size));
  details.set_posting_format_version(kTextIndexVersion);
  return details;
}

Status CheckTokenizerParams(const TokenizerParams& params) {
  if (params.lance_tokenizer && *params.lance_tokenizer != "text") {
    return NotSupported("full-text indices with the tokenizer '", *params.lance_tokenizer,
                        "'");
  }
  if (!IsBaseTokenizer(params.base_tokenizer)) {
    return NotSupported("full-text indices with the base tokenizer '",
                        params.base_tokenizer,
                        "'; those that are built: simple, whitespace, raw, ngram");
  }
  if ((params.stem || params.remove_stop_words) && !IsLanguage(params.language)) {
    return NotSupported("stems and stop words of the language '", params.language, "'");
  }
  if (params.base_tokenizer == "ngram") {
    if (params.min_ngram_length == 0) {
      return InvalidInput("min_ngram_length must be greater than 0");
    }
    if (params.min_ngram_length > params.max_ngram_length) {
      return InvalidInput("min_ngram_length ", params.min_ngram_length,
                          " is greater than max_ngram_length ", params.max_ngram_length);
    }
  }
  return Status::OK();
}

}  // namespace glaive::text
