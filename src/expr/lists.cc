#include "expr/lists.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

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

namespace {

// Bytes that are equal for equal values. Of nested values, which Arrow does not encode.
void AppendKey(const arrow::Array& array, int64_t i, std::string* out) {
  if (array.IsNull(i)) {
    out->push_back('\0');
    return;
  }
  out->push_back('\1');
  const auto number = [out](int64_t value) {
    out->append(reinterpret_cast<const char*>(&value), sizeof(value));
  };
  switch (array.type_id()) {
    case arrow::Type::LIST:
    case arrow::Type::LARGE_LIST:
    case arrow::Type::FIXED_SIZE_LIST: {
      const Lists lists(Arg{array.Slice(i, 1), 1});
      number(lists.end(0) - lists.begin(0));
      for (int64_t k = lists.begin(0); k < lists.end(0); ++k) {
        AppendKey(*lists.values(), k, out);
      }
      return;
    }
    case arrow::Type::STRUCT:
      for (const auto& member : static_cast<const arrow::StructArray&>(array).fields()) {
        AppendKey(*member, i, out);
      }
      return;
    case arrow::Type::BOOL:
      out->push_back(static_cast<const arrow::BooleanArray&>(array).Value(i) ? '1' : '0');
      return;
    default:
      break;
  }
  if (IsText(*array.type()) || IsBytes(*array.type())) {
    const Texts texts(Arg{array.Slice(i, 1), 1});
    number(static_cast<int64_t>(texts[0].size()));
    out->append(texts[0]);
    return;
  }
  if (array.type()->byte_width() > 0) {
    const int width = array.type()->byte_width();
    out->append(reinterpret_cast<const char*>(array.data()->buffers[1]->data()) +
                    (array.offset() + i) * width,
                static_cast<size_t>(width));
    return;
  }
  out->append(array.GetScalar(i).ValueOrDie()->ToString());
}

}  // namespace

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
  if (arrow::is_nested(id)) {
    std::unordered_map<std::string, int32_t> known;
    std::vector<std::vector<int32_t>> result;
    std::string key;
    int64_t place = 0;
    for (const ArrayPtr& array : arrays) {
      std::vector<int32_t> part(static_cast<size_t>(array->length()), -1);
      for (int64_t i = 0; i < array->length(); ++i, ++place) {
        if (joined->IsNull(place)) continue;
        key.clear();
        AppendKey(*joined, place, &key);
        part[static_cast<size_t>(i)] =
            known.emplace(key, static_cast<int32_t>(known.size())).first->second;
      }
      result.push_back(std::move(part));
    }
    return result;
  }
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

namespace {

// Compares elements of one array; nulls come first.
class Order {
 public:
  static Result<std::unique_ptr<Order>> Of(const ArrayPtr& values) {
    auto order = std::make_unique<Order>();
    order->values_ = values;
    if (IsList(*values->type())) {
      order->lists_.emplace(Arg{values, 1});
      GLAIVE_ASSIGN_OR_RETURN(auto child, Of(order->lists_->values()));
      order->children_.push_back(std::move(child));
    } else if (values->type_id() == arrow::Type::STRUCT) {
      for (const auto& member :
           static_cast<const arrow::StructArray&>(*values).fields()) {
        GLAIVE_ASSIGN_OR_RETURN(auto child, Of(member));
        order->children_.push_back(std::move(child));
      }
    } else {
      GLAIVE_ASSIGN_OR_RETURN(order->ranks_, Ranks(values));
      GLAIVE_ASSIGN_OR_RETURN(auto codes, Encode({values}));
      order->codes_ = std::move(codes[0]);
    }
    return order;
  }

  int Compare(int64_t a, int64_t b) const {
    const bool a_null = values_->IsNull(a);
    const bool b_null = values_->IsNull(b);
    if (a_null || b_null) return a_null == b_null ? 0 : a_null ? -1 : 1;
    if (lists_) {
      int64_t i = lists_->begin(a);
      int64_t k = lists_->begin(b);
      for (; i < lists_->end(a) && k < lists_->end(b); ++i, ++k) {
        const int order = children_[0]->Compare(i, k);
        if (order != 0) return order;
      }
      return (i < lists_->end(a) ? 1 : 0) - (k < lists_->end(b) ? 1 : 0);
    }
    if (ranks_.empty()) {
      for (const auto& child : children_) {
        const int order = child->Compare(a, b);
        if (order != 0) return order;
      }
      return 0;
    }
    const auto x = static_cast<size_t>(a);
    const auto y = static_cast<size_t>(b);
    if (codes_[x] == codes_[y]) return 0;
    return ranks_[x] < ranks_[y] ? -1 : 1;
  }

 private:
  ArrayPtr values_;
  std::optional<Lists> lists_;
  std::vector<std::unique_ptr<Order>> children_;
  std::vector<int64_t> ranks_;
  std::vector<int32_t> codes_;
};

}  // namespace

Result<std::vector<int64_t>> Ranks(const ArrayPtr& values) {
  const auto count = static_cast<size_t>(values->length());
  std::vector<int64_t> ranks(count);
  if (IsList(*values->type()) || values->type_id() == arrow::Type::STRUCT) {
    GLAIVE_ASSIGN_OR_RETURN(const auto order, Order::Of(values));
    std::vector<int64_t> places(count);
    for (size_t i = 0; i < count; ++i) places[i] = static_cast<int64_t>(i);
    std::stable_sort(places.begin(), places.end(),
                     [&](int64_t a, int64_t b) { return order->Compare(a, b) < 0; });
    for (size_t r = 0; r < count; ++r) {
      ranks[static_cast<size_t>(places[r])] = static_cast<int64_t>(r);
    }
    return ranks;
  }
  ArrayPtr sortable = values;
  if (values->type_id() == arrow::Type::HALF_FLOAT) {
    GLAIVE_ASSIGN_OR_RETURN(arrow::Datum single, CastTo(values, arrow::float32()));
    sortable = single.make_array();
  }
  auto order =
      arrow::compute::SortIndices(*sortable, arrow::compute::SortOrder::Ascending);
  if (!order.ok()) return InvalidInput("expression: ", order.status().message());
  const auto* indices = (*order)->data()->GetValues<uint64_t>(1);
  for (int64_t r = 0; r < values->length(); ++r) {
    ranks[static_cast<size_t>(indices[r])] = r;
  }
  return ranks;
}

}  // namespace glaive::expr
