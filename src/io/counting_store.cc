#include "io/counting_store.h"

namespace glaive::io {

int64_t StoreCounters::total() const {
  int64_t sum = 0;
  for (const auto& count : counts_) sum += count;
  return sum;
}

void StoreCounters::Reset() {
  for (auto& count : counts_) count = 0;
  ranges_read_ = 0;
  bytes_read_ = 0;
  bytes_written_ = 0;
}

HookVerdict StoreCounters::Before(StoreOp, std::string_view) { return {}; }

void StoreCounters::Done(StoreOp op, int64_t ranges, int64_t bytes) {
  ++counts_[static_cast<size_t>(op)];
  switch (op) {
    case StoreOp::kRead:
    case StoreOp::kGet:
      ranges_read_ += ranges;
      bytes_read_ += bytes;
      break;
    default:
      bytes_written_ += bytes;
      break;
  }
}

std::shared_ptr<ObjectStore> MakeCountingStore(std::shared_ptr<ObjectStore> inner,
                                               std::shared_ptr<StoreCounters> counters) {
  return MakeHookedStore(std::move(inner), std::move(counters));
}

}  // namespace glaive::io
