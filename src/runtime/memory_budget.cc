#include "runtime/runtime.h"

namespace glaive {

Status MemoryBudget::Reserve(int64_t bytes) {
  if (bytes < 0) return InvalidInput("cannot reserve ", bytes, " bytes of memory");
  int64_t used = used_.load(std::memory_order_relaxed);
  do {
    if (bytes > limit_ - used) {
      return ResourceExhausted("cannot reserve ", bytes, " bytes: ", used, " of ", limit_,
                               " bytes of the memory budget are in use");
    }
  } while (!used_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
  return Status::OK();
}

void MemoryBudget::Release(int64_t bytes) {
  used_.fetch_sub(bytes, std::memory_order_relaxed);
}

int64_t MemoryBudget::used_bytes() const { return used_.load(std::memory_order_relaxed); }

}  // namespace glaive
