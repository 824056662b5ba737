#include "runtime/runtime.h"

#include <charconv>
#include <cstdlib>
#include <cstring>

#include "runtime/cancel.h"
#include "runtime/cancel_scope.h"
#include "runtime/fork.h"
#include "runtime/inline_scope.h"
#include "runtime/machine.h"
#include "runtime/thread_pool.h"

namespace glaive {
namespace {

constexpr int kMaxThreads = 1024;

Result<int> ChooseNumThreads(int requested) {
  if (requested < 0 || requested > kMaxThreads) {
    return InvalidInput("num_threads must be between 0 and ", kMaxThreads, ", not ",
                        requested);
  }
  if (requested > 0) return requested;
  const char* text = std::getenv("GLAIVE_NUM_THREADS");
  if (text == nullptr || *text == '\0') return std::min(GrantedCpus(), kMaxThreads);
  int value = 0;
  const char* end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, value);
  if (error != std::errc() || stop != end || value < 1 || value > kMaxThreads) {
    return InvalidInput("GLAIVE_NUM_THREADS must be a number between 1 and ", kMaxThreads,
                        ", not '", text, "'");
  }
  return value;
}

}  // namespace

struct Runtime::Impl {
  explicit Impl(const RuntimeOptions& options)
      : num_threads(options.num_threads),
        memory(options.memory_budget_bytes),
        cache(std::min(options.cache_bytes, options.memory_budget_bytes)),
        pool([helpers = options.num_threads - 1] {
          return std::make_unique<ThreadPool>(helpers);
        }) {}

  const int num_threads;
  MemoryBudget memory;
  Cache cache;
  ForkAware<ThreadPool> pool;  // last: its threads stop before the rest goes away
};

Result<std::shared_ptr<Runtime>> Runtime::Make(RuntimeOptions options) {
  GLAIVE_ASSIGN_OR_RETURN(options.num_threads, ChooseNumThreads(options.num_threads));
  if (options.memory_budget_bytes < 0 || options.cache_bytes < 0) {
    return InvalidInput("memory_budget_bytes and cache_bytes must not be negative");
  }
  if (options.memory_budget_bytes == 0) {
    options.memory_budget_bytes = GrantedMemoryBytes() / 2;
  }
  return std::shared_ptr<Runtime>(new Runtime(options));
}

Runtime::Runtime(RuntimeOptions options) : impl_(std::make_unique<Impl>(options)) {}
Runtime::~Runtime() = default;

int Runtime::num_threads() const { return impl_->num_threads; }
MemoryBudget& Runtime::memory() { return impl_->memory; }
Cache& Runtime::cache() { return impl_->cache; }

Status Runtime::ParallelForWorker(
    int64_t num_tasks, const std::function<Status(int64_t task, int worker)>& body,
    CancelToken* cancel) {
  std::function<Status(int64_t, int)> scoped;
  if (cancel != nullptr) {
    scoped = [&body, cancel](int64_t task, int worker) {
      const CancelScope scope(cancel);
      return body(task, worker);
    };
  }
  const auto& run = cancel == nullptr ? body : scoped;
  if (num_tasks <= 1 || impl_->num_threads == 1 || InlineScope::active()) {
    return RunInline(num_tasks, run, cancel);
  }
  return impl_->pool.get().Run(num_tasks, run, cancel);
}

Status Runtime::ParallelFor(int64_t num_tasks,
                            const std::function<Status(int64_t task)>& body,
                            CancelToken* cancel) {
  return ParallelForWorker(
      num_tasks, [&body](int64_t task, int) { return body(task); }, cancel);
}

}  // namespace glaive
