// A prepared scan: morsels, and the output batches of each.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <arrow/type_fwd.h>

#include "base/status.h"
#include "exec/morsel.h"
#include "exec/plan.h"
#include "exec/scan.h"

namespace glaive::exec {

struct FragmentRows;
struct RowMask;

using BatchVector = std::vector<std::shared_ptr<arrow::RecordBatch>>;

// Checks of options and plans; everything but reading.
class Scanner {
 public:
  static Result<Scanner> Make(std::shared_ptr<const table::Dataset> dataset,
                              ScanOptions options);

  const std::shared_ptr<arrow::Schema>& schema() const { return output_->schema; }
  const table::Dataset& dataset() const { return *dataset_; }
  const ScanOptions& options() const { return options_; }
  bool has_filter() const { return filter_ != nullptr; }

  // `streaming`: morsels small enough for one batch each.
  Result<MorselPlan> Cut(bool streaming) const;
  Result<BatchVector> RunTask(const MorselPlan& plan, const MorselTask& task) const;

 private:
  Scanner() = default;
  // Appends the rows of a morsel that pass the filter.
  Status RunMorsel(const FragmentRows& fragment, const Morsel& morsel,
                   BatchVector* out) const;
  // Whether so many rows of the output are more than a batch should hold.
  Result<bool> PassesOneBatch(const FragmentRows& fragment, int64_t rows) const;
  // Cuts the rows of a morsel, `batch`, as exact_batches asks for.
  void AppendPieces(const FragmentRows& fragment, const Morsel& morsel,
                    const RowMask& mask, const arrow::RecordBatch& batch,
                    BatchVector* out) const;

  std::shared_ptr<const table::Dataset> dataset_;
  ScanOptions options_;
  std::shared_ptr<const SnapshotState> state_;
  std::shared_ptr<const OutputPlan> output_;
  std::shared_ptr<const FilterPlan> filter_;
  std::optional<std::vector<int>> fragments_;
};

// Skips and takes rows of a stream of batches: the offset and limit of a filtered scan.
class RowWindow {
 public:
  RowWindow(int64_t offset, std::optional<int64_t> limit)
      : skip_(offset), left_(limit.value_or(INT64_MAX)) {}
  bool done() const { return left_ <= 0; }
  // Appends what lies within the window.
  void Add(std::shared_ptr<arrow::RecordBatch> batch, BatchVector* out);

 private:
  int64_t skip_;
  int64_t left_;
};

}  // namespace glaive::exec
