// Removes old versions of a table, and the files that no version needs any more.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "table/dataset.h"

namespace glaive::table {

// Two policies together: a version is removed only when both allow it.
struct CleanupOptions {
  // Versions committed this long ago, or earlier, may go. Unset: any age.
  std::optional<int64_t> older_than_us = {};
  std::optional<int64_t> retain_versions = {};        // so many newest ones stay
  std::optional<std::vector<int64_t>> versions = {};  // none but these may go
  // Versions that stay in any case, such as those that are being read.
  std::vector<int64_t> keep_versions = {};
  // Files that no version ever named, unless a writer is at work, stay for 7 days,
  // because they look the same as those of a write in progress. True: they go at once.
  bool delete_unverified = false;
  bool error_if_tagged_old_versions = true;       // false: tagged versions stay silently
  std::optional<int64_t> delete_rate_limit = {};  // files per second
  bool dry_run = false;                           // says what would go
  int64_t max_files_listed = 0;                   // in the report
  // Files looked at so far; called on the calling thread.
  std::function<void(int64_t done, int64_t total)> progress = {};
  CancelToken* cancel = nullptr;
};

struct CleanupStats {
  int64_t bytes_removed = 0;  // of manifests as well
  int64_t old_versions = 0;
  int64_t data_files_removed = 0;
  int64_t transaction_files_removed = 0;
  int64_t index_files_removed = 0;
  int64_t deletion_files_removed = 0;
  int64_t failed_deletes = 0;
};

struct CleanupFile {
  std::string path;
  std::string kind;  // "manifest", "data", "deletion", "transaction", "index"
  bool unverified = false;
  int64_t size_bytes = 0;
};

// A branch that was made from the table being cleaned.
struct CleanupBranch {
  std::string name;
  int64_t referenced_version = 0;
  bool cleanup_candidate = false;  // only the branch keeps that version
};

struct CleanupReport {
  int64_t read_version = 0;
  CleanupStats stats;
  std::vector<CleanupFile> files;
  bool files_truncated = false;
  std::vector<CleanupBranch> branches;
  // What went wrong without stopping the rest; each failed file is in failed_deletes.
  std::vector<Status> errors;
};

// Never removed: the newest version, `dataset`'s own and all after it, tagged versions,
// versions that branches were made from, and whatever files these or the branches need.
// Nothing is removed when it cannot be told what a version that stays needs
// (Corruption), or when tagged versions are in the way (InvalidInput). Manifests go
// first, so that each version that is listed at any time can be read.
Result<CleanupReport> CleanUp(const Dataset& dataset, const CleanupOptions& options);
// The same; `own_version` and all after it stay.
Result<CleanupReport> CleanUp(const TableEnv& env, int64_t own_version,
                              const CleanupOptions& options);

// True when a commit of `version` should be followed by a clean-up, which `config` asks
// for with `lance.auto_cleanup.interval`, and its options. An interval alone says
// nothing about which versions may go, so it removes none. InvalidInput names a setting
// that does not parse.
Result<std::optional<CleanupOptions>> AutoCleanup(
    const std::map<std::string, std::string>& config, int64_t version);
// Does what the settings of a version just committed ask for. Errors have no effect: the
// commit stands, and the next one tries again.
void CleanUpAfterCommit(const TableEnv& env, const lance::table::Manifest& committed);
// "14days", "2h 30m", "90s", "1500ms"; microseconds.
Result<int64_t> ParseDuration(std::string_view text);

}  // namespace glaive::table
