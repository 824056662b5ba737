// Compaction: folds neighbouring small fragments into larger ones and takes deleted rows
// and dropped columns out of the files. Rows keep their order within a fold.
//
// Three steps, which may run in different processes: a plan of tasks, each task's work
// (new files, which no version names yet), and one commit for any number of results.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "file/version.h"
#include "table/dataset.h"

namespace glaive {
class CancelToken;
}

namespace glaive::exec {

enum class CompactionMode : uint8_t { kReencode, kTryBinaryCopy, kForceBinaryCopy };

// Names and defaults are upstream's.
struct CompactionOptions {
  CompactionOptions();
  ~CompactionOptions();
  CompactionOptions(const CompactionOptions&);
  CompactionOptions& operator=(const CompactionOptions&);

  int64_t target_rows_per_fragment = 1048576;
  int64_t max_rows_per_group = 1024;  // of the legacy file format: no effect
  std::optional<int64_t> max_bytes_per_file;
  bool materialize_deletions = true;
  // Share of deleted rows above which a fragment is rewritten by itself.
  double materialize_deletions_threshold = 0.1;
  std::optional<int64_t> num_threads;  // 1: tasks run one after the other
  std::optional<int64_t> batch_size;   // rows read at a time
  std::optional<int64_t> io_buffer_size;
  bool defer_index_remap = false;
  CompactionMode mode = CompactionMode::kReencode;
  int64_t binary_copy_read_batch_bytes = int64_t{16} << 20;
  std::optional<int64_t> max_source_fragments;
  std::optional<int64_t> max_source_rows;
  std::optional<int64_t> max_source_bytes;
  std::vector<uint64_t> excluded_fragment_ids;
  std::optional<file::FileVersion> data_storage_version;  // unset: the table's
};

// `json`: an object of the names above; those that are absent or null come from the
// table's settings `lance.compaction.*`, then from the defaults. InvalidInput on a name
// or value that makes no sense. `strict`: unknown names are errors.
Result<CompactionOptions> ParseCompactionOptions(
    std::string_view json, const std::map<std::string, std::string>& config,
    bool strict = true);
std::map<std::string, std::string> ConfigOf(const table::Dataset& dataset);

struct CompactionMetrics {
  int64_t fragments_removed = 0;
  int64_t fragments_added = 0;
  int64_t files_removed = 0;  // data and deletion files
  int64_t files_added = 0;

  void Add(const CompactionMetrics& other);
};

struct CompactionTask {
  int64_t read_version = 0;
  std::vector<lance::table::DataFragment> fragments;  // neighbours, in id order
  CompactionOptions options;

  CompactionTask();
  ~CompactionTask();
  CompactionTask(const CompactionTask&);
  CompactionTask(CompactionTask&&) noexcept;
  CompactionTask& operator=(CompactionTask&&) noexcept;
};

struct CompactionPlan {
  int64_t read_version = 0;
  std::vector<CompactionTask> tasks;
  CompactionOptions options;
};

struct RewriteResult {
  RewriteResult();
  ~RewriteResult();
  RewriteResult(const RewriteResult&);
  RewriteResult(RewriteResult&&) noexcept;
  RewriteResult& operator=(RewriteResult&&) noexcept;

  int64_t read_version = 0;
  CompactionMetrics metrics;
  std::vector<lance::table::DataFragment> old_fragments;
  std::vector<lance::table::DataFragment> new_fragments;  // without ids
  // Tells clean-ups of this process that the new files are no left-overs.
  std::shared_ptr<const void> in_flight;
};

// Fragments that an index covers stay as they are: this build cannot rewrite indices.
Result<CompactionPlan> PlanCompaction(const table::Dataset& dataset,
                                      const CompactionOptions& options);

struct CompactionHooks {
  // Rows rewritten so far, over all tasks; called on the thread that works.
  std::function<void(int64_t rows)> progress;
  CancelToken* cancel = nullptr;
};

// Reads `task.read_version`, whichever version `dataset` is. Streams: memory is bounded
// by a few batches and a page per column. The files are deleted again on failure.
Result<RewriteResult> ExecuteCompactionTask(const table::Dataset& dataset,
                                            const CompactionTask& task,
                                            const CompactionHooks& hooks = {});

struct CompactionOutcome {
  CompactionMetrics metrics;
  table::Dataset::Ptr dataset;  // the version committed, or what was given
};

// One version that reserves fragment ids and one that replaces the fragments; none when
// there are no results. RetryableConflict when rows of a rewritten fragment changed in
// the meantime: the files of the results are then left for clean-up.
Result<CompactionOutcome> CommitCompaction(const table::Dataset& dataset,
                                           const std::vector<RewriteResult>& results,
                                           table::CommitOutcome* outcome = nullptr);

// All three. What a concurrent change of rows makes useless is planned and done again.
Result<CompactionOutcome> Compact(const table::Dataset::Ptr& dataset,
                                  const CompactionOptions& options,
                                  const CompactionHooks& hooks = {});

// Deletes the new files of results that were not committed, errors ignored.
void DiscardRewrite(const table::Dataset& dataset, const RewriteResult& result);

// The layout of upstream's JSON, so that tasks can be sent around. The inverse functions
// take untrusted text: InvalidInput.
std::string ToJson(const CompactionTask& task);
std::string ToJson(const CompactionPlan& plan);
std::string ToJson(const RewriteResult& result);
Result<CompactionTask> TaskFromJson(std::string_view json);
Result<CompactionPlan> PlanFromJson(std::string_view json);
Result<RewriteResult> ResultFromJson(std::string_view json);

}  // namespace glaive::exec
