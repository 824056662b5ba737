// Levels of a whole page kept in memory, for pages that store them apart from the values.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "encoding/levels_read.h"
#include "encoding/value_sink.h"

namespace glaive::file {

// Immutable once built.
class StoredLevels {
 public:
  // Either sink may be empty: no such levels then. Corruption unless they make `num_rows`
  // rows.
  static Result<StoredLevels> Make(const encoding::LevelRules& rules,
                                   encoding::ByteSink rep, encoding::ByteSink def,
                                   bool has_rep, bool has_def, int64_t num_rows);
  // Appends the levels of some rows; returns how many of their entries own a value.
  Result<int64_t> Append(const encoding::LevelRules& rules,
                         std::span<const encoding::ValueRange> rows,
                         encoding::LevelBatch* out) const;
  int64_t memory_bytes() const;

 private:
  bool has_rep_ = false;
  bool has_def_ = false;
  encoding::ByteSink rep_;
  encoding::ByteSink def_;
  std::vector<int64_t>
      row_start_;  // with repetition levels: entry of each row, then the end
};

}  // namespace glaive::file
