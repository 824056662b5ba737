// When an operation that lost against a concurrent commit may run again, and how often.
#pragma once

#include <chrono>
#include <string_view>

#include "base/status.h"

namespace glaive {
class CancelToken;
}

namespace glaive::exec {

struct RetryPolicy {
  int max_retries = 10;  // after the first attempt
  // From the start of the operation; the first attempt may take longer.
  std::chrono::nanoseconds timeout = std::chrono::seconds(30);
};

// Not thread-safe.
class RetryLoop {
 public:
  // `what` names the operation in errors.
  RetryLoop(RetryPolicy policy, std::string_view what)
      : policy_(policy), what_(what), began_(Clock::now()) {}

  // After a failed attempt: OK when another one is due, after a pause of random length
  // that grows. Errors other than retryable conflicts come back as they are;
  // TooManyRetries when attempts or time are used up.
  Status Failed(const Status& status, CancelToken* cancel);
  int attempts() const { return attempts_; }

 private:
  using Clock = std::chrono::steady_clock;
  const RetryPolicy policy_;
  const std::string_view what_;
  const Clock::time_point began_;
  int attempts_ = 1;
};

}  // namespace glaive::exec
