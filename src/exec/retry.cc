#include "exec/retry.h"

#include <algorithm>
#include <string>

#include "runtime/cancel.h"
#include "table/backoff.h"

namespace glaive::exec {
namespace {

constexpr int64_t kFirstPauseUs = 500;
constexpr int64_t kLongestPauseUs = 100'000;

}  // namespace

Status RetryLoop::Failed(const Status& status, CancelToken* cancel) {
  if (KindOf(status) != ErrorKind::kRetryableConflict) return status;
  const auto spent = Clock::now() - began_;
  if (attempts_ > policy_.max_retries || spent > policy_.timeout) {
    return MakeError(ErrorKind::kTooManyRetries,
                     std::string(what_) + " gave up after " + std::to_string(attempts_) +
                         " attempts against concurrent commits: " + status.message());
  }
  if (cancel != nullptr) GLAIVE_RETURN_NOT_OK(cancel->CheckOnCaller());
  table::PauseAtRandom(
      std::chrono::microseconds(1),
      std::min<int64_t>(kLongestPauseUs, kFirstPauseUs << std::min(attempts_ - 1, 16)));
  ++attempts_;
  return Status::OK();
}

}  // namespace glaive::exec
