#include "expr/lists.h"

#include <arrow/array.h>
#include <arrow/array/concatenate.h>
#include <arrow/array/util.h>
#include <arrow/compute/api.h>
#include <arrow/type.h>

namespace glaive::expr {

Lists::Lists(const Arg& arg) : array_(arg.array), stride_(arg.stride) {
  const arrow::ArrayData& data = *arg.array->data();
  values_ = arrow::MakeArray(data.child_data[0]);
  switch (data.type->id()) {
    case arrow::Type::LIST:
      narrow_ = data.GetValues<int32_t>(1);
      break;
    case arrow::Type::LARGE_LIST:
      wide_ = data.GetValues<int64_t>(1);
      break;
    default:
      offset_ = data.offset;
      size_ = static_cast<const arrow::FixedSizeListType&>(*data.type).list_size();
  }
}

Result<ArrayPtr> TakeElements(const ArrayPtr& elements,
                              const std::vector<int64_t>& picks) {
  const auto count = static_cast<int64_t>(picks.size());
  Words valid(static_cast<size_t>(WordCount(count)) + 1);
  bool nulls = false;
  for (int64_t i = 0; i < count; ++i) {
    if (picks[static_cast<size_t>(i)] >= 0) {
      SetBit(valid.data(), i);
    } else {
      nulls = true;
    }
  }
  std::shared_ptr<arrow::Buffer> bitmap;
  if (nulls) {
    GLAIVE_ASSIGN_OR_RETURN(bitmap, ToBuffer(valid, count));
  }
  const arrow::Int64Array indices(count, arrow::Buffer::Wrap(picks), bitmap);
  auto taken = arrow::compute::Take(*elements, indices);
  GLAIVE_RETURN_NOT_OK(taken.status());
  return *taken;
}

Result<ArrayPtr> ListPicker::Finish(const ArrayPtr& elements, const TypePtr& type) {
  const auto rows = static_cast<int64_t>(offsets_.size()) - 1;
  GLAIVE_ASSIGN_OR_RETURN(ArrayPtr values, TakeElements(elements, picks_));
  GLAIVE_ASSIGN_OR_RETURN(auto bitmap, ToBuffer(valid_, rows));
  std::shared_ptr<arrow::Buffer> offsets;
  if (type->id() == arrow::Type::LARGE_LIST) {
    offsets = arrow::Buffer::FromVector(std::move(offsets_));
  } else {
    if (offsets_.back() > INT32_MAX) {
      return InvalidInput("expression: the lists of one batch have too many elements");
    }
    offsets =
        arrow::Buffer::FromVector(std::vector<int32_t>(offsets_.begin(), offsets_.end()));
  }
  return arrow::MakeArray(
      arrow::ArrayData::Make(type, rows, {bitmap, offsets}, {values->data()}));
}

Result<std::vector<std::vector<int32_t>>> Encode(const std::vector<ArrayPtr>& arrays) {
  ArrayPtr joined = arrays[0];
  if (arrays.size() > 1) {
    GLAIVE_ASSIGN_OR_RETURN(joined, arrow::Concatenate(arrays));
  }
  const auto id = joined->type_id();
  if (id == arrow::Type::HALF_FLOAT) {
    GLAIVE_ASSIGN_OR_RETURN(arrow::Datum single, CastTo(joined, arrow::float32()));
    joined = single.make_array();
  }
  ArrayPtr codes;
  if (id != arrow::Type::NA) {
    GLAIVE_ASSIGN_OR_RETURN(arrow::Datum encoded,
                            CallArrow("dictionary_encode", {joined}));
    codes = static_cast<const arrow::DictionaryArray&>(*encoded.make_array()).indices();
  }
  std::vector<std::vector<int32_t>> result;
  int64_t at = 0;
  for (const ArrayPtr& array : arrays) {
    std::vector<int32_t> part(static_cast<size_t>(array->length()), -1);
    if (codes != nullptr) {
      const auto* values = codes->data()->GetValues<int32_t>(1);
      for (int64_t i = 0; i < array->length(); ++i) {
        if (codes->IsValid(at + i)) part[static_cast<size_t>(i)] = values[at + i];
      }
    }
    at += array->length();
    result.push_back(std::move(part));
  }
  return result;
}

}  // namespace glaive::expr
