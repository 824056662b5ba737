// Bindings of the methods that change rows in place, by class.
#pragma once

#include "bindings.h"
#include "db/table.h"
#include "readable.h"

namespace glaive::python {

void BindTableChanges(nb::class_<db::Table>& c);
void BindDatasetChanges(nb::class_<PyDataset>& c);

}  // namespace glaive::python
