// Writes the rows that a merge updates and inserts.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "exec/merge.h"
#include "exec/merge_condition.h"
#include "exec/merge_match.h"
#include "exec/merge_source.h"
#include "table/dataset.h"
#include "table/fragment_writer.h"

namespace glaive::exec {

// Owns the files until Keep: without it the destructor removes them.
class MergeWriter {
 public:
  // `condition` is null without one. All must outlive the writer.
  MergeWriter(const table::Dataset& dataset, const MergeSource& source,
              const MergeOptions& options, const UpdateCondition* condition);
  ~MergeWriter();

  // Writes all rows and fills in what is deleted and added, and `inserted_keys`.
  Status Run(const Matches& matches, const KeyCodec& codec, table::RowUpdate* update,
             MergeResult* result);
  void Keep();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace glaive::exec
