// Value expressions: columns, constants, arithmetic, casts and functions.
#include <cmath>
#include <limits>
#include <optional>

#include <arrow/array.h>
#include <arrow/array/util.h>
#include <arrow/buffer.h>
#include <arrow/compute/api.h>
#include <arrow/compute/initialize.h>
#include <arrow/record_batch.h>
#include <arrow/scalar.h>
#include <arrow/type.h>
#include <arrow/type_traits.h>
#include <arrow/util/decimal.h>

#include "expr/bound.h"

namespace glaive::expr {
namespace {

using TypePtr = std::shared_ptr<arrow::DataType>;

Status FromArrow(const Status& status) {
  if (status.IsNotImplemented()) return NotSupported("expression: ", status.message());
  return InvalidInput("expression: ", status.message());
}

class ColumnExpr : public ValueExpr {
 public:
  ColumnExpr(std::vector<std::string> path, TypePtr type)
      : ValueExpr(std::move(type)), path_(std::move(path)) {}

  Result<arrow::Datum> Eval(const EvalContext& context) const override {
    const int index = context.batch.schema()->GetFieldIndex(path_[0]);
    if (index < 0) {
      return InternalError("expression: column '", path_[0], "' is not in the batch");
    }
    std::shared_ptr<arrow::Array> array = context.batch.column(index);
    for (size_t i = 1; i < path_.size(); ++i) {
      if (array->type_id() != arrow::Type::STRUCT) {
        return InternalError("expression: '", path_[i - 1],
                             "' is no struct in the batch");
      }
      const auto& parent = static_cast<const arrow::StructArray&>(*array);
      const int child = parent.struct_type()->GetFieldIndex(path_[i]);
      if (child < 0) {
        return InternalError("expression: member '", path_[i], "' is not in the batch");
      }
      // A member of a null struct is null.
      if (parent.null_count() == 0) {
        array = parent.field(child);
      } else {
        GLAIVE_ASSIGN_OR_RETURN(array, parent.GetFlattenedField(child));
      }
    }
    return arrow::Datum(std::move(array));
  }

 private:
  std::vector<std::string> path_;
};

class ConstantExpr : public ValueExpr {
 public:
  ConstantExpr(std::shared_ptr<arrow::Scalar> scalar, std::optional<Literal> literal)
      : ValueExpr(scalar->type),
        scalar_(std::move(scalar)),
        literal_(std::move(literal)) {}
  Result<arrow::Datum> Eval(const EvalContext&) const override {
    return arrow::Datum(scalar_);
  }
  const Literal* literal() const override { return literal_ ? &*literal_ : nullptr; }
  const std::shared_ptr<arrow::Scalar>& scalar() const { return scalar_; }

 private:
  std::shared_ptr<arrow::Scalar> scalar_;
  std::optional<Literal> literal_;
};

// One of Arrow's functions after casts of the operands.
class FunctionExpr : public ValueExpr {
 public:
  FunctionExpr(std::string function, std::vector<ValuePtr> operands,
               std::vector<TypePtr> casts, TypePtr result_cast, TypePtr type)
      : ValueExpr(std::move(type)),
        function_(std::move(function)),
        operands_(std::move(operands)),
        casts_(std::move(casts)),
        result_cast_(std::move(result_cast)) {}

  Result<arrow::Datum> Eval(const EvalContext& context) const override {
    std::vector<arrow::Datum> values;
    for (size_t i = 0; i < operands_.size(); ++i) {
      GLAIVE_ASSIGN_OR_RETURN(arrow::Datum value, operands_[i]->Eval(context));
      values.push_back(std::move(value));
    }
    return Run(function_, std::move(values), casts_, result_cast_);
  }

  static Result<arrow::Datum> Run(const std::string& function,
                                  std::vector<arrow::Datum> values,
                                  const std::vector<TypePtr>& casts,
                                  const TypePtr& result_cast) {
    for (size_t i = 0; i < values.size(); ++i) {
      if (casts[i] == nullptr || values[i].type()->Equals(*casts[i])) continue;
      GLAIVE_ASSIGN_OR_RETURN(values[i], CastTo(values[i], casts[i]));
    }
    GLAIVE_ASSIGN_OR_RETURN(arrow::Datum result, CallArrow(function, values));
    if (result_cast == nullptr) return result;
    return CastTo(result, result_cast);
  }

 private:
  std::string function_;
  std::vector<ValuePtr> operands_;
  std::vector<TypePtr> casts_;
  TypePtr result_cast_;
};

class CastExpr : public ValueExpr {
 public:
  CastExpr(ValuePtr operand, TypePtr type)
      : ValueExpr(std::move(type)), operand_(std::move(operand)) {}
  Result<arrow::Datum> Eval(const EvalContext& context) const override {
    GLAIVE_ASSIGN_OR_RETURN(arrow::Datum value, operand_->Eval(context));
    return CastTo(value, type());
  }

 private:
  ValuePtr operand_;
};

class BoolValueExpr : public ValueExpr {
 public:
  explicit BoolValueExpr(BoolPtr operand)
      : ValueExpr(arrow::boolean()), operand_(std::move(operand)) {}

  Result<arrow::Datum> Eval(const EvalContext& context) const override {
    const auto bytes = static_cast<int64_t>(WordCount(context.rows) * 8);
    GLAIVE_ASSIGN_OR_RETURN(std::shared_ptr<arrow::Buffer> values,
                            arrow::AllocateBuffer(bytes));
    GLAIVE_ASSIGN_OR_RETURN(std::shared_ptr<arrow::Buffer> valid,
                            arrow::AllocateBuffer(bytes));
    auto* yes = reinterpret_cast<uint64_t*>(values->mutable_data());
    auto* known = reinterpret_cast<uint64_t*>(valid->mutable_data());
    GLAIVE_RETURN_NOT_OK(operand_->Eval(context, true, yes));
    GLAIVE_RETURN_NOT_OK(operand_->Eval(context, false, known));
    for (int64_t w = 0; w < WordCount(context.rows); ++w) known[w] |= yes[w];
    const int64_t nulls = context.rows - CountMask(known, context.rows);
    return arrow::Datum(std::make_shared<arrow::BooleanArray>(
        context.rows, values, nulls == 0 ? nullptr : valid, nulls));
  }

 private:
  BoolPtr operand_;
};

// Arrow has no remainder. Both operands are cast to one type.
class RemainderExpr : public ValueExpr {
 public:
  RemainderExpr(ValuePtr left, ValuePtr right, TypePtr type)
      : ValueExpr(std::move(type)), left_(std::move(left)), right_(std::move(right)) {}

  Result<arrow::Datum> Eval(const EvalContext& context) const override {
    GLAIVE_ASSIGN_OR_RETURN(arrow::Datum left, left_->Eval(context));
    GLAIVE_ASSIGN_OR_RETURN(left, CastTo(left, type()));
    GLAIVE_ASSIGN_OR_RETURN(arrow::Datum right, right_->Eval(context));
    GLAIVE_ASSIGN_OR_RETURN(right, CastTo(right, type()));
    switch (type()->id()) {
      case arrow::Type::INT8:
        return Run<int8_t>(context, left, right);
      case arrow::Type::UINT8:
        return Run<uint8_t>(context, left, right);
      case arrow::Type::INT16:
        return Run<int16_t>(context, left, right);
      case arrow::Type::UINT16:
        return Run<uint16_t>(context, left, right);
      case arrow::Type::INT32:
        return Run<int32_t>(context, left, right);
      case arrow::Type::UINT32:
        return Run<uint32_t>(context, left, right);
      case arrow::Type::INT64:
        return Run<int64_t>(context, left, right);
      case arrow::Type::UINT64:
        return Run<uint64_t>(context, left, right);
      case arrow::Type::FLOAT:
        return Run<float>(context, left, right);
      default:
        return Run<double>(context, left, right);
    }
  }

 private:
  template <typename T>
  Result<arrow::Datum> Run(const EvalContext& context, const arrow::Datum& left,
                           const arrow::Datum& right) const {
    using Traits = arrow::CTypeTraits<T>;
    GLAIVE_ASSIGN_OR_RETURN(auto dividends, AsArray(context, left));
    const int64_t rows = dividends->length();
    GLAIVE_ASSIGN_OR_RETURN(
        std::shared_ptr<arrow::Buffer> data,
        arrow::AllocateBuffer(rows * static_cast<int64_t>(sizeof(T))));
    auto* out = reinterpret_cast<T*>(data->mutable_data());
    const T* a = dividends->data()->GetValues<T>(1);
    if (right.is_scalar() && right.scalar()->is_valid) {
      const T divisor =
          static_cast<const typename Traits::ScalarType&>(*right.scalar()).value;
      if constexpr (std::is_integral_v<T>) {
        if (divisor == 0) {
          if (dividends->null_count() < rows) return DivisionByZero();
          std::fill(out, out + rows, T{0});
        } else {
          for (int64_t i = 0; i < rows; ++i) out[i] = Remainder(a[i], divisor);
        }
      } else {
        for (int64_t i = 0; i < rows; ++i) out[i] = std::fmod(a[i], divisor);
      }
      return Finish(rows, std::move(data), *dividends, nullptr);
    }
    GLAIVE_ASSIGN_OR_RETURN(auto divisors, AsArray(context, right));
    const T* b = divisors->data()->GetValues<T>(1);
    for (int64_t i = 0; i < rows; ++i) {
      if constexpr (std::is_integral_v<T>) {
        if (b[i] == 0) {
          if (dividends->IsValid(i) && divisors->IsValid(i)) return DivisionByZero();
          out[i] = 0;
        } else {
          out[i] = Remainder(a[i], b[i]);
        }
      } else {
        out[i] = std::fmod(a[i], b[i]);
      }
    }
    return Finish(rows, std::move(data), *dividends, divisors.get());
  }

  template <typename T>
  static T Remainder(T a, T b) {
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

  static Status DivisionByZero() { return InvalidInput("expression: division by zero"); }

  static Result<std::shared_ptr<arrow::Array>> AsArray(const EvalContext& context,
                                                       const arrow::Datum& value) {
    if (value.is_array()) return value.make_array();
    return arrow::MakeArrayFromScalar(*value.scalar(), context.rows);
  }

  Result<arrow::Datum> Finish(int64_t rows, std::shared_ptr<arrow::Buffer> data,
                              const arrow::Array& left, const arrow::Array* right) const {
    std::shared_ptr<arrow::Buffer> valid;
    if (left.null_count() > 0 || (right != nullptr && right->null_count() > 0)) {
      GLAIVE_ASSIGN_OR_RETURN(valid, arrow::AllocateBuffer(WordCount(rows) * 8));
      auto* words = reinterpret_cast<uint64_t*>(valid->mutable_data());
      FillMask(words, rows, true);
      AndValidity(left, words);
      if (right != nullptr) AndValidity(*right, words);
    }
    return arrow::Datum(
        arrow::ArrayData::Make(type(), rows, {std::move(valid), std::move(data)}));
  }

  ValuePtr left_;
  ValuePtr right_;
};

bool IsNumeric(const arrow::DataType& type) {
  return arrow::is_integer(type.id()) || arrow::is_floating(type.id()) ||
         arrow::is_decimal(type.id());
}
bool IsText(const arrow::DataType& type) {
  return type.id() == arrow::Type::STRING || type.id() == arrow::Type::LARGE_STRING;
}

}  // namespace

TypePtr ValueType(const TypePtr& type) {
  if (type->id() != arrow::Type::DICTIONARY) return type;
  return static_cast<const arrow::DictionaryType&>(*type).value_type();
}

Result<arrow::Datum> CallArrow(const std::string& name,
                               const std::vector<arrow::Datum>& arguments) {
  static const Status initialized = arrow::compute::Initialize();
  GLAIVE_RETURN_NOT_OK(initialized);
  auto result = arrow::compute::CallFunction(name, arguments);
  if (!result.ok()) return FromArrow(result.status());
  return result;
}

namespace {

// `truncates_decimals` also makes Arrow ignore digits that do not fit in front of the
// point.
Result<arrow::Datum> PlainCast(const arrow::Datum& value, const TypePtr& type,
                               bool truncates_decimals) {
  static const Status initialized = arrow::compute::Initialize();
  GLAIVE_RETURN_NOT_OK(initialized);
  arrow::compute::CastOptions options = arrow::compute::CastOptions::Safe(type);
  options.allow_float_truncate = true;
  options.allow_time_truncate = true;
  options.allow_decimal_truncate = truncates_decimals;
  auto result = arrow::compute::Cast(value, options);
  if (!result.ok()) return FromArrow(result.status());
  return result;
}

// Rounds half away from zero, as upstream does; digits that do not fit are an error.
Result<arrow::Datum> CastDecimal(const arrow::Datum& value, const TypePtr& type) {
  constexpr int kMost = arrow::Decimal256Type::kMaxPrecision;
  const int from = static_cast<const arrow::DecimalType&>(*value.type()).scale();
  const int to = static_cast<const arrow::DecimalType&>(*type).scale();
  if (to >= from) return PlainCast(value, type, false);
  GLAIVE_ASSIGN_OR_RETURN(arrow::Datum wide,
                          PlainCast(value, arrow::decimal256(kMost, from), false));
  const arrow::compute::RoundOptions round(
      to, arrow::compute::RoundMode::HALF_TOWARDS_INFINITY);
  auto rounded = arrow::compute::CallFunction("round", {wide}, &round);
  if (!rounded.ok()) return FromArrow(rounded.status());
  GLAIVE_ASSIGN_OR_RETURN(wide, PlainCast(*rounded, arrow::decimal256(kMost, to), true));
  return PlainCast(wide, type, false);
}

}  // namespace

Result<arrow::Datum> CastTo(const arrow::Datum& value, const TypePtr& type) {
  if (value.type()->Equals(*type)) return value;
  if (!arrow::is_decimal(type->id())) return PlainCast(value, type, true);
  if (arrow::is_decimal(value.type()->id())) return CastDecimal(value, type);
  if (arrow::is_integer(value.type()->id())) {
    // Arrow wants room for every value of the integer type; only those there are must
    // fit.
    const int scale = static_cast<const arrow::DecimalType&>(*type).scale();
    const int digits = 20 + scale;
    const int precision = static_cast<const arrow::DecimalType&>(*type).precision();
    if (precision < digits && digits <= arrow::Decimal256Type::kMaxPrecision) {
      GLAIVE_ASSIGN_OR_RETURN(arrow::Datum roomy,
                              PlainCast(value, arrow::decimal256(digits, scale), false));
      return PlainCast(roomy, type, false);
    }
  }
  return PlainCast(value, type, false);
}

Result<std::shared_ptr<arrow::Array>> ValueExpr::EvalArray(
    const EvalContext& context) const {
  GLAIVE_ASSIGN_OR_RETURN(arrow::Datum value, Eval(context));
  if (value.is_array()) return value.make_array();
  return arrow::MakeArrayFromScalar(*value.scalar(), context.rows);
}

Result<TypePtr> ComparisonType(const TypePtr& left_in, const TypePtr& right_in) {
  using arrow::Type;
  const TypePtr left = ValueType(left_in);
  const TypePtr right = ValueType(right_in);
  if (left->Equals(*right)) return left;
  const auto any = [&](auto test) { return test(*left) || test(*right); };
  const auto is = [](Type::type id) {
    return [id](const arrow::DataType& type) { return type.id() == id; };
  };
  if (IsNumeric(*left) && IsNumeric(*right)) {
    const auto is_float = [](const arrow::DataType& t) {
      return arrow::is_floating(t.id());
    };
    if (any(is_float)) {
      if (is_float(*left) && is_float(*right) && !any(is(Type::DOUBLE)))
        return arrow::float32();
      return arrow::float64();
    }
    if (any([](const arrow::DataType& t) { return arrow::is_decimal(t.id()); })) {
      const auto shape = [](const arrow::DataType& t) {
        if (!arrow::is_decimal(t.id()))
          return std::pair<int, int>(20, 0);  // whole digits, scale
        const auto& decimal = static_cast<const arrow::DecimalType&>(t);
        return std::pair<int, int>(decimal.precision() - decimal.scale(),
                                   decimal.scale());
      };
      const auto [whole_left, scale_left] = shape(*left);
      const auto [whole_right, scale_right] = shape(*right);
      const int scale = std::max(scale_left, scale_right);
      const int precision = std::max(whole_left, whole_right) + scale;
      if (precision <= 38) return arrow::decimal128(precision, scale);
      if (precision <= 76) return arrow::decimal256(precision, scale);
      return NotSupported("expression: comparison of ", left->ToString(), " with ",
                          right->ToString(), " is not supported");
    }
    if (any(is(Type::UINT64))) {
      const auto is_signed = [](const arrow::DataType& t) {
        return arrow::is_signed_integer(t.id());
      };
      if (any(is_signed)) return arrow::decimal128(20, 0);
      return arrow::uint64();
    }
    return arrow::int64();
  }
  const auto is_bytes = [](const arrow::DataType& t) {
    return t.id() == Type::BINARY || t.id() == Type::LARGE_BINARY ||
           t.id() == Type::FIXED_SIZE_BINARY;
  };
  if (IsText(*left) && IsText(*right)) return arrow::large_utf8();
  if ((IsText(*left) || is_bytes(*left)) && (IsText(*right) || is_bytes(*right))) {
    return arrow::large_binary();
  }
  const auto is_instant = [](const arrow::DataType& t) {
    return arrow::is_date(t.id()) || t.id() == Type::TIMESTAMP;
  };
  if (is_instant(*left) && is_instant(*right)) {
    arrow::TimeUnit::type unit = arrow::TimeUnit::MILLI;
    for (const TypePtr& t : {left, right}) {
      if (t->id() == Type::TIMESTAMP) {
        unit = std::max(unit, static_cast<const arrow::TimestampType&>(*t).unit());
      }
    }
    return arrow::timestamp(unit);
  }
  if (arrow::is_time(left->id()) && arrow::is_time(right->id()))
    return arrow::time64(arrow::TimeUnit::NANO);
  if (left->id() == Type::DURATION && right->id() == Type::DURATION) {
    return arrow::duration(
        std::max(static_cast<const arrow::DurationType&>(*left).unit(),
                 static_cast<const arrow::DurationType&>(*right).unit()));
  }
  return InvalidInput("expression: a value of type ", left->ToString(),
                      " cannot be compared with one of type ", right->ToString(),
                      "; use CAST if that is meant");
}

ValuePtr MakeColumn(std::vector<std::string> path, TypePtr type) {
  return std::make_shared<ColumnExpr>(std::move(path), std::move(type));
}

Result<ValuePtr> MakeConstant(const Literal& literal) {
  std::shared_ptr<arrow::Scalar> scalar;
  switch (literal.kind) {
    case LiteralKind::kNull:
      scalar = std::make_shared<arrow::NullScalar>();
      break;
    case LiteralKind::kBool:
      scalar = std::make_shared<arrow::BooleanScalar>(literal.flag);
      break;
    case LiteralKind::kNumber: {
      const Number& number = literal.number;
      if (number.is_integer && !number.huge &&
          number.mantissa >= std::numeric_limits<int64_t>::min() &&
          number.mantissa <= std::numeric_limits<int64_t>::max()) {
        scalar =
            std::make_shared<arrow::Int64Scalar>(static_cast<int64_t>(number.mantissa));
      } else if (number.is_integer && !number.huge && number.mantissa > 0 &&
                 number.mantissa <= std::numeric_limits<uint64_t>::max()) {
        scalar =
            std::make_shared<arrow::UInt64Scalar>(static_cast<uint64_t>(number.mantissa));
      } else {
        scalar = std::make_shared<arrow::DoubleScalar>(number.value);
      }
      break;
    }
    case LiteralKind::kString:
      scalar = std::make_shared<arrow::StringScalar>(literal.bytes);
      break;
    case LiteralKind::kBinary:
      scalar = std::make_shared<arrow::BinaryScalar>(literal.bytes);
      break;
    case LiteralKind::kDate: {
      if (literal.days < std::numeric_limits<int32_t>::min() ||
          literal.days > std::numeric_limits<int32_t>::max()) {
        return InvalidInput("expression: the date is out of range");
      }
      scalar = std::make_shared<arrow::Date32Scalar>(static_cast<int32_t>(literal.days));
      break;
    }
    case LiteralKind::kTime:
      scalar = std::make_shared<arrow::Time64Scalar>(static_cast<int64_t>(literal.nanos),
                                                     arrow::TimeUnit::NANO);
      break;
    case LiteralKind::kTimestamp: {
      // Microseconds reach far enough for every year that can be written; nanoseconds do
      // not.
      const Floor micros = FloorDiv(literal.nanos, 1000);
      if (micros.exact) {
        scalar = std::make_shared<arrow::TimestampScalar>(
            static_cast<int64_t>(micros.value), arrow::timestamp(arrow::TimeUnit::MICRO));
      } else if (literal.nanos <= std::numeric_limits<int64_t>::max() &&
                 literal.nanos >= std::numeric_limits<int64_t>::min()) {
        scalar = std::make_shared<arrow::TimestampScalar>(
            static_cast<int64_t>(literal.nanos), arrow::timestamp(arrow::TimeUnit::NANO));
      } else {
        return InvalidInput("expression: the timestamp is out of range");
      }
      break;
    }
  }
  return std::make_shared<ConstantExpr>(std::move(scalar), literal);
}

Result<ValuePtr> MakeTypedConstant(const Literal& literal, const TypePtr& type) {
  if (literal.kind != LiteralKind::kNumber) return ValuePtr();
  const Number& number = literal.number;
  std::shared_ptr<arrow::Scalar> scalar;
  if (arrow::is_integer(type->id())) {
    if (!number.is_integer) return ValuePtr();
    GLAIVE_ASSIGN_OR_RETURN(ValuePtr plain, MakeConstant(literal));
    if (!arrow::is_integer(plain->type()->id())) return ValuePtr();
    auto cast = CastTo(static_cast<const ConstantExpr&>(*plain).scalar(), type);
    if (!cast.ok()) return ValuePtr();  // out of range
    scalar = cast->scalar();
  } else if (type->id() == arrow::Type::FLOAT) {
    scalar = std::make_shared<arrow::FloatScalar>(static_cast<float>(number.value));
  } else if (type->id() == arrow::Type::DOUBLE) {
    scalar = std::make_shared<arrow::DoubleScalar>(number.value);
  } else if (type->id() == arrow::Type::DECIMAL128) {
    const auto& decimal = static_cast<const arrow::DecimalType&>(*type);
    const Floor floor = FloorOf(number, decimal.scale());
    if (floor.overflow != 0 || !floor.exact) return ValuePtr();
    const arrow::Decimal128 value(static_cast<int64_t>(floor.value >> 64),
                                  static_cast<uint64_t>(floor.value));
    if (!value.FitsInPrecision(decimal.precision())) return ValuePtr();
    scalar = std::make_shared<arrow::Decimal128Scalar>(value, type);
  } else {
    return ValuePtr();
  }
  return std::make_shared<ConstantExpr>(std::move(scalar), std::nullopt);
}

// The type that Arrow's function gives is found by calling it without rows.
Result<ValuePtr> MakeFunction(std::string function, std::vector<ValuePtr> operands,
                              std::vector<TypePtr> casts, TypePtr result_cast) {
  casts.resize(operands.size());
  std::vector<arrow::Datum> empty;
  for (const ValuePtr& operand : operands) {
    GLAIVE_ASSIGN_OR_RETURN(auto array, arrow::MakeEmptyArray(operand->type()));
    empty.emplace_back(std::move(array));
  }
  GLAIVE_ASSIGN_OR_RETURN(
      arrow::Datum result,
      FunctionExpr::Run(function, std::move(empty), casts, result_cast));
  return std::make_shared<FunctionExpr>(std::move(function), std::move(operands),
                                        std::move(casts), std::move(result_cast),
                                        result.type());
}

ValuePtr MakeCastExpr(ValuePtr operand, TypePtr type) {
  return std::make_shared<CastExpr>(std::move(operand), std::move(type));
}

ValuePtr MakeRemainder(ValuePtr left, ValuePtr right, TypePtr type) {
  return std::make_shared<RemainderExpr>(std::move(left), std::move(right),
                                         std::move(type));
}

ValuePtr MakeBoolValue(BoolPtr operand) {
  return std::make_shared<BoolValueExpr>(std::move(operand));
}

}  // namespace glaive::expr
