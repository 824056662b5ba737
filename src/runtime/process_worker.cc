#include "runtime/process_worker.h"

#include <unistd.h>

#include <bit>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include <sys/resource.h>
#include <sys/syscall.h>

#include "runtime/inline_scope.h"

namespace glaive {
namespace {

constexpr std::chrono::milliseconds kForkPatience{2000};
constexpr int kNiceness = 10;

struct Stops {
  ForkSafeMutex mutex;
  std::vector<void (*)()> all;  // guarded by mutex
};

// Never destroyed, as the workers are not.
Stops& AllStops() {
  static auto* stops = new Stops();
  return *stops;
}

}  // namespace

void StopProcessWorkers() {
  Stops& stops = AllStops();
  std::vector<void (*)()> all;
  {
    std::lock_guard lock(stops.mutex);
    all = stops.all;
  }
  for (const auto stop : all) stop();
}

void StopAtExit(void (*stop)()) {
  Stops& stops = AllStops();
  std::lock_guard lock(stops.mutex);
  if (stops.all.empty()) std::atexit(StopProcessWorkers);
  stops.all.push_back(stop);
}

void BackgroundWorker::Stop() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
    if (running_) running_->Cancel();
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void BackgroundWorker::Pause() {
  std::unique_lock lock(mutex_);
  paused_ = true;
  if (running_) running_->Cancel();
  idle_.wait_for(lock, kForkPatience, [this] { return running_ == nullptr; });
}

void BackgroundWorker::Resume() {
  std::lock_guard lock(mutex_);
  paused_ = false;
  changed_.notify_all();
}

void BackgroundWorker::Wake() {
  if (stop_) return;
  if (!thread_.joinable()) thread_ = std::thread([this] { Loop(); });
  changed_.notify_all();
}

void BackgroundWorker::Loop() {
  // Of this thread only, as Linux has it.
  const auto self = static_cast<id_t>(::syscall(SYS_gettid));
  ::setpriority(PRIO_PROCESS, self, kNiceness);
  const InlineScope no_helpers;
  uint64_t jobs = 0;
  std::unique_lock lock(mutex_);
  while (!stop_) {
    std::optional<Clock::time_point> wake;
    if (!paused_) {
      wake = Step(&lock);
      // Exit handlers run last in, first out, among the destructors of statics. Those
      // that a job made on first use would be gone before the handler registered earlier
      // joins the thread; it may be registered again, and more and more rarely is.
      if (!wake && std::has_single_bit(++jobs)) std::atexit(StopProcessWorkers);
    }
    idle_.notify_all();
    if (stop_) break;
    if (paused_) {
      changed_.wait(lock);
    } else if (wake) {
      changed_.wait_until(lock, *wake);
    }
  }
}

}  // namespace glaive
