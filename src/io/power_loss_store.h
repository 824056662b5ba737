// A store that shows what a power cut would leave, to test what was made durable.
#pragma once

#include <cstdint>
#include <memory>
#include <random>

#include "io/object_store.h"

namespace glaive::io {

struct PowerLossDisk;

// In memory. Objects that were put durably, or synced by their writer, are on the disk;
// others are with the kernel only. Thread-safe; children share everything.
class PowerLoss {
 public:
  PowerLoss();
  ~PowerLoss();

  const std::shared_ptr<ObjectStore>& store() const { return store_; }

  // A new store with what is there when the power comes back: durable objects as they
  // are; of the others each is gone, empty, torn, or whole, by chance. The old store goes
  // on as if nothing had happened; nobody should be using it.
  Result<std::shared_ptr<PowerLoss>> CutPower(std::mt19937_64& random) const;

 private:
  std::shared_ptr<PowerLossDisk> disk_;
  std::shared_ptr<ObjectStore> store_;
};

}  // namespace glaive::io
