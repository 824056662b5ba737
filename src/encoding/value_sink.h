// Growable Arrow buffers that page decoders append decoded values to.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include <arrow/type_fwd.h>

#include "base/status.h"

namespace glaive::encoding {

using Bytes = std::span<const uint8_t>;

// `count` consecutive rows, values or levels from `start` on.
struct ValueRange {
  int64_t start = 0;
  int64_t count = 0;
};

template <typename T>
T LoadUnaligned(const uint8_t* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

// a * b for counts that come from disk; -1 when negative or beyond 2^62.
inline int64_t CheckedMultiply(int64_t a, int64_t b) {
  int64_t out = 0;
  if (a < 0 || b < 0 || __builtin_mul_overflow(a, b, &out)) return -1;
  return out > (int64_t{1} << 62) ? -1 : out;
}

// Bytes that grow at the end. The first append may be a borrowed buffer (zero-copy);
// later appends then copy it.
class ByteSink {
 public:
  int64_t size() const { return size_; }
  const uint8_t* data() const { return data_; }
  uint8_t* mutable_data() { return data_; }
  // Makes room for `extra` bytes at tail().
  Status Reserve(int64_t extra) {
    if (extra <= capacity_ - size_) [[likely]]
      return Status::OK();
    return Grow(extra);
  }
  uint8_t* tail() { return data_ + size_; }
  void Advance(int64_t bytes) { size_ += bytes; }
  Status Append(const uint8_t* from, int64_t bytes) {
    GLAIVE_RETURN_NOT_OK(Reserve(bytes));
    if (bytes > 0) std::memcpy(tail(), from, static_cast<size_t>(bytes));
    size_ += bytes;
    return Status::OK();
  }
  Status AppendZeros(int64_t bytes);
  // Borrows `buffer` when nothing was appended before, else copies.
  Status AppendBuffer(const std::shared_ptr<arrow::Buffer>& buffer);
  // Forgets the contents, keeps the memory.
  void Clear();
  // The bytes appended; the sink is empty afterwards. Never null.
  std::shared_ptr<arrow::Buffer> Finish();

 private:
  Status Grow(int64_t extra);

  uint8_t* data_ = nullptr;
  int64_t size_ = 0;
  int64_t capacity_ = 0;  // of owned memory; 0 while borrowing
  std::shared_ptr<arrow::ResizableBuffer> owned_;
  std::shared_ptr<arrow::Buffer> borrowed_;
};

// A bitmap that grows at the end, LSB first.
class BitSink {
 public:
  int64_t length() const { return length_; }
  const uint8_t* data() const { return bytes_.data(); }
  uint8_t* mutable_data() { return bytes_.mutable_data(); }
  Status Append(const uint8_t* bits, int64_t offset, int64_t count);
  Status AppendRun(bool value, int64_t count);
  // Bit i is 1 where levels[i] <= limit. Returns the number of zeros.
  Result<int64_t> AppendAtMost(const uint16_t* levels, int64_t count, uint16_t limit);
  std::shared_ptr<arrow::Buffer> Finish();

 private:
  Status Extend(int64_t count);

  ByteSink bytes_;
  int64_t length_ = 0;
};

// Validity of the slots of one array; takes memory only once a null was seen.
class ValiditySink {
 public:
  int64_t length() const { return length_; }
  int64_t null_count() const { return null_count_; }
  Status AppendValid(int64_t count);
  Status AppendNulls(int64_t count);
  Status AppendBitmap(const uint8_t* bits, int64_t offset, int64_t count);
  // Valid where levels[i] <= limit.
  Status AppendLevels(const uint16_t* levels, int64_t count, uint16_t limit);
  bool IsValid(int64_t slot) const;
  // Null when every slot is valid.
  std::shared_ptr<arrow::Buffer> Finish();

 private:
  Status Materialise();

  BitSink bits_;
  bool materialised_ = false;
  int64_t length_ = 0;
  int64_t null_count_ = 0;
};

// How the values of an Arrow type lie in memory; what decoders work on.
struct ValueShape {
  enum class Kind : uint8_t {
    kNull,           // no data
    kBits,           // booleans
    kFixed,          // byte_width bytes each
    kVariable,       // offsets and bytes
    kFixedSizeList,  // list_size values of the only child
    kStruct,         // packed structs and blob descriptors
    kDictionary,     // indices of byte_width bytes into a dictionary
  };
  Kind kind = Kind::kNull;
  int64_t byte_width = 0;
  int64_t list_size = 0;
  bool wide_offsets = false;  // kVariable: 64-bit
  std::shared_ptr<arrow::DataType> type;
  std::vector<ValueShape> children;

  // NotSupported for types that no leaf column holds.
  static Result<ValueShape> Of(const std::shared_ptr<arrow::DataType>& type);
  // Bytes per value when that is a constant (bits count as 1/8, rounded up), else -1.
  int64_t FixedBytes() const;
  // A shape of `byte_width` opaque bytes (dictionary indices, descriptors).
  static ValueShape Fixed(int64_t byte_width);
};

// Values of one leaf column, without the validity of the leaf itself.
class ValueSink {
 public:
  explicit ValueSink(const ValueShape& shape);  // `shape` must outlive the sink

  const ValueShape& shape() const { return *shape_; }
  int64_t length() const { return length_; }
  void AddLength(int64_t count) { length_ += count; }

  // Room for `count` more values of fixed width. ResourceExhausted beyond 2^62 bytes.
  Status ReserveValues(int64_t count);
  // kVariable: values with offsets[0..count] into `bytes`, all checked by the caller.
  template <typename Offset>
  Status AppendVariable(const uint8_t* offsets, int64_t count, const uint8_t* bytes);
  // kVariable: one value.
  Status AppendOne(const uint8_t* bytes, int64_t size);
  // kVariable: the offsets of `count` values whose bytes the caller appends to data().
  Status AppendEnds(const int64_t* ends, int64_t count);
  // Placeholder values (zero, empty) for slots that are null.
  Status AppendEmpty(int64_t count);
  // kDictionary: the dictionary that the indices appended from now on refer to.
  Status SetDictionary(const std::shared_ptr<arrow::Array>& dictionary);

  // kFixed, kDictionary: the values; kVariable: the bytes.
  ByteSink& data() { return data_; }
  const ByteSink& data() const { return data_; }
  ByteSink& offsets() { return offsets_; }
  BitSink& bits() { return bits_; }
  // Validity of the slots of a child of a fixed-size list or struct.
  ValiditySink& validity() { return validity_; }
  std::vector<ValueSink>& children() { return children_; }

  // Slots whose stored index was outside the dictionary: only nulls may have that.
  void MarkMustBeNull(int64_t slot) { must_be_null_.push_back(slot); }
  const std::vector<int64_t>& must_be_null() const { return must_be_null_; }

  void Clear();
  // `validity` (null: all valid) belongs to the values themselves.
  Result<std::shared_ptr<arrow::ArrayData>> Finish(
      std::shared_ptr<arrow::Buffer> validity, int64_t null_count);

 private:
  Status StartOffsets();
  Result<std::shared_ptr<arrow::ArrayData>> FinishDictionary(
      std::shared_ptr<arrow::Buffer> validity, int64_t null_count);

  const ValueShape* shape_;
  int64_t length_ = 0;
  ByteSink data_;
  ByteSink offsets_;
  BitSink bits_;
  ValiditySink validity_;
  std::vector<ValueSink> children_;
  std::vector<int64_t> must_be_null_;
  std::shared_ptr<arrow::Array> dictionary_;
  std::vector<std::shared_ptr<arrow::Array>>
      pieces_;  // finished parts with other dictionaries
  int64_t piece_start_ = 0;
};

extern template Status ValueSink::AppendVariable<uint32_t>(const uint8_t*, int64_t,
                                                           const uint8_t*);
extern template Status ValueSink::AppendVariable<uint64_t>(const uint8_t*, int64_t,
                                                           const uint8_t*);

}  // namespace glaive::encoding
