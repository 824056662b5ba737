// What the log holds behind the last generation becomes memtables again.
#include <algorithm>
#include <chrono>
#include <limits>
#include <thread>

#include <arrow/record_batch.h>

#include "io/object_store.h"
#include "memwal/shard_writer_impl.h"
#include "runtime/runtime.h"

namespace glaive::memwal {
namespace {

constexpr int kFlushAttempts = 4;
constexpr std::chrono::milliseconds kFirstBackoff{20};
constexpr uint64_t kNoGeneration = std::numeric_limits<uint64_t>::max();

// Rows of entries that were read and are not in the memtable yet.
struct Waiting {
  BatchVector batches;
  int64_t rows = 0;
  int64_t bytes = 0;
};

}  // namespace

// One memtable after the other, so that memory is bounded: a full one is flushed before
// the next is filled. Its rows are appended together, so that its index is built once.
class Replayer {
 public:
  explicit Replayer(ShardWriter::Impl* writer) : writer_(*writer) {}

  Status Run(std::optional<WalReader::Tail> ahead);

 private:
  Status ReadLog(std::optional<WalReader::Tail> ahead, std::vector<WalEntry>* entries);
  Status Take(const WalEntry& entry, BatchVector batches);
  bool Fits(const WalEntry& entry, int64_t rows) const;
  void StartMemtable(uint64_t generation);
  Status AppendWaiting();
  Status Rotate(uint64_t covered, uint64_t next_generation);

  uint64_t generation() const { return slot_->memtable.generation(); }

  ShardWriter::Impl& writer_;
  SlotPtr slot_;
  Waiting waiting_;
  uint64_t newest_numbered_ = 0;  // generation of the last entry that had one
  int64_t first_batch_ = 0;
  // For the entry being taken: the lowest generation that it or a later one belongs to.
  uint64_t lowest_to_come_ = kNoGeneration;
};

void Replayer::StartMemtable(uint64_t generation) {
  slot_ = std::make_shared<MemtableSlot>(writer_.schema_, generation, first_batch_);
}

bool Replayer::Fits(const WalEntry& entry, int64_t rows) const {
  const WriterConfig& config = writer_.config_;
  return waiting_.bytes + entry.size_bytes <= config.max_memtable_size &&
         static_cast<int64_t>(waiting_.batches.size() + entry.batches.size()) <=
             config.max_memtable_batches &&
         waiting_.rows + rows <= config.max_memtable_rows;
}

Status Replayer::Take(const WalEntry& entry, BatchVector batches) {
  int64_t rows = 0;
  for (const auto& batch : batches) rows += batch->num_rows();
  const bool empty = waiting_.batches.empty();
  if (const auto& number = entry.header.generation) {
    if (*number < newest_numbered_) {
      return Corruption("WAL entry at position ", entry.position, " has generation ",
                        *number, " below the generation ", newest_numbered_,
                        " replayed before it (",
                        WalEntryPath(writer_.shard_, entry.position), ")");
    }
    newest_numbered_ = *number;
    if (*number > generation()) {
      if (empty) {
        StartMemtable(*number);
      } else {
        GLAIVE_RETURN_NOT_OK(Rotate(entry.position - 1, *number));
      }
    }
  } else if (!empty && !Fits(entry, rows) && lowest_to_come_ > generation()) {
    // A generation must not be published while entries to come belong to it: upstream
    // takes such entries as flushed.
    GLAIVE_RETURN_NOT_OK(Rotate(entry.position - 1, generation() + 1));
  }
  waiting_.rows += rows;
  waiting_.bytes += entry.size_bytes;
  waiting_.batches.insert(waiting_.batches.end(),
                          std::make_move_iterator(batches.begin()),
                          std::make_move_iterator(batches.end()));
  return Status::OK();
}

Status Replayer::AppendWaiting() {
  if (waiting_.batches.empty()) return Status::OK();
  GLAIVE_RETURN_NOT_OK(
      slot_->memtable.Append(waiting_.batches, writer_.base_->env().runtime.get()));
  slot_->appended = slot_->durable = static_cast<int64_t>(waiting_.batches.size());
  slot_->rows = waiting_.rows;
  first_batch_ += slot_->appended;
  waiting_ = {};
  return Status::OK();
}

Status Replayer::Rotate(uint64_t covered, uint64_t next_generation) {
  GLAIVE_RETURN_NOT_OK(AppendWaiting());
  slot_->sealed = true;
  slot_->covered = covered;
  Status status;
  for (int attempt = 0; attempt < kFlushAttempts; ++attempt) {
    if (attempt > 0) std::this_thread::sleep_for(kFirstBackoff * (1 << attempt));
    status = writer_.FlushSlot(slot_.get());
    if (status.ok() || KindOf(status) != ErrorKind::kIo) break;
    writer_.stats_.memtable_flush_failures++;
  }
  GLAIVE_RETURN_NOT_OK(status);
  writer_.stats_.memtable_flush_count++;
  writer_.stats_.memtable_flush_rows += slot_->rows;
  writer_.published_++;
  StartMemtable(next_generation);
  return Status::OK();
}

// Everything behind the last generation, up to our own sentinel and beyond.
Status Replayer::ReadLog(std::optional<WalReader::Tail> ahead,
                         std::vector<WalEntry>* entries) {
  const table::TableEnv& env = writer_.base_->env();
  const WalReader reader(env.store, writer_.shard_);
  WalAppender& appender = *writer_.appender_;
  const auto take = [&](WalReader::Tail tail) -> Status {
    // Nobody was told that these are stored. What follows must not make them look like
    // damage in the middle of the log.
    GLAIVE_RETURN_NOT_OK(appender.ReplaceTorn(tail.torn));
    if (writer_.config_.durability == Durability::kFsync) {
      GLAIVE_RETURN_NOT_OK(appender.MakeDurable(tail.unsynced));
    }
    entries->insert(entries->end(), std::make_move_iterator(tail.entries.begin()),
                    std::make_move_iterator(tail.entries.end()));
    appender.set_next_position(tail.next_position);
    return Status::OK();
  };
  if (!ahead) {
    // Not from where the manifest has last seen the end: after a power cut under
    // Durability::kOs the log may be shorter.
    const uint64_t first = writer_.manifest_->replay_after_wal_entry_position() + 1;
    GLAIVE_ASSIGN_OR_RETURN(ahead, reader.ReadFrom(first, env.runtime.get()));
  }
  GLAIVE_RETURN_NOT_OK(take(*std::move(ahead)));
  // What came in until the sentinel ended it.
  GLAIVE_ASSIGN_OR_RETURN(WalReader::Tail rest,
                          reader.ReadFrom(appender.next_position()));
  return take(std::move(rest));
}

Status Replayer::Run(std::optional<WalReader::Tail> ahead) {
  const table::TableEnv& env = writer_.base_->env();
  StartMemtable(std::max<uint64_t>(writer_.manifest_->current_generation(), 1));
  std::vector<WalEntry> entries;
  GLAIVE_RETURN_NOT_OK(ReadLog(std::move(ahead), &entries));

  const size_t count = entries.size();
  std::vector<uint64_t> lowest(count + 1, kNoGeneration);
  for (size_t i = count; i-- > 0;) {
    const WalEntryHeader& header = entries[i].header;
    if (header.writer_epoch > writer_.epoch_) {
      return FencedError(writer_.shard_, writer_.epoch_, header.writer_epoch);
    }
    lowest[i] = std::min(lowest[i + 1], header.generation.value_or(kNoGeneration));
  }
  std::vector<BatchVector> rows(count);
  GLAIVE_RETURN_NOT_OK(
      env.runtime->ParallelFor(static_cast<int64_t>(count), [&](int64_t i) -> Status {
        const WalEntry& entry = entries[static_cast<size_t>(i)];
        BatchVector& out = rows[static_cast<size_t>(i)];
        for (const auto& batch : entry.batches) {
          if (batch->num_rows() == 0) continue;
          auto conformed = writer_.schema_->Conform(*batch);
          if (!conformed.ok()) {
            return WithContext(conformed.status(),
                               WalEntryPath(writer_.shard_, entry.position));
          }
          out.push_back(std::move(*conformed));
        }
        return Status::OK();
      }));
  for (size_t i = 0; i < count; ++i) {
    if (rows[i].empty()) continue;
    lowest_to_come_ = lowest[i];
    GLAIVE_RETURN_NOT_OK(Take(entries[i], std::move(rows[i])));
    entries[i].batches.clear();
  }
  GLAIVE_RETURN_NOT_OK(AppendWaiting());
  slot_->covered = writer_.appender_->next_position() - 1;
  writer_.durable_batches_ = first_batch_;
  writer_.slots_ = {slot_};
  return Status::OK();
}

Status ShardWriter::Impl::Replay(std::optional<WalReader::Tail> ahead) {
  return Replayer(this).Run(std::move(ahead));
}

}  // namespace glaive::memwal
