#include "runtime/runtime.h"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <numeric>
#include <set>
#include <shared_mutex>
#include <thread>

#include <gtest/gtest.h>
#include <sys/wait.h>

#include "runtime/cancel.h"
#include "runtime/fork.h"
#include "runtime/machine.h"

// GCC and Clang each say in their own way that they build for a sanitizer.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define GLAIVE_SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define GLAIVE_SANITIZED
#endif
#endif

namespace glaive {
namespace {

std::shared_ptr<Runtime> WithThreads(int num_threads) {
  RuntimeOptions options;
  options.num_threads = num_threads;
  return Runtime::Make(options).ValueOrDie();
}

int ThreadsOfThisProcess() {
  int count = 0;
  DIR* tasks = ::opendir("/proc/self/task");
  while (const struct dirent* entry = ::readdir(tasks)) count += entry->d_name[0] != '.';
  ::closedir(tasks);
  return count;
}

TEST(ParallelFor, RunsEachTaskOnce) {
  for (const int num_threads : {1, 2, 3, 8}) {
    auto runtime = WithThreads(num_threads);
    for (const int64_t num_tasks : {0, 1, 2, 3, 7, 1000}) {
      std::vector<std::atomic<int>> runs(static_cast<size_t>(num_tasks));
      ASSERT_TRUE(runtime
                      ->ParallelFor(num_tasks,
                                    [&](int64_t task) {
                                      ++runs[static_cast<size_t>(task)];
                                      return Status::OK();
                                    })
                      .ok());
      for (const auto& count : runs) EXPECT_EQ(count, 1);
    }
  }
}

TEST(ParallelFor, NoTwoTasksShareAWorker) {
  auto runtime = WithThreads(4);
  std::vector<std::atomic<int>> inside(4);
  std::atomic<int> violations{0};
  for (int round = 0; round < 50; ++round) {
    ASSERT_TRUE(runtime
                    ->ParallelForWorker(100,
                                        [&](int64_t, int worker) {
                                          if (worker < 0 || worker >= 4) {
                                            ++violations;
                                            return Status::OK();
                                          }
                                          auto& count =
                                              inside[static_cast<size_t>(worker)];
                                          if (count.fetch_add(1) != 0) ++violations;
                                          std::this_thread::yield();
                                          --count;
                                          return Status::OK();
                                        })
                    .ok());
  }
  EXPECT_EQ(violations, 0);
}

TEST(ParallelFor, TheCallerTakesPartAndHelpersJoin) {
  auto runtime = WithThreads(3);
  std::mutex mutex;
  std::set<std::thread::id> seen;
  // Each of three tasks waits for the others to have started: only three threads can do
  // that.
  std::atomic<int> started{0};
  ASSERT_TRUE(runtime
                  ->ParallelFor(3,
                                [&](int64_t) {
                                  {
                                    std::lock_guard lock(mutex);
                                    seen.insert(std::this_thread::get_id());
                                  }
                                  ++started;
                                  while (started < 3) std::this_thread::yield();
                                  return Status::OK();
                                })
                  .ok());
  EXPECT_EQ(seen.size(), 3u);
  EXPECT_TRUE(seen.contains(std::this_thread::get_id()));
}

TEST(ParallelFor, StartsThreadsOnlyWhenNeeded) {
  const int before = ThreadsOfThisProcess();
  auto runtime = WithThreads(5);
  const auto here = std::this_thread::get_id();
  ASSERT_TRUE(runtime
                  ->ParallelFor(1,
                                [&](int64_t) {
                                  EXPECT_EQ(std::this_thread::get_id(), here);
                                  return Status::OK();
                                })
                  .ok());
  EXPECT_EQ(ThreadsOfThisProcess(), before);
  ASSERT_TRUE(runtime->ParallelFor(3, [](int64_t) { return Status::OK(); }).ok());
  EXPECT_EQ(ThreadsOfThisProcess(), before + 2);
  ASSERT_TRUE(runtime->ParallelFor(100, [](int64_t) { return Status::OK(); }).ok());
  EXPECT_EQ(ThreadsOfThisProcess(), before + 4);
  runtime.reset();
  EXPECT_EQ(ThreadsOfThisProcess(), before);
}

TEST(ParallelFor, NestsToAnyDepth) {
  auto runtime = WithThreads(3);
  std::atomic<int64_t> leaves{0};
  std::function<Status(int)> descend = [&](int depth) -> Status {
    if (depth == 0) {
      ++leaves;
      return Status::OK();
    }
    return runtime->ParallelFor(4, [&, depth](int64_t) { return descend(depth - 1); });
  };
  ASSERT_TRUE(descend(5).ok());
  EXPECT_EQ(leaves, 1024);
}

TEST(ParallelFor, ManyCallersAtOnce) {
  auto runtime = WithThreads(3);
  std::atomic<int64_t> total{0};
  std::vector<std::thread> callers;
  for (int i = 0; i < 6; ++i) {
    callers.emplace_back([&] {
      for (int round = 0; round < 100; ++round) {
        (void)runtime
            ->ParallelFor(10,
                          [&](int64_t task) {
                            total += task;
                            return Status::OK();
                          })
            .ok();
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(total, 6 * 100 * 45);
}

TEST(ParallelFor, ReturnsTheErrorAndSkipsTheRest) {
  for (const int num_threads : {1, 4}) {
    auto runtime = WithThreads(num_threads);
    std::atomic<int64_t> ran{0};
    const Status status = runtime->ParallelFor(100'000, [&](int64_t task) -> Status {
      ++ran;
      if (task == 10) return Corruption("task ten");
      return Status::OK();
    });
    EXPECT_EQ(KindOf(status), ErrorKind::kCorruption);
    EXPECT_EQ(status.message(), "task ten");
    EXPECT_GE(ran, 11);
    EXPECT_LT(ran, 100'000);
    // The pool is as good as new.
    EXPECT_TRUE(runtime->ParallelFor(10, [](int64_t) { return Status::OK(); }).ok());
  }
}

TEST(ParallelFor, TurnsExceptionsIntoErrors) {
  auto runtime = WithThreads(3);
  const Status status =
      runtime->ParallelFor(10, [](int64_t) -> Status { throw std::bad_alloc(); });
  EXPECT_EQ(KindOf(status), ErrorKind::kResourceExhausted);
}

TEST(ParallelFor, StopsWhenCancelled) {
  for (const int num_threads : {1, 4}) {
    auto runtime = WithThreads(num_threads);
    CancelToken cancel;
    std::atomic<int64_t> ran{0};
    const Status status = runtime->ParallelFor(
        100'000,
        [&](int64_t) {
          if (++ran == 20) cancel.Cancel();
          return Status::OK();
        },
        &cancel);
    EXPECT_EQ(KindOf(status), ErrorKind::kCancelled);
    EXPECT_LT(ran, 1'000);
  }
}

TEST(ParallelFor, StopsAtTheDeadline) {
  auto runtime = WithThreads(2);
  CancelToken cancel(std::chrono::milliseconds(20));
  const Status status = runtime->ParallelFor(
      1'000'000,
      [](int64_t) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        return Status::OK();
      },
      &cancel);
  EXPECT_EQ(KindOf(status), ErrorKind::kTimeout);
}

TEST(ParallelFor, CallsTheHookOnTheCallingThreadOnly) {
  auto runtime = WithThreads(4);
  CancelToken cancel;
  const auto here = std::this_thread::get_id();
  std::atomic<int> calls{0}, elsewhere{0};
  cancel.set_caller_hook([&] {
    ++calls;
    if (std::this_thread::get_id() != here) ++elsewhere;
    return Status::OK();
  });
  ASSERT_TRUE(runtime
                  ->ParallelFor(
                      50,
                      [&](int64_t) {
                        return runtime->ParallelFor(
                            5,
                            [](int64_t) {
                              std::this_thread::yield();
                              return Status::OK();
                            },
                            &cancel);
                      },
                      &cancel)
                  .ok());
  EXPECT_GT(calls, 0);
  EXPECT_EQ(elsewhere, 0);
}

TEST(ParallelFor, TheHookStopsACallThatOnlyWaits) {
  auto runtime = WithThreads(2);
  CancelToken cancel;
  std::atomic<bool> helper_runs{false};
  const auto here = std::this_thread::get_id();
  cancel.set_caller_hook(
      [&]() -> Status { return helper_runs ? Cancelled("interrupted") : Status::OK(); });
  // The helper's task runs until somebody cancels; the caller's ends when the helper
  // runs.
  const Status status = runtime->ParallelFor(
      2,
      [&](int64_t) -> Status {
        if (std::this_thread::get_id() == here) {
          while (!helper_runs) std::this_thread::yield();
          return Status::OK();
        }
        helper_runs = true;
        while (cancel.Check().ok()) std::this_thread::yield();
        return Status::OK();
      },
      &cancel);
  EXPECT_EQ(status.message(), "interrupted");
}

// Exit code of a child that runs `body`; a child that hangs is killed by its alarm.
int InChild(const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(30);
    ::_exit(body());
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + status;
}

TEST(Fork, TheChildStartsThreadsOfItsOwn) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP()
      << "ThreadSanitizer supports no threads in the child of a threaded process";
#endif
  auto runtime = WithThreads(4);
  const auto sum = [&] {
    std::atomic<int64_t> total{0};
    const Status status = runtime->ParallelFor(1000, [&](int64_t task) {
      total += task;
      return Status::OK();
    });
    return status.ok() && total == 499'500;
  };
  ASSERT_TRUE(sum());
  runtime->cache().Put("k", std::make_shared<int>(1), 10);
  EXPECT_EQ(InChild([&] {
              if (ThreadsOfThisProcess() != 1 || !sum() || ThreadsOfThisProcess() != 4)
                return 1;
              runtime->cache().Put("k", std::make_shared<int>(2), 10);
              if (*runtime->cache().Get<int>("k") != 2) return 2;
              runtime.reset();
              return ThreadsOfThisProcess() == 1 ? 0 : 3;
            }),
            0);
  // A child that never uses the pool can drop it, and a grandchild works too.
  EXPECT_EQ(InChild([&] {
              runtime.reset();
              return 0;
            }),
            0);
  EXPECT_EQ(InChild([&] { return sum() ? InChild([&] { return sum() ? 0 : 1; }) : 2; }),
            0);
  ASSERT_TRUE(sum());
  EXPECT_EQ(*runtime->cache().Get<int>("k"), 1);
}

TEST(Fork, WhileTheParentIsBusy) {
#ifdef GLAIVE_SANITIZED
  GTEST_SKIP() << "the sanitizer's allocator does not survive a fork beside busy threads";
#endif
  auto runtime = WithThreads(4);
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    while (!stop) {
      (void)runtime
          ->ParallelFor(64,
                        [&](int64_t task) {
                          runtime->cache().Put(std::to_string(task),
                                               std::make_shared<int>(1), 10);
                          return Status::OK();
                        })
          .ok();
    }
  });
  for (int i = 0; i < 30; ++i) {
    EXPECT_EQ(InChild([&] {
                std::atomic<int64_t> ran{0};
                const Status status = runtime->ParallelFor(100, [&](int64_t task) {
                  ++ran;
                  runtime->cache().Put(std::to_string(task), std::make_shared<int>(1),
                                       10);
                  return Status::OK();
                });
                return status.ok() && ran == 100 ? 0 : 1;
              }),
              0);
  }
  stop = true;
  busy.join();
}

TEST(Fork, MutexesOfSharedObjectsAreFreeInTheChild) {
#ifdef GLAIVE_SANITIZED
  GTEST_SKIP() << "the sanitizer's allocator does not survive a fork beside busy threads";
#endif
  struct Shared {
    ForkSafeMutex mutex;
    int64_t a = 0, b = 0;  // equal whenever the mutex is free
    ForkSafeSharedMutex other;
    int64_t c = 0, d = 0;
  } shared;
  const auto change = [&] {
    std::lock_guard lock(shared.mutex);
    ++shared.a;
    for (int i = 0; i < 50; ++i) std::this_thread::yield();
    ++shared.b;
    std::unique_lock inner(shared.other);  // inside the first one
    ++shared.c;
    ++shared.d;
  };
  const auto whole = [&] {
    std::lock_guard lock(shared.mutex);
    std::shared_lock inner(shared.other);
    const ForkGuard guard;
    return shared.a == shared.b && shared.c == shared.d;
  };
  std::atomic<bool> stop{false};
  std::vector<std::thread> busy;
  for (int i = 0; i < 3; ++i) {
    busy.emplace_back([&] {
      while (!stop) change();
    });
  }
  for (int i = 0; i < 200; ++i) {
    EXPECT_EQ(InChild([&] {
                if (!whole()) return 1;
                change();
                return whole() ? 0 : 2;
              }),
              0);
  }
  stop = true;
  for (std::thread& thread : busy) thread.join();
  EXPECT_TRUE(whole());
}

#ifdef __GLIBCXX__
TEST(Fork, TheChildCanReadSharedPointersThatOthersWereReading) {
  // What std::atomic_load does with a shared_ptr, stopped in its middle.
  std::vector<std::shared_ptr<int>> pointers(64, std::make_shared<int>(7));
  for (const std::shared_ptr<int>& pointer : pointers) {
    std::atomic<bool> held{false};
    std::thread reader([&] {
      const std::_Sp_locker lock(&pointer);
      held = true;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    });
    while (!held) std::this_thread::yield();
    EXPECT_EQ(InChild([&] {
                for (const auto& any : pointers) {
                  if (*std::atomic_load(&any) != 7) return 1;
                }
                return 0;
              }),
              0);
    reader.join();
    EXPECT_EQ(*std::atomic_load(&pointer), 7);
  }
}
#endif

TEST(Fork, WaitsForNobodyForEver) {
  // A thread that breaks the rule and stays inside delays a fork, but does not stop it.
  std::atomic<bool> inside{false}, stop{false};
  std::thread stuck([&] {
    const ForkGuard guard;
    inside = true;
    while (!stop) std::this_thread::yield();
  });
  while (!inside) std::this_thread::yield();
  EXPECT_EQ(InChild([] {
              const ForkGuard guard;
              return 0;
            }),
            0);
  stop = true;
  stuck.join();
  const ForkGuard own;  // nor does the thread that forks wait for itself
  const auto began = std::chrono::steady_clock::now();
  EXPECT_EQ(InChild([] { return 0; }), 0);
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::milliseconds(900));
}

TEST(Fork, InsideATaskEndsInAnError) {
  auto runtime = WithThreads(2);
  const pid_t parent = ::getpid();
  std::atomic<int> child_code{-1};
  std::atomic<bool> release_helper{false};
  const auto here = std::this_thread::get_id();
  const Status status = runtime->ParallelFor(2, [&](int64_t) -> Status {
    if (std::this_thread::get_id() != here) {
      while (!release_helper) std::this_thread::yield();
      return Status::OK();
    }
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(30);
      return Status::OK();
    }
    int code = -1;
    ::waitpid(child, &code, 0);
    child_code = WIFEXITED(code) ? WEXITSTATUS(code) : 1000 + code;
    release_helper = true;
    return Status::OK();
  });
  if (::getpid() != parent) ::_exit(KindOf(status) == ErrorKind::kInternal ? 42 : 1);
  EXPECT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(child_code, 42);
}

TEST(Runtime, ThreadCountComesFromOptionsEnvironmentOrMachine) {
  ::unsetenv("GLAIVE_NUM_THREADS");
  EXPECT_EQ(WithThreads(0)->num_threads(), GrantedCpus());
  EXPECT_EQ(WithThreads(7)->num_threads(), 7);
  ::setenv("GLAIVE_NUM_THREADS", "5", 1);
  EXPECT_EQ(WithThreads(0)->num_threads(), 5);
  EXPECT_EQ(WithThreads(7)->num_threads(), 7);
  for (const char* bad : {"0", "-1", "two", "3x", "100000", "99999999999999999999"}) {
    ::setenv("GLAIVE_NUM_THREADS", bad, 1);
    const Status status = Runtime::Make().status();
    EXPECT_EQ(KindOf(status), ErrorKind::kInvalidInput) << bad;
    EXPECT_NE(status.message().find("GLAIVE_NUM_THREADS"), std::string::npos);
  }
  ::unsetenv("GLAIVE_NUM_THREADS");
  RuntimeOptions options;
  options.num_threads = -1;
  EXPECT_EQ(KindOf(Runtime::Make(options).status()), ErrorKind::kInvalidInput);
}

TEST(MemoryBudget, Bounds) {
  MemoryBudget budget(100);
  EXPECT_TRUE(budget.Reserve(60).ok());
  EXPECT_EQ(KindOf(budget.Reserve(41)), ErrorKind::kResourceExhausted);
  EXPECT_EQ(KindOf(budget.Reserve(INT64_MAX)), ErrorKind::kResourceExhausted);
  EXPECT_EQ(KindOf(budget.Reserve(-1)), ErrorKind::kInvalidInput);
  EXPECT_TRUE(budget.Reserve(40).ok());
  EXPECT_EQ(budget.used_bytes(), 100);
  budget.Release(100);
  EXPECT_EQ(budget.used_bytes(), 0);
}

}  // namespace
}  // namespace glaive
