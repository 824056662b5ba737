// A cursor over protobuf wire format, for the few places that must not build whole
// messages.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace glaive::table {

// Every method returns false on malformed input and then leaves the cursor anywhere
// inside.
class WireReader {
 public:
  enum Type : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

  explicit WireReader(std::span<const uint8_t> bytes)
      : begin_(bytes.data()), p_(bytes.data()), end_(bytes.data() + bytes.size()) {}

  bool done() const { return p_ == end_; }
  size_t position() const { return static_cast<size_t>(p_ - begin_); }

  bool ReadVarint(uint64_t* value) {
    if (p_ < end_ && *p_ < 0x80) {
      *value = *p_++;
      return true;
    }
    uint64_t result = 0;
    for (int shift = 0; shift < 70; shift += 7) {
      if (p_ == end_) return false;
      uint8_t byte = *p_++;
      if (shift == 63 && byte > 1) return false;
      result |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) {
        *value = result;
        return true;
      }
    }
    return false;
  }
  bool ReadTag(uint32_t* field, uint32_t* type) {
    uint64_t tag;
    if (!ReadVarint(&tag) || tag > UINT32_MAX || (tag >> 3) == 0) return false;
    *field = static_cast<uint32_t>(tag >> 3);
    *type = static_cast<uint32_t>(tag & 7);
    return true;
  }
  bool ReadBytes(std::span<const uint8_t>* bytes) {
    uint64_t length;
    if (!ReadVarint(&length) || length > static_cast<uint64_t>(end_ - p_)) return false;
    *bytes = {p_, static_cast<size_t>(length)};
    p_ += length;
    return true;
  }
  bool Skip(uint32_t type) {
    uint64_t ignored;
    std::span<const uint8_t> bytes;
    switch (type) {
      case kVarint:
        return ReadVarint(&ignored);
      case kFixed64:
        return Advance(8);
      case kBytes:
        return ReadBytes(&bytes);
      case kFixed32:
        return Advance(4);
      default:
        return false;
    }
  }

 private:
  bool Advance(size_t count) {
    if (count > static_cast<size_t>(end_ - p_)) return false;
    p_ += count;
    return true;
  }
  const uint8_t* begin_;
  const uint8_t* p_;
  const uint8_t* end_;
};

inline void AppendVarint(std::string* out, uint64_t value) {
  while (value >= 0x80) {
    out->push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  out->push_back(static_cast<char>(value));
}

}  // namespace glaive::table
