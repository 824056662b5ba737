// Functions on JSON columns.
#include <charconv>
#include <cmath>

#include <arrow/array.h>
#include <arrow/extension_type.h>
#include <arrow/scalar.h>
#include <arrow/type.h>
#include <arrow/util/utf8.h>

#include "encoding/jsonb.h"
#include "expr/coercion.h"
#include "expr/function.h"
#include "expr/json_path.h"
#include "expr/kernel.h"

namespace glaive::expr {
namespace {

using arrow::Type;

// The bytes of a JSON column; other types are refused.
Result<ValuePtr> JsonArgument(const CallSite& call) {
  const ValuePtr& value = call.arguments[0];
  const TypePtr type = value->type();
  if (type->id() == Type::NA) return MakeNull(arrow::large_binary());
  if (type->id() == Type::EXTENSION) {
    const auto& extension = static_cast<const arrow::ExtensionType&>(*type);
    if (IsBytes(*extension.storage_type())) {
      return MakeKernel(extension.storage_type(), {value}, [](const KernelArgs& args) {
        return Result<ArrayPtr>(
            static_cast<const arrow::ExtensionArray&>(*args[0].array).storage());
      });
    }
  }
  if (type->id() != Type::LARGE_BINARY && type->id() != Type::BINARY) {
    return WrongArgument(call, 0, "a JSON column");
  }
  return value;
}

// Paths by their text: one that every row shares is read once.
class PathReader {
 public:
  explicit PathReader(const Arg& arg) : texts_(arg) {}
  Result<const JsonPath*> At(int64_t row) {
    const std::string_view text = texts_[row];
    if (!read_ || text != text_) {
      text_ = text;
      GLAIVE_ASSIGN_OR_RETURN(path_, JsonPath::Parse(text));
      read_ = true;
    }
    return &path_;
  }

 private:
  Texts texts_;
  std::string text_;
  JsonPath path_;
  bool read_ = false;
};

Result<std::vector<ValuePtr>> Operands(const CallSite& call, bool path) {
  std::vector<ValuePtr> operands;
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr json, JsonArgument(call));
  operands.push_back(std::move(json));
  for (size_t i = 1; i < call.arguments.size(); ++i) {
    // A position may be a number.
    const bool position =
        i == 1 && !path && arrow::is_integer(ValueType(call.arguments[i]->type())->id());
    GLAIVE_ASSIGN_OR_RETURN(ValuePtr text,
                            position ? AnyAsText(call, i) : TextArgument(call, i));
    operands.push_back(std::move(text));
  }
  // A constant path is checked before any row.
  const arrow::Buffer* text = path ? ConstantText(operands[1]) : nullptr;
  if (text != nullptr) GLAIVE_RETURN_NOT_OK(JsonPath::Parse(text->ToString()).status());
  return operands;
}

Result<ValuePtr> Extract(CallSite call) {
  GLAIVE_ASSIGN_OR_RETURN(auto operands, Operands(call, true));
  return MakeKernel(arrow::utf8(), std::move(operands), [](const KernelArgs& args) {
    const Texts documents(args[0]);
    PathReader paths(args[1]);
    std::string found;
    return MapText(args, arrow::utf8(), [&](int64_t i, std::string* out) -> Result<bool> {
      GLAIVE_ASSIGN_OR_RETURN(const JsonPath* path, paths.At(i));
      found.clear();
      GLAIVE_ASSIGN_OR_RETURN(const bool there, path->Select(documents[i], &found));
      if (there) GLAIVE_RETURN_NOT_OK(encoding::JsonbToJson(found, out));
      return there;
    });
  });
}

Result<ValuePtr> Exists(CallSite call) {
  GLAIVE_ASSIGN_OR_RETURN(auto operands, Operands(call, true));
  return MakeKernel(arrow::boolean(), std::move(operands), [](const KernelArgs& args) {
    const Texts documents(args[0]);
    PathReader paths(args[1]);
    std::string found;
    return TryMapBools(args, [&](int64_t i, bool* out) -> Result<bool> {
      GLAIVE_ASSIGN_OR_RETURN(const JsonPath* path, paths.At(i));
      found.clear();
      GLAIVE_ASSIGN_OR_RETURN(*out, path->Select(documents[i], &found));
      return true;
    });
  });
}

Result<ValuePtr> Get(CallSite call) {
  GLAIVE_ASSIGN_OR_RETURN(auto operands, Operands(call, false));
  return MakeKernel(
      arrow::large_binary(), std::move(operands), [](const KernelArgs& args) {
        const Texts documents(args[0]);
        const Texts keys(args[1]);
        return MapText(args, arrow::large_binary(),
                       [&](int64_t i, std::string* out) -> Result<bool> {
                         GLAIVE_ASSIGN_OR_RETURN(const JsonItem item,
                                                 JsonMember(documents[i], keys[i]));
                         if (!item.exists()) return false;
                         item.AppendTo(out);
                         return true;
                       });
      });
}

Result<uint8_t> TypeTag(std::string_view document) {
  GLAIVE_ASSIGN_OR_RETURN(const JsonItem item, JsonItem::Root(document));
  switch (item.kind()) {
    case JsonItem::Kind::kBool:
      return 1;
    case JsonItem::Kind::kNumber: {
      GLAIVE_ASSIGN_OR_RETURN(const JsonNumber number, item.number());
      const bool is_int64 = number.is_integer && number.integer <= INT64_MAX;
      return static_cast<uint8_t>(is_int64 ? 2 : 3);
    }
    case JsonItem::Kind::kString:
      return 4;
    case JsonItem::Kind::kArray:
      return 5;
    case JsonItem::Kind::kObject:
      return 6;
    default:
      return 0;
  }
}

Status NotConvertible(std::string_view what) {
  return InvalidInput("expression: the JSON value cannot be read as ", what);
}

// convert(item, &value) -> Result<bool>; JSON null is null.
template <typename T, typename Convert>
Result<ValuePtr> GetNumber(const CallSite& call, const TypePtr& type,
                           const Convert& convert) {
  GLAIVE_ASSIGN_OR_RETURN(auto operands, Operands(call, false));
  return MakeKernel(type, std::move(operands), [type, convert](const KernelArgs& args) {
    const Texts documents(args[0]);
    const Texts keys(args[1]);
    const auto one = [&](int64_t i, T* out) -> Result<bool> {
      GLAIVE_ASSIGN_OR_RETURN(const JsonItem item, JsonMember(documents[i], keys[i]));
      if (!item.exists() || item.kind() == JsonItem::Kind::kNull) return false;
      GLAIVE_RETURN_NOT_OK(convert(item, out));
      return true;
    };
    if constexpr (std::is_same_v<T, bool>) {
      return TryMapBools(args, one);
    } else {
      return TryMapNumbers<T>(args, type, one);
    }
  });
}

Status ToFloat(const JsonItem& item, double* out) {
  switch (item.kind()) {
    case JsonItem::Kind::kBool:
      *out = item.flag() ? 1 : 0;
      return Status::OK();
    case JsonItem::Kind::kNumber: {
      GLAIVE_ASSIGN_OR_RETURN(const JsonNumber number, item.number());
      *out = number.is_integer ? static_cast<double>(number.integer) : number.floating;
      return Status::OK();
    }
    case JsonItem::Kind::kString: {
      const std::string_view text = item.text();
      const auto result = std::from_chars(text.data(), text.data() + text.size(), *out);
      if (result.ec == std::errc() && result.ptr == text.data() + text.size()) {
        return Status::OK();
      }
      return NotConvertible("a number");
    }
    default:
      return NotConvertible("a number");
  }
}

Status ToInteger(const JsonItem& item, int64_t* out) {
  if (item.kind() == JsonItem::Kind::kString) {
    const std::string_view text = item.text();
    const auto result = std::from_chars(text.data(), text.data() + text.size(), *out);
    if (result.ec == std::errc() && result.ptr == text.data() + text.size()) {
      return Status::OK();
    }
    return NotConvertible("a whole number");
  }
  if (item.kind() == JsonItem::Kind::kNumber) {
    GLAIVE_ASSIGN_OR_RETURN(const JsonNumber number, item.number());
    if (number.is_integer) {
      *out = static_cast<int64_t>(number.integer);
      if (*out == number.integer) return Status::OK();
      return NotConvertible("an int64");
    }
  }
  double value = 0;
  GLAIVE_RETURN_NOT_OK(ToFloat(item, &value));
  value = std::round(value);
  if (!(value >= -9223372036854775808.0 && value < 9223372036854775808.0)) {
    return NotConvertible("an int64");
  }
  *out = static_cast<int64_t>(value);
  return Status::OK();
}

Result<ValuePtr> GetInt(CallSite call) {
  return GetNumber<int64_t>(call, arrow::int64(), ToInteger);
}
Result<ValuePtr> GetFloat(CallSite call) {
  return GetNumber<double>(call, arrow::float64(), ToFloat);
}
Result<ValuePtr> GetBool(CallSite call) {
  return GetNumber<bool>(call, arrow::boolean(),
                         [](const JsonItem& item, bool* out) -> Status {
                           if (item.kind() == JsonItem::Kind::kBool) {
                             *out = item.flag();
                             return Status::OK();
                           }
                           if (item.kind() == JsonItem::Kind::kString &&
                               (item.text() == "true" || item.text() == "false")) {
                             *out = item.text() == "true";
                             return Status::OK();
                           }
                           return NotConvertible("a boolean");
                         });
}

Result<ValuePtr> GetString(CallSite call) {
  arrow::util::InitializeUTF8();
  GLAIVE_ASSIGN_OR_RETURN(auto operands, Operands(call, false));
  return MakeKernel(arrow::utf8(), std::move(operands), [](const KernelArgs& args) {
    const Texts documents(args[0]);
    const Texts keys(args[1]);
    std::string jsonb;
    return MapText(args, arrow::utf8(), [&](int64_t i, std::string* out) -> Result<bool> {
      GLAIVE_ASSIGN_OR_RETURN(const JsonItem item, JsonMember(documents[i], keys[i]));
      if (!item.exists() || item.kind() == JsonItem::Kind::kNull) return false;
      switch (item.kind()) {
        case JsonItem::Kind::kString:
          if (!arrow::util::ValidateUTF8(item.text())) {
            return Corruption("expression: a string in a JSON value is no UTF-8");
          }
          out->append(item.text());
          return true;
        case JsonItem::Kind::kNumber:
        case JsonItem::Kind::kBool:
          jsonb.clear();
          item.AppendTo(&jsonb);
          GLAIVE_RETURN_NOT_OK(encoding::JsonbToJson(jsonb, out));
          return true;
        default:
          return NotConvertible("a string");
      }
    });
  });
}

// What the path leads to as a document, and a number that says what it is.
Result<ValuePtr> ExtractWithType(CallSite call) {
  GLAIVE_ASSIGN_OR_RETURN(auto operands, Operands(call, true));
  const TypePtr type = arrow::struct_({arrow::field("value", arrow::large_binary()),
                                       arrow::field("type_tag", arrow::uint8(), false)});
  return MakeKernel(
      type, std::move(operands), [type](const KernelArgs& args) -> Result<ArrayPtr> {
        const Texts documents(args[0]);
        PathReader paths(args[1]);
        std::vector<uint8_t> tags(static_cast<size_t>(args.rows), 0);
        std::string found;
        GLAIVE_ASSIGN_OR_RETURN(
            const ArrayPtr values,
            MapText(args, arrow::large_binary(),
                    [&](int64_t i, std::string* out) -> Result<bool> {
                      GLAIVE_ASSIGN_OR_RETURN(const JsonPath* path, paths.At(i));
                      const size_t begin = out->size();
                      GLAIVE_ASSIGN_OR_RETURN(const bool there,
                                              path->Select(documents[i], out));
                      if (!there) return false;
                      GLAIVE_ASSIGN_OR_RETURN(
                          tags[static_cast<size_t>(i)],
                          TypeTag(std::string_view(*out).substr(begin)));
                      return true;
                    }));
        const auto tag_array = std::make_shared<arrow::UInt8Array>(
            args.rows, arrow::Buffer::FromVector(std::move(tags)));
        return std::make_shared<arrow::StructArray>(
            type, args.rows, arrow::ArrayVector{values, tag_array});
      });
}

// `value` is compared with the text of each element, with and without quotes.
Result<ValuePtr> ArrayContains(CallSite call) {
  GLAIVE_ASSIGN_OR_RETURN(auto operands, Operands(call, true));
  return MakeKernel(arrow::boolean(), std::move(operands), [](const KernelArgs& args) {
    const Texts documents(args[0]);
    PathReader paths(args[1]);
    const Texts wanted(args[2]);
    std::string found;
    std::string element;
    std::string text;
    return TryMapBools(args, [&](int64_t i, bool* out) -> Result<bool> {
      GLAIVE_ASSIGN_OR_RETURN(const JsonPath* path, paths.At(i));
      found.clear();
      GLAIVE_ASSIGN_OR_RETURN(const bool there, path->SelectFirst(documents[i], &found));
      if (!there) return true;
      GLAIVE_ASSIGN_OR_RETURN(const JsonItem root, JsonItem::Root(found));
      GLAIVE_ASSIGN_OR_RETURN(const int64_t count, root.ArraySize());
      for (int64_t k = 0; k < count && !*out; ++k) {
        GLAIVE_ASSIGN_OR_RETURN(const JsonItem item, root.Element(k));
        element.clear();
        text.clear();
        item.AppendTo(&element);
        GLAIVE_RETURN_NOT_OK(encoding::JsonbToJson(element, &text));
        const std::string_view value = wanted[i];
        *out = text == value ||
               (text.size() == value.size() + 2 && text.front() == '"' &&
                text.back() == '"' && text.compare(1, value.size(), value) == 0);
      }
      return true;
    });
  });
}

Result<ValuePtr> ArrayLength(CallSite call) {
  GLAIVE_ASSIGN_OR_RETURN(auto operands, Operands(call, true));
  return MakeKernel(arrow::int64(), std::move(operands), [](const KernelArgs& args) {
    const Texts documents(args[0]);
    PathReader paths(args[1]);
    std::string found;
    return TryMapNumbers<int64_t>(
        args, arrow::int64(), [&](int64_t i, int64_t* out) -> Result<bool> {
          GLAIVE_ASSIGN_OR_RETURN(const JsonPath* path, paths.At(i));
          found.clear();
          GLAIVE_ASSIGN_OR_RETURN(const bool there,
                                  path->SelectFirst(documents[i], &found));
          if (!there) return false;
          GLAIVE_ASSIGN_OR_RETURN(const JsonItem root, JsonItem::Root(found));
          GLAIVE_ASSIGN_OR_RETURN(*out, root.ArraySize());
          return true;
        });
  });
}

}  // namespace

const std::vector<FunctionEntry>& JsonFunctions() {
  static const std::vector<FunctionEntry> functions = {
      {"json_array_contains", 3, 3, ArrayContains},
      {"json_array_length", 2, 2, ArrayLength},
      {"json_exists", 2, 2, Exists},
      {"json_extract", 2, 2, Extract},
      {"json_extract_with_type", 2, 2, ExtractWithType},
      {"json_get", 2, 2, Get},
      {"json_get_bool", 2, 2, GetBool},
      {"json_get_float", 2, 2, GetFloat},
      {"json_get_int", 2, 2, GetInt},
      {"json_get_string", 2, 2, GetString},
  };
  return functions;
}

}  // namespace glaive::expr
