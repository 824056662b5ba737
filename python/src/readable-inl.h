// Binds the methods of readable.h to a class; included by the two files that define one.
#pragma once

#include <arrow/table.h>

#include "arrow_interop.h"
#include "db/read_source.h"
#include "db/search.h"
#include "db/table.h"
#include "readable.h"

namespace glaive::python {

// Source(self, use_lsm) gives the Result<db::ReadSource> to read from; called without the
// GIL.
template <typename Self, auto Source>
struct ReadableMethods {
  using Handle = std::shared_ptr<CancelHandle>;

  static int64_t CountRows(Self& self, std::optional<std::string> filter,
                           std::optional<double> timeout, Handle cancel,
                           std::optional<bool> use_lsm) {
    const std::string sql = FilterText(std::move(filter));
    Call call(timeout, std::move(cancel));
    return call.Run([&]() -> Result<int64_t> {
      GLAIVE_ASSIGN_OR_RETURN(const auto source, Source(self, use_lsm));
      return db::CountRows(source, sql, call.token());
    });
  }

  static std::unique_ptr<PyBatchReader> Scan(
      Self& self, nb::object columns, std::optional<std::string> filter,
      std::optional<int64_t> limit, std::optional<int64_t> offset, bool with_row_id,
      bool with_row_address, nb::object fragment_ids, bool in_order,
      std::optional<int64_t> batch_size, std::optional<int64_t> batch_size_bytes,
      std::optional<double> timeout, Handle cancel, std::optional<bool> use_lsm) {
    auto arguments =
        ParseScan(columns, std::move(filter), limit, offset, with_row_id,
                  with_row_address, fragment_ids, in_order, batch_size, batch_size_bytes);
    auto reader = std::make_unique<PyBatchReader>();
    reader->call = std::make_unique<Call>(timeout, std::move(cancel));
    reader->stream =
        reader->call->Run([&]() -> Result<std::shared_ptr<arrow::RecordBatchReader>> {
          GLAIVE_ASSIGN_OR_RETURN(const auto source, Prepare(self, use_lsm, &arguments));
          arguments.options.cancel = reader->call->token();
          return db::Scan(source, std::move(arguments.options));
        });
    reader->schema = reader->stream->schema();
    return reader;
  }

  static nb::object ToTable(
      Self& self, nb::object columns, std::optional<std::string> filter,
      std::optional<int64_t> limit, std::optional<int64_t> offset, bool with_row_id,
      bool with_row_address, nb::object fragment_ids, bool in_order,
      std::optional<int64_t> batch_size, std::optional<int64_t> batch_size_bytes,
      std::optional<double> timeout, Handle cancel, std::optional<bool> use_lsm) {
    auto arguments =
        ParseScan(columns, std::move(filter), limit, offset, with_row_id,
                  with_row_address, fragment_ids, in_order, batch_size, batch_size_bytes);
    Call call(timeout, std::move(cancel));
    return ToPyArrow(call.Run([&]() -> Result<std::shared_ptr<arrow::Table>> {
      GLAIVE_ASSIGN_OR_RETURN(const auto source, Prepare(self, use_lsm, &arguments));
      arguments.options.cancel = call.token();
      return db::ScanToTable(source, std::move(arguments.options));
    }));
  }

  static nb::object Head(Self& self, int64_t n, nb::object columns,
                         std::optional<bool> use_lsm) {
    return ToTable(self, std::move(columns), std::nullopt, n, std::nullopt, false, false,
                   nb::none(), true, std::nullopt, std::nullopt, std::nullopt, nullptr,
                   use_lsm);
  }

  static nb::object Nearest(
      Self& self, nb::object queries, std::optional<std::string> column, int64_t k,
      const std::string& metric, std::optional<std::string> filter, bool prefilter,
      int64_t offset, std::optional<float> lower_bound, std::optional<float> upper_bound,
      nb::object columns, bool with_row_id, bool with_row_address,
      std::optional<double> timeout, Handle cancel, std::optional<bool> use_lsm) {
    auto arguments = ParseNearest(queries, std::move(column), k, metric,
                                  std::move(filter), prefilter, offset, lower_bound,
                                  upper_bound, columns, with_row_id, with_row_address);
    Call call(timeout, std::move(cancel));
    return ToPyArrow(call.Run([&]() -> Result<std::shared_ptr<arrow::Table>> {
      GLAIVE_ASSIGN_OR_RETURN(const auto source, Prepare(self, use_lsm, &arguments));
      arguments.options.cancel = call.token();
      GLAIVE_RETURN_NOT_OK(db::ResolveSearch(*source.base, &arguments.options));
      return db::Nearest(source, std::move(arguments.options));
    }));
  }

  static std::string InferVectorColumn(Self& self, std::optional<int64_t> dimension) {
    Call call;
    return call.Run([&]() -> Result<std::string> {
      GLAIVE_ASSIGN_OR_RETURN(auto dataset, Base(self));
      return exec::InferVectorColumn(dataset->schema(), dimension);
    });
  }

  static nb::object TakeOffsets(Self& self, nb::object offsets, nb::object columns,
                                bool with_row_id, bool with_row_address, bool nested,
                                std::optional<bool> use_lsm) {
    const auto wanted = ImportOffsets(offsets, "offsets");
    const Columns parsed = ParseColumns(columns);
    Call call;
    return ToPyArrow(call.Run([&]() -> Result<std::shared_ptr<arrow::Table>> {
      GLAIVE_ASSIGN_OR_RETURN(const auto source, Source(self, use_lsm));
      GLAIVE_ASSIGN_OR_RETURN(
          auto selection,
          MakeSelection(*source.base, parsed, with_row_id, with_row_address, nested));
      return db::TakeOffsets(source, wanted, selection);
    }));
  }

  static nb::object TakeRowIds(Self& self, nb::object row_ids, nb::object columns,
                               bool with_row_id, bool with_row_address, bool nested,
                               std::optional<bool> use_lsm) {
    const auto wanted = ImportRowIds(row_ids, "row_ids");
    const Columns parsed = ParseColumns(columns);
    Call call;
    return ToPyArrow(call.Run([&]() -> Result<std::shared_ptr<arrow::Table>> {
      GLAIVE_ASSIGN_OR_RETURN(const auto source, Source(self, use_lsm));
      GLAIVE_ASSIGN_OR_RETURN(
          auto selection,
          MakeSelection(*source.base, parsed, with_row_id, with_row_address, nested));
      return db::TakeRowIds(source, wanted, selection);
    }));
  }

  static nb::object OutputSchema(Self& self, nb::object columns, bool with_row_id,
                                 bool with_row_address) {
    const Columns parsed = ParseColumns(columns);
    Call call;
    return ToPyArrow(call.Run([&]() -> Result<std::shared_ptr<arrow::Schema>> {
      GLAIVE_ASSIGN_OR_RETURN(auto dataset, Base(self));
      GLAIVE_ASSIGN_OR_RETURN(
          auto selection, MakeSelection(*dataset, parsed, with_row_id, with_row_address));
      return exec::OutputSchema(*dataset, selection);
    }));
  }

  static std::string ExplainScan(Self& self, nb::object columns,
                                 std::optional<std::string> filter,
                                 std::optional<int64_t> limit,
                                 std::optional<int64_t> offset, bool with_row_id,
                                 bool with_row_address, std::optional<bool> use_lsm) {
    auto arguments =
        ParseScan(columns, std::move(filter), limit, offset, with_row_id,
                  with_row_address, nb::none(), true, std::nullopt, std::nullopt);
    Call call;
    return call.Run([&]() -> Result<std::string> {
      GLAIVE_ASSIGN_OR_RETURN(const auto source, Prepare(self, use_lsm, &arguments));
      return db::ExplainScan(source, arguments.options);
    });
  }

  static std::string ExplainNearest(Self& self, nb::object queries,
                                    std::optional<std::string> column, int64_t k,
                                    const std::string& metric,
                                    std::optional<std::string> filter, bool prefilter,
                                    int64_t offset, std::optional<float> lower_bound,
                                    std::optional<float> upper_bound, nb::object columns,
                                    bool with_row_id, std::optional<bool> use_lsm) {
    auto arguments =
        ParseNearest(queries, std::move(column), k, metric, std::move(filter), prefilter,
                     offset, lower_bound, upper_bound, columns, with_row_id, false);
    Call call;
    return call.Run([&]() -> Result<std::string> {
      GLAIVE_ASSIGN_OR_RETURN(const auto source, Prepare(self, use_lsm, &arguments));
      GLAIVE_RETURN_NOT_OK(db::ResolveSearch(*source.base, &arguments.options));
      return db::ExplainNearest(source, arguments.options);
    });
  }

  static nb::list ListVersions(Self& self) {
    Call call;
    return VersionsToPython(call.Run([&]() -> Result<std::vector<table::VersionInfo>> {
      GLAIVE_ASSIGN_OR_RETURN(auto dataset, Base(self));
      return dataset->ListVersions();
    }));
  }

  using Tags = std::map<std::string, table::TagInfo>;
  static nb::dict ListTags(Self& self) {
    Call call;
    return TagsToPython(call.Run([&]() -> Result<Tags> {
      GLAIVE_ASSIGN_OR_RETURN(auto dataset, Base(self));
      return dataset->ListTags();
    }));
  }

  static int64_t TagVersion(Self& self, const std::string& tag) {
    Call call;
    return call.Run([&]() -> Result<int64_t> {
      GLAIVE_ASSIGN_OR_RETURN(auto dataset, Base(self));
      GLAIVE_ASSIGN_OR_RETURN(auto tags, dataset->ListTags());
      auto found = tags.find(tag);
      if (found == tags.end())
        return NotFound("Ref not found error: tag ", tag, " does not exist");
      return found->second.version;
    });
  }

  static void CreateTag(Self& self, const std::string& tag, int64_t version) {
    Call call;
    call.Run([&]() -> Status {
      GLAIVE_ASSIGN_OR_RETURN(auto dataset, Base(self));
      return dataset->CreateTag(tag, version);
    });
  }

  static void UpdateTag(Self& self, const std::string& tag, int64_t version) {
    Call call;
    call.Run([&]() -> Status {
      GLAIVE_ASSIGN_OR_RETURN(auto dataset, Base(self));
      return dataset->UpdateTag(tag, version);
    });
  }

  static void DeleteTag(Self& self, const std::string& tag) {
    Call call;
    call.Run([&]() -> Status {
      GLAIVE_ASSIGN_OR_RETURN(auto dataset, Base(self));
      return dataset->DeleteTag(tag);
    });
  }

  static nb::dict Stats(Self& self) {
    Call call;
    auto dataset = call.Run([&]() -> Result<table::Dataset::Ptr> { return Base(self); });
    return StatsToPython(*dataset);
  }

  static void Bind(nb::class_<Self>& c) {
    using nb::literals::operator""_a;
    const auto none = nb::none();
    c.def("count_rows", &CountRows, "filter"_a = none, nb::kw_only(), "timeout"_a = none,
          "cancel"_a = none, "use_lsm"_a = none);
    auto scan_arguments = [&](const char* name, auto method) {
      c.def(name, method, "columns"_a = none, "filter"_a = none, "limit"_a = none,
            "offset"_a = none, nb::kw_only(), "with_row_id"_a = false,
            "with_row_address"_a = false, "fragment_ids"_a = none, "in_order"_a = true,
            "batch_size"_a = none, "batch_size_bytes"_a = none, "timeout"_a = none,
            "cancel"_a = none, "use_lsm"_a = none);
    };
    scan_arguments("scan", &Scan);
    scan_arguments("to_table", &ToTable);
    c.def("head", &Head, "n"_a, "columns"_a = none, nb::kw_only(), "use_lsm"_a = none);
    c.def("nearest", &Nearest, "queries"_a, "column"_a = none, "k"_a = 10, nb::kw_only(),
          "metric"_a = "l2", "filter"_a = none, "prefilter"_a = true, "offset"_a = 0,
          "lower_bound"_a = none, "upper_bound"_a = none, "columns"_a = none,
          "with_row_id"_a = false, "with_row_address"_a = false, "timeout"_a = none,
          "cancel"_a = none, "use_lsm"_a = none);
    c.def("infer_vector_column", &InferVectorColumn, "dimension"_a = none);
    c.def("take_offsets", &TakeOffsets, "offsets"_a, "columns"_a = none, nb::kw_only(),
          "with_row_id"_a = false, "with_row_address"_a = false, "nested"_a = false,
          "use_lsm"_a = none);
    c.def("take_row_ids", &TakeRowIds, "row_ids"_a, "columns"_a = none, nb::kw_only(),
          "with_row_id"_a = false, "with_row_address"_a = false, "nested"_a = false,
          "use_lsm"_a = none);
    c.def("output_schema", &OutputSchema, "columns"_a = none, nb::kw_only(),
          "with_row_id"_a = false, "with_row_address"_a = false);
    c.def("explain_scan", &ExplainScan, "columns"_a = none, "filter"_a = none,
          "limit"_a = none, "offset"_a = none, nb::kw_only(), "with_row_id"_a = false,
          "with_row_address"_a = false, "use_lsm"_a = none);
    c.def("explain_nearest", &ExplainNearest, "queries"_a, "column"_a = none, "k"_a = 10,
          nb::kw_only(), "metric"_a = "l2", "filter"_a = none, "prefilter"_a = true,
          "offset"_a = 0, "lower_bound"_a = none, "upper_bound"_a = none,
          "columns"_a = none, "with_row_id"_a = false, "use_lsm"_a = none);
    c.def("list_versions", &ListVersions);
    c.def("list_tags", &ListTags);
    c.def("tag_version", &TagVersion, "tag"_a);
    c.def("create_tag", &CreateTag, "tag"_a, "version"_a);
    c.def("update_tag", &UpdateTag, "tag"_a, "version"_a);
    c.def("delete_tag", &DeleteTag, "tag"_a);
    c.def("stats", &Stats);
  }

 private:
  // The version itself, for what is not a read of rows.
  static Result<table::Dataset::Ptr> Base(Self& self) {
    GLAIVE_ASSIGN_OR_RETURN(auto source, Source(self, false));
    return std::move(source.base);
  }
  // What to read, and the selection bound to it.
  template <typename Arguments>
  static Result<db::ReadSource> Prepare(Self& self, std::optional<bool> use_lsm,
                                        Arguments* arguments) {
    GLAIVE_ASSIGN_OR_RETURN(auto source, Source(self, use_lsm));
    auto& select = arguments->options.select;
    GLAIVE_ASSIGN_OR_RETURN(
        select, MakeSelection(*source.base, arguments->columns, select.with_row_id,
                              select.with_row_address));
    return source;
  }
};

}  // namespace glaive::python
