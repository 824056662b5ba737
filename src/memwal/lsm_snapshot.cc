#include "memwal/lsm_snapshot.h"

#include <algorithm>
#include <set>
#include <utility>

#include <arrow/table.h>
#include <arrow/type.h>

#include "exec/scan.h"
#include "format/memwal.pb.h"
#include "io/object_store.h"
#include "memwal/log_tail.h"
#include "memwal/lsm_sources.h"
#include "memwal/lsm_state.h"
#include "memwal/mem_wal_index.h"
#include "memwal/sharding.h"

namespace glaive::memwal {
namespace {

using table::Dataset;

// How often a reader looks again when shards change while it looks.
constexpr int kMaxAttempts = 16;

Status NoPrimaryKey(const Dataset& base) {
  return InvalidInput(
      "Dataset has no primary key. Set 'lance-schema:unenforced-primary-key' metadata on "
      "the primary key field(s). Table ",
      base.env().store->root());
}

bool ServesNothing(const Status& status) {
  const ErrorKind kind = KindOf(status);
  return kind == ErrorKind::kClosed || kind == ErrorKind::kFenced ||
         kind == ErrorKind::kWriterFailed;
}

// What was captured of one shard before its generations are opened.
struct Captured {
  ShardSources sources;
  ShardManifest manifest;
};

std::vector<Memtable::View> WithRows(std::vector<Memtable::View> views) {
  std::erase_if(views, [](const auto& view) { return view.num_rows() == 0; });
  return views;
}

// The rows of a writer of this process; nullopt when it serves nothing any more.
Result<std::optional<Captured>> CaptureWriter(ShardWriter& writer) {
  if (writer.is_closed() || !writer.health().ok()) return std::nullopt;
  auto view = writer.View();
  if (!view.ok() && ServesNothing(view.status())) return std::nullopt;
  GLAIVE_RETURN_NOT_OK(view.status());
  Captured captured;
  captured.sources.shard = writer.shard();
  captured.sources.memory = WithRows(std::move(view->memtables));
  captured.manifest = *view->manifest;
  return captured;
}

// Rows that are only in the log, and the manifest. The log is removed behind what is
// flushed, so the manifest must be the same before and after it was read.
Result<std::optional<Captured>> CaptureLog(const Dataset& base, const ShardId& shard,
                                           Freshness freshness,
                                           const std::shared_ptr<LsmState>& state) {
  ShardManifests manifests(base.env().store, shard);
  GLAIVE_ASSIGN_OR_RETURN(auto manifest, manifests.ReadLatest());
  if (!manifest) return std::nullopt;
  Captured captured;
  captured.sources.shard = shard;
  captured.manifest = std::move(*manifest);
  if (freshness == Freshness::kGenerations) return captured;
  GLAIVE_ASSIGN_OR_RETURN(const auto schema, state->SchemaOf(base));
  std::lock_guard lock(state->tail_mutex);
  for (int attempt = 0;; ++attempt) {
    auto tail = state->tails[shard].Read(base.env(), captured.manifest, schema);
    auto after = manifests.ReadLatestAfter(captured.manifest);
    if (after.ok() && after->version() == captured.manifest.version()) {
      GLAIVE_RETURN_NOT_OK(tail.status());
      captured.sources.memory = std::move(*tail);
      int64_t bytes = 0;
      for (const auto& [id, kept] : state->tails) bytes += kept.resident_bytes();
      state->tail_bytes = bytes;
      LsmState::Account(base.env(), state);
      return captured;
    }
    if (attempt == kMaxAttempts) {
      GLAIVE_RETURN_NOT_OK(tail.status());
      GLAIVE_RETURN_NOT_OK(after.status());
      return ResourceExhausted("shard ", shard.ToString(), " of table ",
                               base.env().store->root(),
                               " changes faster than its log can be read: try again");
    }
    GLAIVE_ASSIGN_OR_RETURN(manifest, manifests.ReadLatest());
    if (!manifest) return std::nullopt;
    captured.manifest = std::move(*manifest);
  }
}

// Whether generations that the base does not have were removed from the shard: the base
// is older than the manifest.
bool MissesGenerations(const ShardManifest& manifest, uint64_t merged) {
  uint64_t first = std::max<uint64_t>(1, manifest.current_generation());
  for (const auto& sstable : manifest.sstables()) {
    first = std::min(first, sstable.generation());
  }
  return first > merged + 1;
}

bool IsInMemory(const ShardSources& sources, uint64_t generation) {
  return std::any_of(sources.memory.begin(), sources.memory.end(),
                     [&](const auto& view) { return view.generation() == generation; });
}

// Generations by number and name, oldest first.
using Names = std::vector<std::pair<uint64_t, std::string>>;

Status OpenGenerations(const Dataset& base, const KeyColumns& keys, Names names,
                       ShardSources* sources) {
  std::sort(names.begin(), names.end());
  for (const auto& [number, name] : names) {
    if (number == 0) {
      return InvalidInput("generation 0 of shard ", sources->shard.ToString(),
                          " is the base table itself: generations count from 1");
    }
    if (IsInMemory(*sources, number)) continue;
    GLAIVE_ASSIGN_OR_RETURN(
        auto opened, Generation::Open(base.env(), sources->shard, number, name, keys));
    sources->generations.push_back(std::move(opened));
  }
  return Status::OK();
}

Names NamesOf(const ShardManifest& manifest, uint64_t merged) {
  Names names;
  for (const auto& sstable : manifest.sstables()) {
    if (sstable.generation() > merged) {
      names.emplace_back(sstable.generation(), sstable.path());
    }
  }
  return names;
}

// Says that this process reads the generations, before they are opened.
Status Announce(const Dataset& base, const std::vector<std::pair<ShardId, Names>>& all,
                std::optional<LiveGenerations>* live) {
  std::vector<std::string> directories;
  for (const auto& [shard, names] : all) {
    for (const auto& [number, name] : names) {
      GLAIVE_ASSIGN_OR_RETURN(std::string directory, GenerationDir(shard, name));
      directories.push_back(std::move(directory));
    }
  }
  live->reset();
  if (!directories.empty()) live->emplace(*base.env().store, std::move(directories));
  return Status::OK();
}

Result<KeyColumns> KeysOf(const Dataset& base, LsmState& state,
                          const std::vector<std::string>& key_columns) {
  if (!key_columns.empty()) return KeyColumns::Make(base, key_columns);
  GLAIVE_ASSIGN_OR_RETURN(const auto schema, state.SchemaOf(base));
  if (schema->key_names().empty()) return NoPrimaryKey(base);
  return KeyColumns::Make(base, schema->key_names());
}

}  // namespace

LsmSnapshot::LsmSnapshot(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
LsmSnapshot::~LsmSnapshot() = default;

Result<LsmSnapshot::Ptr> LsmSnapshot::Open(Dataset::Ptr base, Freshness freshness) {
  auto impl = std::make_unique<Impl>();
  const auto state = LsmState::Of(base->env());
  for (int attempt = 0;; ++attempt) {
    GLAIVE_ASSIGN_OR_RETURN(const auto details, ReadDetails(*base));
    if (details == nullptr) {
      return InvalidInput(
          "MemWAL is not initialized on this dataset. Call "
          "initialize_mem_wal() first. Table ",
          base->env().store->root());
    }
    GLAIVE_ASSIGN_OR_RETURN(impl->keys, KeysOf(*base, *state, {}));
    GLAIVE_ASSIGN_OR_RETURN(const auto shards, ListShards(*base->env().store));
    std::vector<Captured> all;
    std::vector<std::pair<ShardId, Names>> names;
    bool stale = false;
    for (const ShardId& shard : shards) {
      const uint64_t merged = CompactedGeneration(*details, shard);
      std::optional<Captured> captured;
      if (freshness == Freshness::kFresh) {
        if (auto writer = WriterRegistry::Instance().Find(*base, shard)) {
          GLAIVE_ASSIGN_OR_RETURN(captured, CaptureWriter(*writer));
        }
      }
      if (!captured) {
        GLAIVE_ASSIGN_OR_RETURN(captured, CaptureLog(*base, shard, freshness, state));
      }
      if (!captured) continue;
      std::erase_if(captured->sources.memory,
                    [&](const auto& view) { return view.generation() <= merged; });
      stale |= MissesGenerations(captured->manifest, merged);
      names.emplace_back(shard, NamesOf(captured->manifest, merged));
      all.push_back(std::move(*captured));
    }
    // A row that moved to another shard is in the base before it is there: a version that
    // came meanwhile may have it twice.
    const bool moving = details->sharding_specs_size() == 1 && shards.size() > 1 &&
                        RowsMayMove(details->sharding_specs(0), impl->keys.ids);
    if ((stale || moving) && attempt < kMaxAttempts) {
      GLAIVE_ASSIGN_OR_RETURN(auto latest, base->Latest());
      if (latest->version() != base->version()) {
        base = std::move(latest);
        continue;
      }
    }
    GLAIVE_RETURN_NOT_OK(Announce(*base, names, &impl->live));
    Status opened;
    for (size_t s = 0; s < all.size() && opened.ok(); ++s) {
      opened =
          OpenGenerations(*base, impl->keys, std::move(names[s].second), &all[s].sources);
    }
    if (KindOf(opened) == ErrorKind::kNotFound && attempt < kMaxAttempts) {
      // Merged and removed since the manifest was read.
      GLAIVE_ASSIGN_OR_RETURN(base, base->Latest());
      continue;
    }
    GLAIVE_RETURN_NOT_OK(opened);
    for (Captured& captured : all) {
      if (captured.sources.memory.empty() && captured.sources.generations.empty()) {
        continue;
      }
      impl->shards.push_back(std::move(captured.sources));
    }
    impl->base = std::move(base);
    return Ptr(new LsmSnapshot(std::move(impl)));
  }
}

Result<LsmSnapshot::Ptr> LsmSnapshot::OpenShards(
    Dataset::Ptr base, const std::vector<ShardSnapshot>& shards,
    const std::shared_ptr<ShardWriter>& writer,
    const std::vector<std::string>& key_columns) {
  auto impl = std::make_unique<Impl>();
  const auto state = LsmState::Of(base->env());
  GLAIVE_ASSIGN_OR_RETURN(impl->keys, KeysOf(*base, *state, key_columns));
  std::vector<ShardSources> sources;
  std::vector<std::pair<ShardId, Names>> names;
  std::set<ShardId> seen;
  if (writer != nullptr) {
    GLAIVE_ASSIGN_OR_RETURN(WriterView view, writer->View());
    seen.insert(writer->shard());
    names.emplace_back(writer->shard(), NamesOf(*view.manifest, 0));
    sources.push_back({writer->shard(), WithRows(std::move(view.memtables)), {}});
  }
  for (const ShardSnapshot& shard : shards) {
    if (!seen.insert(shard.shard).second) continue;
    names.emplace_back(shard.shard, shard.generations);
    sources.push_back({shard.shard, {}, {}});
  }
  GLAIVE_RETURN_NOT_OK(Announce(*base, names, &impl->live));
  for (size_t s = 0; s < sources.size(); ++s) {
    GLAIVE_RETURN_NOT_OK(
        OpenGenerations(*base, impl->keys, std::move(names[s].second), &sources[s]));
    if (sources[s].memory.empty() && sources[s].generations.empty()) continue;
    impl->shards.push_back(std::move(sources[s]));
  }
  impl->base = std::move(base);
  return Ptr(new LsmSnapshot(std::move(impl)));
}

const Dataset::Ptr& LsmSnapshot::base() const { return impl_->base; }

const std::vector<std::string>& LsmSnapshot::key_columns() const {
  return impl_->keys.names;
}

int64_t LsmSnapshot::num_generations() const {
  int64_t count = 0;
  for (const ShardSources& shard : impl_->shards) {
    count += static_cast<int64_t>(shard.generations.size());
  }
  return count;
}

bool LsmSnapshot::only_base() const { return impl_->shards.empty(); }

Result<Dataset::Ptr> LsmSnapshot::MaskedBase() const {
  if (only_base()) return impl_->base;
  GLAIVE_RETURN_NOT_OK(impl_->Mask());
  return impl_->masked_base;
}

Result<std::vector<LsmSnapshot::GenerationSource>> LsmSnapshot::MaskedGenerations()
    const {
  std::vector<GenerationSource> generations;
  GLAIVE_ASSIGN_OR_RETURN(auto sources, LsmSources::All(*this));
  for (LsmSource& source : sources) {
    if (source.in_memory || source.generation == 0) continue;
    generations.push_back({source.shard, source.generation, std::move(source.dataset)});
  }
  return generations;
}

Result<std::vector<LsmSnapshot::MemorySource>> LsmSnapshot::LiveMemory() const {
  std::vector<MemorySource> memory;
  GLAIVE_ASSIGN_OR_RETURN(auto sources, LsmSources::All(*this));
  for (LsmSource& source : sources) {
    if (!source.in_memory) continue;
    GLAIVE_ASSIGN_OR_RETURN(auto rows, exec::ScanToTable(source.dataset, {}));
    arrow::TableBatchReader reader(*rows);
    GLAIVE_ASSIGN_OR_RETURN(auto batches, reader.ToRecordBatches());
    memory.push_back({source.shard, source.generation, std::move(batches)});
  }
  return memory;
}

Result<std::vector<LsmSource>> LsmSources::All(const LsmSnapshot& snapshot) {
  const LsmSnapshot::Impl& impl = Of(snapshot);
  std::vector<LsmSource> all;
  if (!snapshot.only_base()) {
    GLAIVE_RETURN_NOT_OK(impl.Mask());
    all = *impl.fresh;
  }
  LsmSource base;
  GLAIVE_ASSIGN_OR_RETURN(base.dataset, snapshot.MaskedBase());
  all.push_back(std::move(base));
  return all;
}

Result<std::shared_ptr<const BaseKeys>> LsmSources::KeysOfBase(
    const LsmSnapshot& snapshot) {
  const LsmSnapshot::Impl& impl = Of(snapshot);
  {
    std::lock_guard lock(impl.mutex);
    if (impl.base_keys != nullptr) return impl.base_keys;
  }
  GLAIVE_ASSIGN_OR_RETURN(
      auto keys, LsmState::Of(impl.base->env())->KeysOf(impl.base, impl.keys.names));
  std::lock_guard lock(impl.mutex);
  impl.base_keys = keys;
  return keys;
}

}  // namespace glaive::memwal
