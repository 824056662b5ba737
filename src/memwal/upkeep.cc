#include "memwal/upkeep.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "base/settings.h"
#include "io/object_store.h"
#include "memwal/converge.h"
#include "memwal/lease.h"
#include "runtime/cancel.h"
#include "runtime/process_worker.h"
#include "table/cleanup.h"

namespace glaive::memwal {
namespace {

using Clock = BackgroundWorker::Clock;
using std::chrono::milliseconds;

constexpr milliseconds kFirstBackoff{20};
constexpr milliseconds kLastBackoff{5000};
// While somebody else holds the lease.
constexpr milliseconds kLeasePause{1000};
constexpr milliseconds kLeaseDuration{60000};
// Between collections that wait for readers, or for a directory that stays.
constexpr milliseconds kLeastCollectPause{1000};
// Beyond this many generations a lookup opens too many files: nothing is waited for.
constexpr int64_t kMostFanOut = 8;

using Key = std::pair<std::string, ShardId>;  // root of the table, shard

struct Entry {
  table::Dataset::Ptr base;
  UpkeepSettings settings;
  std::optional<Clock::time_point> compact_at;
  std::optional<Clock::time_point> collect_at;
  milliseconds backoff{0};
  int64_t waiting = 0;  // generations, as far as is known
};

class Worker final : public BackgroundWorker {
 public:
  void Note(const table::Dataset::Ptr& base, const ShardId& shard, int64_t waiting,
            const UpkeepSettings& settings) {
    std::lock_guard lock(mutex_);
    if (stopped() || waiting <= 0) return;
    const auto now = Clock::now();
    Entry& entry = EntryOf(base, shard, settings);
    entry.waiting = waiting;
    const bool due = waiting >= std::min(settings.max_generations, kMostFanOut);
    auto when = due ? now + entry.backoff : now + settings.max_wait;
    if (!entry.compact_at || when < *entry.compact_at) entry.compact_at = when;
    Wake();
  }

  void NoteMerged(const table::Dataset::Ptr& base, const ShardId& shard,
                  const UpkeepSettings& settings) {
    std::lock_guard lock(mutex_);
    if (stopped()) return;
    Entry& entry = EntryOf(base, shard, settings);
    if (!entry.collect_at) {
      entry.collect_at = Clock::now() + settings.collect_grace + milliseconds(100);
    }
    Wake();
  }

  // The newest version of the base that is known.
  table::Dataset::Ptr Newest(const table::Dataset::Ptr& base, const ShardId& shard) {
    std::lock_guard lock(mutex_);
    const auto found = entries_.find({base->env().store->root(), shard});
    if (found == entries_.end() || found->second.base == nullptr ||
        found->second.base->version() < base->version()) {
      return base;
    }
    return found->second.base;
  }

  bool WaitForFanOut(const Key& key, int64_t most_generations, milliseconds most) {
    std::unique_lock lock(mutex_);
    return WaitUntil(&lock, most, [&] {
      const auto found = entries_.find(key);
      return stopped() || found == entries_.end() ||
             found->second.waiting <= most_generations;
    });
  }

  bool Wait(milliseconds most) {
    std::unique_lock lock(mutex_);
    return WaitUntil(&lock, most, [this] {
      const auto now = Clock::now();
      return !busy() &&
             std::none_of(entries_.begin(), entries_.end(), [&](const auto& e) {
               return (e.second.compact_at && *e.second.compact_at <= now) ||
                      (e.second.compact_at && e.second.backoff.count() > 0) ||
                      (e.second.collect_at && *e.second.collect_at <= now);
             });
    });
  }

  bool IsRunning(const Key& key) {
    std::lock_guard lock(mutex_);
    return running_key_ && *running_key_ == key;
  }

 private:
  struct Job {
    Key key;
    Entry entry;
    bool compact = false;
    bool collect = false;
  };

  Entry& EntryOf(const table::Dataset::Ptr& base, const ShardId& shard,
                 const UpkeepSettings& settings) {
    Entry& entry = entries_[{base->env().store->root(), shard}];
    if (entry.base == nullptr || entry.base->version() < base->version()) {
      entry.base = base;
    }
    entry.settings = settings;
    return entry;
  }

  // What is due first, or when to look again.
  std::optional<Job> Next(Clock::time_point* wake) {
    const auto now = Clock::now();
    *wake = now + std::chrono::hours(1);
    for (auto it = entries_.begin(); it != entries_.end();) {
      Entry& entry = it->second;
      if (!entry.compact_at && !entry.collect_at) {
        it = entries_.erase(it);  // the next generation makes it anew
        continue;
      }
      const bool compact = entry.compact_at && *entry.compact_at <= now;
      const bool collect = entry.collect_at && *entry.collect_at <= now;
      if (compact || collect) {
        Job job{it->first, entry, compact, collect};
        if (compact) entry.compact_at.reset();
        if (collect) entry.collect_at.reset();
        return job;
      }
      if (entry.compact_at) *wake = std::min(*wake, *entry.compact_at);
      if (entry.collect_at) *wake = std::min(*wake, *entry.collect_at);
      ++it;
    }
    return std::nullopt;
  }

  std::optional<Clock::time_point> Step(Lock* lock) override {
    Clock::time_point wake;
    const auto job = Next(&wake);
    if (!job) return wake;
    Run(*job, lock);
    return std::nullopt;
  }

  void Run(const Job& job, Lock* lock) {
    Done done;
    running_key_ = job.key;
    Work(lock, [&](CancelToken* cancel) { done.status = TryWork(job, cancel, &done); });
    running_key_.reset();
    Entry& entry = entries_[job.key];
    if (entry.base == nullptr) {
      entry.base = job.entry.base;
      entry.settings = job.entry.settings;
    }
    if (done.base != nullptr && done.base->version() > entry.base->version()) {
      entry.base = done.base;
    }
    // Those that were published meanwhile are noted when they are.
    if (job.compact && done.status.ok() && !done.leased) {
      entry.waiting =
          done.waiting + std::max<int64_t>(0, entry.waiting - job.entry.waiting);
    }
    const auto sooner = [](std::optional<Clock::time_point>* at, Clock::time_point when) {
      if (!*at || when < **at) *at = when;
    };
    const auto now = Clock::now();
    switch (KindOf(done.status)) {
      case ErrorKind::kNone:
        entry.backoff = milliseconds(0);
        if (done.leased) {
          sooner(&entry.compact_at, now + kLeasePause);
          break;
        }
        if (done.more) sooner(&entry.compact_at, now);
        // What was merged can go when nobody reads it any more; the directories of
        // generations that were taken out of the manifest a grace later.
        if (job.compact || done.later) {
          sooner(&entry.collect_at,
                 now + std::max(entry.settings.collect_grace + milliseconds(100),
                                job.compact ? milliseconds(0) : kLeastCollectPause));
        }
        break;
      case ErrorKind::kCancelled:  // for a fork
        if (job.compact) sooner(&entry.compact_at, now);
        if (job.collect) sooner(&entry.collect_at, now);
        break;
      case ErrorKind::kNotFound:      // dropped
      case ErrorKind::kInvalidInput:  // no LSM write path any more
      case ErrorKind::kNotSupported:  // the next generation asks again
        entries_.erase(job.key);
        break;
      case ErrorKind::kRetryableConflict:
      case ErrorKind::kTooManyRetries:
        entry.backoff = std::clamp(entry.backoff * 2, kFirstBackoff, kLastBackoff);
        if (job.compact) sooner(&entry.compact_at, now + entry.backoff);
        if (job.collect) sooner(&entry.collect_at, now + entry.backoff);
        break;
      default:  // disk full, damage: not too soon
        entry.backoff = kLastBackoff;
        if (job.compact) sooner(&entry.compact_at, now + kLastBackoff);
        if (job.collect) sooner(&entry.collect_at, now + kLastBackoff);
    }
  }

  struct Done {
    Status status;
    table::Dataset::Ptr base;
    bool leased = false;  // by somebody else
    bool more = false;    // generations are left
    bool later = false;   // something is too young to be collected
    int64_t waiting = 0;
  };
  static Status TryWork(const Job& job, CancelToken* cancel, Done* done) {
    table::Dataset::Ptr base = job.entry.base;
    const ShardId& shard = job.key.second;
    GLAIVE_ASSIGN_OR_RETURN(const auto lease,
                            Lease::Take(base->env().store, shard, kLeaseDuration));
    if (lease == nullptr) {
      done->leased = true;
      return Status::OK();
    }
    if (job.compact) {
      CompactOptions options;
      options.cancel = cancel;
      GLAIVE_ASSIGN_OR_RETURN(auto outcome, CompactShard(base, shard, options));
      done->base = outcome.base;
      done->waiting = outcome.generations_remaining;
      done->more = outcome.generations_remaining > 0 || outcome.lost_race;
      if (outcome.generations_consumed > 0 && job.entry.settings.on_compacted) {
        job.entry.settings.on_compacted(outcome.base);
      }
    }
    // Others merge as well: what they recorded is only in the newest version.
    GLAIVE_ASSIGN_OR_RETURN(base, (done->base ? done->base : base)->Latest());
    CollectOptions options;
    options.grace = job.entry.settings.collect_grace;
    GLAIVE_ASSIGN_OR_RETURN(const auto outcome, CollectShard(*base, shard, options));
    done->later = outcome.more_later;
    return Status::OK();
  }

  // Guarded by mutex_:
  std::map<Key, Entry> entries_;
  std::optional<Key> running_key_;
};

ForkAware<Worker>& TheWorker() { return ProcessWorker<Worker>(); }

Status ParseCount(const std::string& name, const std::string& value, int64_t* out) {
  constexpr int64_t kMost = 1'000'000;
  int64_t count = 0;
  for (char c : value) {
    if (c < '0' || c > '9' || count > kMost) {
      count = 0;
      break;
    }
    count = count * 10 + (c - '0');
  }
  if (count < 1 || count > kMost) {
    return InvalidInput("Invalid input, ", name, " must be a number from 1 to ", kMost,
                        ", not \"", value, "\"");
  }
  *out = count;
  return Status::OK();
}

Status ParseTime(const std::string& name, const std::string& value, milliseconds* out) {
  auto parsed = table::ParseDuration(value);
  if (!parsed.ok()) return WithContext(parsed.status(), "Invalid input, " + name);
  *out = milliseconds(*parsed / 1000);
  return Status::OK();
}

}  // namespace

Result<UpkeepSettings> ParseUpkeepSettings(
    const std::map<std::string, std::string>& storage_options) {
  constexpr char kSwitch[] = "GLAIVE_LSM_UPKEEP";
  UpkeepSettings settings;
  if (const char* text = std::getenv(kSwitch); text != nullptr && *text != '\0') {
    GLAIVE_ASSIGN_OR_RETURN(settings.enabled, ParseSwitch(kSwitch, text));
  }
  for (const auto& [name, value] : storage_options) {
    if (name == "lsm_upkeep") {
      GLAIVE_ASSIGN_OR_RETURN(settings.enabled, ParseSwitch(name, value));
    } else if (name == "lsm_upkeep_max_generations") {
      GLAIVE_RETURN_NOT_OK(ParseCount(name, value, &settings.max_generations));
    } else if (name == "lsm_upkeep_max_wait") {
      GLAIVE_RETURN_NOT_OK(ParseTime(name, value, &settings.max_wait));
    } else if (name == "lsm_upkeep_collect_grace") {
      GLAIVE_RETURN_NOT_OK(ParseTime(name, value, &settings.collect_grace));
    }
  }
  return settings;
}

void NoteGeneration(const table::Dataset::Ptr& base, const ShardId& shard,
                    int64_t waiting_generations, const UpkeepSettings& settings) {
  if (!settings.enabled || base == nullptr) return;
  if (base->env().store->root().starts_with("memory:")) return;
  TheWorker().get().Note(base, shard, waiting_generations, settings);
}

void NoteFlush(const table::Dataset::Ptr& base, const ShardManifest& manifest,
               const UpkeepSettings& settings) {
  if (!settings.enabled || base == nullptr) return;
  const auto shard = ShardId::FromBytes(manifest.shard_id().uuid());
  if (!shard.ok()) return;
  const auto newest = TheWorker().get().Newest(base, *shard);
  const auto details = ReadDetails(*newest);
  if (!details.ok() || *details == nullptr) return;
  const uint64_t merged = CompactedGeneration(**details, *shard);
  const auto waiting = std::count_if(
      manifest.sstables().begin(), manifest.sstables().end(),
      [&](const auto& generation) { return generation.generation() > merged; });
  NoteGeneration(base, *shard, waiting, settings);
}

void NoteMerged(const table::Dataset::Ptr& base, const ShardId& shard,
                const UpkeepSettings& settings) {
  if (!settings.enabled || base == nullptr) return;
  if (base->env().store->root().starts_with("memory:")) return;
  TheWorker().get().NoteMerged(base, shard, settings);
}

bool WaitForFanOut(const table::Dataset& base, const ShardId& shard,
                   int64_t most_generations, milliseconds most) {
  Worker* current = TheWorker().get_if_current();
  return current == nullptr || current->WaitForFanOut({base.env().store->root(), shard},
                                                      most_generations, most);
}

bool WaitForUpkeep(milliseconds most) {
  Worker* current = TheWorker().get_if_current();
  return current == nullptr || current->Wait(most);
}

bool IsCompacting(const table::Dataset& base, const ShardId& shard) {
  Worker* current = TheWorker().get_if_current();
  return current != nullptr && current->IsRunning({base.env().store->root(), shard});
}

}  // namespace glaive::memwal
