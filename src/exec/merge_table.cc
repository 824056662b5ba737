#include "exec/merge_table.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace glaive::exec {
namespace {

constexpr size_t kFilterBitsPerKey = 16;
constexpr size_t kLeastFilterBits = 1024;

}  // namespace

bool KeyTable::Add(KeyBatch keys, int64_t first_row, const int64_t* row_numbers,
                   uint64_t modulus, uint64_t remainder) {
  for (int64_t i = 0; i < keys.rows; ++i) {
    if (keys.IsNull(i)) continue;
    if (modulus > 1 && (Hash(keys, i) >> 20) % modulus != remainder) continue;
    rows_.push_back(row_numbers != nullptr ? row_numbers[i] : first_row + i);
    if (fixed_) {
      words_.push_back(keys.words[i]);
    } else {
      views_.push_back(keys.views[static_cast<size_t>(i)]);
    }
  }
  if (!fixed_) batches_.push_back(std::move(keys));
  return rows_.size() < kNone;
}

void KeyTable::Build(bool first_only) {
  const size_t n = rows_.size();
  matched_.assign(n, 0);
  if (fixed_ && n > 0) {
    const auto [least, most] = std::minmax_element(words_.begin(), words_.end());
    least_word_ = *least;
    most_word_ = *most;
  }
  const size_t slots = std::bit_ceil(std::max<size_t>(16, n * 2));
  slots_.assign(slots, Slot());
  slot_mask_ = slots - 1;
  const size_t bits = std::bit_ceil(std::max(kLeastFilterBits, n * kFilterBitsPerKey));
  filter_.assign(bits / 64, 0);
  filter_shift_ = 64 - std::countr_zero(bits);
  for (uint32_t e = 0; e < n; ++e) {
    const uint64_t hash =
        fixed_ ? HashWord(words_[e], seed_) : HashBytes(views_[e], seed_);
    const auto tag = static_cast<uint32_t>(hash >> 32);
    size_t s = hash & slot_mask_;
    for (; slots_[s].head != kNone; s = (s + 1) & slot_mask_) {
      if (slots_[s].tag != tag) continue;
      const uint32_t head = slots_[s].head;
      if (fixed_ ? words_[head] == words_[e] : views_[head] == views_[e]) break;
    }
    if (slots_[s].head == kNone) {
      slots_[s] = {tag, e};
      const uint64_t bit = hash >> filter_shift_;
      filter_[bit >> 6] |= uint64_t{1} << (bit & 63);
      continue;
    }
    if (first_only) {
      repeated_.push_back(e);
      continue;
    }
    if (next_.empty()) next_.assign(n, kNone);
    const uint32_t head = slots_[s].head;
    next_[e] = next_[head];
    next_[head] = e;
  }
}

}  // namespace glaive::exec
