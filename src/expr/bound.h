// Expressions whose names and types are resolved: they evaluate over record batches.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <arrow/datum.h>
#include <arrow/type_fwd.h>

#include "base/status.h"
#include "expr/array_predicate.h"
#include "expr/bitmap.h"

namespace glaive::expr {

class BoolExpr;

struct EvalContext {
  const arrow::RecordBatch& batch;
  int64_t rows;
  // In a chain: the value of what is before the link that is evaluated.
  const arrow::Datum* carried = nullptr;
};

// Immutable; thread-safe.
class ValueExpr {
 public:
  explicit ValueExpr(std::shared_ptr<arrow::DataType> type) : type_(std::move(type)) {}
  virtual ~ValueExpr() = default;
  const std::shared_ptr<arrow::DataType>& type() const { return type_; }
  // An array of `rows` values, or a scalar for an expression without columns.
  virtual Result<arrow::Datum> Eval(const EvalContext& context) const = 0;
  Result<std::shared_ptr<arrow::Array>> EvalArray(const EvalContext& context) const;
  // Set when this is a literal as written, so that it can take the type of what it meets.
  virtual const Literal* literal() const { return nullptr; }
  // The value, when it is the same for all rows and known already.
  virtual const std::shared_ptr<arrow::Scalar>* constant() const { return nullptr; }
  // The condition, when this is one as a value.
  virtual std::shared_ptr<const BoolExpr> condition() const { return nullptr; }

 private:
  std::shared_ptr<arrow::DataType> type_;
};
using ValuePtr = std::shared_ptr<const ValueExpr>;

// Immutable; thread-safe. Three-valued logic needs no third bitmap: each expression is
// asked for the rows where it is TRUE, or for those where it is FALSE, and NOT swaps the
// question.
class BoolExpr {
 public:
  virtual ~BoolExpr() = default;
  // Bit i of `out` is set iff the expression is `want` in row i; WordCount(rows) words.
  virtual Status Eval(const EvalContext& context, bool want, uint64_t* out) const = 0;
  // Both at once: rows where it is TRUE, and rows where it is not NULL.
  virtual Status EvalBoth(const EvalContext& context, uint64_t* yes,
                          uint64_t* known) const;
};
using BoolPtr = std::shared_ptr<const BoolExpr>;

// Values.
ValuePtr MakeColumn(std::vector<std::string> path, std::shared_ptr<arrow::DataType> type);
Result<ValuePtr> MakeConstant(const Literal& literal);
// A number in the type `type`, as an operand of arithmetic; nullptr when it has no place
// there.
Result<ValuePtr> MakeTypedConstant(const Literal& literal,
                                   const std::shared_ptr<arrow::DataType>& type);
// + - * / % || & | ^ << >>. `adapt`: a literal takes the type of a column where it can,
// so that `i * 2` stays in the type of i. Upstream does so for the outermost operator of
// a projection; elsewhere literals are int64 and float64.
Result<ValuePtr> MakeArithmetic(const std::string& op, ValuePtr left, ValuePtr right,
                                bool adapt);
// operands[0] ops[0] operands[1] ops[1] ..., from left to right. Of any length: long
// chains are evaluated in a loop. `adapt` is for the last operator.
Result<ValuePtr> MakeArithmeticChain(const std::vector<std::string>& ops,
                                     std::vector<ValuePtr> operands, bool adapt);
Result<ValuePtr> MakeNegate(ValuePtr operand);
// SQL's CAST, or TRY_CAST, which gives null for values that do not fit.
Result<ValuePtr> MakeCast(ValuePtr operand, std::shared_ptr<arrow::DataType> type,
                          bool null_on_failure = false);
Result<std::shared_ptr<arrow::DataType>> ParseCastType(const std::string& name);
ValuePtr MakeBoolValue(BoolPtr operand);

// Booleans.
enum class Truth : uint8_t { kFalse, kTrue, kNull };
BoolPtr MakeTruth(Truth value);
BoolPtr MakeAnd(std::vector<BoolPtr> operands);
BoolPtr MakeOr(std::vector<BoolPtr> operands);
BoolPtr MakeNot(BoolPtr operand);
BoolPtr MakeTest(ValuePtr value, ArrayPredicatePtr predicate);
Result<BoolPtr> MakeComparison(CompareOp op, ValuePtr left, ValuePtr right);
// Equality as CASE x WHEN and nullif test it: -0.0 is not 0.0, also against constants.
Result<BoolPtr> MakeSame(ValuePtr left, ValuePtr right);
BoolPtr MakeIsNull(ValuePtr operand);
BoolPtr MakeIsNull(BoolPtr operand);
// operand IS TRUE / IS FALSE
BoolPtr MakeIs(BoolPtr operand, bool truth);
// A boolean value.
BoolPtr MakeFromValue(ValuePtr operand);
// Element tests on lists: any or all of the constants occur in the list.
Result<BoolPtr> MakeListHas(ValuePtr list, const std::vector<Literal>& needles, bool all);
// text LIKE pattern with a pattern from a column, and the like.
Result<BoolPtr> MakeTextPairs(TextTest test, ValuePtr text, ValuePtr pattern,
                              char escape);

// Building blocks of the above.
Result<ValuePtr> MakeFunction(std::string arrow_function, std::vector<ValuePtr> operands,
                              std::vector<std::shared_ptr<arrow::DataType>> casts = {},
                              std::shared_ptr<arrow::DataType> result_cast = nullptr);
ValuePtr MakeCastExpr(ValuePtr operand, std::shared_ptr<arrow::DataType> type);

// Arrow's function `name`; its errors become InvalidInput.
Result<arrow::Datum> CallArrow(const std::string& name,
                               const std::vector<arrow::Datum>& arguments);
// The cast of implicit conversions: nothing may be lost but digits of fractions.
Result<arrow::Datum> CastTo(const arrow::Datum& value,
                            const std::shared_ptr<arrow::DataType>& type);

}  // namespace glaive::expr
