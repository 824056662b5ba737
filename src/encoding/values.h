// The values of one page, free of nesting: fixed width, variable width or fixed-size
// lists.
//
// Values refer to Arrow buffers where they can and own copies where several pieces had to
// be joined. Immutable once gathered.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include <arrow/buffer.h>

#include "base/status.h"
#include "encoding/levels_build.h"

namespace glaive::encoding {

struct FixedValues {
  int64_t bits = 0;  // 1 or a multiple of 8
  int64_t count = 0;
  // Consecutive bytes; exactly one piece when bits is 1 (a bitmap from bit 0).
  std::vector<std::shared_ptr<arrow::Buffer>> pieces;

  int64_t byte_width() const { return bits / 8; }
  int64_t num_bytes() const { return (bits * count + 7) / 8; }
  // Joins the pieces when there are several.
  std::shared_ptr<arrow::Buffer> Contiguous() const;
};

// Buffer `buffer` of the segments, a bitmap, `count` bits in all, joined from bit 0.
// Where a segment has none, its bits are set.
std::shared_ptr<arrow::Buffer> GatherBits(std::span<const Segment> segments, int buffer,
                                          int64_t count);

struct VariableValues {
  bool large = false;   // 64-bit offsets
  bool binary = false;  // bytes rather than text
  int64_t count = 0;
  std::vector<int64_t> offsets;  // count + 1, into `bytes`, not necessarily from 0
  const uint8_t* bytes = nullptr;
  std::vector<std::shared_ptr<arrow::Buffer>> owners;

  int64_t length(int64_t i) const {
    return offsets[static_cast<size_t>(i) + 1] - offsets[static_cast<size_t>(i)];
  }
  std::string_view value(int64_t i) const {
    return {reinterpret_cast<const char*>(bytes) + offsets[static_cast<size_t>(i)],
            static_cast<size_t>(length(i))};
  }
  int64_t num_bytes() const { return count == 0 ? 0 : offsets.back() - offsets.front(); }
  int64_t max_length() const;
  int offset_bytes() const { return large ? 8 : 4; }
};

struct FixedListValues {
  std::vector<int64_t> dimensions;  // outer-most first
  // Per dimension: bitmap over the items of that layer, or null when all are valid.
  std::vector<std::shared_ptr<arrow::Buffer>> validity;
  FixedValues items;
  bool all_items_null = false;
  int64_t count = 0;  // rows

  int64_t items_per_row() const;
  bool has_validity() const;
};

Result<FixedValues> GatherFixed(std::span<const Segment> segments, int64_t bits);
// Null slots (per `levels`) become empty.
Result<VariableValues> GatherVariable(const Levels& levels);
Result<VariableValues> GatherVariable(std::span<const Segment> segments);
Result<FixedListValues> GatherFixedList(std::span<const Segment> segments);

// Bits per value of a fixed-width type, 0 for every other type.
int64_t FixedBits(const arrow::DataType& type);

}  // namespace glaive::encoding
