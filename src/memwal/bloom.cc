#include "memwal/bloom.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string_view>

#include <arrow/array.h>
#include <arrow/type.h>

namespace glaive::memwal {
namespace {

static_assert(std::endian::native == std::endian::little,
              "the filter file is little-endian");

// SipHash with one round per word, three at the end, and a key of zeros.
class SipHash13 {
 public:
  void Update(const void* data, size_t size) {
    const auto* p = static_cast<const uint8_t*>(data);
    length_ += size;
    while (size > 0) {
      const size_t taken = std::min(size, 8 - filled_);
      uint64_t word = 0;
      std::memcpy(&word, p, taken);
      tail_ |= word << (8 * filled_);
      filled_ += taken;
      p += taken;
      size -= taken;
      if (filled_ < 8) return;
      Absorb(tail_);
      tail_ = 0;
      filled_ = 0;
    }
  }
  void UpdateByte(uint8_t byte) { Update(&byte, 1); }

  uint64_t Finish() {
    Absorb(tail_ | (length_ & 0xFF) << 56);
    v2_ ^= 0xFF;
    for (int i = 0; i < 3; ++i) Round();
    return v0_ ^ v1_ ^ v2_ ^ v3_;
  }

 private:
  void Absorb(uint64_t word) {
    v3_ ^= word;
    Round();
    v0_ ^= word;
  }
  void Round() {
    v0_ += v1_;
    v1_ = std::rotl(v1_, 13) ^ v0_;
    v0_ = std::rotl(v0_, 32);
    v2_ += v3_;
    v3_ = std::rotl(v3_, 16) ^ v2_;
    v0_ += v3_;
    v3_ = std::rotl(v3_, 21) ^ v0_;
    v2_ += v1_;
    v1_ = std::rotl(v1_, 17) ^ v2_;
    v2_ = std::rotl(v2_, 32);
  }

  uint64_t v0_ = 0x736f6d6570736575;
  uint64_t v1_ = 0x646f72616e646f6d;
  uint64_t v2_ = 0x6c7967656e657261;
  uint64_t v3_ = 0x7465646279746573;
  uint64_t tail_ = 0;
  size_t filled_ = 0;
  uint64_t length_ = 0;
};

bool IsHashed(arrow::Type::type type) {
  return type == arrow::Type::INT32 || type == arrow::Type::INT64 ||
         type == arrow::Type::STRING || type == arrow::Type::BINARY;
}

template <typename ArrayType>
void UpdateNumbers(const arrow::Array& array, int64_t begin, int64_t count,
                   SipHash13* hashes) {
  const auto& values = static_cast<const ArrayType&>(array);
  for (int64_t i = 0; i < count; ++i) {
    if (values.IsNull(begin + i)) continue;
    const auto value = values.Value(begin + i);
    hashes[i].Update(&value, sizeof(value));
  }
}

// Feeds rows [begin, begin + count) of one key column.
void UpdateColumn(const arrow::Array& array, int64_t begin, int64_t count,
                  SipHash13* hashes) {
  for (int64_t i = 0; i < count; ++i) {
    hashes[i].UpdateByte(array.IsNull(begin + i) ? 1 : 0);
  }
  switch (array.type_id()) {
    case arrow::Type::INT32:
      return UpdateNumbers<arrow::Int32Array>(array, begin, count, hashes);
    case arrow::Type::INT64:
      return UpdateNumbers<arrow::Int64Array>(array, begin, count, hashes);
    case arrow::Type::STRING:
    case arrow::Type::BINARY: {
      const bool text = array.type_id() == arrow::Type::STRING;
      const auto& values = static_cast<const arrow::BinaryArray&>(array);
      for (int64_t i = 0; i < count; ++i) {
        if (values.IsNull(begin + i)) continue;
        const std::string_view value = values.GetView(begin + i);
        if (!text) {
          const uint64_t size = value.size();
          hashes[i].Update(&size, sizeof(size));
        }
        hashes[i].Update(value.data(), value.size());
        if (text) hashes[i].UpdateByte(0xFF);
      }
      return;
    }
    default:
      return;  // upstream feeds nothing of these
  }
}

constexpr uint64_t kBlocks = KeyBloom::kBytes / 32;
constexpr uint32_t kSalts[8] = {0x47b6137b, 0x44974d91, 0x8824ad5b, 0xa2b7289d,
                                0x705495c7, 0x2df1424b, 0x9efc4947, 0x5c6bfb31};

uint64_t BlockOf(uint64_t hash) { return ((hash >> 32) * kBlocks) >> 32; }
uint32_t MaskOf(uint64_t hash, int word) {
  return uint32_t{1} << ((static_cast<uint32_t>(hash) * kSalts[word]) >> 27);
}

}  // namespace

Result<KeyBloom> KeyBloom::Parse(std::span<const uint8_t> bytes) {
  if (bytes.size() != static_cast<size_t>(kBytes)) {
    return Corruption(kBloomFile, " has ", bytes.size(), " bytes instead of ", kBytes);
  }
  KeyBloom bloom;
  std::memcpy(bloom.words_.data(), bytes.data(), bytes.size());
  return bloom;
}

void KeyBloom::Insert(std::span<const std::shared_ptr<arrow::Array>> columns) {
  if (columns.empty()) return;
  constexpr int64_t kBatch = 256;
  SipHash13 hashes[kBatch];
  const int64_t rows = columns[0]->length();
  for (int64_t begin = 0; begin < rows; begin += kBatch) {
    const int64_t count = std::min(kBatch, rows - begin);
    std::fill_n(hashes, count, SipHash13());
    for (const auto& column : columns) UpdateColumn(*column, begin, count, hashes);
    for (int64_t i = 0; i < count; ++i) {
      const uint64_t hash = hashes[i].Finish();
      uint32_t* block = words_.data() + 8 * BlockOf(hash);
      for (int w = 0; w < 8; ++w) block[w] |= MaskOf(hash, w);
    }
  }
}

void KeyBloom::InsertKeyless() {
  const uint64_t hash = SipHash13().Finish();
  uint32_t* block = words_.data() + 8 * BlockOf(hash);
  for (int w = 0; w < 8; ++w) block[w] |= MaskOf(hash, w);
}

bool KeyBloom::MayContain(std::span<const std::shared_ptr<arrow::Array>> columns,
                          int64_t row) const {
  const uint64_t hash = BloomHash(columns, row);
  const uint32_t* block = words_.data() + 8 * BlockOf(hash);
  for (int w = 0; w < 8; ++w) {
    if ((block[w] & MaskOf(hash, w)) == 0) return false;
  }
  return true;
}

std::vector<uint8_t> KeyBloom::ToBytes() const {
  std::vector<uint8_t> bytes(static_cast<size_t>(kBytes));
  std::memcpy(bytes.data(), words_.data(), bytes.size());
  return bytes;
}

bool CanPrune(std::span<const std::shared_ptr<arrow::DataType>> key_types) {
  return !key_types.empty() &&
         std::all_of(key_types.begin(), key_types.end(),
                     [](const auto& type) { return IsHashed(type->id()); });
}

uint64_t BloomHash(std::span<const std::shared_ptr<arrow::Array>> columns, int64_t row) {
  SipHash13 hasher;
  for (const auto& column : columns) UpdateColumn(*column, row, 1, &hasher);
  return hasher.Finish();
}

}  // namespace glaive::memwal
