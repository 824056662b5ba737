#include "expr/kernel.h"

#include <limits>

#include <arrow/array/util.h>
#include <arrow/record_batch.h>
#include <arrow/scalar.h>

#include "expr/array_predicate.h"
#include "runtime/cancel_scope.h"

namespace glaive::expr {
namespace {

// The text that the rows of one evaluation may produce together: repeat() and the like
// must not exhaust the memory.
constexpr size_t kMostTextBytes = size_t{1} << 30;

class KernelExpr : public ValueExpr {
 public:
  KernelExpr(TypePtr type, std::vector<ValuePtr> operands, Kernel kernel,
             bool is_volatile)
      : ValueExpr(std::move(type)),
        operands_(std::move(operands)),
        kernel_(std::move(kernel)),
        volatile_(is_volatile) {}

  Result<arrow::Datum> Eval(const EvalContext& context) const override {
    GLAIVE_RETURN_NOT_OK(CancelScope::Check());
    KernelArgs args;
    args.args.reserve(operands_.size());
    bool constant = !volatile_;
    for (const ValuePtr& operand : operands_) {
      GLAIVE_ASSIGN_OR_RETURN(arrow::Datum value, operand->Eval(context));
      Arg arg;
      if (value.is_scalar()) {
        GLAIVE_ASSIGN_OR_RETURN(arg.array,
                                arrow::MakeArrayFromScalar(*value.scalar(), 1));
        arg.stride = 0;
      } else {
        arg.array = value.make_array();
        constant = false;
      }
      args.args.push_back(std::move(arg));
    }
    args.rows = constant ? 1 : context.rows;
    GLAIVE_ASSIGN_OR_RETURN(ArrayPtr result, kernel_(args));
    if (!result->type()->Equals(*type())) {
      return InternalError("expression: a function gave ", result->type()->ToString(),
                           " instead of ", type()->ToString());
    }
    if (!constant) return arrow::Datum(std::move(result));
    GLAIVE_ASSIGN_OR_RETURN(auto scalar, result->GetScalar(0));
    return arrow::Datum(std::move(scalar));
  }

 private:
  std::vector<ValuePtr> operands_;
  Kernel kernel_;
  bool volatile_;
};

class ScalarValueExpr : public ValueExpr {
 public:
  explicit ScalarValueExpr(std::shared_ptr<arrow::Scalar> scalar)
      : ValueExpr(scalar->type), scalar_(std::move(scalar)) {}
  Result<arrow::Datum> Eval(const EvalContext&) const override {
    return arrow::Datum(scalar_);
  }
  const std::shared_ptr<arrow::Scalar>* constant() const override { return &scalar_; }

 private:
  std::shared_ptr<arrow::Scalar> scalar_;
};

}  // namespace

ValuePtr ConstantOf(std::shared_ptr<arrow::Scalar> scalar) {
  return std::make_shared<ScalarValueExpr>(std::move(scalar));
}

ValuePtr MakeNull(const TypePtr& type) { return ConstantOf(arrow::MakeNullScalar(type)); }

Result<arrow::Datum> EvaluateOnce(const ValueExpr& value) {
  static const auto empty =
      arrow::RecordBatch::Make(arrow::schema({}), 1, std::vector<ArrayPtr>());
  return value.Eval({*empty, 1});
}

ValuePtr Fold(ValuePtr value) {
  auto result = EvaluateOnce(*value);
  if (!result.ok() || !result->is_scalar()) return value;
  return ConstantOf(result->scalar());
}

ValuePtr MakeKernel(TypePtr type, std::vector<ValuePtr> operands, Kernel kernel,
                    Volatility volatility) {
  bool constant = volatility == Volatility::kImmutable;
  for (const ValuePtr& operand : operands) constant &= operand->constant() != nullptr;
  ValuePtr value = std::make_shared<KernelExpr>(std::move(type), std::move(operands),
                                                std::move(kernel),
                                                volatility == Volatility::kVolatile);
  return constant ? Fold(std::move(value)) : value;
}

ValuePtr Coerce(ValuePtr operand, const TypePtr& type) {
  if (operand->type()->Equals(*type)) return operand;
  const bool constant = operand->constant() != nullptr;
  ValuePtr cast = MakeCastExpr(std::move(operand), type);
  return constant ? Fold(std::move(cast)) : cast;
}

int64_t CommonValidity(const KernelArgs& args, uint64_t* words) {
  FillMask(words, args.rows, true);
  for (const Arg& arg : args.args) {
    if (arg.constant()) {
      if (arg.array->IsNull(0)) FillMask(words, args.rows, false);
    } else if (args.rows > 0) {
      AndValidity(*arg.array, words);
    }
  }
  return args.rows - CountMask(words, args.rows);
}

Result<std::shared_ptr<arrow::Buffer>> ValidityBuffer(const KernelArgs& args,
                                                      int64_t* nulls) {
  bool any = false;
  for (const Arg& arg : args.args) any |= arg.array->null_count() > 0;
  *nulls = 0;
  if (!any) return std::shared_ptr<arrow::Buffer>();
  GLAIVE_ASSIGN_OR_RETURN(std::shared_ptr<arrow::Buffer> buffer,
                          arrow::AllocateBuffer(WordCount(args.rows) * 8));
  *nulls = CommonValidity(args, reinterpret_cast<uint64_t*>(buffer->mutable_data()));
  return buffer;
}

Result<std::shared_ptr<arrow::Buffer>> ToBuffer(const Words& words, int64_t rows) {
  const int64_t bytes = WordCount(rows) * 8;
  GLAIVE_ASSIGN_OR_RETURN(std::shared_ptr<arrow::Buffer> buffer,
                          arrow::AllocateBuffer(bytes));
  if (bytes > 0) {
    std::memcpy(buffer->mutable_data(), words.data(), static_cast<size_t>(bytes));
  }
  return buffer;
}

TextBuilder::TextBuilder(TypePtr type, int64_t rows)
    : type_(std::move(type)),
      wide_(type_->id() == arrow::Type::LARGE_STRING ||
            type_->id() == arrow::Type::LARGE_BINARY),
      valid_(static_cast<size_t>(WordCount(rows)) + 1) {
  offsets_.reserve(static_cast<size_t>(rows) + 1);
  offsets_.push_back(0);
}

Status TextBuilder::Close() {
  if (data_.size() > kMostTextBytes) {
    return InvalidInput("expression: the text that a function makes of ", offsets_.size(),
                        " rows is larger than ", kMostTextBytes, " bytes");
  }
  SetBit(valid_.data(), static_cast<int64_t>(offsets_.size()) - 1);
  offsets_.push_back(static_cast<int64_t>(data_.size()));
  return Status::OK();
}

void TextBuilder::CloseNull() {
  data_.resize(static_cast<size_t>(offsets_.back()));
  offsets_.push_back(offsets_.back());
  ++nulls_;
}

Result<ArrayPtr> TextBuilder::Finish() {
  const auto rows = static_cast<int64_t>(offsets_.size()) - 1;
  std::shared_ptr<arrow::Buffer> valid;
  if (nulls_ > 0) {
    GLAIVE_ASSIGN_OR_RETURN(valid, ToBuffer(valid_, rows));
  }
  std::shared_ptr<arrow::Buffer> offsets;
  if (wide_) {
    offsets = arrow::Buffer::FromVector(std::move(offsets_));
  } else {
    std::vector<int32_t> narrow(offsets_.begin(), offsets_.end());
    offsets = arrow::Buffer::FromVector(std::move(narrow));
  }
  auto data = arrow::Buffer::FromString(std::move(data_));
  return arrow::MakeArray(arrow::ArrayData::Make(
      type_, rows, {std::move(valid), std::move(offsets), std::move(data)}, nulls_));
}

}  // namespace glaive::expr
