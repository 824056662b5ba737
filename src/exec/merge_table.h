// The hash table over the keys of a merge's source rows.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>
#include <vector>

#include "exec/merge_keys.h"

namespace glaive::exec {

// Filled by one thread; then Probe may run on several. Keys are compared as they are, the
// hash only finds candidates.
class KeyTable {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  KeyTable(bool fixed, uint64_t seed) : fixed_(fixed), seed_(seed) {}

  // Takes the rows of `keys` that are not null and whose hash is `remainder` modulo
  // `modulus`; row i is source row row_numbers[i], or first_row + i without numbers.
  // False when there are more rows than the table can number.
  bool Add(KeyBatch keys, int64_t first_row, const int64_t* row_numbers, uint64_t modulus,
           uint64_t remainder);
  // After the last Add. With `first_only`, later entries of a key are no part of it.
  void Build(bool first_only);

  size_t size() const { return rows_.size(); }
  // Bounds of keys that are words; all words when the keys are none.
  uint64_t least_word() const { return least_word_; }
  uint64_t most_word() const { return most_word_; }
  // Source row of an entry.
  int64_t row(uint32_t entry) const { return rows_[entry]; }
  // The next entry with the same key; kNone at the end.
  uint32_t next(uint32_t entry) const { return next_.empty() ? kNone : next_[entry]; }
  // Entries that Build left out.
  const std::vector<uint32_t>& repeated() const { return repeated_; }

  // Marks the key of `head` as one that the table has. Any thread.
  void MarkMatched(uint32_t head) {
    std::atomic_ref<uint8_t>(matched_[head]).store(1, std::memory_order_relaxed);
  }
  // By entry; only heads are marked.
  const std::vector<uint8_t>& matched() const { return matched_; }

  // Calls hit(i, head) for each row of `keys` whose key is in the table. `live`: bits of
  // rows that count, or null for all. A Status that is not OK ends it.
  template <typename Hit>
  Status Probe(const KeyBatch& keys, const uint64_t* live, Hit&& hit) const {
    if (rows_.empty()) return Status::OK();
    if (fixed_) {
      if (rows_.size() == 1 && keys.is_null.empty()) return ProbeOne(keys, live, hit);
      return ProbeRows(
          keys, live, [&](int64_t i) { return HashWord(keys.words[i], seed_); },
          [&](int64_t i, uint32_t e) { return keys.words[i] == words_[e]; }, hit);
    }
    return ProbeRows(
        keys, live,
        [&](int64_t i) { return HashBytes(keys.views[static_cast<size_t>(i)], seed_); },
        [&](int64_t i, uint32_t e) {
          return keys.views[static_cast<size_t>(i)] == views_[e];
        },
        hit);
  }

  uint64_t Hash(const KeyBatch& keys, int64_t i) const {
    return fixed_ ? HashWord(keys.words[i], seed_)
                  : HashBytes(keys.views[static_cast<size_t>(i)], seed_);
  }

 private:
  struct Slot {
    uint32_t tag = 0;  // upper half of the hash
    uint32_t head = kNone;
  };

  template <typename Hit>
  Status ProbeOne(const KeyBatch& keys, const uint64_t* live, Hit&& hit) const {
    const uint64_t wanted = words_[0];
    constexpr int64_t kBlock = 512;
    for (int64_t begin = 0; begin < keys.rows; begin += kBlock) {
      const int64_t end = begin + kBlock < keys.rows ? begin + kBlock : keys.rows;
      uint64_t any = 0;  // the loop without branches is one that compilers vectorise
      for (int64_t i = begin; i < end; ++i) {
        any |= static_cast<uint64_t>(keys.words[i] == wanted);
      }
      if (any == 0) continue;
      for (int64_t i = begin; i < end; ++i) {
        if (keys.words[i] != wanted) continue;
        if (live != nullptr && ((live[i >> 6] >> (i & 63)) & 1) == 0) continue;
        GLAIVE_RETURN_NOT_OK(hit(i, 0));
      }
    }
    return Status::OK();
  }

  template <typename HashOf, typename Same, typename Hit>
  Status ProbeRows(const KeyBatch& keys, const uint64_t* live, HashOf&& hash_of,
                   Same&& same, Hit&& hit) const {
    // Hashes that the filter lets through, a block at a time: the first loop has no
    // branch that could be mispredicted.
    constexpr int64_t kBlock = 256;
    uint32_t passed[kBlock];
    uint64_t hashes[kBlock];
    const bool has_nulls = !keys.is_null.empty();
    for (int64_t begin = 0; begin < keys.rows; begin += kBlock) {
      const int64_t end = begin + kBlock < keys.rows ? begin + kBlock : keys.rows;
      size_t count = 0;
      for (int64_t i = begin; i < end; ++i) {
        const uint64_t hash = hash_of(i);
        passed[count] = static_cast<uint32_t>(i - begin);
        hashes[count] = hash;
        const uint64_t bit = hash >> filter_shift_;
        count += (filter_[bit >> 6] >> (bit & 63)) & 1;
      }
      for (size_t k = 0; k < count; ++k) {
        const int64_t i = begin + passed[k];
        if (live != nullptr && ((live[i >> 6] >> (i & 63)) & 1) == 0) continue;
        if (has_nulls && keys.IsNull(i)) continue;
        const auto tag = static_cast<uint32_t>(hashes[k] >> 32);
        for (size_t s = hashes[k] & slot_mask_; slots_[s].head != kNone;
             s = (s + 1) & slot_mask_) {
          if (slots_[s].tag != tag || !same(i, slots_[s].head)) continue;
          GLAIVE_RETURN_NOT_OK(hit(i, slots_[s].head));
          break;
        }
      }
    }
    return Status::OK();
  }

  const bool fixed_;
  const uint64_t seed_;
  std::vector<KeyBatch> batches_;        // what views_ point into
  std::vector<int64_t> rows_;            // by entry
  std::vector<uint64_t> words_;          // by entry, of fixed keys
  std::vector<std::string_view> views_;  // by entry, of other keys
  std::vector<uint32_t> next_;           // by entry; empty while no key repeats
  std::vector<uint32_t> repeated_;
  std::vector<uint8_t> matched_;
  std::vector<Slot> slots_;
  size_t slot_mask_ = 0;
  uint64_t least_word_ = 0;
  uint64_t most_word_ = UINT64_MAX;
  std::vector<uint64_t> filter_;  // one bit per hash, many more bits than entries
  int filter_shift_ = 63;
};

}  // namespace glaive::exec
