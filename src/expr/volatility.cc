#include "expr/volatility.h"

#include <array>
#include <memory>

#include "expr/ast.h"

namespace glaive::expr {
namespace {

std::string Find(const Node& node) {
  static constexpr std::array<std::string_view, 8> kVolatile = {
      "current_date", "current_time", "current_timestamp", "now", "rand", "random",
      "today",        "uuid"};
  if (node.kind == NodeKind::kCall) {
    for (const std::string_view name : kVolatile) {
      if (node.text == name) return node.text;
    }
  }
  for (const auto& child : node.children) {
    std::string found = Find(*child);
    if (!found.empty()) return found;
  }
  return {};
}

}  // namespace

Result<std::string> VolatileFunction(std::string_view sql) {
  GLAIVE_ASSIGN_OR_RETURN(const std::unique_ptr<Node> tree, Parse(sql));
  return Find(*tree);
}

}  // namespace glaive::expr
