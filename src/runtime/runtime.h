// The one object that owns threads, the memory budget and the caches. Passed down
// explicitly.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"

namespace glaive {

class CancelToken;
class ThreadPool;

struct RuntimeOptions {
  // Threads that compute, the calling thread included. 0: what the cgroup and the
  // affinity mask grant this process; GLAIVE_NUM_THREADS overrides it.
  int num_threads = 0;
  // Bound for caches and working memory, bytes. 0: half of what the cgroup grants.
  int64_t memory_budget_bytes = 0;
  // Share of the budget that caches may keep, bytes.
  int64_t cache_bytes = int64_t{1} << 30;
};

// Counts what is reserved against a bound. Thread-safe.
class MemoryBudget {
 public:
  explicit MemoryBudget(int64_t limit_bytes) : limit_(limit_bytes) {}
  // ResourceExhausted when the bound would be passed.
  Status Reserve(int64_t bytes);
  void Release(int64_t bytes);
  int64_t used_bytes() const;
  int64_t limit_bytes() const { return limit_; }

 private:
  int64_t limit_;
  std::atomic<int64_t> used_{0};
};

// A sharded LRU cache from string to immutable shared objects, bounded by bytes.
// Thread-safe.
class Cache {
 public:
  explicit Cache(int64_t capacity_bytes);
  ~Cache();

  template <typename T>
  std::shared_ptr<const T> Get(std::string_view key) {
    return std::static_pointer_cast<const T>(GetRaw(key));
  }
  void Put(std::string_view key, std::shared_ptr<const void> value, int64_t bytes);
  void Erase(std::string_view key);
  void Clear();
  int64_t size_bytes() const;
  int64_t num_items() const;

 private:
  std::shared_ptr<const void> GetRaw(std::string_view key);
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Thread-safe. Survives fork: the child starts new threads at its first parallel call.
class Runtime {
 public:
  static Result<std::shared_ptr<Runtime>> Make(RuntimeOptions options = {});
  ~Runtime();

  int num_threads() const;

  // Runs body(0) … body(num_tasks - 1), in any order, on the pool and on the calling
  // thread, which takes tasks itself until none is left. Returns the first error; tasks
  // not yet started are then skipped. `cancel` is checked before each task. With one
  // task, or one thread, nothing leaves the calling thread. A body may call ParallelFor
  // again (it then runs inline as far as needed), but must not wait for another task in
  // any other way.
  Status ParallelFor(int64_t num_tasks, const std::function<Status(int64_t task)>& body,
                     CancelToken* cancel = nullptr);

  // As above; `worker` is in [0, num_threads()) and no two tasks with the same worker run
  // at once.
  Status ParallelForWorker(int64_t num_tasks,
                           const std::function<Status(int64_t task, int worker)>& body,
                           CancelToken* cancel = nullptr);

  MemoryBudget& memory();
  Cache& cache();

 private:
  explicit Runtime(RuntimeOptions options);
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace glaive
