// Bytes in memory as an object of a store, for files that are made up.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <arrow/buffer.h>

#include "io/object_store.h"

namespace glaive::fuzz {

class BytesObject final : public io::RandomAccessObject {
 public:
  // `bytes` must outlive the object and what is read of it.
  BytesObject(std::string path, std::span<const uint8_t> bytes)
      : path_(std::move(path)),
        buffer_(std::make_shared<arrow::Buffer>(bytes.data(),
                                                static_cast<int64_t>(bytes.size()))) {}
  const std::string& path() const override { return path_; }
  int64_t size_bytes() const override { return buffer_->size(); }
  Result<std::shared_ptr<arrow::Buffer>> Read(io::ByteRange range) override {
    if (range.offset < 0 || range.length < 0 || range.offset > buffer_->size() ||
        range.length > buffer_->size() - range.offset) {
      return Corruption("out of range");
    }
    return arrow::SliceBuffer(buffer_, range.offset, range.length);
  }
  Result<std::vector<std::shared_ptr<arrow::Buffer>>> ReadMany(
      std::span<const io::ByteRange> ranges) override {
    std::vector<std::shared_ptr<arrow::Buffer>> out;
    for (const auto& range : ranges) {
      GLAIVE_ASSIGN_OR_RETURN(auto buffer, Read(range));
      out.push_back(std::move(buffer));
    }
    return out;
  }

 private:
  const std::string path_;
  const std::shared_ptr<arrow::Buffer> buffer_;
};

}  // namespace glaive::fuzz
