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
#include "expr/cast.h"
#include "expr/coercion.h"
#include "expr/kernel.h"

namespace glaive::expr {
namespace {

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
  const std::shared_ptr<arrow::Scalar>* constant() const override { return &scalar_; }
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
    GLAIVE_RETURN_NOT_OK(operand_->EvalBoth(context, yes, known));
    const int64_t nulls = context.rows - CountMask(known, context.rows);
    return arrow::Datum(std::make_shared<arrow::BooleanArray>(
        context.rows, values, nulls == 0 ? nullptr : valid, nulls));
  }
  BoolPtr condition() const override { return operand_; }

 private:
  BoolPtr operand_;
};

}  // namespace

Result<arrow::Datum> CallArrow(const std::string& name,
                               const std::vector<arrow::Datum>& arguments) {
  static const Status initialized = arrow::compute::Initialize();
  GLAIVE_RETURN_NOT_OK(initialized);
  auto result = arrow::compute::CallFunction(name, arguments);
  if (!result.ok()) return FromArrow(result.status());
  return result;
}

Result<std::shared_ptr<arrow::Array>> ValueExpr::EvalArray(
    const EvalContext& context) const {
  GLAIVE_ASSIGN_OR_RETURN(arrow::Datum value, Eval(context));
  if (value.is_array()) return value.make_array();
  return arrow::MakeArrayFromScalar(*value.scalar(), context.rows);
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
  bool constant = true;
  for (const ValuePtr& operand : operands) constant &= operand->constant() != nullptr;
  ValuePtr call = std::make_shared<FunctionExpr>(std::move(function), std::move(operands),
                                                 std::move(casts), std::move(result_cast),
                                                 result.type());
  return constant ? Fold(std::move(call)) : call;
}

ValuePtr MakeCastExpr(ValuePtr operand, TypePtr type) {
  return std::make_shared<CastExpr>(std::move(operand), std::move(type));
}

Status BoolExpr::EvalBoth(const EvalContext& context, uint64_t* yes,
                          uint64_t* known) const {
  GLAIVE_RETURN_NOT_OK(Eval(context, true, yes));
  GLAIVE_RETURN_NOT_OK(Eval(context, false, known));
  for (int64_t w = 0; w < WordCount(context.rows); ++w) known[w] |= yes[w];
  return Status::OK();
}

ValuePtr MakeBoolValue(BoolPtr operand) {
  return std::make_shared<BoolValueExpr>(std::move(operand));
}

}  // namespace glaive::expr
