// The extension module glaive._glaive.
#include <string>
#include <vector>

#include <nanobind/nanobind.h>

#include "arrow_interop.h"
#include "bindings.h"
#include "db/environment.h"
#include "errors.h"
#include "expr/predicate.h"
#include "expr/volatility.h"
#include "file/schema.h"
#include "runtime/process_worker.h"
#include "runtime/runtime.h"
#include "simd/dispatch.h"

#ifndef GLAIVE_VERSION
#error "GLAIVE_VERSION is set by the build"
#endif

namespace glaive::python {
namespace {

std::vector<std::string> ValidateFilter(const std::string& sql, nb::object schema,
                                        bool meta_columns) {
  auto arrow_schema = ImportSchema(schema);
  const auto lance_schema = Unwrap(file::Schema::FromArrow(*arrow_schema));
  const auto& extra = meta_columns ? expr::RowMetaColumns() : expr::ExtraColumns{};
  return Unwrap(expr::Predicate::Make(sql, lance_schema, extra))->columns();
}

// One field "value" of the type that the expression has.
nb::object ExpressionSchema(const std::string& sql, nb::object schema) {
  const auto lance_schema = Unwrap(file::Schema::FromArrow(*ImportSchema(schema)));
  const auto expression =
      Unwrap(expr::ScalarExpr::Make(sql, lance_schema, expr::ExtraColumns{}));
  return ToPyArrow(arrow::schema({arrow::field("value", expression->type())}));
}

nb::dict SimdInfo() {
  const simd::SimdInfo info = Unwrap(simd::GetSimdInfo());
  nb::dict kernels;
  for (const auto& kernel : info.kernels) {
    kernels[kernel.name.c_str()] = std::string(simd::TierName(kernel.tier));
  }
  nb::list available;
  for (simd::Tier tier : info.available)
    available.append(std::string(simd::TierName(tier)));
  nb::dict out;
  out["tier"] = std::string(simd::TierName(info.tier));
  out["target_arch"] = info.target_arch;
  out["host_features"] = info.host_features;
  out["available"] = std::move(available);
  out["kernels"] = std::move(kernels);
  return out;
}

}  // namespace

NB_MODULE(_glaive, m) {
  using nb::literals::operator""_a;
  // Objects that live until the interpreter ends are no leaks worth a message.
  nb::set_leak_warnings(false);
  m.attr("__version__") = GLAIVE_VERSION;
  BindErrors(m);
  BindReader(m);
  BindDataset(m);
  BindTable(m);
  BindConnection(m);
  BindFiles(m);
  BindMaintenance(m);
  BindMemWal(m);
  BindMemWalLog(m);
  BindMemWalParts(m);
  m.def("simd_info", &SimdInfo);
  m.def("num_threads", [] { return Unwrap(db::DefaultRuntime())->num_threads(); });
  m.def(
      "validate_table_name",
      [](const std::string& name) { Check(db::ValidateTableName(name)); }, "name"_a);
  m.def(
      "format_field_path",
      [](const std::vector<std::string>& segments) {
        return file::FormatFieldPath(segments);
      },
      "segments"_a);
  m.def(
      "parse_field_path",
      [](const std::string& path) { return Unwrap(file::ParseFieldPath(path)); },
      "path"_a);
  // Before the interpreter's end, and with it the destruction of statics, begins.
  nb::module_::import_("atexit").attr("register")(nb::cpp_function(
      [] { StopProcessWorkers(); }, nb::call_guard<nb::gil_scoped_release>()));
  m.def("validate_filter", &ValidateFilter, "sql"_a, "schema"_a, "meta_columns"_a = true);
  m.def("expression_schema", &ExpressionSchema, "sql"_a, "schema"_a);
  m.def(
      "volatile_function",
      [](const std::string& sql) { return Unwrap(expr::VolatileFunction(sql)); },
      "sql"_a);
}

}  // namespace glaive::python
