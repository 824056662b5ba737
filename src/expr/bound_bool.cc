// Boolean expressions over masks of rows.
#include <algorithm>
#include <optional>

#include <arrow/array.h>
#include <arrow/compute/api.h>
#include <arrow/record_batch.h>
#include <arrow/scalar.h>
#include <arrow/type.h>

#include "expr/bound.h"
#include "expr/calendar.h"
#include "expr/cast.h"
#include "expr/coercion.h"
#include "expr/compare.h"
#include "expr/conditional.h"
#include "expr/like.h"
#include "runtime/cancel_scope.h"

namespace glaive::expr {
namespace {

class TruthExpr : public BoolExpr {
 public:
  explicit TruthExpr(Truth value) : value_(value) {}
  Status Eval(const EvalContext& context, bool want, uint64_t* out) const override {
    FillMask(out, context.rows, value_ == (want ? Truth::kTrue : Truth::kFalse));
    return Status::OK();
  }

 private:
  Truth value_;
};

// AND and OR are each other's mirror: rows where all operands are `all_when`, or where
// one is not.
class ChainExpr : public BoolExpr {
 public:
  ChainExpr(std::vector<BoolPtr> operands, bool is_and)
      : operands_(std::move(operands)), is_and_(is_and) {}

  Status Eval(const EvalContext& context, bool want, uint64_t* out) const override {
    const bool intersect = is_and_ == want;
    const int64_t words = WordCount(context.rows);
    GLAIVE_RETURN_NOT_OK(operands_[0]->Eval(context, want, out));
    Words other(static_cast<size_t>(words));
    for (size_t i = 1; i < operands_.size(); ++i) {
      if (intersect && std::all_of(out, out + words, [](uint64_t w) { return w == 0; }))
        break;
      // Rows that are decided do not ask any more: `i <> 0 AND 10 / i > 1` divides by
      // no zero.
      Status status = operands_[i]->Eval(context, want, other.data());
      if (!status.ok()) {
        Words open(out, out + words);
        if (!intersect) {
          for (uint64_t& word : open) word = ~word;
          if (context.rows > 0) ClearTail(open.data(), context.rows);
        }
        GLAIVE_RETURN_NOT_OK(
            EvalWhere(*operands_[i], context, want, open.data(), other.data()));
      }
      if (intersect) {
        for (int64_t w = 0; w < words; ++w) out[w] &= other[static_cast<size_t>(w)];
      } else {
        for (int64_t w = 0; w < words; ++w) out[w] |= other[static_cast<size_t>(w)];
      }
    }
    return Status::OK();
  }

 private:
  std::vector<BoolPtr> operands_;
  bool is_and_;
};

class NotExpr : public BoolExpr {
 public:
  explicit NotExpr(BoolPtr operand) : operand_(std::move(operand)) {}
  Status Eval(const EvalContext& context, bool want, uint64_t* out) const override {
    return operand_->Eval(context, !want, out);
  }
  Status EvalBoth(const EvalContext& context, uint64_t* yes,
                  uint64_t* known) const override {
    GLAIVE_RETURN_NOT_OK(operand_->EvalBoth(context, yes, known));
    for (int64_t w = 0; w < WordCount(context.rows); ++w) yes[w] = known[w] & ~yes[w];
    return Status::OK();
  }

 private:
  BoolPtr operand_;
};

class TestExpr : public BoolExpr {
 public:
  TestExpr(ValuePtr value, ArrayPredicatePtr predicate)
      : value_(std::move(value)), predicate_(std::move(predicate)) {}
  Status Eval(const EvalContext& context, bool want, uint64_t* out) const override {
    GLAIVE_RETURN_NOT_OK(CancelScope::Check());
    GLAIVE_ASSIGN_OR_RETURN(auto array, value_->EvalArray(context));
    predicate_->Eval(*array, want, out);
    return Status::OK();
  }
  Status EvalBoth(const EvalContext& context, uint64_t* yes,
                  uint64_t* known) const override {
    GLAIVE_ASSIGN_OR_RETURN(auto array, value_->EvalArray(context));
    predicate_->Eval(*array, true, yes);
    FillMask(known, context.rows, true);
    if (context.rows > 0) AndValidity(*array, known);
    return Status::OK();
  }

 private:
  ValuePtr value_;
  ArrayPredicatePtr predicate_;
};

class PairExpr : public BoolExpr {
 public:
  PairExpr(CompareOp op, ValuePtr left, ValuePtr right,
           std::shared_ptr<arrow::DataType> type)
      : op_(op),
        left_(std::move(left)),
        right_(std::move(right)),
        type_(std::move(type)) {}
  Status Eval(const EvalContext& context, bool want, uint64_t* out) const override {
    GLAIVE_ASSIGN_OR_RETURN(auto left, Operand(context, *left_));
    GLAIVE_ASSIGN_OR_RETURN(auto right, Operand(context, *right_));
    return ComparePairs(*left, op_, *right, want, out);
  }
  Status EvalBoth(const EvalContext& context, uint64_t* yes,
                  uint64_t* known) const override {
    GLAIVE_ASSIGN_OR_RETURN(auto left, Operand(context, *left_));
    GLAIVE_ASSIGN_OR_RETURN(auto right, Operand(context, *right_));
    GLAIVE_RETURN_NOT_OK(ComparePairs(*left, op_, *right, true, yes));
    FillMask(known, context.rows, true);
    if (context.rows == 0) return Status::OK();
    AndValidity(*left, known);
    AndValidity(*right, known);
    return Status::OK();
  }

 private:
  Result<std::shared_ptr<arrow::Array>> Operand(const EvalContext& context,
                                                const ValueExpr& value) const {
    GLAIVE_ASSIGN_OR_RETURN(auto array, value.EvalArray(context));
    if (array->type()->Equals(*type_)) return array;
    GLAIVE_ASSIGN_OR_RETURN(arrow::Datum cast, CastTo(array, type_));
    return cast.make_array();
  }

  CompareOp op_;
  ValuePtr left_;
  ValuePtr right_;
  std::shared_ptr<arrow::DataType> type_;
};

void Negate(int64_t rows, uint64_t* mask) {
  for (int64_t w = 0; w < WordCount(rows); ++w) mask[w] = ~mask[w];
  if (rows > 0) ClearTail(mask, rows);
}

class IsNullValueExpr : public BoolExpr {
 public:
  explicit IsNullValueExpr(ValuePtr operand) : operand_(std::move(operand)) {}
  Status Eval(const EvalContext& context, bool want, uint64_t* out) const override {
    GLAIVE_ASSIGN_OR_RETURN(auto array, operand_->EvalArray(context));
    FillMask(out, context.rows, true);
    if (context.rows == 0) return Status::OK();
    AndValidity(*array, out);
    if (want) Negate(context.rows, out);
    return Status::OK();
  }
  Status EvalBoth(const EvalContext& context, uint64_t* yes,
                  uint64_t* known) const override {
    FillMask(known, context.rows, true);
    return Eval(context, true, yes);
  }

 private:
  ValuePtr operand_;
};

class IsNullBoolExpr : public BoolExpr {
 public:
  explicit IsNullBoolExpr(BoolPtr operand) : operand_(std::move(operand)) {}
  Status Eval(const EvalContext& context, bool want, uint64_t* out) const override {
    Words yes(static_cast<size_t>(WordCount(context.rows)));
    GLAIVE_RETURN_NOT_OK(operand_->EvalBoth(context, yes.data(), out));
    if (want) Negate(context.rows, out);
    return Status::OK();
  }
  Status EvalBoth(const EvalContext& context, uint64_t* yes,
                  uint64_t* known) const override {
    GLAIVE_RETURN_NOT_OK(Eval(context, true, yes));
    FillMask(known, context.rows, true);
    return Status::OK();
  }

 private:
  BoolPtr operand_;
};

class IsExpr : public BoolExpr {
 public:
  IsExpr(BoolPtr operand, bool truth) : operand_(std::move(operand)), truth_(truth) {}
  Status Eval(const EvalContext& context, bool want, uint64_t* out) const override {
    GLAIVE_RETURN_NOT_OK(operand_->Eval(context, truth_, out));
    if (!want) Negate(context.rows, out);
    return Status::OK();
  }
  Status EvalBoth(const EvalContext& context, uint64_t* yes,
                  uint64_t* known) const override {
    FillMask(known, context.rows, true);
    return Eval(context, true, yes);
  }

 private:
  BoolPtr operand_;
  bool truth_;
};

class FromValueExpr : public BoolExpr {
 public:
  explicit FromValueExpr(ValuePtr operand) : operand_(std::move(operand)) {}
  Status Eval(const EvalContext& context, bool want, uint64_t* out) const override {
    GLAIVE_ASSIGN_OR_RETURN(auto array, operand_->EvalArray(context));
    if (context.rows == 0) return Status::OK();
    if (array->type_id() == arrow::Type::NA) {
      FillMask(out, context.rows, false);
      return Status::OK();
    }
    if (array->type_id() != arrow::Type::BOOL) {
      return InvalidInput("expression: expected a boolean, found ",
                          array->type()->ToString());
    }
    CopyBitmap(out, context.rows, array->data()->buffers[1]->data(), array->offset());
    if (!want) {
      for (int64_t w = 0; w < WordCount(context.rows); ++w) out[w] = ~out[w];
      ClearTail(out, context.rows);
    }
    AndValidity(*array, out);
    return Status::OK();
  }

 private:
  ValuePtr operand_;
};

// True for element i when one of the bits [begin, end) is set.
bool AnyBit(const Words& words, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) {
    if ((words[static_cast<size_t>(i / 64)] >> (i % 64)) & 1) return true;
  }
  return false;
}

class ListHasExpr : public BoolExpr {
 public:
  // The list holds an element that passes each of the tests.
  ListHasExpr(ValuePtr list, std::vector<ArrayPredicatePtr> tests)
      : list_(std::move(list)), tests_(std::move(tests)) {}

  Status Eval(const EvalContext& context, bool want, uint64_t* out) const override {
    GLAIVE_ASSIGN_OR_RETURN(auto array, list_->EvalArray(context));
    if (context.rows == 0) return Status::OK();
    FillMask(out, context.rows, true);
    for (const ArrayPredicatePtr& test : tests_) {
      Words other(static_cast<size_t>(WordCount(context.rows)));
      switch (array->type_id()) {
        case arrow::Type::LIST: {
          const auto& list = static_cast<const arrow::ListArray&>(*array);
          Rows(
              *test, *list.values(), context.rows,
              [&](int64_t i) {
                return std::pair<int64_t, int64_t>(list.value_offset(i),
                                                   list.value_offset(i + 1));
              },
              other.data());
          break;
        }
        case arrow::Type::LARGE_LIST: {
          const auto& list = static_cast<const arrow::LargeListArray&>(*array);
          Rows(
              *test, *list.values(), context.rows,
              [&](int64_t i) {
                return std::pair<int64_t, int64_t>(list.value_offset(i),
                                                   list.value_offset(i + 1));
              },
              other.data());
          break;
        }
        default: {
          const auto& list = static_cast<const arrow::FixedSizeListArray&>(*array);
          Rows(
              *test, *list.values(), context.rows,
              [&](int64_t i) {
                return std::pair<int64_t, int64_t>(list.value_offset(i),
                                                   list.value_offset(i + 1));
              },
              other.data());
          break;
        }
      }
      for (int64_t w = 0; w < WordCount(context.rows); ++w)
        out[w] &= other[static_cast<size_t>(w)];
    }
    if (!want) {
      for (int64_t w = 0; w < WordCount(context.rows); ++w) out[w] = ~out[w];
      ClearTail(out, context.rows);
    }
    AndValidity(*array, out);
    return Status::OK();
  }

 private:
  template <typename Range>
  static void Rows(const ArrayPredicate& test, const arrow::Array& elements, int64_t rows,
                   const Range& range, uint64_t* out) {
    const int64_t first = range(0).first;
    const int64_t last = range(rows - 1).second;
    const auto used = elements.Slice(first, last - first);
    Words hits(static_cast<size_t>(WordCount(last - first)) + 1);
    test.Eval(*used, true, hits.data());
    FillWith(out, rows, [&](int64_t i) {
      const auto [begin, end] = range(i);
      return AnyBit(hits, begin - first, end - first);
    });
  }

  ValuePtr list_;
  std::vector<ArrayPredicatePtr> tests_;
};

// Lists and structs, which have no order: equal when all their parts are.
class NestedEqualExpr : public BoolExpr {
 public:
  NestedEqualExpr(ValuePtr left, ValuePtr right, TypePtr type)
      : left_(std::move(left)), right_(std::move(right)), type_(std::move(type)) {}
  Status Eval(const EvalContext& context, bool want, uint64_t* out) const override {
    GLAIVE_ASSIGN_OR_RETURN(auto left, Operand(context, *left_));
    GLAIVE_ASSIGN_OR_RETURN(auto right, Operand(context, *right_));
    FillWith(out, context.rows, [&](int64_t i) {
      return left->RangeEquals(*right, i, i + 1, i,
                               arrow::EqualOptions::Defaults().nans_equal(true)) == want;
    });
    if (context.rows == 0) return Status::OK();
    AndValidity(*left, out);
    AndValidity(*right, out);
    return Status::OK();
  }

 private:
  Result<std::shared_ptr<arrow::Array>> Operand(const EvalContext& context,
                                                const ValueExpr& value) const {
    GLAIVE_ASSIGN_OR_RETURN(auto array, value.EvalArray(context));
    return CastArray(array, type_, CastFailure::kError);
  }
  ValuePtr left_;
  ValuePtr right_;
  TypePtr type_;
};

class TextPairsExpr : public BoolExpr {
 public:
  TextPairsExpr(TextTest test, ValuePtr text, ValuePtr pattern, char escape)
      : test_(test),
        text_(std::move(text)),
        pattern_(std::move(pattern)),
        escape_(escape) {}

  Status Eval(const EvalContext& context, bool want, uint64_t* out) const override {
    GLAIVE_ASSIGN_OR_RETURN(auto text, Operand(context, *text_));
    GLAIVE_ASSIGN_OR_RETURN(auto pattern, Operand(context, *pattern_));
    if (context.rows == 0) return Status::OK();
    const BinaryValues<int64_t> texts(*text);
    const BinaryValues<int64_t> patterns(*pattern);
    FillWith(out, context.rows, [&](int64_t row) {
      return (!text->IsNull(row) && !pattern->IsNull(row) &&
              Test(texts(row), patterns(row))) == want;
    });
    AndValidity(*text, out);
    AndValidity(*pattern, out);
    return Status::OK();
  }

 private:
  static Result<std::shared_ptr<arrow::Array>> Operand(const EvalContext& context,
                                                       const ValueExpr& value) {
    GLAIVE_ASSIGN_OR_RETURN(auto array, value.EvalArray(context));
    GLAIVE_ASSIGN_OR_RETURN(arrow::Datum cast, CastTo(array, arrow::large_utf8()));
    return cast.make_array();
  }
  bool Test(std::string_view text, std::string_view pattern) const {
    switch (test_) {
      case TextTest::kLike:
        return LikePattern(pattern, escape_).Matches(text);
      case TextTest::kContains:
        return text.find(pattern) != std::string_view::npos;
      case TextTest::kStartsWith:
        return text.starts_with(pattern);
      case TextTest::kEndsWith:
        return text.ends_with(pattern);
    }
    return false;
  }

  TextTest test_;
  ValuePtr text_;
  ValuePtr pattern_;
  char escape_;
};

// The value as a literal, so that a column can be tested against it without an array of
// copies; nullopt for types that have no literals.
std::optional<Literal> LiteralOf(const arrow::Scalar& scalar) {
  using arrow::Type;
  Literal literal;
  switch (scalar.type->id()) {
    case Type::BOOL:
      literal.kind = LiteralKind::kBool;
      literal.flag = static_cast<const arrow::BooleanScalar&>(scalar).value;
      return literal;
    case Type::INT64:
      literal.kind = LiteralKind::kNumber;
      literal.number = Number::Parse(
          std::to_string(static_cast<const arrow::Int64Scalar&>(scalar).value));
      return literal;
    case Type::INT32:
      literal.kind = LiteralKind::kNumber;
      literal.number = Number::Parse(
          std::to_string(static_cast<const arrow::Int32Scalar&>(scalar).value));
      return literal;
    case Type::DOUBLE:
      literal.kind = LiteralKind::kNumber;
      literal.number.value = static_cast<const arrow::DoubleScalar&>(scalar).value;
      return literal;
    case Type::STRING:
    case Type::LARGE_STRING:
      literal.kind = LiteralKind::kString;
      literal.bytes =
          static_cast<const arrow::BaseBinaryScalar&>(scalar).value->ToString();
      return literal;
    case Type::DATE32:
      literal.kind = LiteralKind::kDate;
      literal.days = static_cast<const arrow::Date32Scalar&>(scalar).value;
      return literal;
    case Type::TIMESTAMP: {
      const auto unit = static_cast<const arrow::TimestampType&>(*scalar.type).unit();
      literal.kind = LiteralKind::kTimestamp;
      literal.nanos =
          static_cast<Int128>(static_cast<const arrow::TimestampScalar&>(scalar).value) *
          (kSecondNanos / UnitsPerSecond(unit));
      return literal;
    }
    default:
      return std::nullopt;
  }
}

// `column op constant` in the type of the column; nullptr when it takes another type.
Result<BoolPtr> CompareWithConstant(CompareOp op, const ValuePtr& column,
                                    const ValuePtr& constant, const TypePtr& type) {
  if (column->constant() != nullptr) return BoolPtr();
  if (!ValueType(column->type())->Equals(*type)) {
    // Other numbers meet the constant as doubles, where -0 equals 0 as well.
    if (!IsNumeric(*column->type()) || !arrow::is_floating(type->id())) {
      return BoolPtr();
    }
    return CompareWithConstant(op, MakeCastExpr(column, type), constant, type);
  }
  if (!(*constant->constant())->is_valid) return MakeTruth(Truth::kNull);
  auto cast = CastTo(*constant->constant(), type);
  if (!cast.ok() || !cast->is_scalar()) return BoolPtr();
  const auto literal = LiteralOf(*cast->scalar());
  if (!literal) return BoolPtr();
  GLAIVE_ASSIGN_OR_RETURN(auto test, MakeComparePredicate(column->type(), op, *literal));
  return MakeTest(column, std::move(test));
}

}  // namespace

BoolPtr MakeTruth(Truth value) { return std::make_shared<TruthExpr>(value); }
BoolPtr MakeAnd(std::vector<BoolPtr> operands) {
  return std::make_shared<ChainExpr>(std::move(operands), true);
}
BoolPtr MakeOr(std::vector<BoolPtr> operands) {
  return std::make_shared<ChainExpr>(std::move(operands), false);
}
BoolPtr MakeNot(BoolPtr operand) { return std::make_shared<NotExpr>(std::move(operand)); }
BoolPtr MakeTest(ValuePtr value, ArrayPredicatePtr predicate) {
  return std::make_shared<TestExpr>(std::move(value), std::move(predicate));
}
BoolPtr MakeIsNull(ValuePtr operand) {
  return std::make_shared<IsNullValueExpr>(std::move(operand));
}
BoolPtr MakeIsNull(BoolPtr operand) {
  return std::make_shared<IsNullBoolExpr>(std::move(operand));
}
BoolPtr MakeIs(BoolPtr operand, bool truth) {
  return std::make_shared<IsExpr>(std::move(operand), truth);
}
BoolPtr MakeFromValue(ValuePtr operand) {
  if (BoolPtr condition = operand->condition(); condition != nullptr) return condition;
  return std::make_shared<FromValueExpr>(std::move(operand));
}

Result<BoolPtr> MakeComparison(CompareOp op, ValuePtr left, ValuePtr right) {
  const bool left_null = left->type()->id() == arrow::Type::NA;
  const bool right_null = right->type()->id() == arrow::Type::NA;
  if (left_null || right_null) return MakeTruth(Truth::kNull);
  if (right->literal() != nullptr) {
    GLAIVE_ASSIGN_OR_RETURN(auto test,
                            MakeComparePredicate(left->type(), op, *right->literal()));
    return MakeTest(std::move(left), std::move(test));
  }
  if (left->literal() != nullptr) {
    GLAIVE_ASSIGN_OR_RETURN(
        auto test, MakeComparePredicate(right->type(), Flip(op), *left->literal()));
    return MakeTest(std::move(right), std::move(test));
  }
  GLAIVE_ASSIGN_OR_RETURN(auto type, ComparisonType(left->type(), right->type()));
  for (const bool flip : {false, true}) {
    const ValuePtr& column = flip ? right : left;
    const ValuePtr& constant = flip ? left : right;
    if (constant->constant() == nullptr) continue;
    GLAIVE_ASSIGN_OR_RETURN(
        BoolPtr test, CompareWithConstant(flip ? Flip(op) : op, column, constant, type));
    if (test != nullptr) return test;
  }
  if ((IsList(*type) || type->id() == arrow::Type::STRUCT) &&
      (op == CompareOp::kEq || op == CompareOp::kNe)) {
    BoolPtr equal = std::make_shared<NestedEqualExpr>(std::move(left), std::move(right),
                                                      std::move(type));
    return op == CompareOp::kEq ? equal : MakeNot(std::move(equal));
  }
  if (!DispatchValues(type->id(), []<typename Values>() {})) {
    return NotSupported("expression: comparison of values of type ", type->ToString(),
                        " is not supported");
  }
  return std::make_shared<PairExpr>(op, std::move(left), std::move(right),
                                    std::move(type));
}

Result<BoolPtr> MakeSame(ValuePtr left, ValuePtr right) {
  const auto is_zero = [](const ValuePtr& value) {
    if (value->constant() == nullptr) return false;
    const auto number = (*value->constant())->CastTo(arrow::float64());
    return number.ok() && (*number)->is_valid &&
           static_cast<const arrow::DoubleScalar&>(**number).value == 0;
  };
  GLAIVE_ASSIGN_OR_RETURN(auto type, ComparisonType(left->type(), right->type()));
  if (!arrow::is_floating(type->id()) || !(is_zero(left) || is_zero(right))) {
    return MakeComparison(CompareOp::kEq, std::move(left), std::move(right));
  }
  return std::make_shared<PairExpr>(CompareOp::kEq, std::move(left), std::move(right),
                                    std::move(type));
}

Result<BoolPtr> MakeListHas(ValuePtr list, const std::vector<Literal>& needles,
                            bool all) {
  const auto element = ElementType(*list->type());
  if (element == nullptr) {
    return InvalidInput("expression: array functions need a list, not a value of type ",
                        list->type()->ToString());
  }
  std::vector<ArrayPredicatePtr> tests;
  if (all) {
    for (const Literal& needle : needles) {
      GLAIVE_ASSIGN_OR_RETURN(auto test,
                              MakeComparePredicate(element, CompareOp::kEq, needle));
      tests.push_back(std::move(test));
    }
  } else {
    GLAIVE_ASSIGN_OR_RETURN(auto test, MakeInPredicate(element, needles));
    tests.push_back(std::move(test));
  }
  return std::make_shared<ListHasExpr>(std::move(list), std::move(tests));
}

Result<BoolPtr> MakeTextPairs(TextTest test, ValuePtr text, ValuePtr pattern,
                              char escape) {
  for (const ValuePtr& value : {text, pattern}) {
    const auto* type = value->type().get();
    if (type->id() == arrow::Type::DICTIONARY) {
      type = static_cast<const arrow::DictionaryType*>(type)->value_type().get();
    }
    if (type->id() == arrow::Type::NA) return MakeTruth(Truth::kNull);
    if (type->id() != arrow::Type::STRING && type->id() != arrow::Type::LARGE_STRING) {
      return InvalidInput(
          "expression: text functions and LIKE need a string, not a value of type ",
          type->ToString());
    }
  }
  return std::make_shared<TextPairsExpr>(test, std::move(text), std::move(pattern),
                                         escape);
}

}  // namespace glaive::expr
