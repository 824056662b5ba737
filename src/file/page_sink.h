// The part of a file being written that columns share: aligned buffers and their
// positions.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <arrow/type_fwd.h>

#include "base/status.h"
#include "format/file2.pb.h"

namespace glaive::io {
class ObjectWriter;
}

namespace glaive::file {

inline constexpr int64_t kBufferAlignment = 64;

struct BufferLocation {
  int64_t offset = 0;
  int64_t size = 0;
};

class PageSink {
 public:
  explicit PageSink(io::ObjectWriter* writer) : writer_(writer) {}

  // Writes the pieces one after the other and pads to the next multiple of 64.
  Result<BufferLocation> Write(std::span<const std::shared_ptr<arrow::Buffer>> pieces);
  Result<BufferLocation> Write(std::span<const uint8_t> bytes);
  int64_t position() const;

 private:
  Status Pad();
  io::ObjectWriter* writer_;
};

// Wraps a message as the format does: an Any inside a direct encoding.
std::string PackAny(std::string_view type_name, const std::string& message);

}  // namespace glaive::file
