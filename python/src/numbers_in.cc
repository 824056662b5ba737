// Lists, buffers and arrays of numbers that come from Python: offsets, row ids, query
// vectors.
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include <arrow/api.h>
#include <arrow/compute/api.h>
#include <arrow/util/float16.h>

#include "arrow_interop.h"
#include "pyarrow_api.h"

namespace glaive::python {
namespace {

// A C-contiguous buffer (numpy array, array.array, memoryview, ...), released with the
// object.
class BufferView {
 public:
  static std::optional<BufferView> Get(nb::handle data) {
    if (!PyObject_CheckBuffer(data.ptr()) || PyBytes_Check(data.ptr()) ||
        PyByteArray_Check(data.ptr())) {
      return std::nullopt;
    }
    BufferView view;
    if (PyObject_GetBuffer(data.ptr(), &view.view_, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) !=
        0) {
      PyErr_Clear();
      // A strided array: a contiguous copy will do.
      nb::object copy = nb::steal(PyMemoryView_FromObject(data.ptr()));
      if (copy.is_valid())
        copy = nb::steal(PyMemoryView_GetContiguous(copy.ptr(), PyBUF_READ, 'C'));
      if (!copy.is_valid()) throw nb::python_error();
      if (PyObject_GetBuffer(copy.ptr(), &view.view_,
                             PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) != 0) {
        throw nb::python_error();
      }
    }
    view.held_ = true;
    return view;
  }
  BufferView(BufferView&& other) noexcept : view_(other.view_), held_(other.held_) {
    other.held_ = false;
  }
  BufferView& operator=(BufferView&&) = delete;
  ~BufferView() {
    if (held_) PyBuffer_Release(&view_);
  }

  int ndim() const { return view_.ndim; }
  int64_t shape(int axis) const { return view_.shape ? view_.shape[axis] : 0; }
  int64_t count() const { return view_.itemsize ? view_.len / view_.itemsize : 0; }
  int64_t bytes() const { return view_.len; }
  const void* data() const { return view_.buf; }

  // The Arrow type of the items; null when they are no plain numbers of this machine.
  std::shared_ptr<arrow::DataType> type() const {
    const char* format = view_.format ? view_.format : "B";
    if (*format == '@' || *format == '=' || *format == '<') ++format;
    if (format[0] == '\0' || format[1] != '\0') return nullptr;
    switch (*format) {
      case 'e':
        return arrow::float16();
      case 'f':
        return arrow::float32();
      case 'd':
        return arrow::float64();
      case 'b':
      case 'h':
      case 'i':
      case 'l':
      case 'q':
        return Integer(true);
      case 'B':
      case 'H':
      case 'I':
      case 'L':
      case 'Q':
        return Integer(false);
      default:
        return nullptr;
    }
  }

 private:
  BufferView() = default;
  std::shared_ptr<arrow::DataType> Integer(bool is_signed) const {
    switch (view_.itemsize) {
      case 1:
        return is_signed ? arrow::int8() : arrow::uint8();
      case 2:
        return is_signed ? arrow::int16() : arrow::uint16();
      case 4:
        return is_signed ? arrow::int32() : arrow::uint32();
      case 8:
        return is_signed ? arrow::int64() : arrow::uint64();
      default:
        return nullptr;
    }
  }
  Py_buffer view_{};
  bool held_ = false;
};

std::shared_ptr<arrow::Array> CopyToArray(const BufferView& view,
                                          const std::shared_ptr<arrow::DataType>& type) {
  std::shared_ptr<arrow::Buffer> buffer = Unwrap(arrow::AllocateBuffer(view.bytes()));
  if (view.bytes() > 0) std::memcpy(buffer->mutable_data(), view.data(), view.bytes());
  return arrow::MakeArray(
      arrow::ArrayData::Make(type, view.count(), {nullptr, std::move(buffer)}, 0));
}

std::shared_ptr<arrow::Array> CastTo(const std::shared_ptr<arrow::Array>& array,
                                     const std::shared_ptr<arrow::DataType>& type,
                                     const char* what) {
  auto cast = arrow::compute::Cast(*array, type);
  if (!cast.ok()) {
    Raise(InvalidInput("Invalid input, ", what, ": ", cast.status().message()));
  }
  if ((*cast)->null_count() > 0) {
    Raise(InvalidInput("Invalid input, ", what, " must not hold nulls"));
  }
  return *cast;
}

// An Arrow array in `data`, or null.
std::shared_ptr<arrow::Array> ArrowArrayOf(nb::handle data) {
  if (!PyArrowLoaded()) return nullptr;
  const auto& api = PyArrow();
  if (api.is_array(data.ptr())) return api.unwrap_array(data.ptr());
  if (!api.is_chunked_array(data.ptr())) return nullptr;
  auto chunked = api.unwrap_chunked_array(data.ptr());
  if (chunked->num_chunks() == 1) return chunked->chunk(0);
  if (chunked->num_chunks() == 0) return Unwrap(arrow::MakeEmptyArray(chunked->type()));
  return Unwrap(arrow::Concatenate(chunked->chunks()));
}

template <typename T>
T IntegerOf(PyObject* item, const char* what) {
  nb::object index = nb::steal(PyNumber_Index(item));
  if (!index.is_valid()) throw nb::python_error();
  if constexpr (std::is_signed_v<T>) {
    const int64_t value = PyLong_AsLongLong(index.ptr());
    if (value == -1 && PyErr_Occurred()) throw nb::python_error();
    if (value < 0)
      Raise(InvalidInput("Invalid input, ", what, " must not be negative: ", value));
    return value;
  } else {
    const uint64_t value = PyLong_AsUnsignedLongLong(index.ptr());
    if (value == std::numeric_limits<uint64_t>::max() && PyErr_Occurred()) {
      throw nb::python_error();
    }
    return value;
  }
}

template <typename T>
std::vector<T> ImportIntegers(nb::handle data, const char* what) {
  const auto type = std::is_signed_v<T> ? arrow::int64() : arrow::uint64();
  std::vector<T> out;
  auto append = [&](const std::shared_ptr<arrow::Array>& array) {
    auto cast = CastTo(array, type, what);
    const T* values = cast->data()->template GetValues<T>(1);
    out.assign(values, values + cast->length());
    if constexpr (std::is_signed_v<T>) {
      for (T value : out) {
        if (value < 0) {
          Raise(InvalidInput("Invalid input, ", what, " must not be negative: ", value));
        }
      }
    }
  };
  if (!PyList_CheckExact(data.ptr())) {
    if (auto array = ArrowArrayOf(data)) {
      append(array);
      return out;
    }
    if (auto view = BufferView::Get(data)) {
      const auto item = view->type();
      if (view->ndim() != 1 || !item || !arrow::is_integer(item->id())) {
        throw nb::type_error(
            (std::string(what) + " must be integers in one dimension").c_str());
      }
      append(CopyToArray(*view, item));
      return out;
    }
  }
  const std::string message = std::string(what) + " must be a sequence of integers";
  nb::object items = nb::steal(PySequence_Fast(data.ptr(), message.c_str()));
  if (!items.is_valid()) throw nb::python_error();
  const Py_ssize_t n = PySequence_Fast_GET_SIZE(items.ptr());
  out.reserve(n);
  for (Py_ssize_t i = 0; i < n; ++i) {
    out.push_back(IntegerOf<T>(PySequence_Fast_GET_ITEM(items.ptr(), i), what));
  }
  return out;
}

std::shared_ptr<arrow::Array> AsRows(const std::shared_ptr<arrow::Array>& values,
                                     int64_t dimension) {
  if (dimension <= 0) {
    Raise(InvalidInput(
        "Invalid input, a query vector must be a non-empty list of numbers"));
  }
  if (dimension > std::numeric_limits<int32_t>::max()) {
    Raise(InvalidInput("Invalid input, a query vector of ", dimension,
                       " numbers is too long"));
  }
  return Unwrap(
      arrow::FixedSizeListArray::FromArrays(values, static_cast<int32_t>(dimension)));
}

// Integer types other than those vectors are stored in become float32.
std::shared_ptr<arrow::Array> AsVectorItems(const std::shared_ptr<arrow::Array>& values) {
  switch (values->type_id()) {
    case arrow::Type::HALF_FLOAT:
    case arrow::Type::FLOAT:
    case arrow::Type::DOUBLE:
    case arrow::Type::INT8:
    case arrow::Type::UINT8:
      return CastTo(values, values->type(), "a query vector");
    default:
      return CastTo(values, arrow::float32(), "a query vector");
  }
}

[[noreturn]] void RaiseNotNumbers() {
  Raise(InvalidInput("Invalid input, a query vector must be a list of numbers"));
}

// Appends the numbers of one vector; returns how many.
int64_t AppendVector(nb::handle data, std::vector<float>* out) {
  nb::object items = nb::steal(PySequence_Fast(data.ptr(), ""));
  if (!items.is_valid()) {
    PyErr_Clear();
    RaiseNotNumbers();
  }
  const Py_ssize_t n = PySequence_Fast_GET_SIZE(items.ptr());
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* item = PySequence_Fast_GET_ITEM(items.ptr(), i);
    const double value = PyFloat_AsDouble(item);
    if (value == -1.0 && PyErr_Occurred()) {
      PyErr_Clear();
      RaiseNotNumbers();
    }
    out->push_back(static_cast<float>(value));
  }
  return n;
}

std::shared_ptr<arrow::Array> FloatArray(const std::vector<float>& values) {
  arrow::FloatBuilder builder;
  Check(builder.AppendValues(values));
  return Unwrap(builder.Finish());
}

bool IsText(PyObject* object) {
  return PyUnicode_Check(object) || PyBytes_Check(object) || PyByteArray_Check(object);
}

}  // namespace

std::vector<int64_t> ImportOffsets(nb::handle data, const char* what) {
  return ImportIntegers<int64_t>(data, what);
}

std::vector<uint64_t> ImportRowIds(nb::handle data, const char* what) {
  return ImportIntegers<uint64_t>(data, what);
}

std::shared_ptr<arrow::Array> ImportQueries(nb::handle data) {
  if (IsText(data.ptr()) || data.is_none()) RaiseNotNumbers();
  if (auto array = ArrowArrayOf(data)) {
    switch (array->type_id()) {
      case arrow::Type::LIST:
      case arrow::Type::LARGE_LIST:
      case arrow::Type::FIXED_SIZE_LIST:
        if (array->length() == 0) {
          Raise(InvalidInput(
              "Invalid input, search needs a non-empty list of query vectors"));
        }
        return array;
      default:
        if (!arrow::is_numeric(array->type_id())) RaiseNotNumbers();
        return AsRows(AsVectorItems(array), array->length());
    }
  }
  if (auto view = BufferView::Get(data)) {
    const auto type = view->type();
    if (!type || view->ndim() < 1 || view->ndim() > 2) RaiseNotNumbers();
    auto values = AsVectorItems(CopyToArray(*view, type));
    if (view->ndim() == 2 && view->shape(0) == 0) {
      Raise(
          InvalidInput("Invalid input, search needs a non-empty list of query vectors"));
    }
    return AsRows(values, view->shape(view->ndim() - 1));
  }
  nb::object items = nb::steal(PySequence_Fast(data.ptr(), ""));
  if (!items.is_valid()) {
    PyErr_Clear();
    RaiseNotNumbers();
  }
  const Py_ssize_t n = PySequence_Fast_GET_SIZE(items.ptr());
  if (n == 0) {
    Raise(InvalidInput(
        "Invalid input, a query vector must be a non-empty list of numbers"));
  }
  PyObject* first = PySequence_Fast_GET_ITEM(items.ptr(), 0);
  std::vector<float> values;
  if (PyNumber_Check(first) && !PySequence_Check(first)) {
    AppendVector(items, &values);
    return AsRows(FloatArray(values), n);
  }
  // A list of vectors, each a list, a buffer or an array. One type for all: that of the
  // first.
  std::vector<std::shared_ptr<arrow::Array>> rows;
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* item = PySequence_Fast_GET_ITEM(items.ptr(), i);
    if (IsText(item) || item == Py_None || !PySequence_Check(item)) RaiseNotNumbers();
    auto row = ImportQueries(item);
    if (row->length() != 1) RaiseNotNumbers();
    if (!rows.empty() && !row->type()->Equals(rows[0]->type())) {
      const auto& a = static_cast<const arrow::BaseListType&>(*rows[0]->type());
      const auto& b = static_cast<const arrow::BaseListType&>(*row->type());
      Raise(InvalidInput(
          "Invalid input, all query vectors of a search must have the same type and "
          "length, found ",
          a.ToString(), " and ", b.ToString()));
    }
    rows.push_back(std::move(row));
  }
  return Unwrap(arrow::Concatenate(rows));
}

}  // namespace glaive::python
