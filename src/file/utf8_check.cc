#include "file/utf8_check.h"

#include <cstdint>
#include <mutex>

#include <arrow/array/data.h>
#include <arrow/buffer.h>
#include <arrow/type.h>
#include <arrow/util/utf8.h>

namespace glaive::file {
namespace {

// One check of all bytes, then that no value begins inside a character.
template <typename Offset>
Status CheckStrings(const arrow::ArrayData& data) {
  if (data.length == 0 || data.buffers[1] == nullptr || data.buffers[2] == nullptr) {
    return Status::OK();
  }
  const auto* offsets = data.GetValues<Offset>(1);
  const uint8_t* bytes = data.buffers[2]->data();
  const Offset begin = offsets[0];
  const Offset end = offsets[data.length];
  if (begin == end) return Status::OK();
  static std::once_flag tables;
  std::call_once(tables, arrow::util::InitializeUTF8);
  bool valid = arrow::util::ValidateUTF8(bytes + begin, end - begin);
  for (int64_t i = 0; valid && i < data.length; ++i) {
    valid = offsets[i] >= end || (bytes[offsets[i]] & 0xC0) != 0x80;
  }
  if (!valid) return Corruption("invalid utf-8 sequence");
  return Status::OK();
}

}  // namespace

Status CheckUtf8(const arrow::ArrayData& data) {
  if (data.type->id() == arrow::Type::STRING) return CheckStrings<int32_t>(data);
  if (data.type->id() == arrow::Type::LARGE_STRING) return CheckStrings<int64_t>(data);
  if (data.dictionary) GLAIVE_RETURN_NOT_OK(CheckUtf8(*data.dictionary));
  for (const auto& child : data.child_data) GLAIVE_RETURN_NOT_OK(CheckUtf8(*child));
  return Status::OK();
}

}  // namespace glaive::file
