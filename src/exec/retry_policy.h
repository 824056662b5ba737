// How often, and for how long, an operation runs again that lost against a concurrent
// commit.
#pragma once

#include <chrono>

namespace glaive::exec {

struct RetryPolicy {
  int max_retries = 10;  // after the first attempt
  // From the start of the operation; the first attempt may take longer.
  std::chrono::nanoseconds timeout = std::chrono::seconds(30);
};

}  // namespace glaive::exec
