#include "errors.h"

#include <array>
#include <string>
#include <utility>

#include "glaive/evaluation_error.h"

namespace glaive::python {
namespace {

// Exception class per ErrorKind. The objects live as long as the process.
std::array<PyObject*, static_cast<size_t>(ErrorKind::kInternal) + 1> classes{};

PyObject* evaluation_class = nullptr;

PyObject* MakeClass(nb::module_& m, const char* name, const char* kind, const char* doc,
                    std::initializer_list<PyObject*> bases) {
  nb::tuple base_tuple =
      nb::steal<nb::tuple>(PyTuple_New(static_cast<Py_ssize_t>(bases.size())));
  Py_ssize_t i = 0;
  for (PyObject* base : bases) {
    Py_INCREF(base);
    PyTuple_SET_ITEM(base_tuple.ptr(), i++, base);
  }
  nb::dict members;
  members["kind"] = kind;
  const std::string full_name = std::string("glaive._glaive.") + name;
  PyObject* made =
      PyErr_NewExceptionWithDoc(full_name.c_str(), doc, base_tuple.ptr(), members.ptr());
  if (!made) throw nb::python_error();
  m.attr(name) = nb::borrow(made);
  return made;
}

void Set(ErrorKind kind, PyObject* type) { classes[static_cast<size_t>(kind)] = type; }

}  // namespace

void BindErrors(nb::module_& m) {
  PyObject* const value = PyExc_ValueError;
  PyObject* const os = PyExc_OSError;
  PyObject* const runtime = PyExc_RuntimeError;
  PyObject* root =
      MakeClass(m, "GlaiveError", "",
                "Root of all errors of the engine; `kind` names the failure class.",
                {PyExc_Exception});
  Set(ErrorKind::kNone, root);
  // ValueError is what LanceDB's users catch for wrong input, pylance raises OSError at
  // some places.
  Set(ErrorKind::kNotFound,
      MakeClass(m, "NotFoundError", "NotFound",
                "A table, version, tag, column or file does not exist.",
                {root, value, PyExc_FileNotFoundError}));
  Set(ErrorKind::kAlreadyExists,
      MakeClass(m, "AlreadyExistsError", "AlreadyExists", "Table, tag or file exists.",
                {root, value, os}));
  Set(ErrorKind::kInvalidInput, MakeClass(m, "InvalidInputError", "InvalidInput",
                                          "An argument is wrong.", {root, value, os}));
  Set(ErrorKind::kSchemaMismatch,
      MakeClass(m, "SchemaMismatchError", "SchemaMismatch",
                "Data does not fit the table's schema.", {root, value, runtime, os}));
  evaluation_class = MakeClass(m, "EvaluationError", "Evaluation",
                               "An expression that is well-formed failed on the rows.",
                               {root, runtime, os});
  PyObject* conflict = MakeClass(m, "CommitConflictError", "Conflict",
                                 "A concurrent commit makes this operation impossible.",
                                 {root, runtime, os});
  Set(ErrorKind::kConflict, conflict);
  Set(ErrorKind::kRetryableConflict,
      MakeClass(m, "RetryableCommitConflictError", "RetryableConflict",
                "Run the whole operation again on the latest version.", {conflict}));
  Set(ErrorKind::kTooManyRetries, MakeClass(m, "TooManyRetriesError", "TooManyRetries",
                                            "Own retries are used up.", {conflict}));
  Set(ErrorKind::kCorruption,
      MakeClass(m, "CorruptionError", "Corruption",
                "Bytes on disk are not what the format says.", {root, runtime, os}));
  Set(ErrorKind::kNotSupported, MakeClass(m, "NotSupportedError", "NotSupported",
                                          "This build does not have the feature.",
                                          {root, PyExc_NotImplementedError}));
  Set(ErrorKind::kIo,
      MakeClass(m, "StoreError", "Io", "The operating system or the object store failed.",
                {root, os}));
  Set(ErrorKind::kResourceExhausted,
      MakeClass(m, "ResourceExhaustedError", "ResourceExhausted",
                "The memory budget or another bound was reached.", {root, runtime}));
  Set(ErrorKind::kCancelled, MakeClass(m, "CancelledError", "Cancelled",
                                       "A CancelToken was fired.", {root, runtime}));
  Set(ErrorKind::kTimeout,
      MakeClass(m, "QueryTimeoutError", "Timeout", "The caller's deadline passed.",
                {root, runtime, PyExc_TimeoutError}));
  Set(ErrorKind::kClosed,
      MakeClass(m, "ClosedError", "Closed", "The connection or table is closed.",
                {root, runtime}));
  Set(ErrorKind::kFenced, MakeClass(m, "WriterFencedError", "Fenced",
                                    "Another writer claimed the shard; open a new one.",
                                    {root, runtime, os}));
  Set(ErrorKind::kWriterFailed,
      MakeClass(m, "WriterFailedError", "WriterFailed",
                "An append to the log failed; open a new writer, which replays it.",
                {root, runtime, os}));
  Set(ErrorKind::kInternal,
      MakeClass(m, "InternalError", "Internal", "A broken invariant of the engine.",
                {root, runtime}));
}

void Raise(const Status& status) {
  PyObject* type = IsEvaluationError(status)
                       ? evaluation_class
                       : classes[static_cast<size_t>(KindOf(status))];
  // Not PyErr_SetString: the message may hold bytes of a damaged file.
  const std::string& message = status.message();
  nb::object text = nb::steal(PyUnicode_DecodeUTF8(
      message.data(), static_cast<Py_ssize_t>(message.size()), "backslashreplace"));
  if (text.is_valid()) PyErr_SetObject(type, text.ptr());
  throw nb::python_error();
}

void Warn(const std::vector<std::string>& warnings) {
  for (const std::string& text : warnings) {
    if (PyErr_WarnEx(PyExc_UserWarning, text.c_str(), /*stack_level=*/2) != 0) {
      throw nb::python_error();
    }
  }
}

}  // namespace glaive::python
