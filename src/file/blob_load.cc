#include "file/blob_load.h"

#include <utility>
#include <vector>

#include <arrow/array.h>
#include <arrow/builder.h>
#include <arrow/type.h>

#include "file/assemble.h"

namespace glaive::file {
namespace {

Result<std::shared_ptr<arrow::ArrayData>> LoadDescriptors(
    io::RandomAccessObject& object, const Field& field,
    const std::shared_ptr<arrow::ArrayData>& data) {
  const arrow::StructArray descriptors(data);
  const auto position_array = descriptors.field(0);
  const auto size_array = descriptors.field(1);
  const auto& positions = static_cast<const arrow::UInt64Array&>(*position_array);
  const auto& sizes = static_cast<const arrow::UInt64Array&>(*size_array);
  // Position 1 without bytes is how version 2.0 marks a missing value.
  auto missing = [&](int64_t i) {
    return descriptors.IsNull(i) || (sizes.Value(i) == 0 && positions.Value(i) != 0);
  };
  std::vector<io::ByteRange> wanted;
  const auto limit = static_cast<uint64_t>(object.size_bytes());
  for (int64_t i = 0; i < descriptors.length(); ++i) {
    if (missing(i) || sizes.Value(i) == 0) continue;
    const uint64_t position = positions.Value(i);
    const uint64_t size = sizes.Value(i);
    if (position > limit || size > limit - position) {
      return Corruption("file '", object.path(), "', column '", field.name,
                        "': a blob lies at ", position, " with ", size,
                        " bytes, beyond the end of the file");
    }
    wanted.push_back({static_cast<int64_t>(position), static_cast<int64_t>(size)});
  }
  GLAIVE_ASSIGN_OR_RETURN(auto blobs, object.ReadMany(wanted));
  arrow::LargeBinaryBuilder builder;
  size_t next = 0;
  for (int64_t i = 0; i < descriptors.length(); ++i) {
    if (missing(i)) {
      GLAIVE_RETURN_NOT_OK(builder.AppendNull());
    } else if (sizes.Value(i) == 0) {
      GLAIVE_RETURN_NOT_OK(builder.AppendEmptyValue());
    } else {
      const auto& bytes = *blobs[next++];
      GLAIVE_RETURN_NOT_OK(builder.Append(bytes.data(), bytes.size()));
    }
  }
  GLAIVE_ASSIGN_OR_RETURN(auto array, builder.Finish());
  return array->data();
}

}  // namespace

Result<std::shared_ptr<arrow::ArrayData>> LoadBlobColumn(
    io::RandomAccessObject& object, const Field& field,
    const std::shared_ptr<arrow::ArrayData>& data) {
  if (IsBlobV1(field)) return LoadDescriptors(object, field, data);
  if (field.is_blob()) {
    return NotSupported("column '", field.name,
                        "': moving blobs of the second kind (lance.blob.v2) to another "
                        "data file, as updates and compaction do");
  }
  if (field.owns_column() || ReadType(field) == field.type) return data;
  auto out = data->Copy();
  out->type = field.type;
  for (size_t i = 0; i < field.children.size(); ++i) {
    GLAIVE_ASSIGN_OR_RETURN(out->child_data[i], LoadBlobColumn(object, field.children[i],
                                                               data->child_data[i]));
  }
  return out;
}

}  // namespace glaive::file
