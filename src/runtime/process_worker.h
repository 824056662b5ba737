// The one background worker of a kind that a process has: made at first use, stopped at
// exit, at rest while the process forks, and new in a child.
#pragma once

#include <pthread.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "runtime/cancel.h"
#include "runtime/fork.h"

namespace glaive {

// One thread of low priority that does jobs when they are due, one after the other, and
// all by itself (nothing of it runs on threads that serve calls). What there is to do is
// the business of the derived class, which guards it with `mutex_`. A worker whose thread
// was started must be stopped before it is destroyed.
class BackgroundWorker {
 public:
  using Clock = std::chrono::steady_clock;

  BackgroundWorker() = default;
  virtual ~BackgroundWorker() = default;
  BackgroundWorker(const BackgroundWorker&) = delete;
  BackgroundWorker& operator=(const BackgroundWorker&) = delete;

  // Cancels the job that runs and joins the thread. Nothing is done afterwards.
  void Stop();
  // Around a fork: lets the thread come to rest, so that the child inherits no lock that
  // it holds.
  void Pause();
  void Resume();

 protected:
  using Lock = std::unique_lock<std::mutex>;

  // With `mutex_` held: there is something new to do.
  void Wake();
  // With `mutex_` held: waits for `done`, which is looked at whenever a job has ended or
  // none is due. False when the time was over first.
  template <typename Done>
  bool WaitUntil(Lock* lock, std::chrono::milliseconds most, Done done) {
    return idle_.wait_for(*lock, most, done);
  }

  // Called on the thread with `mutex_` held: does one job that is due, by Work, or says
  // when to look again (unset: something was done).
  virtual std::optional<Clock::time_point> Step(Lock* lock) = 0;
  // `job(cancel)` without the mutex.
  template <typename Job>
  void Work(Lock* lock, const Job& job) {
    const auto token = std::make_shared<CancelToken>();
    running_ = token;
    lock->unlock();
    job(token.get());
    lock->lock();
    running_.reset();
  }

  bool busy() const { return running_ != nullptr; }
  bool stopped() const { return stop_; }

  std::mutex mutex_;

 private:
  void Loop();

  std::condition_variable changed_;
  std::condition_variable idle_;
  // Guarded by mutex_:
  std::shared_ptr<CancelToken> running_;
  bool paused_ = false;
  bool stop_ = false;
  std::thread thread_;
};

// Stops all workers that ProcessWorker made, for good. An exit handler does it as well,
// but amid the destruction of statics, some of which a first job may still use: whoever
// knows earlier that the process ends calls it then.
void StopProcessWorkers();

// For ProcessWorker: `stop` is run by StopProcessWorkers, and at exit.
void StopAtExit(void (*stop)());

// `Worker` is a BackgroundWorker. Never destroyed, since the exit handler may run after
// static destructors.
template <typename Worker>
ForkAware<Worker>& ProcessWorker() {
  static auto* worker = [] {
    auto* made = new ForkAware<Worker>([] { return std::make_unique<Worker>(); });
    StopAtExit([] {
      if (Worker* current = ProcessWorker<Worker>().get_if_current()) current->Stop();
    });
    ::pthread_atfork(
        [] {
          if (Worker* current = ProcessWorker<Worker>().get_if_current()) {
            current->Pause();
          }
        },
        [] {
          if (Worker* current = ProcessWorker<Worker>().get_if_current()) {
            current->Resume();
          }
        },
        nullptr);
    return made;
  }();
  return *worker;
}

}  // namespace glaive
