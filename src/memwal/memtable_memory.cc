#include "memwal/memtable_memory.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <utility>
#include <vector>

#include "runtime/fork.h"

namespace glaive::memwal {
namespace {

constexpr int64_t kShare = 2;  // memtables take one part of so many
constexpr std::chrono::milliseconds kStuck{1000};
constexpr std::chrono::milliseconds kLook{50};

}  // namespace

struct MemtableMemory::Pool {
  std::mutex mutex;
  std::condition_variable given_back;
  // Guarded by mutex:
  std::vector<MemtableMemory*> members;
  uint64_t times_given_back = 0;

  int64_t HeldLocked(const MemoryBudget& budget) const {
    int64_t bytes = 0;
    for (const MemtableMemory* member : members) {
      if (&member->budget_ == &budget) bytes += member->bytes_;
    }
    return bytes;
  }
};

MemtableMemory::Pool& MemtableMemory::ThePool() {
  // Never destroyed: writers may be.
  static auto* pool = new ForkAware<Pool>([] { return std::make_unique<Pool>(); });
  return pool->get();
}

MemtableMemory::MemtableMemory(MemoryBudget& budget, std::function<void()> seal)
    : budget_(budget), seal_(std::move(seal)) {
  Pool& pool = ThePool();
  std::lock_guard lock(pool.mutex);
  pool.members.push_back(this);
}

MemtableMemory::~MemtableMemory() {
  Pool& pool = ThePool();
  std::lock_guard lock(pool.mutex);
  std::erase(pool.members, this);
  budget_.Release(bytes_);
  pool.times_given_back++;
  pool.given_back.notify_all();
}

bool MemtableMemory::TryTake(int64_t bytes) {
  Pool& pool = ThePool();
  std::lock_guard lock(pool.mutex);
  const int64_t held = pool.HeldLocked(budget_);
  const int64_t share = budget_.limit_bytes() / kShare;
  // Rows that are more than the share by themselves go alone.
  if (held > 0 && held + bytes > share) return false;
  if (!budget_.Reserve(bytes).ok()) return false;
  bytes_ += bytes;
  return true;
}

void MemtableMemory::Adjust(int64_t more_bytes) {
  if (more_bytes == 0) return;
  Pool& pool = ThePool();
  std::lock_guard lock(pool.mutex);
  bytes_ += more_bytes;
  // What is there is counted, whether the bound allows it or not.
  budget_.Release(-more_bytes);
  if (more_bytes > 0) return;
  pool.times_given_back++;
  pool.given_back.notify_all();
}

Status MemtableMemory::Waiter::Wait() {
  Pool& pool = ThePool();
  MemoryBudget& budget = memory_.budget_;
  std::function<void()> seal;
  uint64_t times = 0;
  {
    std::lock_guard lock(pool.mutex);
    times = pool.times_given_back;
    bool flushing = false;
    MemtableMemory* largest = nullptr;
    for (MemtableMemory* member : pool.members) {
      if (&member->budget_ != &budget) continue;
      flushing = flushing || member->flushing_;
      if (member->active_ > (largest == nullptr ? 0 : largest->active_.load())) {
        largest = member;
      }
    }
    if (flushing) {
      stuck_since_ = Clock::time_point::max();
    } else if (largest != nullptr) {
      seal = largest->seal_;
    }
  }
  if (seal) seal();

  std::unique_lock lock(pool.mutex);
  stuck_since_ = std::min(stuck_since_, Clock::now());
  if (pool.given_back.wait_for(lock, kLook,
                               [&] { return pool.times_given_back != times; })) {
    stuck_since_ = Clock::time_point::max();
    return Status::OK();
  }
  if (Clock::now() - stuck_since_ < kStuck) return Status::OK();
  return ResourceExhausted(
      "no memory for ", bytes_, " bytes of rows: memtables hold ",
      pool.HeldLocked(budget), " bytes and may hold ", budget.limit_bytes() / kShare,
      ", ", budget.used_bytes(), " of the memory budget's ", budget.limit_bytes(),
      " are in use, and nothing is being flushed; nothing of this call was written, try "
      "it again later, with fewer rows");
}

}  // namespace glaive::memwal
