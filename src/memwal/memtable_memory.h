// Memory of memtables: what the writers of a process hold together, counted in the
// budget of their runtime.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>

#include "base/status.h"
#include "runtime/runtime.h"

namespace glaive::memwal {

// The part of one writer. Memtables of all writers of a budget take at most half of it,
// so that reads always find room; what is beyond waits for flushes, the largest memtable
// first, whoever's it is. Thread-safe.
class MemtableMemory {
 public:
  // `seal`: makes the rows that the writer holds flushable, and starts to flush them.
  // Called without locks, on any thread that waits for room; returns quickly. `budget`
  // must outlive the object.
  MemtableMemory(MemoryBudget& budget, std::function<void()> seal);
  ~MemtableMemory();  // what is left is given back
  MemtableMemory(const MemtableMemory&) = delete;
  MemtableMemory& operator=(const MemtableMemory&) = delete;

  // Takes `bytes` for rows that are about to come. False: there is no room.
  bool TryTake(int64_t bytes);
  // Makes room: has the writer that holds most flushed, and waits until something was
  // given back or a moment is over. ResourceExhausted when, for a second, nothing was
  // given back and nothing that could be is being flushed.
  class Waiter;

  // Corrects what was taken to what is there; also beyond the bound.
  void Adjust(int64_t more_bytes);
  // What the writer can do for others: bytes of the active memtable, and whether sealed
  // ones are being flushed (and that does not fail).
  void SetActive(int64_t bytes) { active_ = bytes; }
  void SetFlushing(bool flushing) { flushing_ = flushing; }

  int64_t bytes() const { return bytes_; }

 private:
  friend class Waiter;
  struct Pool;
  static Pool& ThePool();

  MemoryBudget& budget_;
  const std::function<void()> seal_;
  std::atomic<int64_t> bytes_{0};
  std::atomic<int64_t> active_{0};
  std::atomic<bool> flushing_{false};
};

class MemtableMemory::Waiter {
 public:
  Waiter(MemtableMemory& memory, int64_t bytes) : memory_(memory), bytes_(bytes) {}
  // To be called, without locks, after each TryTake that failed.
  Status Wait();

 private:
  using Clock = std::chrono::steady_clock;
  MemtableMemory& memory_;
  const int64_t bytes_;
  Clock::time_point stuck_since_ = Clock::time_point::max();
};

}  // namespace glaive::memwal
