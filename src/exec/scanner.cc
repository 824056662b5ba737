#include "exec/scanner.h"

#include <algorithm>
#include <utility>

#include <arrow/compute/initialize.h>
#include <arrow/record_batch.h>

#include "exec/fragment_rows.h"
#include "io/object_store.h"
#include "runtime/memory_reservation.h"
#include "table/deletion_vector.h"

namespace glaive::exec {
namespace {

// A filter reads few bytes per row: its morsels are longer than those of output.
constexpr int64_t kFilterRows = 65536;
constexpr int64_t kLeastFilterRows = 8192;
// No fragment has more rows.
constexpr int64_t kMaxExactRows = int64_t{1} << 32;

}  // namespace

Result<Scanner> Scanner::Make(std::shared_ptr<const table::Dataset> dataset,
                              ScanOptions options) {
  if (options.limit && *options.limit < 0) {
    return InvalidInput("limit must not be negative, it is ", *options.limit);
  }
  if (options.offset < 0)
    return InvalidInput("offset must not be negative, it is ", options.offset);
  if (options.batch_rows <= 0 || options.batch_bytes <= 0) {
    return InvalidInput("the batch size must be positive");
  }
  static const Status initialized = arrow::compute::Initialize();
  GLAIVE_RETURN_NOT_OK(initialized);
  Scanner scanner;
  scanner.dataset_ = std::move(dataset);
  scanner.options_ = std::move(options);
  scanner.state_ = SnapshotState::Of(*scanner.dataset_);
  GLAIVE_ASSIGN_OR_RETURN(
      scanner.output_,
      scanner.state_->Output(*scanner.dataset_, scanner.options_.select));
  if (!scanner.options_.filter.empty()) {
    GLAIVE_ASSIGN_OR_RETURN(
        scanner.filter_,
        scanner.state_->Filter(*scanner.dataset_, scanner.options_.filter));
  }
  if (!scanner.options_.fragment_ids.empty()) {
    scanner.fragments_.emplace();
    for (int64_t id : scanner.options_.fragment_ids) {
      const int index = scanner.dataset_->FindFragment(id);
      if (index < 0) return InvalidInput("the table has no fragment ", id);
      scanner.fragments_->push_back(index);
    }
  }
  return scanner;
}

Result<MorselPlan> Scanner::Cut(bool streaming) const {
  MorselOptions cut;
  cut.fragments = fragments_;
  const int64_t threads = std::max(1, dataset_->env().runtime->num_threads());
  if (filter_ != nullptr) {
    const int64_t share = dataset_->count_rows() / threads + 1;
    cut.max_rows = std::clamp(share, kLeastFilterRows, kFilterRows);
    cut.task_rows = cut.max_rows;
    cut.task_bytes = INT64_MAX;
    cut.max_bytes = kMaxBatchBytes;
    // With a limit the first rows may be all that is needed.
    if (options_.limit) {
      cut.max_rows = cut.task_rows =
          std::clamp<int64_t>(*options_.limit * 8, kLeastFilterRows, cut.max_rows);
    }
    if (streaming && options_.exact_batches) {
      const int64_t batches = std::max<int64_t>(1, cut.max_rows / options_.batch_rows);
      cut.exact = true;
      cut.max_rows = batches * std::min(options_.batch_rows, kMaxExactRows);
    }
    return CutMorsels(*dataset_, *filter_->read, cut);
  }
  cut.skip_rows = options_.offset;
  cut.take_rows = options_.limit;
  if (streaming) {
    cut.exact = options_.exact_batches;
    cut.max_rows = options_.batch_rows;
    cut.max_bytes = options_.batch_bytes;
  }
  return CutMorsels(*dataset_, *output_->read, cut);
}

Result<BatchVector> Scanner::RunTask(const MorselPlan& plan,
                                     const MorselTask& task) const {
  BatchVector batches;
  std::optional<FragmentRows> fragment;
  for (size_t m = task.begin; m < task.end; ++m) {
    const Morsel& morsel = plan.morsels[m];
    GLAIVE_ASSIGN_OR_RETURN(
        const auto working_memory,
        MemoryReservation::Make(dataset_->env().runtime->memory(), morsel.bytes, "scan",
                                dataset_->env().store->root()));
    if (!fragment || fragment->index != morsel.fragment) {
      GLAIVE_ASSIGN_OR_RETURN(fragment,
                              FragmentRows::Open(*dataset_, *state_, morsel.fragment));
    }
    GLAIVE_RETURN_NOT_OK(RunMorsel(*fragment, morsel, &batches));
  }
  return batches;
}

Status Scanner::RunMorsel(const FragmentRows& fragment, const Morsel& morsel,
                          BatchVector* out) const {
  GLAIVE_ASSIGN_OR_RETURN(const RowMask mask, SelectRows(fragment, filter_.get(),
                                                         morsel.start, morsel.count));
  if (mask.count == 0) return Status::OK();
  if (filter_ != nullptr && mask.count > 1) {
    // Morsels were cut by what the filter reads; rows of the output may be far larger.
    GLAIVE_ASSIGN_OR_RETURN(const bool too_much, PassesOneBatch(fragment, mask.count));
    if (too_much) {
      const int64_t half = morsel.count / 2;
      for (const Morsel& part :
           {Morsel{morsel.fragment, morsel.start, half, morsel.bytes / 2},
            Morsel{morsel.fragment, morsel.start + half, morsel.count - half,
                   morsel.bytes / 2}}) {
        GLAIVE_RETURN_NOT_OK(RunMorsel(fragment, part, out));
      }
      return Status::OK();
    }
  }
  GLAIVE_ASSIGN_OR_RETURN(
      auto batch, ReadSelected(fragment, *output_, morsel.start, morsel.count, mask));
  if (options_.exact_batches && filter_ != nullptr) {
    AppendPieces(fragment, morsel, mask, *batch, out);
  } else {
    out->push_back(std::move(batch));
  }
  return Status::OK();
}

Result<bool> Scanner::PassesOneBatch(const FragmentRows& fragment, int64_t rows) const {
  if (output_->read->empty() ||
      SmallFiles(dataset_->fragment(fragment.index), kMaxBatchBytes)) {
    return false;
  }
  GLAIVE_ASSIGN_OR_RETURN(
      auto projection, output_->read->Bind(*dataset_, fragment.index, *fragment.reader));
  const int64_t row_bytes =
      std::max<int64_t>(1, fragment.reader->EstimateRowBytes(*projection));
  return rows > kMaxBatchBytes / row_bytes;
}

void Scanner::AppendPieces(const FragmentRows& fragment, const Morsel& morsel,
                           const RowMask& mask, const arrow::RecordBatch& batch,
                           BatchVector* out) const {
  const int64_t physical = fragment.reader->physical_rows();
  const int64_t end = morsel.start + morsel.count;
  const table::DeletionVector* deletions = fragment.deletions;
  int64_t live = deletions == nullptr
                     ? morsel.start
                     : morsel.start - deletions->CountInRange(0, morsel.start);
  int64_t row = 0;  // of the batch
  for (int64_t start = morsel.start; start < end && row < batch.num_rows();) {
    live += std::min(options_.batch_rows, physical);
    const int64_t stop = std::min(
        end, deletions == nullptr ? live : deletions->SelectLive(live, physical));
    const int64_t rows = mask.CountInRange(start - morsel.start, stop - morsel.start);
    if (rows > 0) out->push_back(batch.Slice(row, rows));
    row += rows;
    start = stop;
  }
}

void RowWindow::Add(std::shared_ptr<arrow::RecordBatch> batch, BatchVector* out) {
  const int64_t rows = batch->num_rows();
  const int64_t skipped = std::min(skip_, rows);
  skip_ -= skipped;
  const int64_t taken = std::min(left_, rows - skipped);
  if (taken <= 0) return;
  left_ -= taken;
  out->push_back(taken == rows ? std::move(batch) : batch->Slice(skipped, taken));
}

}  // namespace glaive::exec
