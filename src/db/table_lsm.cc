// Table methods of the LSM write path.
#include <utility>

#include "db/lsm.h"
#include "db/read_source.h"
#include "db/table.h"
#include "memwal/converge.h"
#include "memwal/shard_manifest.h"
#include "memwal/shard_writer.h"
#include "memwal/upkeep.h"

namespace glaive::db {

Result<ReadSource> Table::Source(std::optional<bool> use_lsm) {
  GLAIVE_ASSIGN_OR_RETURN(auto base, Snapshot());
  return OpenReadSource(std::move(base), is_pinned(), use_lsm);
}

LsmWriteOptions Table::LsmOptions(CancelToken* cancel) const {
  LsmWriteOptions options;
  options.upkeep = lsm_upkeep_;
  options.cancel = cancel;
  return options;
}

Result<int64_t> Table::SetLsmWriteSpec(const LsmWriteSpec& spec) {
  return Change(
      [&](table::Dataset::Ptr latest) { return db::SetLsmWriteSpec(latest, spec); });
}

Result<int64_t> Table::UnsetLsmWriteSpec() {
  return Change([](table::Dataset::Ptr latest) { return db::UnsetLsmWriteSpec(latest); });
}

Result<std::optional<LsmWriteSpec>> Table::GetLsmWriteSpec() {
  GLAIVE_ASSIGN_OR_RETURN(const auto base, Snapshot());
  return ReadLsmWriteSpec(*base);
}

Status Table::CloseLsmWriters() {
  GLAIVE_ASSIGN_OR_RETURN(const auto base, Snapshot());
  return memwal::WriterRegistry::Instance().CloseAll(*base);
}

Result<int64_t> Table::FlushLsm() {
  GLAIVE_ASSIGN_OR_RETURN(const auto latest, LatestForWrite());
  return memwal::FlushLsm(latest);
}

Status Table::WroteMerged(const table::Dataset::Ptr& base, int64_t generations) {
  if (base == nullptr) return Status::OK();
  Wrote(base);
  if (generations == 0 || lsm_upkeep_ == nullptr) return Status::OK();
  GLAIVE_ASSIGN_OR_RETURN(const auto shards, memwal::ListShards(*base->env().store));
  for (const memwal::ShardId& shard : shards) {
    memwal::NoteMerged(base, shard, *lsm_upkeep_);
  }
  return Status::OK();
}

Result<memwal::CompactOutcome> Table::CompactLsm(const memwal::CompactOptions& options) {
  GLAIVE_ASSIGN_OR_RETURN(const auto latest, LatestForWrite());
  GLAIVE_ASSIGN_OR_RETURN(auto outcome, memwal::CompactLsm(latest, options));
  GLAIVE_RETURN_NOT_OK(WroteMerged(outcome.base, outcome.generations_consumed));
  return outcome;
}

Result<memwal::CheckpointOutcome> Table::CheckpointLsm(
    const memwal::CheckpointOptions& options) {
  GLAIVE_ASSIGN_OR_RETURN(const auto latest, LatestForWrite());
  GLAIVE_ASSIGN_OR_RETURN(auto outcome, memwal::CheckpointLsm(latest, options));
  GLAIVE_RETURN_NOT_OK(WroteMerged(outcome.base, outcome.generations_consumed));
  return outcome;
}

Result<std::optional<std::vector<memwal::BucketStats>>> Table::GetLsmStats(
    bool include_generation_rows) {
  GLAIVE_ASSIGN_OR_RETURN(const auto base, Snapshot());
  GLAIVE_ASSIGN_OR_RETURN(const auto latest, base->Latest());
  return memwal::GetLsmStats(latest, include_generation_rows);
}

}  // namespace glaive::db
