// Chains of operators: short ones are trees, long ones are cut so that neither their
// evaluation nor their end recurses deeply.
#include <utility>

#include <arrow/datum.h>
#include <arrow/type.h>

#include "expr/bound.h"
#include "expr/coercion.h"
#include "expr/kernel.h"

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

// Whether the chain does nothing but append texts, and values as texts.
bool AppendsTexts(const std::vector<std::string>& ops,
                  const std::vector<ValuePtr>& operands) {
  for (const std::string& op : ops) {
    if (op != "||") return false;
  }
  for (const ValuePtr& operand : operands) {
    const TypePtr type = ValueType(operand->type());
    if (IsList(*type) || IsBytes(*type)) return false;
  }
  return IsText(*ValueType(operands[0]->type())) ||
         IsText(*ValueType(operands[1]->type()));
}

// All at once: link by link, the text in front would be copied by each of them.
Result<ValuePtr> JoinTexts(std::vector<ValuePtr> operands) {
  TypePtr type = arrow::utf8();
  for (const ValuePtr& operand : operands) {
    if (ValueType(operand->type())->id() == arrow::Type::LARGE_STRING) {
      type = arrow::large_utf8();
    }
  }
  for (ValuePtr& operand : operands) {
    GLAIVE_ASSIGN_OR_RETURN(operand, MakeCast(std::move(operand), type));
  }
  return MakeKernel(type, std::move(operands), [type](const KernelArgs& args) {
    std::vector<Texts> texts;
    texts.reserve(args.size());
    for (const Arg& arg : args.args) texts.emplace_back(arg);
    return MapText(args, type, [&](int64_t i, std::string* out) -> Result<bool> {
      for (const Texts& text : texts) out->append(text[i]);
      return true;
    });
  });
}

}  // namespace

Result<ValuePtr> MakeArithmeticChain(const std::vector<std::string>& ops,
                                     std::vector<ValuePtr> operands, bool adapt) {
  if (ops.size() > 1 && AppendsTexts(ops, operands))
    return JoinTexts(std::move(operands));
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
