// Cooperative cancellation: a flag, a deadline, and an optional hook of the embedding
// language.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <optional>

#include "base/status.h"

namespace glaive {

// Shared between the caller and the tasks that work for it. Thread-safe.
class CancelToken {
 public:
  using Clock = std::chrono::steady_clock;

  CancelToken() = default;
  explicit CancelToken(Clock::duration timeout) : deadline_(Clock::now() + timeout) {}

  void Cancel() { cancelled_.store(true, std::memory_order_relaxed); }

  // Called only on the thread that called into the library (e.g. to look for signals).
  // Returns an error to stop the call.
  void set_caller_hook(std::function<Status()> hook) { hook_ = std::move(hook); }

  // Cheap: to be called once per morsel. Cancelled or Timeout when the work should stop.
  Status Check() const {
    if (cancelled_.load(std::memory_order_relaxed))
      return Cancelled("the call was cancelled");
    if (deadline_ && Clock::now() > *deadline_) return TimedOut("Query timeout");
    return Status::OK();
  }

  // Check() plus the caller's hook; only the calling thread uses it.
  Status CheckOnCaller() {
    GLAIVE_RETURN_NOT_OK(Check());
    if (!hook_) return Status::OK();
    Status s = hook_();
    if (!s.ok()) Cancel();
    return s;
  }

 private:
  std::atomic<bool> cancelled_{false};
  std::optional<Clock::time_point> deadline_;
  std::function<Status()> hook_;
};

}  // namespace glaive
