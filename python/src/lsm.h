// Methods of Table for its LSM write path.
#pragma once

#include <nanobind/nanobind.h>

#include "bindings.h"
#include "db/table.h"

namespace glaive::python {

void BindTableLsm(nb::class_<db::Table>& c);

}  // namespace glaive::python
