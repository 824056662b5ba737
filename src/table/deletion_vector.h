// The set of deleted physical offsets of one fragment, and its two file kinds.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"

namespace glaive::table {

// Immutable after construction; thread-safe.
class DeletionVector {
 public:
  ~DeletionVector();
  static std::shared_ptr<const DeletionVector> FromOffsets(
      std::span<const uint32_t> offsets);
  // Parsers of untrusted bytes: Corruption when malformed or an offset is >=
  // physical_rows.
  static Result<std::shared_ptr<const DeletionVector>> ParseArrow(
      std::span<const uint8_t> bytes, int64_t physical_rows);
  static Result<std::shared_ptr<const DeletionVector>> ParseBitmap(
      std::span<const uint8_t> bytes, int64_t physical_rows);
  Result<std::vector<uint8_t>> ToArrow() const;
  std::vector<uint8_t> ToBitmap() const;

  int64_t size() const;
  bool Contains(uint32_t offset) const;
  bool Intersects(std::span<const uint32_t> offsets) const;
  std::shared_ptr<const DeletionVector> Union(std::span<const uint32_t> offsets) const;
  // Of those that are not null; null when there is none.
  static std::shared_ptr<const DeletionVector> UnionOf(
      std::span<const std::shared_ptr<const DeletionVector>> parts);
  int64_t size_bytes() const;
  std::shared_ptr<const DeletionVector> Without(std::span<const uint32_t> offsets) const;
  // Number of deleted offsets in [start, end).
  int64_t CountInRange(int64_t start, int64_t end) const;
  // Clears bit i of `keep` (LSB first) for each deleted offset start + i, i < count.
  void MaskRange(int64_t start, int64_t count, uint8_t* keep) const;
  // Physical offset of the n-th live row (n from 0); physical_rows when there are fewer.
  int64_t SelectLive(int64_t n, int64_t physical_rows) const;
  std::vector<uint32_t> ToOffsets() const;

 private:
  DeletionVector();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace glaive::table
