// A set of columns, resolved against the fragments of one snapshot as they are met.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "base/status.h"
#include "file/schema.h"
#include "runtime/fork.h"
#include "table/dataset.h"
#include "table/fragment_reader.h"

namespace glaive::exec {

// Thread-safe. Fragments with the same layout of data files share one projection. Blobs
// of the second kind are read as descriptors.
class BoundColumns {
 public:
  BoundColumns(file::Schema schema, int num_fragments);

  const file::Schema& schema() const { return schema_; }
  // The columns as writers are given them.
  const file::Schema& written() const { return written_; }
  bool empty() const { return schema_.fields().empty(); }
  const std::shared_ptr<arrow::Schema>& arrow_schema() const { return arrow_schema_; }

  using ProjectionPtr = std::shared_ptr<const table::FragmentProjection>;
  Result<ProjectionPtr> Bind(const table::Dataset& dataset, int fragment,
                             const table::FragmentReader& reader) const;

 private:
  file::Schema written_;
  file::Schema schema_;
  std::shared_ptr<arrow::Schema> arrow_schema_;
  mutable ForkSafeMutex mutex_;
  mutable std::vector<ProjectionPtr> slots_;  // by fragment; guarded by mutex_
  mutable int last_bound_ = -1;               // guarded by mutex_
};

}  // namespace glaive::exec
