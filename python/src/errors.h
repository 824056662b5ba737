// From Status to Python exceptions.
#pragma once

#include <nanobind/nanobind.h>

#include "base/status.h"

namespace glaive::python {

namespace nb = nanobind;

// Creates the exception classes of the module.
void BindErrors(nb::module_& m);

// The exception for `status`, set and thrown. Needs the GIL.
[[noreturn]] void Raise(const Status& status);

inline void Check(const Status& status) {
  if (!status.ok()) [[unlikely]]
    Raise(status);
}

template <typename T>
T Unwrap(Result<T> result) {
  if (!result.ok()) [[unlikely]]
    Raise(result.status());
  return std::move(result).ValueUnsafe();
}

}  // namespace glaive::python
