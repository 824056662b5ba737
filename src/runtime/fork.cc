#include "runtime/fork.h"

#include <pthread.h>

#include <array>
#include <chrono>
#include <thread>

#include "runtime/shared_ptr_locks.h"

namespace glaive {
namespace {

constexpr int kStripes = 16;
// A thread inside may be without a CPU for long; a fork that does not wait for it gives
// the child a lock that nobody opens.
constexpr auto kLongestWait = std::chrono::seconds(10);

std::atomic<uint64_t> g_generation{0};

// Threads inside the gate, counted in several places so that they do not share a cache
// line.
struct alignas(64) Stripe {
  std::atomic<int> inside{0};
};
std::array<Stripe, kStripes> g_stripes;
std::atomic<bool> g_forking{false};
std::atomic<unsigned> g_threads{0};
std::mutex g_one_fork;  // held from before a fork until after it

struct Place {
  int depth = 0;
  unsigned stripe = g_threads.fetch_add(1, std::memory_order_relaxed) % kStripes;
};
thread_local Place t_place;

int ThreadsInside() {
  int inside = t_place.depth > 0 ? -1 : 0;  // the forking thread does not wait for itself
  for (const Stripe& stripe : g_stripes) {
    inside += stripe.inside.load(std::memory_order_seq_cst);
  }
  return inside;
}

void WaitUntilNobodyIsInside() {
  const auto end = std::chrono::steady_clock::now() + kLongestWait;
  for (int spins = 0; ThreadsInside() > 0; ++spins) {
    if (std::chrono::steady_clock::now() > end) return;
    if (spins < 100) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }
}

void BeforeFork() {
  g_one_fork.lock();
  g_forking.store(true, std::memory_order_seq_cst);
  WaitUntilNobodyIsInside();  // who may need the locks that are taken next
  LockSharedPtrs();
}

void Reopen() {
  UnlockSharedPtrs();
  g_forking.store(false, std::memory_order_seq_cst);
  g_forking.notify_all();
  g_one_fork.unlock();
}

// Runs in the child while it has one thread.
void AfterForkInChild() {
  g_generation.fetch_add(1, std::memory_order_relaxed);
  // Only if the wait was given up is anybody counted here who does not exist any more.
  for (Stripe& stripe : g_stripes) stripe.inside.store(0, std::memory_order_relaxed);
  if (t_place.depth > 0) g_stripes[t_place.stripe].inside.store(1);
  Reopen();
}

const int g_registered = pthread_atfork(&BeforeFork, &Reopen, &AfterForkInChild);

}  // namespace

uint64_t ForkGeneration() {
  (void)g_registered;
  return g_generation.load(std::memory_order_relaxed);
}

void ForkGate::Enter() {
  Place& place = t_place;
  if (place.depth++ > 0) return;
  std::atomic<int>& inside = g_stripes[place.stripe].inside;
  while (true) {
    inside.fetch_add(1, std::memory_order_seq_cst);
    if (!g_forking.load(std::memory_order_seq_cst)) [[likely]]
      return;
    inside.fetch_sub(1, std::memory_order_seq_cst);
    g_forking.wait(true);
  }
}

void ForkGate::Leave() {
  Place& place = t_place;
  if (--place.depth > 0) return;
  g_stripes[place.stripe].inside.fetch_sub(1, std::memory_order_release);
}

}  // namespace glaive
