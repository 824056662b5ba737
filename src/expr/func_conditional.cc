// CASE, COALESCE and the functions that are short for one of them.
#include <algorithm>

#include <arrow/array.h>
#include <arrow/array/util.h>
#include <arrow/compute/api.h>
#include <arrow/record_batch.h>
#include <arrow/scalar.h>
#include <arrow/type.h>

#include "expr/compare.h"
#include "expr/conditional.h"
#include "expr/function.h"
#include "expr/kernel.h"

namespace glaive::expr {
namespace {

// The rows of `wanted` as a batch of their own.
Result<std::shared_ptr<arrow::RecordBatch>> Select(const EvalContext& context,
                                                   const uint64_t* wanted) {
  auto bits = std::make_shared<arrow::Buffer>(reinterpret_cast<const uint8_t*>(wanted),
                                              WordCount(context.rows) * 8);
  const auto mask = std::make_shared<arrow::BooleanArray>(context.rows, bits);
  const auto batch = arrow::RecordBatch::Make(context.batch.schema(), context.rows,
                                              context.batch.columns());
  auto result = arrow::compute::Filter(arrow::Datum(batch), arrow::Datum(mask));
  GLAIVE_RETURN_NOT_OK(result.status());
  return result->record_batch();
}

// Puts the values of the wanted rows back to their places.
Result<ArrayPtr> Scatter(const ArrayPtr& values, const uint64_t* wanted, int64_t rows) {
  std::vector<int64_t> places(static_cast<size_t>(rows), 0);
  int64_t next = 0;
  for (int64_t i = 0; i < rows; ++i) {
    if (GetBit(wanted, i)) places[static_cast<size_t>(i)] = next++;
  }
  const arrow::Int64Array indices(rows, arrow::Buffer::Wrap(places));
  auto taken = arrow::compute::Take(*values, indices);
  GLAIVE_RETURN_NOT_OK(taken.status());
  return *taken;
}

struct Branch {
  BoolPtr condition;
  ValuePtr value;
};

// All values have the type already.
class CaseExpr : public ValueExpr {
 public:
  CaseExpr(TypePtr type, std::vector<Branch> branches, ValuePtr otherwise)
      : ValueExpr(std::move(type)),
        branches_(std::move(branches)),
        otherwise_(std::move(otherwise)) {}

  Result<arrow::Datum> Eval(const EvalContext& context) const override {
    const int64_t rows = context.rows;
    if (rows == 0) {
      GLAIVE_ASSIGN_OR_RETURN(auto empty, arrow::MakeEmptyArray(type()));
      return arrow::Datum(std::move(empty));
    }
    const auto words = static_cast<size_t>(WordCount(rows));
    Words remaining(words);
    FillMask(remaining.data(), rows, true);
    std::vector<std::shared_ptr<arrow::Buffer>> masks;
    std::vector<arrow::Datum> values;
    bool left = true;
    for (const Branch& branch : branches_) {
      Words mask(words);
      GLAIVE_RETURN_NOT_OK(
          EvalWhere(*branch.condition, context, true, remaining.data(), mask.data()));
      bool any = false;
      left = false;
      for (size_t w = 0; w < words; ++w) {
        mask[w] &= remaining[w];
        remaining[w] &= ~mask[w];
        any |= mask[w] != 0;
        left |= remaining[w] != 0;
      }
      if (any) {
        GLAIVE_RETURN_NOT_OK(Add(*branch.value, context, mask, &masks, &values));
      }
      if (!left) break;
    }
    if (left) GLAIVE_RETURN_NOT_OK(Add(*otherwise_, context, remaining, &masks, &values));
    if (values.size() == 1) {
      if (values[0].is_array()) return values[0];
      GLAIVE_ASSIGN_OR_RETURN(auto array,
                              arrow::MakeArrayFromScalar(*values[0].scalar(), rows));
      return arrow::Datum(std::move(array));
    }
    return Merge(rows, masks, std::move(values));
  }

 private:
  Status Add(const ValueExpr& value, const EvalContext& context, const Words& mask,
             std::vector<std::shared_ptr<arrow::Buffer>>* masks,
             std::vector<arrow::Datum>* values) const {
    GLAIVE_ASSIGN_OR_RETURN(auto bits, ToBuffer(mask, context.rows));
    masks->push_back(std::move(bits));
    if (value.constant() != nullptr) {
      values->emplace_back(*value.constant());
      return Status::OK();
    }
    GLAIVE_ASSIGN_OR_RETURN(ArrayPtr array, EvalWhere(value, context, mask.data()));
    values->emplace_back(std::move(array));
    return Status::OK();
  }

  Result<arrow::Datum> Merge(int64_t rows,
                             const std::vector<std::shared_ptr<arrow::Buffer>>& masks,
                             std::vector<arrow::Datum> values) const {
    // Every row belongs to exactly one of the masks.
    arrow::ArrayVector conditions;
    arrow::FieldVector fields;
    for (size_t i = 0; i < masks.size(); ++i) {
      conditions.push_back(std::make_shared<arrow::BooleanArray>(rows, masks[i]));
      fields.push_back(arrow::field(std::to_string(i), arrow::boolean()));
    }
    std::vector<arrow::Datum> arguments;
    arguments.emplace_back(std::make_shared<arrow::StructArray>(
        arrow::struct_(std::move(fields)), rows, std::move(conditions)));
    for (arrow::Datum& value : values) arguments.push_back(std::move(value));
    return CallArrow("case_when", arguments);
  }

  std::vector<Branch> branches_;
  ValuePtr otherwise_;
};

// The first value that is not null; later ones are evaluated only for rows that need
// them.
class CoalesceExpr : public ValueExpr {
 public:
  CoalesceExpr(TypePtr type, std::vector<ValuePtr> values)
      : ValueExpr(std::move(type)), values_(std::move(values)) {}

  Result<arrow::Datum> Eval(const EvalContext& context) const override {
    GLAIVE_ASSIGN_OR_RETURN(ArrayPtr array, values_[0]->EvalArray(context));
    for (size_t k = 1; k < values_.size() && array->null_count() > 0; ++k) {
      if (values_[k]->constant() != nullptr) {
        GLAIVE_ASSIGN_OR_RETURN(
            arrow::Datum merged,
            CallArrow("coalesce", {array, arrow::Datum(*values_[k]->constant())}));
        array = merged.make_array();
        continue;
      }
      Words nulls(static_cast<size_t>(WordCount(context.rows)) + 1);
      FillMask(nulls.data(), context.rows, true);
      AndValidity(*array, nulls.data());
      for (uint64_t& word : nulls) word = ~word;
      ClearTail(nulls.data(), context.rows);
      GLAIVE_ASSIGN_OR_RETURN(ArrayPtr next,
                              EvalWhere(*values_[k], context, nulls.data()));
      GLAIVE_ASSIGN_OR_RETURN(arrow::Datum merged, CallArrow("coalesce", {array, next}));
      array = merged.make_array();
    }
    return arrow::Datum(std::move(array));
  }

 private:
  std::vector<ValuePtr> values_;
};

Result<TypePtr> CommonType(const std::vector<ValuePtr>& values) {
  std::vector<TypePtr> types;
  for (const ValuePtr& value : values) types.push_back(value->type());
  return UnionType(types);
}

// The type in which all of them could be compared: text meets numbers as a number.
Result<TypePtr> CommonComparison(const std::vector<ValuePtr>& values) {
  TypePtr type = arrow::null();
  for (const ValuePtr& value : values) {
    GLAIVE_ASSIGN_OR_RETURN(type, ComparisonType(type, value->type()));
  }
  return type;
}

Result<ValuePtr> Coalesce(CallSite call) {
  GLAIVE_ASSIGN_OR_RETURN(TypePtr type, CommonComparison(call.arguments));
  std::vector<ValuePtr> values;
  for (ValuePtr& argument : call.arguments) {
    values.push_back(Coerce(std::move(argument), type));
  }
  if (values.size() == 1 || type->id() == arrow::Type::NA) return values[0];
  // Constants before the first other value: NULLs go, anything else is the result.
  size_t nulls = 0;
  for (; nulls < values.size() && values[nulls]->constant() != nullptr; ++nulls) {
    if ((*values[nulls]->constant())->is_valid) return values[nulls];
  }
  if (nulls == values.size()) return values[0];
  values.erase(values.begin(), values.begin() + static_cast<ptrdiff_t>(nulls));
  return std::make_shared<CoalesceExpr>(std::move(type), std::move(values));
}

Result<ValuePtr> NullIf(CallSite call) {
  GLAIVE_ASSIGN_OR_RETURN(const TypePtr type, ComparisonType(call.arguments[0]->type(),
                                                             call.arguments[1]->type()));
  const ValuePtr value = Coerce(call.arguments[0], type);
  GLAIVE_ASSIGN_OR_RETURN(BoolPtr equal, MakeSame(value, call.arguments[1]));
  return MakeCase({std::move(equal)}, {MakeNull(ValueType(value->type()))}, value);
}

Result<ValuePtr> Nvl2(CallSite call) {
  BoolPtr there = MakeNot(MakeIsNull(call.arguments[0]));
  return MakeCase({std::move(there)}, {call.arguments[1]}, call.arguments[2]);
}

// The greatest or least of the values that are not null. NaN is above every number.
Result<ValuePtr> Extreme(CallSite call) {
  const bool greatest = call.name == "greatest";
  GLAIVE_ASSIGN_OR_RETURN(TypePtr type, CommonComparison(call.arguments));
  ValuePtr best;
  for (ValuePtr& argument : call.arguments) {
    ValuePtr next = Coerce(std::move(argument), type);
    if (best == nullptr || type->id() == arrow::Type::NA) {
      best = std::move(next);
      continue;
    }
    if (!DispatchValues(type->id(), []<typename Values>() {})) {
      return NotSupported("expression: function ", call.name, " of values of type ",
                          type->ToString(), " is not supported");
    }
    best = MakeKernel(
        type, {best, next}, [type, greatest](const KernelArgs& args) -> Result<ArrayPtr> {
          // Which of the two each row takes, then both are merged.
          const auto full = [&](const Arg& arg) -> Result<ArrayPtr> {
            if (!arg.constant()) return arg.array;
            GLAIVE_ASSIGN_OR_RETURN(auto scalar, arg.array->GetScalar(0));
            return arrow::MakeArrayFromScalar(*scalar, args.rows);
          };
          GLAIVE_ASSIGN_OR_RETURN(ArrayPtr left, full(args[0]));
          GLAIVE_ASSIGN_OR_RETURN(ArrayPtr right, full(args[1]));
          Words take(static_cast<size_t>(WordCount(args.rows)) + 1);
          GLAIVE_RETURN_NOT_OK(ComparePairs(*left,
                                            greatest ? CompareOp::kGe : CompareOp::kLe,
                                            *right, true, take.data()));
          for (int64_t i = 0; i < args.rows; ++i) {
            if (right->IsNull(i)) SetBit(take.data(), i);
          }
          GLAIVE_ASSIGN_OR_RETURN(auto bits, ToBuffer(take, args.rows));
          const auto mask = std::make_shared<arrow::BooleanArray>(args.rows, bits);
          GLAIVE_ASSIGN_OR_RETURN(arrow::Datum merged,
                                  CallArrow("if_else", {mask, left, right}));
          return merged.make_array();
        });
  }
  return best;
}

}  // namespace

Result<ArrayPtr> EvalWhere(const ValueExpr& value, const EvalContext& context,
                           const uint64_t* wanted) {
  auto all = value.EvalArray(context);
  if (all.ok() || !all.status().IsInvalid()) return all;
  // Some row fails: perhaps one that nobody asked for.
  GLAIVE_ASSIGN_OR_RETURN(auto batch, Select(context, wanted));
  if (batch->num_rows() == context.rows) return all;
  if (batch->num_rows() == 0) return arrow::MakeArrayOfNull(value.type(), context.rows);
  GLAIVE_ASSIGN_OR_RETURN(ArrayPtr some, value.EvalArray({*batch, batch->num_rows()}));
  return Scatter(some, wanted, context.rows);
}

Status EvalWhere(const BoolExpr& condition, const EvalContext& context, bool want,
                 const uint64_t* wanted, uint64_t* out) {
  const Status all = condition.Eval(context, want, out);
  const int64_t words = WordCount(context.rows);
  if (all.ok()) {
    for (int64_t w = 0; w < words; ++w) out[w] &= wanted[w];
    return all;
  }
  if (!all.IsInvalid()) return all;
  GLAIVE_ASSIGN_OR_RETURN(auto batch, Select(context, wanted));
  if (batch->num_rows() == context.rows) return all;
  std::fill(out, out + words, 0);
  if (batch->num_rows() == 0) return Status::OK();
  Words some(static_cast<size_t>(WordCount(batch->num_rows())));
  GLAIVE_RETURN_NOT_OK(condition.Eval({*batch, batch->num_rows()}, want, some.data()));
  int64_t next = 0;
  for (int64_t i = 0; i < context.rows; ++i) {
    if (GetBit(wanted, i) && GetBit(some.data(), next++)) SetBit(out, i);
  }
  return Status::OK();
}

Result<ValuePtr> MakeCase(std::vector<BoolPtr> conditions, std::vector<ValuePtr> values,
                          ValuePtr otherwise) {
  if (otherwise == nullptr) otherwise = MakeNull(arrow::null());
  values.push_back(std::move(otherwise));
  GLAIVE_ASSIGN_OR_RETURN(TypePtr type, CommonType(values));
  if (type->id() == arrow::Type::NA) return MakeNull(type);
  for (ValuePtr& value : values) value = Coerce(std::move(value), type);
  otherwise = std::move(values.back());
  std::vector<Branch> branches;
  for (size_t i = 0; i < conditions.size(); ++i) {
    branches.push_back({std::move(conditions[i]), std::move(values[i])});
  }
  return std::make_shared<CaseExpr>(std::move(type), std::move(branches),
                                    std::move(otherwise));
}

const std::vector<FunctionEntry>& ConditionalFunctions() {
  static const std::vector<FunctionEntry> functions = {
      {"coalesce", 1, SIZE_MAX, Coalesce},
      {"nvl", 2, 2, Coalesce},
      {"ifnull", 2, 2, Coalesce},
      {"nullif", 2, 2, NullIf},
      {"nvl2", 3, 3, Nvl2},
      {"greatest", 1, SIZE_MAX, Extreme},
      {"least", 1, SIZE_MAX, Extreme},
  };
  return functions;
}

}  // namespace glaive::expr
