// Structs and maps, and functions about types.
#include <charconv>

#include <arrow/array.h>
#include <arrow/array/util.h>
#include <arrow/scalar.h>
#include <arrow/type.h>
#include <arrow/type_traits.h>

#include "base/evaluation_error.h"
#include "expr/cast.h"
#include "expr/coercion.h"
#include "expr/function.h"
#include "expr/kernel.h"
#include "expr/lists.h"
#include "expr/type_name.h"
#include "expr/user_cast.h"

namespace glaive::expr {
namespace {

using arrow::Type;

Result<ArrayPtr> Expand(const Arg& arg, int64_t rows) {
  if (!arg.constant() || rows == 1) return arg.array;
  GLAIVE_ASSIGN_OR_RETURN(auto scalar, arg.array->GetScalar(0));
  return arrow::MakeArrayFromScalar(*scalar, rows);
}

Result<ValuePtr> MakeStruct(std::vector<std::string> names,
                            std::vector<ValuePtr> values) {
  arrow::FieldVector fields;
  for (size_t i = 0; i < values.size(); ++i) {
    const TypePtr type = ValueType(values[i]->type());
    GLAIVE_ASSIGN_OR_RETURN(values[i], MakeCast(std::move(values[i]), type));
    fields.push_back(arrow::field(names[i], type));
  }
  const TypePtr type = arrow::struct_(std::move(fields));
  return MakeKernel(
      type, std::move(values), [type](const KernelArgs& args) -> Result<ArrayPtr> {
        arrow::ArrayVector children;
        for (const Arg& arg : args.args) {
          GLAIVE_ASSIGN_OR_RETURN(ArrayPtr child, Expand(arg, args.rows));
          children.push_back(std::move(child));
        }
        return std::make_shared<arrow::StructArray>(type, args.rows, std::move(children));
      });
}

Result<ValuePtr> NamedStruct(CallSite call) {
  if (call.arguments.size() % 2 != 0) {
    return InvalidInput("expression: named_struct takes pairs of name and value");
  }
  std::vector<std::string> names;
  std::vector<ValuePtr> values;
  for (size_t i = 0; i < call.arguments.size(); i += 2) {
    const arrow::Buffer* name = ConstantText(call.arguments[i]);
    if (name == nullptr) return WrongArgument(call, i, "a constant string");
    names.push_back(name->ToString());
    for (size_t k = 0; k + 1 < names.size(); ++k) {
      if (names[k] != names.back()) continue;
      return InvalidInput("expression: named_struct has two members '", names.back(),
                          "'");
    }
    values.push_back(std::move(call.arguments[i + 1]));
  }
  return MakeStruct(std::move(names), std::move(values));
}

Result<ValuePtr> StructCall(CallSite call) {
  std::vector<std::string> names;
  for (size_t i = 0; i < call.arguments.size(); ++i)
    names.push_back("c" + std::to_string(i));
  return MakeStruct(std::move(names), std::move(call.arguments));
}

Result<ValuePtr> GetField(CallSite call) {
  if (call.arguments[0]->type()->id() == Type::MAP) {
    return MapElement(std::move(call.arguments[0]), std::move(call.arguments[1]));
  }
  ValuePtr value = std::move(call.arguments[0]);
  for (size_t i = 1; i < call.arguments.size(); ++i) {
    const arrow::Buffer* name = ConstantText(call.arguments[i]);
    if (name == nullptr) return WrongArgument(call, i, "a constant string");
    GLAIVE_ASSIGN_OR_RETURN(value, StructMember(std::move(value), name->ToString()));
  }
  return value;
}

template <bool kKeys>
Result<ValuePtr> MapPart(CallSite call) {
  if (call.arguments[0]->type()->id() != Type::MAP)
    return WrongArgument(call, 0, "a map");
  const auto& map = static_cast<const arrow::MapType&>(*call.arguments[0]->type());
  const TypePtr type =
      arrow::list(arrow::field("item", kKeys ? map.key_type() : map.item_type()));
  return MakeKernel(
      type, std::move(call.arguments),
      [type](const KernelArgs& args) -> Result<ArrayPtr> {
        GLAIVE_ASSIGN_OR_RETURN(ArrayPtr full, Expand(args[0], args.rows));
        const auto& maps = static_cast<const arrow::MapArray&>(*full);
        const auto data = full->data()->Copy();
        data->type = type;
        data->child_data = {kKeys ? maps.keys()->data() : maps.items()->data()};
        return arrow::MakeArray(data);
      });
}

Result<ValuePtr> MapExtract(CallSite call) {
  if (call.arguments[0]->type()->id() != Type::MAP)
    return WrongArgument(call, 0, "a map");
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr value, MapElement(std::move(call.arguments[0]),
                                                     std::move(call.arguments[1])));
  // A list of the one value; of a null when the key is missing.
  return MakeListValue({std::move(value)});
}

Result<ValuePtr> ArrowTypeof(CallSite call) {
  return ConstantOf(
      std::make_shared<arrow::StringScalar>(TypeName(*call.arguments[0]->type())));
}

Result<ValuePtr> ArrowCast(CallSite call) {
  const arrow::Buffer* name = ConstantText(call.arguments[1]);
  if (name == nullptr) return WrongArgument(call, 1, "a constant string");
  auto parsed = ParseTypeName(name->ToString());
  if (!parsed.ok()) return EvaluationError(parsed.status().message());
  TypePtr type = std::move(*parsed);
  const Status castable = CheckUserCast(*call.arguments[0]->type(), *type);
  if (!castable.ok()) return EvaluationError(castable.message());
  return MakeCast(std::move(call.arguments[0]), std::move(type),
                  call.name == "arrow_try_cast");
}

// cast_to_type(value, other): to the type of the other value.
Result<ValuePtr> CastToType(CallSite call) {
  TypePtr type = call.arguments[1]->type();
  if (type->id() == Type::NA) return WrongArgument(call, 1, "a value with a type");
  const Status castable = CheckUserCast(*call.arguments[0]->type(), *type);
  if (!castable.ok()) return EvaluationError(castable.message());
  return MakeCast(std::move(call.arguments[0]), std::move(type),
                  call.name == "try_cast_to_type");
}

// No column of a Lance table is a union.
Result<ValuePtr> OfUnion(CallSite call) { return WrongArgument(call, 0, "a union"); }

Result<ValuePtr> Version(CallSite) {
  return ConstantOf(std::make_shared<arrow::StringScalar>("Glaive"));
}

}  // namespace

Result<ValuePtr> StructMember(ValuePtr value, const std::string& name) {
  const TypePtr type = value->type();
  if (type->id() == Type::NA) return MakeNull(type);
  if (type->id() != Type::STRUCT) {
    return InvalidInput("expression: member '", name, "' is asked of a value of type ",
                        type->ToString(), ", which is no struct");
  }
  const int index = static_cast<const arrow::StructType&>(*type).GetFieldIndex(name);
  if (index < 0) {
    return InvalidInput("expression: there is no member '", name, "' in ",
                        type->ToString());
  }
  return MakeKernel(type->field(index)->type(), {std::move(value)},
                    [index](const KernelArgs& args) -> Result<ArrayPtr> {
                      const auto& array =
                          static_cast<const arrow::StructArray&>(*args[0].array);
                      return array.GetFlattenedField(index);
                    });
}

Result<ValuePtr> MapElement(ValuePtr map, ValuePtr key) {
  const auto& type = static_cast<const arrow::MapType&>(*map->type());
  GLAIVE_ASSIGN_OR_RETURN(key, MakeCast(std::move(key), type.key_type()));
  return MakeKernel(
      type.item_type(), {std::move(map), std::move(key)},
      [](const KernelArgs& args) -> Result<ArrayPtr> {
        const auto& maps = static_cast<const arrow::MapArray&>(*args[0].array);
        GLAIVE_ASSIGN_OR_RETURN(auto codes, Encode({maps.keys(), args[1].array}));
        std::vector<int64_t> picks(static_cast<size_t>(args.rows), -1);
        for (int64_t i = 0; i < args.rows; ++i) {
          const int64_t row = i * args[0].stride;
          if (maps.IsNull(row) || args[1].IsNull(i)) continue;
          const auto wanted = codes[1][static_cast<size_t>(i * args[1].stride)];
          for (int64_t k = maps.value_offset(row); k < maps.value_offset(row + 1); ++k) {
            if (codes[0][static_cast<size_t>(k)] != wanted) continue;
            picks[static_cast<size_t>(i)] = k;
            break;
          }
        }
        return TakeElements(maps.items(), picks);
      });
}

const std::vector<FunctionEntry>& StructFunctions() {
  static const std::vector<FunctionEntry> functions = {
      {"cast_to_type", 2, 2, CastToType},   {"try_cast_to_type", 2, 2, CastToType},
      {"union_extract", 2, 2, OfUnion},     {"union_tag", 1, 1, OfUnion},
      {"version", 0, 0, Version},           {"arrow_cast", 2, 2, ArrowCast},
      {"arrow_try_cast", 2, 2, ArrowCast},  {"arrow_typeof", 1, 1, ArrowTypeof},
      {"element_at", 2, 2, MapExtract},     {"get_field", 2, SIZE_MAX, GetField},
      {"map_extract", 2, 2, MapExtract},    {"map_keys", 1, 1, MapPart<true>},
      {"map_values", 1, 1, MapPart<false>}, {"named_struct", 2, SIZE_MAX, NamedStruct},
      {"row", 1, SIZE_MAX, StructCall},     {"struct", 1, SIZE_MAX, StructCall},
  };
  return functions;
}

}  // namespace glaive::expr
