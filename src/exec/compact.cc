#include "exec/compact.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>

#include "exec/compact_rewrite.h"
#include "format/table.pb.h"
#include "format/transaction.pb.h"
#include "io/object_store.h"
#include "runtime/cancel.h"
#include "runtime/runtime.h"
#include "table/names.h"

namespace glaive::exec {

using lance::table::DataFragment;

CompactionOptions::CompactionOptions() = default;
CompactionOptions::~CompactionOptions() = default;
CompactionOptions::CompactionOptions(const CompactionOptions&) = default;
CompactionOptions& CompactionOptions::operator=(const CompactionOptions&) = default;
CompactionTask::CompactionTask() = default;
CompactionTask::~CompactionTask() = default;
CompactionTask::CompactionTask(const CompactionTask&) = default;
CompactionTask::CompactionTask(CompactionTask&&) noexcept = default;
CompactionTask& CompactionTask::operator=(CompactionTask&&) noexcept = default;
RewriteResult::RewriteResult() = default;
RewriteResult::~RewriteResult() = default;
RewriteResult::RewriteResult(const RewriteResult&) = default;
RewriteResult::RewriteResult(RewriteResult&&) noexcept = default;
RewriteResult& RewriteResult::operator=(RewriteResult&&) noexcept = default;

void CompactionMetrics::Add(const CompactionMetrics& other) {
  fragments_removed += other.fragments_removed;
  fragments_added += other.fragments_added;
  files_removed += other.files_removed;
  files_added += other.files_added;
}

namespace {

constexpr int kMaxRounds = 10;

// Reserves `count` fragment ids, as upstream does, and returns the first.
Result<uint64_t> ReserveIds(const table::Dataset& dataset, uint32_t count) {
  lance::table::Transaction transaction;
  transaction.set_read_version(static_cast<uint64_t>(dataset.version()));
  transaction.mutable_reserve_fragments()->set_num_fragments(count);
  GLAIVE_ASSIGN_OR_RETURN(auto reserved, dataset.Commit(std::move(transaction)));
  const uint64_t last = reserved->manifest().max_fragment_id();
  if (last + 1 < count) {
    return Corruption("table ", dataset.env().store->root(), ": version ",
                      reserved->version(), " reserved ", count,
                      " fragment ids, but says that ", last, " is the largest");
  }
  return last + 1 - count;
}

// True when `dataset` has these fragments unchanged.
bool StillHolds(const table::Dataset& dataset,
                const std::vector<DataFragment>& fragments) {
  return std::all_of(fragments.begin(), fragments.end(), [&](const DataFragment& old) {
    const int index = dataset.FindFragment(static_cast<int64_t>(old.id()));
    return index >= 0 &&
           dataset.fragment(index).SerializeAsString() == old.SerializeAsString();
  });
}

// Runs tasks side by side; results by task, the row count handed on as one.
Result<std::vector<RewriteResult>> RunTasks(const table::Dataset& dataset,
                                            const CompactionPlan& plan,
                                            const CompactionHooks& hooks) {
  std::vector<RewriteResult> results(plan.tasks.size());
  std::vector<int64_t> rows(plan.tasks.size());
  std::mutex mutex;
  int64_t total = 0;
  auto run = [&](int64_t t) -> Status {
    const auto task = static_cast<size_t>(t);
    CompactionHooks own;
    own.cancel = hooks.cancel;
    if (hooks.progress) {
      own.progress = [&, task](int64_t done) {
        std::lock_guard lock(mutex);
        total += done - std::exchange(rows[task], done);
        hooks.progress(total);
      };
    }
    GLAIVE_ASSIGN_OR_RETURN(results[task],
                            ExecuteCompactionTask(dataset, plan.tasks[task], own));
    return Status::OK();
  };
  const auto count = static_cast<int64_t>(plan.tasks.size());
  Status status;
  if (plan.options.num_threads && *plan.options.num_threads == 1) {
    for (int64_t t = 0; t < count && status.ok(); ++t) status = run(t);
  } else {
    status = dataset.env().runtime->ParallelFor(count, run, hooks.cancel);
  }
  if (!status.ok()) {
    for (const RewriteResult& result : results) DiscardRewrite(dataset, result);
    return status;
  }
  return results;
}

}  // namespace

void DiscardRewrite(const table::Dataset& dataset, const RewriteResult& result) {
  for (const DataFragment& fragment : result.new_fragments) {
    for (const auto& file : fragment.files()) {
      Status ignored = dataset.env().store->Delete(table::DataFilePath(file.path()));
      static_cast<void>(ignored.ok());
    }
  }
}

Result<RewriteResult> ExecuteCompactionTask(const table::Dataset& dataset,
                                            const CompactionTask& task,
                                            const CompactionHooks& hooks) {
  std::shared_ptr<const table::Dataset> source;
  if (dataset.version() == task.read_version) {
    source = dataset.shared_from_this();
  } else {
    GLAIVE_ASSIGN_OR_RETURN(source, dataset.Checkout(task.read_version));
  }
  std::vector<int> indices;
  for (const DataFragment& fragment : task.fragments) {
    const int index = source->FindFragment(static_cast<int64_t>(fragment.id()));
    if (index < 0 || (!indices.empty() && index != indices.back() + 1)) {
      return InvalidInput("Invalid input, the compaction task names fragment ",
                          fragment.id(), ", which version ", task.read_version,
                          " of table ", dataset.env().store->root(),
                          " does not have, or not at that place");
    }
    indices.push_back(index);
  }
  return RewriteFragments(*source, indices, task.options, hooks);
}

Result<CompactionOutcome> CommitCompaction(const table::Dataset& dataset,
                                           const std::vector<RewriteResult>& results,
                                           table::CommitOutcome* outcome) {
  table::CommitOutcome unused;
  if (outcome == nullptr) outcome = &unused;
  *outcome = table::CommitOutcome::kNotCommitted;
  CompactionOutcome done;
  done.dataset = std::const_pointer_cast<table::Dataset>(dataset.shared_from_this());
  if (results.empty()) return done;
  // What happened since the oldest of the versions read is checked for all.
  int64_t read_version = results[0].read_version;
  uint64_t count = 0;
  for (const RewriteResult& result : results) {
    read_version = std::min(read_version, result.read_version);
    count += result.new_fragments.size();
    done.metrics.Add(result.metrics);
  }
  std::shared_ptr<const table::Dataset> base = dataset.shared_from_this();
  if (base->version() != read_version) {
    auto found = base->Checkout(read_version);
    if (!found.ok() && KindOf(found.status()) == ErrorKind::kNotFound) {
      return RetryableConflict("version ", read_version, " of table ",
                               dataset.env().store->root(),
                               ", which the compaction was made on, is gone. Please "
                               "plan it again.");
    }
    GLAIVE_ASSIGN_OR_RETURN(base, std::move(found));
  }
  uint64_t next_id = 0;
  if (count > 0) {
    if (count >= std::numeric_limits<uint32_t>::max()) {
      return InvalidInput("a compaction cannot make ", count, " fragments");
    }
    GLAIVE_ASSIGN_OR_RETURN(next_id, ReserveIds(*base, static_cast<uint32_t>(count)));
  }
  lance::table::Transaction transaction;
  transaction.set_read_version(static_cast<uint64_t>(base->version()));
  auto* rewrite = transaction.mutable_rewrite();
  for (const RewriteResult& result : results) {
    auto* group = rewrite->add_groups();
    for (const DataFragment& old : result.old_fragments) {
      *group->add_old_fragments() = old;
    }
    for (const DataFragment& fragment : result.new_fragments) {
      DataFragment* added = group->add_new_fragments();
      *added = fragment;
      added->set_id(next_id++);
    }
  }
  GLAIVE_ASSIGN_OR_RETURN(done.dataset,
                          base->Commit(std::move(transaction), 20, outcome));
  return done;
}

Result<CompactionOutcome> Compact(const table::Dataset::Ptr& dataset,
                                  const CompactionOptions& options,
                                  const CompactionHooks& hooks) {
  CompactionOutcome done;
  done.dataset = dataset;
  std::vector<RewriteResult> results;
  Status last;
  bool committed_any = false;
  for (int round = 0; round < kMaxRounds; ++round) {
    if (results.empty()) {
      GLAIVE_ASSIGN_OR_RETURN(const CompactionPlan plan,
                              PlanCompaction(*done.dataset, options));
      if (plan.tasks.empty()) return done;
      GLAIVE_ASSIGN_OR_RETURN(results, RunTasks(*done.dataset, plan, hooks));
    }
    table::CommitOutcome outcome;
    auto committed = CommitCompaction(*done.dataset, results, &outcome);
    if (committed.ok()) {
      done.metrics.Add(committed->metrics);
      done.dataset = std::move(committed->dataset);
      committed_any = true;
      // The first commit did all that was planned.
      if (last.ok()) return done;
      last = Status::OK();
      results.clear();
      continue;
    }
    last = committed.status();
    if (outcome != table::CommitOutcome::kNotCommitted) return last;
    const bool retry = KindOf(last) == ErrorKind::kRetryableConflict ||
                       KindOf(last) == ErrorKind::kTooManyRetries;
    auto latest = retry ? done.dataset->Latest() : Result<table::Dataset::Ptr>(last);
    if (!latest.ok()) {
      for (const RewriteResult& result : results) DiscardRewrite(*dataset, result);
      return last;
    }
    done.dataset = std::move(*latest);
    // Only what somebody else changed is done again.
    std::vector<RewriteResult> kept;
    for (RewriteResult& result : results) {
      if (!StillHolds(*done.dataset, result.old_fragments)) {
        DiscardRewrite(*dataset, result);
        continue;
      }
      result.read_version = done.dataset->version();
      kept.push_back(std::move(result));
    }
    results = std::move(kept);
  }
  for (const RewriteResult& result : results) DiscardRewrite(*dataset, result);
  // What an earlier round committed counts, and what is left is as good as not planned.
  if (last.ok() || committed_any) return done;
  return TooManyRetries("the compaction of table ", dataset->env().store->root(),
                        " met concurrent changes ", kMaxRounds,
                        " times in a row: ", last.message());
}

}  // namespace glaive::exec
