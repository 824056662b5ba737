// Cuts a scan into pieces of work: ranges of rows of one fragment, grouped into tasks.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/status.h"
#include "exec/bound_columns.h"
#include "table/dataset.h"

namespace glaive::exec {

struct Morsel {
  int fragment = 0;  // index in the snapshot
  int64_t start = 0;
  int64_t count = 0;
  int64_t bytes = 0;  // estimate of what reading the widest columns takes
};

// Morsels of one task, which one thread works through in order.
struct MorselTask {
  size_t begin = 0;
  size_t end = 0;
};

struct MorselPlan {
  std::vector<Morsel> morsels;
  std::vector<MorselTask> tasks;
};

struct MorselOptions {
  // Bounds of one morsel. Cuts lie on page boundaries of the widest column, so that a
  // range of zero-copy pages is a view, unless a page is larger than the bounds.
  int64_t max_rows = int64_t{1} << 20;
  int64_t max_bytes = int64_t{16} << 20;
  // A task takes morsels until it has this much.
  int64_t task_rows = 65536;
  int64_t task_bytes = int64_t{1} << 20;
  // Whole fragments only, in this order; unset: all.
  std::optional<std::vector<int>> fragments;
  // Live rows to skip and to take, in fragment order. Exact: for scans without a filter.
  // `max_rows` live rows each, wherever pages end, unless that passes max_bytes.
  bool exact = false;
  int64_t skip_rows = 0;
  std::optional<int64_t> take_rows;
};

// What one batch holds at most: a column of text has 32-bit offsets.
inline constexpr int64_t kMaxBatchBytes = int64_t{256} << 20;

// Whether the manifest says that the data files have at most so many bytes together.
// False when it says nothing.
bool SmallFiles(const lance::table::DataFragment& fragment, int64_t most);

// `widest`: the columns whose pages decide where to cut.
Result<MorselPlan> CutMorsels(const table::Dataset& dataset, const BoundColumns& widest,
                              const MorselOptions& options);

}  // namespace glaive::exec
