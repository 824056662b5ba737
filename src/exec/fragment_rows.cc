#include "exec/fragment_rows.h"

#include <bit>
#include <utility>

#include <arrow/array.h>
#include <arrow/array/util.h>
#include <arrow/buffer.h>
#include <arrow/compute/api.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>

#include "table/deletion_vector.h"
#include "table/row_id_index.h"
#include "table/row_ids.h"
#include "table/view.h"

namespace glaive::exec {
namespace {

// Below one row in so many, rows are read one by one.
constexpr int64_t kSelectiveShare = 16;

// A uint64 array filled by `value(i)`.
template <typename Value>
Result<std::shared_ptr<arrow::Array>> MakeUInt64(int64_t rows, Value&& value) {
  GLAIVE_ASSIGN_OR_RETURN(std::shared_ptr<arrow::Buffer> buffer,
                          arrow::AllocateBuffer(rows * 8));
  auto* out = reinterpret_cast<uint64_t*>(buffer->mutable_data());
  for (int64_t i = 0; i < rows; ++i) out[i] = value(i);
  return std::make_shared<arrow::UInt64Array>(rows, std::move(buffer), nullptr, 0);
}

// The version of row i, for i = 0, 1, ...: looks forward from the run of the row before,
// which holds the next one as a rule.
template <typename Offset>
auto VersionOf(const std::vector<table::RowVersionRun>& runs, const Offset& offset) {
  return [&runs, &offset, run = size_t{0}, begin = int64_t{0}](int64_t i) mutable {
    const int64_t place = offset(i);
    if (place < begin) run = 0, begin = 0;
    while (place - begin >= runs[run].count) begin += runs[run++].count;
    return runs[run].version;
  };
}

// Of rows that have no place in the table yet.
Result<MetaColumns> NullMeta(const MetaNeeds& needs, int64_t rows) {
  GLAIVE_ASSIGN_OR_RETURN(auto nulls, arrow::MakeArrayOfNull(arrow::uint64(), rows));
  MetaColumns meta;
  if (needs.row_id) meta.row_id = nulls;
  if (needs.row_address) meta.row_address = nulls;
  if (needs.row_offset) meta.row_offset = nulls;
  if (needs.row_created_at) meta.row_created_at = nulls;
  if (needs.row_updated_at) meta.row_updated_at = nulls;
  return meta;
}

template <typename Offset>
Result<MetaColumns> MakeMeta(const FragmentRows& fragment, const MetaNeeds& needs,
                             int64_t rows, const Offset& offset) {
  MetaColumns meta;
  if (needs.any() && table::HasAnonymousRows(*fragment.dataset)) {
    return NullMeta(needs, rows);
  }
  const auto address = [&](int64_t i) {
    return table::RowAddress::Make(fragment.id, static_cast<uint32_t>(offset(i))).value;
  };
  if (needs.row_address) {
    GLAIVE_ASSIGN_OR_RETURN(meta.row_address, MakeUInt64(rows, address));
  }
  if (needs.row_id) {
    GLAIVE_ASSIGN_OR_RETURN(auto ids, fragment.RowIds());
    if (ids.empty()) {
      GLAIVE_ASSIGN_OR_RETURN(meta.row_id, MakeUInt64(rows, address));
    } else {
      GLAIVE_ASSIGN_OR_RETURN(meta.row_id, MakeUInt64(rows, [&](int64_t i) {
                                return ids[static_cast<size_t>(offset(i))];
                              }));
    }
  }
  if (needs.row_offset) {
    // The place among the live rows of the whole table.
    const auto place = [&](int64_t i) {
      const int64_t physical = offset(i);
      const int64_t deleted = fragment.deletions == nullptr
                                  ? 0
                                  : fragment.deletions->CountInRange(0, physical);
      return static_cast<uint64_t>(fragment.live_begin + physical - deleted);
    };
    GLAIVE_ASSIGN_OR_RETURN(meta.row_offset, MakeUInt64(rows, place));
  }
  const auto versions =
      [&](table::RowVersion which) -> Result<std::shared_ptr<arrow::Array>> {
    GLAIVE_ASSIGN_OR_RETURN(const auto runs, fragment.reader->RowVersionRuns(which));
    return MakeUInt64(rows, VersionOf(runs, offset));
  };
  if (needs.row_created_at) {
    GLAIVE_ASSIGN_OR_RETURN(meta.row_created_at, versions(table::RowVersion::kCreatedAt));
  }
  if (needs.row_updated_at) {
    GLAIVE_ASSIGN_OR_RETURN(meta.row_updated_at,
                            versions(table::RowVersion::kLastUpdatedAt));
  }
  return meta;
}

}  // namespace

Result<FragmentRows> FragmentRows::Open(const table::Dataset& dataset,
                                        const SnapshotState& state, int index) {
  FragmentRows rows;
  rows.dataset = &dataset;
  rows.index = index;
  rows.live_begin = state.live_begin()[static_cast<size_t>(index)];
  GLAIVE_ASSIGN_OR_RETURN(rows.reader, dataset.OpenFragment(index));
  rows.id = rows.reader->id();
  rows.deletions = rows.reader->deletions();
  return rows;
}

Result<std::shared_ptr<arrow::RecordBatch>> FragmentRows::ReadRange(
    const BoundColumns& columns, int64_t start, int64_t count) const {
  if (columns.empty()) return std::shared_ptr<arrow::RecordBatch>();
  GLAIVE_ASSIGN_OR_RETURN(auto projection, columns.Bind(*dataset, index, *reader));
  return reader->ReadRange(*projection, start, count);
}

Result<std::shared_ptr<arrow::RecordBatch>> FragmentRows::Take(
    const BoundColumns& columns, std::span<const int64_t> offsets) const {
  if (columns.empty()) return std::shared_ptr<arrow::RecordBatch>();
  GLAIVE_ASSIGN_OR_RETURN(auto projection, columns.Bind(*dataset, index, *reader));
  return reader->Take(*projection, offsets);
}

Result<std::span<const uint64_t>> FragmentRows::RowIds() const {
  GLAIVE_ASSIGN_OR_RETURN(auto ids, reader->row_ids());
  if (!ids.empty() && static_cast<int64_t>(ids.size()) < reader->physical_rows()) {
    return Corruption("fragment ", id, " has ", ids.size(), " row ids for ",
                      reader->physical_rows(), " rows");
  }
  return ids;
}

Result<MetaColumns> FragmentRows::MetaOfRange(const MetaNeeds& needs, int64_t start,
                                              int64_t count) const {
  if (!needs.any()) return MetaColumns();
  return MakeMeta(*this, needs, count, [start](int64_t i) { return start + i; });
}

Result<MetaColumns> FragmentRows::MetaOfRows(const MetaNeeds& needs,
                                             std::span<const int64_t> offsets) const {
  if (!needs.any()) return MetaColumns();
  return MakeMeta(*this, needs, static_cast<int64_t>(offsets.size()),
                  [offsets](int64_t i) { return offsets[static_cast<size_t>(i)]; });
}

int64_t RowMask::CountInRange(int64_t begin, int64_t end) const {
  if (all() || begin >= end) return end - begin;
  const auto first = static_cast<size_t>(begin / 64);
  const auto last = static_cast<size_t>((end - 1) / 64);
  const uint64_t head = ~uint64_t{0} << (begin % 64);
  const uint64_t tail = ~uint64_t{0} >> (63 - (end - 1) % 64);
  if (first == last) return std::popcount(words[first] & head & tail);
  int64_t rows = std::popcount(words[first] & head) + std::popcount(words[last] & tail);
  for (size_t w = first + 1; w < last; ++w) rows += std::popcount(words[w]);
  return rows;
}

std::vector<int64_t> RowMask::Offsets(int64_t start) const {
  std::vector<int64_t> offsets;
  offsets.reserve(static_cast<size_t>(count));
  for (size_t w = 0; w < words.size(); ++w) {
    for (uint64_t word = words[w]; word != 0; word &= word - 1) {
      offsets.push_back(start + static_cast<int64_t>(w) * 64 + std::countr_zero(word));
    }
  }
  return offsets;
}

Result<RowMask> SelectRows(const FragmentRows& fragment, const FilterPlan* filter,
                           int64_t start, int64_t count) {
  RowMask mask;
  mask.count = count;
  const bool has_deletions = fragment.deletions != nullptr &&
                             fragment.deletions->CountInRange(start, start + count) > 0;
  if (filter == nullptr && !has_deletions) return mask;
  const auto words = static_cast<size_t>((count + 63) / 64);
  mask.words.assign(words, filter == nullptr ? ~uint64_t{0} : 0);
  if (filter != nullptr) {
    GLAIVE_ASSIGN_OR_RETURN(auto read, fragment.ReadRange(*filter->read, start, count));
    GLAIVE_ASSIGN_OR_RETURN(auto meta, fragment.MetaOfRange(filter->needs, start, count));
    GLAIVE_ASSIGN_OR_RETURN(auto input, filter->Input(read, count, meta));
    GLAIVE_ASSIGN_OR_RETURN(mask.count,
                            filter->predicate->Evaluate(
                                *input, reinterpret_cast<uint8_t*>(mask.words.data())));
    if (!has_deletions) {
      if (mask.count == count) mask.words.clear();
      return mask;
    }
  } else if (count % 64 != 0) {
    mask.words.back() = (uint64_t{1} << (count % 64)) - 1;
  }
  fragment.deletions->MaskRange(start, count,
                                reinterpret_cast<uint8_t*>(mask.words.data()));
  mask.count = 0;
  for (uint64_t word : mask.words) mask.count += std::popcount(word);
  return mask;
}

bool IsSelective(const RowMask& mask, int64_t count) {
  return !mask.all() && mask.count <= count / kSelectiveShare;
}

Result<std::shared_ptr<arrow::RecordBatch>> ReadSelected(const FragmentRows& fragment,
                                                         const OutputPlan& output,
                                                         int64_t start, int64_t count,
                                                         const RowMask& mask) {
  if (mask.all()) {
    GLAIVE_ASSIGN_OR_RETURN(auto read, fragment.ReadRange(*output.read, start, count));
    GLAIVE_ASSIGN_OR_RETURN(auto meta, fragment.MetaOfRange(output.needs, start, count));
    return output.Assemble(read, count, meta);
  }
  if (output.read->empty() || IsSelective(mask, count)) {
    const std::vector<int64_t> offsets = mask.Offsets(start);
    GLAIVE_ASSIGN_OR_RETURN(auto read, fragment.Take(*output.read, offsets));
    GLAIVE_ASSIGN_OR_RETURN(auto meta, fragment.MetaOfRows(output.needs, offsets));
    return output.Assemble(read, mask.count, meta);
  }
  GLAIVE_ASSIGN_OR_RETURN(auto read, fragment.ReadRange(*output.read, start, count));
  const auto bits = std::make_shared<arrow::BooleanArray>(
      count, arrow::Buffer::Wrap(mask.words.data(), mask.words.size()));
  GLAIVE_ASSIGN_OR_RETURN(arrow::Datum filtered, arrow::compute::Filter(read, bits));
  MetaColumns meta;
  if (output.needs.any()) {
    GLAIVE_ASSIGN_OR_RETURN(meta, fragment.MetaOfRows(output.needs, mask.Offsets(start)));
  }
  return output.Assemble(filtered.record_batch(), mask.count, meta);
}

}  // namespace glaive::exec
