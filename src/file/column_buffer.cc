#include "file/column_buffer.h"

#include <utility>

#include <arrow/array.h>
#include <arrow/array/concatenate.h>

namespace glaive::file {
namespace {

// From this size on a reference is kept when the array is a good part of its batch:
// arrays of one batch may share one allocation.
constexpr int64_t kReferenceBytes = int64_t{1} << 20;
constexpr int64_t kReferenceShare = 4;
// So many neighbours are joined into one.
constexpr size_t kFanIn = 32;
constexpr int64_t kMaxJoinedBytes = int64_t{4} << 20;

Result<std::shared_ptr<arrow::ArrayData>> Join(const arrow::ArrayVector& arrays) {
  GLAIVE_ASSIGN_OR_RETURN(auto joined, arrow::Concatenate(arrays));
  return joined->data();
}

}  // namespace

Status ColumnBuffer::Add(std::shared_ptr<arrow::ArrayData> data, int64_t bytes,
                         int64_t batch_bytes, bool taken_at_once) {
  if (data->length == 0) return Status::OK();
  num_bytes_ += bytes;
  num_rows_ += data->length;
  if (taken_at_once) {
    pieces_.push_back({std::move(data), bytes, 0});
    return Status::OK();
  }
  if (bytes < kReferenceBytes || bytes < batch_bytes / kReferenceShare) {
    GLAIVE_ASSIGN_OR_RETURN(data, Join({arrow::MakeArray(std::move(data))}));
  }
  pieces_.push_back({std::move(data), bytes, 0});
  return JoinSmall();
}

Status ColumnBuffer::JoinSmall() {
  while (pieces_.size() >= kFanIn) {
    const int level = pieces_.back().level;
    int64_t bytes = 0;
    const size_t first = pieces_.size() - kFanIn;
    for (size_t i = first; i < pieces_.size(); ++i) {
      if (pieces_[i].level != level) return Status::OK();
      bytes += pieces_[i].bytes;
    }
    if (bytes > kMaxJoinedBytes) return Status::OK();
    arrow::ArrayVector arrays;
    for (size_t i = first; i < pieces_.size(); ++i) {
      arrays.push_back(arrow::MakeArray(pieces_[i].data));
    }
    GLAIVE_ASSIGN_OR_RETURN(auto joined, Join(arrays));
    pieces_.resize(first);
    pieces_.push_back({std::move(joined), bytes, level + 1});
  }
  return Status::OK();
}

std::vector<std::shared_ptr<arrow::ArrayData>> ColumnBuffer::Take() {
  std::vector<std::shared_ptr<arrow::ArrayData>> out;
  out.reserve(pieces_.size());
  for (Piece& piece : pieces_) out.push_back(std::move(piece.data));
  pieces_.clear();
  num_bytes_ = 0;
  num_rows_ = 0;
  return out;
}

}  // namespace glaive::file
