// Errors of expressions that are well-formed but fail on the rows.
#pragma once

#include <string>
#include <utility>

#include "base/status.h"
#include "glaive/evaluation_error.h"  // IsEvaluationError

namespace glaive {

Status MakeEvaluationError(std::string message);

template <typename... Args>
[[nodiscard]] Status EvaluationError(const Args&... args) {
  return MakeEvaluationError(internal::Join(args...));
}

}  // namespace glaive
