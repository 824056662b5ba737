// Evaluation ends within a batch when the call that it works for has to end.
#include <chrono>

#include <arrow/array.h>
#include <arrow/builder.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>

#include "base/testing.h"
#include "expr/predicate.h"
#include "runtime/cancel_scope.h"
#include "runtime/runtime.h"

namespace glaive::expr {
namespace {

class PredicateCancel : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    arrow::Int64Builder numbers;
    arrow::StringBuilder texts;
    for (int64_t i = 0; i < kRows; ++i) {
      ASSERT_OK(numbers.Append(i));
      ASSERT_OK(texts.Append("ab"));
    }
    const auto schema = arrow::schema(
        {arrow::field("i", arrow::int64()), arrow::field("s", arrow::utf8())});
    batch_ = arrow::RecordBatch::Make(
        schema, kRows, {numbers.Finish().ValueOrDie(), texts.Finish().ValueOrDie()});
    auto made = file::Schema::FromArrow(*schema);
    ASSERT_OK(made.status());
    auto predicate = Predicate::Make(GetParam(), *made);
    ASSERT_OK(predicate.status());
    predicate_ = std::move(*predicate);
  }

  Status Evaluate() const {
    std::vector<uint8_t> keep(static_cast<size_t>((kRows + 63) / 64 * 8));
    return predicate_->Evaluate(*batch_, keep.data()).status();
  }

  static constexpr int64_t kRows = 40000;
  std::shared_ptr<arrow::RecordBatch> batch_;
  std::shared_ptr<const Predicate> predicate_;
};

TEST_P(PredicateCancel, EndsWhenTheCallIsCancelled) {
  CancelToken token;
  const CancelScope scope(&token);
  EXPECT_OK(Evaluate());
  token.Cancel();
  EXPECT_ERROR_KIND(Evaluate(), ErrorKind::kCancelled);
}

TEST_P(PredicateCancel, EndsWhenTheDeadlineHasPassed) {
  CancelToken token(std::chrono::nanoseconds(1));
  {
    const CancelScope scope(&token);
    EXPECT_ERROR_KIND(Evaluate(), ErrorKind::kTimeout);
  }
  EXPECT_OK(Evaluate());  // it was the call's, not the thread's
}

TEST_P(PredicateCancel, TasksAskTheTokenOfTheirCall) {
  auto runtime = Runtime::Make({.num_threads = 3});
  ASSERT_OK(runtime.status());
  CancelToken token;
  const Status status = (*runtime)->ParallelFor(
      3,
      [&](int64_t) -> Status {
        token.Cancel();
        return Evaluate();
      },
      &token);
  EXPECT_ERROR_KIND(status, ErrorKind::kCancelled);
  EXPECT_OK(Evaluate());
}

INSTANTIATE_TEST_SUITE_P(Forms, PredicateCancel,
                         ::testing::Values("i > 3", "length(s || s || s) > 1",
                                           "i > 1 AND i % 3 = 1 OR s LIKE 'a%'"));

}  // namespace
}  // namespace glaive::expr
