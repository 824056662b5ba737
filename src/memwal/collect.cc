#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <arrow/buffer.h>

#include "format/memwal.pb.h"
#include "format/table.pb.h"
#include "io/object_store.h"
#include "memwal/converge.h"
#include "memwal/live_generations.h"
#include "memwal/waiting.h"
#include "memwal/wal.h"
#include "table/index_section.h"
#include "table/mem_wal_entry.h"

namespace glaive::memwal {
namespace {

using lance::table::SsTable;

// Log entries up to the flushed position that stay whatever their age: whoever looks for
// the end of the log starts at a flushed position, which must not look free.
constexpr uint64_t kKeptEntries = 8;
// Shard manifests that stay whatever their age, and how many more are worth a clean-up.
constexpr size_t kKeptManifests = 16;
constexpr size_t kManifestBatch = 16;
constexpr std::chrono::minutes kTemporaryAge{10};

int64_t NowUs() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

// The number in "{anything}_gen_{number}".
std::optional<uint64_t> GenerationOfName(std::string_view name) {
  constexpr std::string_view kMark = "_gen_";
  const size_t at = name.rfind(kMark);
  if (at == std::string_view::npos) return std::nullopt;
  name.remove_prefix(at + kMark.size());
  uint64_t number = 0;
  const auto [end, error] =
      std::from_chars(name.data(), name.data() + name.size(), number);
  if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return number;
}

// Upstream's searches by vector and by text look at base rows through an index only: a
// generation stays until the indices that its readers rely on cover its rows.
uint64_t LimitByIndices(const lance::table::IndexSection& section,
                        const MemWalDetails& details, const ShardId& shard,
                        uint64_t limit) {
  for (const auto& index : section.indices()) {
    const std::string& type = index.index_details().type_url();
    if (!type.ends_with("VectorIndexDetails") &&
        !type.ends_with("InvertedIndexDetails")) {
      continue;
    }
    const auto& names = details.maintained_indexes();
    if (!details.maintain_all_indexes() &&
        std::find(names.begin(), names.end(), index.name()) == names.end()) {
      continue;
    }
    uint64_t covered = 0;
    for (const auto& progress : details.index_catchup()) {
      if (progress.index_name() != index.name()) continue;
      for (const auto& each : progress.caught_up_generations()) {
        if (each.shard_id().uuid() == shard.bytes()) covered = each.generation();
      }
    }
    limit = std::min(limit, covered);
  }
  return limit;
}

class Collector {
 public:
  Collector(const table::Dataset& base, const ShardId& shard,
            const CollectOptions& options)
      : base_(base),
        store_(*base.env().store),
        shard_(shard),
        manifests_(base.env().store, shard),
        all_(options.grace.count() <= 0),
        cutoff_us_(NowUs() - std::chrono::microseconds(options.grace).count()) {}

  Result<CollectOutcome> Run() {
    GLAIVE_ASSIGN_OR_RETURN(const table::Dataset::Ptr latest, base_.Latest());
    GLAIVE_ASSIGN_OR_RETURN(uint64_t merged, Merged(*latest));
    GLAIVE_ASSIGN_OR_RETURN(auto newest, manifests_.ReadLatest());
    if (!newest) return outcome_;
    newest_ = std::move(*newest);
    live_ = FindLiveGenerations(store_);
    const uint64_t needless = merged;
    if (CountCollectable(newest_, merged) > 0) {
      GLAIVE_ASSIGN_OR_RETURN(merged, MergedLongAgo(*latest, merged));
      GLAIVE_RETURN_NOT_OK(RemoveEntries(merged));
    }
    GLAIVE_RETURN_NOT_OK(FindSettled());
    if (settled_) {
      GLAIVE_RETURN_NOT_OK(DeleteLog());
      GLAIVE_RETURN_NOT_OK(DeleteDirectories());
      GLAIVE_RETURN_NOT_OK(DeleteManifests());
    }
    GLAIVE_ASSIGN_OR_RETURN(outcome_.more_later, AnyLeft(needless));
    return outcome_;
  }

 private:
  bool Old(int64_t modified_us) const {
    return all_ || (modified_us > 0 && modified_us <= cutoff_us_);
  }

  // The highest generation that the base has and that nobody needs.
  Result<uint64_t> Merged(const table::Dataset& latest) {
    GLAIVE_ASSIGN_OR_RETURN(const auto details, RequireDetails(latest));
    GLAIVE_ASSIGN_OR_RETURN(const auto section, table::ReadIndexSection(latest));
    for (const auto& index : section.indices()) {
      if (index.name() != table::kMemWalIndex) continue;
      progress_us_ = static_cast<int64_t>(index.created_at()) * 1000;
    }
    return LimitByIndices(section, *details, shard_,
                          CompactedGeneration(*details, shard_));
  }

  // What the base had a grace ago: a reader that looked at the base before it reads the
  // shard's manifest must still find there what is newer.
  Result<uint64_t> MergedLongAgo(const table::Dataset& latest, uint64_t merged) {
    if (all_ || Old(progress_us_)) return merged;
    auto then = latest.CheckoutAsOf(cutoff_us_);
    if (KindOf(then.status()) == ErrorKind::kNotFound) return 0;
    GLAIVE_RETURN_NOT_OK(then.status());
    GLAIVE_ASSIGN_OR_RETURN(const auto details, ReadDetails(**then));
    if (details == nullptr) return 0;
    return std::min(merged, CompactedGeneration(*details, shard_));
  }

  bool Collectable(const SsTable& generation, uint64_t merged) const {
    if (generation.generation() > merged) return false;
    auto directory = GenerationDir(shard_, generation.path());
    return directory.ok() && live_.count(*directory) == 0;
  }

  int64_t CountCollectable(const ShardManifest& manifest, uint64_t merged) const {
    return std::count_if(manifest.sstables().begin(), manifest.sstables().end(),
                         [&](const SsTable& g) { return Collectable(g, merged); });
  }

  Status RemoveEntries(uint64_t merged) {
    if (CountCollectable(newest_, merged) == 0) return Status::OK();
    int64_t removed = 0;
    GLAIVE_ASSIGN_OR_RETURN(
        newest_, manifests_.Update(std::nullopt, newest_, [&](ShardManifest* manifest) {
          removed = CountCollectable(*manifest, merged);
          auto* generations = manifest->mutable_sstables();
          generations->erase(
              std::remove_if(generations->begin(), generations->end(),
                             [&](const SsTable& g) { return Collectable(g, merged); }),
              generations->end());
          return Status::OK();
        }));
    outcome_.generations_removed = removed;
    return Status::OK();
  }

  Result<ShardManifest> ReadVersion(uint64_t version) {
    const std::string path = ShardManifestPath(shard_, version);
    GLAIVE_ASSIGN_OR_RETURN(const auto bytes, store_.Get(path));
    return ParseShardManifest(std::string_view(*bytes), path);
  }

  // What every reader knows that began less than a grace ago: the manifest that was the
  // newest then, and all after it.
  Status FindSettled() {
    GLAIVE_ASSIGN_OR_RETURN(versions_, manifests_.ListVersions());
    // Written in the order of their numbers.
    Status failure;
    const auto young =
        std::partition_point(versions_.begin(), versions_.end(), [&](uint64_t version) {
          auto info = store_.Head(ShardManifestPath(shard_, version));
          if (!info.ok()) failure = info.status();
          return info.ok() && Old(info->modified_us);
        });
    GLAIVE_RETURN_NOT_OK(failure);
    num_old_ = static_cast<size_t>(young - versions_.begin());
    if (num_old_ == 0) return Status::OK();
    GLAIVE_ASSIGN_OR_RETURN(settled_, ReadVersion(versions_[num_old_ - 1]));
    for (size_t i = num_old_ - 1; i < versions_.size(); ++i) {
      GLAIVE_ASSIGN_OR_RETURN(const auto manifest, ReadVersion(versions_[i]));
      for (const SsTable& generation : manifest.sstables()) Name(generation, &named_);
    }
    return Status::OK();
  }

  void Name(const SsTable& generation, std::set<std::string>* names) const {
    if (auto directory = GenerationDir(shard_, generation.path()); directory.ok()) {
      names->insert(*directory);
    }
  }

  // Entries that are flushed, except the last ones and the first one of each writer: a
  // writer that was fenced long ago and wakes up appends where that one lies, and must
  // find the place taken.
  Status DeleteLog() {
    const uint64_t flushed = settled_->replay_after_wal_entry_position();
    if (flushed <= kKeptEntries) return Status::OK();
    const WalReader log(base_.env().store, shard_);
    GLAIVE_ASSIGN_OR_RETURN(const auto positions, log.ListPositions());
    std::optional<uint64_t> before;  // epoch of the entry before
    std::vector<std::string> paths;
    int64_t bytes = 0;
    for (uint64_t position : positions) {
      if (position > flushed - kKeptEntries) break;
      const std::string path = WalEntryPath(shard_, position);
      auto read = log.Read(position);
      // Nobody can tell whom a damaged entry fences.
      if (KindOf(read.status()) == ErrorKind::kCorruption) continue;
      GLAIVE_RETURN_NOT_OK(read.status());
      const auto& entry = *read;
      if (!entry) continue;  // another collector
      const uint64_t epoch = entry->header.writer_epoch;
      const bool fences = entry->sentinel || (before ? *before != epoch : epoch > 1);
      before = epoch;
      if (fences) continue;
      if (!all_) {
        auto info = store_.Head(path);
        if (KindOf(info.status()) == ErrorKind::kNotFound) continue;
        GLAIVE_RETURN_NOT_OK(info.status());
        if (!Old(info->modified_us)) break;  // so are all that follow
      }
      paths.push_back(path);
      bytes += entry->size_bytes;
    }
    GLAIVE_RETURN_NOT_OK(DeleteAll(paths));
    outcome_.log_entries_removed = static_cast<int64_t>(paths.size());
    outcome_.bytes_removed += bytes;
    DeleteTemporaries(WalDir(shard_));
    return Status::OK();
  }

  Status DeleteAll(const std::vector<std::string>& paths) {
    if (paths.empty()) return Status::OK();
    for (Status& status : store_.DeleteMany(paths)) GLAIVE_RETURN_NOT_OK(status);
    return Status::OK();
  }

  // Of puts that died half-way.
  void DeleteTemporaries(const std::string& directory) {
    const int64_t before_us =
        std::min(cutoff_us_, NowUs() - std::chrono::microseconds(kTemporaryAge).count());
    auto freed = store_.DeleteTemporaries(directory, before_us);
    if (freed.ok()) outcome_.bytes_removed += *freed;
  }

  // Directories that no manifest names which a reader may know. One that never was in a
  // manifest may still be written, unless its generation was published from another one.
  Status DeleteDirectories() {
    GLAIVE_ASSIGN_OR_RETURN(const auto entries,
                            store_.List(ShardDir(shard_), /*recursive=*/false));
    std::vector<std::string> unnamed;
    for (const io::ObjectInfo& entry : entries) {
      if (entry.is_directory && entry.path != ShardManifestDir(shard_) &&
          entry.path != WalDir(shard_) && named_.count(entry.path) == 0) {
        unnamed.push_back(entry.path);
      }
    }
    if (unnamed.empty()) return Status::OK();
    GLAIVE_ASSIGN_OR_RETURN(const auto known_once, NamedByOldManifests());
    for (const std::string& directory : unnamed) {
      const bool published = known_once.count(directory) > 0;
      if (!published) {
        const auto generation = GenerationOfName(directory);
        if (!generation || *generation >= settled_->current_generation()) continue;
      }
      GLAIVE_ASSIGN_OR_RETURN(const auto files, store_.List(directory, true));
      int64_t bytes = 0;
      bool old = live_.count(directory) == 0;
      for (const io::ObjectInfo& file : files) {
        if (file.is_directory) continue;
        bytes += file.size_bytes;
        old = old && Old(file.modified_us);
      }
      if (!old) {
        keeps_published_ |= published;
        continue;
      }
      GLAIVE_RETURN_NOT_OK(store_.DeleteTree(directory));
      outcome_.bytes_removed += bytes;
      if (!published) ++outcome_.orphans_removed;
    }
    return Status::OK();
  }

  Result<std::set<std::string>> NamedByOldManifests() {
    std::set<std::string> names;
    for (size_t i = 0; i + 1 < num_old_; ++i) {
      auto manifest = ReadVersion(versions_[i]);
      if (KindOf(manifest.status()) == ErrorKind::kNotFound) continue;
      GLAIVE_RETURN_NOT_OK(manifest.status());
      for (const SsTable& generation : manifest->sstables()) Name(generation, &names);
    }
    return names;
  }

  // Whether something is only too young, or in use, to be removed: generations that the
  // base has, and directories that the newest manifest does not name.
  Result<bool> AnyLeft(uint64_t merged) {
    std::set<std::string> named;
    for (const SsTable& generation : newest_.sstables()) {
      if (generation.generation() <= merged) return true;
      Name(generation, &named);
    }
    GLAIVE_ASSIGN_OR_RETURN(const auto entries,
                            store_.List(ShardDir(shard_), /*recursive=*/false));
    return std::any_of(entries.begin(), entries.end(), [&](const io::ObjectInfo& entry) {
      return entry.is_directory && entry.path != ShardManifestDir(shard_) &&
             entry.path != WalDir(shard_) && named.count(entry.path) == 0;
    });
  }

  // The newest ones stay, without a gap. Who looks for the newest starts at the version
  // that the hint names, so that the hint is made durable first.
  Status DeleteManifests() {
    // Only they tell whose directory it is that could not be deleted yet.
    if (keeps_published_) return Status::OK();
    const size_t keep_from = std::min(
        num_old_ - 1, versions_.size() - std::min(versions_.size(), kKeptManifests));
    if (keep_from < kManifestBatch) return Status::OK();
    GLAIVE_RETURN_NOT_OK(manifests_.PutHint(versions_.back()));
    // Oldest first, so that what is left after a failure has no gap either.
    for (size_t i = 0; i < keep_from; ++i) {
      GLAIVE_RETURN_NOT_OK(store_.Delete(ShardManifestPath(shard_, versions_[i])));
      ++outcome_.manifests_removed;
    }
    DeleteTemporaries(ShardManifestDir(shard_));
    return Status::OK();
  }

  const table::Dataset& base_;
  io::ObjectStore& store_;
  const ShardId shard_;
  ShardManifests manifests_;
  const bool all_;  // no grace: everything is old
  const int64_t cutoff_us_;
  CollectOutcome outcome_;
  ShardManifest newest_;
  int64_t progress_us_ = 0;         // when progress was recorded last; 0: unknown
  std::set<std::string> live_;      // directories in use by this process
  std::vector<uint64_t> versions_;  // of manifests, ascending
  size_t num_old_ = 0;              // of these, older than the grace
  std::optional<ShardManifest> settled_;
  std::set<std::string> named_;  // directories that a reader may have read of
  bool keeps_published_ = false;
};

}  // namespace

Result<CollectOutcome> CollectShard(const table::Dataset& base, const ShardId& shard,
                                    const CollectOptions& options) {
  return Collector(base, shard, options).Run();
}

}  // namespace glaive::memwal
