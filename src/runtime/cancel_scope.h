// The token of the call that a thread works for, for code far below that asks it often.
#pragma once

#include "runtime/cancel.h"

namespace glaive {

// As long as one lives, Check() on this thread asks `token`. ParallelFor opens one around
// each task that has a token.
class CancelScope {
 public:
  explicit CancelScope(const CancelToken* token) : before_(current_) { current_ = token; }
  ~CancelScope() { current_ = before_; }
  CancelScope(const CancelScope&) = delete;
  CancelScope& operator=(const CancelScope&) = delete;

  // Cancelled or Timeout when the work should stop.
  static Status Check() { return current_ == nullptr ? Status::OK() : current_->Check(); }

 private:
  inline static thread_local const CancelToken* current_ = nullptr;
  const CancelToken* const before_;
};

}  // namespace glaive
