// Schemas edited: which ids fields keep and get, what is refused and in which words.
#include "table/schema_change.h"

#include <arrow/api.h>
#include <gtest/gtest.h>

#include "base/testing.h"
#include "format/file.pb.h"

namespace glaive::table {
namespace {

using arrow::field;

file::Schema Base() {
  // a 0, s 1 {x 2, y 3}, l 4 {item 5 {p 6, q 7}}, m 8 {entries 9 {key 10, value 11}}
  return *file::Schema::FromArrow(arrow::Schema(
      {field("a", arrow::int64(), false),
       field("s",
             arrow::struct_({field("x", arrow::int32()), field("y", arrow::utf8())})),
       field("l",
             arrow::list(field("item", arrow::struct_({field("p", arrow::int16()),
                                                       field("q", arrow::utf8())})))),
       field("m", arrow::map(arrow::utf8(), arrow::int32()))}));
}

std::string Describe(const std::vector<file::Field>& fields) {
  std::string out;
  for (const file::Field& f : fields) {
    if (!out.empty()) out += " ";
    out += f.name + ":" + std::to_string(f.id);
    if (!f.nullable) out += "!";
    if (!f.children.empty()) out += "{" + Describe(f.children) + "}";
  }
  return out;
}

std::string Message(const Status& status) {
  return std::string(ErrorKindName(KindOf(status))) + ": " + status.message();
}

ColumnAlteration Rename(std::string path, std::string name) {
  ColumnAlteration out;
  out.path = std::move(path);
  out.rename = std::move(name);
  return out;
}

ColumnAlteration Cast(std::string path, std::shared_ptr<arrow::DataType> type) {
  ColumnAlteration out;
  out.path = std::move(path);
  out.type = std::move(type);
  return out;
}

ColumnAlteration Nullable(std::string path, bool nullable) {
  ColumnAlteration out;
  out.path = std::move(path);
  out.nullable = nullable;
  return out;
}

TEST(SchemaChange, NewColumnsComeLastAndMembersJoinTheirStruct) {
  const arrow::Schema added({field("z", arrow::struct_({field("k", arrow::int8())})),
                             field("s", arrow::struct_({field("w", arrow::float32())}))});
  ASSERT_OK_AND_ASSIGN(const auto fields, AddFields(Base(), added, 20));
  EXPECT_EQ(Describe(fields.schema.fields()),
            "a:0! s:1{x:2 y:3 w:22} l:4{item:5{p:6 q:7}} "
            "m:8{entries:9!{key:10! value:11}} z:20{k:21}");
  EXPECT_EQ(Describe(fields.added.fields()), "z:20{k:21} s:1{w:22}");
  EXPECT_TRUE(fields.schema.ToArrow()->field(1)->type()->Equals(
      *arrow::struct_({field("x", arrow::int32()), field("y", arrow::utf8()),
                       field("w", arrow::float32())})));
}

TEST(SchemaChange, ColumnsThatCannotBeAdded) {
  const auto refuse = [](std::shared_ptr<arrow::Field> f) {
    return Message(AddFields(Base(), arrow::Schema({std::move(f)}), 20).status());
  };
  EXPECT_EQ(refuse(field("a", arrow::int64())),
            "InvalidInput: Column a already exists in the dataset");
  EXPECT_EQ(refuse(field("a", arrow::int32())),
            "InvalidInput: Type conflicts between a(int64) and a(int32)");
  EXPECT_EQ(refuse(field("s", arrow::struct_({field("x", arrow::int32())}))),
            "InvalidInput: Column s.x already exists in the dataset");
  EXPECT_EQ(refuse(field("b.c", arrow::int64())),
            "SchemaMismatch: Top level field b.c cannot contain `.`. Maybe you meant to "
            "create a struct field?");
  EXPECT_EQ(refuse(field("", arrow::int64())),
            "SchemaMismatch: the name of a column must not be empty");
  // Only case differs: another column, as upstream has it.
  EXPECT_OK(AddFields(Base(), arrow::Schema({field("A", arrow::int64())}), 20).status());
}

TEST(SchemaChange, FieldsAreDroppedByPath) {
  const auto drop = [](std::vector<std::string> paths) {
    auto dropped = DropFields(Base(), paths);
    return dropped.ok() ? Describe(dropped->fields()) : Message(dropped.status());
  };
  EXPECT_EQ(drop({"a", "m", "s.x"}), "s:1{y:3} l:4{item:5{p:6 q:7}}");
  EXPECT_EQ(drop({"l.item.p", "`s`.`y`"}),
            "a:0! s:1{x:2} l:4{item:5{q:7}} m:8{entries:9!{key:10! value:11}}");
  EXPECT_EQ(drop({"s.x", "s.y", "l.item.p", "l.item.q", "m"}), "a:0!");
  EXPECT_EQ(drop({"s", "s.x", "s"}),
            "a:0! l:4{item:5{p:6 q:7}} m:8{entries:9!{key:10! value:11}}");
  EXPECT_EQ(drop({"nope"}), "NotFound: Column nope does not exist in the dataset");
  EXPECT_EQ(drop({"A"}), "NotFound: Column A does not exist in the dataset");
  EXPECT_EQ(drop({"a", "s.z"}), "NotFound: Column s.z does not exist in the dataset");
  EXPECT_EQ(drop({"a", "s", "l", "m"}),
            "InvalidInput: Cannot drop all columns from a dataset");
  EXPECT_TRUE(drop({"m.entries.value"}).starts_with("NotSupported: dropping a part"));
}

TEST(SchemaChange, AlterationsReferToTheSchemaBefore) {
  const std::vector<ColumnAlteration> swap = {Rename("s.x", "y"), Rename("s.y", "x")};
  ASSERT_OK_AND_ASSIGN(auto altered, AlterFields(Base(), swap, 20));
  EXPECT_EQ(Describe(altered.schema.fields()).substr(0, 19), "a:0! s:1{y:2 x:3} l");

  const std::vector<ColumnAlteration> casts = {
      Cast("l.item.p", arrow::int64()), Cast("a", arrow::uint8()), Rename("s", "t"),
      Cast("s.x", arrow::int32())};
  ASSERT_OK_AND_ASSIGN(altered, AlterFields(Base(), casts, 20));
  // A cast to the same type is none; others get ids in the order of the alterations.
  EXPECT_EQ(Describe(altered.schema.fields()),
            "a:21! t:1{x:2 y:3} l:4{item:5{p:20 q:7}} m:8{entries:9!{key:10! value:11}}");
  ASSERT_EQ(altered.casts.size(), 2u);
  EXPECT_EQ(altered.casts[0].old_id, 6);
  EXPECT_EQ(altered.casts[0].new_id, 20);

  const std::vector<ColumnAlteration> nulls = {
      Nullable("a", true), Nullable("s.y", false), Nullable("s", true)};
  ASSERT_OK_AND_ASSIGN(altered, AlterFields(Base(), nulls, 20));
  EXPECT_EQ(Describe(altered.schema.fields()).substr(0, 20), "a:0 s:1{x:2 y:3!} l:");
  EXPECT_EQ(altered.made_non_null, std::vector<int32_t>{3});
}

TEST(SchemaChange, AlterationsThatAreRefused) {
  const auto refuse = [](ColumnAlteration change) {
    const std::vector<ColumnAlteration> changes = {std::move(change)};
    return Message(AlterFields(Base(), changes, 20).status());
  };
  EXPECT_EQ(refuse(Rename("nope", "x")),
            "InvalidInput: Column \"nope\" does not exist in the dataset");
  EXPECT_EQ(refuse(Rename("a", "s")),
            "SchemaMismatch: Duplicate field name \"s\" in schema");
  EXPECT_EQ(refuse(Rename("s.x", "y")),
            "SchemaMismatch: Duplicate field name \"y\" in schema, below s");
  EXPECT_TRUE(refuse(Rename("a", "b.c")).starts_with("SchemaMismatch: Top level field"));
  EXPECT_TRUE(refuse(Rename("a", "")).starts_with("SchemaMismatch: the name"));
  EXPECT_EQ(refuse(Cast("a", arrow::utf8())),
            "InvalidInput: Cannot cast column \"a\" from int64 to string");
  EXPECT_TRUE(refuse(Cast("m.entries.value", arrow::int64()))
                  .starts_with("NotSupported: casting a part of column"));
}

TEST(SchemaChange, CastsThatColumnsMayTake) {
  using namespace arrow;  // the table below is about types only
  const auto i32 = int32(), f32 = float32();
  const std::vector<std::pair<std::shared_ptr<DataType>, std::shared_ptr<DataType>>> yes =
      {
          {int8(), uint64()},
          {uint64(), int8()},
          {float16(), float64()},
          {float64(), float16()},
          {utf8(), large_utf8()},
          {large_binary(), binary()},
          {date32(), date64()},
          {date64(), timestamp(TimeUnit::NANO)},
          {timestamp(TimeUnit::MICRO), date32()},
          {timestamp(TimeUnit::MICRO), timestamp(TimeUnit::SECOND, "UTC")},
          {timestamp(TimeUnit::MICRO), time64(TimeUnit::MICRO)},
          {time32(TimeUnit::SECOND), time64(TimeUnit::NANO)},
          {duration(TimeUnit::SECOND), duration(TimeUnit::NANO)},
          {decimal128(5, 1), decimal256(9, 2)},
          {utf8(), dictionary(int32(), utf8())},
          {dictionary(int32(), utf8()), large_utf8()},
          {list(i32), list(int64())},
          {list(i32), large_list(i32)},
          {list(f32), fixed_size_list(f32, 2)},
          {fixed_size_list(f32, 2), fixed_size_list(float16(), 2)},
          {fixed_size_list(f32, 2), list(f32)},
          {list(list(i32)), list(list(int8()))},
      };
  for (const auto& [from, to] : yes) {
    EXPECT_TRUE(CanCast(*from, *to)) << from->ToString() << " to " << to->ToString();
  }
  const std::vector<std::pair<std::shared_ptr<DataType>, std::shared_ptr<DataType>>> no =
      {
          {int8(), float32()},
          {float32(), int8()},
          {boolean(), int8()},
          {utf8(), binary()},
          {utf8(), int32()},
          {int32(), utf8()},
          {date32(), time64(TimeUnit::MICRO)},
          {time64(TimeUnit::MICRO), timestamp(TimeUnit::MICRO)},
          {duration(TimeUnit::SECOND), int64()},
          {decimal128(5, 1), int64()},
          {null(), int32()},
          {list(i32), list(f32)},
          {fixed_size_list(f32, 2), fixed_size_list(f32, 3)},
          {list(struct_({field("x", i32)})), large_list(struct_({field("x", int64())}))},
          {struct_({field("x", i32)}), struct_({field("x", int64())})},
          {fixed_size_binary(2), binary()},
      };
  for (const auto& [from, to] : no) {
    EXPECT_FALSE(CanCast(*from, *to)) << from->ToString() << " to " << to->ToString();
  }
}

TEST(SchemaChange, WhatThisBuildDoesNotKnowOfAFieldStays) {
  google::protobuf::RepeatedPtrField<lance::file::Field> current, next;
  Base().ToProto(&current);
  current[0].set_unenforced_clustering_key(true);
  current[0].set_unenforced_clustering_key_position(3);
  const std::string unknown = "\x98\x06\x05";  // field 99, of a later format
  ASSERT_TRUE(current[2].ParseFromString(current[2].SerializeAsString() + unknown));
  const std::vector<ColumnAlteration> changes = {Rename("a", "b"), Rename("s.x", "xx"),
                                                 Cast("s.y", arrow::large_utf8())};
  ASSERT_OK_AND_ASSIGN(const auto altered, AlterFields(Base(), changes, 20));
  FieldsToProto(altered.schema, current, &next);
  ASSERT_EQ(next.size(), current.size());
  EXPECT_EQ(next[0].name(), "b");
  EXPECT_TRUE(next[0].unenforced_clustering_key());
  EXPECT_EQ(next[0].unenforced_clustering_key_position(), 3u);
  EXPECT_EQ(next[2].name(), "xx");
  EXPECT_TRUE(next[2].SerializeAsString().ends_with(unknown));
  EXPECT_EQ(next[3].id(), 20);
  EXPECT_EQ(next[3].logical_type(), "large_string");
}

TEST(SchemaChange, PrimaryKeys) {
  const auto key =
      arrow::key_value_metadata({"lance-schema:unenforced-primary-key"}, {"TRUE"});
  const auto check = [&](std::shared_ptr<arrow::Field> f) {
    const auto schema = *file::Schema::FromArrow(arrow::Schema({std::move(f)}));
    const Status status = CheckPrimaryKey(schema);
    return std::to_string(PrimaryKeyOf(schema).size()) + " " +
           (status.ok() ? "OK" : Message(status).substr(0, 30));
  };
  EXPECT_EQ(check(field("a", arrow::int64(), false, key)), "1 OK");
  EXPECT_EQ(check(field("a", arrow::int64(), true, key)),
            "1 SchemaMismatch: Primary key co");
  EXPECT_EQ(
      check(field("a", arrow::struct_({field("x", arrow::int8(), false, key)}), false)),
      "1 OK");
  EXPECT_EQ(check(field("a", arrow::struct_({field("x", arrow::int8(), false, key)}))),
            "1 SchemaMismatch: Primary key co");
  EXPECT_EQ(check(field("a", arrow::list(field("x", arrow::int8(), false, key)), false)),
            "1 SchemaMismatch: Primary key co");
  EXPECT_EQ(check(field("a", arrow::int64())), "0 OK");
}

}  // namespace
}  // namespace glaive::table
