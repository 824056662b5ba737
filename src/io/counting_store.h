// A store that counts its operations, so that tests can assert how many a request costs.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

#include "io/store_hook.h"

namespace glaive::io {

// Successful operations since the last Reset. Thread-safe.
class StoreCounters : public StoreHook {
 public:
  int64_t count(StoreOp op) const { return counts_[static_cast<size_t>(op)]; }
  int64_t total() const;
  int64_t ranges_read() const { return ranges_read_; }  // of Read, ReadMany and Get
  int64_t bytes_read() const { return bytes_read_; }    // of Read, ReadMany and Get
  int64_t bytes_written() const { return bytes_written_; }
  void Reset();

  HookVerdict Before(StoreOp op, std::string_view path) override;
  void Done(StoreOp op, int64_t ranges, int64_t bytes) override;

 private:
  std::array<std::atomic<int64_t>, kNumStoreOps> counts_{};
  std::atomic<int64_t> ranges_read_{0};
  std::atomic<int64_t> bytes_read_{0};
  std::atomic<int64_t> bytes_written_{0};
};

std::shared_ptr<ObjectStore> MakeCountingStore(std::shared_ptr<ObjectStore> inner,
                                               std::shared_ptr<StoreCounters> counters);

}  // namespace glaive::io
