#include "exec/moved_rows.h"

#include <algorithm>
#include <utility>

#include <arrow/array.h>
#include <arrow/buffer.h>
#include <arrow/compute/api.h>
#include <arrow/record_batch.h>

#include "file/blob_load.h"
#include "format/table.pb.h"

namespace glaive::exec {
namespace {

// Below one row in so many, rows are read one by one.
constexpr int64_t kSelectiveShare = 16;

}  // namespace

Result<std::shared_ptr<arrow::RecordBatch>> ReadToRewrite(
    const FragmentRows& fragment, const BoundColumns& columns, int64_t start,
    int64_t count, std::span<const uint32_t> offsets) {
  if (columns.empty()) return std::shared_ptr<arrow::RecordBatch>();
  GLAIVE_ASSIGN_OR_RETURN(
      auto projection, columns.Bind(*fragment.dataset, fragment.index, *fragment.reader));
  const auto wanted = static_cast<int64_t>(offsets.size());
  std::shared_ptr<arrow::RecordBatch> batch;
  if (wanted <= count / kSelectiveShare) {
    const std::vector<int64_t> rows(offsets.begin(), offsets.end());
    GLAIVE_ASSIGN_OR_RETURN(batch, fragment.reader->Take(*projection, rows));
  } else {
    GLAIVE_ASSIGN_OR_RETURN(batch, fragment.reader->ReadRange(*projection, start, count));
    const bool all = wanted == count &&
                     std::adjacent_find(offsets.begin(), offsets.end()) == offsets.end();
    if (!all) {
      std::vector<int64_t> picks(offsets.size());
      for (size_t i = 0; i < offsets.size(); ++i) picks[i] = offsets[i] - start;
      const arrow::Int64Array indices(wanted,
                                      arrow::Buffer::Wrap(picks.data(), picks.size()));
      GLAIVE_ASSIGN_OR_RETURN(
          arrow::Datum taken,
          arrow::compute::Take(batch, indices,
                               arrow::compute::TakeOptions::NoBoundsCheck()));
      batch = taken.record_batch();
    }
  }
  return fragment.reader->LoadBlobs(*projection, columns.written(), batch);
}

bool HoldsBlobs(const file::Field& field) {
  if (field.is_blob()) return true;
  for (const file::Field& child : field.children) {
    if (HoldsBlobs(child)) return true;
  }
  return false;
}

std::vector<int64_t> CutByBlobs(const file::Schema& written,
                                const arrow::RecordBatch& batch) {
  constexpr uint64_t kBlobBytes = uint64_t{32} << 20;
  std::vector<uint64_t> bytes(static_cast<size_t>(batch.num_rows()));
  for (int c = 0; c < batch.num_columns(); ++c) {
    file::AddBlobBytes(written.fields()[static_cast<size_t>(c)], *batch.column_data(c),
                       &bytes);
  }
  std::vector<int64_t> ends;
  uint64_t sum = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (sum > 0 && bytes[i] > kBlobBytes - std::min(sum, kBlobBytes)) {
      ends.push_back(static_cast<int64_t>(i));
      sum = 0;
    }
    sum += bytes[i];
  }
  if (batch.num_rows() > 0) ends.push_back(batch.num_rows());
  return ends;
}

Status MovedIdentity::Add(const FragmentRows& fragment,
                          std::span<const uint32_t> offsets) {
  if (!stable_) return Status::OK();
  GLAIVE_ASSIGN_OR_RETURN(const auto ids, fragment.RowIds());
  if (ids.empty()) {
    return Corruption("fragment ", fragment.id,
                      " of a table with stable row ids has none");
  }
  auto versions = versions_.find(fragment.id);
  if (versions == versions_.end()) {
    GLAIVE_ASSIGN_OR_RETURN(auto read,
                            fragment.reader->RowVersions(table::RowVersion::kCreatedAt));
    versions = versions_.emplace(fragment.id, std::move(read)).first;
  }
  for (uint32_t offset : offsets) {
    ids_.push_back(ids[offset]);
    const uint64_t version = versions->second[offset];
    if (created_.empty() || created_.back().version != version) {
      created_.push_back({0, version});
    }
    ++created_.back().count;
  }
  return Status::OK();
}

Status MovedIdentity::Stamp(std::vector<lance::table::DataFragment>* fragments) const {
  if (!stable_) return Status::OK();
  size_t at = 0;
  size_t run = 0;
  int64_t used = 0;  // rows of created_[run] that are given out
  for (auto& fragment : *fragments) {
    const auto rows = static_cast<size_t>(fragment.physical_rows());
    if (rows > ids_.size() - at) return InternalError("rows were written without an id");
    fragment.set_inline_row_ids(table::EncodeRowIds(std::span(ids_).subspan(at, rows)));
    std::vector<table::RowVersionRun> runs;
    for (auto left = static_cast<int64_t>(rows); left > 0;) {
      const int64_t step = std::min(left, created_[run].count - used);
      runs.push_back({step, created_[run].version});
      left -= step;
      used += step;
      if (used == created_[run].count) {
        ++run;
        used = 0;
      }
    }
    fragment.set_inline_created_at_versions(table::EncodeRowVersionRuns(runs));
    at += rows;
  }
  if (at != ids_.size()) return InternalError("a row with an id was not written");
  return Status::OK();
}

}  // namespace glaive::exec
