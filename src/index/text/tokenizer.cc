#include "index/text/tokenizer.h"

#include <algorithm>
#include <vector>

#include "expr/utf8_text.h"
#include "index/text/characters.h"
#include "index/text/stop_words.h"

namespace glaive::text {
namespace {

constexpr size_t kMaxKnown = size_t{1} << 15;
constexpr size_t kMaxKnownBytes = 40;

bool IsAscii(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

}  // namespace

Result<std::unique_ptr<Tokenizer>> Tokenizer::Make(const TokenizerParams& params) {
  GLAIVE_RETURN_NOT_OK(CheckTokenizerParams(params));
  return std::unique_ptr<Tokenizer>(new Tokenizer(params));
}

Tokenizer::Tokenizer(const TokenizerParams& params) : params_(params) {
  if (params.base_tokenizer == "whitespace") base_ = Base::kWhitespace;
  if (params.base_tokenizer == "raw") base_ = Base::kRaw;
  if (params.base_tokenizer == "ngram") base_ = Base::kNgram;
  if (params.stem) stem_ = FindStemmer(params.language);
  if (!params.remove_stop_words) return;
  if (params_.custom_stop_words) {
    stop_words_.insert(params_.custom_stop_words->begin(),
                       params_.custom_stop_words->end());
  } else {
    const auto words = StopWords(params.language);
    stop_words_.insert(words.begin(), words.end());
  }
}

void Tokenizer::Tokenize(std::string_view text, const Sink& sink) {
  switch (base_) {
    case Base::kRaw:
      return Emit(text, 0, sink);
    case Base::kNgram:
      return Ngrams(text, sink);
    default:
      return Words(text, sink);
  }
}

void Tokenizer::Words(std::string_view text, const Sink& sink) {
  const auto belongs = [&](char32_t c) {
    return base_ == Base::kSimple ? IsAlphanumeric(c) : !IsSeparator(c);
  };
  uint32_t words = 0;
  size_t begin = std::string_view::npos;  // of the word that goes on
  for (size_t at = 0; at < text.size(); at += expr::CharBytes(text, at)) {
    if (belongs(expr::DecodeChar(text, at))) {
      begin = std::min(begin, at);
    } else if (begin != std::string_view::npos) {
      Emit(text.substr(begin, at - begin), words++, sink);
      begin = std::string_view::npos;
    }
  }
  if (begin != std::string_view::npos) Emit(text.substr(begin), words, sink);
}

void Tokenizer::Ngrams(std::string_view text, const Sink& sink) {
  std::vector<size_t> starts;  // of characters, and the end
  for (size_t at = 0; at < text.size(); at += expr::CharBytes(text, at)) {
    starts.push_back(at);
  }
  const size_t characters = starts.size();
  starts.push_back(text.size());
  const size_t last = params_.prefix_only ? std::min<size_t>(1, characters) : characters;
  for (size_t from = 0; from < last; ++from) {
    const size_t longest = std::min<size_t>(params_.max_ngram_length, characters - from);
    for (size_t size = params_.min_ngram_length; size <= longest; ++size) {
      Emit(text.substr(starts[from], starts[from + size] - starts[from]), 0, sink);
    }
  }
}

void Tokenizer::Emit(std::string_view piece, uint32_t position, const Sink& sink) {
  if (params_.max_token_length && piece.size() >= *params_.max_token_length) return;
  if (const auto found = known_.find(piece); found != known_.end()) {
    if (found->second.kept) sink(found->second.token, position);
    return;
  }
  const bool kept = Filter(piece);
  if (kept) sink(token_, position);
  if (piece.size() > kMaxKnownBytes) return;
  if (known_.size() >= kMaxKnown) known_.clear();
  known_.emplace(piece, Known{kept, kept ? token_ : std::string()});
}

bool Tokenizer::Filter(std::string_view piece) {
  if (params_.lower_case) {
    Lower(piece);
  } else {
    token_.assign(piece);
  }
  if (stem_ != nullptr) Stem();
  if (!stop_words_.empty() && stop_words_.contains(token_)) return false;
  if (params_.ascii_folding && !IsAscii(token_)) Fold();
  return true;
}

void Tokenizer::Lower(std::string_view piece) {
  token_.clear();
  for (size_t at = 0; at < piece.size(); at += expr::CharBytes(piece, at)) {
    AppendLower(expr::DecodeChar(piece, at), &token_);
  }
}

void Tokenizer::Stem() {
  word_.clear();
  for (size_t at = 0; at < token_.size(); at += expr::CharBytes(token_, at)) {
    word_.push_back(expr::DecodeChar(token_, at));
  }
  stem_(&word_);
  token_.clear();
  for (const char32_t c : word_) expr::AppendChar(c, &token_);
}

void Tokenizer::Fold() {
  folded_.clear();
  for (size_t at = 0; at < token_.size(); at += expr::CharBytes(token_, at)) {
    const char32_t c = expr::DecodeChar(token_, at);
    const std::string_view ascii = c < 0x80 ? std::string_view() : FoldToAscii(c);
    if (ascii.empty()) {
      expr::AppendChar(c, &folded_);
    } else {
      folded_ += ascii;
    }
  }
  token_.swap(folded_);
}

}  // namespace glaive::text
