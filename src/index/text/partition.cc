#include "index/text/partition.h"

#include <algorithm>
#include <limits>

#include "index/text/bit_packing.h"

namespace glaive::text {
namespace {

constexpr uint32_t kMax = std::numeric_limits<uint32_t>::max();
// What a token costs beside its lists: nodes of the table, the list itself.
constexpr int64_t kTokenBytes = 160;

// Reads what AppendVarint wrote.
class Varints {
 public:
  explicit Varints(const std::string& bytes) : at_(bytes.data()) {}
  uint32_t Next() {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(*at_++);
      value |= uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) return static_cast<uint32_t>(value);
    }
  }

 private:
  const char* at_;
};

}  // namespace

Result<Partition> Partition::Make(const TokenizerParams& params) {
  GLAIVE_ASSIGN_OR_RETURN(auto tokenizer, Tokenizer::Make(params));
  return Partition(params, std::move(tokenizer));
}

uint32_t Partition::IndexOf(std::string_view token) {
  const auto found = tokens_.find(token);
  if (found != tokens_.end()) return found->second;
  const auto index = static_cast<uint32_t>(lists_.size());
  tokens_.emplace(token, index);
  lists_.emplace_back();
  size_bytes_ += kTokenBytes + static_cast<int64_t>(token.size());
  return index;
}

Status Partition::Add(uint64_t row, std::string_view text) {
  found_.clear();
  tokenizer_->Tokenize(text, [&](std::string_view token, uint32_t position) {
    found_.emplace_back(IndexOf(token), position);
  });
  if (found_.empty()) return Status::OK();
  if (rows_.size() >= kMax || lists_.size() >= kMax || found_.size() >= kMax) {
    return ResourceExhausted("a partition of a full-text index holds at most ", kMax,
                             " documents, tokens, and tokens of a document");
  }
  const auto doc = static_cast<uint32_t>(rows_.size());
  // Each token's positions are together then, in order.
  std::sort(found_.begin(), found_.end());
  for (size_t i = 0; i < found_.size();) {
    const uint32_t index = found_[i].first;
    List& list = lists_[index];
    const size_t before = list.docs.capacity() + list.positions.capacity();
    uint32_t frequency = 0, last = 0;
    for (; i < found_.size() && found_[i].first == index; ++i, ++frequency) {
      if (!params_.with_position) continue;
      AppendVarint(found_[i].second - last, &list.positions);
      last = found_[i].second;
    }
    AppendVarint(doc - list.last_doc, &list.docs);
    AppendVarint(frequency, &list.docs);
    list.last_doc = doc;
    ++list.num_docs;
    list.num_positions += frequency;
    size_bytes_ +=
        static_cast<int64_t>(list.docs.capacity() + list.positions.capacity() - before);
  }
  rows_.push_back(row);
  lengths_.push_back(static_cast<uint32_t>(found_.size()));
  total_tokens_ += found_.size();
  size_bytes_ += static_cast<int64_t>(sizeof(uint64_t) + sizeof(uint32_t));
  return Status::OK();
}

std::vector<Partition::TokenList> Partition::SortedTokens() const {
  std::vector<TokenList> sorted;
  sorted.reserve(tokens_.size());
  for (const auto& [token, index] : tokens_) sorted.push_back({token, index});
  std::sort(sorted.begin(), sorted.end(),
            [](const TokenList& a, const TokenList& b) { return a.token < b.token; });
  return sorted;
}

EncodedPosting Partition::Encode(uint32_t index) const {
  const List& list = lists_[index];
  std::vector<uint32_t> docs(list.num_docs), frequencies(list.num_docs), deltas;
  Varints pairs(list.docs);
  uint32_t doc = 0;
  for (size_t i = 0; i < docs.size(); ++i) {
    doc += pairs.Next();
    docs[i] = doc;
    frequencies[i] = pairs.Next();
  }
  if (params_.with_position) {
    Varints positions(list.positions);
    deltas.resize(list.num_positions);
    for (uint32_t& delta : deltas) delta = positions.Next();
  }
  return EncodePosting({docs, frequencies, deltas}, lengths_, statistics());
}

}  // namespace glaive::text
