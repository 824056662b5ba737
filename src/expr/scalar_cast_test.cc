// Values of updates, cast to the type of their column: what lancedb 0.40.0 stored for
// each.
#include <arrow/array.h>
#include <arrow/json/from_string.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>

#include "base/testing.h"
#include "expr/predicate.h"

namespace glaive::expr {
namespace {

using arrow::json::ArrayFromJSONString;

class ScalarCast : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::pair<std::shared_ptr<arrow::Field>, const char*> columns[] = {
        {arrow::field("k", arrow::int64()), "[1]"},
        {arrow::field("i", arrow::int32()), "[7]"},
        {arrow::field("s", arrow::utf8()), R"(["5"])"},
        {arrow::field("d", arrow::float64()), "[2.7]"},
        {arrow::field("b", arrow::boolean()), "[null]"},
        {arrow::field("ts", arrow::timestamp(arrow::TimeUnit::MICRO)),
         R"(["2020-01-02 03:04:05"])"}};
    arrow::FieldVector fields;
    arrow::ArrayVector arrays;
    for (const auto& [field, json] : columns) {
      fields.push_back(field);
      auto array = ArrayFromJSONString(field->type(), json);
      ASSERT_OK(array.status());
      arrays.push_back(*array);
    }
    auto schema = file::Schema::FromArrow(*arrow::schema(fields));
    ASSERT_OK(schema.status());
    schema_ = *schema;
    batch_ = arrow::RecordBatch::Make(arrow::schema(fields), 1, arrays);
  }

  Result<std::shared_ptr<arrow::Array>> Value(const std::string& sql,
                                              std::shared_ptr<arrow::DataType> type) {
    GLAIVE_ASSIGN_OR_RETURN(auto expression,
                            ScalarExpr::MakeCastTo(sql, schema_, std::move(type)));
    return expression->Evaluate(*batch_);
  }

  file::Schema schema_;
  std::shared_ptr<arrow::RecordBatch> batch_;
};

TEST_F(ScalarCast, ValuesThatFit) {
  struct Case {
    std::shared_ptr<arrow::DataType> type;
    const char* sql;
    const char* json;
  };
  const auto micros = arrow::timestamp(arrow::TimeUnit::MICRO);
  const Case kCases[] = {
      {arrow::int32(), "1.5", "[1]"},
      {arrow::int32(), "'15'", "[15]"},
      {arrow::int32(), "d", "[2]"},
      {arrow::int32(), "s", "[5]"},
      {arrow::int32(), "true", "[1]"},
      {arrow::int32(), "b", "[null]"},
      {arrow::int32(), "NULL", "[null]"},
      {arrow::int8(), "s", "[5]"},
      {arrow::float32(), "0.1", "[0.1]"},
      {arrow::float32(), "'0.5'", "[0.5]"},
      {arrow::float64(), "'1e3'", "[1000]"},
      {arrow::float64(), "i", "[7]"},
      {arrow::float16(), "1.5", "[1.5]"},
      {arrow::utf8(), "i", R"(["7"])"},
      {arrow::utf8(), "d", R"(["2.7"])"},
      {arrow::utf8(), "1.5", R"(["1.5"])"},
      {arrow::utf8(), "true", R"(["true"])"},
      {arrow::utf8(), "ts", R"(["2020-01-02T03:04:05"])"},
      {arrow::large_utf8(), "s", R"(["5"])"},
      {arrow::boolean(), "1", "[true]"},
      {arrow::boolean(), "'true'", "[true]"},
      {arrow::boolean(), "i > 3", "[true]"},
      {arrow::date32(), "'2020-01-01'", "[18262]"},
      {arrow::date32(), "ts", "[18263]"},
      {arrow::date32(), "5", "[5]"},
      {micros, "'2020-01-01 01:02:03.123456'", R"(["2020-01-01 01:02:03.123456"])"},
      {micros, "DATE '2020-01-01'", R"(["2020-01-01"])"},
      {micros, "5", R"(["1970-01-01 00:00:00.000005"])"},
      {arrow::timestamp(arrow::TimeUnit::MILLI, "UTC"), "'2020-01-01T00:00:00+01:00'",
       R"(["2019-12-31 23:00:00Z"])"},
      {arrow::time64(arrow::TimeUnit::MICRO), "'10:00:00'", "[36000000000]"},
      {arrow::duration(arrow::TimeUnit::SECOND), "5", "[5]"},
      {arrow::decimal128(10, 2), "1.555", R"(["1.56"])"},
      {arrow::decimal128(10, 2), "'1.5'", R"(["1.50"])"},
      {arrow::decimal128(10, 2), "d", R"(["2.70"])"},
      {arrow::list(arrow::int32()), "[1.5]", "[[1]]"},
      {arrow::list(arrow::int32()), "make_array(i)", "[[7]]"},
      {arrow::fixed_size_list(arrow::float32(), 2), "[1, 2]", "[[1, 2]]"},
      {arrow::fixed_size_list(arrow::float16(), 2), "[1.0, 2.0]", "[[1, 2]]"},
      {arrow::struct_({arrow::field("x", arrow::int32())}), "named_struct('x', i)",
       R"([{"x": 7}])"},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(std::string(c.sql) + " as " + c.type->ToString());
    auto value = Value(c.sql, c.type);
    ASSERT_TRUE(value.status().ok()) << value.status().ToString();
    EXPECT_OK((*value)->ValidateFull());
    auto expected = ArrayFromJSONString(c.type, c.json);
    ASSERT_OK(expected.status());
    EXPECT_TRUE((*value)->Equals(**expected)) << (*value)->ToString();
  }
}

TEST_F(ScalarCast, ConstantsThatDoNotFitAreRefusedAtOnce) {
  const std::pair<const char*, std::shared_ptr<arrow::DataType>> kCases[] = {
      {"'1.5'", arrow::int32()},
      {"'abc'", arrow::int32()},
      {"3000000000", arrow::int32()},
      {"300", arrow::int8()},
      {"-1", arrow::uint8()},
      {"X'CA'", arrow::fixed_size_binary(2)},
      {"[1, 2, 3]", arrow::fixed_size_list(arrow::float32(), 2)},
      {"'5 s'", arrow::duration(arrow::TimeUnit::SECOND)},
      {"named_struct('y', 1)", arrow::struct_({arrow::field("x", arrow::int32())})},
  };
  for (const auto& [sql, type] : kCases) {
    SCOPED_TRACE(sql);
    EXPECT_ERROR_KIND(ScalarExpr::MakeCastTo(sql, schema_, type).status(),
                      ErrorKind::kInvalidInput);
  }
}

TEST_F(ScalarCast, RowsThatDoNotFitAreErrorsOfTheEvaluation) {
  EXPECT_ERROR_KIND(Value("i * 100", arrow::int8()).status(), ErrorKind::kInvalidInput);
  EXPECT_ERROR_KIND(Value("i - 10", arrow::uint8()).status(), ErrorKind::kInvalidInput);
  EXPECT_ERROR_KIND(Value("k + 3000000000", arrow::int32()).status(),
                    ErrorKind::kInvalidInput);
}

}  // namespace
}  // namespace glaive::expr
