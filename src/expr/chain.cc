// Chains of operators: short ones are trees, long ones are cut so that neither their
// evaluation nor their end recurses deeply.
#include <utility>

#include <arrow/datum.h>

#include "expr/bound.h"

namespace glaive::expr {
namespace {

// Operators that are evaluated by recursion; the next ones take their value from a slot.
constexpr size_t kLinkOperators = 64;

// What the links before gave.
class SlotExpr : public ValueExpr {
 public:
  using ValueExpr::ValueExpr;
  Result<arrow::Datum> Eval(const EvalContext& context) const override {
    if (context.carried == nullptr) {
      return InternalError("expression: a link is evaluated outside of its chain");
    }
    return *context.carried;
  }
};

class ChainExpr : public ValueExpr {
 public:
  explicit ChainExpr(std::vector<ValuePtr> links)
      : ValueExpr(links.back()->type()), links_(std::move(links)) {}

  Result<arrow::Datum> Eval(const EvalContext& context) const override {
    GLAIVE_ASSIGN_OR_RETURN(arrow::Datum value, links_[0]->Eval(context));
    for (size_t i = 1; i < links_.size(); ++i) {
      const EvalContext inner{context.batch, context.rows, &value};
      GLAIVE_ASSIGN_OR_RETURN(arrow::Datum next, links_[i]->Eval(inner));
      value = std::move(next);
    }
    return value;
  }

 private:
  std::vector<ValuePtr> links_;
};

}  // namespace

Result<ValuePtr> MakeArithmeticChain(const std::vector<std::string>& ops,
                                     std::vector<ValuePtr> operands, bool adapt) {
  std::vector<ValuePtr> links;
  ValuePtr value = std::move(operands[0]);
  size_t operators = 0;
  for (size_t i = 0; i < ops.size(); ++i) {
    if (operators == kLinkOperators) {
      operators = 0;
      if (value->constant() == nullptr) {
        links.push_back(value);
        value = std::make_shared<SlotExpr>(value->type());
      }
    }
    GLAIVE_ASSIGN_OR_RETURN(
        value, MakeArithmetic(ops[i], std::move(value), std::move(operands[i + 1]),
                              adapt && i + 1 == ops.size()));
    ++operators;
  }
  if (links.empty()) return value;
  links.push_back(std::move(value));
  return std::make_shared<ChainExpr>(std::move(links));
}

}  // namespace glaive::expr
