// Arrays waiting to become a page: many small ones are joined, large ones only referred
// to.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <arrow/type_fwd.h>

#include "base/status.h"

namespace glaive::file {

class ColumnBuffer {
 public:
  // Keeps `data`, as a copy when a reference could pin much more than its own bytes,
  // unless `taken_at_once` says that Take follows.
  Status Add(std::shared_ptr<arrow::ArrayData> data, int64_t bytes, int64_t batch_bytes,
             bool taken_at_once);

  int64_t num_bytes() const { return num_bytes_; }
  int64_t num_rows() const { return num_rows_; }
  bool empty() const { return pieces_.empty(); }
  // The array that was added last.
  const arrow::ArrayData& back() const { return *pieces_.back().data; }

  // Hands all arrays over and starts anew.
  std::vector<std::shared_ptr<arrow::ArrayData>> Take();

 private:
  struct Piece {
    std::shared_ptr<arrow::ArrayData> data;
    int64_t bytes = 0;
    int level = 0;  // times its rows have been joined
  };
  Status JoinSmall();

  std::vector<Piece> pieces_;
  int64_t num_bytes_ = 0;
  int64_t num_rows_ = 0;
};

}  // namespace glaive::file
