// The syntax tree of an expression, before names and types are known.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace glaive::expr {

enum class NodeKind : uint8_t {
  kNull,
  kBool,       // flag
  kNumber,     // text, with a leading '-' when negative
  kString,     // text
  kBinary,     // text holds the bytes
  kDate,       // DATE 'text'
  kTime,       // TIME 'text'
  kTimestamp,  // TIMESTAMP 'text'
  kInterval,   // INTERVAL 'text'
  kArray,      // [children]
  kName,       // path
  kCompare,    // op; two children
  kAnd,        // two children or more
  kOr,         // two children or more
  kNot,        // one child
  kIsNull,     // one child; flag: negated
  kIsTrue,     // one child; flag: negated
  kIsFalse,    // one child; flag: negated
  kDistinct,   // IS DISTINCT FROM; flag: negated
  kIn,         // children[0] IN (children[1...]); flag: negated
  kBetween,    // value, low, high; flag: negated
  kLike,   // value, pattern; flag: negated; text: escape character; op "ilike" ignores
           // case, "similar" is SIMILAR TO
  kRegex,  // value, pattern; flag: negated; op "~" or "~*", which ignores case
  kArithmetic,  // ops[i], one of + - * / % || & | ^ << >>, joins what is before it and
                // children[i + 1]: a chain from left to right is one node
  kNegate,      // one child
  kCast,        // one child; text: the type as written; flag: TRY_CAST
  kAtZone,      // one child AT TIME ZONE 'text'
  kCase,        // flag: the first child is the operand; (when, then)...; op "else": the
                // last child is the ELSE value
  kSubscript,   // value[index]
  kSlice,       // value[low:high] or value[low:high:step]; a missing bound is kNull
  kCall,        // text: lower-case function name; children: arguments
};

enum class CompareOp : uint8_t { kEq, kNe, kLt, kLe, kGt, kGe };

struct PathSegment {
  std::string name;
  bool exact = false;  // quoted: no case folding
};

struct Node {
  NodeKind kind = NodeKind::kNull;
  size_t begin = 0;  // place in the source
  size_t depth = 1;  // height of the tree
  bool flag = false;
  bool double_quoted =
      false;  // kName written as "name": a string when no column has the name
  CompareOp compare = CompareOp::kEq;
  std::string text;
  std::string op;
  std::vector<std::string> ops;  // kArithmetic; of one binding power
  std::vector<PathSegment> path;
  std::vector<std::unique_ptr<Node>> children;
};

// Trees that are higher than this are refused, so that recursion over them is safe.
// Chains of AND, of OR and of operators of one power are one node, however long.
inline constexpr size_t kMaxDepth = 400;
// Brackets in a row, which need no recursion.
inline constexpr size_t kMaxBrackets = 10'000;

// The whole text must be one expression. InvalidInput names the place of the mistake;
// syntax that is SQL but not built here is NotSupported by name.
Result<std::unique_ptr<Node>> Parse(std::string_view sql);

}  // namespace glaive::expr
