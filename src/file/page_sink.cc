#include "file/page_sink.h"

#include <array>

#include <arrow/buffer.h>
#include <google/protobuf/any.pb.h>

#include "io/object_store.h"

namespace glaive::file {
namespace {

constexpr uint8_t kPadding = 'H';

}  // namespace

Result<BufferLocation> PageSink::Write(
    std::span<const std::shared_ptr<arrow::Buffer>> pieces) {
  BufferLocation out{writer_->position(), 0};
  for (const auto& piece : pieces) {
    const size_t size = static_cast<size_t>(piece->size());
    GLAIVE_RETURN_NOT_OK(writer_->Append({piece->data(), size}));
    out.size += piece->size();
  }
  GLAIVE_RETURN_NOT_OK(Pad());
  return out;
}

Result<BufferLocation> PageSink::Write(std::span<const uint8_t> bytes) {
  BufferLocation out{writer_->position(), static_cast<int64_t>(bytes.size())};
  GLAIVE_RETURN_NOT_OK(writer_->Append(bytes));
  GLAIVE_RETURN_NOT_OK(Pad());
  return out;
}

int64_t PageSink::position() const { return writer_->position(); }

Status PageSink::Pad() {
  std::array<uint8_t, kBufferAlignment> padding;
  padding.fill(kPadding);
  const int64_t rest = writer_->position() % kBufferAlignment;
  if (rest == 0) return Status::OK();
  return writer_->Append({padding.data(), static_cast<size_t>(kBufferAlignment - rest)});
}

std::string PackAny(std::string_view type_name, const std::string& message) {
  google::protobuf::Any any;
  any.set_type_url("/" + std::string(type_name));
  any.set_value(message);
  return any.SerializeAsString();
}

}  // namespace glaive::file
