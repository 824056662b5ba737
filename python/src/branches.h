// Branches and clones, bound to the classes that have them.
#pragma once

#include <nanobind/nanobind.h>

#include "db/connection.h"
#include "db/table.h"
#include "readable.h"

namespace glaive::python {

void BindDatasetBranches(nb::class_<PyDataset>& c);
void BindTableBranches(nb::class_<db::Table>& c);
void BindConnectionClones(nb::class_<db::Connection>& c);

}  // namespace glaive::python
