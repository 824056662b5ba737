// New columns for all rows of a table: computed, null, given, or joined in.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <arrow/type_fwd.h>

#include "base/status.h"
#include "exec/column_files.h"
#include "table/dataset.h"

namespace lance::table {
class DataFragment;
}

namespace glaive::exec {

// All of these return the committed version. A failed call leaves the table as it was and
// no files. A column that exists already is InvalidInput.

// Name and SQL expression of each new column. Expressions see the columns of the table as
// it is, not those added by the same call; they are computed for rows that are not
// deleted. Runs again when a concurrent commit was faster.
Result<table::Dataset::Ptr> AddColumns(
    table::Dataset::Ptr dataset,
    const std::vector<std::pair<std::string, std::string>>& expressions,
    const ColumnChangeOptions& options = {});

// Columns of nulls; writes no data. Members may be added to structs, where the file
// version allows it (2.2).
Result<table::Dataset::Ptr> AddNullColumns(table::Dataset::Ptr dataset,
                                           const arrow::Schema& columns);

// The values of the rows in scan order: as many as the table has. RetryableConflict when
// a concurrent commit was faster: the stream cannot be read again.
Result<table::Dataset::Ptr> AddColumnsFromReader(table::Dataset::Ptr dataset,
                                                 arrow::RecordBatchReader& data,
                                                 const ColumnChangeOptions& options = {});

// A left join: the columns of `data` except `right_on`, from the row whose `right_on`
// equals `left_on` (the last one when several do; a null equals a null), otherwise null.
// `left_on` may be _rowid or _rowaddr. `data` is held in memory.
Result<table::Dataset::Ptr> MergeColumns(table::Dataset::Ptr dataset,
                                         arrow::RecordBatchReader& data,
                                         const std::string& left_on,
                                         const std::string& right_on,
                                         const ColumnChangeOptions& options = {});

// What a fragment becomes when it gets columns of its own file, and the schema then.
struct FragmentWithColumns {
  FragmentWithColumns();
  ~FragmentWithColumns();
  FragmentWithColumns(FragmentWithColumns&&) noexcept;
  FragmentWithColumns& operator=(FragmentWithColumns&&) noexcept;
  std::unique_ptr<lance::table::DataFragment> fragment;
  file::Schema schema;
  std::vector<int32_t> field_ids;  // of the columns that were written
};

// One step of a change that several machines make: writes the values of `data`, one for
// each row of the fragment that is not deleted, in order, and commits nothing. New
// columns, or with `replace` those of the table that have these names. The file stays; if
// no commit takes it, a clean-up removes it.
Result<FragmentWithColumns> WriteFragmentColumns(const table::Dataset::Ptr& dataset,
                                                 int fragment,
                                                 arrow::RecordBatchReader& data,
                                                 bool replace,
                                                 const ColumnChangeOptions& options = {});

}  // namespace glaive::exec
