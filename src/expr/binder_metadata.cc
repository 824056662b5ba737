// arrow_metadata() and with_metadata(): they ask for fields, not for values.
#include <arrow/array/builder_binary.h>
#include <arrow/array/builder_nested.h>
#include <arrow/scalar.h>
#include <arrow/type.h>

#include "expr/binder.h"
#include "expr/kernel.h"
#include "expr/token.h"

namespace glaive::expr {
namespace {

// The text of a literal, or of nothing.
const std::string* TextOf(const Node& node) {
  return node.kind == NodeKind::kString || node.double_quoted
             ? (node.kind == NodeKind::kString ? &node.text : &node.path[0].name)
             : nullptr;
}

Result<ValuePtr> MapOf(const std::map<std::string, std::string>& entries) {
  const auto keys = std::make_shared<arrow::StringBuilder>();
  const auto values = std::make_shared<arrow::StringBuilder>();
  arrow::MapBuilder builder(arrow::default_memory_pool(), keys, values);
  GLAIVE_RETURN_NOT_OK(builder.Append());
  for (const auto& [key, value] : entries) {
    GLAIVE_RETURN_NOT_OK(keys->Append(key));
    GLAIVE_RETURN_NOT_OK(values->Append(value));
  }
  std::shared_ptr<arrow::Array> map;
  GLAIVE_RETURN_NOT_OK(builder.Finish(&map));
  auto scalar = map->GetScalar(0);
  GLAIVE_RETURN_NOT_OK(scalar.status());
  return ConstantOf(*scalar);
}

}  // namespace

std::map<std::string, std::string> Binder::MetadataOf(const Node& node) const {
  std::map<std::string, std::string> metadata;
  if (node.kind == NodeKind::kName) {
    const std::vector<file::Field>* fields = &schema_.fields();
    const file::Field* field = nullptr;
    for (const PathSegment& segment : node.path) {
      field = FindMember(*fields, segment);
      if (field == nullptr) return metadata;
      fields = &field->children;
    }
    if (field != nullptr) metadata = field->metadata;
  } else if (node.kind == NodeKind::kCall && node.text == "with_metadata") {
    metadata = MetadataOf(*node.children[0]);
    for (size_t i = 1; i + 1 < node.children.size(); i += 2) {
      const std::string* key = TextOf(*node.children[i]);
      const std::string* value = TextOf(*node.children[i + 1]);
      if (key != nullptr && value != nullptr) metadata[*key] = *value;
    }
  }
  return metadata;
}

Result<ValuePtr> Binder::MetadataCall(const Node& node) {
  const auto refuse = [&](std::string_view what) {
    return ErrorAt(sql_, node.begin,
                   "function " + node.text + " takes " + std::string(what));
  };
  const size_t count = node.children.size();
  if (node.text == "with_metadata") {
    if (count < 3 || count % 2 == 0) return refuse("a value and pairs of key and value");
    for (size_t i = 1; i < count; ++i) {
      if (TextOf(*node.children[i]) == nullptr)
        return refuse("keys and values as strings");
    }
    return Value(*node.children[0], false);
  }
  if (count == 0 || count > 2) return refuse("a value, and a key perhaps");
  // Names in it are checked like all others.
  GLAIVE_RETURN_NOT_OK(Value(*node.children[0], false).status());
  const auto metadata = MetadataOf(*node.children[0]);
  if (count == 1) return MapOf(metadata);
  const std::string* key = TextOf(*node.children[1]);
  if (key == nullptr) return refuse("its key as a string");
  const auto found = metadata.find(*key);
  if (found == metadata.end()) return MakeNull(arrow::utf8());
  return ConstantOf(std::make_shared<arrow::StringScalar>(found->second));
}

}  // namespace glaive::expr
