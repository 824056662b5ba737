#include "exec/row_bytes.h"

#include <utility>

#include <arrow/array.h>
#include <arrow/buffer.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>
#include <arrow/type_traits.h>
#include <arrow/util/byte_size.h>

namespace glaive::exec {

std::optional<int64_t> RowBytes(const arrow::ArrayData& data, int64_t begin,
                                int64_t count) {
  int64_t bytes = 0;
  if (data.buffers[0] != nullptr) bytes += (count + 7) / 8;
  begin += data.offset;
  const auto span_of_offsets = [&]<typename T>(T) -> std::pair<int64_t, int64_t> {
    bytes += count * static_cast<int64_t>(sizeof(T));  // one each, as upstream counts
    if (count == 0 || data.buffers[1] == nullptr || data.buffers[1]->size() == 0) {
      return {0, 0};
    }
    const auto* offsets = reinterpret_cast<const T*>(data.buffers[1]->data());
    return {offsets[begin], offsets[begin + count]};
  };
  const auto add_child = [&](int64_t from, int64_t to) -> std::optional<int64_t> {
    const auto child = RowBytes(*data.child_data[0], from, to - from);
    if (!child) return std::nullopt;
    return bytes + *child;
  };
  switch (data.type->id()) {
    case arrow::Type::STRING:
    case arrow::Type::BINARY: {
      const auto [from, to] = span_of_offsets(int32_t{});
      return bytes + to - from;
    }
    case arrow::Type::LARGE_STRING:
    case arrow::Type::LARGE_BINARY: {
      const auto [from, to] = span_of_offsets(int64_t{});
      return bytes + to - from;
    }
    case arrow::Type::LIST: {
      const auto [from, to] = span_of_offsets(int32_t{});
      return add_child(from, to);
    }
    case arrow::Type::LARGE_LIST: {
      const auto [from, to] = span_of_offsets(int64_t{});
      return add_child(from, to);
    }
    case arrow::Type::FIXED_SIZE_LIST: {
      const int64_t size =
          static_cast<const arrow::FixedSizeListType&>(*data.type).list_size();
      return add_child(begin * size, (begin + count) * size);
    }
    case arrow::Type::STRUCT: {
      for (const auto& child : data.child_data) {
        const auto part = RowBytes(*child, begin, count);
        if (!part) return std::nullopt;
        bytes += *part;
      }
      return bytes;
    }
    default:
      break;
  }
  if (!arrow::is_fixed_width(data.type->id()) ||
      data.type->id() == arrow::Type::DICTIONARY) {
    return std::nullopt;
  }
  const int64_t bits = static_cast<const arrow::FixedWidthType&>(*data.type).bit_width();
  return bytes + (count * bits + 7) / 8;
}

int64_t RowBytes(const arrow::RecordBatch& batch) {
  int64_t bytes = 0;
  for (int c = 0; c < batch.num_columns(); ++c) {
    const arrow::ArrayData& data = *batch.column_data(c);
    if (const auto part = RowBytes(data, 0, data.length)) {
      bytes += *part;
      continue;
    }
    const auto referred = arrow::util::ReferencedBufferSize(*batch.column(c));
    bytes += referred.ok() ? *referred : arrow::util::TotalBufferSize(*batch.column(c));
  }
  return bytes;
}

}  // namespace glaive::exec
