#include "runtime/process_worker.h"

#include <unistd.h>

#include <atomic>

#include <gtest/gtest.h>

namespace glaive {
namespace {

constexpr int kUsedAfterItsEnd = 3;

std::atomic<bool> gone{false};

// As libraries make them on first use.
struct LazyState {
  ~LazyState() {
    gone = true;
    ::usleep(100'000);  // time enough for a job that still runs to notice
  }
};
void UseLazyState() { static LazyState state; }

// The first job makes the state, the second uses it until it is cancelled.
class StateUser final : public BackgroundWorker {
 public:
  void Start() {
    std::lock_guard lock(mutex_);
    Wake();
  }
  std::atomic<bool> in_second_job{false};

 private:
  std::optional<Clock::time_point> Step(Lock* lock) override {
    if (jobs_ == 2) return Clock::now() + std::chrono::hours(1);
    const bool first = jobs_++ == 0;
    Work(lock, [&](const CancelToken* cancel) {
      UseLazyState();
      if (first) return;
      in_second_job = true;
      while (cancel->Check().ok()) {
        if (gone) ::_exit(kUsedAfterItsEnd);
      }
    });
    return std::nullopt;
  }

  int jobs_ = 0;  // guarded by mutex_
};

TEST(ProcessWorkerDeathTest, ThreadEndsBeforeTheStaticsThatItsJobsMade) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        StateUser& user = ProcessWorker<StateUser>().get();
        user.Start();
        while (!user.in_second_job) ::usleep(1000);
        std::exit(0);
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace glaive
