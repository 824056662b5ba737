// Fragments as plain Python values, and writes in two steps: files, then the commit.
#pragma once

#include <nanobind/nanobind.h>

#include "bindings.h"
#include "readable.h"

namespace lance::table {
class DataFragment;
}

namespace glaive::file {
class Schema;
}

namespace glaive::python {

nb::dict FragmentToDict(const lance::table::DataFragment& fragment);

// Facts on all fields, each before its children.
nb::list FieldList(const file::Schema& schema);

void BindFragments(nb::class_<PyDataset>& c);

}  // namespace glaive::python
