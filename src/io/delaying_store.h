// A store whose operations take longer, to see what a request costs on a slow one.
#pragma once

#include <array>
#include <chrono>
#include <memory>

#include "io/store_hook.h"

namespace glaive::io {

struct StoreDelays {
  std::array<std::chrono::microseconds, kNumStoreOps> per_operation{};

  static StoreDelays All(std::chrono::microseconds delay);
  StoreDelays& Set(StoreOp op, std::chrono::microseconds delay);
};

// Each operation sleeps on the calling thread before it starts.
std::shared_ptr<ObjectStore> MakeDelayingStore(std::shared_ptr<ObjectStore> inner,
                                               const StoreDelays& delays);

}  // namespace glaive::io
