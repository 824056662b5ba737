#include "index/text/postings.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <utility>

#include "index/text/bit_packing.h"

namespace glaive::text {
namespace {

constexpr size_t kBlock = kPackedValues;
constexpr size_t kBlocksPerGroup = 32;
constexpr float kK1 = 1.2f;
constexpr float kB = 0.75f;

template <typename T>
void PutBytes(T value, std::string* out) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));  // the machine is little-endian, as the format
  out->append(bytes, sizeof(T));
}

// Frequency and length byte of documents that no other one beats in both.
using Frontier = std::vector<std::pair<uint32_t, uint8_t>>;

// Ascending in both; of equal frequencies the shortest document.
Frontier FrontierOf(Frontier pairs) {
  std::sort(pairs.begin(), pairs.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  });
  Frontier best;
  for (const auto& pair : pairs) {
    if (best.empty() || pair.second < best.back().second) best.push_back(pair);
  }
  std::reverse(best.begin(), best.end());
  return best;
}

std::string EncodeImpact(uint32_t last_doc, const Frontier& frontier) {
  std::string out;
  AppendVarint(last_doc, &out);
  AppendVarint(frontier.size(), &out);
  uint32_t frequency = 0, length = 0;
  for (const auto& [f, l] : frontier) {
    // The lowest bit: whether the length grew by more than one.
    const bool jump = l - length != 1;
    AppendVarint(uint64_t{f - frequency - 1} << 1 | (jump ? 1 : 0), &out);
    if (jump) AppendVarint(l - length, &out);
    frequency = f;
    length = l;
  }
  return out;
}

class Encoder {
 public:
  Encoder(const Posting& posting, std::span<const uint32_t> lengths,
          const PartitionStatistics& statistics)
      : posting_(posting), lengths_(lengths) {
    const auto n = static_cast<float>(posting.docs.size());
    const auto all = static_cast<float>(statistics.num_docs);
    idf_ = std::log((all - n + 0.5f) / (n + 0.5f) + 1.0f);
    average_ = static_cast<float>(static_cast<double>(statistics.total_tokens) /
                                  static_cast<double>(statistics.num_docs));
  }

  EncodedPosting Run() && {
    Frontier group;
    size_t position = 0;  // in posting_.position_deltas
    const size_t size = posting_.docs.size();
    for (size_t begin = 0; begin < size; begin += kBlock) {
      const size_t end = std::min(size, begin + kBlock);
      AddBlock(begin, end);
      if (!posting_.position_deltas.empty()) AddPositions(begin, end, &position);
      Frontier frontier = BlockFrontier(begin, end);
      out_.impacts.push_back(EncodeImpact(posting_.docs[end - 1], frontier));
      group.insert(group.end(), frontier.begin(), frontier.end());
      if (end == size || out_.blocks.size() % kBlocksPerGroup == 0) {
        groups_.push_back(EncodeImpact(posting_.docs[end - 1], FrontierOf(group)));
        group.clear();
      }
    }
    for (std::string& each : groups_) out_.impacts.push_back(std::move(each));
    return std::move(out_);
  }

 private:
  float Score(size_t i) const {
    const auto f = static_cast<float>(posting_.frequencies[i]);
    const auto length = static_cast<float>(lengths_[posting_.docs[i]]);
    const float norm = kK1 * (1.0f - kB + kB * length / average_);
    return (kK1 + 1.0f) * f / (f + norm) * idf_;
  }

  void AddBlock(size_t begin, size_t end) {
    float score = 0;
    for (size_t i = begin; i < end; ++i) score = std::max(score, Score(i));
    out_.max_score = std::max(out_.max_score, score);
    std::string block;
    PutBytes(score, &block);
    if (end - begin == kBlock) {
      PutBytes(posting_.docs[begin], &block);
      uint32_t deltas[kBlock] = {0};
      for (size_t i = 1; i < kBlock; ++i) {
        deltas[i] = posting_.docs[begin + i] - posting_.docs[begin + i - 1];
      }
      PackBits(deltas, &block);
      PackBits(posting_.frequencies.subspan(begin).first<kBlock>(), &block);
    } else {
      uint32_t last = 0;
      for (size_t i = begin; i < end; ++i) {
        AppendVarint(posting_.docs[i] - last, &block);
        last = posting_.docs[i];
      }
      for (size_t i = begin; i < end; ++i) {
        AppendVarint(posting_.frequencies[i], &block);
      }
    }
    out_.blocks.push_back(std::move(block));
  }

  void AddPositions(size_t begin, size_t end, size_t* position) {
    out_.position_offsets.push_back(static_cast<uint32_t>(out_.positions.size()));
    size_t count = 0;
    for (size_t i = begin; i < end; ++i) count += posting_.frequencies[i];
    auto deltas = posting_.position_deltas.subspan(*position, count);
    *position += count;
    for (; deltas.size() >= kPackedValues; deltas = deltas.subspan(kPackedValues)) {
      PackBits(deltas.first<kPackedValues>(), &out_.positions);
    }
    for (const uint32_t delta : deltas) AppendVarint(delta, &out_.positions);
  }

  Frontier BlockFrontier(size_t begin, size_t end) const {
    Frontier pairs;
    for (size_t i = begin; i < end; ++i) {
      pairs.emplace_back(posting_.frequencies[i], LengthByte(lengths_[posting_.docs[i]]));
    }
    return FrontierOf(std::move(pairs));
  }

  const Posting& posting_;
  const std::span<const uint32_t> lengths_;
  float idf_ = 0;
  float average_ = 1;
  EncodedPosting out_;
  std::vector<std::string> groups_;
};

}  // namespace

uint8_t LengthByte(uint32_t length) {
  if (length < 8) return static_cast<uint8_t>(length);
  const auto shift = static_cast<uint32_t>(std::bit_width(length)) - 4;
  return static_cast<uint8_t>(((length >> shift) & 7) | (shift + 1) << 3);
}

EncodedPosting EncodePosting(const Posting& posting, std::span<const uint32_t> lengths,
                             const PartitionStatistics& statistics) {
  return Encoder(posting, lengths, statistics).Run();
}

}  // namespace glaive::text
