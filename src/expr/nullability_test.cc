// Which expressions the real package calls nullable; its answers.
#include "expr/nullability.h"

#include <arrow/api.h>
#include <gtest/gtest.h>

#include "base/testing.h"

namespace glaive::expr {
namespace {

TEST(Nullability, AsUpstreamHasIt) {
  const auto schema = *file::Schema::FromArrow(arrow::Schema(
      {arrow::field("n", arrow::int64(), false), arrow::field("t", arrow::utf8(), false),
       arrow::field("d", arrow::int64()),
       arrow::field("s", arrow::struct_({arrow::field("x", arrow::int64(), false)}))}));
  for (const char* sql : {"n",
                          "N",
                          "n+1",
                          "-n",
                          "t||'x'",
                          "n>1",
                          "n is null",
                          "d is null",
                          "not n>1",
                          "cast(n as int)",
                          "coalesce(d,1)",
                          "n in (1,2)",
                          "n between 1 and 2",
                          "t like 'a%'",
                          "1",
                          "'x'",
                          "true",
                          "n=1 and t='a'",
                          "current_date()",
                          "date '2020-01-01'",
                          "n/2",
                          "n%2",
                          "1+1",
                          "n::string",
                          "regexp_like(t,'a')",
                          "starts_with(t,'a')",
                          "pi()",
                          "abs(1)",
                          "concat('a','b')",
                          "greatest(1,2)",
                          "case when n > 1 then n else 2 end"}) {
    ASSERT_OK_AND_ASSIGN(const bool never, NeverNull(sql, schema));
    EXPECT_TRUE(never) << sql;
  }
  for (const char* sql : {"d",
                          "n*d",
                          "abs(n)",
                          "upper(t)",
                          "coalesce(d,d)",
                          "d in (1,2)",
                          "length(t)",
                          "null",
                          "n=1 and d=1",
                          "nullif(n,1)",
                          "d is not distinct from 1",
                          "concat(t,'x')",
                          "power(n,2)",
                          "regexp_match(t,'a')",
                          "d=1 or n=1",
                          "s.x",
                          "try_cast(t as int)",
                          "random()",
                          "random() > 0.5",
                          "uuid()",
                          "length(uuid())",
                          "case when n > 1 then n end",
                          "case when n > 1 then d else 2 end"}) {
    ASSERT_OK_AND_ASSIGN(const bool never, NeverNull(sql, schema));
    EXPECT_FALSE(never) << sql;
  }
}

}  // namespace
}  // namespace glaive::expr
