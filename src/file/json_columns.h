// JSON columns: `arrow.json` text for users, `lance.json` JSONB in storage. At any
// nesting level.
#pragma once

#include <memory>

#include <arrow/type_fwd.h>

#include "base/status.h"

namespace glaive::file {

// True when a field of `schema`, at any level, is JSON in the user's or in the stored
// form.
bool HasJson(const arrow::Schema& schema);

// The schema with stored JSON fields (large binary, lance.json) shown as users see them
// (utf8, arrow.json), and the reverse. Schemas without JSON come back as they are.
std::shared_ptr<arrow::Schema> JsonToUser(const std::shared_ptr<arrow::Schema>& schema);
std::shared_ptr<arrow::Schema> JsonToStorage(
    const std::shared_ptr<arrow::Schema>& schema);

// The same for data. InvalidInput names the column whose text is not JSON, Corruption the
// column whose bytes are not JSONB. Batches without JSON come back as they are.
Result<std::shared_ptr<arrow::RecordBatch>> JsonToUser(
    const std::shared_ptr<arrow::RecordBatch>& batch);
Result<std::shared_ptr<arrow::RecordBatch>> JsonToStorage(
    const std::shared_ptr<arrow::RecordBatch>& batch);

// One column; `stored` is its field as files have it.
bool HasStoredJson(const arrow::Field& stored);
Result<std::shared_ptr<arrow::Array>> JsonToUser(
    const std::shared_ptr<arrow::Array>& array, const arrow::Field& stored);

}  // namespace glaive::file
