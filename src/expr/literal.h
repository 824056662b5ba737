// Exact values of literals, and what comparing a column of integers with one comes down
// to.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "expr/ast.h"

namespace glaive::expr {

__extension__ using Int128 = __int128;

// A number as written: mantissa / 10^scale, plus a little more in magnitude when
// `sticky`.
struct Number {
  bool is_integer = false;  // written without point and exponent
  bool negative = false;
  bool huge = false;    // |value| >= 10^38: mantissa is meaningless
  bool sticky = false;  // non-zero digits beyond the mantissa were dropped
  Int128 mantissa = 0;  // signed
  int scale = 0;        // may be negative
  double value = 0;

  static Number Parse(std::string_view text);  // `text` comes from the tokenizer
};

enum class LiteralKind : uint8_t {
  kNull,
  kBool,
  kNumber,
  kString,
  kBinary,
  kDate,
  kTime,
  kTimestamp
};

struct Literal {
  LiteralKind kind = LiteralKind::kNull;
  bool flag = false;
  Number number;
  std::string bytes;  // kString, kBinary
  int64_t days = 0;   // kDate: since 1970-01-01
  Int128 nanos = 0;   // kTime: since midnight; kTimestamp: since the epoch, UTC
};

// Nullopt when `node` is no literal. InvalidInput when a date or time cannot be read.
Result<std::optional<Literal>> LiteralOf(const Node& node);
std::string_view LiteralKindName(LiteralKind kind);

std::optional<int64_t> ParseDate(std::string_view text);  // days
std::optional<Int128> ParseTime(std::string_view text);   // nanoseconds
// Nanoseconds, in UTC. `*zoned`, when asked for: whether the text names its zone.
std::optional<Int128> ParseTimestamp(std::string_view text, bool* zoned = nullptr);

// floor(value) of a rational number and whether that is the number itself.
struct Floor {
  Int128 value = 0;
  bool exact = true;
  int overflow = 0;  // -1: below, +1: above everything that fits
};
// floor(number * 10^scale)
Floor FloorOf(const Number& number, int scale);
// floor(value / divisor)
Floor FloorDiv(Int128 value, Int128 divisor);

// `column op literal`, reduced to what a column of whole numbers in [min, max] can
// distinguish.
struct IntegerTest {
  enum class Kind : uint8_t { kCompare, kAlways, kNever } kind = Kind::kCompare;
  CompareOp op = CompareOp::kEq;
  Int128 value = 0;
};
IntegerTest ReduceToInteger(CompareOp op, const Floor& floor, Int128 min, Int128 max);

// a op b  <=>  b Flip(op) a
CompareOp Flip(CompareOp op);

}  // namespace glaive::expr
