// Group commit: rows of many puts go to the log in one entry.
#include <algorithm>

#include <arrow/record_batch.h>

#include "io/object_store.h"
#include "memwal/shard_writer_impl.h"

namespace glaive::memwal {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

// Below this an append is over before a waiting thread would be awake again.
constexpr double kWorthGathering = 200;  // microseconds
// A leader waits at most this part of an append for others to join.
constexpr double kGatherShare = 3;
constexpr double kLongestGather = 1000;  // microseconds
// Weight of the newest append in the average.
constexpr double kNewest = 0.2;
constexpr int64_t kLongestIntervalMs = 24 * 3600 * 1000;

int64_t MicrosSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration_cast<microseconds>(std::chrono::steady_clock::now() -
                                                  start)
      .count();
}

}  // namespace

SlotPtr ShardWriter::Impl::OldestOwing() const {
  for (const SlotPtr& slot : slots_) {
    if (slot->owes()) return slot;
  }
  return nullptr;
}

Status ShardWriter::Impl::WaitDurable(Lock* lock, const SlotPtr& slot, int64_t batches) {
  while (slot->durable < batches) {
    GLAIVE_RETURN_NOT_OK(health_);
    if (appending_) {
      log_cv_.wait(*lock);
    } else {
      AppendPending(lock);
    }
  }
  return Status::OK();
}

bool ShardWriter::Impl::CompanyIsHere() const {
  int64_t puts = 0;
  for (const SlotPtr& slot : slots_) puts += slot->pending_puts;
  return puts >= expected_puts_ || !health_.ok() || stop_ || draining_;
}

// Without this, of 16 callers that put in a loop one half would always wait for the
// append that serves the other half.
void ShardWriter::Impl::WaitForCompany(Lock* lock) {
  if (append_us_ < kWorthGathering || CompanyIsHere()) return;
  const auto longest = microseconds(
      static_cast<int64_t>(std::min(append_us_ / kGatherShare, kLongestGather)));
  gathering_ = true;
  company_cv_.wait_until(*lock, Clock::now() + longest,
                         [this] { return CompanyIsHere(); });
  gathering_ = false;
}

void ShardWriter::Impl::AppendPending(Lock* lock) {
  appending_ = true;
  if (config_.durable_write) WaitForCompany(lock);
  const SlotPtr slot = OldestOwing();
  if (slot == nullptr || !health_.ok()) {
    appending_ = false;
    log_cv_.notify_all();
    return;
  }
  const BatchVector rows = std::exchange(slot->pending, {});
  pending_bytes_ -= slot->pending_bytes;
  slot->pending_bytes = slot->pending_rows = slot->pending_puts = 0;
  // What other memtables owe has waited too, but not as long.
  pending_since_ = Clock::now();
  lock->unlock();

  const auto start = Clock::now();
  int64_t bytes = 0;
  const auto append = [&]() -> Result<uint64_t> {
    BatchVector batches;
    batches.reserve(rows.size());
    for (const auto& row : rows) {
      batches.push_back(
          arrow::RecordBatch::Make(schema_->wal(), row->num_rows(), row->column_data()));
    }
    WalEntryHeader header;
    header.writer_epoch = epoch_;
    if (config_.write_generation) header.generation = slot->memtable.generation();
    GLAIVE_ASSIGN_OR_RETURN(const EncodedWalEntry entry, EncodeWalEntry(header, batches));
    bytes = entry.size_bytes;
    return appender_->Append(entry);
  };
  const Result<uint64_t> position = append();
  const int64_t us = MicrosSince(start);

  lock->lock();
  appending_ = false;
  expected_puts_ = puts_under_way_;
  if (position.ok()) {
    const auto appended = static_cast<int64_t>(rows.size());
    slot->durable += appended;
    slot->covered = *position;
    durable_batches_ += appended;
    stats_.wal_flush_count++;
    stats_.wal_flush_bytes += bytes;
    stats_.wal_flush_time_us += us;
    append_us_ += (static_cast<double>(us) - append_us_) * kNewest;
  } else {
    PoisonLocked(position.status());
  }
  log_cv_.notify_all();
  if (slot->sealed && !slot->owes()) work_cv_.notify_all();
}

Status ShardWriter::Impl::DrainLog(Lock* lock) {
  draining_ = true;
  company_cv_.notify_all();
  Status status;
  while (status.ok()) {
    const SlotPtr slot = OldestOwing();
    if (slot == nullptr) break;
    status = WaitDurable(lock, slot, slot->appended);
  }
  draining_ = false;
  return status;
}

// The thread that appends when puts do not wait for it.
void ShardWriter::Impl::RunLog() {
  const auto interval =
      milliseconds(std::min(config_.max_wal_flush_interval_ms, kLongestIntervalMs));
  Lock lock(mutex_);
  while (true) {
    const SlotPtr slot = OldestOwing();
    if (stop_ || !health_.ok()) break;
    if (slot == nullptr) {
      work_cv_.wait(lock);
      continue;
    }
    if (appending_) {  // the flusher is at it
      log_cv_.wait(lock);
      continue;
    }
    const bool full =
        config_.max_wal_buffer_size > 0 && pending_bytes_ >= config_.max_wal_buffer_size;
    const auto due = pending_since_ + interval;
    if (slot->sealed || full || (interval.count() > 0 && due <= Clock::now())) {
      AppendPending(&lock);
    } else if (interval.count() > 0) {
      work_cv_.wait_until(lock, due);
    } else {
      work_cv_.wait(lock);
    }
  }
  if (stop_ && append_rest_) {
    const Status ignored = DrainLog(&lock);  // nobody is left to be told
    static_cast<void>(ignored.ok());
  }
}

void ShardWriter::Impl::PoisonLocked(const Status& status) {
  memory_->SetFlushing(false);
  if (!health_.ok()) return;
  health_ =
      KindOf(status) == ErrorKind::kFenced || KindOf(status) == ErrorKind::kWriterFailed
          ? status
          : WriterFailed("the writer of shard ", shard_.ToString(), " of table ",
                         base_->env().store->root(), " failed: ", status.message(),
                         "; open it again to go on");
  log_cv_.notify_all();
  company_cv_.notify_all();
  flush_cv_.notify_all();
  work_cv_.notify_all();
}

void ShardWriter::Impl::Poison(const Status& status) {
  Lock lock(mutex_);
  PoisonLocked(status);
}

}  // namespace glaive::memwal
