// Rows of one fragment: reading them, their ids, and the filter over a range of them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <arrow/type_fwd.h>

#include "base/status.h"
#include "exec/plan.h"
#include "table/dataset.h"
#include "table/fragment_reader.h"

namespace glaive::exec {

// A fragment being read. Cheap to make; one per task.
struct FragmentRows {
  const table::Dataset* dataset = nullptr;
  int index = 0;
  int64_t id = 0;
  int64_t live_begin = 0;  // live rows in the fragments before
  std::shared_ptr<const table::FragmentReader> reader;
  const table::DeletionVector* deletions = nullptr;  // null: none

  static Result<FragmentRows> Open(const table::Dataset& dataset,
                                   const SnapshotState& state, int index);

  // All physical rows of the range; null when no columns are asked for.
  Result<std::shared_ptr<arrow::RecordBatch>> ReadRange(const BoundColumns& columns,
                                                        int64_t start,
                                                        int64_t count) const;
  Result<std::shared_ptr<arrow::RecordBatch>> Take(
      const BoundColumns& columns, std::span<const int64_t> offsets) const;

  // Meta columns of a physical range, or of chosen physical offsets.
  Result<MetaColumns> MetaOfRange(const MetaNeeds& needs, int64_t start,
                                  int64_t count) const;
  Result<MetaColumns> MetaOfRows(const MetaNeeds& needs,
                                 std::span<const int64_t> offsets) const;

  // Stable row ids by physical offset; empty: ids are addresses.
  Result<std::span<const uint64_t>> RowIds() const;
};

// The rows of [start, start + count) that are live and pass the filter.
struct RowMask {
  std::vector<uint64_t> words;  // bit i: row start + i; empty: all rows
  int64_t count = 0;            // set bits

  bool all() const { return words.empty(); }
  // Set rows among [start + begin, start + end).
  int64_t CountInRange(int64_t begin, int64_t end) const;
  // Physical offsets of the set rows.
  std::vector<int64_t> Offsets(int64_t start) const;
};

// `filter` may be null.
Result<RowMask> SelectRows(const FragmentRows& fragment, const FilterPlan* filter,
                           int64_t start, int64_t count);

// The output for the rows of a mask over [start, start + count).
Result<std::shared_ptr<arrow::RecordBatch>> ReadSelected(const FragmentRows& fragment,
                                                         const OutputPlan& output,
                                                         int64_t start, int64_t count,
                                                         const RowMask& mask);

// True when reading the set rows one by one is cheaper than reading the range.
bool IsSelective(const RowMask& mask, int64_t count);

}  // namespace glaive::exec
