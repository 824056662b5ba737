// Arrow data across the border: pyarrow objects, the C data interface, buffers of
// numbers.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <arrow/type_fwd.h>
#include <nanobind/nanobind.h>

#include "base/status.h"
#include "call.h"

namespace glaive::python {

// Results as pyarrow objects. Fields that carry an extension name become extension arrays
// where that extension is registered, as they do for data that arrives by the C data
// interface.
nb::object ToPyArrow(const std::shared_ptr<arrow::Schema>& schema);
nb::object ToPyArrow(const std::shared_ptr<arrow::RecordBatch>& batch);
nb::object ToPyArrow(const std::shared_ptr<arrow::Table>& table);

// True when some field, at any level, carries an extension name.
bool CarriesExtensionName(const arrow::Schema& schema);

// The capsule of __arrow_c_stream__ for `reader`.
nb::object ExportStream(std::shared_ptr<arrow::RecordBatchReader> reader);

// True when `data` is a schema without rows.
bool IsSchemaOnly(nb::handle data);
std::shared_ptr<arrow::Schema> ImportSchema(nb::handle data);
// A stream over `data`: a table, batch or reader of pyarrow, or any object with
// __arrow_c_stream__ or
// __arrow_c_array__; TypeError otherwise. What Python code raises while the stream is
// read is kept in `call` and thrown at its end. `call` must outlive the stream.
std::shared_ptr<arrow::RecordBatchReader> ImportStream(nb::handle data, Call* call);

// Integers of a list, tuple, range, array or buffer. Negative ones, and what is no
// integer, are errors (InvalidInput or TypeError); `what` names the argument.
std::vector<int64_t> ImportOffsets(nb::handle data, const char* what);
std::vector<uint64_t> ImportRowIds(nb::handle data, const char* what);

// Query vectors as an array of lists, one row per query.
std::shared_ptr<arrow::Array> ImportQueries(nb::handle data);

}  // namespace glaive::python
