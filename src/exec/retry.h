// When an operation that lost against a concurrent commit may run again, and how often.
#pragma once

#include <chrono>
#include <string_view>

#include "base/status.h"
#include "exec/retry_policy.h"
#include "table/dataset.h"
#include "table/writer_turn.h"

namespace glaive {
class CancelToken;
}

namespace glaive::exec {

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

// Runs `attempt`, a function from a snapshot and the number of the attempt to a Result,
// on `dataset` and, for as long as it loses against concurrent commits and the policy
// allows, on newer versions. Takes turns with the other writers of this process.
template <typename Attempt>
auto RunWithRetries(table::Dataset::Ptr dataset, const RetryPolicy& policy,
                    std::string_view what, CancelToken* cancel, Attempt&& attempt)
    -> decltype(attempt(dataset, 1)) {
  RetryLoop retry(policy, what);
  auto kind = table::TurnKind::kAmongOthers;
  while (true) {
    {
      GLAIVE_ASSIGN_OR_RETURN(auto turn, dataset->TakeTurn(kind, cancel));
      if (retry.attempts() > 1) {
        // Only now: whoever ran before us has committed.
        GLAIVE_ASSIGN_OR_RETURN(dataset, dataset->Latest());
      }
      auto result = attempt(dataset, retry.attempts());
      if (result.ok()) return result;
      turn.GiveBack();
      GLAIVE_RETURN_NOT_OK(retry.Failed(result.status(), cancel));
    }
    kind = table::TurnKind::kAlone;
  }
}

}  // namespace glaive::exec
