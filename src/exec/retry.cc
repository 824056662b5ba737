#include "exec/retry.h"

#include <algorithm>
#include <random>
#include <string>
#include <thread>

#include "runtime/cancel.h"

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
  // Full jitter: writers that collided once draw different pauses.
  thread_local std::minstd_rand random(std::random_device{}());
  const int64_t longest =
      std::min<int64_t>(kLongestPauseUs, kFirstPauseUs << std::min(attempts_ - 1, 16));
  std::uniform_int_distribution<int64_t> pause(0, longest);
  std::this_thread::sleep_for(std::chrono::microseconds(pause(random)));
  ++attempts_;
  return Status::OK();
}

}  // namespace glaive::exec
