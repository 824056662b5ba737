#include "io/faulting_store.h"

namespace glaive::io {

void FaultInjector::Arm(const FaultPlan& plan) {
  std::lock_guard lock(mutex_);
  plan_ = plan;
  operations_ = 0;
  fired_ = false;
}

int64_t FaultInjector::operations() const {
  std::lock_guard lock(mutex_);
  return operations_;
}

bool FaultInjector::fired() const {
  std::lock_guard lock(mutex_);
  return fired_;
}

HookVerdict FaultInjector::Before(StoreOp op, std::string_view path) {
  std::lock_guard lock(mutex_);
  const auto fail = [&](FaultEffect effect) -> HookVerdict {
    return {MakeError(plan_.kind, "injected fault: " + std::string(StoreOpName(op)) +
                                      " of '" + std::string(path) + "'"),
            effect};
  };
  if (fired_ && plan_.crash) return fail(FaultEffect::kNotDone);
  if (plan_.only && *plan_.only != op) return {};
  if (operations_++ != plan_.fail_at) return {};
  fired_ = true;
  return fail(plan_.effect);
}

std::shared_ptr<ObjectStore> MakeFaultingStore(std::shared_ptr<ObjectStore> inner,
                                               std::shared_ptr<FaultInjector> injector) {
  return MakeHookedStore(std::move(inner), std::move(injector));
}

}  // namespace glaive::io
