#include "file/gather_rows.h"

#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include <arrow/array.h>
#include <arrow/buffer.h>
#include <arrow/compute/api_vector.h>
#include <arrow/type.h>
#include <arrow/util/bit_util.h>

namespace glaive::file {
namespace {

using arrow::ArrayData;
using Positions = std::span<const int64_t>;

Result<std::shared_ptr<arrow::Buffer>> GatherBits(const uint8_t* bits, int64_t offset,
                                                  Positions positions) {
  const auto count = static_cast<int64_t>(positions.size());
  GLAIVE_ASSIGN_OR_RETURN(auto out,
                          arrow::AllocateBuffer(arrow::bit_util::BytesForBits(count)));
  std::memset(out->mutable_data(), 0, static_cast<size_t>(out->size()));
  for (int64_t i = 0; i < count; ++i) {
    if (arrow::bit_util::GetBit(bits, offset + positions[static_cast<size_t>(i)])) {
      arrow::bit_util::SetBit(out->mutable_data(), i);
    }
  }
  return std::shared_ptr<arrow::Buffer>(std::move(out));
}

Result<std::shared_ptr<arrow::Buffer>> GatherFixed(const uint8_t* values, int64_t width,
                                                   Positions positions) {
  GLAIVE_ASSIGN_OR_RETURN(
      auto out, arrow::AllocateBuffer(static_cast<int64_t>(positions.size()) * width));
  uint8_t* to = out->mutable_data();
  auto copy = [&](auto constant) {
    constexpr int64_t kWidth = decltype(constant)::value;
    for (int64_t position : positions) {
      std::memcpy(to, values + position * kWidth, kWidth);
      to += kWidth;
    }
  };
  switch (width) {
    case 4:
      copy(std::integral_constant<int64_t, 4>());
      break;
    case 8:
      copy(std::integral_constant<int64_t, 8>());
      break;
    default:
      for (int64_t position : positions) {
        std::memcpy(to, values + position * width, static_cast<size_t>(width));
        to += width;
      }
  }
  return std::shared_ptr<arrow::Buffer>(std::move(out));
}

// Null when the values do not fit 32-bit offsets.
template <typename Offset>
Result<std::shared_ptr<ArrayData>> GatherVariable(const ArrayData& data,
                                                  Positions positions) {
  const Offset* offsets = data.GetValues<Offset>(1);
  int64_t total = 0;
  for (int64_t p : positions) total += offsets[p + 1] - offsets[p];
  if (total > std::numeric_limits<Offset>::max()) return nullptr;
  GLAIVE_ASSIGN_OR_RETURN(auto ends, arrow::AllocateBuffer(static_cast<int64_t>(
                                         (positions.size() + 1) * sizeof(Offset))));
  GLAIVE_ASSIGN_OR_RETURN(auto bytes, arrow::AllocateBuffer(total));
  auto* end = reinterpret_cast<Offset*>(ends->mutable_data());
  const uint8_t* from = data.buffers[2] ? data.buffers[2]->data() : nullptr;
  uint8_t* to = bytes->mutable_data();
  Offset at = 0;
  *end++ = 0;
  for (int64_t p : positions) {
    const Offset length = offsets[p + 1] - offsets[p];
    if (length > 0) std::memcpy(to + at, from + offsets[p], static_cast<size_t>(length));
    at += length;
    *end++ = at;
  }
  return ArrayData::Make(data.type, static_cast<int64_t>(positions.size()),
                         {nullptr, std::move(ends), std::move(bytes)});
}

// Bytes per slot of plain values, vectors of them without nulls inside included; else 0.
int64_t PlainWidth(const ArrayData& data) {
  const auto id = data.type->id();
  if (id == arrow::Type::FIXED_SIZE_LIST) {
    const ArrayData& items = *data.child_data[0];
    if (items.GetNullCount() > 0 || items.type->id() == arrow::Type::FIXED_SIZE_LIST)
      return 0;
    return PlainWidth(items) *
           static_cast<const arrow::FixedSizeListType&>(*data.type).list_size();
  }
  if (id == arrow::Type::DICTIONARY) {
    return static_cast<const arrow::DictionaryType&>(*data.type)
        .index_type()
        ->byte_width();
  }
  if (id == arrow::Type::BOOL || !arrow::is_fixed_width(id)) return 0;
  return data.type->byte_width();
}

Result<std::shared_ptr<ArrayData>> GatherPlain(const ArrayData& data, int64_t width,
                                               Positions positions) {
  const auto count = static_cast<int64_t>(positions.size());
  if (data.type->id() != arrow::Type::FIXED_SIZE_LIST) {
    const uint8_t* values = data.buffers[1]->data() + data.offset * width;
    GLAIVE_ASSIGN_OR_RETURN(auto buffer, GatherFixed(values, width, positions));
    auto out = ArrayData::Make(data.type, count, {nullptr, std::move(buffer)});
    out->dictionary = data.dictionary;
    return out;
  }
  const ArrayData& items = *data.child_data[0];
  const int64_t size =
      static_cast<const arrow::FixedSizeListType&>(*data.type).list_size();
  const uint8_t* values =
      items.buffers[1]->data() + items.offset * (width / size) + data.offset * width;
  GLAIVE_ASSIGN_OR_RETURN(auto buffer, GatherFixed(values, width, positions));
  auto child = ArrayData::Make(items.type, count * size, {nullptr, std::move(buffer)}, 0);
  return ArrayData::Make(data.type, count, {nullptr}, {std::move(child)});
}

Result<std::shared_ptr<ArrayData>> GatherValues(const std::shared_ptr<ArrayData>& data,
                                                Positions positions) {
  if (const int64_t width = PlainWidth(*data); width > 0) {
    return GatherPlain(*data, width, positions);
  }
  const auto count = static_cast<int64_t>(positions.size());
  switch (data->type->id()) {
    case arrow::Type::BOOL: {
      GLAIVE_ASSIGN_OR_RETURN(
          auto bits, GatherBits(data->buffers[1]->data(), data->offset, positions));
      return ArrayData::Make(data->type, count, {nullptr, std::move(bits)});
    }
    case arrow::Type::STRING:
    case arrow::Type::BINARY:
      return GatherVariable<int32_t>(*data, positions);
    case arrow::Type::LARGE_STRING:
    case arrow::Type::LARGE_BINARY:
      return GatherVariable<int64_t>(*data, positions);
    case arrow::Type::STRUCT: {
      if (data->offset != 0) return nullptr;
      std::vector<std::shared_ptr<ArrayData>> children;
      for (const auto& child : data->child_data) {
        GLAIVE_ASSIGN_OR_RETURN(auto gathered, GatherRows(child, positions));
        children.push_back(std::move(gathered));
      }
      return ArrayData::Make(data->type, count, {nullptr}, std::move(children));
    }
    default:
      return nullptr;
  }
}

}  // namespace

Result<std::shared_ptr<ArrayData>> GatherRows(const std::shared_ptr<ArrayData>& data,
                                              Positions positions) {
  GLAIVE_ASSIGN_OR_RETURN(auto out, GatherValues(data, positions));
  if (!out) {
    const arrow::Int64Array indices(
        static_cast<int64_t>(positions.size()),
        arrow::Buffer::Wrap(positions.data(), positions.size()));
    GLAIVE_ASSIGN_OR_RETURN(
        auto taken, arrow::compute::Take(*arrow::MakeArray(data), indices,
                                         arrow::compute::TakeOptions::NoBoundsCheck()));
    return taken->data();
  }
  if (data->buffers[0] && data->GetNullCount() > 0) {
    GLAIVE_ASSIGN_OR_RETURN(
        out->buffers[0], GatherBits(data->buffers[0]->data(), data->offset, positions));
    out->null_count = arrow::kUnknownNullCount;
  } else {
    out->null_count = 0;
  }
  return out;
}

}  // namespace glaive::file
