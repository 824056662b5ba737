#include "exec/scan.h"

#include <algorithm>
#include <deque>
#include <utility>

#include <arrow/record_batch.h>
#include <arrow/table.h>
#include <arrow/util/byte_size.h>

#include "exec/fragment_rows.h"
#include "exec/scanner.h"
#include "exec/selected_rows.h"
#include "runtime/cancel.h"
#include "runtime/runtime.h"
#include "table/deletion_vector.h"

namespace glaive::exec {
namespace {

Status CheckCaller(CancelToken* cancel) {
  return cancel == nullptr ? Status::OK() : cancel->CheckOnCaller();
}

// Runs tasks [begin, end) of `plan`; results by task.
Result<std::vector<BatchVector>> RunTasks(const Scanner& scanner, const MorselPlan& plan,
                                          size_t begin, size_t end) {
  std::vector<BatchVector> results(end - begin);
  Runtime& runtime = *scanner.dataset().env().runtime;
  GLAIVE_RETURN_NOT_OK(runtime.ParallelFor(
      static_cast<int64_t>(end - begin),
      [&](int64_t i) -> Status {
        const auto task = static_cast<size_t>(i);
        GLAIVE_ASSIGN_OR_RETURN(results[task],
                                scanner.RunTask(plan, plan.tasks[begin + task]));
        return Status::OK();
      },
      scanner.options().cancel));
  return results;
}

class ScanReader : public arrow::RecordBatchReader {
 public:
  explicit ScanReader(Scanner scanner)
      : scanner_(std::move(scanner)),
        window_(scanner_.has_filter() ? scanner_.options().offset : 0,
                scanner_.has_filter() ? scanner_.options().limit : std::nullopt) {}

  std::shared_ptr<arrow::Schema> schema() const override { return scanner_.schema(); }

  Status ReadNext(std::shared_ptr<arrow::RecordBatch>* batch) override {
    batch->reset();
    if (closed_) return Closed("the reader of this scan is closed");
    GLAIVE_RETURN_NOT_OK(CheckCaller(scanner_.options().cancel));
    if (!planned_) {
      GLAIVE_ASSIGN_OR_RETURN(plan_, scanner_.Cut(/*streaming=*/true));
      planned_ = true;
    }
    while (ready_.empty() && next_ < plan_.tasks.size() && !window_.done()) {
      GLAIVE_RETURN_NOT_OK(Fill());
    }
    if (ready_.empty()) return Status::OK();
    *batch = std::move(ready_.front());
    ready_.pop_front();
    return Status::OK();
  }

  Status Close() override {
    closed_ = true;
    ready_.clear();
    return Status::OK();
  }

 private:
  // The first step works on one task only: it may be all that is wanted.
  Status Fill() {
    const auto threads =
        static_cast<size_t>(scanner_.dataset().env().runtime->num_threads());
    const size_t end = std::min(plan_.tasks.size(), next_ + (next_ == 0 ? 1 : threads));
    GLAIVE_ASSIGN_OR_RETURN(auto results, RunTasks(scanner_, plan_, next_, end));
    next_ = end;
    for (BatchVector& task : results) {
      for (auto& whole : task) {
        BatchVector within;
        window_.Add(std::move(whole), &within);
        for (auto& kept : within) GLAIVE_RETURN_NOT_OK(Split(std::move(kept)));
      }
    }
    return Status::OK();
  }

  // Into batches within the bounds that were asked for.
  Status Split(std::shared_ptr<arrow::RecordBatch> batch) {
    const int64_t rows = batch->num_rows();
    int64_t most = scanner_.options().batch_rows;
    if (rows > 1) {
      GLAIVE_ASSIGN_OR_RETURN(const int64_t bytes,
                              arrow::util::ReferencedBufferSize(*batch));
      if (bytes > scanner_.options().batch_bytes) {
        const int64_t share = scanner_.options().batch_bytes / (bytes / rows + 1);
        most = std::clamp<int64_t>(share, 1, most);
      }
    }
    if (rows <= most) {
      ready_.push_back(std::move(batch));
      return Status::OK();
    }
    for (int64_t start = 0; start < rows; start += most) {
      ready_.push_back(batch->Slice(start, std::min(most, rows - start)));
    }
    return Status::OK();
  }

  Scanner scanner_;
  RowWindow window_;
  MorselPlan plan_;
  bool planned_ = false;
  bool closed_ = false;
  size_t next_ = 0;  // task
  std::deque<std::shared_ptr<arrow::RecordBatch>> ready_;
};

}  // namespace

Result<std::shared_ptr<arrow::RecordBatchReader>> Scan(
    std::shared_ptr<const table::Dataset> dataset, ScanOptions options) {
  GLAIVE_ASSIGN_OR_RETURN(Scanner scanner,
                          Scanner::Make(std::move(dataset), std::move(options)));
  return std::make_shared<ScanReader>(std::move(scanner));
}

Result<std::shared_ptr<arrow::Table>> ScanToTable(
    std::shared_ptr<const table::Dataset> dataset, ScanOptions options) {
  GLAIVE_ASSIGN_OR_RETURN(const Scanner scanner,
                          Scanner::Make(std::move(dataset), std::move(options)));
  CancelToken* cancel = scanner.options().cancel;
  GLAIVE_RETURN_NOT_OK(CheckCaller(cancel));
  GLAIVE_ASSIGN_OR_RETURN(const MorselPlan plan, scanner.Cut(/*streaming=*/false));
  BatchVector batches;
  const bool windowed =
      scanner.has_filter() && (scanner.options().limit || scanner.options().offset > 0);
  RowWindow window(windowed ? scanner.options().offset : 0,
                   windowed ? scanner.options().limit : std::nullopt);
  // A limit on filtered rows: step by step, until there are enough.
  const size_t step =
      windowed && scanner.options().limit
          ? static_cast<size_t>(scanner.dataset().env().runtime->num_threads())
          : std::max<size_t>(plan.tasks.size(), 1);
  for (size_t next = 0; next < plan.tasks.size() && !window.done(); next += step) {
    GLAIVE_RETURN_NOT_OK(CheckCaller(cancel));
    const size_t end = std::min(plan.tasks.size(), next + step);
    GLAIVE_ASSIGN_OR_RETURN(auto results, RunTasks(scanner, plan, next, end));
    for (BatchVector& task : results) {
      for (auto& batch : task) window.Add(std::move(batch), &batches);
    }
  }
  return arrow::Table::FromRecordBatches(scanner.schema(), batches);
}

Result<std::shared_ptr<arrow::Schema>> OutputSchema(const table::Dataset& dataset,
                                                    const Selection& select) {
  GLAIVE_ASSIGN_OR_RETURN(auto plan, SnapshotState::Of(dataset)->Output(dataset, select));
  return plan->schema;
}

Result<int64_t> CountRows(const table::Dataset& dataset, const std::string& filter,
                          CancelToken* cancel) {
  if (filter.empty()) return dataset.count_rows();
  GLAIVE_RETURN_NOT_OK(CheckCaller(cancel));
  const auto state = SnapshotState::Of(dataset);
  GLAIVE_ASSIGN_OR_RETURN(auto plan, state->Filter(dataset, filter));
  MorselOptions cut;
  Runtime& runtime = *dataset.env().runtime;
  constexpr int64_t kLeast = 8192;
  constexpr int64_t kMost = 65536;
  cut.max_rows = std::clamp<int64_t>(dataset.count_rows() / runtime.num_threads() + 1,
                                     kLeast, kMost);
  cut.task_rows = cut.max_rows;
  cut.max_bytes = cut.task_bytes = kMaxBatchBytes;
  GLAIVE_ASSIGN_OR_RETURN(const MorselPlan morsels,
                          CutMorsels(dataset, *plan->read, cut));
  std::vector<int64_t> counts(morsels.tasks.size());
  GLAIVE_RETURN_NOT_OK(runtime.ParallelFor(
      static_cast<int64_t>(morsels.tasks.size()),
      [&](int64_t t) -> Status {
        const auto task = static_cast<size_t>(t);
        return ForEachSelection(
            dataset, *state, plan.get(), morsels, morsels.tasks[task],
            [&](size_t, const FragmentRows&, const RowMask& mask) -> Status {
              counts[task] += mask.count;
              return Status::OK();
            });
      },
      cancel));
  int64_t total = 0;
  for (int64_t count : counts) total += count;
  return total;
}

}  // namespace glaive::exec
