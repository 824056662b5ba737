// The end of a writer: closed, aborted, dropped, forked, or with the process.
#include <cstdlib>
#include <map>

#include "memwal/shard_writer_impl.h"
#include "runtime/fork.h"

namespace glaive::memwal {
namespace {

// Writers whose threads must not outlive main: static objects that they use are destroyed
// after it.
class OpenWriters {
 public:
  using StopCall = std::function<void()>;
  void Add(const void* key, StopCall stop) {
    std::lock_guard lock(mutex_);
    stops_[key] = std::move(stop);
  }
  void Remove(const void* key) {
    std::lock_guard lock(mutex_);
    stops_.erase(key);
  }
  void StopAll() {
    std::map<const void*, StopCall> stops;
    {
      std::lock_guard lock(mutex_);
      stops.swap(stops_);
    }
    for (const auto& [key, stop] : stops) stop();
  }

 private:
  std::mutex mutex_;
  std::map<const void*, StopCall> stops_;
};

// Never destroyed.
ForkAware<OpenWriters>& TheOpenWriters() {
  static auto* writers = [] {
    auto* made =
        new ForkAware<OpenWriters>([] { return std::make_unique<OpenWriters>(); });
    std::atexit([] {
      if (OpenWriters* current = TheOpenWriters().get_if_current()) current->StopAll();
    });
    return made;
  }();
  return *writers;
}

void End(std::thread* thread) {
  if (!thread->joinable()) return;
  if (thread->get_id() == std::this_thread::get_id()) {
    thread->detach();  // the last reference went away in a callback
  } else {
    thread->join();
  }
}

}  // namespace

ShardWriter::Impl::Impl(table::Dataset::Ptr base, const ShardId& shard,
                        const WriterConfig& config)
    : base_(std::move(base)),
      shard_(shard),
      config_(config),
      fork_generation_(ForkGeneration()) {}

ShardWriter::Impl::~Impl() = default;

void ShardWriter::Impl::StopAtExit() {
  TheOpenWriters().get().Add(this, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->Stop(true);
  });
}

void ShardWriter::Impl::Stop(bool append_rest) {
  std::thread flusher, logger;
  {
    Lock lock(mutex_);
    stop_ = true;
    append_rest_ = append_rest;
    if (memory_ != nullptr) memory_->SetFlushing(false);
    flusher.swap(flusher_);
    logger.swap(logger_);
    work_cv_.notify_all();
    flush_cv_.notify_all();
  }
  End(&flusher);
  End(&logger);
  TheOpenWriters().get().Remove(this);
}

Status ShardWriter::Impl::Close() {
  if (!CheckProcess().ok()) return Status::OK();
  std::lock_guard one_at_a_time(close_mutex_);
  Status status;
  {
    Lock order(order_mutex_);
    Lock lock(mutex_);
    if (closed_) return Status::OK();
    closed_ = true;
    if (!slots_.empty()) SealLocked();
    const SlotPtr newest = slots_.size() > 1 ? slots_[slots_.size() - 2] : nullptr;
    order.unlock();
    flush_not_before_ = {};
    work_cv_.notify_all();
    flush_cv_.notify_all();
    if (newest != nullptr) {
      status = DrainLog(&lock);
      if (status.ok()) status = WaitFlushed(&lock, newest);
    }
  }
  Stop(false);
  return status;
}

void ShardWriter::Impl::Abort() {
  if (!CheckProcess().ok()) return;
  {
    Lock lock(mutex_);
    closed_ = true;
    if (health_.ok()) {
      health_ = Closed("ShardWriter is already closed: shard ", shard_.ToString(),
                       " was given up");
    }
    log_cv_.notify_all();
    company_cv_.notify_all();
    flush_cv_.notify_all();
  }
  Stop(false);
}

ShardWriter::ShardWriter(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {
  impl_->StopAtExit();
}

ShardWriter::~ShardWriter() {
  if (ForkGeneration() != impl_->fork_generation_) {
    // Its locks and threads are the parent's: it cannot be destroyed here.
    static_cast<void>(new std::shared_ptr<Impl>(std::move(impl_)));
    return;
  }
  impl_->Stop(true);
}

}  // namespace glaive::memwal
