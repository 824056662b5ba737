// What failed: the text of an expression, or its evaluation?
#pragma once

#include "glaive/status.h"

namespace glaive {

// True for the failure of an expression that is well-formed, on the rows it met: division
// by zero, a cast that does not fit, a function out of its domain. The kind of such
// errors is kInvalidInput, as it is for expressions that cannot be parsed or bound;
// Python raises EvaluationError, which is a RuntimeError and no ValueError. Thread-safe.
bool IsEvaluationError(const Status& status);

}  // namespace glaive
