// The methods of glaive::Table for the LSM write path.
#include <utility>

#include "db/lsm.h"
#include "db/table.h"
#include "glaive/glaive.h"
#include "memwal/converge.h"

namespace glaive {

Result<int64_t> Table::SetUnenforcedPrimaryKey(const std::vector<std::string>& columns) {
  return impl_->SetUnenforcedPrimaryKey(columns);
}

Status Table::SetLsmWriteSpec(const LsmWriteSpec& spec) {
  db::LsmWriteSpec out;
  switch (spec.sharding) {
    case Sharding::kUnsharded:
      break;
    case Sharding::kBucket:
      out.sharding = db::LsmSharding::kBucket;
      break;
    case Sharding::kIdentity:
      out.sharding = db::LsmSharding::kIdentity;
      break;
  }
  out.column = spec.column;
  out.num_buckets = spec.num_buckets;
  out.maintained_indexes = spec.maintained_indexes;
  out.writer_config_defaults = spec.writer_config_defaults;
  return impl_->SetLsmWriteSpec(out).status();
}

Status Table::UnsetLsmWriteSpec() { return impl_->UnsetLsmWriteSpec().status(); }

Result<std::optional<LsmWriteSpec>> Table::GetLsmWriteSpec() const {
  GLAIVE_ASSIGN_OR_RETURN(auto spec, impl_->GetLsmWriteSpec());
  if (!spec) return std::nullopt;
  LsmWriteSpec out;
  switch (spec->sharding) {
    case db::LsmSharding::kUnsharded:
      break;
    case db::LsmSharding::kBucket:
      out.sharding = Sharding::kBucket;
      break;
    case db::LsmSharding::kIdentity:
      out.sharding = Sharding::kIdentity;
      break;
  }
  out.column = std::move(spec->column);
  out.num_buckets = spec->num_buckets;
  out.maintained_indexes = std::move(spec->maintained_indexes);
  out.writer_config_defaults = std::move(spec->writer_config_defaults);
  return out;
}

Status Table::CloseLsmWriters() { return impl_->CloseLsmWriters(); }

Result<int64_t> Table::FlushLsm() { return impl_->FlushLsm(); }

Result<LsmProgress> Table::CompactLsm() {
  GLAIVE_ASSIGN_OR_RETURN(const auto outcome, impl_->CompactLsm({}));
  LsmProgress out;
  out.generations_consumed = outcome.generations_consumed;
  out.generations_remaining = outcome.generations_remaining;
  GLAIVE_ASSIGN_OR_RETURN(out.version, version());
  return out;
}

Result<LsmCheckpoint> Table::CheckpointLsm(
    std::optional<std::chrono::milliseconds> timeout,
    std::function<void(int64_t remaining, int64_t total)> progress) {
  memwal::CheckpointOptions options;
  options.timeout = timeout;
  options.progress = std::move(progress);
  GLAIVE_ASSIGN_OR_RETURN(const auto outcome, impl_->CheckpointLsm(options));
  LsmCheckpoint out;
  out.generations_consumed = outcome.generations_consumed;
  out.generations_remaining = outcome.generations_remaining;
  out.passes = outcome.passes;
  out.converged = outcome.converged;
  GLAIVE_ASSIGN_OR_RETURN(out.version, version());
  return out;
}

Result<std::optional<std::vector<LsmBucketStats>>> Table::GetLsmStats(
    bool include_generation_rows) const {
  GLAIVE_ASSIGN_OR_RETURN(const auto buckets,
                          impl_->GetLsmStats(include_generation_rows));
  if (!buckets) return std::nullopt;
  std::vector<LsmBucketStats> out;
  for (const memwal::BucketStats& bucket : *buckets) {
    LsmBucketStats stats;
    stats.shard_id = bucket.shard.ToString();
    stats.sealed = bucket.sealed;
    stats.writer_epoch = bucket.writer_epoch;
    stats.manifest_version = bucket.manifest_version;
    stats.current_generation = bucket.current_generation;
    stats.replay_after_wal_entry_position = bucket.replay_after_wal_entry_position;
    stats.wal_entry_position_last_seen = bucket.wal_entry_position_last_seen;
    for (const auto& generation : bucket.generations) {
      stats.generations.push_back(
          {generation.generation, generation.bytes, generation.rows});
    }
    stats.compacting = bucket.compacting;
    if (bucket.memtables) {
      stats.memtables.emplace();
      for (const auto& memtable : *bucket.memtables) {
        stats.memtables->push_back(
            {memtable.generation, memtable.rows, memtable.bytes, memtable.batches});
      }
    }
    stats.durability = bucket.durability;
    stats.log_entries = bucket.log_entries;
    stats.log_bytes = bucket.log_bytes;
    out.push_back(std::move(stats));
  }
  return out;
}

}  // namespace glaive
