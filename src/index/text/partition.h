// One partition of a full-text index, gathered in memory.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/status.h"
#include "index/text/postings.h"
#include "index/text/tokenizer.h"

namespace glaive::text {

// Not thread-safe. Lists of documents are kept as bytes of varying length, some two per
// token of a text.
class Partition {
 public:
  // Errors of Tokenizer::Make.
  static Result<Partition> Make(const TokenizerParams& params);

  // Rows in ascending order. A text without tokens is no document.
  // ResourceExhausted: more documents, tokens or positions than the format can count.
  Status Add(uint64_t row, std::string_view text);

  const TokenizerParams& params() const { return params_; }
  bool empty() const { return rows_.empty(); }
  // About what is held.
  int64_t size_bytes() const { return size_bytes_; }

  // By the number of the document.
  const std::vector<uint64_t>& rows() const { return rows_; }
  const std::vector<uint32_t>& lengths() const { return lengths_; }
  PartitionStatistics statistics() const { return {rows_.size(), total_tokens_}; }

  // Tokens in ascending order of their bytes.
  struct TokenList {
    std::string_view token;
    uint32_t index;
  };
  std::vector<TokenList> SortedTokens() const;
  // The list of a token, by its index.
  EncodedPosting Encode(uint32_t index) const;
  uint32_t NumDocs(uint32_t index) const { return lists_[index].num_docs; }

 private:
  struct List {
    std::string docs;       // differences and frequencies, in turn
    std::string positions;  // differences within a document
    uint32_t last_doc = 0;
    uint32_t num_docs = 0;
    uint64_t num_positions = 0;
  };

  Partition(const TokenizerParams& params, std::unique_ptr<Tokenizer> tokenizer)
      : params_(params), tokenizer_(std::move(tokenizer)) {}

  uint32_t IndexOf(std::string_view token);

  TokenizerParams params_;
  std::unique_ptr<Tokenizer> tokenizer_;
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  std::unordered_map<std::string, uint32_t, Hash, std::equal_to<>> tokens_;
  std::vector<List> lists_;  // by index
  std::vector<uint64_t> rows_;
  std::vector<uint32_t> lengths_;
  uint64_t total_tokens_ = 0;
  int64_t size_bytes_ = 0;
  // Tokens of the text at work: index and position.
  std::vector<std::pair<uint32_t, uint32_t>> found_;
};

}  // namespace glaive::text
