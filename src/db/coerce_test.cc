#include "db/coerce.h"

#include <cmath>
#include <limits>
#include <string>

#include <arrow/api.h>
#include <arrow/compute/initialize.h>
#include <arrow/json/from_string.h>
#include <gtest/gtest.h>

namespace glaive::db {
namespace {

using arrow::field;
using arrow::json::ArrayFromJSONString;

class CoerceTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { ASSERT_TRUE(arrow::compute::Initialize().ok()); }

  static std::shared_ptr<arrow::Array> Json(const std::shared_ptr<arrow::DataType>& type,
                                            const std::string& text) {
    return ArrayFromJSONString(type, text).ValueOrDie();
  }

  // One batch with the named columns, as the table's schema wants it.
  static Result<std::shared_ptr<arrow::RecordBatch>> Coerce(
      const std::vector<std::pair<std::string, std::shared_ptr<arrow::Array>>>& columns,
      const std::shared_ptr<arrow::Schema>& target, bool reject_nan = true) {
    arrow::FieldVector fields;
    arrow::ArrayVector arrays;
    for (const auto& [name, array] : columns) {
      fields.push_back(field(name, array->type()));
      arrays.push_back(array);
    }
    auto batch =
        arrow::RecordBatch::Make(arrow::schema(fields), arrays[0]->length(), arrays);
    GLAIVE_ASSIGN_OR_RETURN(auto data, arrow::RecordBatchReader::Make({batch}));
    GLAIVE_ASSIGN_OR_RETURN(auto reader, CoerceToSchema(data, target, reject_nan));
    GLAIVE_ASSIGN_OR_RETURN(auto out, reader->Next());
    GLAIVE_RETURN_NOT_OK(out->ValidateFull());
    return out;
  }

  // A single column `c` of type `to`.
  static Result<std::shared_ptr<arrow::Array>> Column(
      const std::shared_ptr<arrow::Array>& from,
      const std::shared_ptr<arrow::DataType>& to, bool nullable = true) {
    GLAIVE_ASSIGN_OR_RETURN(
        auto batch, Coerce({{"c", from}}, arrow::schema({field("c", to, nullable)})));
    return batch->column(0);
  }

  static void ExpectColumn(const std::shared_ptr<arrow::Array>& from,
                           const std::shared_ptr<arrow::DataType>& to,
                           const std::string& json) {
    auto got = Column(from, to);
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_TRUE((*got)->Equals(*Json(to, json))) << (*got)->ToString();
  }

  static void ExpectError(const std::shared_ptr<arrow::Array>& from,
                          const std::shared_ptr<arrow::DataType>& to, ErrorKind kind,
                          const std::string& text, bool nullable = true) {
    auto got = Column(from, to, nullable);
    ASSERT_FALSE(got.ok());
    EXPECT_EQ(KindOf(got.status()), kind) << got.status();
    EXPECT_NE(got.status().message().find(text), std::string::npos) << got.status();
  }
};

TEST_F(CoerceTest, NumbersAndStrings) {
  ExpectColumn(Json(arrow::int8(), "[1, null, -3]"), arrow::int64(), "[1, null, -3]");
  ExpectColumn(Json(arrow::float64(), "[1.5, -2.75]"), arrow::int32(), "[1, -2]");
  ExpectColumn(Json(arrow::int64(), "[3]"), arrow::utf8(), "[\"3\"]");
  ExpectColumn(Json(arrow::utf8(), "[\"7\"]"), arrow::int64(), "[7]");
  ExpectColumn(Json(arrow::utf8(), "[\"x\", null]"), arrow::large_utf8(),
               "[\"x\", null]");
  ExpectColumn(Json(arrow::null(), "[null, null]"), arrow::float32(), "[null, null]");
  ExpectError(Json(arrow::uint64(), "[9223372036854775808]"), arrow::int64(),
              ErrorKind::kSchemaMismatch, "Cast error");
  ExpectError(Json(arrow::float64(), "[1e300]"), arrow::int64(),
              ErrorKind::kSchemaMismatch, "Cast error");
  ExpectError(Json(arrow::utf8(), "[\"a\"]"), arrow::int64(), ErrorKind::kSchemaMismatch,
              "column 'c'");
}

TEST_F(CoerceTest, ListsChangeWidthAndItems) {
  const auto vector = arrow::fixed_size_list(arrow::float32(), 2);
  ExpectColumn(Json(arrow::list(arrow::float64()), "[[1, 2], null, [3, 4]]"), vector,
               "[[1, 2], null, [3, 4]]");
  ExpectColumn(Json(arrow::large_list(arrow::int64()), "[[1, 2]]"), vector, "[[1, 2]]");
  ExpectColumn(Json(vector, "[[1, 2], null]"), arrow::list(arrow::float64()),
               "[[1, 2], null]");
  ExpectColumn(Json(arrow::list(arrow::list(arrow::int32())), "[[[1], null], []]"),
               arrow::large_list(arrow::list(arrow::int8())), "[[[1], null], []]");
  ExpectError(Json(arrow::list(arrow::float32()), "[[1, 2], [1]]"), vector,
              ErrorKind::kSchemaMismatch, "the value at index 1 has length 1");
  ExpectError(Json(arrow::fixed_size_list(arrow::float32(), 3), "[[1, 2, 3]]"), vector,
              ErrorKind::kSchemaMismatch, "length 3");
  ExpectError(Json(arrow::float32(), "[1]"), vector, ErrorKind::kSchemaMismatch, "float");
}

TEST_F(CoerceTest, SlicesKeepTheirRows) {
  const auto lists =
      Json(arrow::list(arrow::float64()), "[[9, 9], [1, 2], null, [3, 4], [8, 8]]");
  ExpectColumn(lists->Slice(1, 3), arrow::fixed_size_list(arrow::float32(), 2),
               "[[1, 2], null, [3, 4]]");
  const auto from =
      arrow::struct_({field("b", arrow::int8()), field("a", arrow::int8())});
  const auto to =
      arrow::struct_({field("a", arrow::int64()), field("b", arrow::int64())});
  const auto structs =
      Json(from, R"([{"a": 0, "b": 0}, null, {"a": 2, "b": null}, {"a": 3}])");
  ExpectColumn(structs->Slice(1, 2), to, R"([null, {"a": 2, "b": null}])");
}

TEST_F(CoerceTest, StructMembersByName) {
  const auto to =
      arrow::struct_({field("lat", arrow::float64()), field("lon", arrow::float64()),
                      field("tag", arrow::utf8())});
  ExpectColumn(
      Json(arrow::struct_({field("lon", arrow::int8()), field("lat", arrow::float32())}),
           R"([{"lon": 2, "lat": 1.5}, null])"),
      to, R"([{"lat": 1.5, "lon": 2, "tag": null}, null])");
  ExpectError(Json(arrow::struct_({field("quay", arrow::int8())}), R"([{"quay": 2}])"),
              to, ErrorKind::kInvalidInput, "c.quay");
  const auto strict =
      arrow::struct_({field("a", arrow::int8()), field("b", arrow::int8(), false)});
  ExpectError(Json(arrow::struct_({field("a", arrow::int8())}), R"([{"a": 2}])"), strict,
              ErrorKind::kSchemaMismatch, "Append with different schema");
}

TEST_F(CoerceTest, ColumnsByNameAndMissingOnes) {
  const auto target =
      arrow::schema({field("id", arrow::int64(), false), field("s", arrow::utf8()),
                     field("x", arrow::int8())});
  auto batch = Coerce(
      {{"x", Json(arrow::int64(), "[5]")}, {"id", Json(arrow::int8(), "[1]")}}, target);
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_EQ((*batch)->schema()->field_names(), (std::vector<std::string>{"id", "x"}));
  EXPECT_TRUE((*batch)->column(1)->Equals(*Json(arrow::int8(), "[5]")));

  auto unknown = Coerce({{"zz", Json(arrow::int8(), "[1]")}}, target);
  EXPECT_EQ(KindOf(unknown.status()), ErrorKind::kInvalidInput);
  EXPECT_NE(unknown.status().message().find("'zz' does not exist"), std::string::npos);
  auto missing = Coerce({{"s", Json(arrow::utf8(), "[\"a\"]")}}, target);
  EXPECT_EQ(KindOf(missing.status()), ErrorKind::kSchemaMismatch);
  EXPECT_NE(missing.status().message().find("missing=[id]"), std::string::npos);
  auto nulls = Coerce({{"id", Json(arrow::int8(), "[1, null]")}}, target);
  EXPECT_EQ(KindOf(nulls.status()), ErrorKind::kInvalidInput);
  EXPECT_NE(nulls.status().message().find("`id` contained null values"),
            std::string::npos);
}

TEST_F(CoerceTest, NanInVectorsOnly) {
  const auto vector = arrow::fixed_size_list(arrow::float32(), 2);
  arrow::FloatBuilder builder;
  ASSERT_TRUE(builder.AppendValues({1, std::nanf(""), 3, 4}).ok());
  auto values = builder.Finish().ValueOrDie();
  auto with_nan = arrow::FixedSizeListArray::FromArrays(values, 2).ValueOrDie();
  ExpectError(with_nan, vector, ErrorKind::kInvalidInput, "NaN");
  EXPECT_TRUE(Column(with_nan->Slice(1), vector).ok());
  EXPECT_TRUE(Coerce({{"c", with_nan}}, arrow::schema({field("c", vector)}), false).ok());
  EXPECT_TRUE(Column(values, arrow::float64()).ok());
  // Under a null row a NaN is no value.
  auto bits = arrow::AllocateBuffer(1).ValueOrDie();
  bits->mutable_data()[0] = 0b10;
  auto hidden =
      std::make_shared<arrow::FixedSizeListArray>(vector, 2, values, std::move(bits));
  EXPECT_TRUE(Column(hidden, vector).ok());
}

TEST_F(CoerceTest, BytesAndTextsBecomeBlobs) {
  const auto blob = field("c", arrow::struct_({field("data", arrow::large_binary()),
                                               field("uri", arrow::utf8())}))
                        ->WithMetadata(arrow::key_value_metadata({"ARROW:extension:name"},
                                                                 {"lance.blob.v2"}));
  const auto wrapped = [&](const std::shared_ptr<arrow::DataType>& type) {
    auto batch = Coerce({{"c", Json(type, R"(["no", "ab", null])")->Slice(1)}},
                        arrow::schema({blob}));
    return std::pair(batch.status(), batch.ok() ? (*batch)->column(0) : nullptr);
  };
  for (const auto& type : {arrow::binary(), arrow::large_binary()}) {
    const auto [status, got] = wrapped(type);
    ASSERT_TRUE(status.ok()) << status;
    const auto& members = static_cast<const arrow::StructArray&>(*got);
    EXPECT_TRUE(members.IsNull(1));
    EXPECT_EQ(static_cast<const arrow::LargeBinaryArray&>(*members.field(0)).GetView(0),
              "ab");
    EXPECT_TRUE(members.field(1)->IsNull(0));
  }
  const auto [status, got] = wrapped(arrow::utf8());
  ASSERT_TRUE(status.ok()) << status;
  const auto& members = static_cast<const arrow::StructArray&>(*got);
  EXPECT_TRUE(members.field(0)->IsNull(0));
  EXPECT_EQ(static_cast<const arrow::StringArray&>(*members.field(1)).GetView(0), "ab");
  // A struct that is no blob takes no bytes.
  ExpectError(Json(arrow::binary(), R"(["ab"])"), blob->type(),
              ErrorKind::kSchemaMismatch, "has type binary");
}

TEST_F(CoerceTest, FittingColumnsAreNotCopied) {
  auto ints = Json(arrow::int64(), "[1, 2]");
  auto got = Column(ints, arrow::int64());
  ASSERT_TRUE(got.ok());
  EXPECT_EQ((*got)->data()->buffers[1].get(), ints->data()->buffers[1].get());
}

}  // namespace
}  // namespace glaive::db
