// The write-ahead log of a shard: dense positions from 1 on, one file each.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/status.h"
#include "memwal/names.h"
#include "memwal/shard_manifest.h"
#include "memwal/wal_entry.h"

namespace glaive {
class Runtime;
}

namespace glaive::memwal {

// Reading. Thread-safe.
//
// Entries are only ever removed from the oldest on, never the newest one, and only when
// the manifest says that they are flushed. A reader of another process must therefore
// look at the manifest again after it has read: if the position to replay after has
// moved, what it read may begin too late.
class WalReader {
 public:
  WalReader(std::shared_ptr<io::ObjectStore> store, ShardId shard);
  // Nullopt when the position is free.
  Result<std::optional<WalEntry>> Read(uint64_t position) const;
  // The first free position at or after `from` (>= 1), found by probing and, far away, by
  // listing.
  Result<uint64_t> FindTip(uint64_t from) const;

  struct Tail {
    std::vector<WalEntry> entries;  // empty from Replay
    // Positions of entries that a power cut tore (under Durability::kOs), and of those
    // after them that were not synced either: not part of the log any more.
    std::vector<uint64_t> torn;
    // Positions of whole entries that say that they were not synced.
    std::vector<uint64_t> unsynced;
    uint64_t next_position = 1;  // first free
  };
  // All entries from `first` up to the first free position, sentinels included. An entry
  // that is torn (see EndsEarly) was never acknowledged as durable. It ends the log when
  // what follows are sentinels and entries that were not synced either, which are left
  // out as well. All other damage is Corruption that names the entry. With `runtime`
  // the entries that a listing shows are read and decoded in parallel.
  Result<Tail> ReadFrom(uint64_t first, Runtime* runtime = nullptr) const;
  // The same, one entry after the other: `visit` may keep them or not. An error from it
  // ends the reading.
  Result<Tail> Replay(uint64_t first,
                      const std::function<Status(WalEntry entry)>& visit) const;
  Result<std::vector<uint64_t>> ListPositions() const;  // ascending

 private:
  struct Fetched;
  using Fetch = std::function<Result<Fetched>(uint64_t position)>;
  Result<Fetched> Get(uint64_t position) const;
  Result<Tail> Walk(uint64_t first, const Fetch& fetch,
                    const std::function<Status(WalEntry entry)>& visit) const;

  const std::shared_ptr<io::ObjectStore> store_;
  const ShardId shard_;
};

struct WalAppendOptions {
  Durability durability = Durability::kFsync;
  int max_persist_retries = 3;
  int64_t retry_base_delay_us = 50'000;  // doubled each time, at most 5 s
};

// Appending by one writer. Not thread-safe.
//
// Who wins a position decides: a name is given once. A successor puts its sentinel at the
// first free position, so that the next append of its predecessor finds the name taken,
// and looks at the manifest. Old entries are removed all the same, so a predecessor that
// stood still for long might find its name free again. Entries are removed from the
// oldest on and the newest one stays; an append therefore succeeds only when the entry
// before it is still there, and looks at the manifest when it is not.
class WalAppender {
 public:
  WalAppender(std::shared_ptr<io::ObjectStore> store,
              std::shared_ptr<ShardManifests> manifests, uint64_t epoch,
              WalAppendOptions options);

  // Where the next entry goes. To be called once before Append, with the position after
  // the last one replayed.
  void set_next_position(uint64_t position) { next_ = position; }
  uint64_t next_position() const { return next_; }

  // Writes a sentinel at the first free position from `from` on (the one after what is
  // flushed), so that the predecessor's next append collides; returns its position.
  // When entries lie beyond a free position, a power cut took one that was not synced:
  // if they were not synced either, the gap is filled and they are replaced as by
  // ReplaceTorn. Otherwise Corruption names the one that is missing. Fenced.
  Result<uint64_t> AppendSentinel(uint64_t from);
  // Replaces torn entries by sentinels, which every reader can read. Only for positions
  // before the own sentinel.
  Status ReplaceTorn(const std::vector<uint64_t>& positions);
  // Makes entries of others durable that are not. Of use for a writer that syncs its own:
  // what comes before must not be lost alone.
  Status MakeDurable(const std::vector<uint64_t>& positions);
  // The position of the entry. Fenced when another writer claimed the shard; WriterFailed
  // when the entry could not be stored, or when it is unknown whether it was. After
  // either the writer must stop; the entry may be there all the same, and what is read by
  // a later writer then counts.
  Result<uint64_t> Append(const EncodedWalEntry& entry);

 private:
  // False: the position holds the sentinel of an earlier writer.
  Result<bool> PutWithRetries(uint64_t position, const EncodedWalEntry& entry);
  // Whether exactly `entry` is there; then it is durable.
  Result<bool> IsStored(uint64_t position, const EncodedWalEntry& entry);
  Status CloseGap(const std::vector<uint64_t>& positions, uint64_t gap);
  Status CheckPredecessor(uint64_t position);
  Status CheckPredecessorOnce(uint64_t position);
  Status Put(uint64_t position, const EncodedWalEntry& entry, bool durable);
  void Wait(int attempt) const;

  const std::shared_ptr<io::ObjectStore> store_;
  const std::shared_ptr<ShardManifests> manifests_;
  const WalReader reader_;
  const uint64_t epoch_;
  const WalAppendOptions options_;
  uint64_t next_ = 0;
};

}  // namespace glaive::memwal
