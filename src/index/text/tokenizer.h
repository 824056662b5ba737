// Texts to tokens: what is indexed, and looked for.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "base/status.h"
#include "index/text/stemmer.h"
#include "index/text/tokenizer_params.h"

namespace glaive::text {

// A base tokenizer cuts a text; each piece then goes through filters in this order:
// those that are too long go, lower case, stem, stop words go, folding to ASCII. Not
// thread-safe: one for each thread.
class Tokenizer {
 public:
  // Errors of CheckTokenizerParams.
  static Result<std::unique_ptr<Tokenizer>> Make(const TokenizerParams& params);

  // `position`: the number of the piece; those that a filter took leave a gap. All pieces
  // of the ngram tokenizer have position 0. The token is valid during the call.
  using Sink = std::function<void(std::string_view token, uint32_t position)>;
  void Tokenize(std::string_view text, const Sink& sink);

 private:
  enum class Base { kSimple, kWhitespace, kRaw, kNgram };

  explicit Tokenizer(const TokenizerParams& params);
  void Emit(std::string_view piece, uint32_t position, const Sink& sink);
  // Leaves the token in token_; false when a filter takes it.
  bool Filter(std::string_view piece);
  void Words(std::string_view text, const Sink& sink);
  void Ngrams(std::string_view text, const Sink& sink);
  void Lower(std::string_view piece);
  void Stem();
  void Fold();

  const TokenizerParams params_;
  Base base_ = Base::kSimple;
  StemFunction stem_ = nullptr;
  std::unordered_set<std::string_view> stop_words_;
  // What became of pieces that were seen: words come again and again, and stems are
  // dear. Bounded.
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  struct Known {
    bool kept;
    std::string token;
  };
  std::unordered_map<std::string, Known, Hash, std::equal_to<>> known_;
  // Of the piece at work.
  std::string token_;
  std::string folded_;
  std::u32string word_;
};

}  // namespace glaive::text
