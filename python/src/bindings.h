// The parts of the module, each in its own file.
#pragma once

#include <functional>

#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

namespace glaive::python {

namespace nb = nanobind;
class Call;

void BindReader(nb::module_& m);
void BindConnection(nb::module_& m);
void BindTable(nb::module_& m);
void BindDataset(nb::module_& m);
void BindFiles(nb::module_& m);
void BindMaintenance(nb::module_& m);
void BindMemWal(nb::module_& m);
void BindMemWalLog(nb::module_& m);
void BindMemWalParts(nb::module_& m);

// A progress hook that calls the Python function `callback` (or nothing when it is None).
// What the function raises is ignored, an interrupt excepted, which ends the call.
std::function<void(int64_t)> ProgressHook(nb::object callback, Call* call);

}  // namespace glaive::python
