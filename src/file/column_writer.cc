#include "file/column_writer.h"

#include <arrow/array/data.h>
#include <arrow/type.h>

#include "encoding/values.h"

namespace glaive::file {
namespace {

// `start` counts from the first value of the buffers.
int64_t RangeBytes(const arrow::ArrayData& data, int64_t start, int64_t length) {
  if (length == 0) return 0;
  int64_t bytes = 0;
  if (!data.buffers.empty() && data.buffers[0] != nullptr) bytes += (length + 7) / 8;
  const auto below = [&](size_t child, int64_t first, int64_t count) {
    const arrow::ArrayData& c = *data.child_data[child];
    return RangeBytes(c, c.offset + first, count);
  };
  const auto offsets = [&](auto zero) {
    using Offset = decltype(zero);
    const Offset* at = data.GetValues<Offset>(1, start);
    return std::pair<int64_t, int64_t>(at[0], at[length] - at[0]);
  };
  switch (data.type->id()) {
    case arrow::Type::NA:
      return bytes;
    case arrow::Type::STRUCT:
      for (size_t i = 0; i < data.child_data.size(); ++i)
        bytes += below(i, start, length);
      return bytes;
    case arrow::Type::FIXED_SIZE_LIST: {
      const int64_t size =
          static_cast<const arrow::FixedSizeListType&>(*data.type).list_size();
      return bytes + below(0, start * size, length * size);
    }
    case arrow::Type::LIST:
    case arrow::Type::MAP: {
      const auto [first, count] = offsets(int32_t{0});
      return bytes + 4 * length + below(0, first, count);
    }
    case arrow::Type::LARGE_LIST: {
      const auto [first, count] = offsets(int64_t{0});
      return bytes + 8 * length + below(0, first, count);
    }
    case arrow::Type::STRING:
    case arrow::Type::BINARY:
      return bytes + 4 * length + offsets(int32_t{0}).second;
    case arrow::Type::LARGE_STRING:
    case arrow::Type::LARGE_BINARY:
      return bytes + 8 * length + offsets(int64_t{0}).second;
    case arrow::Type::DICTIONARY: {
      const auto& type = static_cast<const arrow::DictionaryType&>(*data.type);
      return bytes + (encoding::FixedBits(*type.index_type()) * length + 7) / 8;
    }
    default:
      return bytes + (encoding::FixedBits(*data.type) * length + 7) / 8;
  }
}

}  // namespace

Result<std::vector<encoding::EncodedPage>> ColumnWriter::Encode(
    const std::shared_ptr<arrow::ArrayData>&) const {
  return InternalError("this column does not make pages apart");
}

Status ColumnWriter::AddPages(const std::vector<encoding::EncodedPage>&) {
  return InternalError("this column does not take pages");
}

int64_t PageBytes(const FileWriterOptions& options) {
  constexpr int64_t kDefaultPageBytes = int64_t{8} << 20;
  return options.page_bytes > 0 ? options.page_bytes : kDefaultPageBytes;
}

int64_t SliceBytes(const arrow::ArrayData& data) {
  return RangeBytes(data, data.offset, data.length);
}

Result<std::vector<std::unique_ptr<ColumnWriter>>> MakeColumnWriters(
    const Field& field, const FileWriterOptions& options, PageSink* sink) {
  if (options.version == FileVersion::k2_0) {
    return MakeColumnWriters20(field, options, sink);
  }
  return MakeStructuralColumnWriters(field, options, sink);
}

}  // namespace glaive::file
