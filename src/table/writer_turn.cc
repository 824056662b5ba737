#include "table/writer_turn.h"

#include <chrono>

#include "runtime/cancel.h"

namespace glaive::table {
namespace {

// How often somebody who waits looks whether the call was cancelled.
constexpr auto kCheckInterval = std::chrono::milliseconds(20);

}  // namespace

Status WriterQueue::Enter(TurnKind kind, CancelToken* cancel) {
  std::unique_lock lock(mutex_);
  const bool wants_alone = kind == TurnKind::kAlone;
  std::list<int>::iterator place;
  if (wants_alone) place = waiting_.insert(waiting_.end(), 0);
  auto may_run = [&] {
    if (alone_) return false;
    return wants_alone ? running_ == 0 && place == waiting_.begin() : waiting_.empty();
  };
  while (!may_run()) {
    if (cancel == nullptr) {
      changed_.wait(lock);
      continue;
    }
    changed_.wait_for(lock, kCheckInterval);
    if (may_run()) break;
    lock.unlock();
    Status status = cancel->CheckOnCaller();
    lock.lock();
    if (status.ok()) continue;
    if (wants_alone) waiting_.erase(place);
    lock.unlock();
    changed_.notify_all();
    return status;
  }
  if (wants_alone) {
    waiting_.erase(place);
    alone_ = true;
  } else {
    ++running_;
  }
  return Status::OK();
}

void WriterQueue::Leave(TurnKind kind) {
  {
    std::lock_guard lock(mutex_);
    if (kind == TurnKind::kAlone) {
      alone_ = false;
    } else {
      --running_;
    }
  }
  changed_.notify_all();
}

}  // namespace glaive::table
