#include "exec/take.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include <arrow/array.h>
#include <arrow/array/concatenate.h>
#include <arrow/compute/api.h>
#include <arrow/record_batch.h>
#include <arrow/table.h>

#include "exec/fragment_rows.h"
#include "exec/scan.h"
#include "runtime/runtime.h"
#include "table/deletion_vector.h"
#include "table/row_id_index.h"

namespace glaive::exec {
namespace {

// Rows per fragment from which fragments are read on several threads.
constexpr size_t kParallelRows = 256;

// The rows of one fragment and where they stand in the result.
struct Group {
  int fragment = 0;
  std::vector<int64_t> offsets;
  std::vector<int64_t> slots;
  TakenRows rows;
};

Result<TakenRows> TakeGroup(const table::Dataset& dataset, const SnapshotState& state,
                            const BoundColumns& columns, const MetaNeeds& needs,
                            int fragment, std::span<const int64_t> offsets) {
  GLAIVE_ASSIGN_OR_RETURN(const auto rows, FragmentRows::Open(dataset, state, fragment));
  TakenRows taken;
  GLAIVE_ASSIGN_OR_RETURN(taken.batch, rows.Take(columns, offsets));
  GLAIVE_ASSIGN_OR_RETURN(taken.meta, rows.MetaOfRows(needs, offsets));
  return taken;
}

// Puts the pieces one after another, then into the order asked for.
Result<std::shared_ptr<arrow::Array>> Gather(
    std::vector<std::shared_ptr<arrow::Array>> pieces,
    const std::shared_ptr<arrow::Array>& order) {
  GLAIVE_ASSIGN_OR_RETURN(auto joined, arrow::Concatenate(pieces));
  if (order == nullptr) return joined;
  return arrow::compute::Take(*joined, *order,
                              arrow::compute::TakeOptions::NoBoundsCheck());
}

Result<TakenRows> Merge(const BoundColumns& columns, std::vector<Group>& groups,
                        size_t rows) {
  // Row i of the result stands at place order[i] of the joined groups.
  std::vector<int64_t> order(rows);
  int64_t place = 0;
  bool in_order = true;
  for (const Group& group : groups) {
    for (int64_t slot : group.slots) {
      in_order &= slot == place;
      order[static_cast<size_t>(slot)] = place++;
    }
  }
  std::shared_ptr<arrow::Array> indices;
  if (!in_order) {
    indices = std::make_shared<arrow::Int64Array>(
        static_cast<int64_t>(rows), arrow::Buffer::Wrap(order.data(), order.size()));
  }
  TakenRows taken;
  if (!columns.empty()) {
    std::vector<std::shared_ptr<arrow::Array>> arrays;
    const auto& schema = groups[0].rows.batch->schema();
    for (int c = 0; c < schema->num_fields(); ++c) {
      std::vector<std::shared_ptr<arrow::Array>> pieces;
      for (const Group& group : groups) pieces.push_back(group.rows.batch->column(c));
      GLAIVE_ASSIGN_OR_RETURN(auto array, Gather(std::move(pieces), indices));
      arrays.push_back(std::move(array));
    }
    taken.batch =
        arrow::RecordBatch::Make(schema, static_cast<int64_t>(rows), std::move(arrays));
  }
  const auto gather_meta =
      [&](std::shared_ptr<arrow::Array> MetaColumns::*column) -> Status {
    if (groups[0].rows.meta.*column == nullptr) return Status::OK();
    std::vector<std::shared_ptr<arrow::Array>> pieces;
    for (const Group& group : groups) pieces.push_back(group.rows.meta.*column);
    GLAIVE_ASSIGN_OR_RETURN(taken.meta.*column, Gather(std::move(pieces), indices));
    return Status::OK();
  };
  GLAIVE_RETURN_NOT_OK(gather_meta(&MetaColumns::row_id));
  GLAIVE_RETURN_NOT_OK(gather_meta(&MetaColumns::row_address));
  GLAIVE_RETURN_NOT_OK(gather_meta(&MetaColumns::row_offset));
  GLAIVE_RETURN_NOT_OK(gather_meta(&MetaColumns::row_created_at));
  GLAIVE_RETURN_NOT_OK(gather_meta(&MetaColumns::row_updated_at));
  return taken;
}

Result<std::shared_ptr<arrow::Table>> TakePlaces(const table::Dataset& dataset,
                                                 const SnapshotState& state,
                                                 const Selection& select,
                                                 std::span<const RowPlace> places) {
  GLAIVE_ASSIGN_OR_RETURN(auto plan, state.Output(dataset, select));
  if (places.empty()) return arrow::Table::MakeEmpty(plan->schema);
  GLAIVE_ASSIGN_OR_RETURN(const TakenRows taken,
                          TakeRows(dataset, state, *plan->read, plan->needs, places));
  GLAIVE_ASSIGN_OR_RETURN(
      auto batch,
      plan->Assemble(taken.batch, static_cast<int64_t>(places.size()), taken.meta));
  return arrow::Table::FromRecordBatches(plan->schema, {std::move(batch)});
}

}  // namespace

Result<TakenRows> TakeRows(const table::Dataset& dataset, const SnapshotState& state,
                           const BoundColumns& columns, const MetaNeeds& needs,
                           std::span<const RowPlace> places) {
  const bool one_fragment = std::all_of(
      places.begin(), places.end(),
      [&](const RowPlace& place) { return place.fragment == places[0].fragment; });
  if (one_fragment) {
    constexpr size_t kInline = 16;
    int64_t small[kInline];
    std::vector<int64_t> large;
    int64_t* offsets = small;
    if (places.size() > kInline) {
      large.resize(places.size());
      offsets = large.data();
    }
    for (size_t i = 0; i < places.size(); ++i) offsets[i] = places[i].offset;
    return TakeGroup(dataset, state, columns, needs, places[0].fragment,
                     {offsets, places.size()});
  }
  std::vector<size_t> by_fragment(places.size());
  std::iota(by_fragment.begin(), by_fragment.end(), size_t{0});
  std::stable_sort(by_fragment.begin(), by_fragment.end(), [&](size_t a, size_t b) {
    return places[a].fragment < places[b].fragment;
  });
  std::vector<Group> groups;
  for (size_t slot : by_fragment) {
    if (groups.empty() || groups.back().fragment != places[slot].fragment) {
      groups.emplace_back();
      groups.back().fragment = places[slot].fragment;
    }
    groups.back().offsets.push_back(places[slot].offset);
    groups.back().slots.push_back(static_cast<int64_t>(slot));
  }
  const auto run = [&](int64_t g) -> Status {
    Group& group = groups[static_cast<size_t>(g)];
    GLAIVE_ASSIGN_OR_RETURN(group.rows, TakeGroup(dataset, state, columns, needs,
                                                  group.fragment, group.offsets));
    return Status::OK();
  };
  if (places.size() >= kParallelRows) {
    GLAIVE_RETURN_NOT_OK(
        dataset.env().runtime->ParallelFor(static_cast<int64_t>(groups.size()), run));
  } else {
    for (size_t g = 0; g < groups.size(); ++g)
      GLAIVE_RETURN_NOT_OK(run(static_cast<int64_t>(g)));
  }
  return Merge(columns, groups, places.size());
}

Result<std::shared_ptr<arrow::Table>> TakeOffsets(const table::Dataset& dataset,
                                                  std::span<const int64_t> offsets,
                                                  const Selection& select) {
  const auto state = SnapshotState::Of(dataset);
  const int64_t rows = state->live_begin().back();
  std::vector<RowPlace> places;
  places.reserve(offsets.size());
  int known_fragment = -1;
  std::shared_ptr<const table::DeletionVector> deletions;
  for (int64_t ordinal : offsets) {
    if (ordinal < 0 || ordinal >= rows) {
      return InvalidInput("row ", ordinal, " is out of range: the table has ", rows,
                          " rows");
    }
    const int fragment = state->FragmentOfOrdinal(ordinal);
    int64_t offset = ordinal - state->live_begin()[static_cast<size_t>(fragment)];
    if (fragment != known_fragment) {
      GLAIVE_ASSIGN_OR_RETURN(deletions, dataset.deletions(fragment));
      known_fragment = fragment;
    }
    if (deletions != nullptr) {
      offset = deletions->SelectLive(offset, dataset.physical_rows(fragment));
    }
    places.push_back({fragment, offset});
  }
  return TakePlaces(dataset, *state, select, places);
}

Result<std::shared_ptr<arrow::Table>> TakeRowIds(const table::Dataset& dataset,
                                                 std::span<const uint64_t> row_ids,
                                                 const Selection& select) {
  const auto state = SnapshotState::Of(dataset);
  std::shared_ptr<const table::RowIdIndex> index;
  if (dataset.has_stable_row_ids()) {
    GLAIVE_ASSIGN_OR_RETURN(index, dataset.row_id_index());
  }
  std::vector<RowPlace> places;
  places.reserve(row_ids.size());
  for (uint64_t id : row_ids) {
    table::RowAddress address{id};
    if (index != nullptr) {
      const auto found = index->Find(id);
      if (!found) continue;
      address = *found;
    }
    const int fragment = dataset.FindFragment(address.fragment_id());
    if (fragment < 0 || address.offset() >= dataset.physical_rows(fragment)) continue;
    GLAIVE_ASSIGN_OR_RETURN(auto deletions, dataset.deletions(fragment));
    if (deletions != nullptr && deletions->Contains(address.offset())) continue;
    places.push_back({fragment, static_cast<int64_t>(address.offset())});
  }
  return TakePlaces(dataset, *state, select, places);
}

}  // namespace glaive::exec
