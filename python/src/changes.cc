// Methods of Table and Dataset that change rows in place.
#include "changes.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include <arrow/array.h>
#include <arrow/array/concatenate.h>
#include <arrow/chunked_array.h>
#include <arrow/record_batch.h>
#include <arrow/table.h>

#include "arrow_interop.h"
#include "call.h"
#include "exec/scan.h"
#include "exec/update.h"

namespace glaive::python {
namespace {

using Expressions = std::vector<std::pair<std::string, std::string>>;

std::chrono::nanoseconds Seconds(double seconds) {
  constexpr double kMost = 1e9;  // 30 years
  return std::chrono::nanoseconds(
      static_cast<int64_t>(std::min(std::max(seconds, 0.0), kMost) * 1e9));
}

void ApplyRetries(std::optional<int> conflict_retries,
                  std::optional<double> retry_timeout, exec::RetryPolicy* policy) {
  if (conflict_retries) policy->max_retries = *conflict_retries;
  if (retry_timeout) policy->timeout = Seconds(*retry_timeout);
}

// `values`: None, or a table of one row.
exec::UpdateOptions ParseUpdate(std::optional<std::string> where,
                                const Expressions& expressions, nb::handle values,
                                Call* call) {
  exec::UpdateOptions options;
  options.where = FilterText(std::move(where));
  options.cancel = call->token();
  for (const auto& [column, sql] : expressions) {
    options.assignments.push_back({column, sql, nullptr});
  }
  if (values.is_none()) return options;
  auto stream = ImportStream(values, call);
  auto table = call->Run([&] { return stream->ToTable(); });
  for (int c = 0; c < table->num_columns(); ++c) {
    auto array =
        Unwrap(table->column(c)->num_chunks() == 1
                   ? Result<std::shared_ptr<arrow::Array>>(table->column(c)->chunk(0))
                   : arrow::Concatenate(table->column(c)->chunks()));
    options.assignments.push_back({table->field(c)->name(), "", std::move(array)});
  }
  return options;
}

}  // namespace

void BindTableChanges(nb::class_<db::Table>& c) {
  using nb::literals::operator""_a;
  c.def(
      "update",
      [](db::Table& self, std::optional<std::string> where,
         const Expressions& expressions, nb::object values) {
        Call call;
        const auto options = ParseUpdate(std::move(where), expressions, values, &call);
        const auto outcome = call.Run([&] { return self.Update(options); });
        return std::pair(outcome.num_updated_rows, outcome.version);
      },
      "where"_a, "expressions"_a, "values"_a = nb::none());
}

void BindDatasetChanges(nb::class_<PyDataset>& c) {
  using nb::literals::operator""_a;
  const auto none = nb::none();
  c.def(
      "delete",
      [](PyDataset& self, const std::string& predicate, std::optional<double> timeout,
         std::shared_ptr<CancelHandle> cancel, std::optional<int> conflict_retries,
         std::optional<double> retry_timeout) {
        Call call(timeout, std::move(cancel));
        exec::RetryPolicy retry;
        ApplyRetries(conflict_retries, retry_timeout, &retry);
        auto result = call.Run(
            [&] { return exec::Delete(self.dataset, predicate, call.token(), retry); });
        auto next = std::make_unique<PyDataset>(std::move(result.dataset), self.uri);
        return nb::make_tuple(std::move(next), result.num_deleted_rows);
      },
      "predicate"_a, nb::kw_only(), "timeout"_a = none, "cancel"_a = none,
      "conflict_retries"_a = none, "retry_timeout"_a = none);
  c.def(
      "update",
      [](PyDataset& self, std::optional<std::string> where,
         const Expressions& expressions, nb::object values,
         std::optional<int> conflict_retries, std::optional<double> retry_timeout,
         std::optional<std::string> data_storage_version) {
        Call call;
        auto options = ParseUpdate(std::move(where), expressions, values, &call);
        ApplyRetries(conflict_retries, retry_timeout, &options.retry);
        if (data_storage_version) {
          options.file_version = Unwrap(file::ParseFileVersion(*data_storage_version));
        }
        auto result = call.Run([&] { return exec::Update(self.dataset, options); });
        auto next = std::make_unique<PyDataset>(std::move(result.dataset), self.uri);
        return nb::make_tuple(std::move(next), result.num_updated_rows);
      },
      "where"_a, "expressions"_a, "values"_a = none, nb::kw_only(),
      "conflict_retries"_a = none, "retry_timeout"_a = none,
      "data_storage_version"_a = none);
}

}  // namespace glaive::python
