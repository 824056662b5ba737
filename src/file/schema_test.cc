#include "file/schema.h"

#include <arrow/type.h>
#include <arrow/util/key_value_metadata.h>
#include <gtest/gtest.h>

#include "base/testing.h"
#include "format/file.pb.h"

namespace glaive::file {
namespace {

std::shared_ptr<arrow::Schema> Everything() {
  auto bf16 = arrow::field(
      "item", arrow::fixed_size_binary(2), true,
      arrow::key_value_metadata({"ARROW:extension:name", "ARROW:extension:metadata"},
                                {"lance.bfloat16", ""}));
  auto point = arrow::struct_(
      {arrow::field("x", arrow::int32()), arrow::field("y", arrow::utf8(), false)});
  return arrow::schema({
      arrow::field("i", arrow::int32(), false),
      arrow::field("h", arrow::float16()),
      arrow::field("t", arrow::timestamp(arrow::TimeUnit::MICRO, "+08:00")),
      arrow::field("d", arrow::decimal128(30, 6)),
      arrow::field("e", arrow::decimal256(60, -2)),
      arrow::field("fsb", arrow::fixed_size_binary(7)),
      arrow::field("dict", arrow::dictionary(arrow::int8(), arrow::large_utf8())),
      arrow::field("v",
                   arrow::fixed_size_list(arrow::field("item", arrow::float32()), 16)),
      arrow::field("b", arrow::fixed_size_list(bf16, 4)),
      arrow::field("vv",
                   arrow::fixed_size_list(
                       arrow::field("item", arrow::fixed_size_list(
                                                arrow::field("item", arrow::int8()), 2)),
                       3)),
      arrow::field("l", arrow::list(arrow::field("element", arrow::int64(), false))),
      arrow::field("ls", arrow::large_list(arrow::field("item", point))),
      arrow::field("fs", arrow::fixed_size_list(arrow::field("item", point), 2)),
      arrow::field("m", arrow::map(arrow::utf8(), arrow::int16())),
      arrow::field("s",
                   arrow::struct_(
                       {arrow::field("inner", point), arrow::field("z", arrow::null())}),
                   true, arrow::key_value_metadata({"k"}, {"v"})),
  });
}

TEST(Schema, ArrowToProtoAndBackKeepsEveryType) {
  auto arrow_schema = Everything();
  ASSERT_OK_AND_ASSIGN(Schema schema, Schema::FromArrow(*arrow_schema));
  EXPECT_TRUE(schema.ToArrow()->Equals(*arrow_schema, true))
      << schema.ToArrow()->ToString();
  lance::file::Schema pb;
  schema.ToProto(&pb);
  ASSERT_OK_AND_ASSIGN(Schema back, Schema::FromProto(pb));
  EXPECT_TRUE(back.ToArrow()->Equals(*arrow_schema, true)) << back.ToArrow()->ToString();
  // Depth first from 0, parents before children.
  for (int i = 0; i < pb.fields_size(); ++i) {
    EXPECT_EQ(pb.fields(i).id(), i);
    EXPECT_LT(pb.fields(i).parent_id(), i);
  }
}

TEST(Schema, LogicalTypesAreSpelledAsInTheFormat) {
  ASSERT_OK_AND_ASSIGN(Schema schema, Schema::FromArrow(*Everything()));
  auto logical = [&](const char* name) {
    return schema.FindTopLevel(name)->logical_type;
  };
  EXPECT_EQ(logical("t"), "timestamp:us:+08:00");
  EXPECT_EQ(logical("dict"), "dict:large_string:int8:false");
  EXPECT_EQ(logical("b"), "fixed_size_list:lance.bfloat16:4");
  EXPECT_EQ(logical("vv"), "fixed_size_list:fixed_size_list:int8:2:3");
  EXPECT_EQ(logical("ls"), "large_list.struct");
  EXPECT_EQ(logical("fs"), "fixed_size_list:struct:2");
  EXPECT_EQ(logical("e"), "decimal:256:60:-2");
}

TEST(Schema, ProjectsNestedMembersAndMergesThem) {
  ASSERT_OK_AND_ASSIGN(Schema schema, Schema::FromArrow(*Everything()));
  std::vector<std::string> paths = {"s.inner.y", "i", "s.z", "ls.x"};
  ASSERT_OK_AND_ASSIGN(Schema part, schema.Project(paths));
  auto want = arrow::schema(
      {arrow::field(
           "s", arrow::struct_({arrow::field("inner", arrow::struct_({arrow::field(
                                                          "y", arrow::utf8(), false)})),
                                arrow::field("z", arrow::null())})),
       arrow::field("i", arrow::int32(), false),
       arrow::field("ls",
                    arrow::large_list(arrow::field(
                        "item", arrow::struct_({arrow::field("x", arrow::int32())}))))});
  EXPECT_TRUE(part.ToArrow()->Equals(*want, false)) << part.ToArrow()->ToString();
  std::vector<std::string> missing = {"s.nope"};
  EXPECT_EQ(KindOf(schema.Project(missing).status()), ErrorKind::kNotFound);
}

TEST(Schema, AMemberGoesBeforeAnUnquotedNameWithADot) {
  auto member = arrow::field("a", arrow::struct_({arrow::field("b", arrow::int8())}));
  auto dotted = arrow::field("a.b", arrow::int64());
  ASSERT_OK_AND_ASSIGN(Schema both, Schema::FromArrow(*arrow::schema({dotted, member})));
  auto project = [](const Schema& schema, std::vector<std::string> paths) {
    return schema.Project(paths).ValueOrDie().ToArrow();
  };
  EXPECT_TRUE(project(both, {"a.b"})->Equals(*arrow::schema({member}), false));
  EXPECT_TRUE(project(both, {"`a.b`"})->Equals(*arrow::schema({dotted}), false));
  ASSERT_OK_AND_ASSIGN(Schema alone, Schema::FromArrow(*arrow::schema({dotted})));
  EXPECT_TRUE(project(alone, {"a.b"})->Equals(*arrow::schema({dotted}), false));
}

TEST(Schema, NamesMatchExactlyThenIgnoringCaseIfClear) {
  auto arrow_schema = arrow::schema(
      {arrow::field("Id", arrow::int32()), arrow::field("a", arrow::int32()),
       arrow::field("A", arrow::int32()), arrow::field("x.y", arrow::int8())});
  ASSERT_OK_AND_ASSIGN(Schema schema, Schema::FromArrow(*arrow_schema));
  auto find = [&](std::vector<std::string> path) { return schema.FindByPath(path); };
  EXPECT_EQ(find({"id"})->name, "Id");
  EXPECT_EQ(find({"A"})->id, 2);
  EXPECT_EQ(find({"x.y"})->id, 3);
  ASSERT_OK_AND_ASSIGN(auto path, ParseFieldPath("a.`b.c`.`d``e`"));
  EXPECT_EQ(path, (std::vector<std::string>{"a", "b.c", "d`e"}));
  EXPECT_EQ(FormatFieldPath(path), "a.`b.c`.`d``e`");
  for (const char* bad : {"", "a.", "`a", "a..b", "`a`b"}) {
    EXPECT_EQ(KindOf(ParseFieldPath(bad).status()), ErrorKind::kInvalidInput) << bad;
  }
}

TEST(Schema, RefusesWhatCannotBeStored) {
  for (const auto& type :
       {arrow::run_end_encoded(arrow::int32(), arrow::int8()),
        arrow::list_view(arrow::int8()), arrow::month_interval(),
        arrow::fixed_size_list(arrow::utf8(), 2),
        arrow::fixed_size_list(arrow::int8(), 0), arrow::decimal32(4, 1)}) {
    auto made = Schema::FromArrow(*arrow::schema({arrow::field("c", type)}));
    EXPECT_EQ(KindOf(made.status()), ErrorKind::kNotSupported) << type->ToString();
    EXPECT_NE(made.status().message().find("'c'"), std::string::npos)
        << made.status().message();
  }
}

TEST(Schema, BrokenTreesAreCorruption) {
  lance::file::Schema pb;
  auto* f = pb.add_fields();
  f->set_name("a");
  f->set_id(1);
  f->set_parent_id(7);
  f->set_logical_type("int32");
  EXPECT_EQ(KindOf(Schema::FromProto(pb).status()), ErrorKind::kCorruption);
  f->set_parent_id(-1);
  f->set_logical_type("decimal:128:99:1");
  EXPECT_EQ(KindOf(Schema::FromProto(pb).status()), ErrorKind::kCorruption);
  f->set_logical_type("list");
  EXPECT_EQ(KindOf(Schema::FromProto(pb).status()), ErrorKind::kCorruption);
  *pb.add_fields() = *f;
  EXPECT_EQ(KindOf(Schema::FromProto(pb).status()), ErrorKind::kCorruption);
}

}  // namespace
}  // namespace glaive::file
