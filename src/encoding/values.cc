// Gathers the values of a page from the Arrow arrays that hold them.
#include "encoding/values.h"

#include <algorithm>
#include <cstring>

#include <arrow/array/data.h>
#include <arrow/type.h>
#include <arrow/util/bit_util.h>
#include <arrow/util/bitmap_ops.h>

#include "encoding/out_bytes.h"

namespace glaive::encoding {
namespace {

template <typename Offset>
Status GatherVariableOf(std::span<const Segment> segments, const uint16_t* nulls,
                        VariableValues* out) {
  // `nulls`: per value, non-zero where the slot is null.
  bool copy = segments.size() > 1;
  size_t row = 0;
  int64_t total = 0;
  for (const Segment& s : segments) {
    const Offset* offsets = s.data->GetValues<Offset>(1, s.start);
    if (nulls != nullptr) {
      for (int64_t i = 0; i < s.length; ++i, ++row) {
        if (nulls[row] != 0 && offsets[i + 1] != offsets[i]) {
          copy = true;
        } else {
          total += offsets[i + 1] - offsets[i];
        }
      }
    } else {
      total += offsets[s.length] - offsets[0];
    }
  }
  out->offsets.resize(static_cast<size_t>(out->count) + 1);
  if (!copy) {
    const Segment& s = segments[0];
    const Offset* offsets = s.data->GetValues<Offset>(1, s.start);
    std::copy(offsets, offsets + s.length + 1, out->offsets.begin());
    if (s.data->buffers[2] != nullptr) {
      out->bytes = s.data->buffers[2]->data();
      out->owners.push_back(s.data->buffers[2]);
    }
    return Status::OK();
  }
  OutBytes bytes;
  bytes.Reserve(static_cast<size_t>(total) + 8);
  row = 0;
  out->offsets[0] = 0;
  for (const Segment& s : segments) {
    const Offset* offsets = s.data->GetValues<Offset>(1, s.start);
    const uint8_t* data = s.data->buffers[2] ? s.data->buffers[2]->data() : nullptr;
    if (nulls == nullptr) {
      const int64_t shift = static_cast<int64_t>(bytes.size()) - offsets[0];
      for (int64_t i = 0; i < s.length; ++i) out->offsets[++row] = offsets[i + 1] + shift;
      bytes.Append(data + offsets[0],
                   static_cast<size_t>(offsets[s.length] - offsets[0]));
      continue;
    }
    for (int64_t i = 0; i < s.length; ++i) {
      if (nulls[row] == 0) {
        bytes.Append(data + offsets[i], static_cast<size_t>(offsets[i + 1] - offsets[i]));
      }
      out->offsets[++row] = static_cast<int64_t>(bytes.size());
    }
  }
  auto owner = bytes.Finish();
  out->bytes = owner->data();
  out->owners.push_back(std::move(owner));
  return Status::OK();
}

Result<VariableValues> GatherVariableWith(std::span<const Segment> segments,
                                          const uint16_t* nulls) {
  VariableValues out;
  for (const Segment& s : segments) out.count += s.length;
  if (segments.empty()) {
    out.offsets.assign(1, 0);
    return out;
  }
  const arrow::Type::type id = segments[0].data->type->id();
  out.large = id == arrow::Type::LARGE_STRING || id == arrow::Type::LARGE_BINARY;
  out.binary = id == arrow::Type::BINARY || id == arrow::Type::LARGE_BINARY;
  if (out.large) {
    GLAIVE_RETURN_NOT_OK(GatherVariableOf<int64_t>(segments, nulls, &out));
  } else {
    GLAIVE_RETURN_NOT_OK(GatherVariableOf<int32_t>(segments, nulls, &out));
  }
  return out;
}

}  // namespace

std::shared_ptr<arrow::Buffer> GatherBits(std::span<const Segment> segments, int buffer,
                                          int64_t count) {
  OutBytes out;
  const size_t bytes = static_cast<size_t>((count + 7) / 8);
  uint8_t* to = out.Extend(bytes);
  std::memset(to, 0, bytes);
  int64_t at = 0;
  for (const Segment& s : segments) {
    const auto& bits = s.data->buffers[static_cast<size_t>(buffer)];
    if (bits == nullptr) {
      arrow::bit_util::SetBitsTo(to, at, s.length, true);
    } else {
      arrow::internal::CopyBitmap(bits->data(), s.start, s.length, to, at);
    }
    at += s.length;
  }
  return out.Finish();
}

std::shared_ptr<arrow::Buffer> FixedValues::Contiguous() const {
  if (pieces.size() == 1) return pieces[0];
  OutBytes out(static_cast<size_t>(num_bytes()));
  for (const auto& piece : pieces) {
    out.Append(piece->data(), static_cast<size_t>(piece->size()));
  }
  return out.Finish();
}

int64_t VariableValues::max_length() const {
  int64_t out = 0;
  for (int64_t i = 0; i < count; ++i) out = std::max(out, length(i));
  return out;
}

int64_t FixedListValues::items_per_row() const {
  int64_t out = 1;
  for (int64_t d : dimensions) out *= d;
  return out;
}

bool FixedListValues::has_validity() const {
  return std::any_of(validity.begin(), validity.end(),
                     [](const auto& v) { return v != nullptr; });
}

Result<FixedValues> GatherFixed(std::span<const Segment> segments, int64_t bits) {
  FixedValues out;
  out.bits = bits;
  for (const Segment& s : segments) {
    out.count += s.length;
    const auto& values = s.data->buffers[1];
    if (s.length > 0 &&
        (values == nullptr || values->size() < ((s.start + s.length) * bits + 7) / 8)) {
      return InvalidInput("an array of type ", s.data->type->ToString(),
                          " is longer than its buffer");
    }
  }
  if (bits == 1) {
    if (segments.size() == 1 && segments[0].start % 8 == 0 &&
        segments[0].data->buffers[1]) {
      const Segment& s = segments[0];
      out.pieces.push_back(
          arrow::SliceBuffer(s.data->buffers[1], s.start / 8, (s.length + 7) / 8));
    } else {
      out.pieces.push_back(GatherBits(segments, 1, out.count));
    }
    return out;
  }
  const int64_t width = bits / 8;
  for (const Segment& s : segments) {
    if (s.length == 0) continue;
    out.pieces.push_back(
        arrow::SliceBuffer(s.data->buffers[1], s.start * width, s.length * width));
  }
  // Lists cut the values into many small pieces: joined once, they are cheaper to walk.
  if (out.pieces.size() > 1 &&
      out.num_bytes() / static_cast<int64_t>(out.pieces.size()) < 64 * 1024) {
    out.pieces = {out.Contiguous()};
  }
  return out;
}

Result<VariableValues> GatherVariable(std::span<const Segment> segments) {
  return GatherVariableWith(segments, nullptr);
}

Result<VariableValues> GatherVariable(const Levels& levels) {
  if (levels.def.empty()) return GatherVariableWith(levels.values, nullptr);
  if (levels.num_visible == levels.num_levels) {
    return GatherVariableWith(levels.values, levels.def.data());
  }
  std::vector<uint16_t> visible;
  visible.reserve(static_cast<size_t>(levels.num_visible));
  for (uint16_t def : levels.def) {
    if (def <= levels.max_visible_def) visible.push_back(def);
  }
  return GatherVariableWith(levels.values, visible.data());
}

Result<FixedListValues> GatherFixedList(std::span<const Segment> segments) {
  FixedListValues out;
  std::vector<Segment> layer(segments.begin(), segments.end());
  for (const Segment& s : layer) out.count += s.length;
  int64_t count = out.count;
  const arrow::DataType* type = segments[0].data->type.get();
  int64_t nulls = 0;
  while (type->id() == arrow::Type::FIXED_SIZE_LIST) {
    const auto& list = static_cast<const arrow::FixedSizeListType&>(*type);
    const int64_t dimension = list.list_size();
    nulls = 0;
    for (Segment& s : layer) {
      const arrow::ArrayData* child = s.data->child_data[0].get();
      s = {child, child->offset + s.start * dimension, s.length * dimension};
      nulls += CountNulls(s);
    }
    count *= dimension;
    out.dimensions.push_back(dimension);
    out.validity.push_back(nulls > 0 ? GatherBits(layer, 0, count) : nullptr);
    type = list.value_type().get();
  }
  out.all_items_null = nulls == count && count > 0;
  GLAIVE_ASSIGN_OR_RETURN(out.items, GatherFixed(layer, FixedBits(*type)));
  return out;
}

int64_t FixedBits(const arrow::DataType& type) {
  switch (type.id()) {
    case arrow::Type::BOOL:
      return 1;
    case arrow::Type::UINT8:
    case arrow::Type::INT8:
      return 8;
    case arrow::Type::UINT16:
    case arrow::Type::INT16:
    case arrow::Type::HALF_FLOAT:
      return 16;
    case arrow::Type::UINT32:
    case arrow::Type::INT32:
    case arrow::Type::FLOAT:
    case arrow::Type::DATE32:
    case arrow::Type::TIME32:
      return 32;
    case arrow::Type::UINT64:
    case arrow::Type::INT64:
    case arrow::Type::DOUBLE:
    case arrow::Type::DATE64:
    case arrow::Type::TIME64:
    case arrow::Type::TIMESTAMP:
    case arrow::Type::DURATION:
      return 64;
    case arrow::Type::DECIMAL128:
      return 128;
    case arrow::Type::DECIMAL256:
      return 256;
    case arrow::Type::FIXED_SIZE_BINARY:
      return 8 *
             int64_t{static_cast<const arrow::FixedSizeBinaryType&>(type).byte_width()};
    default:
      return 0;
  }
}

}  // namespace glaive::encoding
