#include "exec/bound_columns.h"

#include <algorithm>
#include <utility>

#include <arrow/type.h>

#include "format/table.pb.h"

namespace glaive::exec {
namespace {

bool SameLayout(const lance::table::DataFragment& a,
                const lance::table::DataFragment& b) {
  if (a.files_size() != b.files_size() || a.files_size() == 0) return false;
  for (int i = 0; i < a.files_size(); ++i) {
    const auto& x = a.files(i);
    const auto& y = b.files(i);
    if (x.file_major_version() != y.file_major_version() ||
        x.file_minor_version() != y.file_minor_version() ||
        !std::equal(x.fields().begin(), x.fields().end(), y.fields().begin(),
                    y.fields().end()) ||
        !std::equal(x.column_indices().begin(), x.column_indices().end(),
                    y.column_indices().begin(), y.column_indices().end())) {
      return false;
    }
  }
  return true;
}

}  // namespace

BoundColumns::BoundColumns(file::Schema schema, int num_fragments)
    : written_(std::move(schema)),
      schema_(written_.WithBlobDescriptors()),
      arrow_schema_(schema_.ToArrow()),
      slots_(static_cast<size_t>(num_fragments)) {}

Result<BoundColumns::ProjectionPtr> BoundColumns::Bind(
    const table::Dataset& dataset, int fragment,
    const table::FragmentReader& reader) const {
  const auto slot = static_cast<size_t>(fragment);
  ProjectionPtr neighbour;
  int neighbour_index = -1;
  {
    std::lock_guard lock(mutex_);
    if (slots_[slot] != nullptr) return slots_[slot];
    neighbour_index = last_bound_;
    if (neighbour_index >= 0) neighbour = slots_[static_cast<size_t>(neighbour_index)];
  }
  ProjectionPtr bound;
  if (neighbour != nullptr &&
      SameLayout(dataset.fragment(neighbour_index), dataset.fragment(fragment))) {
    bound = std::move(neighbour);
  } else {
    GLAIVE_ASSIGN_OR_RETURN(table::FragmentProjection projection, reader.Bind(schema_));
    bound = std::make_shared<const table::FragmentProjection>(std::move(projection));
  }
  std::lock_guard lock(mutex_);
  if (slots_[slot] == nullptr) slots_[slot] = std::move(bound);
  last_bound_ = fragment;
  return slots_[slot];
}

}  // namespace glaive::exec
