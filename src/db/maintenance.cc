#include "db/maintenance.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "base/settings.h"
#include "exec/compact_fold.h"
#include "io/object_store.h"
#include "runtime/cancel.h"
#include "runtime/process_worker.h"
#include "table/cleanup.h"
#include "table/live_versions.h"
#include "table/names.h"
#include "table/version_directory.h"

namespace glaive::db {
namespace {

using Clock = BackgroundWorker::Clock;
using std::chrono::microseconds;
using std::chrono::milliseconds;

// Writes between two looks at old versions.
constexpr int64_t kWritesPerPrune = 64;
// So many old versions are worth a clean-up, or this share of all.
constexpr size_t kPruneBatch = 64;
constexpr size_t kPruneShare = 4;
constexpr milliseconds kFirstBackoff{20};
constexpr milliseconds kLastBackoff{5000};
// Waiting this long for something is the same as for ever.
constexpr microseconds kLongest = std::chrono::hours(24 * 30);

int64_t NowUs() {
  return std::chrono::duration_cast<microseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

struct Entry {
  table::TableEnv env;
  MaintenanceSettings settings;
  bool fold = false;
  bool prune = false;
  bool no_folds = false;  // this build cannot rewrite the table's rows
  int64_t writes = 0;     // since the last prune
  milliseconds backoff{0};
  Clock::time_point not_before{};                // of fold and prune
  std::optional<Clock::time_point> prune_later;  // when the last version is old enough
};

// Removes versions that are older than the retention, if there are enough of them.
// `all`: any number is enough.
Status Prune(const Entry& entry, bool all, CancelToken* cancel) {
  io::ObjectStore& store = *entry.env.store;
  GLAIVE_ASSIGN_OR_RETURN(auto refs, table::ListVersionRefs(store));
  if (refs.size() < 2) return Status::OK();
  const int64_t before_us = NowUs() - entry.settings.retention_us;
  // Manifests are written in the order of their versions.
  Status failure;
  const auto first_young = std::partition_point(
      refs.begin(), refs.end() - 1, [&](const table::VersionRef& ref) {
        auto info = store.Head(table::ManifestPath(ref.version, ref.scheme));
        if (!info.ok() && KindOf(info.status()) != ErrorKind::kNotFound) {
          failure = info.status();
        }
        return !info.ok() || (info->modified_us > 0 && info->modified_us <= before_us);
      });
  GLAIVE_RETURN_NOT_OK(failure);
  const auto old = static_cast<size_t>(first_young - refs.begin());
  if (old == 0) return Status::OK();
  if (!all && old < kPruneBatch && old < refs.size() / kPruneShare) return Status::OK();
  table::CleanupOptions options;
  options.older_than_us = entry.settings.retention_us;
  options.error_if_tagged_old_versions = false;
  options.keep_versions = table::LiveVersions(store);
  options.cancel = cancel;
  return table::CleanUp(entry.env, static_cast<int64_t>(refs.back().version), options)
      .status();
}

class Worker final : public BackgroundWorker {
 public:
  void Note(const table::Dataset& written, const MaintenanceSettings& settings) {
    std::lock_guard lock(mutex_);
    if (stopped()) return;
    Entry& entry = entries_[written.env().store->root()];
    entry.env = written.env();
    entry.settings = settings;
    entry.writes++;
    const microseconds retention(settings.retention_us);
    if (retention < kLongest) {
      entry.prune_later = Clock::now() + retention + milliseconds(50);
    }
    if (entry.writes >= kWritesPerPrune) entry.prune = true;
    const exec::FoldOptions fold;
    if (!entry.no_folds && written.num_fragments() >= fold.min_fragments) {
      auto planned = exec::PlanFold(written, fold);
      entry.fold |= planned.ok() && *planned >= 0;
    }
    if (!entry.fold && !entry.prune && !entry.prune_later) return;
    // A time in the far future may wait until the thread wakes up for a nearer one.
    const bool far = !entry.fold && !entry.prune && retention >= std::chrono::hours(1);
    if (!far || !std::exchange(started_, true)) Wake();
  }

  bool Wait(milliseconds most) {
    std::unique_lock lock(mutex_);
    return WaitUntil(&lock, most, [this] {
      const auto now = Clock::now();
      return !busy() &&
             std::none_of(entries_.begin(), entries_.end(), [&](const auto& e) {
               // What is due counts, also while the thread has not woken up for it yet.
               return e.second.fold || e.second.prune ||
                      (e.second.prune_later && *e.second.prune_later <= now);
             });
    });
  }

 private:
  // The entry with something to do now, or when to look again.
  std::map<std::string, Entry>::iterator Next(Clock::time_point* wake) {
    const auto now = Clock::now();
    *wake = now + std::chrono::hours(1);
    for (auto it = entries_.begin(); it != entries_.end();) {
      Entry& entry = it->second;
      if (entry.fold || entry.prune) {
        if (entry.not_before <= now) return it;
        *wake = std::min(*wake, entry.not_before);
      }
      if (entry.prune_later) {
        if (*entry.prune_later <= now) return it;
        *wake = std::min(*wake, *entry.prune_later);
      }
      // What asks for nothing is forgotten; the next write makes it anew.
      const bool done = !entry.fold && !entry.prune && !entry.prune_later &&
                        !entry.no_folds && entry.writes == 0;
      it = done ? entries_.erase(it) : std::next(it);
    }
    return entries_.end();
  }

  std::optional<Clock::time_point> Step(Lock* lock) override {
    Clock::time_point wake;
    const auto next = Next(&wake);
    if (next == entries_.end()) return wake;
    Run(next->first, lock);
    return std::nullopt;
  }

  void Run(std::string root, Lock* lock) {
    Entry& entry = entries_[root];
    const bool fold = std::exchange(entry.fold, false);
    const bool all = entry.prune_later && *entry.prune_later <= Clock::now();
    if (all) entry.prune_later.reset();
    const bool prune = std::exchange(entry.prune, false) || all || fold;
    if (prune) entry.writes = 0;
    const Entry job = entry;
    // Each step by itself: one that fails does not keep the other from being done.
    bool folded = false;
    bool more = false;
    Status fold_status, prune_status;
    Work(lock, [&](CancelToken* cancel) {
      if (fold) fold_status = FoldOnce(job, cancel, &folded, &more);
      if (prune) prune_status = Prune(job, all, cancel);
    });
    Entry& after = entries_[root];
    if (folded) {
      after.backoff = milliseconds(0);
      // What was written meanwhile, and what the fold itself made ready for another one.
      after.fold |= more;
    }
    if (!fold_status.ok()) {
      switch (KindOf(fold_status)) {
        case ErrorKind::kCancelled:
          after.fold = true;
          break;
        case ErrorKind::kRetryableConflict:
        case ErrorKind::kTooManyRetries:
          after.fold = true;
          after.backoff = std::clamp(after.backoff * 2, kFirstBackoff, kLastBackoff);
          break;
        case ErrorKind::kNotFound:  // dropped
          entries_.erase(root);
          return;
        case ErrorKind::kNotSupported:
          after.no_folds = true;
          break;
        default:  // the next write asks again, not too soon
          after.backoff = kLastBackoff;
      }
      after.not_before = Clock::now() + after.backoff;
    }
    if (KindOf(prune_status) == ErrorKind::kCancelled) after.prune = true;
  }

  static Status FoldOnce(const Entry& job, CancelToken* cancel, bool* folded,
                         bool* more) {
    GLAIVE_ASSIGN_OR_RETURN(auto dataset, table::Dataset::Open(job.env));
    GLAIVE_ASSIGN_OR_RETURN(auto done, exec::Fold(*dataset, {}, cancel));
    *folded = done.metrics.fragments_removed > 0;
    if (!*folded) return Status::OK();
    auto planned = exec::PlanFold(*done.dataset, {});
    *more = planned.ok() && *planned >= 0;
    return Status::OK();
  }

  // Guarded by mutex_:
  std::map<std::string, Entry> entries_;  // by root of the table
  bool started_ = false;
};

ForkAware<Worker>& TheWorker() { return ProcessWorker<Worker>(); }

Status ParseRetention(const std::string& name, const std::string& value, int64_t* out) {
  auto parsed = table::ParseDuration(value);
  if (!parsed.ok()) return WithContext(parsed.status(), "Invalid input, " + name);
  *out = *parsed;
  return Status::OK();
}

}  // namespace

Result<MaintenanceSettings> ParseMaintenanceSettings(
    const std::map<std::string, std::string>& storage_options) {
  constexpr char kSwitch[] = "GLAIVE_AUTO_MAINTENANCE";
  constexpr char kRetention[] = "GLAIVE_AUTO_MAINTENANCE_RETENTION";
  MaintenanceSettings settings;
  if (const char* text = std::getenv(kSwitch); text != nullptr && *text != '\0') {
    GLAIVE_ASSIGN_OR_RETURN(settings.enabled, ParseSwitch(kSwitch, text));
  }
  if (const char* text = std::getenv(kRetention); text != nullptr && *text != '\0') {
    GLAIVE_RETURN_NOT_OK(ParseRetention(kRetention, text, &settings.retention_us));
  }
  if (auto found = storage_options.find("auto_maintenance");
      found != storage_options.end()) {
    GLAIVE_ASSIGN_OR_RETURN(settings.enabled, ParseSwitch(found->first, found->second));
  }
  if (auto found = storage_options.find("auto_maintenance_retention");
      found != storage_options.end()) {
    GLAIVE_RETURN_NOT_OK(
        ParseRetention(found->first, found->second, &settings.retention_us));
  }
  return settings;
}

void NoteWrite(const table::Dataset::Ptr& written, const MaintenanceSettings& settings) {
  if (!settings.enabled || written == nullptr) return;
  if (written->env().store->root().starts_with("memory:")) return;
  TheWorker().get().Note(*written, settings);
}

bool WaitForMaintenance(milliseconds most) {
  Worker* current = TheWorker().get_if_current();
  return current == nullptr || current->Wait(most);
}

}  // namespace glaive::db
