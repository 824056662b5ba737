// The rows of generations as one stream, shaped for the merge that brings them into the
// base table.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <arrow/type_fwd.h>

#include "base/status.h"
#include "memwal/names.h"
#include "table/dataset.h"

namespace glaive {
class CancelToken;
}

namespace glaive::memwal {

struct CompactSourceOptions {
  // Top-level columns of the base's primary key; empty: no row replaces another.
  std::vector<std::string> key_names;
  // Above this, keys of newer generations are not kept to leave out the rows that they
  // replace before these are read; the merge has to find them then.
  int64_t key_memory_bytes = 0;
  CancelToken* cancel = nullptr;
};

struct CompactSource {
  // The columns of the base, in its order, and `_tombstone` (where the base has a key);
  // columns are found by field id, those that a generation lacks are null. Opens one
  // generation at a time. The base and all options must outlive it.
  std::shared_ptr<arrow::RecordBatchReader> reader;
  // True: each key comes once, older generations first. False: newest generations first,
  // so that of rows with equal keys the first one counts.
  bool unique = false;
  // Rows that were left out since a newer generation replaces them.
  int64_t superseded = 0;
};

// `directories`: of the generations, oldest first, relative to the table. NotFound when
// one is gone, Corruption when it does not fit the base, NotSupported for blobs.
Result<CompactSource> ReadGenerations(const table::Dataset::Ptr& base,
                                      const std::vector<std::string>& directories,
                                      const CompactSourceOptions& options);

}  // namespace glaive::memwal
