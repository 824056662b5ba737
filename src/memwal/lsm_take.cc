// Rows by position over all sources of a snapshot.
#include <algorithm>
#include <utility>

#include <arrow/array.h>
#include <arrow/buffer.h>
#include <arrow/compute/api.h>
#include <arrow/table.h>
#include <arrow/type.h>

#include "exec/plan.h"
#include "memwal/lsm_read.h"
#include "memwal/lsm_sources.h"

namespace glaive::memwal {

Result<std::shared_ptr<arrow::Table>> LsmTakeOffsets(LsmSnapshot::Ptr snapshot,
                                                     std::span<const int64_t> offsets,
                                                     const exec::Selection& select) {
  if (snapshot->only_base()) return exec::TakeOffsets(*snapshot->base(), offsets, select);
  GLAIVE_ASSIGN_OR_RETURN(const auto sources, LsmSources::All(*snapshot));
  std::vector<int64_t> ends;  // of the positions in each source
  for (const LsmSource& source : sources) {
    ends.push_back((ends.empty() ? 0 : ends.back()) + source.dataset->count_rows());
  }
  struct Part {
    std::vector<int64_t> offsets;
    std::vector<size_t> slots;  // in the result
  };
  std::vector<Part> parts(sources.size());
  for (size_t i = 0; i < offsets.size(); ++i) {
    const auto end = std::upper_bound(ends.begin(), ends.end(), offsets[i]);
    if (offsets[i] < 0 || end == ends.end()) {
      return InvalidInput("row ", offsets[i], " is out of range: the table has ",
                          ends.back(), " rows");
    }
    const auto source = static_cast<size_t>(end - ends.begin());
    parts[source].offsets.push_back(offsets[i] - (source == 0 ? 0 : ends[source - 1]));
    parts[source].slots.push_back(i);
  }
  std::vector<std::shared_ptr<arrow::Table>> tables;
  // Row i of the result stands at place order[i] of the parts one after another.
  std::vector<int64_t> order(offsets.size());
  int64_t place = 0;
  for (size_t s = 0; s < parts.size(); ++s) {
    if (parts[s].offsets.empty()) continue;
    GLAIVE_ASSIGN_OR_RETURN(
        auto rows, exec::TakeOffsets(*sources[s].dataset, parts[s].offsets, select));
    tables.push_back(std::move(rows));
    for (const size_t slot : parts[s].slots) order[slot] = place++;
  }
  if (tables.empty()) {
    GLAIVE_ASSIGN_OR_RETURN(const auto schema,
                            exec::OutputSchema(*snapshot->base(), select));
    return arrow::Table::MakeEmpty(schema);
  }
  if (tables.size() == 1) return tables[0];
  GLAIVE_ASSIGN_OR_RETURN(const auto joined, arrow::ConcatenateTables(tables));
  if (std::is_sorted(order.begin(), order.end())) return joined;
  const auto places = std::make_shared<arrow::Int64Array>(
      static_cast<int64_t>(order.size()),
      arrow::Buffer::Wrap(order.data(), order.size()));
  GLAIVE_ASSIGN_OR_RETURN(
      const arrow::Datum taken,
      arrow::compute::Take(joined, places, arrow::compute::TakeOptions::NoBoundsCheck()));
  return taken.table();
}

}  // namespace glaive::memwal
