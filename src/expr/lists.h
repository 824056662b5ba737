// Lists of any kind as ranges of elements, and lists made by picking elements.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <arrow/type_fwd.h>

#include "base/status.h"
#include "expr/kernel.h"

namespace glaive::expr {

// Row i holds the elements [begin(i), end(i)) of values().
class Lists {
 public:
  explicit Lists(const Arg& arg);
  const ArrayPtr& values() const { return values_; }
  int64_t begin(int64_t row) const { return At(row * stride_); }
  int64_t end(int64_t row) const { return At(row * stride_ + 1); }
  bool IsNull(int64_t row) const { return array_->IsNull(row * stride_); }

 private:
  int64_t At(int64_t i) const {
    if (narrow_ != nullptr) return narrow_[i];
    if (wide_ != nullptr) return wide_[i];
    return (offset_ + i) * size_;
  }
  ArrayPtr array_;
  ArrayPtr values_;
  const int32_t* narrow_ = nullptr;
  const int64_t* wide_ = nullptr;
  int64_t offset_ = 0;
  int64_t size_ = 0;
  int64_t stride_;
};

// Collects a list per row out of elements of one array.
class ListPicker {
 public:
  explicit ListPicker(int64_t rows) : valid_(static_cast<size_t>(WordCount(rows)) + 1) {
    offsets_.push_back(0);
  }
  void Pick(int64_t element) { picks_.push_back(element); }
  // Elements that are not in the array: nulls.
  void PickNull() { picks_.push_back(-1); }
  void Close() {
    SetBit(valid_.data(), static_cast<int64_t>(offsets_.size()) - 1);
    offsets_.push_back(static_cast<int64_t>(picks_.size()));
  }
  void CloseNull() {
    picks_.resize(static_cast<size_t>(offsets_.back()));
    offsets_.push_back(offsets_.back());
  }
  // The lists; `type` is a list or large list of the elements' type.
  Result<ArrayPtr> Finish(const ArrayPtr& elements, const TypePtr& type);

 private:
  std::vector<int64_t> picks_;
  std::vector<int64_t> offsets_;
  Words valid_;
};

struct FunctionEntry;
// The functions of func_list_sets.cc.
const std::vector<FunctionEntry>& ListSetFunctions();

// Those of func_list_make.cc.
const std::vector<FunctionEntry>& ListMakeFunctions();

// elements[picks[i]], null where a pick is -1.
Result<ArrayPtr> TakeElements(const ArrayPtr& elements,
                              const std::vector<int64_t>& picks);

// Equal numbers for equal elements of all the arrays, which have one type; -1 for nulls.
Result<std::vector<std::vector<int32_t>>> Encode(const std::vector<ArrayPtr>& arrays);

// The rank of each element among all; elements that are equal may have different ones.
// Lists are ordered by their first elements that differ, structs by their members.
Result<std::vector<int64_t>> Ranks(const ArrayPtr& values);

}  // namespace glaive::expr
