#include "memwal/wal.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <span>
#include <string>
#include <thread>

#include <arrow/buffer.h>

#include "io/object_store.h"
#include "runtime/runtime.h"

namespace glaive::memwal {
namespace {

constexpr uint64_t kMaxPosition = uint64_t{1} << 63;
// Positions that are looked at one by one before the directory is listed.
constexpr uint64_t kMaxProbes = 32;
// Positions that one power cut can take.
constexpr uint64_t kMaxGap = 1'000'000;
constexpr int kMaxSentinelConflicts = 1024;
constexpr int64_t kMaxDelayUs = 5'000'000;

bool IsKind(const Status& status, ErrorKind kind) {
  return !status.ok() && KindOf(status) == kind;
}

// Big entries of local tables are mapped, so that replay reads no more than it looks at.
Result<std::shared_ptr<arrow::Buffer>> ReadWhole(io::ObjectStore& store,
                                                 const std::string& path) {
  GLAIVE_ASSIGN_OR_RETURN(const auto object, store.Open(path));
  return object->Read({0, object->size_bytes()});
}

enum class Standing : uint8_t {
  kCertain,   // synced, or written by others, who do not say
  kUnsynced,  // a power cut may have taken what comes before
  kTorn,
  kDamaged,
};

// Tells what a power cut did from damage, by looking at entries in their order.
class Judge {
 public:
  // `early`: whether its bytes lack their end, see EndsEarly.
  Standing Look(const Result<WalEntry>& entry, bool early) {
    if (!entry.ok()) return early ? Standing::kTorn : Standing::kDamaged;
    if (entry->durability) {
      own_epochs_.insert(entry->header.writer_epoch);
      return *entry->durability == Durability::kOs ? Standing::kUnsynced
                                                   : Standing::kCertain;
    }
    // Cut between two messages, or just before the trailer that this writer leaves.
    if (early || own_epochs_.contains(entry->header.writer_epoch)) return Standing::kTorn;
    return Standing::kCertain;
  }

 private:
  std::set<uint64_t> own_epochs_;
};

// Sentinels are synced, whatever level the writer has.
Result<EncodedWalEntry> Sentinel(uint64_t epoch) {
  GLAIVE_ASSIGN_OR_RETURN(const EncodedWalEntry entry, EncodeFenceSentinel(epoch));
  return SealWalEntry(entry, Durability::kFsync);
}

// The first position at or after `from` that is not in `positions` (ascending).
uint64_t EndOfRun(const std::vector<uint64_t>& positions, uint64_t from) {
  for (auto it = std::lower_bound(positions.begin(), positions.end(), from);
       it != positions.end() && *it == from; ++it) {
    ++from;
  }
  return from;
}

std::string JoinParts(const EncodedWalEntry& entry) {
  std::string bytes;
  bytes.reserve(static_cast<size_t>(entry.size_bytes));
  for (const auto& part : entry.parts) bytes += std::string_view(*part);
  return bytes;
}

}  // namespace

WalReader::WalReader(std::shared_ptr<io::ObjectStore> store, ShardId shard)
    : store_(std::move(store)), shard_(shard) {}

Result<std::optional<WalEntry>> WalReader::Read(uint64_t position) const {
  const std::string path = WalEntryPath(shard_, position);
  auto bytes = ReadWhole(*store_, path);
  if (IsKind(bytes.status(), ErrorKind::kNotFound)) return std::nullopt;
  GLAIVE_RETURN_NOT_OK(bytes.status());
  GLAIVE_ASSIGN_OR_RETURN(WalEntry entry, DecodeWalEntry(position, path, *bytes));
  return entry;
}

Result<std::vector<uint64_t>> WalReader::ListPositions() const {
  GLAIVE_ASSIGN_OR_RETURN(const auto names, store_->ListNames(WalDir(shard_)));
  std::vector<uint64_t> positions;
  for (const std::string& name : names) {
    const auto position = ParseBitReversed(name);
    if (position && *position > 0 && name.ends_with(".arrow")) {
      positions.push_back(*position);
    }
  }
  std::sort(positions.begin(), positions.end());
  return positions;
}

Result<uint64_t> WalReader::FindTip(uint64_t from) const {
  uint64_t tip = std::max<uint64_t>(from, 1);
  for (uint64_t probes = 0; probes < kMaxProbes; ++probes, ++tip) {
    GLAIVE_ASSIGN_OR_RETURN(const bool taken, store_->Exists(WalEntryPath(shard_, tip)));
    if (!taken) return tip;
  }
  GLAIVE_ASSIGN_OR_RETURN(const auto positions, ListPositions());
  return EndOfRun(positions, tip);
}

// What is at a position; no entry when it is free.
struct WalReader::Fetched {
  std::optional<Result<WalEntry>> entry;
  bool early = false;
};

Result<WalReader::Fetched> WalReader::Get(uint64_t position) const {
  const std::string path = WalEntryPath(shard_, position);
  auto bytes = ReadWhole(*store_, path);
  if (IsKind(bytes.status(), ErrorKind::kNotFound)) return Fetched();
  GLAIVE_RETURN_NOT_OK(bytes.status());
  return Fetched{DecodeWalEntry(position, path, *bytes),
                 EndsEarly(std::string_view(**bytes))};
}

Result<WalReader::Tail> WalReader::Replay(
    uint64_t first, const std::function<Status(WalEntry entry)>& visit) const {
  return Walk(
      first, [this](uint64_t position) { return Get(position); }, visit);
}

Result<WalReader::Tail> WalReader::Walk(
    uint64_t first, const Fetch& fetch,
    const std::function<Status(WalEntry entry)>& visit) const {
  Tail tail;
  Status torn;  // of the first torn entry
  Judge judge;
  uint64_t position = std::max<uint64_t>(first, 1);
  for (;; ++position) {
    GLAIVE_ASSIGN_OR_RETURN(Fetched fetched, fetch(position));
    if (!fetched.entry) break;
    Result<WalEntry>& entry = *fetched.entry;
    const Standing standing = judge.Look(entry, fetched.early);
    if (standing == Standing::kDamaged) return entry.status();
    if (standing == Standing::kTorn) {
      if (torn.ok()) {
        torn = Corruption("WAL entry '", WalEntryPath(shard_, position), "' is torn");
        if (!entry.ok()) torn = entry.status();
      }
      tail.torn.push_back(position);
      continue;
    }
    if (!torn.ok() && !entry->batches.empty()) {
      if (standing == Standing::kUnsynced) {
        tail.torn.push_back(position);
        continue;
      }
      return WithContext(torn,
                         "entries with rows follow, so this one was complete once; "
                         "restore it from a backup");
    }
    if (standing == Standing::kUnsynced) tail.unsynced.push_back(position);
    GLAIVE_RETURN_NOT_OK(visit(*std::move(entry)));
  }
  tail.next_position = position;
  return tail;
}

Result<WalReader::Tail> WalReader::ReadFrom(uint64_t first, Runtime* runtime) const {
  first = std::max<uint64_t>(first, 1);
  std::vector<Result<Fetched>> ahead;  // of the positions from `first` on
  if (runtime != nullptr) {
    GLAIVE_ASSIGN_OR_RETURN(const auto positions, ListPositions());
    ahead.resize(EndOfRun(positions, first) - first, Fetched());
    GLAIVE_RETURN_NOT_OK(runtime->ParallelFor(
        static_cast<int64_t>(ahead.size()), [&](int64_t i) -> Status {
          ahead[static_cast<size_t>(i)] = Get(first + static_cast<uint64_t>(i));
          return Status::OK();
        }));
  }
  std::vector<WalEntry> entries;
  entries.reserve(ahead.size());
  GLAIVE_ASSIGN_OR_RETURN(Tail tail, Walk(
                                         first,
                                         [&](uint64_t position) -> Result<Fetched> {
                                           if (position - first >= ahead.size())
                                             return Get(position);
                                           return std::move(ahead[position - first]);
                                         },
                                         [&](WalEntry entry) {
                                           entries.push_back(std::move(entry));
                                           return Status::OK();
                                         }));
  tail.entries = std::move(entries);
  return tail;
}

WalAppender::WalAppender(std::shared_ptr<io::ObjectStore> store,
                         std::shared_ptr<ShardManifests> manifests, uint64_t epoch,
                         WalAppendOptions options)
    : store_(std::move(store)),
      manifests_(std::move(manifests)),
      reader_(store_, manifests_->shard()),
      epoch_(epoch),
      options_(options) {}

Status WalAppender::Put(uint64_t position, const EncodedWalEntry& entry, bool durable) {
  std::vector<std::span<const uint8_t>> parts;
  parts.reserve(entry.parts.size());
  for (const auto& part : entry.parts) {
    parts.emplace_back(part->data(), static_cast<size_t>(part->size()));
  }
  return store_->PutPartsIfAbsent(WalEntryPath(manifests_->shard(), position), parts,
                                  durable);
}

void WalAppender::Wait(int attempt) const {
  const int shift = std::min(attempt, 20);
  const int64_t delay_us =
      std::min(kMaxDelayUs, std::max<int64_t>(options_.retry_base_delay_us, 0) << shift);
  std::this_thread::sleep_for(std::chrono::microseconds(delay_us));
}

Result<uint64_t> WalAppender::AppendSentinel(uint64_t from) {
  GLAIVE_ASSIGN_OR_RETURN(const EncodedWalEntry sentinel, Sentinel(epoch_));
  GLAIVE_ASSIGN_OR_RETURN(const auto positions, reader_.ListPositions());
  GLAIVE_ASSIGN_OR_RETURN(
      uint64_t position,
      reader_.FindTip(EndOfRun(positions, std::max<uint64_t>(from, 1))));
  if (!positions.empty() && positions.back() > position) {
    if (positions.back() - position > kMaxGap) {
      return Corruption("WAL entry '", WalEntryPath(manifests_->shard(), position),
                        "' and others are missing, although there is one at position ",
                        positions.back(), "; restore them from a backup");
    }
    GLAIVE_RETURN_NOT_OK(CloseGap(positions, position));
    position = positions.back() + 1;
  }
  int errors = 0;
  for (int conflicts = 0; conflicts < kMaxSentinelConflicts;) {
    if (position >= kMaxPosition)
      return ResourceExhausted("the log has no position left");
    Status status = Put(position, sentinel, /*durable=*/true);
    if (status.ok()) {
      // Too late, when somebody else claimed the shard meanwhile: the successor skips it.
      GLAIVE_RETURN_NOT_OK(manifests_->CheckFence(epoch_));
      status = CheckPredecessor(position);
    }
    if (status.ok()) return position;
    if (IsKind(status, ErrorKind::kFenced)) return status;
    GLAIVE_RETURN_NOT_OK(manifests_->CheckFence(epoch_));
    if (IsKind(status, ErrorKind::kAlreadyExists)) {
      ++conflicts;
    } else if (errors >= options_.max_persist_retries) {
      return WithContext(status, "cannot write the fence sentinel of shard " +
                                     manifests_->shard().ToString());
    } else {
      Wait(errors++);
    }
    // A sentinel that was stored although an error was reported only takes a place.
    GLAIVE_ASSIGN_OR_RETURN(position, reader_.FindTip(position));
  }
  return IoError("cannot write the fence sentinel of shard ",
                 manifests_->shard().ToString(),
                 ": the log keeps growing; is another "
                 "writer at work?");
}

Status WalAppender::CloseGap(const std::vector<uint64_t>& positions, uint64_t gap) {
  // A successor of ours is not to be disturbed.
  GLAIVE_RETURN_NOT_OK(manifests_->CheckFence(epoch_));
  Judge judge;
  for (const uint64_t position : positions) {
    const std::string path = WalEntryPath(manifests_->shard(), position);
    auto bytes = ReadWhole(*store_, path);
    if (IsKind(bytes.status(), ErrorKind::kNotFound)) continue;
    GLAIVE_RETURN_NOT_OK(bytes.status());
    const auto entry = DecodeWalEntry(position, path, *bytes);
    const Standing standing = judge.Look(entry, EndsEarly(std::string_view(**bytes)));
    if (position > gap && (standing == Standing::kDamaged ||
                           (standing == Standing::kCertain && !entry->batches.empty()))) {
      return Corruption("WAL entry '", WalEntryPath(manifests_->shard(), gap),
                        "' is missing, although '", path,
                        "' exists; restore it from a backup");
    }
  }
  std::vector<uint64_t> lost;
  for (uint64_t position = gap; position <= positions.back(); ++position) {
    lost.push_back(position);
  }
  return ReplaceTorn(lost);
}

Status WalAppender::ReplaceTorn(const std::vector<uint64_t>& positions) {
  if (positions.empty()) return Status::OK();
  GLAIVE_ASSIGN_OR_RETURN(const EncodedWalEntry sentinel, Sentinel(epoch_));
  const std::string bytes = JoinParts(sentinel);
  // The last one first: what is in doubt stays behind a torn or missing entry until all
  // of it is gone.
  for (auto it = positions.rbegin(); it != positions.rend(); ++it) {
    GLAIVE_RETURN_NOT_OK(
        store_->Put(WalEntryPath(manifests_->shard(), *it),
                    {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}));
  }
  return Status::OK();
}

Status WalAppender::MakeDurable(const std::vector<uint64_t>& positions) {
  for (const uint64_t position : positions) {
    const std::string path = WalEntryPath(manifests_->shard(), position);
    GLAIVE_ASSIGN_OR_RETURN(const auto bytes, store_->Get(path));
    GLAIVE_RETURN_NOT_OK(
        store_->Put(path, {bytes->data(), static_cast<size_t>(bytes->size())}));
  }
  return Status::OK();
}

Status WalAppender::CheckPredecessor(uint64_t position) {
  for (int errors = 0;; ++errors) {
    Status status = CheckPredecessorOnce(position);
    if (!IsKind(status, ErrorKind::kIo) || errors >= options_.max_persist_retries) {
      return status;
    }
    Wait(errors);
  }
}

Status WalAppender::CheckPredecessorOnce(uint64_t position) {
  const ShardId& shard = manifests_->shard();
  if (position > 1) {
    GLAIVE_ASSIGN_OR_RETURN(const bool kept,
                            store_->Exists(WalEntryPath(shard, position - 1)));
    if (kept) return Status::OK();
  }
  uint64_t replay_after = 0;
  Status fence = manifests_->CheckFence(epoch_, &replay_after);
  const bool dropped = IsKind(fence, ErrorKind::kNotFound);
  if (dropped || (IsKind(fence, ErrorKind::kFenced) && position <= replay_after)) {
    // Nobody reads it there; but it must not be the predecessor that another stalled
    // writer looks for, nor stay behind a table that was dropped.
    GLAIVE_RETURN_NOT_OK(store_->Delete(WalEntryPath(shard, position)));
  }
  return fence;
}

Result<bool> WalAppender::IsStored(uint64_t position, const EncodedWalEntry& entry) {
  const std::string path = WalEntryPath(manifests_->shard(), position);
  auto stored = store_->Get(path);
  if (IsKind(stored.status(), ErrorKind::kNotFound)) return false;
  GLAIVE_RETURN_NOT_OK(stored.status());
  // Entries name the epoch, which nobody else has, so the same bytes are ours.
  const std::string bytes = JoinParts(entry);
  if (std::string_view(**stored) != bytes) return false;
  if (options_.durability == Durability::kFsync) {
    // Once more: it may not be durable yet.
    GLAIVE_RETURN_NOT_OK(store_->Put(
        path, {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}));
  }
  return true;
}

Result<bool> WalAppender::PutWithRetries(uint64_t position,
                                         const EncodedWalEntry& entry) {
  const bool durable = options_.durability == Durability::kFsync;
  for (int errors = 0;; ++errors) {
    const bool last = errors >= options_.max_persist_retries;
    const Status status = Put(position, entry, durable);
    if (status.ok()) {
      GLAIVE_RETURN_NOT_OK(CheckPredecessor(position));
      return true;
    }
    const bool taken = IsKind(status, ErrorKind::kAlreadyExists);
    const Status fence = manifests_->CheckFence(epoch_);
    if (IsKind(fence, ErrorKind::kIo) && !last) {
      Wait(errors);
      continue;
    }
    if (taken ? errors > 0 : last || !fence.ok()) {
      // Perhaps an attempt went through, and only the reply to it was lost.
      GLAIVE_ASSIGN_OR_RETURN(const bool stored, IsStored(position, entry));
      if (stored) {
        GLAIVE_RETURN_NOT_OK(CheckPredecessor(position));
        return true;
      }
    }
    GLAIVE_RETURN_NOT_OK(fence);
    if (taken) {
      GLAIVE_ASSIGN_OR_RETURN(const auto found, reader_.Read(position));
      if (found && found->sentinel && found->header.writer_epoch < epoch_) return false;
      return AlreadyExists("WAL entry '", WalEntryPath(manifests_->shard(), position),
                           "' was written by somebody else although nobody claimed the "
                           "shard");
    }
    if (last) return status;
    Wait(errors);
  }
}

Result<uint64_t> WalAppender::Append(const EncodedWalEntry& entry) {
  if (next_ == 0) return InternalError("the position of the next WAL entry is not known");
  const EncodedWalEntry sealed = SealWalEntry(entry, options_.durability);
  Result<bool> stored = false;
  for (int skipped = 0; skipped < kMaxSentinelConflicts; ++skipped) {
    if (next_ >= kMaxPosition) return ResourceExhausted("the log has no position left");
    stored = PutWithRetries(next_, sealed);
    if (!stored.ok() || *stored) break;
    // The sentinel of a writer that was fenced before it wrote it: no rows.
    ++next_;
  }
  if (stored.ok() && *stored) return next_++;
  if (IsKind(stored.status(), ErrorKind::kFenced)) return stored.status();
  const std::string why =
      stored.ok() ? "others keep writing sentinels" : stored.status().message();
  return WriterFailed("WAL entry at position ", next_, " of shard ",
                      manifests_->shard().ToString(), " could not be persisted: ", why,
                      "; whether it was stored is unknown, open a new writer, which "
                      "reads what is there");
}

}  // namespace glaive::memwal
