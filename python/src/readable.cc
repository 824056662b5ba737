#include "readable.h"

#include <arrow/api.h>

#include "arrow_interop.h"
#include "db/table.h"
#include "exec/select_columns.h"

namespace glaive::python {

PyBatchReader::~PyBatchReader() {
  if (!stream) return;
  nb::gil_scoped_release release;
  stream.reset();
}

Columns ParseColumns(nb::handle columns) {
  Columns out;
  if (columns.is_none()) return out;
  out.all = false;
  if (PyDict_Check(columns.ptr())) {
    out.named_expressions = true;
    for (auto [name, expression] : nb::borrow<nb::dict>(columns)) {
      out.expressions.emplace_back(nb::cast<std::string>(name),
                                   nb::cast<std::string>(expression));
    }
    return out;
  }
  if (nb::isinstance<nb::str>(columns)) {
    throw nb::type_error(
        "columns must be a list of names or a dict from name to expression");
  }
  for (nb::handle name : columns) {
    if (!nb::isinstance<nb::str>(name)) {
      throw nb::type_error(
          "columns must be a list of names or a dict from name to expression");
    }
    out.names.push_back(nb::cast<std::string>(name));
  }
  return out;
}

Result<exec::Selection> MakeSelection(const table::Dataset& dataset,
                                      const Columns& columns, bool with_row_id,
                                      bool with_row_address, bool nested) {
  exec::Selection selection;
  if (columns.named_expressions) {
    selection.columns = columns.expressions;
  } else if (!columns.all && nested) {
    selection.nested = true;
    selection.columns.emplace();
    for (const std::string& name : columns.names)
      selection.columns->emplace_back(name, name);
  } else if (!columns.all) {
    GLAIVE_ASSIGN_OR_RETURN(selection,
                            exec::SelectColumns(dataset.schema(), columns.names));
  }
  selection.with_row_id = with_row_id;
  selection.with_row_address = with_row_address;
  // Asked for twice, a meta column still comes once, where it was named.
  for (const std::string& name : columns.names) {
    if (name == exec::kRowId) selection.with_row_id = false;
    if (name == exec::kRowAddress) selection.with_row_address = false;
  }
  return selection;
}

std::string FilterText(std::optional<std::string> filter) {
  if (!filter) return {};
  if (filter->find_first_not_of(" \t\r\n") == std::string::npos) {
    Raise(InvalidInput(
        "Invalid input, a filter must not be empty; leave it out to get all rows"));
  }
  return std::move(*filter);
}

ScanArguments ParseScan(nb::handle columns, std::optional<std::string> filter,
                        std::optional<int64_t> limit, std::optional<int64_t> offset,
                        bool with_row_id, bool with_row_address, nb::handle fragment_ids,
                        bool in_order, std::optional<int64_t> batch_size,
                        std::optional<int64_t> batch_size_bytes) {
  ScanArguments out;
  out.columns = ParseColumns(columns);
  exec::ScanOptions& options = out.options;
  options.select.with_row_id = with_row_id;
  options.select.with_row_address = with_row_address;
  options.filter = FilterText(std::move(filter));
  if (limit && *limit < 0)
    Raise(InvalidInput("Invalid input, Limit must be non-negative"));
  if (offset && *offset < 0)
    Raise(InvalidInput("Invalid input, Offset must be non-negative"));
  options.limit = limit;
  options.offset = offset.value_or(0);
  if (!fragment_ids.is_none()) {
    options.fragment_ids = ImportOffsets(fragment_ids, "fragment_ids");
    // An empty list in the executor means all fragments; here it means none.
    if (options.fragment_ids.empty()) options.limit = 0;
  }
  options.in_order = in_order;
  if (batch_size) {
    if (*batch_size <= 0)
      Raise(InvalidInput("Invalid input, batch_size must be positive"));
    options.batch_rows = *batch_size;
    options.exact_batches = true;
  }
  if (batch_size_bytes) {
    if (*batch_size_bytes <= 0) {
      Raise(InvalidInput("Invalid input, batch_size_bytes must be positive"));
    }
    options.batch_bytes = *batch_size_bytes;
  }
  return out;
}

NearestArguments ParseNearest(nb::handle queries, std::optional<std::string> column,
                              int64_t k, const std::string& metric,
                              std::optional<std::string> filter, bool prefilter,
                              int64_t offset, std::optional<float> lower_bound,
                              std::optional<float> upper_bound, nb::handle columns,
                              bool with_row_id, bool with_row_address) {
  NearestArguments out;
  out.columns = ParseColumns(columns);
  exec::NearestOptions& options = out.options;
  options.select.with_row_id = with_row_id;
  options.select.with_row_address = with_row_address;
  if (k <= 0) Raise(InvalidInput("Invalid input, k must be positive, it is ", k));
  if (offset < 0) Raise(InvalidInput("Invalid input, Offset must be non-negative"));
  // Without a name: that of the column's index, or l2.
  options.metric_of_index = metric.empty();
  if (!metric.empty()) options.metric = Unwrap(exec::ParseMetric(metric));
  options.queries = ImportQueries(queries);
  options.column = std::move(column).value_or("");
  options.k = k;
  options.offset = offset;
  options.filter = FilterText(std::move(filter));
  options.prefilter = prefilter;
  options.lower_bound = lower_bound;
  options.upper_bound = upper_bound;
  return out;
}

nb::list VersionsToPython(const std::vector<table::VersionInfo>& versions) {
  nb::list out;
  for (const auto& info : versions) {
    nb::dict metadata;
    for (const auto& [key, value] : info.metadata) metadata[key.c_str()] = value;
    nb::dict one;
    one["version"] = info.version;
    one["timestamp_us"] = info.timestamp_us;
    one["metadata"] = std::move(metadata);
    out.append(std::move(one));
  }
  return out;
}

nb::dict TagsToPython(const std::map<std::string, table::TagInfo>& tags) {
  nb::dict out;
  for (const auto& [name, info] : tags) {
    nb::dict one;
    nb::dict metadata;
    for (const auto& [key, value] : info.metadata) {
      metadata[nb::str(key.data(), key.size())] = nb::str(value.data(), value.size());
    }
    one["branch"] = info.branch;
    one["version"] = info.version;
    one["created_us"] = info.created_us;
    one["updated_us"] = info.updated_us;
    one["manifest_size"] = info.manifest_size;
    one["metadata"] = std::move(metadata);
    out[name.c_str()] = std::move(one);
  }
  return out;
}

nb::dict StatsToPython(const table::Dataset& dataset) {
  const db::TableStats stats = Unwrap(db::ComputeStats(dataset));
  const db::FragmentStats& fragments = stats.fragments;
  nb::dict lengths;
  lengths["min"] = fragments.min;
  lengths["max"] = fragments.max;
  lengths["mean"] = fragments.mean;
  lengths["p25"] = fragments.p25;
  lengths["p50"] = fragments.p50;
  lengths["p75"] = fragments.p75;
  lengths["p99"] = fragments.p99;
  nb::dict fragment_stats;
  fragment_stats["num_fragments"] = fragments.num_fragments;
  fragment_stats["num_small_fragments"] = fragments.num_small_fragments;
  fragment_stats["lengths"] = std::move(lengths);
  nb::dict out;
  out["total_bytes"] = stats.total_bytes;
  out["num_rows"] = stats.num_rows;
  out["num_indices"] = stats.num_indices;
  out["fragment_stats"] = std::move(fragment_stats);
  return out;
}

}  // namespace glaive::python
