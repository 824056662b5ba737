// Evaluation of an expression for some of the rows only.
#pragma once

#include <cstdint>
#include <memory>

#include "expr/bound.h"

namespace glaive::expr {

// The values of `value` in the rows of `wanted`; what the other rows hold does not
// matter. An error counts only when a wanted row causes it: `CASE WHEN i <> 0 THEN 1 / i
// END` divides by no zero.
Result<std::shared_ptr<arrow::Array>> EvalWhere(const ValueExpr& value,
                                                const EvalContext& context,
                                                const uint64_t* wanted);
// The same for a condition: bits of `out` outside `wanted` are zero.
Status EvalWhere(const BoolExpr& condition, const EvalContext& context, bool want,
                 const uint64_t* wanted, uint64_t* out);

}  // namespace glaive::expr
