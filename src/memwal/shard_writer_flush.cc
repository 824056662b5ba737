// The flush queue: sealed memtables become generations, oldest first.
#include <algorithm>

#include "format/memwal.pb.h"
#include "io/object_store.h"
#include "memwal/shard_writer_impl.h"

namespace glaive::memwal {
namespace {

using std::chrono::milliseconds;

constexpr int64_t kLongestBackoffMs = 5000;
// Whoever waits for a memtable is told after so many attempts that failed.
constexpr int kPatience = 4;

}  // namespace

Status ShardWriter::Impl::PublishSlot(MemtableSlot* slot) {
  std::shared_ptr<const ShardManifest> known;
  uint64_t covered = 0;
  {
    Lock lock(mutex_);
    known = manifest_;
    covered = slot->covered;
  }
  const uint64_t generation = slot->memtable.generation();
  bool done_before = false;
  Result<ShardManifest> updated =
      manifests_->Update(epoch_, *known, [&](ShardManifest* manifest) -> Status {
        // Only we move the cursor as long as nobody else has claimed the shard: an
        // earlier attempt went through although the store said that it had failed.
        done_before = manifest->writer_epoch() == epoch_ &&
                      manifest->replay_after_wal_entry_position() >= covered;
        if (done_before) return AlreadyExists("generation ", generation, " is published");
        *manifest->add_sstables() = *slot->written;
        manifest->set_current_generation(
            std::max(manifest->current_generation(), generation + 1));
        manifest->set_replay_after_wal_entry_position(covered);
        manifest->set_wal_entry_position_last_seen(
            std::max(manifest->wal_entry_position_last_seen(), covered));
        return Status::OK();
      });
  if (done_before) {
    GLAIVE_ASSIGN_OR_RETURN(std::optional<ShardManifest> latest,
                            manifests_->ReadLatest());
    if (!latest) {
      return Corruption("the manifests of shard ", shard_.ToString(), " of table ",
                        base_->env().store->root(), " are gone");
    }
    if (latest->writer_epoch() > epoch_) {
      return FencedError(shard_, epoch_, latest->writer_epoch());
    }
    updated = std::move(*latest);
  }
  GLAIVE_RETURN_NOT_OK(updated.status());
  Lock lock(mutex_);
  if (updated->version() > manifest_->version()) {
    manifest_ = std::make_shared<const ShardManifest>(std::move(*updated));
  }
  return Status::OK();
}

Status ShardWriter::Impl::FlushSlot(MemtableSlot* slot) {
  if (!slot->written) {
    // A table that was dropped must not come back with this generation alone in it.
    GLAIVE_RETURN_NOT_OK(manifests_->CheckFence(epoch_));
    GLAIVE_ASSIGN_OR_RETURN(
        slot->written, WriteGeneration(base_->env(), shard_,
                                       slot->memtable.Read(slot->memtable.num_batches()),
                                       generation_options_));
  }
  return PublishSlot(slot);
}

void ShardWriter::Impl::RetireLocked(const SlotPtr& slot) {
  std::erase(slots_, slot);
  published_++;
  flush_failing_ = false;
  memory_->SetFlushing(slots_.size() > 1);
  memory_->Adjust(-slot->counted_bytes);
  stats_.memtable_flush_count++;
  stats_.memtable_flush_rows += slot->rows;
}

void ShardWriter::Impl::StartFlusherLocked() {
  if (flusher_.joinable() || stop_) return;
  flusher_ = std::thread([self = shared_from_this()] { self->RunFlusher(); });
}

void ShardWriter::Impl::RunFlusher() {
  Lock lock(mutex_);
  while (true) {
    if (stop_ || !health_.ok()) break;
    const SlotPtr slot = slots_.front();
    if (!slot->sealed) {
      work_cv_.wait(lock);
      continue;
    }
    if (slot->failures > 0 && Clock::now() < flush_not_before_) {
      work_cv_.wait_until(lock, flush_not_before_);
      continue;
    }
    if (!WaitDurable(&lock, slot, slot->appended).ok()) break;
    lock.unlock();
    const auto start = Clock::now();
    const Status status = FlushSlot(slot.get());
    const auto us =
        std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - start);
    lock.lock();
    stats_.memtable_flush_time_us += us.count();
    if (status.ok()) {
      RetireLocked(slot);
      const auto manifest = manifest_;
      const auto callback = on_flush_;
      flush_cv_.notify_all();
      if (callback) {
        lock.unlock();
        callback(*manifest);
        lock.lock();
      }
      continue;
    }
    stats_.memtable_flush_failures++;
    slot->failure = status;
    if (KindOf(status) == ErrorKind::kFenced) {
      PoisonLocked(status);
      break;
    }
    const int64_t first = std::clamp<int64_t>(config_.wal_persist_retry_base_delay_ms, 1,
                                              kLongestBackoffMs);
    flush_not_before_ =
        Clock::now() +
        milliseconds(std::min(first << std::min(slot->failures, 12), kLongestBackoffMs));
    slot->failures++;
    flush_failing_ = true;
    memory_->SetFlushing(false);
    flush_cv_.notify_all();
  }
}

Status ShardWriter::Impl::WaitFlushed(Lock* lock, SlotPtr slot) {
  const auto waiting = [&] {
    return std::find(slots_.begin(), slots_.end(), slot) != slots_.end();
  };
  const int64_t published = published_;
  const int failures = slots_.front()->failures;
  while (waiting()) {
    GLAIVE_RETURN_NOT_OK(health_);
    if (stop_) return Closed("ShardWriter is already closed");
    const MemtableSlot& oldest = *slots_.front();
    const int before = published_ == published ? failures : 0;
    if (oldest.failures >= before + kPatience) {
      return WithContext(oldest.failure,
                         "generation " + std::to_string(oldest.memtable.generation()) +
                             " of shard " + shard_.ToString() +
                             " could not be written (its rows are in the log, and it "
                             "will be tried again)");
    }
    flush_cv_.wait(*lock);
  }
  return Status::OK();
}

Result<bool> ShardWriter::Impl::Flush() {
  GLAIVE_RETURN_NOT_OK(CheckProcess());
  Lock order(order_mutex_);
  Lock lock(mutex_);
  GLAIVE_RETURN_NOT_OK(UsableLocked());
  SealLocked();
  if (slots_.size() == 1) return false;
  const SlotPtr newest = slots_[slots_.size() - 2];
  order.unlock();
  flush_not_before_ = {};  // whoever asks does not want to wait for the next attempt
  work_cv_.notify_all();
  GLAIVE_RETURN_NOT_OK(WaitFlushed(&lock, newest));
  return true;
}

}  // namespace glaive::memwal
