#include "pyarrow_api.h"

#include <cstdlib>
#include <string>

#include <arrow/util/config.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

namespace glaive::python {
namespace {

namespace nb = nanobind;

PyArrowFunctions functions;
bool loaded = false;  // guarded by the GIL

// pyarrow.lib exports its functions as capsules; the loader has made both modules share
// one libarrow.
template <typename Function>
void Load(nb::handle table, const char* name, Function* out) {
  nb::object capsule = table[name];
  const char* signature = PyCapsule_GetName(capsule.ptr());
  if (!signature) throw nb::python_error();
  void* pointer = PyCapsule_GetPointer(capsule.ptr(), signature);
  if (!pointer) throw nb::python_error();
  *out = reinterpret_cast<Function>(pointer);
}

void LoadAll() {
  nb::module_ lib = nb::module_::import_("pyarrow.lib");
  const std::string version = nb::cast<std::string>(lib.attr("cpp_version"));
  if (std::atoi(version.c_str()) != ARROW_VERSION_MAJOR) {
    throw nb::import_error(("this build of glaive works with pyarrow " +
                            std::to_string(ARROW_VERSION_MAJOR) + ", found " + version)
                               .c_str());
  }
  nb::object table = lib.attr("__pyx_capi__");
  Load(table, "pyarrow_wrap_schema", &functions.wrap_schema);
  Load(table, "pyarrow_wrap_batch", &functions.wrap_batch);
  Load(table, "pyarrow_wrap_table", &functions.wrap_table);
  Load(table, "pyarrow_unwrap_schema", &functions.unwrap_schema);
  Load(table, "pyarrow_unwrap_batch", &functions.unwrap_batch);
  Load(table, "pyarrow_unwrap_table", &functions.unwrap_table);
  Load(table, "pyarrow_unwrap_array", &functions.unwrap_array);
  Load(table, "pyarrow_unwrap_chunked_array", &functions.unwrap_chunked_array);
  Load(table, "pyarrow_is_schema", &functions.is_schema);
  Load(table, "pyarrow_is_batch", &functions.is_batch);
  Load(table, "pyarrow_is_table", &functions.is_table);
  Load(table, "pyarrow_is_array", &functions.is_array);
  Load(table, "pyarrow_is_chunked_array", &functions.is_chunked_array);
  functions.record_batch_reader =
      nb::object(lib.attr("RecordBatchReader")).release().ptr();
  loaded = true;
}

}  // namespace

const PyArrowFunctions& PyArrow() {
  if (!loaded) [[unlikely]]
    LoadAll();
  return functions;
}

bool PyArrowLoaded() {
  if (loaded) return true;
  nb::object modules = nb::borrow(PyImport_GetModuleDict());
  return PyDict_GetItemString(modules.ptr(), "pyarrow.lib") != nullptr;
}

}  // namespace glaive::python
