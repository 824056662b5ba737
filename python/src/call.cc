#include "call.h"

#include <unistd.h>

#include <cmath>

#include <sys/syscall.h>

namespace glaive::python {
namespace {

// How often a running call takes the GIL to look for signals.
constexpr std::chrono::milliseconds kSignalInterval{20};

bool OnMainThread() { return syscall(SYS_gettid) == getpid(); }

// A deadline that far away is none, and its duration would overflow.
constexpr double kMaxTimeoutSeconds = 1e9;

CancelToken::Clock::duration ToDuration(double seconds) {
  return std::chrono::duration_cast<CancelToken::Clock::duration>(
      std::chrono::duration<double>(seconds));
}

bool HasDeadline(std::optional<double> seconds) {
  if (!seconds) return false;
  if (!(*seconds >= 0))
    Raise(InvalidInput("Invalid input, timeout must not be negative"));
  return *seconds <= kMaxTimeoutSeconds;
}

}  // namespace

void CancelHandle::Cancel() {
  std::lock_guard lock(mutex_);
  cancelled_ = true;
  for (CancelToken* token : running_) token->Cancel();
}

bool CancelHandle::cancelled() const {
  std::lock_guard lock(mutex_);
  return cancelled_;
}

void CancelHandle::Add(CancelToken* token) {
  std::lock_guard lock(mutex_);
  running_.insert(token);
  if (cancelled_) token->Cancel();
}

void CancelHandle::Remove(CancelToken* token) {
  std::lock_guard lock(mutex_);
  running_.erase(token);
}

Call::Call(std::optional<double> timeout_seconds, std::shared_ptr<CancelHandle> handle)
    : token_(HasDeadline(timeout_seconds) ? CancelToken(ToDuration(*timeout_seconds))
                                          : CancelToken()),
      handle_(std::move(handle)) {
  if (handle_) handle_->Add(&token_);
  token_.set_caller_hook([this] { return LookForSignals(); });
}

Call::~Call() {
  if (handle_) handle_->Remove(&token_);
}

Status Call::LookForSignals() {
  const auto now = Clock::now();
  if (now - last_look_.load(std::memory_order_relaxed) < kSignalInterval)
    return Status::OK();
  last_look_.store(now, std::memory_order_relaxed);
  if (!OnMainThread()) return Status::OK();
  nb::gil_scoped_acquire acquire;
  if (PyErr_CheckSignals() == 0) return Status::OK();
  KeepException();
  return Cancelled("interrupted");
}

void Call::KeepException() {
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  if (trace) PyException_SetTraceback(value, trace);
  Py_XDECREF(type);
  Py_XDECREF(trace);
  exception_ = nb::steal(value);
}

void Call::RaiseInterruptAgain() {
  if (!exception_.is_valid()) return;  // set by this thread only
  nb::gil_scoped_acquire acquire;
  if (PyErr_GivenExceptionMatches(exception_.ptr(), PyExc_KeyboardInterrupt))
    PyErr_SetInterrupt();
  exception_.reset();
}

void Call::Fail(const Status& status) {
  if (exception_.is_valid()) {
    nb::object raised = std::move(exception_);
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(raised.ptr())), raised.ptr());
    throw nb::python_error();
  }
  Raise(status);
}

}  // namespace glaive::python
