// Lets writers of one process take turns, so that an operation that chooses rows and then
// commits is not overtaken for ever.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <utility>

#include "base/status.h"

namespace glaive {
class CancelToken;
}

namespace glaive::table {

enum class TurnKind : uint8_t {
  kAmongOthers,  // a first attempt: others may run, unless somebody waits for kAlone
  kAlone,        // after a lost race: waits until the others are done, they wait for us
};

// First come, first served. Thread-safe.
class WriterQueue {
 public:
  // Cancelled or Timeout as `cancel` says (null: waits for ever).
  Status Enter(TurnKind kind, CancelToken* cancel);
  void Leave(TurnKind kind);

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::list<int> waiting_;  // one entry for each who waits to be alone, oldest first
  int running_ = 0;         // kAmongOthers
  bool alone_ = false;      // somebody runs alone
};

// A place among the writers of a table in this process; given back by the destructor.
// Holding one twice in one thread may deadlock.
class WriterTurn {
 public:
  WriterTurn() = default;
  WriterTurn(std::shared_ptr<WriterQueue> queue, TurnKind kind)
      : queue_(std::move(queue)), kind_(kind) {}
  ~WriterTurn() { GiveBack(); }
  WriterTurn(WriterTurn&& other) noexcept
      : queue_(std::move(other.queue_)), kind_(other.kind_) {}
  WriterTurn& operator=(WriterTurn&& other) noexcept {
    if (this == &other) return *this;
    GiveBack();
    queue_ = std::move(other.queue_);
    kind_ = other.kind_;
    return *this;
  }

  void GiveBack() {
    if (queue_) queue_->Leave(kind_);
    queue_.reset();
  }

 private:
  std::shared_ptr<WriterQueue> queue_;
  TurnKind kind_ = TurnKind::kAmongOthers;
};

}  // namespace glaive::table
