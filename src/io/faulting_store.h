// A store that fails a chosen operation, to test what is left after an error or a crash.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

#include "io/store_hook.h"

namespace glaive::io {

struct FaultPlan {
  // Counted from 0 among the operations that `only` lets count. Negative: none fails.
  int64_t fail_at = -1;
  std::optional<StoreOp> only;
  FaultEffect effect = FaultEffect::kNotDone;
  // Everything after the fault fails too, without effect: the process is gone for this
  // store.
  bool crash = false;
  ErrorKind kind = ErrorKind::kIo;
};

// Thread-safe; one injector may serve several stores.
class FaultInjector : public StoreHook {
 public:
  // Starts counting anew.
  void Arm(const FaultPlan& plan);
  void Disarm() { Arm({}); }

  // Operations counted since Arm, the failed one included.
  int64_t operations() const;
  bool fired() const;

  HookVerdict Before(StoreOp op, std::string_view path) override;

 private:
  mutable std::mutex mutex_;
  // Guarded by mutex_:
  FaultPlan plan_;
  int64_t operations_ = 0;
  bool fired_ = false;
};

std::shared_ptr<ObjectStore> MakeFaultingStore(std::shared_ptr<ObjectStore> inner,
                                               std::shared_ptr<FaultInjector> injector);

}  // namespace glaive::io
