// State that a forked child must not share with its parent's threads.
//
// After fork only the calling thread lives on: a mutex that another thread held stays
// locked for ever, and what it guarded may be half changed. Caches and pools therefore
// keep everything in one object and start with a new one in the child; the old object is
// left alone (its memory is shared with the parent until written).
//
// Objects that live on in the child (snapshots, table handles) guard their state with the
// mutexes below instead: a fork waits until none of them is held.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <utility>

namespace glaive {

// Number of forks between the first process that used the library and this one. Cheap.
uint64_t ForkGeneration();

// Holds a T that is made anew in each forked child. Thread-safe. A reference from get()
// stays valid until the process forks or the holder is destroyed.
template <typename T>
class ForkAware {
 public:
  explicit ForkAware(std::function<std::unique_ptr<T>()> make)
      : make_(std::move(make)), current_(new Slot{ForkGeneration(), make_()}) {}

  ~ForkAware() {
    Slot* slot = current_.load(std::memory_order_acquire);
    // A T of the parent may hold locks and threads that no longer exist: it cannot be
    // destroyed.
    if (slot->generation != ForkGeneration()) (void)slot->value.release();
    delete slot;
  }

  ForkAware(const ForkAware&) = delete;
  ForkAware& operator=(const ForkAware&) = delete;

  T& get() {
    Slot* slot = current_.load(std::memory_order_acquire);
    if (slot->generation == ForkGeneration()) [[likely]] {
      return *slot->value;
    }
    return Renew(slot);
  }

  // Null when the T belongs to the parent process.
  T* get_if_current() const {
    Slot* slot = current_.load(std::memory_order_acquire);
    return slot->generation == ForkGeneration() ? slot->value.get() : nullptr;
  }

 private:
  struct Slot {
    uint64_t generation;
    std::unique_ptr<T> value;
  };

  T& Renew(Slot* stale) {
    auto fresh = std::make_unique<Slot>(Slot{ForkGeneration(), make_()});
    // One of several threads that come here together wins; the stale slot is leaked on
    // purpose.
    if (current_.compare_exchange_strong(stale, fresh.get(), std::memory_order_acq_rel)) {
      return *fresh.release()->value;
    }
    return *stale->value;
  }

  std::function<std::unique_ptr<T>()> make_;
  std::atomic<Slot*> current_;
};

// Stretches of code during which no fork happens: fork waits for the threads that are
// inside, and threads that want to enter wait for fork. They may nest. Code inside must
// be short; it must not wait for other threads except those that are inside themselves,
// and must not run code of the user. (A fork gives up waiting after ten seconds, so
// that breaking this rule costs time and safety, but stops nothing.)
class ForkGate {
 public:
  static void Enter();
  static void Leave();
};

// For the lifetime of the object; where no mutex is taken, around call_once say.
class ForkGuard {
 public:
  ForkGuard() { ForkGate::Enter(); }
  ~ForkGuard() { ForkGate::Leave(); }
  ForkGuard(const ForkGuard&) = delete;
  ForkGuard& operator=(const ForkGuard&) = delete;
};

// A mutex that is free, and whose state is whole, in each forked child.
class ForkSafeMutex {
 public:
  void lock() {
    ForkGate::Enter();
    mutex_.lock();
  }
  void unlock() {
    mutex_.unlock();
    ForkGate::Leave();
  }

 private:
  std::mutex mutex_;
};

// The same for one writer or many readers.
class ForkSafeSharedMutex {
 public:
  void lock() {
    ForkGate::Enter();
    mutex_.lock();
  }
  void unlock() {
    mutex_.unlock();
    ForkGate::Leave();
  }
  void lock_shared() {
    ForkGate::Enter();
    mutex_.lock_shared();
  }
  void unlock_shared() {
    mutex_.unlock_shared();
    ForkGate::Leave();
  }

 private:
  std::shared_mutex mutex_;
};

}  // namespace glaive
