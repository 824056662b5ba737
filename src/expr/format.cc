#include "expr/format.h"

#include <vector>

#include <arrow/type.h>

#include "expr/token.h"

namespace glaive::expr {
namespace {

const arrow::DataType* TypeOf(const Node& node, const file::Schema& schema) {
  if (node.kind != NodeKind::kName) return nullptr;
  std::vector<std::string> path;
  for (const PathSegment& segment : node.path) path.push_back(segment.name);
  const file::Field* field = schema.FindByPath(path);
  return field == nullptr ? nullptr : field->type.get();
}

std::string NumberType(const Node& node, const arrow::DataType* met) {
  if (met != nullptr) {
    switch (met->id()) {
      case arrow::Type::INT8:
        return "Int8";
      case arrow::Type::UINT8:
        return "UInt8";
      case arrow::Type::INT16:
        return "Int16";
      case arrow::Type::UINT16:
        return "UInt16";
      case arrow::Type::INT32:
        return "Int32";
      case arrow::Type::UINT32:
        return "UInt32";
      case arrow::Type::UINT64:
        return "UInt64";
      case arrow::Type::FLOAT:
        return "Float32";
      case arrow::Type::DOUBLE:
        return "Float64";
      default:
        break;
    }
  }
  return node.text.find_first_of(".eE") == std::string::npos ? "Int64" : "Float64";
}

class Formatter {
 public:
  explicit Formatter(const file::Schema& schema) : schema_(schema) {}

  std::string Format(const Node& node, const arrow::DataType* met) const {
    const auto child = [&](size_t i) { return Format(*node.children[i], nullptr); };
    switch (node.kind) {
      case NodeKind::kNull:
        return "NULL";
      case NodeKind::kBool:
        return node.flag ? "Boolean(true)" : "Boolean(false)";
      case NodeKind::kNumber:
        return NumberType(node, met) + "(" + node.text + ")";
      case NodeKind::kString:
        return "Utf8(\"" + node.text + "\")";
      case NodeKind::kBinary:
        return "Binary(" + std::to_string(node.text.size()) + " bytes)";
      case NodeKind::kDate:
        return "Date32(\"" + node.text + "\")";
      case NodeKind::kTime:
        return "Time64(\"" + node.text + "\")";
      case NodeKind::kTimestamp:
        return "Timestamp(\"" + node.text + "\")";
      case NodeKind::kInterval:
        return "Interval(\"" + node.text + "\")";
      case NodeKind::kArray:
        return "[" + List(node, 0, nullptr) + "]";
      case NodeKind::kName: {
        std::vector<std::string> path;
        for (const PathSegment& segment : node.path) path.push_back(segment.name);
        return file::FormatFieldPath(path);
      }
      case NodeKind::kCompare: {
        static constexpr const char* kSymbols[] = {" = ",  " != ", " < ",
                                                   " <= ", " > ",  " >= "};
        return Operand(node, 0, 1) + kSymbols[static_cast<int>(node.compare)] +
               Operand(node, 1, 0);
      }
      case NodeKind::kAnd:
      case NodeKind::kOr: {
        std::string text;
        for (size_t i = 0; i < node.children.size(); ++i) {
          if (i > 0) text += node.kind == NodeKind::kAnd ? " AND " : " OR ";
          const bool nested =
              node.children[i]->kind == NodeKind::kOr && node.kind == NodeKind::kAnd;
          text += nested ? "(" + child(i) + ")" : child(i);
        }
        return text;
      }
      case NodeKind::kNot:
        return "NOT (" + child(0) + ")";
      case NodeKind::kIsNull:
        return child(0) + (node.flag ? " IS NOT NULL" : " IS NULL");
      case NodeKind::kIsTrue:
        return child(0) + (node.flag ? " IS NOT TRUE" : " IS TRUE");
      case NodeKind::kIsFalse:
        return child(0) + (node.flag ? " IS NOT FALSE" : " IS FALSE");
      case NodeKind::kDistinct:
        return child(0) + (node.flag ? " IS NOT DISTINCT FROM " : " IS DISTINCT FROM ") +
               child(1);
      case NodeKind::kIn:
        return child(0) + (node.flag ? " NOT IN ([" : " IN ([") +
               List(node, 1, TypeOf(*node.children[0], schema_)) + "])";
      case NodeKind::kBetween:
        return child(0) + (node.flag ? " NOT BETWEEN " : " BETWEEN ") +
               Operand(node, 1, 0) + " AND " + Operand(node, 2, 0);
      case NodeKind::kLike:
        return child(0) + (node.flag ? " NOT " : " ") +
               (node.op == "ilike"     ? "ILIKE "
                : node.op == "similar" ? "SIMILAR TO "
                                       : "LIKE ") +
               child(1);
      case NodeKind::kRegex:
        return child(0) + (node.flag ? " !" : " ") + node.op + " " + child(1);
      case NodeKind::kArithmetic:
        return Chain(node);
      case NodeKind::kNegate:
        return "(- " + child(0) + ")";
      case NodeKind::kCast:
        return (node.flag ? "TRY_CAST(" : "CAST(") + child(0) + " AS " + node.text + ")";
      case NodeKind::kAtZone:
        return child(0) + " AT TIME ZONE '" + node.text + "'";
      case NodeKind::kCase: {
        std::string text = "CASE";
        size_t i = 0;
        if (node.flag) text += " " + child(i++);
        const size_t last = node.children.size() - (node.op == "else" ? 1 : 0);
        for (; i + 1 < last; i += 2) {
          text += " WHEN " + child(i) + " THEN " + child(i + 1);
        }
        if (node.op == "else") text += " ELSE " + child(last);
        return text + " END";
      }
      case NodeKind::kSubscript:
        return child(0) + "[" + child(1) + "]";
      case NodeKind::kSlice:
        return child(0) + "[" + child(1) + ":" + child(2) +
               (node.children.size() > 3 ? ":" + child(3) : "") + "]";
      case NodeKind::kCall:
        return node.text + "(" + List(node, 0, nullptr) + ")";
    }
    return "?";
  }

 private:
  std::string Operand(const Node& node, size_t i, size_t other) const {
    return Format(*node.children[i], TypeOf(*node.children[other], schema_));
  }
  // ((a + b) - c)
  std::string Chain(const Node& node) const {
    std::string text(node.ops.size(), '(');
    text += Operand(node, 0, 1);
    for (size_t i = 0; i < node.ops.size(); ++i) {
      // Further on a literal meets a result, not a column.
      const arrow::DataType* met = i == 0 ? TypeOf(*node.children[0], schema_) : nullptr;
      text += " " + node.ops[i] + " " + Format(*node.children[i + 1], met) + ")";
    }
    return text;
  }
  std::string List(const Node& node, size_t first, const arrow::DataType* met) const {
    std::string text;
    for (size_t i = first; i < node.children.size(); ++i) {
      text += (i == first ? "" : ", ") + Format(*node.children[i], met);
    }
    return text;
  }

  const file::Schema& schema_;
};

}  // namespace

std::string FormatNode(const Node& node, const file::Schema& schema) {
  return Formatter(schema).Format(node, nullptr);
}

}  // namespace glaive::expr
