// One value inside a JSONB document (docs/format/jsonb.md).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "expr/literal.h"

namespace glaive::expr {

struct JsonNumber {
  bool is_integer = false;
  bool is_signed = false;  // stored as one that may be negative
  Int128 integer = 0;
  double floating = 0;
};

// One value inside a JSONB document, whose bytes must outlive it. Sizes and offsets are
// checked; what does not fit is Corruption.
class JsonItem {
 public:
  enum class Kind : uint8_t { kNone, kNull, kBool, kNumber, kString, kArray, kObject };

  JsonItem() = default;
  static Result<JsonItem> Root(std::string_view document);

  bool exists() const { return kind_ != Kind::kNone; }
  Kind kind() const { return kind_; }
  bool flag() const { return flag_; }
  std::string_view text() const { return payload_; }
  Result<JsonNumber> number() const;

  // 0 for what is no array.
  Result<int64_t> ArraySize() const;
  // Not existing when this is no array or the position is outside of it.
  Result<JsonItem> Element(int64_t position) const;
  // Not existing when this is no object or has no such key.
  Result<JsonItem> Member(std::string_view key) const;
  // Elements of an array, or values of an object.
  Result<std::vector<JsonItem>> Children() const;
  // As a document of its own.
  void AppendTo(std::string* out) const;

 private:
  static Result<JsonItem> FromEntry(uint32_t entry, std::string_view payload);
  Result<uint32_t> Word(size_t at) const;

  Kind kind_ = Kind::kNone;
  bool flag_ = false;
  uint32_t entry_ = 0;
  std::string_view payload_;  // of containers: header and all
};

// A key of an object, or a position when the key reads as a number.
Result<JsonItem> JsonMember(std::string_view document, std::string_view key);

// Appends a document that holds nothing but a boolean, null or a number.
void AppendJsonBool(bool value, std::string* out);
void AppendJsonNull(std::string* out);
void AppendJsonNumber(const JsonNumber& number, std::string* out);
// One item as it is, several as an array; false when there is none.
bool AppendJsonItems(const std::vector<JsonItem>& items, std::string* out);

}  // namespace glaive::expr
