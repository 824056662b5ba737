// A store that asks a hook before each operation: the base of the wrappers that count,
// delay and fail operations.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "base/status.h"
#include "io/object_store.h"

namespace glaive::io {

enum class StoreOp : uint8_t {
  kOpen,
  kRead,  // one Read or ReadMany: one round trip to the store
  kGet,
  kHead,
  kExists,
  kList,  // ListNames too
  kCreate,
  kAppend,
  kFinish,  // Publish too
  kPut,
  kPutIfAbsent,
  kDelete,
  kDeleteTree,
  kRename,
  kSync,  // of what was published
};
inline constexpr int kNumStoreOps = 15;

std::string_view StoreOpName(StoreOp op);

// What becomes of an operation that a hook lets fail.
enum class FaultEffect : uint8_t {
  kNotDone,  // nothing happened
  kTorn,     // Put, PutIfAbsent and Finish leave the first half of a new object under its
          // name, Append half of its bytes; other operations, and Put over an object: as
          // kNotDone
  kDone,  // it happened, but the caller is told that it failed (a lost reply)
};

struct HookVerdict {
  Status status;  // OK: go on
  FaultEffect effect = FaultEffect::kNotDone;
};

// Called from all threads that use the store.
class StoreHook {
 public:
  virtual ~StoreHook() = default;
  // `path` is relative to the store that the operation is called on.
  virtual HookVerdict Before(StoreOp op, std::string_view path) = 0;
  // After success. `ranges` and `bytes`: what was read or written.
  virtual void Done(StoreOp op, int64_t ranges, int64_t bytes);
};

// Children, objects and writers of the result use the same hook.
std::shared_ptr<ObjectStore> MakeHookedStore(std::shared_ptr<ObjectStore> inner,
                                             std::shared_ptr<StoreHook> hook);

}  // namespace glaive::io
