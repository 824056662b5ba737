#include "file/file_reader.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <arrow/api.h>
#include <arrow/compute/api_vector.h>
#include <gtest/gtest.h>

#include "file/file_writer.h"
#include "io/counting_store.h"
#include "io/object_store.h"
#include "io/test_util.h"

namespace glaive::file {
namespace {

using arrow::Array;
using arrow::ArrayVector;
using arrow::DataType;
using io::ObjectStore;

std::shared_ptr<FileReader> OpenBytes(const std::vector<uint8_t>& bytes, Status* status) {
  auto store = io::MakeMemoryStore();
  *status = store->Put("f.lance", bytes);
  if (!status->ok()) return nullptr;
  auto object = store->Open("f.lance");
  *status = object.status();
  if (!status->ok()) return nullptr;
  auto reader = FileReader::Open(*object);
  *status = reader.status();
  return status->ok() ? *reader : nullptr;
}

// ---- a file made by hand
// -----------------------------------------------------------------------

void Push(std::vector<uint8_t>* out, std::initializer_list<int> bytes) {
  for (int b : bytes) out->push_back(static_cast<uint8_t>(b));
}
template <typename T>
void PushInt(std::vector<uint8_t>* out, T value) {
  const auto* p = reinterpret_cast<const uint8_t*>(&value);
  out->insert(out->end(), p, p + sizeof(T));
}
void PadTo64(std::vector<uint8_t>* out) {
  while (out->size() % 64 != 0) out->push_back('H');
}

std::string Message(int field, const std::string& value) {
  return std::string(1, static_cast<char>(field << 3 | 2)) +
         std::string(1, static_cast<char>(value.size())) + value;
}

// Three int32 values (10, 20, 31) in one mini-block page of version 2.2, as real programs
// write it.
std::vector<uint8_t> HandMadeFile(uint16_t major = 2, uint16_t minor = 2) {
  std::vector<uint8_t> f;
  Push(&f, {0x20, 0, 0, 0});
  PadTo64(&f);
  Push(&f, {0, 0, 12, 0, 0, 0, 0xfe, 0xfe});
  for (int32_t v : {10, 20, 31}) PushInt(&f, v);
  Push(&f, {0xfe, 0xfe, 0xfe, 0xfe});
  PadTo64(&f);
  const uint64_t descriptor = f.size();
  Push(&f, {0x0a, 0x19, 0x0a, 0x17, 0x12, 0x01, 0x69, 0x20, 0xff, 0xff,
            0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 0x2a, 0x05,
            0x69, 0x6e, 0x74, 0x33, 0x32, 0x38, 0x01, 0x10, 0x03});
  const uint64_t column = f.size();
  const std::string values("\x0a\x00", 2);
  const std::string layout(
      "\x0a\x0f\x1a\x04\x0a\x02\x08\x20\x32\x01\x01\x38\x01\x48\x03\x50\x01", 17);
  auto direct = [](const std::string& any) { return Message(2, Message(1, any)); };
  const std::string page = Message(1, std::string("\x00\x40", 2)) +
                           Message(2, "\x04\x18") + std::string("\x18\x03", 2) +
                           Message(4, direct(Message(1, "/lance.encodings21.PageLayout") +
                                             Message(2, layout)));
  const std::string metadata =
      Message(
          1, direct(Message(1, "/lance.encodings.ColumnEncoding") + Message(2, values))) +
      Message(2, page);
  f.insert(f.end(), metadata.begin(), metadata.end());
  const uint64_t column_table = f.size();
  PushInt<uint64_t>(&f, column);
  PushInt<uint64_t>(&f, metadata.size());
  const uint64_t buffer_table = f.size();
  PushInt<uint64_t>(&f, descriptor);
  PushInt<uint64_t>(&f, 29);
  PushInt<uint64_t>(&f, column);
  PushInt<uint64_t>(&f, column_table);
  PushInt<uint64_t>(&f, buffer_table);
  PushInt<uint32_t>(&f, 1);
  PushInt<uint32_t>(&f, 1);
  PushInt<uint16_t>(&f, major);
  PushInt<uint16_t>(&f, minor);
  Push(&f, {'L', 'A', 'N', 'C'});
  return f;
}

TEST(FileReader, HandMadeFile) {
  Status status;
  auto reader = OpenBytes(HandMadeFile(), &status);
  ASSERT_OK(status);
  EXPECT_EQ(reader->version(), FileVersion::k2_2);
  EXPECT_EQ(reader->num_rows(), 3);
  ASSERT_OK_AND_ASSIGN(auto all, reader->ProjectAll());
  ASSERT_OK_AND_ASSIGN(auto batch, reader->ReadRange(all, 0, 3));
  EXPECT_EQ(batch->column(0)->ToString(), "[\n  10,\n  20,\n  31\n]");
  EXPECT_EQ(batch->schema()->field(0)->name(), "i");
  EXPECT_FALSE(batch->schema()->field(0)->nullable());
  ASSERT_OK_AND_ASSIGN(auto taken, reader->Take(all, std::vector<int64_t>{2, 0, 2}));
  EXPECT_EQ(taken->column(0)->ToString(), "[\n  31,\n  10,\n  31\n]");
  ASSERT_OK_AND_ASSIGN(auto none, reader->ReadRange(all, 3, 0));
  EXPECT_EQ(none->num_rows(), 0);
  EXPECT_KIND(ErrorKind::kInvalidInput, reader->ReadRange(all, 2, 2).status());
  EXPECT_KIND(ErrorKind::kInvalidInput,
              reader->Take(all, std::vector<int64_t>{3}).status());
}

TEST(FileReader, OtherVersionsAreRefusedByName) {
  const std::vector<std::tuple<uint16_t, uint16_t, std::string>> versions = {
      {2, 3, "2.3"}, {3, 0, "3.0"}, {0, 2, "legacy"}, {0, 0, "legacy"}};
  for (const auto& [major, minor, name] : versions) {
    Status status;
    OpenBytes(HandMadeFile(major, minor), &status);
    EXPECT_KIND(ErrorKind::kNotSupported, status);
    EXPECT_NE(status.message().find(name), std::string::npos) << status;
    EXPECT_NE(status.message().find("f.lance"), std::string::npos) << status;
  }
}

TEST(FileReader, ForeignFiles) {
  for (const std::string& text :
       {std::string(), std::string("LANC"), std::string(5000, 'x'),
        std::string(100, '\0') + "LANC"}) {
    Status status;
    OpenBytes(std::vector<uint8_t>(text.begin(), text.end()), &status);
    EXPECT_FALSE(status.ok());
    EXPECT_TRUE(KindOf(status) == ErrorKind::kCorruption ||
                KindOf(status) == ErrorKind::kNotSupported)
        << status;
  }
}

// ---- random columns written by our own writer
// --------------------------------------------------

class Generator {
 public:
  explicit Generator(uint32_t seed) : random_(seed) {}

  int64_t Below(int64_t n) {
    return static_cast<int64_t>(random_() % static_cast<uint64_t>(n));
  }

  std::shared_ptr<DataType> Type(int depth, bool v2_0) {
    switch (Below(depth > 0 ? 13 : 9)) {
      case 0:
        return arrow::int32();
      case 1:
        return arrow::int64();
      case 2:
        return arrow::float64();
      case 3:
        return arrow::boolean();
      case 4:
        return arrow::utf8();
      case 5:
        return arrow::large_binary();
      case 6:
        return arrow::fixed_size_list(arrow::float32(),
                                      1 + static_cast<int32_t>(Below(90)));
      case 7:
        return arrow::decimal128(20, 3);
      case 8:
        return arrow::uint8();
      case 9:
      case 10:
        return arrow::list(Type(depth - 1, v2_0));
      case 11:
        return arrow::large_list(Type(depth - 1, v2_0));
      default:
        return arrow::struct_({arrow::field("a", Type(depth - 1, v2_0)),
                               arrow::field("b", Type(depth - 1, v2_0))});
    }
  }

  std::shared_ptr<Array> Values(const std::shared_ptr<DataType>& type, int64_t n,
                                bool struct_nulls) {
    const int64_t null_share = Below(3) == 0 ? 0 : Below(100);
    const int64_t spread = Below(2) ? 5 : int64_t{1} << Below(40);
    auto is_null = [&] { return Below(100) < null_share; };
    auto builder = *arrow::MakeBuilder(type);
    switch (type->id()) {
      case arrow::Type::STRUCT: {
        ArrayVector children;
        for (const auto& field : type->fields()) {
          children.push_back(Values(field->type(), n, struct_nulls));
        }
        std::shared_ptr<arrow::Buffer> validity;
        if (struct_nulls && null_share > 0) validity = Bitmap(n, is_null);
        return std::make_shared<arrow::StructArray>(type, n, children, validity);
      }
      case arrow::Type::LIST:
      case arrow::Type::LARGE_LIST: {
        const int64_t most = 1 + (Below(6) == 0 ? 300 : Below(6));
        arrow::Int64Builder offsets;
        std::vector<bool> valid;
        int64_t end = 0;
        EXPECT_TRUE(offsets.Append(0).ok());
        for (int64_t i = 0; i < n; ++i) {
          valid.push_back(!is_null());
          if (valid.back()) end += Below(most + 1);
          EXPECT_TRUE(offsets.Append(end).ok());
        }
        auto child = Values(type->field(0)->type(), end, struct_nulls);
        auto ends = *offsets.Finish();
        size_t at = 0;
        auto bitmap = Bitmap(n, [&] { return !valid[at++]; });
        if (type->id() == arrow::Type::LARGE_LIST) {
          return std::make_shared<arrow::LargeListArray>(
              type, n, ends->data()->buffers[1], child, bitmap);
        }
        arrow::Int32Builder narrow;
        const auto& wide = static_cast<const arrow::Int64Array&>(*ends);
        for (int64_t i = 0; i <= n; ++i) {
          EXPECT_TRUE(narrow.Append(static_cast<int32_t>(wide.Value(i))).ok());
        }
        return std::make_shared<arrow::ListArray>(
            type, n, (*narrow.Finish())->data()->buffers[1], child, bitmap);
      }
      case arrow::Type::FIXED_SIZE_LIST: {
        const auto size = static_cast<const arrow::FixedSizeListType&>(*type).list_size();
        auto child = Values(type->field(0)->type(), n * size, struct_nulls);
        return std::make_shared<arrow::FixedSizeListArray>(type, n, child,
                                                           Bitmap(n, is_null));
      }
      default:
        break;
    }
    for (int64_t i = 0; i < n; ++i) {
      if (is_null()) {
        EXPECT_TRUE(builder->AppendNull().ok());
        continue;
      }
      AppendValue(builder.get(), Below(spread));
    }
    return *builder->Finish();
  }

 private:
  template <typename IsNull>
  std::shared_ptr<arrow::Buffer> Bitmap(int64_t n, IsNull is_null) {
    arrow::TypedBufferBuilder<bool> bits;
    for (int64_t i = 0; i < n; ++i) EXPECT_TRUE(bits.Append(!is_null()).ok());
    return *bits.Finish();
  }

  void AppendValue(arrow::ArrayBuilder* builder, int64_t value) {
    Status s;
    switch (builder->type()->id()) {
      case arrow::Type::INT32:
        s = static_cast<arrow::Int32Builder*>(builder)->Append(
            static_cast<int32_t>(value));
        break;
      case arrow::Type::INT64:
        s = static_cast<arrow::Int64Builder*>(builder)->Append(value - 3);
        break;
      case arrow::Type::UINT8:
        s = static_cast<arrow::UInt8Builder*>(builder)->Append(
            static_cast<uint8_t>(value));
        break;
      case arrow::Type::DOUBLE:
        s = static_cast<arrow::DoubleBuilder*>(builder)->Append(
            static_cast<double>(value) / 7);
        break;
      case arrow::Type::FLOAT:
        s = static_cast<arrow::FloatBuilder*>(builder)->Append(static_cast<float>(value));
        break;
      case arrow::Type::BOOL:
        s = static_cast<arrow::BooleanBuilder*>(builder)->Append((value & 1) != 0);
        break;
      case arrow::Type::DECIMAL128:
        s = static_cast<arrow::Decimal128Builder*>(builder)->Append(
            arrow::Decimal128(value));
        break;
      case arrow::Type::STRING:
        s = static_cast<arrow::StringBuilder*>(builder)->Append(Text(value));
        break;
      default:
        s = static_cast<arrow::LargeBinaryBuilder*>(builder)->Append(Text(value));
    }
    EXPECT_TRUE(s.ok()) << s;
  }

  std::string Text(int64_t value) {
    std::string out = std::to_string(value);
    while (Below(3) > 0 && out.size() < 900) out += " the " + out;
    return out;
  }

  std::mt19937_64 random_;
};

struct Written {
  std::shared_ptr<ObjectStore> store;
  std::shared_ptr<arrow::Table> table;
};

Result<std::shared_ptr<FileReader>> WriteAndOpen(
    ObjectStore& store, const std::vector<std::shared_ptr<arrow::RecordBatch>>& batches,
    FileVersion version, int64_t page_bytes) {
  GLAIVE_ASSIGN_OR_RETURN(auto schema, Schema::FromArrow(*batches[0]->schema()));
  FileWriterOptions options;
  options.version = version;
  options.page_bytes = page_bytes;
  GLAIVE_ASSIGN_OR_RETURN(auto writer,
                          FileWriter::Make(store, "f.lance", schema, options));
  for (const auto& batch : batches) GLAIVE_RETURN_NOT_OK(writer->Write(*batch));
  GLAIVE_RETURN_NOT_OK(writer->Finish().status());
  GLAIVE_ASSIGN_OR_RETURN(auto object, store.Open("f.lance"));
  return FileReader::Open(std::move(object));
}

void CheckColumn(uint32_t seed, FileVersion version) {
  Generator random(seed);
  const bool v2_0 = version == FileVersion::k2_0;
  auto type = random.Type(3, v2_0);
  SCOPED_TRACE("seed " + std::to_string(seed) + " version " +
               std::string(FileVersionName(version)) + " type " + type->ToString());
  auto schema = arrow::schema({arrow::field("c", type)});
  std::vector<std::shared_ptr<arrow::RecordBatch>> batches;
  ArrayVector chunks;
  for (int64_t b = 1 + random.Below(3); b > 0; --b) {
    const int64_t n = 1 + random.Below(random.Below(2) ? 40 : 3000);
    chunks.push_back(random.Values(type, n, !v2_0));
    batches.push_back(arrow::RecordBatch::Make(schema, n, {chunks.back()}));
  }
  auto store = io::MakeMemoryStore();
  ASSERT_OK_AND_ASSIGN(auto reader,
                       WriteAndOpen(*store, batches, version, random.Below(2) ? 1 : 0));
  ASSERT_OK_AND_ASSIGN(auto expected, arrow::Concatenate(chunks));
  ASSERT_EQ(reader->num_rows(), expected->length());
  ASSERT_OK_AND_ASSIGN(auto all, reader->ProjectAll());
  auto check = [&](const std::shared_ptr<arrow::RecordBatch>& got,
                   const std::shared_ptr<Array>& want) {
    ASSERT_OK(got->ValidateFull());
    ASSERT_TRUE(got->column(0)->Equals(*want))
        << got->column(0)->ToString() << "\nexpected\n"
        << want->ToString();
  };
  ASSERT_OK_AND_ASSIGN(auto whole, reader->ReadRange(all, 0, expected->length()));
  check(whole, expected);
  for (int i = 0; i < 6; ++i) {
    const int64_t start = random.Below(expected->length());
    const int64_t count = 1 + random.Below(expected->length() - start);
    ASSERT_OK_AND_ASSIGN(auto part, reader->ReadRange(all, start, count));
    check(part, expected->Slice(start, count));
  }
  for (int i = 0; i < 4; ++i) {
    arrow::Int64Builder builder;
    std::vector<int64_t> rows;
    for (int64_t n = 1 + random.Below(30); n > 0; --n) {
      rows.push_back(random.Below(expected->length()));
    }
    if (i < 2) {
      std::sort(rows.begin(), rows.end());
      rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
    }
    ASSERT_OK(builder.AppendValues(rows));
    ASSERT_OK_AND_ASSIGN(auto indices, builder.Finish());
    ASSERT_OK_AND_ASSIGN(auto want, arrow::compute::Take(*expected, *indices));
    ASSERT_OK_AND_ASSIGN(auto got, reader->Take(all, rows));
    check(got, want);
  }
}

TEST(FileReader, RandomColumnsRoundTrip) {
  std::vector<uint32_t> seeds(150);
  for (uint32_t i = 0; i < seeds.size(); ++i) seeds[i] = i;
  seeds.push_back(std::random_device{}());
  for (FileVersion version : {FileVersion::k2_0, FileVersion::k2_1, FileVersion::k2_2}) {
    for (uint32_t seed : seeds) {
      CheckColumn(seed, version);
      if (HasFatalFailure()) return;
    }
  }
}

// ---- cost
// --------------------------------------------------------------------------------------

std::shared_ptr<Array> Vectors(int64_t n, int32_t dimension) {
  arrow::FloatBuilder items;
  for (int64_t i = 0; i < n * dimension; ++i) {
    EXPECT_TRUE(items.Append(static_cast<float>(i)).ok());
  }
  auto type = arrow::fixed_size_list(arrow::float32(), dimension);
  return std::make_shared<arrow::FixedSizeListArray>(type, n, *items.Finish());
}

TEST(FileReader, OneReadForFixedWidthTwoForVariable) {
  const int64_t n = 5000;
  arrow::Int64Builder ids;
  arrow::StringBuilder short_text;
  arrow::StringBuilder long_text;
  for (int64_t i = 0; i < n; ++i) {
    ASSERT_OK(ids.Append(i * 7919 % 100003));
    ASSERT_OK(short_text.Append("text " + std::to_string(i)));
    ASSERT_OK(long_text.Append(std::string(static_cast<size_t>(300 + i % 50), 'x') +
                               std::to_string(i)));
  }
  auto vectors = Vectors(n, 128);
  auto schema = arrow::schema(
      {arrow::field("id", arrow::int64()), arrow::field("short", arrow::utf8()),
       arrow::field("long", arrow::utf8()), arrow::field("vector", vectors->type())});
  auto batch = arrow::RecordBatch::Make(
      schema, n, {*ids.Finish(), *short_text.Finish(), *long_text.Finish(), vectors});
  auto counters = std::make_shared<io::StoreCounters>();
  auto store = io::MakeCountingStore(io::MakeMemoryStore(), counters);
  ASSERT_OK_AND_ASSIGN(auto reader, WriteAndOpen(*store, {batch}, FileVersion::k2_2, 0));
  const std::map<std::string, int64_t> most = {
      {"id", 1}, {"short", 1}, {"long", 2}, {"vector", 1}};
  for (const auto& [name, reads] : most) {
    ASSERT_OK_AND_ASSIGN(auto projection,
                         reader->Project(std::vector<std::string>{name}));
    ASSERT_OK(reader->Take(projection, std::vector<int64_t>{17})
                  .status());  // prepares the page
    counters->Reset();
    ASSERT_OK_AND_ASSIGN(auto got, reader->Take(projection, std::vector<int64_t>{3210}));
    EXPECT_LE(counters->count(io::StoreOp::kRead), reads) << name;
    EXPECT_LE(counters->bytes_read(), 8300) << name;  // a chunk or a value, not a page
    EXPECT_TRUE(got->column(0)->Equals(*batch->GetColumnByName(name)->Slice(3210, 1)));
    // Many rows: still one round trip, and no chunk twice.
    std::vector<int64_t> rows;
    for (int64_t r = 0; r < 100; ++r) rows.push_back(r * 37 % n);
    counters->Reset();
    ASSERT_OK(reader->Take(projection, rows).status());
    EXPECT_LE(counters->count(io::StoreOp::kRead), reads) << name;
  }
}

TEST(FileReader, PlainVectorsAreViewsOfTheFile) {
  auto vectors = Vectors(3000, 128);
  auto batch = arrow::RecordBatch::Make(
      arrow::schema({arrow::field("v", vectors->type(), false)}), 3000, {vectors});
  auto store = io::MakeMemoryStore();
  for (FileVersion version : {FileVersion::k2_0, FileVersion::k2_1, FileVersion::k2_2}) {
    ASSERT_OK_AND_ASSIGN(auto reader, WriteAndOpen(*store, {batch}, version, 0));
    ASSERT_OK_AND_ASSIGN(auto object, store->Open("f.lance"));
    ASSERT_OK_AND_ASSIGN(auto bytes, object->Read({0, object->size_bytes()}));
    ASSERT_OK_AND_ASSIGN(auto all, reader->ProjectAll());
    ASSERT_OK_AND_ASSIGN(auto got, reader->ReadRange(all, 100, 2000));
    const auto& list = static_cast<const arrow::FixedSizeListArray&>(*got->column(0));
    const uint8_t* data = list.values()->data()->buffers[1]->data();
    EXPECT_GE(data, bytes->data()) << FileVersionName(version);
    EXPECT_LT(data, bytes->data() + bytes->size()) << FileVersionName(version);
    EXPECT_TRUE(got->column(0)->Equals(*vectors->Slice(100, 2000)));
    ASSERT_OK_AND_ASSIGN(auto boundaries, reader->PageBoundaries(0));
    EXPECT_EQ(boundaries, (std::vector<int64_t>{0, 3000}));
  }
}

TEST(FileReader, ProjectionReachesNestedFields) {
  auto type = arrow::struct_(
      {arrow::field("a", arrow::int32()),
       arrow::field("l",
                    arrow::list(arrow::struct_({arrow::field("x", arrow::utf8()),
                                                arrow::field("y", arrow::int64())})))});
  Generator random(5);
  auto column = random.Values(type, 500, true);
  auto other = random.Values(arrow::int32(), 500, true);
  auto batch = arrow::RecordBatch::Make(
      arrow::schema({arrow::field("s", type), arrow::field("o", arrow::int32())}), 500,
      {column, other});
  auto counters = std::make_shared<io::StoreCounters>();
  auto store = io::MakeCountingStore(io::MakeMemoryStore(), counters);
  ASSERT_OK_AND_ASSIGN(auto reader, WriteAndOpen(*store, {batch}, FileVersion::k2_2, 0));
  ASSERT_OK_AND_ASSIGN(auto some,
                       reader->Project(std::vector<std::string>{"o", "s.l.y"}));
  EXPECT_EQ(some.columns.size(), 2U);
  ASSERT_OK_AND_ASSIGN(auto got, reader->ReadRange(some, 0, 500));
  ASSERT_OK(got->ValidateFull());
  EXPECT_TRUE(got->column(0)->Equals(*other));
  const auto& s = static_cast<const arrow::StructArray&>(*got->column(1));
  const auto& want = static_cast<const arrow::StructArray&>(*column);
  ASSERT_EQ(s.num_fields(), 1);
  EXPECT_EQ(s.null_count(), want.null_count());
  const auto got_lists = std::static_pointer_cast<arrow::ListArray>(s.field(0));
  const auto want_lists =
      std::static_pointer_cast<arrow::ListArray>((*want.Flatten())[1]);
  for (int64_t i = 0; i < 500; ++i) {
    ASSERT_EQ(got_lists->IsNull(i), want_lists->IsNull(i)) << i;
    if (got_lists->IsNull(i)) continue;
    auto y = std::static_pointer_cast<arrow::StructArray>(want_lists->value_slice(i))
                 ->GetFieldByName("y");
    auto got_y = std::static_pointer_cast<arrow::StructArray>(got_lists->value_slice(i))
                     ->GetFieldByName("y");
    ASSERT_TRUE(got_y->length() == y->length()) << i;
  }
}

// ---- damage
// ------------------------------------------------------------------------------------

// Reads everything there is to read; every error must be of a kind that damage may cause.
void ReadDamaged(const std::vector<uint8_t>& bytes, const std::string& what) {
  Status status;
  auto reader = OpenBytes(bytes, &status);
  auto acceptable = [&](const Status& s) {
    const ErrorKind kind = KindOf(s);
    EXPECT_TRUE(kind == ErrorKind::kCorruption || kind == ErrorKind::kNotSupported ||
                kind == ErrorKind::kResourceExhausted)
        << what << ": " << s;
  };
  if (!status.ok()) return acceptable(status);
  auto all = reader->ProjectAll();
  if (!all.ok()) return acceptable(all.status());
  const int64_t rows = std::min<int64_t>(reader->num_rows(), 100000);
  auto batch = reader->ReadRange(*all, 0, rows);
  if (!batch.ok()) {
    acceptable(batch.status());
  } else {
    EXPECT_TRUE((*batch)->Validate().ok()) << what << (*batch)->Validate();
  }
  if (rows == 0) return;
  auto taken = reader->Take(*all, std::vector<int64_t>{rows / 2, rows - 1, 0});
  if (!taken.ok()) {
    acceptable(taken.status());
  } else {
    EXPECT_TRUE((*taken)->Validate().ok()) << what;
  }
}

// A file of a few KiB that holds most kinds of pages.
std::vector<uint8_t> SampleFile(FileVersion version) {
  const bool v2_0 = version == FileVersion::k2_0;
  std::vector<std::shared_ptr<DataType>> types = {
      arrow::int32(),
      arrow::utf8(),
      arrow::boolean(),
      arrow::list(arrow::int64()),
      arrow::fixed_size_list(arrow::float32(), 65),
      arrow::list(arrow::utf8())};
  if (!v2_0)
    types.push_back(arrow::struct_({arrow::field("x", arrow::list(arrow::int32()))}));
  for (uint32_t seed = 1;; ++seed) {
    Generator random(seed);
    arrow::FieldVector fields;
    ArrayVector columns;
    for (const auto& type : types) {
      fields.push_back(arrow::field("c" + std::to_string(fields.size()), type));
      columns.push_back(random.Values(type, 12, !v2_0));
    }
    auto batch = arrow::RecordBatch::Make(arrow::schema(fields), 12, columns);
    auto store = io::MakeMemoryStore();
    auto reader = WriteAndOpen(*store, {batch}, version, 0);
    EXPECT_TRUE(reader.ok()) << reader.status();
    auto bytes = store->Get("f.lance");
    EXPECT_TRUE(bytes.ok());
    if ((*bytes)->size() > 10000) continue;
    return std::vector<uint8_t>((*bytes)->data(), (*bytes)->data() + (*bytes)->size());
  }
}

TEST(FileReaderDamage, EveryByteFlipped) {
  std::mt19937 random(3);
  for (FileVersion version : {FileVersion::k2_0, FileVersion::k2_1, FileVersion::k2_2}) {
    std::vector<uint8_t> bytes = SampleFile(version);
    for (size_t i = 0; i < bytes.size(); ++i) {
      const uint8_t saved = bytes[i];
      bytes[i] = static_cast<uint8_t>(saved ^ (1 + random() % 255));
      ReadDamaged(bytes,
                  std::string(FileVersionName(version)) + " byte " + std::to_string(i));
      bytes[i] = saved;
    }
  }
}

TEST(FileReaderDamage, EveryTruncation) {
  for (FileVersion version : {FileVersion::k2_0, FileVersion::k2_1, FileVersion::k2_2}) {
    const std::vector<uint8_t> bytes = SampleFile(version);
    for (size_t n = 0; n < bytes.size(); ++n) {
      ReadDamaged(
          std::vector<uint8_t>(bytes.begin(), bytes.begin() + static_cast<int64_t>(n)),
          "first " + std::to_string(n) + " bytes");
    }
  }
}

TEST(FileReaderDamage, HugeNumbers) {
  for (FileVersion version : {FileVersion::k2_0, FileVersion::k2_1, FileVersion::k2_2}) {
    std::vector<uint8_t> bytes = SampleFile(version);
    for (uint64_t value : {uint64_t{0xffffffff}, uint64_t{1} << 32, uint64_t{1} << 62,
                           uint64_t{1} << 63, ~uint64_t{0}}) {
      for (size_t i = 0; i + 8 <= bytes.size(); i += 4) {
        uint8_t saved[8];
        std::memcpy(saved, bytes.data() + i, 8);
        std::memcpy(bytes.data() + i, &value, 8);
        ReadDamaged(bytes, std::to_string(value) + " at " + std::to_string(i));
        std::memcpy(bytes.data() + i, saved, 8);
      }
    }
  }
}

TEST(FileReaderDamage, MessagesNameFileColumnAndPage) {
  std::vector<uint8_t> bytes = HandMadeFile();
  bytes[68] = 200;  // the length of the value buffer of the only chunk
  bytes[66] = 200;
  Status status;
  auto reader = OpenBytes(bytes, &status);
  ASSERT_OK(status);
  ASSERT_OK_AND_ASSIGN(auto all, reader->ProjectAll());
  Status read = reader->ReadRange(all, 0, 3).status();
  EXPECT_KIND(ErrorKind::kCorruption, read);
  for (const char* part : {"f.lance", "'i'", "page 0"}) {
    EXPECT_NE(read.message().find(part), std::string::npos) << read;
  }
}

}  // namespace
}  // namespace glaive::file
