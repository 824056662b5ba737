#include "runtime/thread_pool.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <new>
#include <system_error>

#include "runtime/fork.h"

namespace glaive {
namespace {

// How often a caller that waits for its helpers looks whether it should stop.
constexpr auto kCancelPollInterval = std::chrono::milliseconds(20);

thread_local bool t_is_helper = false;

// The caller's hook may touch the embedding language and is not for helper threads.
Status CheckCancel(CancelToken* cancel) {
  if (cancel == nullptr) return Status::OK();
  return t_is_helper ? cancel->Check() : cancel->CheckOnCaller();
}

// Only foreign code throws (the standard library when memory runs out).
Status RunTask(const TaskBody& body, int64_t task, int worker) {
  try {
    return body(task, worker);
  } catch (const std::bad_alloc&) {
    return ResourceExhausted("out of memory in a parallel task");
  } catch (const std::exception& error) {
    return InternalError("a parallel task failed: ", error.what());
  }
}

}  // namespace

struct ThreadPool::Job {
  Job(int64_t n, const TaskBody& b, CancelToken* c) : num_tasks(n), body(b), cancel(c) {}

  const int64_t num_tasks;
  const TaskBody& body;
  CancelToken* const cancel;
  std::atomic<int64_t> next{0};

  // Guarded by the pool's mutex:
  int next_worker = 1;
  int active_helpers = 0;
  Status error;  // of the lowest task that failed
  int64_t failed_task = INT64_MAX;
  std::condition_variable helpers_left;

  bool exhausted() const { return next.load(std::memory_order_relaxed) >= num_tasks; }

  // Needs the pool's mutex. Tasks that nobody has claimed are skipped.
  void Fail(int64_t task, Status status) {
    if (task < failed_task) {
      failed_task = task;
      error = std::move(status);
    }
    next.store(num_tasks, std::memory_order_relaxed);
  }
};

ThreadPool::~ThreadPool() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadPool::RunTasks(Job* job, int worker) {
  while (!job->exhausted()) {
    const int64_t task = job->next.fetch_add(1, std::memory_order_relaxed);
    if (task >= job->num_tasks) return;
    Status status = CheckCancel(job->cancel);
    if (status.ok()) status = RunTask(job->body, task, worker);
    if (!status.ok()) {
      std::lock_guard lock(mutex_);
      job->Fail(task, std::move(status));
      return;
    }
  }
}

ThreadPool::Job* ThreadPool::FindJob() {
  // The newest first: it may be part of an older one, which then ends sooner.
  for (auto job = jobs_.rbegin(); job != jobs_.rend(); ++job) {
    if (!(*job)->exhausted()) return *job;
  }
  return nullptr;
}

void ThreadPool::HelperLoop() {
  t_is_helper = true;
  ::pthread_setname_np(::pthread_self(), "glaive-worker");
  std::unique_lock lock(mutex_);
  while (true) {
    Job* job = FindJob();
    if (job == nullptr) {
      if (stopping_) return;
      ++idle_;
      wake_.wait(lock);
      --idle_;
      continue;
    }
    const int worker = job->next_worker++;
    ++job->active_helpers;
    // Each helper wakes the next one: the caller pays for a single wake-up.
    const bool wake_another = idle_ > 0 && !job->exhausted();
    lock.unlock();
    if (wake_another) wake_.notify_one();
    RunTasks(job, worker);
    lock.lock();
    // Under the lock: the job is gone as soon as its caller sees no helper.
    if (--job->active_helpers == 0) job->helpers_left.notify_one();
  }
}

void ThreadPool::StartHelpers(int64_t wanted, std::unique_lock<std::mutex>* lock) {
  (void)lock;  // held: threads_ is changed
  wanted = std::min<int64_t>(wanted, num_helpers_);
  if (static_cast<int64_t>(threads_.size()) >= wanted) return;
  // Signals are for the threads of the embedding program.
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  while (static_cast<int64_t>(threads_.size()) < wanted) {
    try {
      threads_.emplace_back([this] { HelperLoop(); });
    } catch (const std::system_error&) {
      break;  // a limit of the system: go on with fewer threads
    }
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void ThreadPool::AwaitHelpers(Job* job, std::unique_lock<std::mutex>* lock) {
  while (job->active_helpers > 0) {
    if (job->cancel == nullptr) {
      job->helpers_left.wait(*lock);
      continue;
    }
    if (job->helpers_left.wait_for(*lock, kCancelPollInterval) ==
        std::cv_status::no_timeout) {
      continue;
    }
    lock->unlock();
    Status status = CheckCancel(job->cancel);
    lock->lock();
    if (!status.ok()) job->Fail(job->num_tasks, std::move(status));
  }
}

Status ThreadPool::Run(int64_t num_tasks, const TaskBody& body, CancelToken* cancel) {
  const uint64_t generation = ForkGeneration();
  Job job(num_tasks, body, cancel);
  {
    std::unique_lock lock(mutex_);
    StartHelpers(num_tasks - 1, &lock);
    jobs_.push_back(&job);
  }
  wake_.notify_one();
  RunTasks(&job, 0);
  if (ForkGeneration() != generation) {
    // A body forked and this is the child: the helpers, and the tasks they had claimed,
    // are gone.
    return InternalError("the process forked in the middle of a parallel call");
  }
  std::unique_lock lock(mutex_);
  jobs_.erase(std::find(jobs_.begin(), jobs_.end(), &job));
  AwaitHelpers(&job, &lock);
  return job.error;
}

Status RunInline(int64_t num_tasks, const TaskBody& body, CancelToken* cancel) {
  for (int64_t task = 0; task < num_tasks; ++task) {
    GLAIVE_RETURN_NOT_OK(CheckCancel(cancel));
    GLAIVE_RETURN_NOT_OK(RunTask(body, task, 0));
  }
  return Status::OK();
}

}  // namespace glaive
