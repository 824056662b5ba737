// The functions of pyarrow that turn its objects into Arrow C++ objects and back.
#pragma once

#include <Python.h>

#include <memory>

#include <arrow/type_fwd.h>

namespace glaive::python {

struct PyArrowFunctions {
  PyObject* (*wrap_schema)(const std::shared_ptr<arrow::Schema>&);
  PyObject* (*wrap_batch)(const std::shared_ptr<arrow::RecordBatch>&);
  PyObject* (*wrap_table)(const std::shared_ptr<arrow::Table>&);
  std::shared_ptr<arrow::Schema> (*unwrap_schema)(PyObject*);
  std::shared_ptr<arrow::RecordBatch> (*unwrap_batch)(PyObject*);
  std::shared_ptr<arrow::Table> (*unwrap_table)(PyObject*);
  std::shared_ptr<arrow::Array> (*unwrap_array)(PyObject*);
  std::shared_ptr<arrow::ChunkedArray> (*unwrap_chunked_array)(PyObject*);
  int (*is_schema)(PyObject*);
  int (*is_batch)(PyObject*);
  int (*is_table)(PyObject*);
  int (*is_array)(PyObject*);
  int (*is_chunked_array)(PyObject*);
  PyObject* record_batch_reader;  // the class
};

// Imports pyarrow at the first call; throws nb::python_error when that fails, or when its
// major version is not the one this module was built for. Needs the GIL.
const PyArrowFunctions& PyArrow();

// True when pyarrow is imported already, so that an argument may be one of its objects.
bool PyArrowLoaded();

}  // namespace glaive::python
