// The bloom filter file of a generation: a split-block filter over SipHash-1-3 of keys.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <arrow/type_fwd.h>

#include "base/status.h"

namespace glaive::memwal {

inline constexpr char kBloomFile[] = "bloom_filter.bin";

// As upstream's writer builds it, byte for byte: for types other than int32, int64, Utf8
// and Binary it feeds only the null flag, so that such filters say nothing (CanPrune).
class KeyBloom {
 public:
  static constexpr int64_t kBytes = 32768;
  KeyBloom() : words_(kBytes / 4) {}
  // Corruption unless it has kBytes.
  static Result<KeyBloom> Parse(std::span<const uint8_t> bytes);
  // `columns`: of one length, in key order.
  void Insert(std::span<const std::shared_ptr<arrow::Array>> columns);
  // Rows of a table without a key, which are all the same to it.
  void InsertKeyless();
  bool MayContain(std::span<const std::shared_ptr<arrow::Array>> columns,
                  int64_t row) const;
  std::vector<uint8_t> ToBytes() const;

 private:
  std::vector<uint32_t> words_;
};

// False when a filter over such key columns must not be asked.
bool CanPrune(std::span<const std::shared_ptr<arrow::DataType>> key_types);

// The hash of a key that the filter is made of.
uint64_t BloomHash(std::span<const std::shared_ptr<arrow::Array>> columns, int64_t row);

}  // namespace glaive::memwal
