#include "runtime/fork.h"

#include <pthread.h>

namespace glaive {
namespace {

std::atomic<uint64_t> g_generation{0};

// Runs in the child while it has one thread: only an async-signal-safe increment.
void CountFork() { g_generation.fetch_add(1, std::memory_order_relaxed); }

const int g_registered = pthread_atfork(nullptr, nullptr, &CountFork);

}  // namespace

uint64_t ForkGeneration() {
  (void)g_registered;
  return g_generation.load(std::memory_order_relaxed);
}

}  // namespace glaive
