#include <algorithm>
#include <map>
#include <thread>
#include <utility>

#include "io/object_store.h"
#include "memwal/converge.h"
#include "memwal/shard_writer.h"
#include "memwal/waiting.h"
#include "memwal/wal.h"
#include "runtime/cancel.h"

namespace glaive::memwal {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// Passes in a row that change nothing, since others are faster, before a checkpoint gives
// up; and what it waits after each.
constexpr int kMostIdlePasses = 20;
constexpr milliseconds kIdlePause{50};

bool IsOpen(const ShardWriter& writer) {
  return !writer.is_closed() && writer.health().ok();
}

// Whether the log holds rows that no generation has.
Result<bool> HasUnflushedRows(const table::Dataset& base, const ShardId& shard,
                              const ShardManifest& manifest) {
  const WalReader log(base.env().store, shard);
  uint64_t position = manifest.replay_after_wal_entry_position() + 1;
  while (true) {
    auto read = log.Read(position);
    // A torn end: whoever replays the log decides.
    if (KindOf(read.status()) == ErrorKind::kCorruption) return true;
    GLAIVE_RETURN_NOT_OK(read.status());
    const auto& entry = *read;
    if (!entry) return false;
    if (!entry->sentinel && !entry->batches.empty()) return true;
    ++position;
  }
}

// The number of generations made.
Result<int64_t> FlushShard(const table::Dataset::Ptr& base, const ShardId& shard,
                           const MemWalDetails& details) {
  const auto open = WriterRegistry::Instance().Find(*base, shard);
  if (open != nullptr && IsOpen(*open)) {
    GLAIVE_ASSIGN_OR_RETURN(const bool flushed, open->Flush());
    return flushed ? 1 : 0;
  }
  ShardManifests manifests(base->env().store, shard);
  GLAIVE_ASSIGN_OR_RETURN(const auto manifest, manifests.ReadLatest());
  if (!manifest || manifest->status() == lance::table::SEALED) return 0;
  GLAIVE_ASSIGN_OR_RETURN(const bool unflushed,
                          HasUnflushedRows(*base, shard, *manifest));
  if (!unflushed) return 0;
  const std::map<std::string, std::string> defaults(
      details.writer_config_defaults().begin(), details.writer_config_defaults().end());
  WriterConfig config = ApplyConfigDefaults(defaults, WriterConfig());
  config.shard_spec_id = manifest->shard_spec_id();
  GLAIVE_ASSIGN_OR_RETURN(const auto writer, ShardWriter::Open(base, shard, config));
  const Status flushed = writer->Flush().status();
  const Status closed = writer->Close();
  GLAIVE_RETURN_NOT_OK(flushed);
  GLAIVE_RETURN_NOT_OK(closed);
  // Replay may have made several.
  GLAIVE_ASSIGN_OR_RETURN(const auto after, manifests.ReadLatest());
  if (!after) return 0;
  return static_cast<int64_t>(after->current_generation() -
                              manifest->current_generation());
}

// What is left of the generations that a checkpoint is to bring into the base.
class Targets {
 public:
  static Result<Targets> Of(const table::Dataset& base,
                            const std::vector<ShardId>& shards) {
    Targets targets;
    for (const ShardId& shard : shards) {
      ShardManifests manifests(base.env().store, shard);
      GLAIVE_ASSIGN_OR_RETURN(const Waiting waiting, FindWaiting(base, manifests));
      if (waiting.generations.empty()) continue;
      targets.last_[shard] = waiting.generations.back().generation();
      targets.remaining_ += static_cast<int64_t>(waiting.generations.size());
    }
    return targets;
  }

  int64_t remaining() const { return remaining_; }
  std::vector<ShardId> shards() const {
    std::vector<ShardId> shards;
    for (const auto& [shard, last] : last_) shards.push_back(shard);
    return shards;
  }

  Status Refresh(const table::Dataset& base) {
    remaining_ = 0;
    for (auto it = last_.begin(); it != last_.end();) {
      ShardManifests manifests(base.env().store, it->first);
      GLAIVE_ASSIGN_OR_RETURN(const Waiting waiting, FindWaiting(base, manifests));
      const auto left = std::count_if(
          waiting.generations.begin(), waiting.generations.end(),
          [&](const auto& each) { return each.generation() <= it->second; });
      remaining_ += left;
      it = left == 0 ? last_.erase(it) : std::next(it);
    }
    return Status::OK();
  }

 private:
  std::map<ShardId, uint64_t> last_;  // by shard with something left: the last target
  int64_t remaining_ = 0;
};

// One pass over `shards`.
Result<CompactOutcome> CompactShards(table::Dataset::Ptr base,
                                     const std::vector<ShardId>& shards,
                                     const CompactOptions& options) {
  CompactOutcome total;
  total.base = std::move(base);
  for (const ShardId& shard : shards) {
    GLAIVE_ASSIGN_OR_RETURN(auto outcome, CompactShard(total.base, shard, options));
    total.base = std::move(outcome.base);
    total.generations_consumed += outcome.generations_consumed;
    total.generations_remaining += outcome.generations_remaining;
    total.rows_merged += outcome.rows_merged;
    total.rows_deleted += outcome.rows_deleted;
    total.lost_race |= outcome.lost_race;
  }
  return total;
}

Result<int64_t> FlushShards(const table::Dataset::Ptr& base,
                            const std::vector<ShardId>& shards) {
  GLAIVE_ASSIGN_OR_RETURN(const auto details, RequireDetails(*base));
  int64_t made = 0;
  for (const ShardId& shard : shards) {
    GLAIVE_ASSIGN_OR_RETURN(const int64_t flushed, FlushShard(base, shard, *details));
    made += flushed;
  }
  return made;
}

bool LostToOthers(const Status& status) {
  return KindOf(status) == ErrorKind::kRetryableConflict ||
         KindOf(status) == ErrorKind::kTooManyRetries;
}

}  // namespace

Result<int64_t> FlushLsm(const table::Dataset::Ptr& base) {
  GLAIVE_ASSIGN_OR_RETURN(const auto latest, base->Latest());
  GLAIVE_ASSIGN_OR_RETURN(const auto shards, ListShards(*latest->env().store));
  return FlushShards(latest, shards);
}

Result<CompactOutcome> CompactLsm(table::Dataset::Ptr base,
                                  const CompactOptions& options) {
  GLAIVE_ASSIGN_OR_RETURN(base, base->Latest());
  GLAIVE_RETURN_NOT_OK(RequireDetails(*base).status());
  GLAIVE_ASSIGN_OR_RETURN(const auto shards, ListShards(*base->env().store));
  return CompactShards(std::move(base), shards, options);
}

Result<CheckpointOutcome> CheckpointLsm(table::Dataset::Ptr base,
                                        const CheckpointOptions& options) {
  const auto began = Clock::now();
  const auto out_of_time = [&] {
    return options.timeout && Clock::now() - began >= *options.timeout;
  };
  GLAIVE_ASSIGN_OR_RETURN(base, base->Latest());
  std::vector<ShardId> shards = options.shards;
  if (shards.empty()) {
    GLAIVE_ASSIGN_OR_RETURN(shards, ListShards(*base->env().store));
  }
  GLAIVE_RETURN_NOT_OK(FlushShards(base, shards).status());
  CheckpointOutcome outcome;
  GLAIVE_ASSIGN_OR_RETURN(outcome.base, base->Latest());
  GLAIVE_ASSIGN_OR_RETURN(Targets targets, Targets::Of(*outcome.base, shards));
  const int64_t total = targets.remaining();
  int idle = 0;
  while (targets.remaining() > 0 && !out_of_time()) {
    if (options.compact.cancel != nullptr) {
      GLAIVE_RETURN_NOT_OK(options.compact.cancel->CheckOnCaller());
    }
    const int64_t before = targets.remaining();
    auto pass = CompactShards(outcome.base, targets.shards(), options.compact);
    ++outcome.passes;
    if (!pass.ok() && !LostToOthers(pass.status())) return pass.status();
    GLAIVE_ASSIGN_OR_RETURN(outcome.base, outcome.base->Latest());
    GLAIVE_RETURN_NOT_OK(targets.Refresh(*outcome.base));
    if (options.progress) options.progress(targets.remaining(), total);
    if (targets.remaining() < before) {
      idle = 0;
    } else if (++idle < kMostIdlePasses) {
      std::this_thread::sleep_for(kIdlePause);
    } else {
      GLAIVE_RETURN_NOT_OK(pass.status());
      break;
    }
  }
  outcome.generations_remaining = targets.remaining();
  outcome.generations_consumed = total - targets.remaining();
  outcome.converged = targets.remaining() == 0;
  return outcome;
}

}  // namespace glaive::memwal
