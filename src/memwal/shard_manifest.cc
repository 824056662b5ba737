#include "memwal/shard_manifest.h"

#include <algorithm>
#include <span>

#include <arrow/buffer.h>

#include "io/object_store.h"
#include "io/path.h"
#include "table/version_directory.h"

namespace glaive::memwal {
namespace {

constexpr int kMaxClaims = 16;
constexpr int kMaxUpdates = 10;
constexpr uint64_t kMaxNumber = uint64_t{1} << 63;
constexpr size_t kMaxBytes = size_t{1} << 30;

std::span<const uint8_t> AsBytes(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

bool IsKind(const Status& status, ErrorKind kind) {
  return !status.ok() && KindOf(status) == kind;
}

std::string Serialize(const ShardManifest& manifest) {
  return manifest.SerializeAsString();
}

}  // namespace

Status FencedError(const ShardId& shard, uint64_t epoch, uint64_t stored) {
  return Fenced("Writer fenced (peer claimed epoch): local epoch ", epoch,
                " < stored epoch ", stored, " for shard ", shard.ToString(),
                "; open a new writer to go on");
}

Result<std::vector<ShardId>> ListShards(io::ObjectStore& store) {
  GLAIVE_ASSIGN_OR_RETURN(const auto entries, store.List(kMemWalDir, false));
  std::vector<ShardId> shards;
  for (const io::ObjectInfo& entry : entries) {
    if (!entry.is_directory) continue;
    const std::string_view name = io::BaseName(entry.path);
    auto shard = ShardId::Parse(name);
    // In another spelling it would not be found under its own name.
    if (shard.ok() && shard->ToString() == name) shards.push_back(*shard);
  }
  std::sort(shards.begin(), shards.end());
  return shards;
}

Result<ShardManifest> ParseShardManifest(std::string_view bytes,
                                         const std::string& name) {
  ShardManifest manifest;
  if (bytes.size() > kMaxBytes ||
      !manifest.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return Corruption("shard manifest '", name,
                      "' is damaged: restore it, or remove it when it is the newest one "
                      "and no writer is open");
  }
  bool valid = manifest.version() > 0 && manifest.shard_id().uuid().size() == 16;
  for (const uint64_t number :
       {manifest.version(), manifest.writer_epoch(),
        manifest.replay_after_wal_entry_position(),
        manifest.wal_entry_position_last_seen(), manifest.current_generation()}) {
    valid = valid && number < kMaxNumber;
  }
  for (const auto& sstable : manifest.sstables()) {
    valid = valid && sstable.generation() > 0 && sstable.generation() < kMaxNumber;
  }
  if (!valid) {
    return Corruption("shard manifest '", name,
                      "' holds numbers or a shard id that cannot be: it is damaged");
  }
  return manifest;
}

ShardManifests::ShardManifests(std::shared_ptr<io::ObjectStore> store, ShardId shard)
    : store_(std::move(store)), shard_(shard) {}

Result<std::vector<uint64_t>> ShardManifests::ListVersions() {
  GLAIVE_ASSIGN_OR_RETURN(const auto names, store_->ListNames(ShardManifestDir(shard_)));
  std::vector<uint64_t> versions;
  for (const std::string& name : names) {
    const auto version = ParseBitReversed(name);
    if (version && *version > 0 && name.ends_with(".binpb")) versions.push_back(*version);
  }
  std::sort(versions.begin(), versions.end());
  return versions;
}

Result<std::optional<uint64_t>> ShardManifests::FindVersion(bool by_listing) {
  uint64_t found = 0;
  if (!by_listing) {
    auto hint = store_->Get(ShardManifestHintPath(shard_));
    if (hint.ok()) {
      const auto version = table::ParseVersionHint(std::string_view(**hint));
      if (version) {
        GLAIVE_ASSIGN_OR_RETURN(const bool exists,
                                store_->Exists(ShardManifestPath(shard_, *version)));
        if (exists) found = *version;
      }
    }
  }
  if (found == 0) {
    // Version 1 may have been removed: only a listing tells.
    GLAIVE_ASSIGN_OR_RETURN(const auto versions, ListVersions());
    if (versions.empty()) return std::nullopt;
    found = versions.back();
  }
  while (true) {
    GLAIVE_ASSIGN_OR_RETURN(const bool exists,
                            store_->Exists(ShardManifestPath(shard_, found + 1)));
    if (!exists) return found;
    ++found;
  }
}

Result<std::optional<ShardManifest>> ShardManifests::Find(bool by_listing) {
  GLAIVE_ASSIGN_OR_RETURN(const auto version, FindVersion(by_listing));
  if (!version) return std::nullopt;
  const std::string path = ShardManifestPath(shard_, *version);
  // Read after its successor was seen to be missing: it would be gone as well if the
  // successor had been removed.
  GLAIVE_ASSIGN_OR_RETURN(const auto bytes, store_->Get(path));
  GLAIVE_ASSIGN_OR_RETURN(ShardManifest manifest,
                          ParseShardManifest(std::string_view(*bytes), path));
  if (manifest.version() != *version) {
    return Corruption("shard manifest '", path, "' says that it is version ",
                      manifest.version(), " but its name stands for ", *version);
  }
  if (manifest.shard_id().uuid() != shard_.bytes()) {
    return Corruption("shard manifest '", path, "' belongs to another shard");
  }
  return manifest;
}

Result<std::optional<ShardManifest>> ShardManifests::ReadLatest() {
  auto found = Find(/*by_listing=*/false);
  if (!IsKind(found.status(), ErrorKind::kNotFound)) return found;
  // The one that was found is removed by now, so newer ones exist.
  return Find(/*by_listing=*/true);
}

Result<ShardManifest> ShardManifests::ReadLatestAfter(const ShardManifest& known) {
  GLAIVE_ASSIGN_OR_RETURN(const bool newer,
                          store_->Exists(ShardManifestPath(shard_, known.version() + 1)));
  if (!newer) {
    GLAIVE_ASSIGN_OR_RETURN(const bool kept,
                            store_->Exists(ShardManifestPath(shard_, known.version())));
    if (kept) return known;
  }
  GLAIVE_ASSIGN_OR_RETURN(auto latest, ReadLatest());
  if (!latest || latest->version() < known.version()) {
    return NotFound("the manifests of shard ", shard_.ToString(), " in '", store_->root(),
                    "' are gone: was the table dropped?");
  }
  return *std::move(latest);
}

Status ShardManifests::PutHint(uint64_t version) {
  return store_->Put(ShardManifestHintPath(shard_),
                     AsBytes(table::FormatVersionHint(version)));
}

Status ShardManifests::Put(const ShardManifest& manifest) {
  if (manifest.version() >= kMaxNumber || manifest.writer_epoch() >= kMaxNumber) {
    return ResourceExhausted("shard ", shard_.ToString(),
                             " has no manifest version or writer epoch left");
  }
  const std::string path = ShardManifestPath(shard_, manifest.version());
  const std::string bytes = Serialize(manifest);
  Status status = store_->PutIfAbsent(path, AsBytes(bytes));
  if (!status.ok()) return status;
  if (manifest.version() > 1) {
    GLAIVE_ASSIGN_OR_RETURN(const bool predecessor, store_->Exists(ShardManifestPath(
                                                        shard_, manifest.version() - 1)));
    if (!predecessor) {
      // This process stood still for so long that its version, too, was written and
      // removed by others. Nobody looks at it there.
      GLAIVE_ASSIGN_OR_RETURN(const auto versions, ListVersions());
      if (!versions.empty() && versions.back() > manifest.version()) {
        GLAIVE_RETURN_NOT_OK(store_->Delete(path));
        return AlreadyExists("shard manifest '", path, "' was superseded long ago");
      }
    }
  }
  Status ignored =
      store_->Put(ShardManifestHintPath(shard_),
                  AsBytes(table::FormatVersionHint(manifest.version())), false);
  static_cast<void>(ignored.ok());
  return Status::OK();
}

Result<ShardManifest> ShardManifests::Claim(uint32_t spec_id) {
  for (int attempt = 0; attempt < kMaxClaims; ++attempt) {
    GLAIVE_ASSIGN_OR_RETURN(auto latest, ReadLatest());
    ShardManifest next;
    if (latest) {
      next = *std::move(latest);
      if (next.status() == lance::table::SEALED) {
        return InvalidInput("shard ", shard_.ToString(),
                            " is sealed; refusing claim (drop in flight)");
      }
      next.set_version(next.version() + 1);
      next.set_writer_epoch(next.writer_epoch() + 1);
    } else {
      next.set_version(1);
      next.set_writer_epoch(1);
      next.set_current_generation(1);
      next.set_shard_spec_id(spec_id);
      next.mutable_shard_id()->set_uuid(std::string(shard_.bytes()));
    }
    Status status = Put(next);
    if (status.ok()) return next;
    if (!IsKind(status, ErrorKind::kAlreadyExists)) return status;
    GLAIVE_ASSIGN_OR_RETURN(const auto winner, ReadLatest());
    if (winner && winner->writer_epoch() >= next.writer_epoch()) {
      return Fenced("Writer fenced (peer claimed epoch): another writer claimed epoch ",
                    winner->writer_epoch(), " of shard ", shard_.ToString(),
                    " at the same time; open a new writer to go on");
    }
  }
  return IoError("cannot claim shard ", shard_.ToString(), ": ", kMaxClaims,
                 " attempts met manifest contention; try again later");
}

Result<ShardManifest> ShardManifests::Update(
    std::optional<uint64_t> epoch, const ShardManifest& known,
    const std::function<Status(ShardManifest*)>& change) {
  GLAIVE_ASSIGN_OR_RETURN(ShardManifest latest, ReadLatestAfter(known));
  for (int attempt = 0; attempt < kMaxUpdates; ++attempt) {
    if (epoch && latest.writer_epoch() > *epoch) {
      return FencedError(shard_, *epoch, latest.writer_epoch());
    }
    ShardManifest next = latest;
    next.set_version(latest.version() + 1);
    GLAIVE_RETURN_NOT_OK(change(&next));
    Status status = Put(next);
    if (IsKind(status, ErrorKind::kIo)) {
      // Perhaps only the reply was lost. What counts is that the newest manifest says
      // what it should, not who wrote it.
      const std::string path = ShardManifestPath(shard_, next.version());
      auto stored = store_->Get(path);
      if (!stored.ok()) return status;
      const std::string bytes = Serialize(next);
      if (std::string_view(**stored) == bytes) {
        // Once more, since it may not be durable yet.
        GLAIVE_RETURN_NOT_OK(store_->Put(path, AsBytes(bytes)));
        return next;
      }
      status = AlreadyExists("shard manifest '", path, "' exists");
    }
    if (status.ok()) return next;
    if (!IsKind(status, ErrorKind::kAlreadyExists)) return status;
    GLAIVE_ASSIGN_OR_RETURN(latest, ReadLatestAfter(latest));
  }
  return IoError("cannot update the manifest of shard ", shard_.ToString(), ": ",
                 kMaxUpdates, " attempts met manifest contention; try again later");
}

Status ShardManifests::CheckFence(uint64_t epoch, uint64_t* replay_after) {
  GLAIVE_ASSIGN_OR_RETURN(const auto latest, ReadLatest());
  if (!latest) {
    return NotFound("the manifests of shard ", shard_.ToString(), " in '", store_->root(),
                    "' are gone: was the table dropped?");
  }
  if (replay_after != nullptr) *replay_after = latest->replay_after_wal_entry_position();
  if (latest->writer_epoch() > epoch) {
    return FencedError(shard_, epoch, latest->writer_epoch());
  }
  return Status::OK();
}

}  // namespace glaive::memwal
