// One call from Python into the engine: GIL released, signals looked at, deadline,
// cancellation.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <type_traits>
#include <unordered_set>
#include <utility>

#include <nanobind/nanobind.h>

#include "base/status.h"
#include "errors.h"
#include "runtime/cancel.h"

namespace glaive::python {

// The CancelToken of Python: fires all calls it was given to. Thread-safe.
class CancelHandle {
 public:
  void Cancel();
  bool cancelled() const;
  void Add(CancelToken* token);
  void Remove(CancelToken* token);

 private:
  mutable std::mutex mutex_;
  bool cancelled_ = false;
  std::unordered_set<CancelToken*> running_;
};

// State of one call, or of one reader that is stepped by several calls. Create and use
// with the GIL held; Run releases it.
class Call {
 public:
  Call(std::optional<double> timeout_seconds, std::shared_ptr<CancelHandle> handle);
  Call() : Call(std::nullopt, nullptr) {}
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  CancelToken* token() { return &token_; }

  // Runs `body` (returning Status or Result) without the GIL; its value, or the
  // exception.
  template <typename Body>
  auto Run(Body&& body) {
    BeginStep();
    auto result = [&] {
      nb::gil_scoped_release release;
      return body();
    }();
    // What Python code raised counts, too, when the work was done before it noticed.
    if (!result.ok() || exception_.is_valid()) [[unlikely]]
      Fail(GetStatus(result));
    if constexpr (!std::is_same_v<std::decay_t<decltype(result)>, Status>) {
      return std::move(result).ValueUnsafe();
    }
  }

  // For streams that are stepped without Python around them: marks the begin of a step,
  // and after it raises an interrupt again that would otherwise be lost.
  void BeginStep() { last_look_.store(Clock::now(), std::memory_order_relaxed); }
  void RaiseInterruptAgain();

  // Stores what Python code called from the engine raised; it is thrown at the end of the
  // call.
  void KeepException();

 private:
  using Clock = CancelToken::Clock;
  static const Status& GetStatus(const Status& s) { return s; }
  template <typename T>
  static const Status& GetStatus(const Result<T>& r) {
    return r.status();
  }
  [[noreturn]] void Fail(const Status& status);
  Status LookForSignals();

  CancelToken token_;
  std::shared_ptr<CancelHandle> handle_;
  std::atomic<Clock::time_point> last_look_{};
  nb::object exception_;  // guarded by the GIL
};

}  // namespace glaive::python
