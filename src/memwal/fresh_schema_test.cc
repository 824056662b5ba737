#include "memwal/fresh_schema.h"

#include <arrow/api.h>

#include "memwal/conform_array.h"
#include "memwal/test_util.h"

namespace glaive::memwal {
namespace {

using arrow::field;

std::shared_ptr<arrow::Array> Nulls(const std::shared_ptr<arrow::DataType>& type,
                                    int64_t length) {
  return arrow::MakeArrayOfNull(type, length).ValueOrDie();
}

std::shared_ptr<arrow::Array> Int64s(const std::vector<int64_t>& values,
                                     bool last_null = false) {
  arrow::Int64Builder builder;
  for (int64_t value : values) EXPECT_TRUE(builder.Append(value).ok());
  if (last_null) {
    EXPECT_TRUE(builder.AppendNull().ok());
  }
  return builder.Finish().ValueOrDie();
}

std::shared_ptr<arrow::Array> Strings(const std::vector<std::string>& values) {
  arrow::StringBuilder builder;
  EXPECT_TRUE(builder.AppendValues(values).ok());
  return builder.Finish().ValueOrDie();
}

std::shared_ptr<arrow::Schema> Simple() {
  return arrow::schema({KeyField("id", arrow::int64()), field("text", arrow::utf8()),
                        field("must", arrow::utf8(), false)});
}

std::shared_ptr<arrow::RecordBatch> Rows(const arrow::ArrayVector& columns,
                                         const std::vector<std::string>& names) {
  arrow::FieldVector fields;
  for (size_t i = 0; i < names.size(); ++i) {
    fields.push_back(field(names[i], columns[i]->type()));
  }
  return arrow::RecordBatch::Make(arrow::schema(fields), columns[0]->length(), columns);
}

std::string IdOf(const arrow::Field& f) {
  const auto id = FieldIdOf(f);
  return id ? std::to_string(*id) : "none";
}

TEST(FreshSchemaTest, WidensAllButTheKey) {
  const auto fresh = MakeFresh(Simple());
  EXPECT_EQ(fresh->key_columns(), std::vector<int>{0});
  EXPECT_EQ(fresh->key_names(), std::vector<std::string>{"id"});
  EXPECT_EQ(fresh->logical()->num_fields(), 3);
  const auto& storage = *fresh->storage();
  ASSERT_EQ(storage.num_fields(), 4);
  EXPECT_FALSE(storage.field(0)->nullable());
  EXPECT_TRUE(storage.field(2)->nullable());
  EXPECT_FALSE(fresh->logical()->field(2)->nullable());
  EXPECT_EQ(storage.field(3)->name(), "_tombstone");
  EXPECT_EQ(storage.field(3)->type()->id(), arrow::Type::BOOL);
  EXPECT_FALSE(storage.field(3)->nullable());
  // The generation has the table's ids and the key's flags.
  const auto& generation = fresh->generation();
  ASSERT_EQ(generation.fields().size(), 4u);
  EXPECT_EQ(generation.fields()[2].id, 2);
  EXPECT_EQ(generation.fields()[3].id, 3);
  EXPECT_TRUE(
      generation.fields()[0].metadata.contains("lance-schema:unenforced-primary-key"));
  EXPECT_TRUE(generation.ToArrow()->Equals(*fresh->storage(), false));
}

TEST(FreshSchemaTest, WalFieldsCarryIdsAsUpstream) {
  const auto fresh = MakeFresh(arrow::schema(
      {KeyField("id", arrow::int64()),
       field("s", arrow::struct_({field("a", arrow::int32()),
                                  field("b", arrow::list(arrow::utf8()))})),
       field("l", arrow::list(arrow::struct_({field("x", arrow::float32())}))),
       field("m", arrow::map(arrow::utf8(), arrow::int32())),
       field("v", arrow::fixed_size_list(arrow::float32(), 2)),
       field("d", arrow::dictionary(arrow::int8(), arrow::utf8()))},
      arrow::key_value_metadata({"top"}, {"meta"})));
  // The ids that pylance 14.0.2 wrote for this schema.
  const auto& wal = *fresh->wal();
  EXPECT_EQ(IdOf(*wal.field(0)), "0");
  EXPECT_EQ(IdOf(*wal.field(1)), "1");
  EXPECT_EQ(IdOf(*wal.field(1)->type()->field(0)), "2");
  EXPECT_EQ(IdOf(*wal.field(1)->type()->field(1)), "3");
  EXPECT_EQ(IdOf(*wal.field(1)->type()->field(1)->type()->field(0)), "4");
  EXPECT_EQ(IdOf(*wal.field(2)), "5");
  EXPECT_EQ(IdOf(*wal.field(2)->type()->field(0)), "6");
  EXPECT_EQ(IdOf(*wal.field(2)->type()->field(0)->type()->field(0)), "7");
  EXPECT_EQ(IdOf(*wal.field(3)), "8");
  const auto& entries = *wal.field(3)->type()->field(0);
  EXPECT_EQ(IdOf(entries), "none");
  EXPECT_EQ(IdOf(*entries.type()->field(0)), "10");
  EXPECT_EQ(IdOf(*entries.type()->field(1)), "11");
  EXPECT_EQ(IdOf(*wal.field(4)), "12");
  EXPECT_EQ(IdOf(*wal.field(4)->type()->field(0)), "none");
  EXPECT_EQ(IdOf(*wal.field(5)), "13");
  EXPECT_EQ(IdOf(*wal.field(6)), "none");
  EXPECT_EQ(wal.metadata()->Get("top").ValueOrDie(), "meta");
  EXPECT_TRUE(wal.Equals(*fresh->storage(), /*check_metadata=*/false));
}

TEST(FreshSchemaTest, KeysInTheirOrder) {
  const auto fresh = MakeFresh(
      arrow::schema({KeyField("a", arrow::int32(), 2), field("x", arrow::utf8()),
                     KeyField("b", arrow::utf8(), 1)}));
  EXPECT_EQ(fresh->key_columns(), (std::vector<int>{2, 0}));
  const auto none = MakeFresh(arrow::schema({field("x", arrow::utf8())}));
  EXPECT_TRUE(none->key_columns().empty());
  for (const auto& type : KeyTypes()) {
    EXPECT_EQ(MakeFresh(arrow::schema({KeyField("k", type)}))->key_names().size(), 1u);
  }
}

TEST(FreshSchemaTest, RefusesKeysThatCannotBe) {
  for (const auto& type :
       {arrow::float64(), arrow::date32(), arrow::timestamp(arrow::TimeUnit::MICRO)}) {
    const auto base =
        MakeBase(arrow::schema({KeyField("k", type)}), io::MakeMemoryStore());
    auto fresh = FreshSchema::Make(*base);
    EXPECT_KIND(ErrorKind::kInvalidInput, fresh.status());
    EXPECT_NE(
        fresh.status().message().find("Primary key column 'k' has unsupported type "),
        std::string::npos);
  }
  const auto reserved = MakeBase(
      arrow::schema({KeyField("k", arrow::int64()), field("_tombstone", arrow::int8())}),
      io::MakeMemoryStore());
  EXPECT_KIND(ErrorKind::kInvalidInput, FreshSchema::Make(*reserved).status());
}

TEST(FreshSchemaTest, ShapesWithoutCopy) {
  const auto fresh = MakeFresh(Simple());
  const auto ids = Int64s({1, 2});
  const auto rows =
      Rows({ids, Strings({"a", "b"}), Strings({"c", "d"})}, {"id", "text", "must"});
  ASSERT_OK_AND_ASSIGN(const auto shaped, fresh->Shape(*rows, 0));
  EXPECT_TRUE(shaped->schema()->Equals(*fresh->storage(), true));
  ASSERT_OK(shaped->ValidateFull());
  EXPECT_EQ(shaped->column_data(0)->buffers[1]->data(), ids->data()->buffers[1]->data());
  EXPECT_EQ(shaped->column(3)->ToString(), "[\n  false,\n  false\n]");
}

TEST(FreshSchemaTest, RefusesOtherRowsInUpstreamsWords) {
  const auto fresh = MakeFresh(Simple());
  const auto ids = Int64s({1});
  const auto text = Strings({"a"});
  const auto int32 = arrow::MakeArrayOfNull(arrow::int32(), 1).ValueOrDie();
  const auto check = [&](const std::shared_ptr<arrow::RecordBatch>& rows,
                         const std::string& message) {
    auto shaped = fresh->Shape(*rows, 4);
    EXPECT_KIND(ErrorKind::kSchemaMismatch, shaped.status());
    EXPECT_NE(shaped.status().message().find(message), std::string::npos)
        << shaped.status().ToString();
  };
  check(Rows({text, ids, text}, {"text", "id", "must"}),
        "batch 4 column 0 is named 'text', but the base table schema declares 'id' at "
        "that position");
  check(Rows({ids, text}, {"id", "text"}),
        "batch 4 does not match the base table schema: number of columns(2) must match "
        "number of fields(3) in schema");
  check(Rows({ids, text, text, ids}, {"id", "text", "must", "_tombstone"}),
        "number of columns(4) must match number of fields(3) in schema");
  check(Rows({int32, text, text}, {"id", "text", "must"}),
        "column types must match schema types, expected Int64 but found Int32 at column "
        "index 0");
  check(Rows({Int64s({}, true), text, text}, {"id", "text", "must"}),
        "Column 'id' is declared as non-nullable but contains null values");
  check(Rows({ids, text, Nulls(arrow::utf8(), 1)}, {"id", "text", "must"}),
        "Column 'must' is declared as non-nullable but contains null values");
}

TEST(FreshSchemaTest, Tombstones) {
  const auto fresh = MakeFresh(Simple());
  const auto rows = Rows({Strings({"x", "y"}), Int64s({1, 2})}, {"other", "id"});
  ASSERT_OK_AND_ASSIGN(const auto shaped, fresh->ShapeTombstones(*rows));
  ASSERT_OK(shaped->ValidateFull());
  EXPECT_TRUE(shaped->schema()->Equals(*fresh->storage(), true));
  EXPECT_EQ(shaped->column(1)->null_count(), 2);
  EXPECT_EQ(shaped->column(2)->null_count(), 2);
  EXPECT_EQ(shaped->column(3)->ToString(), "[\n  true,\n  true\n]");
  const auto check = [&](const std::shared_ptr<arrow::RecordBatch>& keys,
                         const std::string& message) {
    auto refused = fresh->ShapeTombstones(*keys);
    EXPECT_KIND(ErrorKind::kInvalidInput, refused.status());
    EXPECT_NE(refused.status().message().find(message), std::string::npos);
  };
  check(Rows({Int64s({1})}, {"x"}),
        "delete keys batch is missing primary key column 'id'");
  check(Rows({Strings({"a"})}, {"id"}), "failed to build tombstone batch");
  check(Rows({Int64s({}, true)}, {"id"}), "contains null values");
  const auto keyless = MakeFresh(arrow::schema({field("x", arrow::utf8())}));
  EXPECT_KIND(ErrorKind::kInvalidInput, keyless->ShapeTombstones(*rows).status());
}

std::shared_ptr<arrow::Field> WithId(const std::shared_ptr<arrow::Field>& f, int id) {
  return f->WithMergedMetadata(
      arrow::key_value_metadata({kFieldIdKey}, {std::to_string(id)}));
}

TEST(FreshSchemaTest, ConformsByIdThenName) {
  const auto fresh = MakeFresh(Simple());
  // Renamed since: "text" was "old"; a column with a name of today but another id is
  // another column.
  const auto entry = arrow::RecordBatch::Make(
      arrow::schema(
          {field("_tombstone", arrow::boolean()), WithId(field("old", arrow::utf8()), 1),
           WithId(field("must", arrow::int8()), 77), field("id", arrow::int64())}),
      2,
      {arrow::MakeArrayFromScalar(arrow::BooleanScalar(true), 2).ValueOrDie(),
       Strings({"p", "q"}), Nulls(arrow::int8(), 2), Int64s({5, 6})});
  ASSERT_OK_AND_ASSIGN(const auto rows, fresh->Conform(*entry));
  ASSERT_OK(rows->ValidateFull());
  EXPECT_TRUE(rows->schema()->Equals(*fresh->storage(), true));
  EXPECT_EQ(rows->column(0)->ToString(), "[\n  5,\n  6\n]");
  EXPECT_EQ(rows->column(1)->ToString(), "[\n  \"p\",\n  \"q\"\n]");
  EXPECT_EQ(rows->column(2)->null_count(), 2);
  EXPECT_EQ(rows->column(3)->ToString(), "[\n  true,\n  true\n]");
  // Without a tombstone column nothing is deleted.
  ASSERT_OK_AND_ASSIGN(const auto plain, fresh->Conform(*Rows({Int64s({1})}, {"id"})));
  EXPECT_EQ(plain->column(3)->ToString(), "[\n  false\n]");
  EXPECT_KIND(ErrorKind::kCorruption,
              fresh->Conform(*Rows({Strings({"a"})}, {"text"})).status());
  EXPECT_KIND(ErrorKind::kCorruption,
              fresh->Conform(*Rows({Strings({"a"})}, {"id"})).status());
  EXPECT_KIND(ErrorKind::kCorruption,
              fresh->Conform(*Rows({Int64s({}, true)}, {"id"})).status());
  EXPECT_KIND(
      ErrorKind::kCorruption,
      fresh->Conform(*Rows({Int64s({1}), Int64s({1})}, {"id", "_tombstone"})).status());
}

TEST(FreshSchemaTest, ConformsNestedColumns) {
  const auto fresh =
      MakeFresh(arrow::schema({KeyField("id", arrow::int64()),
                               field("s", arrow::struct_({field("a", arrow::int32()),
                                                          field("b", arrow::utf8())})),
                               field("m", arrow::map(arrow::utf8(), arrow::int32()))}));
  // Member a was called z, b did not exist, c has been dropped.
  const auto s = arrow::struct_(
      {WithId(field("z", arrow::int32()), 2), WithId(field("c", arrow::int8()), 50)});
  auto a = arrow::MakeArrayFromScalar(arrow::Int32Scalar(9), 2).ValueOrDie();
  auto c = Nulls(arrow::int8(), 2);
  const auto column =
      arrow::StructArray::Make({a, c}, s->fields()).ValueOrDie()->Slice(1, 1);
  const auto map = Nulls(arrow::map(arrow::utf8(), arrow::int32()), 1);
  const auto entry = arrow::RecordBatch::Make(
      arrow::schema({field("id", arrow::int64()), WithId(field("s", s), 1),
                     field("m", map->type())}),
      1, {Int64s({5}), column, map});
  ASSERT_OK_AND_ASSIGN(const auto rows, fresh->Conform(*entry));
  ASSERT_OK(rows->ValidateFull());
  const auto& out = static_cast<const arrow::StructArray&>(*rows->column(1));
  EXPECT_EQ(out.field(0)->ToString(), "[\n  9\n]");
  EXPECT_EQ(out.field(1)->null_count(), 1);
  EXPECT_EQ(out.type()->field(0)->name(), "a");
}

TEST(FreshSchemaTest, TombstoneIdsAreAboveAllThatTheTableGave) {
  const auto base = MakeBase(Simple(), io::MakeMemoryStore());
  ASSERT_OK_AND_ASSIGN(const int32_t highest, base->max_field_id());
  ASSERT_OK_AND_ASSIGN(const auto fresh, FreshSchema::Make(*base));
  EXPECT_GT(fresh->generation().fields().back().id, highest);
}

}  // namespace
}  // namespace glaive::memwal
