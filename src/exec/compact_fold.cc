#include "exec/compact_fold.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "exec/compact_plan.h"
#include "exec/compact_rewrite.h"
#include "format/table.pb.h"
#include "format/transaction.pb.h"
#include "table/data_file.h"
#include "table/writer_turn.h"

namespace glaive::exec {
namespace {

bool HasBlobDescriptors(const std::vector<file::Field>& fields) {
  return std::any_of(fields.begin(), fields.end(), [](const file::Field& field) {
    return field.is_blob_v2() || HasBlobDescriptors(field.children);
  });
}

}  // namespace

Result<int> PlanFold(const table::Dataset& dataset, const FoldOptions& options) {
  const int count = dataset.num_fragments();
  if (count < options.min_fragments) return -1;
  // Such files cannot be written yet.
  if (HasBlobDescriptors(dataset.schema().fields())) return -1;
  GLAIVE_ASSIGN_OR_RETURN(const auto coverage, IndexCoverage(dataset));
  int64_t rows = 0, bytes = 0;
  int begin = count;      // by the rule
  int run_begin = count;  // all small ones at the end
  bool by_rule = true;
  for (int i = count - 1; i >= 0; --i) {
    const int64_t live = dataset.live_rows(i);
    const bool mostly_deleted = live <= dataset.physical_rows(i) / 2;
    if (!coverage[static_cast<size_t>(i)].empty()) break;
    const int64_t size = table::DataFileBytes(dataset.fragment(i));
    if (!mostly_deleted &&
        (dataset.physical_rows(i) >= options.max_rows || size >= options.max_bytes)) {
      break;
    }
    if (rows > 0 && (rows + live > options.max_rows || bytes + size > options.max_bytes))
      break;
    by_rule = by_rule && (rows == 0 || live <= rows || mostly_deleted);
    rows += live;
    bytes += size;
    run_begin = i;
    if (by_rule) begin = i;
  }
  if (count - begin >= options.min_fragments) return begin;
  // Sizes that shrink towards the end would keep the rule from ever being met.
  if (count - run_begin >= options.min_fragments * 3 / 2) return run_begin;
  return -1;
}

Result<CompactionOutcome> Fold(const table::Dataset& dataset, const FoldOptions& options,
                               CancelToken* cancel) {
  CompactionOutcome done;
  GLAIVE_ASSIGN_OR_RETURN(done.dataset, dataset.Latest());
  GLAIVE_ASSIGN_OR_RETURN(const int planned, PlanFold(*done.dataset, options));
  if (planned < 0) return done;
  const int64_t first_id = done.dataset->fragment_id(planned);
  // The place at the end is taken now: what is appended from here on comes after it.
  lance::table::Transaction reserve;
  reserve.set_read_version(static_cast<uint64_t>(done.dataset->version()));
  reserve.mutable_reserve_fragments()->set_num_fragments(1);
  GLAIVE_ASSIGN_OR_RETURN(auto base, done.dataset->Commit(std::move(reserve)));
  done.dataset = base;
  const uint64_t id = base->manifest().max_fragment_id();
  const int begin = base->FindFragment(first_id);
  if (begin < 0) {
    return RetryableConflict("the fragments to fold were rewritten by somebody else");
  }
  std::vector<int> fragments(static_cast<size_t>(base->num_fragments() - begin));
  std::iota(fragments.begin(), fragments.end(), begin);
  CompactionOptions compaction;
  // All into one.
  compaction.target_rows_per_fragment = INT64_MAX;
  CompactionHooks hooks;
  hooks.cancel = cancel;
  GLAIVE_ASSIGN_OR_RETURN(RewriteResult result,
                          RewriteFragments(*base, fragments, compaction, hooks));
  table::CommitOutcome outcome = table::CommitOutcome::kNotCommitted;
  auto commit = [&]() -> Status {
    if (result.new_fragments.size() > 1) {
      return InternalError("a fold made ", result.new_fragments.size(), " fragments");
    }
    lance::table::Transaction transaction;
    transaction.set_read_version(static_cast<uint64_t>(base->version()));
    auto* group = transaction.mutable_rewrite()->add_groups();
    for (const auto& old : result.old_fragments) *group->add_old_fragments() = old;
    for (auto& fragment : result.new_fragments) {
      fragment.set_id(id);
      *group->add_new_fragments() = fragment;
    }
    // A writer that lost a race and runs alone now must not lose another one to us.
    GLAIVE_ASSIGN_OR_RETURN(const auto turn,
                            base->TakeTurn(table::TurnKind::kAmongOthers, cancel));
    GLAIVE_ASSIGN_OR_RETURN(done.dataset,
                            base->Commit(std::move(transaction), 20, &outcome));
    return Status::OK();
  };
  const Status status = commit();
  if (!status.ok()) {
    if (outcome == table::CommitOutcome::kNotCommitted) DiscardRewrite(*base, result);
    return status;
  }
  done.metrics = result.metrics;
  return done;
}

}  // namespace glaive::exec
