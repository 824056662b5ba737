#include "base/status.h"

#include <gtest/gtest.h>

namespace glaive {
namespace {

TEST(Status, KeepsItsKind) {
  Status s = NotFound("table '", "birds", "' was not found");
  EXPECT_EQ(KindOf(s), ErrorKind::kNotFound);
  EXPECT_EQ(s.message(), "table 'birds' was not found");
}

TEST(Status, ContextKeepsTheKind) {
  Status s = WithContext(Corruption("bad magic"), "file x.lance");
  EXPECT_EQ(KindOf(s), ErrorKind::kCorruption);
  EXPECT_EQ(s.message(), "file x.lance: bad magic");
}

TEST(Status, ArrowErrorsMapToTheNearestKind) {
  EXPECT_EQ(KindOf(arrow::Status::OutOfMemory("x")), ErrorKind::kResourceExhausted);
  EXPECT_EQ(KindOf(arrow::Status::TypeError("x")), ErrorKind::kInvalidInput);
  EXPECT_EQ(KindOf(Status::OK()), ErrorKind::kNone);
}

}  // namespace
}  // namespace glaive
