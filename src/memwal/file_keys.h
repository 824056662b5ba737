// The keys of one fragment's rows, hashed: key -> physical offsets.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "file/schema.h"
#include "memwal/keys.h"
#include "runtime/runtime.h"
#include "table/fragment_reader.h"

namespace glaive::memwal {

// Immutable; thread-safe. Keys of one integer column take 18 bytes per row, or none when
// they are dense (each one more than the last); others their bytes and 22 more. Deleted
// rows are included.
class FileKeys {
 public:
  // `key_columns`: the fields of the key, in key order. ResourceExhausted when the memory
  // budget has no room.
  static Result<std::shared_ptr<const FileKeys>> Build(
      Runtime& runtime, const table::FragmentReader& fragment,
      const file::Schema& key_columns);

  // What Build would make, bytes, as far as that can be known without reading.
  static int64_t EstimateBytes(const file::Schema& key_columns, int64_t rows);

  // Calls `visit(uint32_t offset)` for each row with the (encoded) key.
  template <typename Visit>
  void Find(std::string_view key, const Visit& visit) const {
    uint64_t word;
    if (!Prepare(key, &word)) return;
    if (dense_) {
      if (word - min_ < static_cast<uint64_t>(rows_)) {
        visit(static_cast<uint32_t>(word - min_));
      }
      return;
    }
    const uint64_t hash = HashOf(word);
    const Part& part = parts_[PartOf(hash)];
    if (part.num_slots == 0) return;
    const Slot* slots = slots_.get() + part.begin;
    for (uint32_t i = FirstSlot(hash, part);; i = i + 1 == part.num_slots ? 0 : i + 1) {
      const Slot& slot = slots[i];
      if (slot.row == kEmpty) return;
      if (slot.word() == word && (chunks_.empty() || KeyOf(slot.row) == key)) {
        visit(slot.row);
      }
    }
  }

  int64_t rows() const { return rows_; }
  int64_t size_bytes() const;

 private:
  static constexpr uint32_t kEmpty = UINT32_MAX;
  // Rows whose keys are encoded together.
  static constexpr int kChunkBits = 16;

  // Of one integer column: its value, as a number whose order is that of the keys. Else
  // the hash of the key, which stands in `chunks_`.
  struct Slot {
    uint32_t low, high;
    uint32_t row;
    uint64_t word() const { return (uint64_t{high} << 32) | low; }
  };
  // Rows are split by hash, so that parts are filled in parallel and in cache.
  struct Part {
    uint64_t begin = 0;
    uint32_t num_slots = 0;
  };

  FileKeys() = default;
  Status ReadIntegers(Runtime& runtime, const table::FragmentReader& fragment,
                      const table::FragmentProjection& projection, uint64_t* words,
                      std::vector<uint8_t>* nulls);
  Status ReadEncoded(Runtime& runtime, const table::FragmentReader& fragment,
                     const table::FragmentProjection& projection, uint64_t* words);
  Status Fill(Runtime& runtime, const uint64_t* words, const std::vector<uint8_t>& nulls);

  bool Prepare(std::string_view key, uint64_t* word) const;
  uint64_t HashOf(uint64_t word) const;
  size_t PartOf(uint64_t hash) const {
    return static_cast<size_t>((static_cast<unsigned __int128>(hash) * parts_.size()) >>
                               64);
  }
  static uint32_t FirstSlot(uint64_t hash, const Part& part) {
    return static_cast<uint32_t>(((hash & 0xFFFFFFFF) * part.num_slots) >> 32);
  }
  std::string_view KeyOf(uint32_t row) const {
    return chunks_[row >> kChunkBits][row & ((1U << kChunkBits) - 1)];
  }

  bool integers_ = false;
  bool dense_ = false;
  uint64_t min_ = 0, max_ = 0;  // of integers
  int64_t rows_ = 0;
  uint64_t seed_ = 0;
  std::vector<Part> parts_;
  uint64_t num_slots_ = 0;
  std::unique_ptr<Slot[]> slots_;
  std::vector<EncodedKeys> chunks_;  // empty for integers
};

}  // namespace glaive::memwal
