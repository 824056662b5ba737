#include "table/cleanup.h"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include <arrow/buffer.h>

#include "format/table.pb.h"
#include "io/object_store.h"
#include "runtime/cancel.h"
#include "runtime/runtime.h"
#include "table/cleanup_branches.h"
#include "table/in_flight.h"
#include "table/manifest.h"
#include "table/names.h"
#include "table/references.h"
#include "table/snapshot.h"
#include "table/tags.h"
#include "table/version_directory.h"
#include "table/writer_turn.h"

namespace glaive::table {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kUnverifiedAgeUs = int64_t{7} * 24 * 3600 * 1'000'000;
constexpr size_t kManifestsAtOnce = 64;
// Files removed between two looks at what was committed meanwhile.
constexpr size_t kDeletesAtOnce = 256;
constexpr std::string_view kTreeDir = "tree";
constexpr std::string_view kIndicesDir = "_indices";

int64_t NowUs() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

int64_t TimestampUs(const lance::table::Manifest& header) {
  return static_cast<int64_t>(static_cast<uint64_t>(header.timestamp().seconds()) *
                                  1000000u +
                              static_cast<uint64_t>(header.timestamp().nanos() / 1000));
}

struct Version {
  VersionRef ref;
  int64_t timestamp_us = 0;
  bool readable = true;
  bool removed = false;
};

enum class FileKind : uint8_t { kData, kDeletion, kTransaction, kIndex };

const char* KindName(FileKind kind) {
  switch (kind) {
    case FileKind::kData:
      return "data";
    case FileKind::kDeletion:
      return "deletion";
    case FileKind::kTransaction:
      return "transaction";
    case FileKind::kIndex:
      return "index";
  }
  return "";
}

struct Candidate {
  FileKind kind = FileKind::kData;
  bool unverified = false;
  io::ObjectInfo info;
};

class Cleaner {
 public:
  Cleaner(const TableEnv& env, int64_t own_version, const CleanupOptions& options)
      : env_(env),
        store_(*env.store),
        own_version_(own_version),
        options_(options),
        now_us_(NowUs()),
        state_(StateOf(env)) {}

  Result<CleanupReport> Run() {
    GLAIVE_RETURN_NOT_OK(CheckOptions());
    // Writers of this process may have deletion files that no version names yet.
    WriterTurn turn;
    if (options_.delete_unverified && !options_.dry_run) {
      GLAIVE_RETURN_NOT_OK(state_->writers->Enter(TurnKind::kAlone, options_.cancel));
      turn = WriterTurn(state_->writers, TurnKind::kAlone);
    }
    report_.read_version = own_version_;
    GLAIVE_RETURN_NOT_OK(ListVersions());
    GLAIVE_RETURN_NOT_OK(FindBranches());
    GLAIVE_RETURN_NOT_OK(Decide());
    GLAIVE_RETURN_NOT_OK(CollectReferences());
    GLAIVE_RETURN_NOT_OK(RemoveManifests());
    RemoveFiles();
    return std::move(report_);
  }

 private:
  Status CheckOptions() const {
    if (options_.retain_versions && *options_.retain_versions <= 0) {
      return InvalidInput("Invalid user input: retain_versions must be greater than 0, ",
                          "got ", *options_.retain_versions);
    }
    if (options_.delete_rate_limit && *options_.delete_rate_limit <= 0) {
      return InvalidInput("Cleanup error: delete_rate_limit must be greater than 0, got ",
                          *options_.delete_rate_limit);
    }
    return Status::OK();
  }

  Status Interrupted() const {
    return options_.cancel == nullptr ? Status::OK() : options_.cancel->CheckOnCaller();
  }

  Status ListVersions() {
    GLAIVE_ASSIGN_OR_RETURN(auto refs, ListVersionRefs(store_));
    if (refs.empty()) return TableNotFound(store_);
    for (const VersionRef& ref : refs) versions_.push_back({.ref = ref});
    newest_ = refs.back();
    if (!options_.older_than_us) return Status::OK();
    return env_.runtime->ParallelFor(
        static_cast<int64_t>(versions_.size()),
        [&](int64_t i) -> Status {
          Version& version = versions_[static_cast<size_t>(i)];
          auto manifest = LoadManifest(store_, version.ref);
          if (manifest.ok()) {
            version.timestamp_us = TimestampUs(*manifest->header);
            return Status::OK();
          }
          const ErrorKind kind = KindOf(manifest.status());
          if (kind != ErrorKind::kNotFound && kind != ErrorKind::kCorruption) {
            return manifest.status();
          }
          // Gone already, or of no use to anybody: as old as the file.
          version.readable = false;
          auto info = store_.Head(ManifestPath(version.ref.version, version.ref.scheme));
          version.timestamp_us = info.ok() ? info->modified_us : 0;
          return Status::OK();
        },
        options_.cancel);
  }

  // As the newest version that can be read says; empty for the main table.
  Result<std::string> OwnBranch() const {
    Status last;
    for (auto version = versions_.rbegin(); version != versions_.rend(); ++version) {
      auto manifest = LoadManifest(store_, version->ref);
      if (manifest.ok()) return manifest->header->branch();
      last = manifest.status();
    }
    return last;
  }

  // Branches live in directories of the main table, each with manifests of its own.
  Status FindBranches() {
    std::shared_ptr<io::ObjectStore> main;
    std::string own_branch;
    GLAIVE_ASSIGN_OR_RETURN(own_branch, OwnBranch());
    if (!own_branch.empty()) {
      const std::string suffix = "/" + std::string(kTreeDir) + "/" + own_branch;
      if (!store_.root().ends_with(suffix) || store_.root().starts_with("memory:")) {
        return NotSupported("cleaning up branch ", own_branch, ", which lies in ",
                            store_.root(), " and not in a directory of its table");
      }
      GLAIVE_ASSIGN_OR_RETURN(
          main,
          io::OpenStore(store_.root().substr(0, store_.root().size() - suffix.size()),
                        /*create=*/false));
    } else {
      main = env_.store;
    }
    own_branch_ = own_branch;
    main_ = main;
    GLAIVE_RETURN_NOT_OK(ReadTagged());
    GLAIVE_ASSIGN_OR_RETURN(branches_, ReadBranches(*main));
    for (const BranchInfo& branch : branches_) {
      if (branch.parent == own_branch_) parents_.insert(branch.parent_version);
    }
    return AddBranchFiles(*main);
  }

  // What any other branch, or the main table, names is kept. Which of it lies here need
  // not be known.
  Status AddBranchFiles(io::ObjectStore& main) {
    GLAIVE_ASSIGN_OR_RETURN(auto below, main.List(kTreeDir, /*recursive=*/true));
    const std::string own =
        own_branch_.empty() ? ""
                            : std::string(kTreeDir) + "/" + own_branch_ + "/_versions/";
    for (const io::ObjectInfo& info : below) {
      const size_t slash = info.path.rfind('/');
      const std::string_view directory = std::string_view(info.path).substr(0, slash + 1);
      if (!directory.ends_with("/_versions/") || directory == own) continue;
      GLAIVE_RETURN_NOT_OK(AddForeign(main, info.path, slash));
    }
    if (own_branch_.empty()) return Status::OK();
    GLAIVE_ASSIGN_OR_RETURN(auto names, main.ListNames(kVersionsDir));
    for (const std::string& name : names) {
      GLAIVE_RETURN_NOT_OK(AddForeign(main, std::string(kVersionsDir) + "/" + name,
                                      std::string_view(kVersionsDir).size()));
    }
    return Status::OK();
  }

  Status AddForeign(io::ObjectStore& store, const std::string& path, size_t slash) {
    if (!ParseManifestName(std::string_view(path).substr(slash + 1))) return Status::OK();
    auto bytes = store.Get(path);
    if (!bytes.ok()) {
      return KindOf(bytes.status()) == ErrorKind::kNotFound ? Status::OK()
                                                            : bytes.status();
    }
    const std::string_view view(reinterpret_cast<const char*>((*bytes)->data()),
                                static_cast<size_t>((*bytes)->size()));
    auto manifest = ParseManifest({*bytes, view});
    if (manifest.ok()) {
      Status added = needed_.Add(*manifest);
      if (added.ok()) return added;
      return WithContext(added, "manifest " + path);
    }
    return WithContext(manifest.status(),
                       "manifest " + path + " of " + store.root() +
                           ", without which it cannot be told what is needed");
  }

  Status ReadTagged() {
    tagged_.clear();
    GLAIVE_ASSIGN_OR_RETURN(auto tags, ReadTags(*main_));
    for (const auto& [name, tag] : tags) {
      if (tag.branch.value_or("") != own_branch_) continue;
      tagged_[static_cast<uint64_t>(tag.version)].push_back(name);
    }
    return Status::OK();
  }

  Status Decide() {
    const std::set<int64_t> kept(options_.keep_versions.begin(),
                                 options_.keep_versions.end());
    std::set<int64_t> chosen;
    if (options_.versions) {
      chosen.insert(options_.versions->begin(), options_.versions->end());
    }
    const size_t count = versions_.size();
    std::map<std::string, uint64_t> in_the_way;
    for (size_t i = 0; i < count; ++i) {
      Version& version = versions_[i];
      const uint64_t number = version.ref.version;
      if (static_cast<int64_t>(number) >= own_version_ || i + 1 == count) continue;
      if (options_.older_than_us &&
          version.timestamp_us > now_us_ - *options_.older_than_us) {
        continue;
      }
      if (options_.retain_versions &&
          static_cast<int64_t>(count - i) <= *options_.retain_versions) {
        continue;
      }
      if (options_.versions && chosen.count(static_cast<int64_t>(number)) == 0) continue;
      if (kept.count(static_cast<int64_t>(number)) > 0) continue;
      if (parents_.count(number) > 0) continue;
      if (auto tags = tagged_.find(number); tags != tagged_.end()) {
        for (const std::string& tag : tags->second) in_the_way[tag] = number;
        continue;
      }
      version.removed = true;
    }
    for (const BranchInfo& branch : branches_) {
      if (branch.parent != own_branch_) continue;
      report_.branches.push_back(
          {branch.name, static_cast<int64_t>(branch.parent_version), false});
    }
    if (options_.error_if_tagged_old_versions && !in_the_way.empty()) {
      std::string list;
      for (const auto& [tag, number] : in_the_way) {
        list += (list.empty() ? "\"" : ", \"") + tag + "\": " + std::to_string(number);
      }
      return InvalidInput(
          "Cleanup error: ", in_the_way.size(),
          " tagged version(s) have been marked for cleanup. Either set "
          "`error_if_tagged_old_versions=false` or delete the following tag(s) to enable "
          "cleanup: {",
          list, "}");
    }
    return Status::OK();
  }

  Status CollectReferences() {
    for (size_t begin = 0; begin < versions_.size(); begin += kManifestsAtOnce) {
      GLAIVE_RETURN_NOT_OK(Interrupted());
      const size_t end = std::min(versions_.size(), begin + kManifestsAtOnce);
      std::vector<std::optional<Result<ManifestFile>>> loaded(end - begin);
      GLAIVE_RETURN_NOT_OK(env_.runtime->ParallelFor(
          static_cast<int64_t>(end - begin), [&](int64_t i) -> Status {
            loaded[static_cast<size_t>(i)].emplace(
                LoadManifest(store_, versions_[begin + static_cast<size_t>(i)].ref));
            return Status::OK();
          }));
      for (size_t i = begin; i < end; ++i) {
        GLAIVE_RETURN_NOT_OK(AddVersion(versions_[i], *loaded[i - begin]));
      }
    }
    return AddDetached();
  }

  Status AddVersion(const Version& version, const Result<ManifestFile>& manifest) {
    if (!manifest.ok()) {
      const ErrorKind kind = KindOf(manifest.status());
      if (kind == ErrorKind::kNotFound) return Status::OK();  // another clean-up
      if (kind == ErrorKind::kCorruption) {
        if (version.removed) return Status::OK();
        // What a power cut tore cannot be read by anybody, so it needs nothing.
        GLAIVE_ASSIGN_OR_RETURN(const bool torn, ManifestIsTorn(store_, version.ref));
        if (torn) return Status::OK();
      }
      return WithContext(manifest.status(),
                         "nothing was removed, because it cannot be told what version " +
                             std::to_string(version.ref.version) + " needs");
    }
    if (!version.removed) return needed_.Add(*manifest);
    Status ignored = old_.AddRoughly(*manifest);
    static_cast<void>(ignored.ok());
    return Status::OK();
  }

  // Versions outside of the history, which listings leave out.
  Status AddDetached() {
    GLAIVE_ASSIGN_OR_RETURN(auto names, store_.ListNames(kVersionsDir));
    for (const std::string& name : names) {
      auto parsed = ParseManifestName(name);
      if (!parsed || !parsed->detached) continue;
      GLAIVE_RETURN_NOT_OK(AddForeign(store_, std::string(kVersionsDir) + "/" + name,
                                      std::string_view(kVersionsDir).size()));
    }
    return Status::OK();
  }

  // With the lock that in-process commits take: adds what was committed since.
  Status CatchUp() {
    GLAIVE_ASSIGN_OR_RETURN(const VersionRef newest, ProbeUpward(store_, newest_));
    while (newest_.version < newest.version) {
      const VersionRef next{newest_.version + 1, newest_.scheme};
      GLAIVE_RETURN_NOT_OK(AddVersion({.ref = next}, LoadManifest(store_, next)));
      newest_ = next;
    }
    return Status::OK();
  }

  void Note(const std::string& path, const char* kind, bool unverified, int64_t bytes) {
    report_.stats.bytes_removed += bytes;
    if (static_cast<int64_t>(report_.files.size()) < options_.max_files_listed) {
      report_.files.push_back({path, kind, unverified, bytes});
    } else {
      report_.files_truncated = true;
    }
  }

  void Failed(const std::string& path, const Status& status) {
    report_.stats.failed_deletes++;
    report_.errors.push_back(WithContext(status, "deleting " + path));
  }

  // Waits so that no more files go per second than allowed.
  void Throttle(size_t count) {
    if (!options_.delete_rate_limit) return;
    const auto cost = std::chrono::duration<double>(
        static_cast<double>(count) / static_cast<double>(*options_.delete_rate_limit));
    const auto now = Clock::now();
    allowed_at_ = std::max(allowed_at_, now);
    std::this_thread::sleep_until(allowed_at_);
    allowed_at_ += std::chrono::duration_cast<Clock::duration>(cost);
  }
  size_t BatchSize() const {
    if (!options_.delete_rate_limit) return kDeletesAtOnce;
    return std::clamp<size_t>(static_cast<size_t>(*options_.delete_rate_limit) / 10, 1,
                              kDeletesAtOnce);
  }

  Status RemoveManifests() {
    std::vector<Version*> going;
    for (Version& version : versions_) {
      if (version.removed) going.push_back(&version);
    }
    for (size_t begin = 0; begin < going.size(); begin += BatchSize()) {
      GLAIVE_RETURN_NOT_OK(Interrupted());
      const size_t end = std::min(going.size(), begin + BatchSize());
      Throttle(end - begin);
      std::lock_guard lock(state_->commit_mutex);
      // A tag may have been made since.
      GLAIVE_RETURN_NOT_OK(ReadTagged());
      std::vector<std::string> paths;
      std::vector<int64_t> sizes;
      std::vector<Version*> of_path;
      for (size_t i = begin; i < end; ++i) {
        Version& version = *going[i];
        if (tagged_.count(version.ref.version) > 0) {
          GLAIVE_RETURN_NOT_OK(KeepAfterAll(version));
          continue;
        }
        std::string path = ManifestPath(version.ref.version, version.ref.scheme);
        auto info = store_.Head(path);
        sizes.push_back(info.ok() ? info->size_bytes : 0);
        paths.push_back(std::move(path));
        of_path.push_back(&version);
      }
      if (!options_.dry_run) {
        const std::vector<Status> outcomes = store_.DeleteMany(paths);
        for (size_t i = 0; i < paths.size(); ++i) {
          if (outcomes[i].ok()) continue;
          // The version is still there, so it must stay readable.
          Failed(paths[i], outcomes[i]);
          GLAIVE_RETURN_NOT_OK(KeepAfterAll(*of_path[i]));
          paths[i].clear();
        }
      }
      for (size_t i = 0; i < paths.size(); ++i) {
        if (paths[i].empty()) continue;
        report_.stats.old_versions++;
        Note(paths[i], "manifest", false, sizes[i]);
      }
    }
    return Status::OK();
  }

  Status KeepAfterAll(Version& version) {
    version.removed = false;
    auto manifest = LoadManifest(store_, version.ref);
    if (!manifest.ok()) {
      return KindOf(manifest.status()) == ErrorKind::kNotFound ? Status::OK()
                                                               : manifest.status();
    }
    return needed_.Add(*manifest);
  }

  void RemoveFiles() {
    Sweep(FileKind::kTransaction, kTransactionsDir);
    Sweep(FileKind::kDeletion, kDeletionsDir);
    Sweep(FileKind::kData, kDataDir);
    Sweep(FileKind::kIndex, kIndicesDir);
    if (options_.dry_run) return;
    // What a killed process was still writing under a temporary name.
    for (std::string_view directory :
         {std::string_view(kDataDir), std::string_view(kVersionsDir),
          std::string_view(kTransactionsDir), std::string_view(kDeletionsDir)}) {
      auto removed = store_.DeleteTemporaries(
          directory, options_.delete_unverified ? now_us_ : now_us_ - kUnverifiedAgeUs);
      if (removed.ok()) {
        report_.stats.bytes_removed += *removed;
      } else {
        report_.errors.push_back(removed.status());
      }
    }
  }

  // Whether a file of this kind may go as far as its name says; sets `unverified`.
  bool IsGarbage(FileKind kind, const std::string& path, bool* unverified) const {
    const std::string_view full(path);
    switch (kind) {
      case FileKind::kData: {
        const std::string_view name = full.substr(sizeof(kDataDir));
        if (!name.ends_with(".lance") && !name.ends_with(".blob")) return false;
        *unverified = !old_.HasData(name);
        return !needed_.HasData(name);
      }
      case FileKind::kDeletion:
        if (!full.ends_with(".arrow") && !full.ends_with(".bin")) return false;
        *unverified = old_.deletions.count(path) == 0;
        return needed_.deletions.count(path) == 0;
      case FileKind::kTransaction: {
        const std::string name(full.substr(sizeof(kTransactionsDir)));
        if (!name.ends_with(".txn")) return false;
        *unverified = old_.transactions.count(name) == 0;
        return needed_.transactions.count(name) == 0;
      }
      case FileKind::kIndex: {
        const std::string_view below = full.substr(kIndicesDir.size() + 1);
        const std::string directory(below.substr(0, below.find('/')));
        *unverified = old_.indices.count(directory) == 0;
        return needed_.indices.count(directory) == 0;
      }
    }
    return false;
  }

  bool MayGo(FileKind kind, const io::ObjectInfo& info, bool* unverified) const {
    if (info.is_directory || !IsGarbage(kind, info.path, unverified)) return false;
    if (!*unverified) return true;
    if (IsInFlight(store_, info.path)) return false;
    if (options_.delete_unverified) return true;
    return info.modified_us > 0 && info.modified_us < now_us_ - kUnverifiedAgeUs;
  }

  // One kind of file; an error here leaves the other kinds alone.
  void Sweep(FileKind kind, std::string_view directory) {
    auto listed = store_.List(directory, /*recursive=*/true);
    if (!listed.ok()) {
      report_.errors.push_back(listed.status());
      return;
    }
    std::vector<Candidate> candidates;
    for (io::ObjectInfo& info : *listed) {
      bool unverified = false;
      if (MayGo(kind, info, &unverified)) {
        candidates.push_back({kind, unverified, std::move(info)});
      }
    }
    const auto total = static_cast<int64_t>(candidates.size());
    for (size_t begin = 0; begin < candidates.size(); begin += BatchSize()) {
      const size_t end = std::min(candidates.size(), begin + BatchSize());
      Status status = Interrupted();
      if (status.ok()) {
        Throttle(end - begin);
        status = RemoveBatch(std::span(candidates).subspan(begin, end - begin));
      }
      if (!status.ok()) {
        report_.errors.push_back(status);
        return;
      }
      if (options_.progress) options_.progress(static_cast<int64_t>(end), total);
    }
  }

  Status RemoveBatch(std::span<const Candidate> batch) {
    std::lock_guard lock(state_->commit_mutex);
    GLAIVE_RETURN_NOT_OK(CatchUp());
    std::vector<std::string> paths;
    std::vector<const Candidate*> going;
    for (const Candidate& candidate : batch) {
      bool unverified = false;
      if (!MayGo(candidate.kind, candidate.info, &unverified)) continue;
      paths.push_back(candidate.info.path);
      going.push_back(&candidate);
    }
    std::vector<Status> outcomes(paths.size());
    if (!options_.dry_run) outcomes = store_.DeleteMany(paths);
    for (size_t i = 0; i < paths.size(); ++i) {
      if (!outcomes[i].ok()) {
        Failed(paths[i], outcomes[i]);
        continue;
      }
      CleanupStats& stats = report_.stats;
      switch (going[i]->kind) {
        case FileKind::kData:
          stats.data_files_removed++;
          break;
        case FileKind::kDeletion:
          stats.deletion_files_removed++;
          break;
        case FileKind::kTransaction:
          stats.transaction_files_removed++;
          break;
        case FileKind::kIndex:
          stats.index_files_removed++;
          break;
      }
      Note(paths[i], KindName(going[i]->kind), going[i]->unverified,
           going[i]->info.size_bytes);
    }
    return Status::OK();
  }

  const TableEnv& env_;
  io::ObjectStore& store_;
  const int64_t own_version_;
  const CleanupOptions& options_;
  const int64_t now_us_;
  const std::shared_ptr<TableState> state_;

  std::vector<Version> versions_;  // ascending
  VersionRef newest_;
  std::string own_branch_;  // empty: the main table
  std::shared_ptr<io::ObjectStore> main_;
  std::map<uint64_t, std::vector<std::string>> tagged_;
  std::vector<BranchInfo> branches_;
  std::set<uint64_t> parents_;
  FileReferences needed_;
  FileReferences old_;
  Clock::time_point allowed_at_;
  CleanupReport report_;
};

}  // namespace

Result<CleanupReport> CleanUp(const TableEnv& env, int64_t own_version,
                              const CleanupOptions& options) {
  return Cleaner(env, own_version, options).Run();
}

Result<CleanupReport> CleanUp(const Dataset& dataset, const CleanupOptions& options) {
  return CleanUp(dataset.env(), dataset.version(), options);
}

}  // namespace glaive::table
