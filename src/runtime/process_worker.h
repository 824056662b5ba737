// The one background worker of a kind that a process has: made at first use, stopped at
// exit, at rest while the process forks, and new in a child.
#pragma once

#include <pthread.h>

#include <cstdlib>
#include <memory>

#include "runtime/fork.h"

namespace glaive {

// `Worker` has Stop (joins its thread; called at exit), Pause and Resume (around a fork).
// Never destroyed, since the exit handler may run after static destructors.
template <typename Worker>
ForkAware<Worker>& ProcessWorker() {
  static auto* worker = [] {
    auto* made = new ForkAware<Worker>([] { return std::make_unique<Worker>(); });
    std::atexit([] {
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
