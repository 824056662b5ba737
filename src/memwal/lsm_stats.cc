#include <algorithm>
#include <utility>

#include <arrow/record_batch.h>
#include <arrow/util/byte_size.h>

#include "io/object_store.h"
#include "memwal/converge.h"
#include "memwal/lease.h"
#include "memwal/shard_writer.h"
#include "memwal/upkeep.h"
#include "memwal/waiting.h"

namespace glaive::memwal {
namespace {

Result<GenerationStats> OfGeneration(const table::Dataset& base, const ShardId& shard,
                                     const lance::table::SsTable& generation,
                                     bool include_rows) {
  GenerationStats stats;
  stats.generation = generation.generation();
  GLAIVE_ASSIGN_OR_RETURN(const std::string directory,
                          GenerationDir(shard, generation.path()));
  if (generation.has_in_memory_bytes()) {
    stats.bytes = static_cast<int64_t>(generation.in_memory_bytes());
  } else {
    GLAIVE_ASSIGN_OR_RETURN(const auto files, base.env().store->List(directory, true));
    for (const io::ObjectInfo& file : files) {
      if (!file.is_directory) stats.bytes += file.size_bytes;
    }
  }
  if (!include_rows) return stats;
  if (generation.has_physical_rows()) {
    stats.rows = static_cast<int64_t>(generation.physical_rows());
    return stats;
  }
  table::TableEnv env;
  env.runtime = base.env().runtime;
  env.store = base.env().store->Child(directory);
  GLAIVE_ASSIGN_OR_RETURN(const auto dataset, table::Dataset::Open(std::move(env)));
  int64_t rows = 0;
  for (int i = 0; i < dataset->num_fragments(); ++i) rows += dataset->physical_rows(i);
  stats.rows = rows;
  return stats;
}

LiveMemtableStats OfMemtable(const Memtable::View& view) {
  LiveMemtableStats stats;
  stats.generation = view.generation();
  stats.rows = view.num_rows();
  stats.batches = static_cast<int64_t>(view.batches().size());
  for (const auto& batch : view.batches()) {
    stats.bytes += arrow::util::ReferencedBufferSize(*batch).ValueOr(0);
  }
  return stats;
}

Status AddWriter(const table::Dataset& base, BucketStats* stats) {
  const auto writer = WriterRegistry::Instance().Find(base, stats->shard);
  if (writer == nullptr) return Status::OK();
  stats->durability = writer->config().durability == Durability::kFsync ? "fsync" : "os";
  auto view = writer->View();
  // A writer that failed or was fenced shows nothing.
  if (!view.ok()) return Status::OK();
  std::vector<LiveMemtableStats> memtables;
  for (const Memtable::View& memtable : view->memtables) {
    memtables.push_back(OfMemtable(memtable));
  }
  std::reverse(memtables.begin(), memtables.end());
  stats->memtables = std::move(memtables);
  return Status::OK();
}

Status AddLog(io::ObjectStore& store, BucketStats* stats) {
  GLAIVE_ASSIGN_OR_RETURN(const auto files,
                          store.List(WalDir(stats->shard), /*recursive=*/false));
  for (const io::ObjectInfo& file : files) {
    const size_t slash = file.path.rfind('/');
    const auto position = ParseBitReversed(std::string_view(file.path).substr(slash + 1));
    if (!position || *position <= stats->replay_after_wal_entry_position) continue;
    ++stats->log_entries;
    stats->log_bytes += file.size_bytes;
  }
  return Status::OK();
}

}  // namespace

Result<std::optional<std::vector<BucketStats>>> GetLsmStats(
    const table::Dataset::Ptr& base, bool include_generation_rows) {
  GLAIVE_ASSIGN_OR_RETURN(const auto latest, base->Latest());
  GLAIVE_ASSIGN_OR_RETURN(const auto details, ReadDetails(*latest));
  if (details == nullptr) return std::optional<std::vector<BucketStats>>();
  io::ObjectStore& store = *latest->env().store;
  GLAIVE_ASSIGN_OR_RETURN(const auto shards, ListShards(store));
  std::vector<BucketStats> buckets;
  for (const ShardId& shard : shards) {
    ShardManifests manifests(latest->env().store, shard);
    GLAIVE_ASSIGN_OR_RETURN(const Waiting waiting, FindWaiting(*latest, manifests));
    if (!waiting.manifest) continue;
    const ShardManifest& manifest = *waiting.manifest;
    BucketStats stats;
    stats.shard = shard;
    stats.sealed = manifest.status() == lance::table::SEALED;
    stats.writer_epoch = manifest.writer_epoch();
    stats.manifest_version = manifest.version();
    stats.current_generation = manifest.current_generation();
    stats.replay_after_wal_entry_position = manifest.replay_after_wal_entry_position();
    stats.wal_entry_position_last_seen = manifest.wal_entry_position_last_seen();
    for (const auto& generation : waiting.generations) {
      GLAIVE_ASSIGN_OR_RETURN(
          stats.generations.emplace_back(),
          OfGeneration(*latest, shard, generation, include_generation_rows));
    }
    stats.compacting = IsCompacting(*latest, shard) || LeaseIsHeld(store, shard);
    if (!stats.sealed) GLAIVE_RETURN_NOT_OK(AddWriter(*latest, &stats));
    GLAIVE_RETURN_NOT_OK(AddLog(store, &stats));
    buckets.push_back(std::move(stats));
  }
  return std::optional(std::move(buckets));
}

}  // namespace glaive::memwal
