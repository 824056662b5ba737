#include "memwal/key_predicate.h"

#include <charconv>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include <arrow/array.h>
#include <arrow/builder.h>
#include <arrow/type.h>
#include <arrow/type_traits.h>

#include "expr/ast.h"

namespace glaive::memwal {
namespace {

using expr::Node;
using expr::NodeKind;

// A look-up of very many keys gains nothing over a scan.
constexpr size_t kMostKeys = 1000;

bool IsKey(const Node& node, const std::string& key) {
  return node.kind == NodeKind::kName && node.path.size() == 1 &&
         node.path[0].name == key;
}

// The literals, or none when the expression is of another form.
std::vector<const Node*> Literals(const Node& node, const std::string& key) {
  if (node.kind == NodeKind::kCompare && node.compare == expr::CompareOp::kEq) {
    if (IsKey(*node.children[0], key)) return {node.children[1].get()};
    if (IsKey(*node.children[1], key)) return {node.children[0].get()};
  }
  std::vector<const Node*> literals;
  if (node.kind == NodeKind::kIn && !node.flag && IsKey(*node.children[0], key) &&
      node.children.size() <= kMostKeys) {
    for (size_t i = 1; i < node.children.size(); ++i) {
      literals.push_back(node.children[i].get());
    }
  }
  return literals;
}

template <typename Type>
std::shared_ptr<arrow::Array> Integers(const std::vector<const Node*>& literals) {
  using Value = typename arrow::TypeTraits<Type>::CType;
  typename arrow::TypeTraits<Type>::BuilderType builder;
  for (const Node* literal : literals) {
    Value value{};
    const std::string& text = literal->text;
    const auto [end, error] =
        std::from_chars(text.data(), text.data() + text.size(), value);
    if (literal->kind != NodeKind::kNumber || error != std::errc() ||
        end != text.data() + text.size() || !builder.Append(value).ok()) {
      return nullptr;
    }
  }
  auto array = builder.Finish();
  return array.ok() ? *array : nullptr;
}

template <typename Builder>
std::shared_ptr<arrow::Array> Texts(const std::vector<const Node*>& literals) {
  Builder builder;
  for (const Node* literal : literals) {
    if (literal->kind != NodeKind::kString || !builder.Append(literal->text).ok()) {
      return nullptr;
    }
  }
  auto array = builder.Finish();
  return array.ok() ? *array : nullptr;
}

}  // namespace

std::shared_ptr<arrow::Array> KeysAskedFor(const std::string& filter,
                                           const std::string& key,
                                           const std::shared_ptr<arrow::DataType>& type) {
  // Cheap first: most filters of a table are of other columns.
  if (filter.find(key) == std::string::npos) return nullptr;
  const auto parsed = expr::Parse(filter);
  if (!parsed.ok()) return nullptr;
  const auto literals = Literals(**parsed, key);
  if (literals.empty()) return nullptr;
  switch (type->id()) {
    case arrow::Type::INT8:
      return Integers<arrow::Int8Type>(literals);
    case arrow::Type::INT16:
      return Integers<arrow::Int16Type>(literals);
    case arrow::Type::INT32:
      return Integers<arrow::Int32Type>(literals);
    case arrow::Type::INT64:
      return Integers<arrow::Int64Type>(literals);
    case arrow::Type::UINT8:
      return Integers<arrow::UInt8Type>(literals);
    case arrow::Type::UINT16:
      return Integers<arrow::UInt16Type>(literals);
    case arrow::Type::UINT32:
      return Integers<arrow::UInt32Type>(literals);
    case arrow::Type::UINT64:
      return Integers<arrow::UInt64Type>(literals);
    case arrow::Type::STRING:
      return Texts<arrow::StringBuilder>(literals);
    case arrow::Type::LARGE_STRING:
      return Texts<arrow::LargeStringBuilder>(literals);
    default:
      return nullptr;
  }
}

}  // namespace glaive::memwal
