// Operators on numbers, text and lists; those on dates and times are in temporal.cc.
#include <cmath>
#include <limits>

#include <arrow/compute/api.h>
#include <arrow/scalar.h>
#include <arrow/type.h>
#include <arrow/type_traits.h>
#include <arrow/util/decimal.h>

#include "expr/cast.h"
#include "expr/compare.h"
#include "expr/function.h"
#include "expr/kernel.h"

namespace glaive::expr {
namespace {

using arrow::Type;

// A literal takes the type of the column it meets.
Result<ValuePtr> Adapt(ValuePtr value, const ValuePtr& other) {
  if (value->literal() == nullptr || other->constant() != nullptr) return value;
  const TypePtr type = ValueType(other->type());
  if (type->id() == Type::HALF_FLOAT && value->literal()->kind == LiteralKind::kNumber) {
    return Coerce(std::move(value), type);
  }
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr typed, MakeTypedConstant(*value->literal(), type));
  return typed != nullptr ? typed : value;
}

Status DivisionByZero() { return InvalidInput("expression: division by zero"); }
Status TooLarge(const TypePtr& type) {
  return InvalidInput("expression: the result has no place in ", type->ToString());
}

template <typename T>
T Remainder(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::fmod(a, b);
  } else {
    if constexpr (std::is_signed_v<T>) {
      if (b == T{-1}) return T{0};  // the quotient may not fit
      if constexpr (sizeof(T) == 8) {
        // Short operands divide several times faster than long ones.
        if (((a | b) >> 31) == 0) {
          return static_cast<T>(static_cast<uint32_t>(a) % static_cast<uint32_t>(b));
        }
      }
    }
    return static_cast<T>(a % b);
  }
}

// Division and remainder; both operands have the type.
template <typename T>
Result<ArrayPtr> Divide(const KernelArgs& args, const TypePtr& type, bool remainder) {
  const Numbers<T> a(args[0]);
  const Numbers<T> b(args[1]);
  if constexpr (std::is_floating_point_v<T>) {
    if (remainder) {
      return MapNumbers<T>(args, type, [&](int64_t i) { return std::fmod(a[i], b[i]); });
    }
    return MapNumbers<T>(args, type, [&](int64_t i) { return a[i] / b[i]; });
  } else {
    // A divisor that every row shares is checked once.
    const bool safe = args[1].constant() && !args[1].IsNull(0) && b[0] != T{0} &&
                      b[0] != static_cast<T>(-1);
    if (safe) {
      const T divisor = b[0];
      if (remainder) {
        return MapNumbers<T>(args, type,
                             [&](int64_t i) { return Remainder(a[i], divisor); });
      }
      return MapNumbers<T>(args, type,
                           [&](int64_t i) { return static_cast<T>(a[i] / divisor); });
    }
    return TryMapNumbers<T>(args, type, [&](int64_t i, T* out) -> Result<bool> {
      if (b[i] == T{0}) return DivisionByZero();
      if (remainder) {
        *out = Remainder(a[i], b[i]);
        return true;
      }
      if constexpr (std::is_signed_v<T>) {
        if (b[i] == T{-1} && a[i] == std::numeric_limits<T>::min()) return TooLarge(type);
      }
      *out = static_cast<T>(a[i] / b[i]);
      return true;
    });
  }
}

Result<ArrayPtr> DivideAs(const KernelArgs& args, const TypePtr& type, bool remainder) {
  switch (type->id()) {
    case Type::INT8:
      return Divide<int8_t>(args, type, remainder);
    case Type::UINT8:
      return Divide<uint8_t>(args, type, remainder);
    case Type::INT16:
      return Divide<int16_t>(args, type, remainder);
    case Type::UINT16:
      return Divide<uint16_t>(args, type, remainder);
    case Type::INT32:
      return Divide<int32_t>(args, type, remainder);
    case Type::UINT32:
      return Divide<uint32_t>(args, type, remainder);
    case Type::INT64:
      return Divide<int64_t>(args, type, remainder);
    case Type::UINT64:
      return Divide<uint64_t>(args, type, remainder);
    case Type::FLOAT:
      return Divide<float>(args, type, remainder);
    default:
      return Divide<double>(args, type, remainder);
  }
}

Int128 PowerOfTen(int exponent) {
  Int128 power = 1;
  for (int i = 0; i < exponent; ++i) power *= 10;
  return power;
}

Int128 Load(const uint8_t* from) {
  Int128 value = 0;
  std::memcpy(&value, from, 16);
  return value;
}

// Decimals of 128 bits; the type of the result follows from those of the operands.
Result<ValuePtr> DecimalArithmetic(const std::string& op, ValuePtr left, ValuePtr right) {
  const auto& a = static_cast<const arrow::DecimalType&>(*left->type());
  const auto& b = static_cast<const arrow::DecimalType&>(*right->type());
  constexpr int kMost = arrow::Decimal128Type::kMaxPrecision;
  int precision = 0;
  int scale = 0;
  // Both mantissas are multiplied by powers of ten first.
  int shift_a = 0;
  int shift_b = 0;
  if (op == "+" || op == "-" || op == "%") {
    scale = std::max(a.scale(), b.scale());
    const int whole_a = a.precision() - a.scale();
    const int whole_b = b.precision() - b.scale();
    precision = op == "%" ? std::min(whole_a, whole_b) + scale
                          : std::max(whole_a, whole_b) + scale + 1;
    shift_a = scale - a.scale();
    shift_b = scale - b.scale();
  } else if (op == "*") {
    precision = a.precision() + b.precision() + 1;
    scale = a.scale() + b.scale();
    if (scale > kMost) {
      return InvalidInput("expression: the product of ", a.ToString(), " and ",
                          b.ToString(), " has more than ", kMost, " digits");
    }
  } else {
    scale = std::min(a.scale() + 4, kMost);
    const int move = scale - a.scale() + b.scale();
    precision = a.precision() + move;
    shift_a = std::max(move, 0);
    shift_b = std::max(-move, 0);
  }
  const TypePtr type = arrow::decimal128(std::min(precision, kMost), scale);
  if (shift_a > kMost || shift_b > kMost) return TooLarge(type);
  const Int128 factor_a = PowerOfTen(shift_a);
  const Int128 factor_b = PowerOfTen(shift_b);
  const char code = op[0];
  auto kernel = [type, code, factor_a, factor_b](const KernelArgs& args) {
    const auto& left_array = static_cast<const arrow::Decimal128Array&>(*args[0].array);
    const auto& right_array = static_cast<const arrow::Decimal128Array&>(*args[1].array);
    const uint8_t* lefts = left_array.raw_values();
    const uint8_t* rights = right_array.raw_values();
    return TryMapNumbers<arrow::Decimal128>(
        args, type, [&](int64_t i, arrow::Decimal128* out) -> Result<bool> {
          Int128 x = Load(lefts + i * args[0].stride * 16);
          Int128 y = Load(rights + i * args[1].stride * 16);
          Int128 z = 0;
          bool overflow = __builtin_mul_overflow(x, factor_a, &x);
          overflow |= __builtin_mul_overflow(y, factor_b, &y);
          switch (code) {
            case '+':
              overflow |= __builtin_add_overflow(x, y, &z);
              break;
            case '-':
              overflow |= __builtin_sub_overflow(x, y, &z);
              break;
            case '*':
              overflow |= __builtin_mul_overflow(x, y, &z);
              break;
            default:
              if (y == 0) return DivisionByZero();
              if (!overflow && y != -1) z = code == '/' ? x / y : x % y;
              if (!overflow && y == -1) z = code == '/' ? -x : 0;
          }
          if (overflow) return TooLarge(type);
          *out =
              arrow::Decimal128(static_cast<int64_t>(z >> 64), static_cast<uint64_t>(z));
          return true;
        });
  };
  return MakeKernel(type, {std::move(left), std::move(right)}, std::move(kernel));
}

Result<ValuePtr> NumericArithmetic(const std::string& op, ValuePtr left, ValuePtr right) {
  const TypePtr a = ValueType(left->type());
  const TypePtr b = ValueType(right->type());
  TypePtr type = NumericType(a, b);
  const bool decimals = type == nullptr || arrow::is_decimal(type->id());
  if (decimals) {
    // uint64 with a signed integer: both take the digits of uint64.
    const bool whole = arrow::is_integer(a->id()) && arrow::is_integer(b->id());
    const TypePtr a_type = whole ? type : DecimalFor(a);
    const TypePtr b_type = whole ? type : DecimalFor(b);
    if (a_type->id() == Type::DECIMAL128 && b_type->id() == Type::DECIMAL128) {
      return DecimalArithmetic(op, Coerce(std::move(left), a_type),
                               Coerce(std::move(right), b_type));
    }
    if (op == "%" || op == "/") {
      return NotSupported("expression: operator ", op, " on values of type ",
                          a->ToString(), " and ", b->ToString(), " is not supported");
    }
  }
  if (op == "/" || op == "%") {
    const bool half = type->id() == Type::HALF_FLOAT;
    const TypePtr work = half ? arrow::float32() : type;
    const bool remainder = op == "%";
    ValuePtr value =
        MakeKernel(work, {Coerce(std::move(left), work), Coerce(std::move(right), work)},
                   [work, remainder](const KernelArgs& args) {
                     return DivideAs(args, work, remainder);
                   });
    return half ? Coerce(std::move(value), type) : value;
  }
  const char* name = op == "+" ? "add" : op == "-" ? "subtract" : "multiply";
  if (decimals) return MakeFunction(name, {std::move(left), std::move(right)}, {a, b});
  if (type->id() == Type::HALF_FLOAT) {
    return MakeFunction(name, {std::move(left), std::move(right)},
                        {arrow::float32(), arrow::float32()}, type);
  }
  return MakeFunction(name, {std::move(left), std::move(right)}, {type, type});
}

Result<ValuePtr> BitArithmetic(const std::string& op, ValuePtr left, ValuePtr right) {
  const TypePtr a = ValueType(left->type());
  const TypePtr b = ValueType(right->type());
  TypePtr type;
  if (a->id() == Type::NA && b->id() == Type::NA) return MakeNull(arrow::int64());
  if (a->id() == Type::NA) return MakeNull(b);
  if (b->id() == Type::NA) return MakeNull(a);
  const bool a_whole = arrow::is_integer(a->id());
  const bool b_whole = arrow::is_integer(b->id());
  if (a_whole && b_whole) {
    type = NumericType(a, b);
    if (arrow::is_decimal(type->id())) type = arrow::uint64();
  } else if (a_whole && arrow::is_decimal(b->id())) {
    type = a;
  } else if (b_whole && arrow::is_decimal(a->id())) {
    type = b;
  }
  if (type == nullptr) {
    return InvalidInput("expression: operator ", op, " needs whole numbers, found ",
                        a->ToString(), " and ", b->ToString());
  }
  const char code = op[0];
  const auto run = [code]<typename T>(const KernelArgs& args, const TypePtr& out_type) {
    const Numbers<T> x(args[0]);
    const Numbers<T> y(args[1]);
    constexpr int kMask = sizeof(T) * 8 - 1;
    switch (code) {
      case '&':
        return MapNumbers<T>(args, out_type,
                             [&](int64_t i) { return static_cast<T>(x[i] & y[i]); });
      case '|':
        return MapNumbers<T>(args, out_type,
                             [&](int64_t i) { return static_cast<T>(x[i] | y[i]); });
      case '^':
        return MapNumbers<T>(args, out_type,
                             [&](int64_t i) { return static_cast<T>(x[i] ^ y[i]); });
      case '<':
        return MapNumbers<T>(args, out_type, [&](int64_t i) {
          using U = std::make_unsigned_t<T>;
          return static_cast<T>(static_cast<U>(x[i]) << (static_cast<int>(y[i]) & kMask));
        });
      default:
        return MapNumbers<T>(args, out_type, [&](int64_t i) {
          return static_cast<T>(x[i] >> (static_cast<int>(y[i]) & kMask));
        });
    }
  };
  GLAIVE_ASSIGN_OR_RETURN(left, MakeCast(std::move(left), type));
  GLAIVE_ASSIGN_OR_RETURN(right, MakeCast(std::move(right), type));
  return MakeKernel(type, {std::move(left), std::move(right)},
                    [type, run](const KernelArgs& args) -> Result<ArrayPtr> {
                      switch (type->id()) {
                        case Type::INT8:
                          return run.operator()<int8_t>(args, type);
                        case Type::UINT8:
                          return run.operator()<uint8_t>(args, type);
                        case Type::INT16:
                          return run.operator()<int16_t>(args, type);
                        case Type::UINT16:
                          return run.operator()<uint16_t>(args, type);
                        case Type::INT32:
                          return run.operator()<int32_t>(args, type);
                        case Type::UINT32:
                          return run.operator()<uint32_t>(args, type);
                        case Type::INT64:
                          return run.operator()<int64_t>(args, type);
                        default:
                          return run.operator()<uint64_t>(args, type);
                      }
                    });
}

Result<ValuePtr> Concat(ValuePtr left, ValuePtr right) {
  const TypePtr a = ValueType(left->type());
  const TypePtr b = ValueType(right->type());
  if (IsList(*a) || IsList(*b)) return ConcatLists(std::move(left), std::move(right));
  const bool bytes = IsBytes(*a) && IsBytes(*b);
  if (!bytes && !IsText(*a) && !IsText(*b)) {
    return InvalidInput("expression: operator || needs a string, found ", a->ToString(),
                        " and ", b->ToString());
  }
  const bool large = a->id() == Type::LARGE_STRING || b->id() == Type::LARGE_STRING ||
                     a->id() == Type::LARGE_BINARY || b->id() == Type::LARGE_BINARY;
  TypePtr type = large ? arrow::large_utf8() : arrow::utf8();
  if (bytes) type = large ? arrow::large_binary() : arrow::binary();
  GLAIVE_ASSIGN_OR_RETURN(left, MakeCast(std::move(left), type));
  GLAIVE_ASSIGN_OR_RETURN(right, MakeCast(std::move(right), type));
  return MakeKernel(
      type, {std::move(left), std::move(right)}, [type](const KernelArgs& args) {
        const Texts x(args[0]);
        const Texts y(args[1]);
        return MapText(args, type, [&](int64_t i, std::string* out) -> Result<bool> {
          out->append(x[i]).append(y[i]);
          return true;
        });
      });
}

}  // namespace

Result<ValuePtr> MakeArithmetic(const std::string& op, ValuePtr left, ValuePtr right,
                                bool adapt) {
  if (op == "||") return Concat(std::move(left), std::move(right));
  if (adapt) {
    GLAIVE_ASSIGN_OR_RETURN(ValuePtr a, Adapt(left, right));
    GLAIVE_ASSIGN_OR_RETURN(ValuePtr b, Adapt(right, left));
    left = std::move(a);
    right = std::move(b);
  }
  if (op == "&" || op == "|" || op == "^" || op == "<<" || op == ">>") {
    return BitArithmetic(op, std::move(left), std::move(right));
  }
  const TypePtr a = ValueType(left->type());
  const TypePtr b = ValueType(right->type());
  if (IsTemporal(*a) || IsTemporal(*b)) {
    return TemporalArithmetic(op, std::move(left), std::move(right));
  }
  for (const TypePtr& type : {a, b}) {
    if (IsNumeric(*type) || type->id() == Type::NA) continue;
    return InvalidInput("expression: operator ", op, " needs numbers, found ",
                        type->ToString());
  }
  if (a->id() == Type::NA && b->id() == Type::NA) return MakeNull(arrow::int64());
  if (a->id() == Type::NA) left = MakeNull(b);
  if (b->id() == Type::NA) right = MakeNull(a);
  return NumericArithmetic(op, std::move(left), std::move(right));
}

Result<ValuePtr> MakeNegate(ValuePtr operand) {
  const TypePtr type = ValueType(operand->type());
  if (type->id() == Type::NA) return operand;
  if (IsInterval(*type)) {
    return MakeKernel(type, {std::move(operand)}, [type](const KernelArgs& args) {
      using Value = arrow::MonthDayNanoIntervalType::MonthDayNanos;
      const Numbers<Value> values(args[0]);
      return MapNumbers<Value>(args, type, [&](int64_t i) {
        const Value value = values[i];
        return Value{static_cast<int32_t>(0U - static_cast<uint32_t>(value.months)),
                     static_cast<int32_t>(0U - static_cast<uint32_t>(value.days)),
                     static_cast<int64_t>(0U - static_cast<uint64_t>(value.nanoseconds))};
      });
    });
  }
  if (type->id() == Type::DURATION) {
    return MakeFunction("negate", {std::move(operand)}, {type});
  }
  if (!IsNumeric(*type) || arrow::is_unsigned_integer(type->id())) {
    return InvalidInput("expression: operator - needs a signed number, found ",
                        type->ToString());
  }
  if (type->id() == Type::HALF_FLOAT) {
    return MakeFunction("negate", {std::move(operand)}, {arrow::float32()}, type);
  }
  return MakeFunction("negate", {std::move(operand)}, {type});
}

}  // namespace glaive::expr
