// The write-ahead log of a shard: dense positions from 1 on, one file each.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/status.h"
#include "memwal/names.h"
#include "memwal/shard_manifest.h"
#include "memwal/wal_entry.h"

namespace glaive::memwal {

// What an acknowledged entry survives.
enum class Durability : uint8_t {
  kFsync,  // power loss: entry and directory are synced
  kOs,     // the death of the process: the bytes are with the kernel
};

// Reading. Thread-safe.
class WalReader {
 public:
  WalReader(std::shared_ptr<io::ObjectStore> store, ShardId shard);
  // Nullopt when the position is free.
  Result<std::optional<WalEntry>> Read(uint64_t position) const;
  // The first free position at or after `from` (>= 1), found by probing and, far away, by
  // listing.
  Result<uint64_t> FindTip(uint64_t from) const;
  // All entries from `first` up to the first free position. What is damaged in the middle
  // is Corruption that names the entry. The newest one, when torn (a power cut under
  // Durability::kOs), was never acknowledged as durable: it is left out and reported in
  // `torn`.
  struct Tail {
    std::vector<WalEntry> entries;
    std::optional<uint64_t> torn;  // position
    uint64_t next_position = 1;    // first free
  };
  Result<Tail> ReadFrom(uint64_t first) const;
  Result<std::vector<uint64_t>> ListPositions() const;  // ascending

 private:
  const std::shared_ptr<io::ObjectStore> store_;
  const ShardId shard_;
};

struct WalAppendOptions {
  Durability durability = Durability::kFsync;
  int max_persist_retries = 3;
  int64_t retry_base_delay_us = 50'000;  // doubled each time, at most 5 s
};

// Appending by one writer. Not thread-safe.
class WalAppender {
 public:
  WalAppender(std::shared_ptr<io::ObjectStore> store,
              std::shared_ptr<ShardManifests> manifests, uint64_t epoch,
              WalAppendOptions options);

  // Where the next entry goes. To be called once before Append, with the position after
  // the last one replayed.
  void set_next_position(uint64_t position) { next_ = position; }
  uint64_t next_position() const { return next_; }

  // Writes a sentinel at the tip, so that the predecessor's next append collides; returns
  // its position.
  Result<uint64_t> AppendSentinel(uint64_t hint);
  // The position of the entry. Fenced when another writer claimed the shard; WriterFailed
  // when the entry could not be stored, or when it is unknown whether it was (a taken
  // name after an I/O error at the same position). After either the writer must stop.
  Result<uint64_t> Append(const EncodedWalEntry& entry);

 private:
  const std::shared_ptr<io::ObjectStore> store_;
  const std::shared_ptr<ShardManifests> manifests_;
  const uint64_t epoch_;
  const WalAppendOptions options_;
  uint64_t next_ = 0;
};

}  // namespace glaive::memwal
