// Rows into the active memtable, in order and within the bounds.
#include <algorithm>

#include <arrow/record_batch.h>

#include "exec/row_bytes.h"
#include "io/object_store.h"
#include "memwal/shard_writer_impl.h"
#include "runtime/fork.h"

namespace glaive::memwal {
namespace {

// Back-pressure gives up when no memtable could be flushed for so long.
constexpr std::chrono::milliseconds kStuck{1000};

}  // namespace

Status ShardWriter::Impl::CheckProcess() const {
  if (ForkGeneration() == fork_generation_) [[likely]]
    return Status::OK();
  return Closed("this ShardWriter of shard ", shard_.ToString(),
                " belongs to the process that was forked; open a writer of its own here");
}

Status ShardWriter::Impl::UsableLocked() const {
  GLAIVE_RETURN_NOT_OK(health_);
  if (closed_) {
    return Closed("ShardWriter is already closed; open shard ", shard_.ToString(),
                  " again to write to it");
  }
  return Status::OK();
}

Status ShardWriter::Impl::CheckUsable() {
  GLAIVE_RETURN_NOT_OK(CheckProcess());
  Lock lock(mutex_);
  return UsableLocked();
}

int64_t ShardWriter::Impl::ResidentLocked() const {
  int64_t bytes = 0;
  for (const SlotPtr& slot : slots_) {
    bytes += slot->sealed ? slot->sealed_bytes : slot->memtable.resident_bytes();
  }
  return bytes;
}

bool ShardWriter::Impl::Fits(int64_t batches, int64_t rows) const {
  const MemtableSlot& active = *slots_.back();
  if (active.appended == 0) return true;
  return active.memtable.row_bytes() < config_.max_memtable_size &&
         active.memtable.resident_bytes() < config_.max_unflushed_memtable_bytes &&
         active.appended + batches <= config_.max_memtable_batches &&
         active.rows + rows <= config_.max_memtable_rows;
}

void ShardWriter::Impl::SealLocked() {
  const SlotPtr& active = slots_.back();
  if (active->appended == 0) return;
  active->sealed = true;
  active->sealed_bytes = active->memtable.resident_bytes();
  slots_.push_back(
      std::make_shared<MemtableSlot>(schema_, active->memtable.generation() + 1,
                                     active->first_batch + active->appended));
  memory_->SetActive(0);
  memory_->SetFlushing(!flush_failing_);
  StartFlusherLocked();
  work_cv_.notify_all();
}

void ShardWriter::Impl::CountLocked(MemtableSlot* slot, int64_t taken) {
  const int64_t resident =
      slot->sealed ? slot->sealed_bytes : slot->memtable.resident_bytes();
  memory_->Adjust(resident - slot->counted_bytes - taken);
  slot->counted_bytes = resident;
  if (!slot->sealed) memory_->SetActive(slot->memtable.num_rows() > 0 ? resident : 0);
}

void ShardWriter::Impl::SealForOthers() {
  Lock order(order_mutex_);
  Lock lock(mutex_);
  if (UsableLocked().ok()) {
    SealLocked();
  } else {
    memory_->SetActive(0);  // nothing will be flushed here
  }
}

Status ShardWriter::Impl::EnterInOrder(int64_t bytes, Lock* order, Lock* lock) {
  auto waiting_since = Clock::time_point::max();
  MemtableMemory::Waiter others(*memory_, bytes);
  while (true) {
    order->lock();
    lock->lock();
    GLAIVE_RETURN_NOT_OK(UsableLocked());
    if (ResidentLocked() < config_.max_unflushed_memtable_bytes ||
        (slots_.size() == 1 && slots_.back()->appended == 0)) {
      if (memory_->TryTake(bytes)) return Status::OK();
      lock->unlock();
      order->unlock();
      GLAIVE_RETURN_NOT_OK(others.Wait());
      continue;
    }
    SealLocked();
    order->unlock();

    // The oldest flush makes room.
    const auto now = Clock::now();
    waiting_since = std::min(waiting_since, now);
    const int64_t published = published_;
    if (!flush_failing_) waiting_since = now;
    if (now - waiting_since >= kStuck) {
      return ResourceExhausted(
          "shard ", shard_.ToString(), " of table ", base_->env().store->root(),
          " holds ", ResidentLocked(),
          " bytes that are not flushed yet (max_unflushed_memtable_bytes=",
          config_.max_unflushed_memtable_bytes,
          "), and flushing them fails: ", slots_.front()->failure.message(),
          "; nothing of this call was written, try it again later");
    }
    flush_cv_.wait_until(*lock, now + kStuck, [&] {
      return published_ != published || !UsableLocked().ok() ||
             (flush_failing_ && Clock::now() - waiting_since >= kStuck);
    });
    if (published_ != published) waiting_since = Clock::time_point::max();
    lock->unlock();
  }
}

Status ShardWriter::Impl::Insert(BatchVector rows, int64_t num_rows) {
  const auto start = Clock::now();
  const auto num_batches = static_cast<int64_t>(rows.size());
  if (num_rows > config_.max_memtable_rows) {
    return InvalidInput("write of ", num_rows, " rows across ", num_batches,
                        " batches exceeds max_memtable_rows=", config_.max_memtable_rows,
                        ": a write is never split across memtables. Split the write, or "
                        "raise max_memtable_rows");
  }
  if (num_batches > config_.max_memtable_batches) {
    return InvalidInput(
        "write of ", num_rows, " rows across ", num_batches,
        " batches exceeds max_memtable_batches=", config_.max_memtable_batches,
        ": a write is never split across memtables. Split the write, "
        "give it as fewer batches, or raise max_memtable_batches");
  }
  Lock order(order_mutex_, std::defer_lock);
  Lock lock(mutex_, std::defer_lock);
  int64_t taken = 0;
  for (const auto& batch : rows) taken += exec::RowBytes(*batch);
  GLAIVE_RETURN_NOT_OK(EnterInOrder(taken, &order, &lock));
  if (!Fits(num_batches, num_rows)) SealLocked();
  const SlotPtr slot = slots_.back();
  puts_under_way_++;
  lock.unlock();

  const int64_t bytes_before = slot->memtable.row_bytes();
  Status status = slot->memtable.Append(rows);
  const int64_t bytes = slot->memtable.row_bytes() - bytes_before;

  lock.lock();
  CountLocked(slot.get(), taken);
  if (status.ok()) {
    const bool was_idle = OldestOwing() == nullptr;
    if (was_idle) pending_since_ = Clock::now();
    slot->appended += num_batches;
    slot->rows += num_rows;
    if (slot->pending.empty()) {
      slot->pending = std::move(rows);
    } else {
      slot->pending.insert(slot->pending.end(), std::make_move_iterator(rows.begin()),
                           std::make_move_iterator(rows.end()));
    }
    slot->pending_rows += num_rows;
    slot->pending_bytes += bytes;
    slot->pending_puts++;
    pending_bytes_ += bytes;
    const int64_t end = slot->appended;
    if (!Fits(1, 1)) SealLocked();
    order.unlock();
    // Not for each one that comes: waking the leader costs more than a put.
    if (gathering_ && CompanyIsHere()) company_cv_.notify_one();
    if (config_.durable_write) {
      status = WaitDurable(&lock, slot, end);
    } else {
      NoteBackgroundLog(was_idle);
      status = health_;
    }
  }
  puts_under_way_--;
  if (status.ok()) {
    stats_.put_count++;
    stats_.put_time_us +=
        std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - start)
            .count();
  }
  return status;
}

void ShardWriter::Impl::NoteBackgroundLog(bool was_idle) {
  if (!logger_.joinable() && !stop_) {
    logger_ = std::thread([self = shared_from_this()] { self->RunLog(); });
  } else if (was_idle || (config_.max_wal_buffer_size > 0 &&
                          pending_bytes_ >= config_.max_wal_buffer_size)) {
    work_cv_.notify_all();
  }
}

}  // namespace glaive::memwal
