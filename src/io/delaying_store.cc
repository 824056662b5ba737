#include "io/delaying_store.h"

#include <thread>

namespace glaive::io {
namespace {

class Delayer : public StoreHook {
 public:
  explicit Delayer(const StoreDelays& delays) : delays_(delays) {}

  HookVerdict Before(StoreOp op, std::string_view) override {
    const auto delay = delays_.per_operation[static_cast<size_t>(op)];
    if (delay.count() > 0) std::this_thread::sleep_for(delay);
    return {};
  }

 private:
  const StoreDelays delays_;
};

}  // namespace

StoreDelays StoreDelays::All(std::chrono::microseconds delay) {
  StoreDelays delays;
  delays.per_operation.fill(delay);
  return delays;
}

StoreDelays& StoreDelays::Set(StoreOp op, std::chrono::microseconds delay) {
  per_operation[static_cast<size_t>(op)] = delay;
  return *this;
}

std::shared_ptr<ObjectStore> MakeDelayingStore(std::shared_ptr<ObjectStore> inner,
                                               const StoreDelays& delays) {
  return MakeHookedStore(std::move(inner), std::make_shared<Delayer>(delays));
}

}  // namespace glaive::io
