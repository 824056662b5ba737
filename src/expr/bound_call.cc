// Typing of arithmetic, casts and functions.
#include <array>
#include <cstdlib>
#include <string_view>

#include <arrow/array/util.h>
#include <arrow/datum.h>
#include <arrow/type.h>
#include <arrow/type_traits.h>

#include "expr/bound.h"

namespace glaive::expr {
namespace {

using arrow::Type;
using TypePtr = std::shared_ptr<arrow::DataType>;

bool IsNumeric(const arrow::DataType& type) {
  return arrow::is_integer(type.id()) || arrow::is_floating(type.id()) ||
         arrow::is_decimal(type.id());
}
bool IsText(const arrow::DataType& type) {
  return type.id() == Type::STRING || type.id() == Type::LARGE_STRING;
}

Result<ValuePtr> Adapt(ValuePtr value, const ValuePtr& other) {
  if (value->literal() == nullptr || other->literal() != nullptr) return value;
  TypePtr type = ValueType(other->type());
  if (type->id() == Type::HALF_FLOAT) type = arrow::float32();
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr typed, MakeTypedConstant(*value->literal(), type));
  return typed != nullptr ? typed : value;
}

Result<ValuePtr> Concat(ValuePtr left, ValuePtr right) {
  if (!IsText(*ValueType(left->type())) && !IsText(*ValueType(right->type()))) {
    return InvalidInput("expression: operator || needs a string, found ",
                        left->type()->ToString(), " and ", right->type()->ToString());
  }
  const bool large = left->type()->id() == Type::LARGE_STRING ||
                     right->type()->id() == Type::LARGE_STRING;
  const TypePtr type = large ? arrow::large_utf8() : arrow::utf8();
  Literal separator;
  separator.kind = LiteralKind::kString;
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr empty, MakeConstant(separator));
  return MakeFunction("binary_join_element_wise",
                      {std::move(left), std::move(right), std::move(empty)},
                      {type, type, type});
}

std::string_view ArrowName(std::string_view op) {
  if (op == "+") return "add";
  if (op == "-") return "subtract";
  if (op == "*") return "multiply";
  return "divide";
}

TypePtr Unsigned(bool is_unsigned, TypePtr with_sign, TypePtr without) {
  return is_unsigned ? std::move(without) : std::move(with_sign);
}

}  // namespace

Result<ValuePtr> MakeArithmetic(const std::string& op, ValuePtr left, ValuePtr right,
                                bool adapt) {
  if (op == "||") return Concat(std::move(left), std::move(right));
  ValuePtr a = left;
  ValuePtr b = right;
  if (adapt) {
    GLAIVE_ASSIGN_OR_RETURN(a, Adapt(left, right));
    GLAIVE_ASSIGN_OR_RETURN(b, Adapt(right, left));
  }
  const TypePtr a_type = ValueType(a->type());
  const TypePtr b_type = ValueType(b->type());
  for (const TypePtr& type : {a_type, b_type}) {
    if (IsNumeric(*type) || type->id() == Type::NA) continue;
    if (arrow::is_temporal(type->id())) {
      return NotSupported("expression: operator ", op, " on values of type ",
                          type->ToString(), " is not supported");
    }
    return InvalidInput("expression: operator ", op, " needs numbers, found ",
                        type->ToString());
  }
  std::vector<TypePtr> casts = {a_type, b_type};
  TypePtr result;
  const bool a_half = a_type->id() == Type::HALF_FLOAT;
  const bool b_half = b_type->id() == Type::HALF_FLOAT;
  if (a_half || b_half) {
    if (a_half) casts[0] = arrow::float32();
    if (b_half) casts[1] = arrow::float32();
    const bool a_fits = a_half || left->literal() != nullptr;
    const bool b_fits = b_half || right->literal() != nullptr;
    if (a_fits && b_fits) result = arrow::float16();
  }
  const auto mixes_u64 = [](const TypePtr& x, const TypePtr& y) {
    return x->id() == Type::UINT64 && arrow::is_signed_integer(y->id());
  };
  if (mixes_u64(a_type, b_type) || mixes_u64(b_type, a_type)) {
    casts = {arrow::decimal128(20, 0), arrow::decimal128(20, 0)};
  }
  if (op != "%") {
    return MakeFunction(std::string(ArrowName(op)), {std::move(a), std::move(b)}, casts,
                        result);
  }
  // Addition has the type rules that the remainder needs.
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr sum, MakeFunction("add", {a, b}, casts));
  if (arrow::is_decimal(sum->type()->id()) || sum->type()->id() == Type::NA) {
    return NotSupported("expression: operator % on values of type ",
                        sum->type()->ToString(), " is not supported");
  }
  ValuePtr remainder = MakeRemainder(std::move(a), std::move(b), sum->type());
  return result == nullptr ? remainder : MakeCastExpr(std::move(remainder), result);
}

Result<ValuePtr> MakeNegate(ValuePtr operand) {
  const TypePtr type = ValueType(operand->type());
  if (!IsNumeric(*type) || arrow::is_unsigned_integer(type->id())) {
    return InvalidInput("expression: operator - needs a signed number, found ",
                        type->ToString());
  }
  if (type->id() == Type::HALF_FLOAT) {
    return MakeFunction("negate", {std::move(operand)}, {arrow::float32()}, type);
  }
  return MakeFunction("negate", {std::move(operand)}, {type});
}

Result<TypePtr> ParseCastType(const std::string& text) {
  std::string name = text;
  const bool is_unsigned = name.ends_with(" unsigned");
  if (is_unsigned) name.resize(name.size() - std::string_view(" unsigned").size());
  std::vector<int> numbers;
  if (const size_t open = name.find('('); open != std::string::npos) {
    const char* at = name.c_str() + open + 1;
    while (*at != '\0' && *at != ')') {
      char* end = nullptr;
      numbers.push_back(static_cast<int>(std::strtol(at, &end, 10)));
      if (end == at) break;
      at = *end == ',' ? end + 1 : end;
    }
    name.resize(open);
  }
  if (name == "boolean" || name == "bool") return arrow::boolean();
  if (name == "tinyint" || name == "int8")
    return Unsigned(is_unsigned, arrow::int8(), arrow::uint8());
  if (name == "smallint" || name == "int16") {
    return Unsigned(is_unsigned, arrow::int16(), arrow::uint16());
  }
  if (name == "int" || name == "integer" || name == "int32") {
    return Unsigned(is_unsigned, arrow::int32(), arrow::uint32());
  }
  if (name == "bigint" || name == "int64") {
    return Unsigned(is_unsigned, arrow::int64(), arrow::uint64());
  }
  if (name == "uint8") return arrow::uint8();
  if (name == "uint16") return arrow::uint16();
  if (name == "uint32") return arrow::uint32();
  if (name == "uint64") return arrow::uint64();
  if (name == "float" || name == "real" || name == "float32") return arrow::float32();
  if (name == "double" || name == "float64") return arrow::float64();
  if (name == "float16") return arrow::float16();
  if (name == "string" || name == "varchar" || name == "text" || name == "utf8")
    return arrow::utf8();
  if (name == "large_string" || name == "large_utf8") return arrow::large_utf8();
  if (name == "binary" || name == "varbinary" || name == "bytea") return arrow::binary();
  if (name == "date" || name == "date32") return arrow::date32();
  if (name == "date64") return arrow::date64();
  if (name == "timestamp" || name == "datetime") {
    switch (numbers.empty() ? 6 : numbers[0]) {
      case 0:
        return arrow::timestamp(arrow::TimeUnit::SECOND);
      case 3:
        return arrow::timestamp(arrow::TimeUnit::MILLI);
      case 6:
        return arrow::timestamp(arrow::TimeUnit::MICRO);
      case 9:
        return arrow::timestamp(arrow::TimeUnit::NANO);
      default:
        return InvalidInput("expression: the precision of a timestamp is 0, 3, 6 or 9");
    }
  }
  if (name == "decimal" || name == "numeric") {
    const int precision = numbers.empty() ? 38 : numbers[0];
    const int scale = numbers.size() < 2 ? 0 : numbers[1];
    if (precision < 1 || precision > 76 || scale < 0 || scale > precision) {
      return InvalidInput("expression: decimal(", precision, ",", scale,
                          ") is no valid type");
    }
    if (precision <= 38) return arrow::decimal128(precision, scale);
    return arrow::decimal256(precision, scale);
  }
  return NotSupported("expression: CAST to type '", text, "' is not supported");
}

Result<ValuePtr> MakeCast(ValuePtr operand, TypePtr type) {
  // Once without rows, to refuse pairs of types that no value could pass.
  GLAIVE_ASSIGN_OR_RETURN(auto empty, arrow::MakeEmptyArray(operand->type()));
  GLAIVE_RETURN_NOT_OK(CastTo(empty, type).status());
  return MakeCastExpr(std::move(operand), std::move(type));
}

Result<ValuePtr> MakeCall(const std::string& name, std::vector<ValuePtr> arguments) {
  const auto count = [&](size_t least, size_t most) -> Status {
    if (arguments.size() >= least && arguments.size() <= most) return Status::OK();
    return InvalidInput("expression: function ", name, " takes ", least,
                        most == least ? "" : " or more", " arguments, not ",
                        arguments.size());
  };
  const auto text = [&](size_t i) -> Status {
    const TypePtr type = ValueType(arguments[i]->type());
    if (IsText(*type) || type->id() == Type::NA) return Status::OK();
    return InvalidInput("expression: function ", name, " needs a string, found ",
                        type->ToString());
  };
  const auto unary_text = [&](const char* function, TypePtr result) -> Result<ValuePtr> {
    GLAIVE_RETURN_NOT_OK(count(1, 1));
    GLAIVE_RETURN_NOT_OK(text(0));
    TypePtr type = ValueType(arguments[0]->type());
    if (type->id() == Type::NA) type = arrow::utf8();
    return MakeFunction(function, std::move(arguments), {type}, std::move(result));
  };
  const bool list_argument =
      !arguments.empty() && arrow::is_list_like(arguments[0]->type()->id());
  if (name == "lower") return unary_text("utf8_lower", nullptr);
  if (name == "upper") return unary_text("utf8_upper", nullptr);
  if (name == "array_length" || name == "list_length" || name == "cardinality") {
    GLAIVE_RETURN_NOT_OK(count(1, 1));
    if (!list_argument) {
      return InvalidInput("expression: function ", name, " needs a list, found ",
                          arguments[0]->type()->ToString());
    }
    return MakeFunction("list_value_length", std::move(arguments), {}, arrow::uint64());
  }
  if (name == "length" || name == "char_length" || name == "character_length") {
    const bool large =
        !arguments.empty() && arguments[0]->type()->id() == Type::LARGE_STRING;
    return unary_text("utf8_length", large ? arrow::int64() : arrow::int32());
  }
  if (name == "octet_length") return unary_text("binary_length", nullptr);
  if (name == "trim" || name == "btrim")
    return unary_text("utf8_trim_whitespace", nullptr);
  if (name == "abs" || name == "floor" || name == "ceil") {
    GLAIVE_RETURN_NOT_OK(count(1, 1));
    const TypePtr type = ValueType(arguments[0]->type());
    if (!IsNumeric(*type)) {
      return InvalidInput("expression: function ", name, " needs a number, found ",
                          type->ToString());
    }
    const bool half = type->id() == Type::HALF_FLOAT;
    return MakeFunction(name, std::move(arguments), {half ? arrow::float32() : type},
                        half ? type : nullptr);
  }
  if (name == "coalesce") {
    GLAIVE_RETURN_NOT_OK(count(1, SIZE_MAX));
    TypePtr type;
    for (const ValuePtr& argument : arguments) {
      if (argument->literal() == nullptr) type = ValueType(argument->type());
    }
    std::vector<ValuePtr> adapted;
    for (ValuePtr& argument : arguments) {
      ValuePtr typed;
      if (type != nullptr && argument->literal() != nullptr) {
        GLAIVE_ASSIGN_OR_RETURN(typed, MakeTypedConstant(*argument->literal(), type));
      }
      adapted.push_back(typed != nullptr ? typed : std::move(argument));
    }
    return MakeFunction("coalesce", std::move(adapted));
  }
  if (name == "concat") {
    GLAIVE_RETURN_NOT_OK(count(1, SIZE_MAX));
    // Null arguments count as empty text, unlike with ||.
    Literal blank;
    blank.kind = LiteralKind::kString;
    GLAIVE_ASSIGN_OR_RETURN(ValuePtr empty, MakeConstant(blank));
    ValuePtr joined;
    for (ValuePtr& argument : arguments) {
      GLAIVE_ASSIGN_OR_RETURN(ValuePtr piece,
                              MakeFunction("coalesce", {std::move(argument), empty},
                                           {arrow::utf8(), arrow::utf8()}));
      if (joined == nullptr) {
        joined = std::move(piece);
      } else {
        GLAIVE_ASSIGN_OR_RETURN(joined, Concat(std::move(joined), std::move(piece)));
      }
    }
    return joined;
  }
  return ValuePtr();
}

}  // namespace glaive::expr
