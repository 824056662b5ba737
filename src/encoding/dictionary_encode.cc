// A sample decides whether counting is worth it; a hash table then numbers the distinct
// values.
#include "encoding/dictionary_encode.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string_view>
#include <unordered_set>
#include <vector>

#include <arrow/array/data.h>
#include <arrow/type.h>

#include "encoding/block_encode.h"
#include "encoding/out_bytes.h"

namespace glaive::encoding {
namespace {

constexpr int64_t kMinValues = 100;
constexpr int64_t kMaxItems = 100000;
constexpr int64_t kSampleBlocks = 32;
constexpr int64_t kSampleSize = 4096;
constexpr int64_t kMinSample = 1024;
constexpr double kMaxUniqueRatio = 0.98;

uint64_t Mix(uint64_t x) {
  x ^= x >> 32;
  x *= 0x9E3779B97F4A7C15ull;
  x ^= x >> 29;
  x *= 0xBF58476D1CE4E5B9ull;
  return x ^ x >> 32;
}

uint64_t HashBytes(std::string_view bytes) {
  uint64_t hash = bytes.size() * 0x9E3779B97F4A7C15ull;
  const char* at = bytes.data();
  size_t left = bytes.size();
  for (; left >= 8; left -= 8, at += 8) {
    uint64_t word;
    std::memcpy(&word, at, 8);
    hash = Mix(hash ^ word);
  }
  if (left > 0) {
    uint64_t word = 0;
    std::memcpy(&word, at, left);
    hash = Mix(hash ^ word);
  }
  return hash;
}

// Open addressing; numbers values in order of first appearance, `get(i)` gives value i.
template <typename Get>
class Numbering {
 public:
  // `expected`: so many different values need no growing.
  explicit Numbering(Get get, int64_t expected = 512)
      : get_(get), slots_(std::bit_ceil(static_cast<size_t>(2 * expected)), kEmpty) {
    hashes_.reserve(static_cast<size_t>(expected));
    first_.reserve(static_cast<size_t>(expected));
  }

  uint32_t Number(int64_t i) {
    const std::string_view value = get_(i);
    const uint64_t hash = HashBytes(value);
    for (size_t at = hash & (slots_.size() - 1);; at = (at + 1) & (slots_.size() - 1)) {
      const uint32_t number = slots_[at];
      if (number == kEmpty) return Insert(i, hash, at);
      if (hashes_[number] == hash && get_(first_[number]) == value) return number;
    }
  }
  // Where each value first appeared.
  const std::vector<int64_t>& first() const { return first_; }

 private:
  static constexpr uint32_t kEmpty = UINT32_MAX;

  uint32_t Insert(int64_t i, uint64_t hash, size_t at) {
    const uint32_t number = static_cast<uint32_t>(first_.size());
    first_.push_back(i);
    hashes_.push_back(hash);
    slots_[at] = number;
    if (first_.size() * 2 > slots_.size()) Grow();
    return number;
  }

  void Grow() {
    slots_.assign(slots_.size() * 2, kEmpty);
    for (uint32_t n = 0; n < hashes_.size(); ++n) {
      size_t at = hashes_[n] & (slots_.size() - 1);
      while (slots_[at] != kEmpty) at = (at + 1) & (slots_.size() - 1);
      slots_[at] = n;
    }
  }

  Get get_;
  std::vector<uint32_t> slots_;
  std::vector<uint64_t> hashes_;
  std::vector<int64_t> first_;
};

// False when a sample shows that nearly all values differ, or that too many would.
template <typename Get>
bool SampleLooksGood(Get get, int64_t count, int64_t threshold) {
  const int64_t sample = std::min(count, kSampleSize);
  if (sample < kMinSample) return true;
  const int64_t per_block = sample / kSampleBlocks;
  Numbering numbering(get, sample);
  int64_t seen = 0;
  for (int64_t b = 0; b < kSampleBlocks; ++b) {
    const int64_t first = (count - per_block) * b / (kSampleBlocks - 1);
    for (int64_t i = first; i < first + per_block; ++i, ++seen) numbering.Number(i);
  }
  const int64_t distinct = static_cast<int64_t>(numbering.first().size());
  const double ratio = static_cast<double>(distinct) / static_cast<double>(seen);
  if (ratio >= kMaxUniqueRatio) return false;
  // With few repeats the number of distinct values grows with the number of values.
  if (ratio > 0.5 &&
      ratio * static_cast<double>(count) > static_cast<double>(threshold)) {
    return false;
  }
  return true;
}

// Numbers all values; `item_bytes(i)` is what an item costs. Returns false when it does
// not pay.
template <typename Get, typename ItemBytes>
bool NumberAll(Get get, ItemBytes item_bytes, int64_t count, int64_t raw_bytes,
               const EncodeOptions& options, OutBytes* indices,
               std::vector<int64_t>* first) {
  const int64_t threshold = std::min(count / options.dict_divisor, kMaxItems);
  if (count < kMinValues || threshold <= 0) return false;
  if (!SampleLooksGood(get, count, threshold)) return false;
  const int64_t limit =
      static_cast<int64_t>(options.dict_size_ratio * static_cast<double>(raw_bytes));
  int64_t size = count * static_cast<int64_t>(sizeof(uint32_t));
  if (size > limit) return false;
  uint32_t* to = reinterpret_cast<uint32_t*>(
      indices->Extend(static_cast<size_t>(count) * sizeof(uint32_t)));
  Numbering numbering(get);
  for (int64_t i = 0; i < count; ++i) {
    const size_t before = numbering.first().size();
    to[i] = numbering.Number(i);
    if (numbering.first().size() == before) continue;
    size += item_bytes(i);
    if (size > limit || static_cast<int64_t>(before) >= threshold) return false;
  }
  *first = numbering.first();
  return true;
}

FixedValues MakeIndices(OutBytes* bytes, int64_t count) {
  FixedValues out;
  out.bits = 32;
  out.count = count;
  out.pieces.push_back(bytes->Finish());
  return out;
}

template <typename Items>
Status FinishDictionary(const Items& items, const EncodeOptions& options,
                        PageDictionary* out) {
  OutBytes bytes;
  GLAIVE_RETURN_NOT_OK(EncodeDictionaryItems(items, options, &bytes, &out->encoding));
  out->bytes = bytes.Finish();
  out->num_items = items.count;
  return Status::OK();
}

}  // namespace

Result<std::optional<DictionaryValues>> TryDictionary(const FixedValues& values,
                                                      const EncodeOptions& options) {
  if (!(values.bits == 128 || (values.bits == 64 && options.v2_2))) return std::nullopt;
  const auto buffer = values.Contiguous();
  const char* bytes = reinterpret_cast<const char*>(buffer->data());
  const size_t width = static_cast<size_t>(values.byte_width());
  const auto get = [bytes, width](int64_t i) {
    return std::string_view(bytes + static_cast<size_t>(i) * width, width);
  };
  OutBytes indices;
  std::vector<int64_t> first;
  if (!NumberAll(
          get, [width](int64_t) { return static_cast<int64_t>(width); }, values.count,
          values.num_bytes(), options, &indices, &first)) {
    return std::nullopt;
  }
  FixedValues items;
  items.bits = values.bits;
  items.count = static_cast<int64_t>(first.size());
  OutBytes item_bytes(first.size() * width);
  for (int64_t i : first) item_bytes.Append(get(i).data(), width);
  items.pieces.push_back(item_bytes.Finish());
  DictionaryValues out;
  out.indices = MakeIndices(&indices, values.count);
  GLAIVE_RETURN_NOT_OK(FinishDictionary(items, options, &out.dictionary));
  return out;
}

Result<std::optional<DictionaryValues>> TryDictionary(const VariableValues& values,
                                                      const EncodeOptions& options) {
  const auto get = [&values](int64_t i) { return values.value(i); };
  const int64_t offset_bytes = values.offset_bytes();
  OutBytes indices;
  std::vector<int64_t> first;
  if (!NumberAll(
          get, [&](int64_t i) { return values.length(i) + offset_bytes; }, values.count,
          values.num_bytes() + values.count * offset_bytes, options, &indices, &first)) {
    return std::nullopt;
  }
  VariableValues items;
  items.large = values.large;
  items.binary = values.binary;
  items.count = static_cast<int64_t>(first.size());
  OutBytes bytes;
  items.offsets.push_back(0);
  for (int64_t i : first) {
    bytes.Append(values.value(i).data(), values.value(i).size());
    items.offsets.push_back(static_cast<int64_t>(bytes.size()));
  }
  items.owners.push_back(bytes.Finish());
  items.bytes = items.owners.back()->data();
  DictionaryValues out;
  out.indices = MakeIndices(&indices, values.count);
  GLAIVE_RETURN_NOT_OK(FinishDictionary(items, options, &out.dictionary));
  return out;
}

Result<PageDictionary> EncodeArrowDictionary(const arrow::ArrayData& items,
                                             const EncodeOptions& options) {
  PageDictionary out;
  const Segment all[1] = {{&items, items.offset, items.length}};
  const int64_t bits = FixedBits(*items.type);
  if (bits > 0) {
    GLAIVE_ASSIGN_OR_RETURN(FixedValues values, GatherFixed(all, bits));
    GLAIVE_RETURN_NOT_OK(FinishDictionary(values, options, &out));
  } else {
    GLAIVE_ASSIGN_OR_RETURN(VariableValues values, GatherVariable(all));
    GLAIVE_RETURN_NOT_OK(FinishDictionary(values, options, &out));
  }
  return out;
}

}  // namespace glaive::encoding
