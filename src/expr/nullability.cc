#include "expr/nullability.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <arrow/scalar.h>

#include "expr/ast.h"
#include "expr/binder.h"
#include "expr/bound.h"

namespace glaive::expr {
namespace {

bool Never(const Node& node, const file::Schema& schema);

bool AllNever(const Node& node, const file::Schema& schema) {
  return std::all_of(node.children.begin(), node.children.end(),
                     [&](const auto& child) { return Never(*child, schema); });
}

bool NameNever(const Node& node, const file::Schema& schema) {
  std::vector<std::string> path;
  for (const PathSegment& segment : node.path) {
    path.push_back(segment.name);
    const file::Field* field = schema.FindByPath(path);
    if (field == nullptr) return node.double_quoted && path.size() == node.path.size();
    if (field->nullable) return false;
  }
  return true;
}

bool CallNever(const Node& node, const file::Schema& schema) {
  if (node.text == "coalesce") {
    return std::any_of(node.children.begin(), node.children.end(),
                       [&](const auto& child) { return Never(*child, schema); });
  }
  // These are rewritten to operators.
  if (node.text == "regexp_like" || node.text == "starts_with") {
    return AllNever(node, schema);
  }
  return node.text == "now" || node.text == "current_date" ||
         node.text == "current_time" || node.text == "current_timestamp";
}

bool CaseNever(const Node& node, const file::Schema& schema) {
  if (node.op != "else") return false;
  const size_t first = node.flag ? 1 : 0;
  for (size_t i = first + 1; i < node.children.size(); i += 2) {
    if (!Never(*node.children[i], schema)) return false;
  }
  return Never(*node.children.back(), schema);
}

bool Never(const Node& node, const file::Schema& schema) {
  switch (node.kind) {
    case NodeKind::kBool:
    case NodeKind::kNumber:
    case NodeKind::kString:
    case NodeKind::kBinary:
    case NodeKind::kDate:
    case NodeKind::kTime:
    case NodeKind::kTimestamp:
    case NodeKind::kInterval:
    case NodeKind::kIsNull:
    case NodeKind::kIsTrue:
    case NodeKind::kIsFalse:
      return true;
    case NodeKind::kCompare:
    case NodeKind::kAnd:
    case NodeKind::kOr:
    case NodeKind::kNot:
    case NodeKind::kDistinct:
    case NodeKind::kIn:
    case NodeKind::kBetween:
    case NodeKind::kLike:
    case NodeKind::kRegex:
    case NodeKind::kArithmetic:
    case NodeKind::kNegate:
    case NodeKind::kAtZone:
      return AllNever(node, schema);
    case NodeKind::kCast:
      return !node.flag && AllNever(node, schema);
    case NodeKind::kName:
      return NameNever(node, schema);
    case NodeKind::kCall:
      return CallNever(node, schema);
    case NodeKind::kCase:
      return CaseNever(node, schema);
    default:
      return false;
  }
}

}  // namespace

Result<bool> NeverNull(std::string_view sql, const file::Schema& schema) {
  GLAIVE_ASSIGN_OR_RETURN(const std::unique_ptr<Node> tree, Parse(sql));
  if (Never(*tree, schema)) return true;
  // What is known already, as the value of pi() is.
  Binder binder(sql, schema, RowMetaColumns(), /*adapt_literals=*/true);
  const auto value = binder.Value(*tree);
  return value.ok() && (*value)->constant() != nullptr &&
         (*(*value)->constant())->is_valid;
}

}  // namespace glaive::expr
