// A growing byte buffer that leaves new bytes uninitialised.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <utility>

#include <arrow/buffer.h>

namespace glaive::encoding {

static_assert(std::endian::native == std::endian::little,
              "pages are little-endian and written by plain copies");

class OutBytes {
 public:
  OutBytes() = default;
  explicit OutBytes(size_t capacity) { Reserve(capacity); }

  size_t size() const { return size_; }
  uint8_t* data() { return data_.get(); }
  const uint8_t* data() const { return data_.get(); }
  std::span<const uint8_t> view() const { return {data_.get(), size_}; }

  void Reserve(size_t capacity) {
    if (capacity <= capacity_) return;
    auto grown = std::make_unique_for_overwrite<uint8_t[]>(capacity);
    if (size_ > 0) std::memcpy(grown.get(), data_.get(), size_);
    data_ = std::move(grown);
    capacity_ = capacity;
  }

  // Adds `count` bytes and returns where they begin. Their content is the caller's to
  // fill.
  uint8_t* Extend(size_t count) {
    if (size_ + count > capacity_) Reserve(std::max(capacity_ * 2, size_ + count + 64));
    uint8_t* at = data_.get() + size_;
    size_ += count;
    return at;
  }

  void Append(const void* bytes, size_t count) {
    if (count > 0) std::memcpy(Extend(count), bytes, count);
  }
  void Append(std::span<const uint8_t> bytes) { Append(bytes.data(), bytes.size()); }

  template <typename T>
  void Put(T value) {
    std::memcpy(Extend(sizeof(T)), &value, sizeof(T));
  }

  // Fills up to the next multiple of `alignment`.
  void PadTo(size_t alignment, uint8_t byte) {
    const size_t rest = size_ % alignment;
    if (rest == 0) return;
    std::memset(Extend(alignment - rest), byte, alignment - rest);
  }

  void Truncate(size_t size) { size_ = size; }

  // Hands the bytes over; this object is empty afterwards.
  std::shared_ptr<arrow::Buffer> Finish() {
    class Owner : public arrow::Buffer {
     public:
      Owner(std::unique_ptr<uint8_t[]> bytes, size_t size)
          : arrow::Buffer(bytes.get(), static_cast<int64_t>(size)),
            bytes_(std::move(bytes)) {}

     private:
      std::unique_ptr<uint8_t[]> bytes_;
    };
    if (!data_) Reserve(1);
    auto out = std::make_shared<Owner>(std::move(data_), size_);
    size_ = capacity_ = 0;
    return out;
  }

 private:
  std::unique_ptr<uint8_t[]> data_;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

}  // namespace glaive::encoding
