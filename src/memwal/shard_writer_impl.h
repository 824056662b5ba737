// The inside of a ShardWriter. Not for use outside of shard_writer*.cc.
//
// Two locks. `order_mutex_` makes the order of rows: whoever holds it may append to the
// active memtable and seal it. `mutex_` guards everything else and is never held during
// I/O or the work on rows. Who needs both takes order_mutex_ first.
//
// There is no thread on the way of a durable put: a putter that finds no append running
// leads, that is, writes what all have left pending, and the others wait for it.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "memwal/generation_writer.h"
#include "memwal/memtable_memory.h"
#include "memwal/shard_writer.h"
#include "memwal/wal.h"

namespace glaive::memwal {

// A memtable and what it owes to the log and to the disk.
struct MemtableSlot {
  MemtableSlot(std::shared_ptr<const FreshSchema> schema, uint64_t generation,
               int64_t batches_before)
      : memtable(std::move(schema), generation), first_batch(batches_before) {}

  bool owes() const { return durable < appended; }
  int64_t visible(bool durable_write) const { return durable_write ? durable : appended; }

  Memtable memtable;
  const int64_t first_batch;  // batches in all memtables before this one

  // Guarded by the writer's mutex_:
  int64_t appended = 0;  // batches
  int64_t durable = 0;   // of them in the log
  int64_t rows = 0;      // of the appended batches
  BatchVector pending;   // appended, but not in the log (nor on the way there)
  int64_t pending_rows = 0;
  int64_t pending_bytes = 0;
  int64_t pending_puts = 0;
  bool sealed = false;
  int64_t sealed_bytes = 0;            // resident, once sealed
  int64_t counted_bytes = 0;           // in the memory budget
  uint64_t covered = 0;                // the last log position that holds rows of it
  int failures = 0;                    // attempts to flush it that failed
  Status failure;                      // of the last one
  std::optional<Memtable::View> view;  // the last one made, of `view_batches`
  int64_t view_batches = 0;

  // Of the flushing thread alone: the generation is on disk, a manifest may name it.
  std::optional<lance::table::SsTable> written;
};
using SlotPtr = std::shared_ptr<MemtableSlot>;

struct ShardWriter::Impl : std::enable_shared_from_this<ShardWriter::Impl> {
  using Clock = std::chrono::steady_clock;
  using Lock = std::unique_lock<std::mutex>;

  Impl(table::Dataset::Ptr base, const ShardId& shard, const WriterConfig& config);
  ~Impl();

  // shard_writer_open.cc
  Status Open();
  // Claims the shard and fences the log. `ahead`: what could be read of the log
  // meanwhile, from the first entry to be replayed on; unset when that is of no use.
  Status Claim(std::optional<WalReader::Tail>* ahead);
  Status ClaimAndFence();
  // shard_writer_replay.cc
  Status Replay(std::optional<WalReader::Tail> ahead);

  // shard_writer_put.cc
  // `rows`: of the storage schema, none empty.
  Status Insert(BatchVector rows, int64_t num_rows);
  // OK when calls may go on; takes no lock in a forked child.
  Status CheckUsable();
  Status UsableLocked() const;
  Status CheckProcess() const;
  // Takes both locks when there is room for more rows, whose `bytes` are then taken of
  // the memory budget; waits for flushes otherwise.
  Status EnterInOrder(int64_t bytes, Lock* order, Lock* lock);
  // Counts what the slot holds, of which `taken` was counted before.
  void CountLocked(MemtableSlot* slot, int64_t taken);
  void SealForOthers();
  int64_t ResidentLocked() const;
  // Whether so many more may go to the active memtable; an empty one takes everything.
  bool Fits(int64_t batches, int64_t rows) const;
  // With both locks: a new active memtable, if the old one has rows.
  void SealLocked();

  // shard_writer_log.cc
  Status WaitDurable(Lock* lock, const SlotPtr& slot, int64_t batches);
  // The leader's turn: one entry with everything that the oldest owing memtable has.
  void AppendPending(Lock* lock);
  void WaitForCompany(Lock* lock);
  bool CompanyIsHere() const;  // with mutex_
  SlotPtr OldestOwing() const;
  Status DrainLog(Lock* lock);
  void NoteBackgroundLog(bool was_idle);
  void RunLog();
  void PoisonLocked(const Status& status);
  void Poison(const Status& status);

  // shard_writer_flush.cc
  // Makes a sealed memtable whose rows are in the log a generation, and publishes it.
  Status FlushSlot(MemtableSlot* slot);
  Status PublishSlot(MemtableSlot* slot);
  void RetireLocked(const SlotPtr& slot);
  void StartFlusherLocked();
  void RunFlusher();
  // Waits until all sealed memtables up to `slot` are generations. Gives up, with the
  // error, after a few attempts that fail.
  Status WaitFlushed(Lock* lock, SlotPtr slot);
  Result<bool> Flush();

  // shard_writer_close.cc
  Status Close();
  void Abort();
  // Ends the threads. Rows that are not in the log yet are appended if `append_rest`.
  void Stop(bool append_rest);
  void StopAtExit();

  const table::Dataset::Ptr base_;
  const ShardId shard_;
  WriterConfig config_;
  const uint64_t fork_generation_;
  // Set by Open, constant afterwards:
  std::shared_ptr<const FreshSchema> schema_;
  std::shared_ptr<ShardManifests> manifests_;
  GenerationOptions generation_options_;
  uint64_t epoch_ = 0;
  std::unique_ptr<MemtableMemory> memory_;

  std::mutex close_mutex_;  // one Close at a time; taken before the others
  std::mutex order_mutex_;
  mutable std::mutex mutex_;
  std::condition_variable log_cv_;      // an append ended
  std::condition_variable company_cv_;  // another put is pending
  std::condition_variable flush_cv_;    // a flush ended
  std::condition_variable work_cv_;     // something for the background threads

  // Used by whoever set appending_:
  std::unique_ptr<WalAppender> appender_;

  // Guarded by mutex_:
  std::deque<SlotPtr> slots_;  // oldest first, the active one last; never empty
  std::shared_ptr<const ShardManifest> manifest_;
  Status health_;
  bool closed_ = false;
  bool stop_ = false;  // the threads are to end
  bool append_rest_ = false;
  bool appending_ = false;
  bool draining_ = false;      // the log is to be appended without delay
  bool gathering_ = false;     // a leader waits for company
  int64_t expected_puts_ = 0;  // as many were under way when the last append ended
  int64_t puts_under_way_ = 0;
  double append_us_ = 0;       // moving average
  int64_t pending_bytes_ = 0;  // of all memtables
  Clock::time_point pending_since_{};
  int64_t durable_batches_ = 0;  // of all memtables since Open, replayed ones included
  int64_t published_ = 0;        // memtables that became generations
  bool flush_failing_ = false;
  Clock::time_point flush_not_before_{};
  WriterStats stats_;
  std::function<void(const ShardManifest&)> on_flush_;
  std::atomic<bool> has_on_flush_{false};
  std::thread flusher_;
  std::thread logger_;
};

}  // namespace glaive::memwal
