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
#include "db/merge.h"
#include "exec/scan.h"
#include "exec/update.h"
#include "memwal/names.h"

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

// The options of a merge as the Python builders collect them.
exec::MergeOptions ParseMerge(const nb::dict& given, Call* call) {
  exec::MergeOptions options;
  for (const auto& [key, value] : given) {
    const auto name = nb::cast<std::string>(key);
    if (name == "on") {
      options.on = nb::cast<std::vector<std::string>>(value);
    } else if (name == "matched") {
      const auto action = nb::cast<std::string>(value);
      options.matched = action == "update"   ? exec::MatchedAction::kUpdate
                        : action == "delete" ? exec::MatchedAction::kDelete
                        : action == "fail"   ? exec::MatchedAction::kFail
                                             : exec::MatchedAction::kKeep;
    } else if (name == "update_condition") {
      options.update_condition = FilterText(nb::cast<std::string>(value));
    } else if (name == "insert") {
      options.insert_not_matched = nb::cast<bool>(value);
    } else if (name == "delete_not_in_source") {
      options.delete_not_in_source = nb::cast<bool>(value);
    } else if (name == "delete_condition") {
      options.delete_condition = FilterText(nb::cast<std::string>(value));
    } else if (name == "first_seen") {
      options.duplicates = nb::cast<bool>(value) ? exec::SourceDuplicates::kFirstSeen
                                                 : exec::SourceDuplicates::kFail;
    } else if (name == "data_storage_version") {
      options.file_version = Unwrap(file::ParseFileVersion(nb::cast<std::string>(value)));
    } else if (name == "conflict_retries") {
      ApplyRetries(nb::cast<int>(value), std::nullopt, &options.retry);
    } else if (name == "retry_timeout") {
      ApplyRetries(std::nullopt, nb::cast<double>(value), &options.retry);
    } else if (name == "compacted") {
      using Markers = std::vector<std::pair<std::string, uint64_t>>;
      for (const auto& [shard, generation] : nb::cast<Markers>(value)) {
        const auto id = Unwrap(memwal::ShardId::Parse(shard));
        options.compacted.push_back({std::string(id.bytes()), generation});
      }
    } else if (name == "use_lsm" || name == "single_shard") {
      // Which way it goes: see ParseRouting.
    } else if (name == "in_memory") {
      options.source_in_memory = nb::cast<bool>(value);
    } else if (name == "memory_bytes") {
      options.memory_bytes = nb::cast<int64_t>(value);
    } else if (name == "spill_directory") {
      options.spill_directory = nb::cast<std::string>(value);
    } else {
      Raise(InternalError("a merge has no option ", name));
    }
  }
  options.cancel = call->token();
  return options;
}

db::MergeRouting ParseRouting(const nb::dict& given) {
  db::MergeRouting routing;
  if (given.contains("use_lsm")) {
    routing.use_lsm = nb::cast<std::optional<bool>>(given["use_lsm"]);
  }
  if (given.contains("single_shard")) {
    routing.single_shard = nb::cast<bool>(given["single_shard"]);
  }
  return routing;
}

nb::dict MergeToPython(const exec::MergeResult& result) {
  nb::dict out;
  out["version"] = result.dataset->version();
  out["num_inserted_rows"] = result.num_inserted_rows;
  out["num_updated_rows"] = result.num_updated_rows;
  out["num_deleted_rows"] = result.num_deleted_rows;
  out["num_skipped_duplicates"] = result.num_skipped_duplicates;
  out["num_attempts"] = result.num_attempts;
  out["spilled_bytes"] = result.spilled_bytes;
  out["num_passes"] = result.num_passes;
  return out;
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
  c.def(
      "merge_insert",
      [](db::Table& self, const nb::dict& given, nb::object data,
         std::optional<double> timeout) {
        Call call(timeout, nullptr);
        const auto options = ParseMerge(given, &call);
        const auto routing = ParseRouting(given);
        auto stream = ImportStream(data, &call);
        int64_t num_rows = 0;
        nb::dict out = MergeToPython(call.Run([&] {
          return self.MergeInsert(std::move(stream), options, routing, &num_rows);
        }));
        out["num_rows"] = num_rows;
        return out;
      },
      "options"_a, "data"_a, nb::kw_only(), "timeout"_a = nb::none());
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
  c.def(
      "merge_insert",
      [](PyDataset& self, const nb::dict& given, nb::object data) {
        Call call;
        const auto options = ParseMerge(given, &call);
        auto stream = ImportStream(data, &call);
        auto result = call.Run(
            [&] { return db::MergeInto(self.dataset, std::move(stream), options); });
        auto next = std::make_unique<PyDataset>(result.dataset, self.uri);
        return nb::make_tuple(std::move(next), MergeToPython(result));
      },
      "options"_a, "data"_a);
  c.def(
      "explain_merge",
      [](PyDataset& self, const nb::dict& given, nb::object schema) {
        Call call;
        const auto options = ParseMerge(given, &call);
        const auto source =
            schema.is_none() ? self.dataset->arrow_schema() : ImportSchema(schema);
        return call.Run(
            [&] { return db::ExplainMerge(*self.dataset, *source, options); });
      },
      "options"_a, "schema"_a = none);
  c.def(
      "analyze_merge",
      [](PyDataset& self, const nb::dict& given, nb::object data) {
        Call call;
        const auto options = ParseMerge(given, &call);
        auto stream = ImportStream(data, &call);
        return call.Run(
            [&] { return db::AnalyzeMerge(self.dataset, std::move(stream), options); });
      },
      "options"_a, "data"_a);
}

}  // namespace glaive::python
