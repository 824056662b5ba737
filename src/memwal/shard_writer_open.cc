// Opening a writer: checks, the claim of the shard, and what brings it up to date.
#include <algorithm>

#include "format/memwal.pb.h"
#include "io/object_store.h"
#include "memwal/maintained_indices.h"
#include "memwal/mem_wal_index.h"
#include "memwal/shard_writer_impl.h"
#include "runtime/runtime.h"

namespace glaive::memwal {
namespace {

// Entries that the manifest may not have seen yet. They are no more than what has to be
// replayed anyway, so that saying where they end, durably, is worth it for many only.
constexpr uint64_t kMostUnseen = 1000;

Result<uint32_t> ResolveSpec(const MemWalDetails& details, uint32_t wanted) {
  if (details.sharding_specs_size() > 1) {
    return NotSupported(
        "opening a MemWAL writer requires at most one sharding spec, found ",
        details.sharding_specs_size());
  }
  const uint32_t known =
      details.sharding_specs_size() == 0 ? 0 : details.sharding_specs(0).spec_id();
  if (wanted != 0 && wanted != known) {
    return InvalidInput("shard_spec_id ", wanted, " is not that of the table: it has ",
                        known == 0 ? std::string("no sharding spec")
                                   : "sharding spec " + std::to_string(known));
  }
  return known;
}

}  // namespace

Status ShardWriter::Impl::ClaimAndFence() {
  GLAIVE_ASSIGN_OR_RETURN(ShardManifest claimed,
                          manifests_->Claim(config_.shard_spec_id));
  epoch_ = claimed.writer_epoch();
  manifest_ = std::make_shared<const ShardManifest>(std::move(claimed));
  WalAppendOptions options;
  options.durability = config_.durability;
  options.max_persist_retries = config_.max_wal_persist_retries;
  constexpr int64_t kLongestDelayMs = 3600 * 1000;
  options.retry_base_delay_us =
      std::min(config_.wal_persist_retry_base_delay_ms, kLongestDelayMs) * 1000;
  appender_ =
      std::make_unique<WalAppender>(base_->env().store, manifests_, epoch_, options);
  if (epoch_ < 2) return Status::OK();
  // The predecessor may be alive: its next append is to collide with this entry. Only
  // then is the end of the log final.
  return appender_->AppendSentinel(manifest_->replay_after_wal_entry_position() + 1)
      .status();
}

// Claim and sentinel wait for the disk, and the log is read meanwhile: what it holds
// before both stays as it is, but for torn entries. What came since is read later.
Status ShardWriter::Impl::Claim(std::optional<WalReader::Tail>* ahead) {
  const table::TableEnv& env = base_->env();
  GLAIVE_ASSIGN_OR_RETURN(const auto latest, manifests_->ReadLatest());
  const uint64_t first = latest ? latest->replay_after_wal_entry_position() + 1 : 0;
  bool has_log = false;
  if (latest) {
    GLAIVE_ASSIGN_OR_RETURN(has_log, env.store->Exists(WalEntryPath(shard_, first)));
  }
  if (!has_log) return ClaimAndFence();
  Status claimed;
  std::jthread claimer([this, &claimed] { claimed = ClaimAndFence(); });
  auto tail = WalReader(env.store, shard_).ReadFrom(first, env.runtime.get());
  claimer.join();
  GLAIVE_RETURN_NOT_OK(claimed);
  // Torn entries, and errors, are judged when nobody writes to the log any more.
  if (tail.ok() && tail->torn.empty() &&
      manifest_->replay_after_wal_entry_position() + 1 == first) {
    *ahead = std::move(*tail);
  }
  return Status::OK();
}

Status ShardWriter::Impl::Open() {
  const std::shared_ptr<io::ObjectStore>& store = base_->env().store;
  GLAIVE_ASSIGN_OR_RETURN(const auto details, ReadDetails(*base_));
  if (details == nullptr) {
    return InvalidInput(
        "MemWAL is not initialized on this dataset. Call initialize_mem_wal() first. (",
        store->root(), ")");
  }
  // Everything that can be wrong is found before the claim, which fences others.
  GLAIVE_RETURN_NOT_OK(CheckWriterConfig(config_));
  GLAIVE_ASSIGN_OR_RETURN(config_.shard_spec_id,
                          ResolveSpec(*details, config_.shard_spec_id));
  GLAIVE_ASSIGN_OR_RETURN(schema_, FreshSchema::Make(*base_));
  generation_options_.file_version = base_->file_version();
  GLAIVE_RETURN_NOT_OK(FindMaintainedIndices(*base_, *details, &generation_options_));

  memory_ = std::make_unique<MemtableMemory>(base_->env().runtime->memory(),
                                             [weak = weak_from_this()] {
                                               if (const auto self = weak.lock())
                                                 self->SealForOthers();
                                             });

  manifests_ = std::make_shared<ShardManifests>(store, shard_);
  std::optional<WalReader::Tail> ahead;
  GLAIVE_RETURN_NOT_OK(Claim(&ahead));
  GLAIVE_RETURN_NOT_OK(Replay(std::move(ahead)));

  const uint64_t last = appender_->next_position() - 1;
  if (last > manifest_->wal_entry_position_last_seen() + kMostUnseen) {
    Result<ShardManifest> raised =
        manifests_->Update(epoch_, *manifest_, [last](ShardManifest* manifest) -> Status {
          manifest->set_wal_entry_position_last_seen(
              std::max(manifest->wal_entry_position_last_seen(), last));
          return Status::OK();
        });
    if (raised.ok()) {
      manifest_ = std::make_shared<const ShardManifest>(std::move(*raised));
    } else if (KindOf(raised.status()) == ErrorKind::kFenced) {
      return raised.status();
    }  // otherwise only a hint is missing
  }
  Lock order(order_mutex_);
  Lock lock(mutex_);
  for (const SlotPtr& slot : slots_) CountLocked(slot.get(), 0);
  if (!Fits(1, 1)) SealLocked();  // the log held a memtable that is full
  return Status::OK();
}

Result<std::shared_ptr<ShardWriter>> ShardWriter::Open(table::Dataset::Ptr base,
                                                       const ShardId& shard,
                                                       const WriterConfig& config) {
  auto impl = std::make_shared<Impl>(std::move(base), shard, config);
  // So that its threads end when anything below fails.
  std::shared_ptr<ShardWriter> writer(new ShardWriter(impl));
  if (Status status = impl->Open(); !status.ok()) {
    return WithContext(status, "open the writer of shard " + shard.ToString());
  }
  return writer;
}

}  // namespace glaive::memwal
