// Finds which rows of a table and of a merge's source have equal keys.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "exec/find_rows.h"
#include "exec/merge.h"
#include "exec/merge_source.h"
#include "table/dataset.h"

namespace glaive::exec {

// A row of the source and a row of the table.
struct Match {
  int64_t source = 0;
  int32_t fragment = 0;  // index in the snapshot
  uint32_t offset = 0;   // physical
};

struct Matches {
  // Pairs in the order of the source; only for kUpdate and kDelete.
  std::vector<Match> pairs;
  // By source row: bit set when the table has its key.
  std::vector<uint64_t> source_matched;
  // By source row: bit set for rows that repeat a key, with kFirstSeen; else empty.
  std::vector<uint64_t> source_repeated;
  int64_t num_repeated = 0;
  // Rows of the table to delete since the source lacks them.
  std::vector<FoundRows> not_in_source;

  static bool Get(const std::vector<uint64_t>& bits, int64_t row) {
    return !bits.empty() &&
           ((bits[static_cast<size_t>(row >> 6)] >> (row & 63)) & 1) != 0;
  }
};

// Scans the key columns of the table once per pass of the source, on all threads.
// InvalidInput names the key when two source rows would change one row of the table
// (unless a condition decides, see MergeOptions::update_condition), or on a match with
// kFail.
Result<Matches> FindMatches(const table::Dataset& dataset, const MergeSource& source,
                            const std::vector<std::string>& key_columns,
                            const KeyCodec& codec, const MergeOptions& options);

Status AmbiguousError(const MergeSource& source, int64_t row);

}  // namespace glaive::exec
