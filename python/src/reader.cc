// glaive._glaive.BatchReader.
#include <utility>

#include <arrow/api.h>

#include "arrow_interop.h"
#include "bindings.h"
#include "readable.h"

namespace glaive::python {
namespace {

nb::object Next(PyBatchReader& self) {
  auto batch = self.call->Run([&]() -> Result<std::shared_ptr<arrow::RecordBatch>> {
    std::lock_guard lock(self.mutex);
    if (!self.stream) return nullptr;
    auto next = self.stream->Next();
    if (next.ok() && !*next) self.stream.reset();
    return next;
  });
  if (!batch) throw nb::stop_iteration();
  return ToPyArrow(batch);
}

nb::object ReadAll(PyBatchReader& self) {
  return ToPyArrow(self.call->Run([&]() -> Result<std::shared_ptr<arrow::Table>> {
    std::lock_guard lock(self.mutex);
    if (!self.stream) return arrow::Table::MakeEmpty(self.schema);
    auto table = self.stream->ToTable();
    self.stream.reset();
    return table;
  }));
}

void Close(PyBatchReader& self) {
  nb::gil_scoped_release release;
  std::lock_guard lock(self.mutex);
  self.stream.reset();
}

// The rest of a scan as a stream of its own, with the call it belongs to.
class DetachedStream : public arrow::RecordBatchReader {
 public:
  DetachedStream(std::unique_ptr<Call> call,
                 std::shared_ptr<arrow::RecordBatchReader> stream,
                 std::shared_ptr<arrow::Schema> schema)
      : call_(std::move(call)), stream_(std::move(stream)), schema_(std::move(schema)) {}
  ~DetachedStream() override {
    stream_.reset();
    nb::gil_scoped_acquire acquire;  // the call may hold a Python exception
    call_.reset();
  }
  std::shared_ptr<arrow::Schema> schema() const override { return schema_; }
  Status ReadNext(std::shared_ptr<arrow::RecordBatch>* out) override {
    out->reset();
    if (!stream_) return Status::OK();
    call_->BeginStep();
    Status status = stream_->ReadNext(out);
    call_->RaiseInterruptAgain();
    return status;
  }

 private:
  std::unique_ptr<Call> call_;
  std::shared_ptr<arrow::RecordBatchReader> stream_;
  std::shared_ptr<arrow::Schema> schema_;
};

nb::object Export(PyBatchReader& self, nb::object /*requested_schema*/) {
  auto fresh = std::make_unique<Call>();
  std::shared_ptr<arrow::RecordBatchReader> rest;
  {
    nb::gil_scoped_release release;
    std::lock_guard lock(self.mutex);
    rest = std::move(self.stream);
    self.stream.reset();
  }
  if (rest) std::swap(fresh, self.call);
  return ExportStream(
      std::make_shared<DetachedStream>(std::move(fresh), std::move(rest), self.schema));
}

}  // namespace

std::function<void(int64_t)> ProgressHook(nb::object callback, Call* call) {
  if (callback.is_none()) return nullptr;
  return
      [callback = std::make_shared<nb::object>(std::move(callback)), call](int64_t rows) {
        nb::gil_scoped_acquire acquire;
        nb::object result = nb::steal(
            PyObject_CallFunction(callback->ptr(), "L", static_cast<long long>(rows)));
        if (result.is_valid()) return;
        if (PyErr_ExceptionMatches(PyExc_Exception)) {
          PyErr_Clear();
        } else {
          call->KeepException();
          call->token()->Cancel();
        }
      };
}

void BindReader(nb::module_& m) {
  using nb::literals::operator""_a;
  nb::class_<CancelHandle>(m, "CancelToken")
      .def(nb::init<>())
      .def("cancel", &CancelHandle::Cancel, nb::call_guard<nb::gil_scoped_release>())
      .def_prop_ro("cancelled", &CancelHandle::cancelled);
  nb::class_<PyBatchReader>(m, "BatchReader")
      .def_prop_ro("schema", [](PyBatchReader& self) { return ToPyArrow(self.schema); })
      .def("__iter__", [](nb::handle self) { return nb::borrow(self); })
      .def("__next__", &Next)
      .def("read_all", &ReadAll)
      .def("close", &Close)
      .def("__arrow_c_stream__", &Export, "requested_schema"_a = nb::none());
}

}  // namespace glaive::python
