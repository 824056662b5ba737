// The methods that change columns and metadata, bound to the classes that have them.
#pragma once

#include <nanobind/nanobind.h>

#include "db/table.h"
#include "readable.h"

namespace glaive::python {

void BindDatasetSchemaChanges(nb::class_<PyDataset>& c);
void BindTableSchemaChanges(nb::class_<db::Table>& c);

}  // namespace glaive::python
