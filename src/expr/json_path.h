// JSONPath over JSONB (docs/format/jsonb.md).
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

// $, .name, ["name"], [3], [last - 1], [1 to 2], [*], .* in any order. Filters are
// NotSupported; what is no path is InvalidInput.
class JsonPath {
 public:
  JsonPath() = default;
  static Result<JsonPath> Parse(std::string_view text);
  // Appends the value that the path leads to; several are put into an array. False when
  // there is none.
  Result<bool> Select(std::string_view document, std::string* out) const;

 private:
  struct Bound {
    bool from_end = false;
    int64_t offset = 0;
  };
  struct Range {
    Bound first;
    Bound last;
  };
  struct Step {
    enum class Kind : uint8_t { kName, kAnyMember, kPositions, kAnyElement } kind;
    std::string name;
    std::vector<Range> positions;
  };
  std::vector<Step> steps_;
};

}  // namespace glaive::expr
