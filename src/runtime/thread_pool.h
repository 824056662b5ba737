// Helper threads that lend a hand to callers with many independent tasks.
//
// Invariants. A Job lives on the stack of its caller, which leaves only after taking the
// job off the list and seeing no helper at it. Tasks are claimed by adding to `next`, so
// each runs once; a helper leaves a job only when all tasks are claimed, so it joins each
// job at most once and the worker numbers given out stay below the number of threads.
// Nobody waits for a task that is not running: hence calls may nest freely.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "base/status.h"
#include "runtime/cancel.h"

namespace glaive {

using TaskBody = std::function<Status(int64_t task, int worker)>;

// Thread-safe. Not usable in a forked child: see ForkAware.
class ThreadPool {
 public:
  // No thread is started before there is work for it.
  explicit ThreadPool(int num_helpers) : num_helpers_(num_helpers) {}
  ~ThreadPool();

  // Runs body(task, worker) for each task, the caller being worker 0.
  Status Run(int64_t num_tasks, const TaskBody& body, CancelToken* cancel);

 private:
  struct Job;

  void HelperLoop();
  Job* FindJob();  // needs mutex_
  void StartHelpers(int64_t wanted, std::unique_lock<std::mutex>* lock);
  void AwaitHelpers(Job* job, std::unique_lock<std::mutex>* lock);
  void RunTasks(Job* job, int worker);

  const int num_helpers_;
  std::mutex mutex_;
  std::condition_variable wake_;
  // Guarded by mutex_:
  std::vector<Job*> jobs_;
  std::vector<std::thread> threads_;
  int idle_ = 0;
  bool stopping_ = false;
};

// Runs the tasks one after the other on the calling thread, as worker 0.
Status RunInline(int64_t num_tasks, const TaskBody& body, CancelToken* cancel);

}  // namespace glaive
