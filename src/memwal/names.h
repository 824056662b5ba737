// Names below _mem_wal/: shards, manifests, log entries, generations.
//
// All paths are relative to the table's directory (of a branch: to that of the branch).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace glaive::memwal {

inline constexpr char kMemWalDir[] = "_mem_wal";

// The bits of `n` in reverse order as 64 characters '0' and '1', so that neighbours lie
// far apart in a store that partitions by prefix.
std::string BitReversed(uint64_t n);
// Of a file name up to its first '.'. Nullopt when it is not 64 binary digits.
std::optional<uint64_t> ParseBitReversed(std::string_view file_name);

// A shard: 16 bytes of a UUID, big-endian.
class ShardId {
 public:
  ShardId() = default;
  // 16 bytes; anything else is InvalidInput.
  static Result<ShardId> FromBytes(std::string_view bytes);
  // Any usual spelling: hyphenated or not, braces, urn:uuid:, upper case. InvalidInput
  // "Invalid shard_id UUID: ..." otherwise.
  static Result<ShardId> Parse(std::string_view text);
  // UUIDv5 in the name space of LanceDB's shards over `name` ("unsharded", "bucket-3",
  // "identity-" + value).
  static ShardId Derive(std::string_view name);

  std::string_view bytes() const { return {bytes_, sizeof(bytes_)}; }
  std::string ToString() const;  // lower case, hyphenated
  bool operator==(const ShardId& other) const { return bytes() == other.bytes(); }
  bool operator<(const ShardId& other) const { return bytes() < other.bytes(); }

 private:
  char bytes_[16] = {};
};

std::string ShardDir(const ShardId& shard);          // _mem_wal/{shard}
std::string ShardManifestDir(const ShardId& shard);  // .../manifest
std::string ShardManifestPath(const ShardId& shard, uint64_t version);
std::string ShardManifestHintPath(const ShardId& shard);
std::string WalDir(const ShardId& shard);  // .../wal
std::string WalEntryPath(const ShardId& shard, uint64_t position);
// A fresh directory name for an attempt to flush: {8 hex}_gen_{generation}.
std::string NewGenerationName(uint64_t generation);
// Where the generation `name` (as in the shard manifest, perhaps with a trailing slash)
// lies. Corruption when it would leave the shard's directory.
Result<std::string> GenerationDir(const ShardId& shard, std::string_view name);

}  // namespace glaive::memwal
