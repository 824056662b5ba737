// Writes the data files of new fragments, streaming, and the transactions that add them.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include <arrow/type_fwd.h>

#include "base/status.h"
#include "table/dataset.h"
#include "table/snapshot.h"

namespace glaive::table {

// How a record batch stream becomes rows of the table: the schema of the files (ids of
// the table, only columns that the stream has, in table order). SchemaMismatch names the
// column that does not fit; columns may come in any order, nullable ones may be missing.
Result<file::Schema> SchemaForAppend(const file::Schema& table,
                                     const arrow::Schema& data);

// Bytes that are marked as blobs (lance-encoding:blob) are no blobs of file version 2.2,
// where upstream expects lance.blob.v2 and cannot change such a table. Unless something
// else needs 2.2, a new table gets the version that upstream keeps such blobs in: this.
std::optional<file::FileVersion> VersionForOldBlobs(const file::Schema& schema);

// Creates, appends or overwrites; see Dataset::Write.
Result<SnapshotPtr> WriteTable(const TableEnv& env, arrow::RecordBatchReader& data,
                               const WriteOptions& options);

}  // namespace glaive::table
