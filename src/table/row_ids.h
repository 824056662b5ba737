// Sequences of stable row ids and of row versions, as fragments store them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace glaive::table {

// `count` consecutive ids from `first_id`.
struct RowIdRun {
  uint64_t first_id = 0;
  uint64_t count = 0;
};

// The ids of a serialized RowIdSequence in order, neighbours merged. Corruption when it
// does not decode or does not hold exactly `expected_rows` ids.
Result<std::vector<RowIdRun>> DecodeRowIdRuns(std::string_view serialized,
                                              int64_t expected_rows);
// The same where only the first rows may have ids so far: at most `max_rows` ids.
Result<std::vector<RowIdRun>> DecodeFirstRowIdRuns(std::string_view serialized,
                                                   int64_t max_rows);
// The k-th value is the id of physical offset k.
Result<std::vector<uint64_t>> DecodeRowIds(std::string_view serialized,
                                           int64_t expected_rows);

// Chooses the segment kind by size, as upstream does.
std::string EncodeRowIds(std::span<const uint64_t> ids);
// Ids [start, end).
std::string EncodeRowIdRange(uint64_t start, uint64_t end);

// Versions in physical order.
struct RowVersionRun {
  int64_t count = 0;
  uint64_t version = 0;
};
Result<std::vector<RowVersionRun>> DecodeRowVersions(std::string_view serialized,
                                                     int64_t expected_rows);
// One run over all rows.
std::string EncodeRowVersions(int64_t rows, uint64_t version);
std::string EncodeRowVersionRuns(std::span<const RowVersionRun> runs);

}  // namespace glaive::table
