// Methods of Dataset for its LSM write path.
#pragma once

#include <nanobind/nanobind.h>

#include "bindings.h"
#include "readable.h"

namespace glaive::python {

void BindDatasetMemWal(nb::class_<PyDataset>& c);

}  // namespace glaive::python
