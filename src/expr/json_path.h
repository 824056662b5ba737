// JSONPath over JSONB (docs/format/jsonb.md), in the dialect of upstream's JSON
// functions.
//
//   $  .name  ."name"  :name  ["name"]  [3]  [last - 1]  [0, 2 to last]  [*]  .*
//   .**  .**{1 to last}  ?(condition)
//
// A condition joins comparisons (== != <> < <= > >=), `starts with` and exists(path) by
// && and ||; operands are literals and paths from the document ($) or the item (@). The
// whole text may also be a condition, which gives true, false or null, or one arithmetic
// operation on numbers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "expr/json_item.h"

namespace glaive::expr {

struct JsonExpr;

struct JsonBound {
  bool from_end = false;
  int64_t offset = 0;
};
struct JsonRange {
  JsonBound first;
  JsonBound last;
};
struct JsonStep {
  enum class Kind : uint8_t {
    kName,
    kAnyMember,
    kPositions,
    kAnyElement,  // of what is no array: itself
    kRecursive,   // the item and what is in it, of levels [from_level, to_level]
    kFilter
  } kind = Kind::kName;
  std::string name;
  std::vector<JsonRange> positions;
  uint32_t from_level = 0;
  uint32_t to_level = UINT32_MAX;
  std::shared_ptr<const JsonExpr> filter;
};

struct JsonOperand {
  enum class Kind : uint8_t { kLiteral, kRoot, kCurrent } kind = Kind::kLiteral;
  JsonItem::Kind literal = JsonItem::Kind::kNull;
  bool flag = false;
  JsonNumber number;
  std::string text;
  std::vector<JsonStep> steps;
};

struct JsonExpr {
  enum class Kind : uint8_t {
    kAnd,         // two children or more
    kOr,          // two children or more
    kCompare,     // op; left, right
    kStartsWith,  // left, right
    kExists,      // left
    kUnary,       // op '+' or '-'; left
    kBinary       // op + - * / %; left, right
  } kind;
  // Of comparisons: = ! < > for == != < >, l for <=, g for >=.
  char op = 0;
  JsonOperand left;
  JsonOperand right;
  std::vector<std::shared_ptr<const JsonExpr>> children;
};

// Immutable; thread-safe.
class JsonPath {
 public:
  JsonPath() = default;
  // InvalidInput shows what is no path, and where.
  static Result<JsonPath> Parse(std::string_view text);
  // Appends the value that the path leads to; several are put into an array. False when
  // there is none. Arithmetic on what is no single number, and division by zero, are
  // evaluation errors.
  Result<bool> Select(std::string_view document, std::string* out) const;
  // The first of them alone.
  Result<bool> SelectFirst(std::string_view document, std::string* out) const;

 private:
  Result<bool> Select(std::string_view document, bool first, std::string* out) const;

  std::vector<JsonStep> steps_;
  std::shared_ptr<const JsonExpr> expr_;  // instead of steps
};

}  // namespace glaive::expr
