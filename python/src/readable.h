// Methods that a table handle and a dataset snapshot share.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include "base/status.h"
#include "call.h"
#include "exec/nearest.h"
#include "exec/scan.h"
#include "table/dataset.h"

namespace glaive::python {

// One version of a table, with the address it was opened at.
struct PyDataset {
  table::Dataset::Ptr dataset;
  std::string uri;
};

// A running scan. Several threads may step it.
struct PyBatchReader {
  std::mutex mutex;            // guards `stream`; taken only without the GIL
  std::unique_ptr<Call> call;  // outlives the stream
  std::shared_ptr<arrow::RecordBatchReader> stream;
  std::shared_ptr<arrow::Schema> schema;

  ~PyBatchReader();
};

// The `columns` argument, before it meets a schema.
struct Columns {
  bool all = true;
  bool named_expressions = false;
  std::vector<std::string> names;
  std::vector<std::pair<std::string, std::string>> expressions;
};

Columns ParseColumns(nb::handle columns);
Result<exec::Selection> MakeSelection(const table::Dataset& dataset,
                                      const Columns& columns, bool with_row_id,
                                      bool with_row_address, bool nested = false);

struct ScanArguments {
  Columns columns;
  exec::ScanOptions options;
};
ScanArguments ParseScan(nb::handle columns, std::optional<std::string> filter,
                        std::optional<int64_t> limit, std::optional<int64_t> offset,
                        bool with_row_id, bool with_row_address, nb::handle fragment_ids,
                        bool in_order, std::optional<int64_t> batch_size,
                        std::optional<int64_t> batch_size_bytes);

struct NearestArguments {
  Columns columns;
  exec::NearestOptions options;
};
NearestArguments ParseNearest(nb::handle queries, std::optional<std::string> column,
                              int64_t k, const std::string& metric,
                              std::optional<std::string> filter, bool prefilter,
                              int64_t offset, std::optional<float> lower_bound,
                              std::optional<float> upper_bound, nb::handle columns,
                              bool with_row_id, bool with_row_address);

// The text of a filter argument; InvalidInput when it is given but blank.
std::string FilterText(std::optional<std::string> filter);

nb::list VersionsToPython(const std::vector<table::VersionInfo>& versions);
nb::dict TagsToPython(const std::map<std::string, table::TagInfo>& tags);
nb::dict StatsToPython(const table::Dataset& dataset);

}  // namespace glaive::python
