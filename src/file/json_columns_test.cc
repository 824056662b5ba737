#include "file/json_columns.h"

#include <arrow/api.h>

#include "base/testing.h"

namespace glaive::file {
namespace {

std::shared_ptr<arrow::Field> JsonField(const char* name) {
  return arrow::field(
      name, arrow::utf8(), true,
      arrow::key_value_metadata({"ARROW:extension:name", "ARROW:extension:metadata"},
                                {"arrow.json", ""}));
}

TEST(JsonColumns, NestedTextSurvivesStorage) {
  arrow::StringBuilder text;
  for (const char* value : {"{\"a\":[1,null]}", "\"x\"", "2.5"})
    ASSERT_OK(text.Append(value));
  ASSERT_OK(text.AppendNull());
  ASSERT_OK_AND_ASSIGN(auto values, text.Finish());
  auto member = JsonField("j");
  ASSERT_OK_AND_ASSIGN(auto in_struct,
                       arrow::StructArray::Make({values}, arrow::FieldVector{member}));
  auto schema = arrow::schema({JsonField("top"), arrow::field("s", in_struct->type()),
                               arrow::field("n", arrow::utf8())});
  auto batch =
      arrow::RecordBatch::Make(schema, 4, {values, in_struct, values})->Slice(1, 3);
  ASSERT_OK_AND_ASSIGN(auto stored, JsonToStorage(batch));
  EXPECT_EQ(stored->column(0)->type_id(), arrow::Type::LARGE_BINARY);
  EXPECT_EQ(stored->column(1)->type()->field(0)->type()->id(), arrow::Type::LARGE_BINARY);
  EXPECT_EQ(stored->column(2).get(), batch->column(2).get());
  EXPECT_TRUE(stored->schema()->Equals(*JsonToStorage(schema), true));
  ASSERT_OK_AND_ASSIGN(auto back, JsonToUser(stored));
  ASSERT_OK(back->ValidateFull());
  EXPECT_TRUE(back->Equals(*batch, /*check_metadata=*/true));
}

TEST(JsonColumns, BadTextNamesTheColumn) {
  arrow::StringBuilder text;
  ASSERT_OK(text.Append("{nope"));
  ASSERT_OK_AND_ASSIGN(auto values, text.Finish());
  auto batch =
      arrow::RecordBatch::Make(arrow::schema({JsonField("payload")}), 1, {values});
  auto stored = JsonToStorage(batch);
  EXPECT_ERROR_KIND(stored, ErrorKind::kInvalidInput);
  EXPECT_NE(stored.status().message().find("'payload'"), std::string::npos);
}

}  // namespace
}  // namespace glaive::file
