// Exact k-nearest-neighbour search.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <arrow/type_fwd.h>

#include "base/status.h"
#include "exec/scan.h"
#include "table/dataset.h"

namespace glaive::exec {

// Distances as upstream defines them: l2 is the squared Euclidean distance, cosine is 1 -
// cos, dot is 1 - dot product, hamming counts differing bits (uint8 columns).
enum class Metric : uint8_t { kL2, kCosine, kDot, kHamming };

// "l2" or "euclidean", "cosine", "dot", "hamming", any case; InvalidInput lists them
// otherwise.
Result<Metric> ParseMetric(std::string_view name);

struct NearestOptions {
  std::string column;  // path; empty: the only vector column of matching dimension
  // Query vectors: an array of fixed-size or variable lists of numbers, one row per
  // query; all of the column's dimension (InvalidInput otherwise).
  std::shared_ptr<arrow::Array> queries;
  // The rows of `queries` are one multi-vector query (column of lists of vectors): the
  // distance of a row is the sum over query vectors of the smallest distance to a vector
  // of the row.
  bool multivector = false;
  Metric metric = Metric::kL2;
  // Whoever resolves the search takes the metric of the column's index, where it has one.
  bool metric_of_index = false;
  int64_t k = 10;  // rows returned per query, after `offset`
  int64_t offset = 0;
  std::string filter;
  bool prefilter = true;             // false: filter the k nearest afterwards
  std::optional<float> lower_bound;  // inclusive
  std::optional<float> upper_bound;  // exclusive
  Selection select;
  CancelToken* cancel = nullptr;
};

// Rows by ascending distance, ties by row id; rows whose vector is null or whose distance
// is NaN never appear. `_distance` (float32) is appended last; with several queries
// `query_index` (int32) comes with it and rows are grouped by query.
Result<std::shared_ptr<arrow::Table>> Nearest(
    std::shared_ptr<const table::Dataset> dataset, NearestOptions options);

// The same over several snapshots with the same columns, as if they were one table; of
// rows at the same distance those of earlier snapshots come first. At least one.
Result<std::shared_ptr<arrow::Table>> NearestOf(
    std::vector<std::shared_ptr<const table::Dataset>> datasets, NearestOptions options);

// The vector column that a search without a column name means: InvalidInput when there is
// none or more than one (listing them).
Result<std::string> InferVectorColumn(const file::Schema& schema,
                                      std::optional<int64_t> dimension);

std::string ExplainNearest(const table::Dataset& dataset, const NearestOptions& options);

}  // namespace glaive::exec
