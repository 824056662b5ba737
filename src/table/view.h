// Datasets that show the files of another one with rows hidden and with other columns, or
// rows that are in memory. Everything that reads a Dataset works on them unchanged.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include <arrow/type_fwd.h>

#include "base/status.h"
#include "file/schema.h"
#include "table/dataset.h"

namespace glaive::table {

struct ViewOptions {
  // Whose columns the view has, matched with those of the files by field id; what the
  // files lack is null. Null: those of the dataset itself.
  std::shared_ptr<const Dataset> columns_of;
  // Ids that the files use for something else than `columns_of` does: never matched.
  std::vector<int32_t> foreign_fields;
  // Physical offsets to hide beside those that are deleted, by index of the fragment.
  std::map<int, std::shared_ptr<const DeletionVector>> hidden;
  // `_rowid`, `_rowaddr` and the other meta columns of rows are null.
  bool anonymous_rows = false;
};

// Shares everything with `dataset` that is not changed. Reads the deletion files of
// fragments with hidden rows, nothing else. Views cannot be committed to.
Result<Dataset::Ptr> ViewOf(const Dataset& dataset, const ViewOptions& options);

// Rows in memory as a dataset of one fragment, with the columns of `like` (matched by
// field id; missing ones are null). `stored`: the fields of the batches' columns, with
// ids; only the first `num_columns` are shown. `hidden` may be null. The rows are
// anonymous.
Result<Dataset::Ptr> ViewOfBatches(
    const Dataset& like, std::shared_ptr<const file::Schema> stored, size_t num_columns,
    std::vector<std::shared_ptr<arrow::RecordBatch>> batches,
    std::shared_ptr<const DeletionVector> hidden);

// Whether the meta columns of its rows are null.
bool HasAnonymousRows(const Dataset& dataset);

}  // namespace glaive::table
