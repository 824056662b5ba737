// The rows that a predicate selects, as places; what deletes and updates start with.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "table/dataset.h"

namespace glaive {
class CancelToken;
}

namespace glaive::exec {

// Live rows of one range of a fragment.
struct FoundRows {
  int fragment = 0;  // index in the snapshot
  int64_t start = 0;
  int64_t count = 0;              // physical rows of the range
  std::vector<uint32_t> offsets;  // physical, ascending, within the range
};

// `predicate` empty: all rows. In the order of the table; ranges without rows left out.
Result<std::vector<FoundRows>> FindRows(const table::Dataset& dataset,
                                        const std::string& predicate,
                                        CancelToken* cancel);

table::DeletedRows ToDeletedRows(const table::Dataset& dataset,
                                 const std::vector<FoundRows>& found);

}  // namespace glaive::exec
