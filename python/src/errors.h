// From Status to Python exceptions.
#pragma once

#include <string>
#include <vector>

#include <nanobind/nanobind.h>

#include "base/status.h"

namespace glaive::python {

namespace nb = nanobind;

// Creates the exception classes of the module.
void BindErrors(nb::module_& m);

// The exception for `status`, set and thrown. Needs the GIL.
[[noreturn]] void Raise(const Status& status);

// Issues each text as a UserWarning; throws when the user made an error of them. Needs
// the GIL.
void Warn(const std::vector<std::string>& warnings);

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
