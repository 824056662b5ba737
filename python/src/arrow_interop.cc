#include "arrow_interop.h"

#include <cstring>
#include <string>
#include <utility>

#include <arrow/api.h>
#include <arrow/c/abi.h>
#include <arrow/c/bridge.h>
#include <arrow/util/config.h>

#include "pyarrow_api.h"

namespace glaive::python {
namespace {

constexpr char kStreamCapsule[] = "arrow_array_stream";
constexpr char kSchemaCapsule[] = "arrow_schema";
constexpr char kArrayCapsule[] = "arrow_array";

template <typename T>
T* CapsulePointer(nb::handle capsule, const char* name) {
  auto* pointer = static_cast<T*>(PyCapsule_GetPointer(capsule.ptr(), name));
  if (!pointer) throw nb::python_error();
  return pointer;
}

bool CarriesExtensionName(const arrow::Field& field) {
  if (field.metadata() && field.metadata()->Contains("ARROW:extension:name")) return true;
  for (const auto& child : field.type()->fields()) {
    if (CarriesExtensionName(*child)) return true;
  }
  return false;
}

// The same batch as a consumer of the C data interface sees it. Needs the GIL: extension
// types may be Python classes.
Result<std::shared_ptr<arrow::RecordBatch>> WithExtensions(
    const arrow::RecordBatch& batch) {
  ArrowSchema schema;
  ArrowArray array;
  GLAIVE_RETURN_NOT_OK(arrow::ExportRecordBatch(batch, &array, &schema));
  return arrow::ImportRecordBatch(&array, &schema);
}

Result<std::shared_ptr<arrow::Schema>> WithExtensions(const arrow::Schema& schema) {
  ArrowSchema exported;
  GLAIVE_RETURN_NOT_OK(arrow::ExportSchema(schema, &exported));
  return arrow::ImportSchema(&exported);
}

std::shared_ptr<arrow::Table> WithExtensions(const std::shared_ptr<arrow::Table>& table) {
  auto schema = Unwrap(WithExtensions(*table->schema()));
  arrow::RecordBatchVector batches;
  arrow::TableBatchReader reader(*table);
  while (auto batch = Unwrap(reader.Next())) {
    batches.push_back(Unwrap(WithExtensions(*batch)));
  }
  return Unwrap(arrow::Table::FromRecordBatches(schema, batches));
}

// Steps a pyarrow.RecordBatchReader by its method, so that exceptions arrive as they were
// raised.
class PyReader : public arrow::RecordBatchReader {
 public:
  PyReader(nb::object reader, std::shared_ptr<arrow::Schema> schema, Call* call)
      : reader_(std::move(reader)), schema_(std::move(schema)), call_(call) {}
  ~PyReader() override {
    nb::gil_scoped_acquire acquire;
    reader_.reset();
  }

  std::shared_ptr<arrow::Schema> schema() const override { return schema_; }

  Status ReadNext(std::shared_ptr<arrow::RecordBatch>* out) override {
    nb::gil_scoped_acquire acquire;
    nb::object batch =
        nb::steal(PyObject_CallMethod(reader_.ptr(), "read_next_batch", nullptr));
    if (batch.is_valid()) {
      *out = PyArrow().unwrap_batch(batch.ptr());
      if (*out) return Status::OK();
      PyErr_SetString(PyExc_TypeError, "the reader did not give a pyarrow.RecordBatch");
    } else if (PyErr_ExceptionMatches(PyExc_StopIteration)) {
      PyErr_Clear();
      out->reset();
      return Status::OK();
    }
    call_->KeepException();
    return Cancelled("the data source raised an exception");
  }

 private:
  nb::object reader_;
  std::shared_ptr<arrow::Schema> schema_;
  Call* call_;
};

std::shared_ptr<arrow::RecordBatchReader> OneBatch(
    std::shared_ptr<arrow::RecordBatch> batch) {
  return Unwrap(arrow::RecordBatchReader::Make({std::move(batch)}));
}

}  // namespace

bool CarriesExtensionName(const arrow::Schema& schema) {
  for (const auto& field : schema.fields()) {
    if (CarriesExtensionName(*field)) return true;
  }
  return false;
}

nb::object ToPyArrow(const std::shared_ptr<arrow::Schema>& schema) {
  if (!CarriesExtensionName(*schema)) return nb::steal(PyArrow().wrap_schema(schema));
  return nb::steal(PyArrow().wrap_schema(Unwrap(WithExtensions(*schema))));
}

nb::object ToPyArrow(const std::shared_ptr<arrow::RecordBatch>& batch) {
  if (!CarriesExtensionName(*batch->schema()))
    return nb::steal(PyArrow().wrap_batch(batch));
  return nb::steal(PyArrow().wrap_batch(Unwrap(WithExtensions(*batch))));
}

nb::object ToPyArrow(const std::shared_ptr<arrow::Table>& table) {
  if (!CarriesExtensionName(*table->schema()))
    return nb::steal(PyArrow().wrap_table(table));
  return nb::steal(PyArrow().wrap_table(WithExtensions(table)));
}

nb::object ExportStream(std::shared_ptr<arrow::RecordBatchReader> reader) {
  auto stream = std::make_unique<ArrowArrayStream>();
  Check(arrow::ExportRecordBatchReader(std::move(reader), stream.get()));
  PyObject* capsule = PyCapsule_New(stream.get(), kStreamCapsule, [](PyObject* self) {
    auto* owned =
        static_cast<ArrowArrayStream*>(PyCapsule_GetPointer(self, kStreamCapsule));
    if (owned->release) owned->release(owned);
    delete owned;
  });
  if (!capsule) {
    stream->release(stream.get());
    throw nb::python_error();
  }
  stream.release();
  return nb::steal(capsule);
}

bool IsSchemaOnly(nb::handle data) {
  return nb::hasattr(data, "__arrow_c_schema__") &&
         !nb::hasattr(data, "__arrow_c_stream__") &&
         !nb::hasattr(data, "__arrow_c_array__");
}

std::shared_ptr<arrow::Schema> ImportSchema(nb::handle data) {
  if (PyArrowLoaded()) {
    if (PyArrow().is_schema(data.ptr())) return PyArrow().unwrap_schema(data.ptr());
  }
  if (!nb::hasattr(data, "__arrow_c_schema__")) {
    throw nb::type_error("expected a schema (an object with __arrow_c_schema__)");
  }
  nb::object capsule = data.attr("__arrow_c_schema__")();
  return Unwrap(
      arrow::ImportSchema(CapsulePointer<ArrowSchema>(capsule, kSchemaCapsule)));
}

std::shared_ptr<arrow::RecordBatchReader> ImportStream(nb::handle data, Call* call) {
  if (PyArrowLoaded()) {
    const auto& api = PyArrow();
    if (api.is_table(data.ptr())) {
      return std::make_shared<arrow::TableBatchReader>(api.unwrap_table(data.ptr()));
    }
    if (api.is_batch(data.ptr())) return OneBatch(api.unwrap_batch(data.ptr()));
    if (PyObject_IsInstance(data.ptr(), api.record_batch_reader) == 1) {
      auto schema = ImportSchema(data.attr("schema"));
      return std::make_shared<PyReader>(nb::borrow(data), std::move(schema), call);
    }
  }
  if (nb::hasattr(data, "__arrow_c_stream__")) {
    nb::object capsule = data.attr("__arrow_c_stream__")();
    return Unwrap(arrow::ImportRecordBatchReader(
        CapsulePointer<ArrowArrayStream>(capsule, kStreamCapsule)));
  }
  if (nb::hasattr(data, "__arrow_c_array__")) {
    nb::tuple capsules = nb::cast<nb::tuple>(data.attr("__arrow_c_array__")());
    return OneBatch(Unwrap(arrow::ImportRecordBatch(
        CapsulePointer<ArrowArray>(capsules[1], kArrayCapsule),
        CapsulePointer<ArrowSchema>(capsules[0], kSchemaCapsule))));
  }
  throw nb::type_error(
      "expected Arrow data: a pyarrow Table, RecordBatch or RecordBatchReader, or an "
      "object with "
      "__arrow_c_stream__ or __arrow_c_array__");
}

}  // namespace glaive::python
