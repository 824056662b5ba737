#include "base/evaluation_error.h"

#include <memory>
#include <string_view>

namespace glaive {
namespace {

constexpr char kDetailTypeId[] = "glaive::EvaluationDetail";

class EvaluationDetail : public arrow::StatusDetail {
 public:
  const char* type_id() const override { return kDetailTypeId; }
  std::string ToString() const override { return "Evaluation"; }
};

}  // namespace

Status MakeEvaluationError(std::string message) {
  return Status(arrow::StatusCode::Invalid, std::move(message),
                std::make_shared<EvaluationDetail>());
}

bool IsEvaluationError(const Status& status) {
  return status.detail() != nullptr &&
         std::string_view(status.detail()->type_id()) == kDetailTypeId;
}

}  // namespace glaive
