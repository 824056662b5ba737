// What manifests and files say of vector indices, which are not searched here yet.
#pragma once

#include <cstdint>
#include <optional>

#include "base/status.h"
#include "exec/nearest.h"
#include "table/dataset.h"

namespace lance::table {
class IndexMetadata;
}

namespace glaive::exec {

// The metric that a vector index was made for. Where its details are empty, as older
// writers leave them, its file is read. Corruption.
Result<Metric> MetricOf(const table::Dataset& dataset,
                        const lance::table::IndexMetadata& index);

// That of the vector index over a column, which searches use that name no metric;
// nullopt: there is none.
Result<std::optional<Metric>> IndexMetric(const table::Dataset& dataset,
                                          int32_t field_id);

}  // namespace glaive::exec
