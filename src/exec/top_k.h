// The k best rows seen so far, and the bound that threads share.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <vector>

namespace glaive::exec {

struct Hit {
  float distance = 0;
  uint64_t row_id = 0;
  int32_t source = 0;    // of several snapshots that are searched as one
  int32_t fragment = 0;  // index in the snapshot
  int64_t offset = 0;    // physical

  friend bool operator<(const Hit& a, const Hit& b) {
    if (a.distance != b.distance) return a.distance < b.distance;
    return a.source != b.source ? a.source < b.source : a.row_id < b.row_id;
  }
};

// No row that is farther than this can be among the best. Lowered by whichever thread has
// k rows.
class SharedBound {
 public:
  float value() const { return value_.load(std::memory_order_relaxed); }
  void Lower(float bound) {
    float seen = value();
    while (bound < seen &&
           !value_.compare_exchange_weak(seen, bound, std::memory_order_relaxed)) {
    }
  }

 private:
  alignas(64) std::atomic<float> value_{std::numeric_limits<float>::infinity()};
};

// One thread's share. Memory grows with the rows seen, up to k.
class TopK {
 public:
  explicit TopK(size_t k) : k_(k) {}

  // The caller has checked distance <= the bound.
  void Push(const Hit& hit, SharedBound* bound) {
    if (heap_.size() < k_) {
      heap_.push_back(hit);
      std::push_heap(heap_.begin(), heap_.end());
    } else if (hit < heap_.front()) {
      std::pop_heap(heap_.begin(), heap_.end());
      heap_.back() = hit;
      std::push_heap(heap_.begin(), heap_.end());
    } else {
      return;
    }
    if (heap_.size() == k_) bound->Lower(heap_.front().distance);
  }
  const std::vector<Hit>& hits() const { return heap_; }

 private:
  size_t k_;
  std::vector<Hit> heap_;  // the worst in front
};

}  // namespace glaive::exec
