// What a file looks like byte for byte, and how the writer refuses what it cannot store.
#include "file/file_writer.h"

#include <map>
#include <string>
#include <vector>

#include <arrow/api.h>
#include <gtest/gtest.h>

#include "file/column_writer.h"
#include "format/file.pb.h"
#include "format/file2.pb.h"
#include "io/object_store.h"

namespace glaive::file {
namespace {

#define ASSERT_OK(expr)                                              \
  do {                                                               \
    const ::glaive::Status status_of_check = (expr);                 \
    ASSERT_TRUE(status_of_check.ok()) << status_of_check.ToString(); \
  } while (false)

void ExpectError(const Status& status, ErrorKind kind, const std::string& part) {
  EXPECT_EQ(ErrorKindName(KindOf(status)), ErrorKindName(kind)) << status.ToString();
  EXPECT_NE(status.message().find(part), std::string::npos) << status.ToString();
}

std::shared_ptr<arrow::Array> Ints(const std::vector<int32_t>& values) {
  arrow::Int32Builder builder;
  EXPECT_TRUE(builder.AppendValues(values).ok());
  return builder.Finish().ValueOrDie();
}

std::shared_ptr<arrow::Array> IntsWithNull() {
  arrow::Int32Builder builder;
  EXPECT_TRUE(builder.Append(1).ok());
  EXPECT_TRUE(builder.AppendNull().ok());
  return builder.Finish().ValueOrDie();
}

std::shared_ptr<arrow::RecordBatch> Batch(arrow::FieldVector fields,
                                          arrow::ArrayVector columns) {
  return arrow::RecordBatch::Make(arrow::schema(std::move(fields)), columns[0]->length(),
                                  columns);
}

struct Written {
  std::string bytes;
  FileWriteSummary summary;
};

class FileWriterTest : public testing::Test {
 protected:
  Result<std::unique_ptr<FileWriter>> Make(const arrow::Schema& schema,
                                           FileWriterOptions options = {}) {
    GLAIVE_ASSIGN_OR_RETURN(auto own, Schema::FromArrow(schema));
    return FileWriter::Make(*store_, "f.lance", std::move(own), options);
  }

  Status Write(const arrow::RecordBatch& batch, const arrow::Schema& schema,
               FileWriterOptions options = {}) {
    GLAIVE_ASSIGN_OR_RETURN(auto writer, Make(schema, options));
    return writer->Write(batch);
  }

  std::string Bytes() {
    auto buffer = store_->Get("f.lance");
    EXPECT_TRUE(buffer.ok()) << buffer.status().ToString();
    return buffer.ok() ? (*buffer)->ToString() : "";
  }

  // Pages of every column, found through the footer.
  std::vector<lance::file::v2::ColumnMetadata> Columns() {
    const std::string bytes = Bytes();
    const auto u64 = [&](size_t at) {
      uint64_t v;
      std::memcpy(&v, bytes.data() + at, 8);
      return static_cast<size_t>(v);
    };
    const size_t footer = bytes.size() - 40;
    uint32_t count;
    std::memcpy(&count, bytes.data() + footer + 28, 4);
    std::vector<lance::file::v2::ColumnMetadata> out(count);
    for (size_t i = 0; i < count; ++i) {
      const size_t entry = u64(footer + 8) + 16 * i;
      EXPECT_TRUE(out[i].ParseFromString(bytes.substr(u64(entry), u64(entry + 8))));
    }
    return out;
  }

  std::shared_ptr<io::ObjectStore> store_ = io::MakeMemoryStore();
};

TEST_F(FileWriterTest, SmallFileByteForByte) {
  auto batch = Batch({arrow::field("i", arrow::int32(), false)}, {Ints({10, 20, 31})});
  auto writer = Make(*batch->schema()).ValueOrDie();
  ASSERT_OK(writer->Write(*batch));
  auto summary = writer->Finish().ValueOrDie();
  const std::string bytes = Bytes();
  ASSERT_EQ(bytes.size(), 340u);
  EXPECT_EQ(summary.size_bytes, 340);
  EXPECT_EQ(summary.num_rows, 3);
  EXPECT_EQ(summary.field_ids, std::vector<int32_t>{0});
  EXPECT_EQ(summary.column_indices, std::vector<int32_t>{0});
  std::string expected = std::string("\x20\0\0\0", 4) + std::string(60, 'H');
  expected += std::string(
      "\0\0\x0c\0\0\0\xfe\xfe\x0a\0\0\0\x14\0\0\0\x1f\0\0\0\xfe\xfe\xfe\xfe", 24);
  expected += std::string(40, 'H');
  expected += std::string(
      "\x0a\x19\x0a\x17\x12\x01\x69\x20\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"
      "\x2a\x05int32\x38\x01\x10\x03",
      29);
  EXPECT_EQ(bytes.substr(0, expected.size()), expected);
  EXPECT_EQ(bytes.substr(268),
            std::string("\x9d\0\0\0\0\0\0\0\x6f\0\0\0\0\0\0\0"
                        "\x80\0\0\0\0\0\0\0\x1d\0\0\0\0\0\0\0"
                        "\x9d\0\0\0\0\0\0\0\x0c\x01\0\0\0\0\0\0\x1c\x01\0\0\0\0\0\0"
                        "\x01\0\0\0\x01\0\0\0\x02\0\x02\0LANC",
                        72));
}

TEST_F(FileWriterTest, NullsInANonNullableField) {
  auto given = Batch({arrow::field("a", arrow::int32())}, {IntsWithNull()});
  ExpectError(
      Write(*given, *arrow::schema({arrow::field("a", arrow::int32(), false)})),
      ErrorKind::kInvalidInput,
      "contained null values even though the field is marked non-null in the schema");
}

TEST_F(FileWriterTest, HiddenNullsOfANonNullableMemberAreFine) {
  // The struct is null where its member is.
  auto type = arrow::struct_({arrow::field("x", arrow::int32(), false)});
  auto data = arrow::ArrayData::Make(type, 2, {arrow::Buffer::FromString("\x01")},
                                     {IntsWithNull()->data()});
  auto batch = Batch({arrow::field("s", type)}, {arrow::MakeArray(data)});
  EXPECT_TRUE(Write(*batch, *batch->schema()).ok());
  auto seen = arrow::ArrayData::Make(type, 2, {nullptr}, {IntsWithNull()->data()});
  auto bad = Batch({arrow::field("s", type)}, {arrow::MakeArray(seen)});
  ExpectError(Write(*bad, *bad->schema()), ErrorKind::kInvalidInput, "`s.x`");
}

TEST_F(FileWriterTest, MismatchesNameTheColumn) {
  auto schema = arrow::schema(
      {arrow::field("a", arrow::int32()),
       arrow::field("s", arrow::struct_({arrow::field("x", arrow::int32())}))});
  auto one =
      arrow::StructArray::Make({Ints({1})}, std::vector<std::string>{"x"}).ValueOrDie();
  auto other =
      arrow::StructArray::Make({Ints({1})}, std::vector<std::string>{"y"}).ValueOrDie();
  auto both =
      arrow::StructArray::Make({Ints({1}), Ints({2})}, std::vector<std::string>{"x", "y"})
          .ValueOrDie();
  const auto write = [&](std::vector<std::string> names, arrow::ArrayVector columns) {
    arrow::FieldVector fields;
    for (size_t i = 0; i < names.size(); ++i) {
      fields.push_back(arrow::field(names[i], columns[i]->type()));
    }
    return Write(*Batch(fields, columns), *schema);
  };
  EXPECT_TRUE(write({"s", "a"}, {one, Ints({1})}).ok());
  ExpectError(write({"a"}, {Ints({1})}), ErrorKind::kSchemaMismatch, "'s'");
  ExpectError(write({"a", "s", "z"}, {Ints({1}), one, Ints({1})}),
              ErrorKind::kSchemaMismatch, "'z'");
  ExpectError(write({"a", "s"}, {Ints({1}), other}), ErrorKind::kSchemaMismatch, "'s.x'");
  ExpectError(write({"a", "s"}, {Ints({1}), both}), ErrorKind::kSchemaMismatch, "'y'");
  arrow::Int64Builder wide;
  ASSERT_OK(wide.Append(1));
  ExpectError(write({"a", "s"}, {wide.Finish().ValueOrDie(), one}),
              ErrorKind::kSchemaMismatch, "'a' has type int32");
}

TEST_F(FileWriterTest, RefusedRowsLeaveTheWriterUsable) {
  auto schema = arrow::schema(
      {arrow::field("a", arrow::int32()), arrow::field("b", arrow::int32(), false)});
  auto writer = Make(*schema).ValueOrDie();
  auto good = Batch(schema->fields(), {Ints({1, 2}), Ints({3, 4})});
  auto bad = Batch({arrow::field("a", arrow::int32()), arrow::field("b", arrow::int32())},
                   {Ints({1, 2}), IntsWithNull()});
  ASSERT_OK(writer->Write(*good));
  EXPECT_FALSE(writer->Write(*bad).ok());
  ASSERT_OK(writer->Write(*good));
  EXPECT_EQ(writer->Finish().ValueOrDie().num_rows, 4);
  for (const auto& column : Columns()) {
    ASSERT_EQ(column.pages_size(), 1);
    EXPECT_EQ(column.pages(0).length(), 4u);
  }
  EXPECT_FALSE(writer->Write(*good).ok());
}

TEST_F(FileWriterTest, WithoutFinishNothingIsLeftBehind) {
  auto batch = Batch({arrow::field("a", arrow::int32())}, {Ints({1})});
  {
    auto writer = Make(*batch->schema()).ValueOrDie();
    ASSERT_OK(writer->Write(*batch));
  }
  EXPECT_FALSE(store_->Exists("f.lance").ValueOrDie());
}

TEST_F(FileWriterTest, UnstorableTypesNameColumnAndVersion) {
  const auto refuse = [&](std::shared_ptr<arrow::DataType> type, FileVersion version,
                          const std::string& part) {
    FileWriterOptions options;
    options.version = version;
    auto made = Make(*arrow::schema({arrow::field("c", std::move(type))}), options);
    ExpectError(made.status(), ErrorKind::kNotSupported, part);
    EXPECT_NE(made.status().message().find("'c"), std::string::npos)
        << made.status().ToString();
  };
  auto map = arrow::map(arrow::utf8(), arrow::int32());
  refuse(map, FileVersion::k2_0, "use version 2.2");
  refuse(map, FileVersion::k2_1, "use version 2.2");
  auto structs =
      arrow::fixed_size_list(arrow::struct_({arrow::field("x", arrow::int8())}), 2);
  refuse(structs, FileVersion::k2_1, "use version 2.2");
  refuse(arrow::list(structs), FileVersion::k2_2, "lists of fixed-size lists of structs");
  refuse(arrow::struct_({arrow::field("e", arrow::struct_(arrow::FieldVector{}))}),
         FileVersion::k2_2, "without members");
}

TEST_F(FileWriterTest, StructNullsNeedVersion21) {
  auto type = arrow::struct_({arrow::field("x", arrow::int32())});
  auto data = arrow::ArrayData::Make(type, 2, {arrow::Buffer::FromString("\x01")},
                                     {Ints({1, 2})->data()});
  auto batch = Batch({arrow::field("s", type)}, {arrow::MakeArray(data)});
  FileWriterOptions options;
  options.version = FileVersion::k2_0;
  ExpectError(Write(*batch, *batch->schema(), options), ErrorKind::kInvalidInput,
              "does not encode struct validity; use file version 2.1");
  options.version = FileVersion::k2_1;
  EXPECT_TRUE(Write(*batch, *batch->schema(), options).ok());
}

TEST_F(FileWriterTest, PagesFillUpAcrossBatches) {
  FileWriterOptions options;
  options.page_bytes = 4000;
  auto schema = arrow::schema({arrow::field("a", arrow::int32(), false)});
  auto writer = Make(*schema, options).ValueOrDie();
  int32_t next = 0;
  for (int i = 0; i < 100; ++i) {
    std::vector<int32_t> values(90);
    for (int32_t& v : values) v = next++;
    // A slice of something larger: only its own bytes count.
    ASSERT_OK(writer->Write(*Batch(schema->fields(), {Ints(values)})->Slice(10, 70)));
  }
  ASSERT_OK(writer->Finish().status());
  const auto column = Columns().at(0);
  // 280 bytes per batch: the 15th goes above 4,000.
  ASSERT_EQ(column.pages_size(), 7);
  for (int p = 0; p < 6; ++p) {
    EXPECT_EQ(column.pages(p).length(), 15u * 70);
    EXPECT_EQ(column.pages(p).priority(), static_cast<uint64_t>(p) * 15 * 70);
  }
  EXPECT_EQ(column.pages(6).length(), 10u * 70);
}

TEST_F(FileWriterTest, GlobalBuffersAndMetadata) {
  auto batch = Batch({arrow::field("a", arrow::int32())}, {Ints({1})});
  auto writer = Make(*batch->schema()).ValueOrDie();
  EXPECT_EQ(writer->AddGlobalBuffer(arrow::Buffer::FromString("first")).ValueOrDie(), 1);
  ASSERT_OK(writer->Write(*batch));
  EXPECT_EQ(writer->AddGlobalBuffer(arrow::Buffer::FromString("second")).ValueOrDie(), 2);
  writer->AddSchemaMetadata("key", "value");
  ASSERT_OK(writer->Finish().status());
  const std::string bytes = Bytes();
  uint64_t table;
  std::memcpy(&table, bytes.data() + bytes.size() - 24, 8);
  uint64_t entries[6];
  std::memcpy(entries, bytes.data() + table, sizeof(entries));
  EXPECT_EQ(bytes.substr(entries[2], entries[3]), "first");
  EXPECT_EQ(bytes.substr(entries[4], entries[5]), "second");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(entries[2 * i] % 64, 0u);
  lance::file::FileDescriptor descriptor;
  ASSERT_TRUE(descriptor.ParseFromString(bytes.substr(entries[0], entries[1])));
  EXPECT_EQ(descriptor.schema().metadata().at("key"), "value");
  EXPECT_EQ(descriptor.length(), 1u);
}

TEST_F(FileWriterTest, LayoutCasts) {
  // The schema's layout on the left, what is given on the right.
  arrow::StringViewBuilder views;
  ASSERT_OK(views.Append("a string that is too long for a view's own bytes"));
  ASSERT_OK(views.AppendNull());
  arrow::LargeStringBuilder large;
  ASSERT_OK(large.Append("x"));
  ASSERT_OK(large.Append("yz"));
  auto text = arrow::schema({arrow::field("c", arrow::utf8())});
  for (const auto& array :
       arrow::ArrayVector{views.Finish().ValueOrDie(), large.Finish().ValueOrDie()}) {
    auto writer = Make(*text).ValueOrDie();
    ASSERT_OK(writer->Write(*Batch({arrow::field("c", array->type())}, {array})));
    ASSERT_OK(writer->Finish().status());
    EXPECT_EQ(Columns().at(0).pages(0).length(), 2u);
  }
  auto words = arrow::StringBuilder();
  ASSERT_OK(words.AppendValues({"p", "q"}));
  auto wide =
      arrow::DictionaryArray::FromArrays(arrow::dictionary(arrow::int32(), arrow::utf8()),
                                         Ints({1, 0, 1}), words.Finish().ValueOrDie())
          .ValueOrDie();
  auto narrow =
      arrow::schema({arrow::field("c", arrow::dictionary(arrow::int8(), arrow::utf8()))});
  auto writer = Make(*narrow).ValueOrDie();
  ASSERT_OK(writer->Write(*Batch({arrow::field("c", wide->type())}, {wide})));
  ASSERT_OK(writer->Finish().status());
  // Text is not bytes.
  arrow::BinaryBuilder bytes;
  ASSERT_OK(bytes.Append("b"));
  ExpectError(
      Write(*Batch({arrow::field("c", arrow::binary())}, {bytes.Finish().ValueOrDie()}),
            *text),
      ErrorKind::kSchemaMismatch, "'c' has type string");
}

TEST(SliceBytes, CountsOnlyTheSlice) {
  arrow::StringBuilder builder;
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(builder.Append("0123456789").ok());
  auto array = builder.Finish().ValueOrDie();
  EXPECT_EQ(SliceBytes(*array->Slice(40, 10)->data()), 10 * 4 + 100);
}

}  // namespace
}  // namespace glaive::file
