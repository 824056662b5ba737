#include "memwal/btree_files.h"

#include <cmath>

#include <arrow/compute/api.h>
#include <arrow/compute/initialize.h>
#include <arrow/util/float16.h>

#include "file/file_reader.h"
#include "memwal/test_util.h"

namespace glaive::memwal {
namespace {

using ArrayPtr = std::shared_ptr<arrow::Array>;

// Values of any type, as text that Arrow parses; an empty one is null.
ArrayPtr Parse(const std::shared_ptr<arrow::DataType>& type,
               const std::vector<std::string>& texts) {
  EXPECT_TRUE(arrow::compute::Initialize().ok());
  arrow::StringBuilder builder;
  for (const std::string& text : texts) {
    EXPECT_TRUE((text.empty() ? builder.AppendNull() : builder.Append(text)).ok());
  }
  return arrow::compute::Cast(*builder.Finish().ValueOrDie(), type).ValueOrDie();
}

std::vector<uint32_t> Sorted(const ArrayPtr& values) {
  auto keys = SortKeys(values);
  EXPECT_TRUE(keys.ok()) << keys.status().ToString();
  return SortedRows(*keys);
}

// What Arrow's own stable sort says.
std::vector<uint32_t> Expected(const ArrayPtr& values) {
  EXPECT_TRUE(arrow::compute::Initialize().ok());
  const arrow::compute::ArraySortOptions options(arrow::compute::SortOrder::Ascending,
                                                 arrow::compute::NullPlacement::AtStart);
  auto order = arrow::compute::SortIndices(*values, options);
  EXPECT_TRUE(order.ok()) << order.status().ToString();
  std::vector<uint32_t> rows;
  const auto& places = static_cast<const arrow::UInt64Array&>(**order);
  for (int64_t i = 0; i < places.length(); ++i) {
    rows.push_back(static_cast<uint32_t>(places.Value(i)));
  }
  return rows;
}

TEST(SortedRows, AsArrowSortsThem) {
  std::mt19937_64 random(TestSeed());
  const auto number = [&](int digits) {
    if (random() % 8 == 0) return std::string();
    std::string text = random() % 2 == 0 ? "-" : "";
    for (int i = 0; i < 1 + static_cast<int>(random() % 5) && i < digits; ++i) {
      text += static_cast<char>('1' + random() % 9);
    }
    return text;
  };
  for (const auto& type :
       {arrow::int8(), arrow::int64(), arrow::float32(), arrow::float64(),
        arrow::decimal128(20, 0), arrow::decimal256(60, 0)}) {
    for (int round = 0; round < 20; ++round) {
      std::vector<std::string> texts(random() % 200);
      for (auto& text : texts) text = number(type->id() == arrow::Type::INT8 ? 2 : 9);
      const ArrayPtr values = Parse(type, texts);
      ASSERT_TRUE(IsBtreeType(*type));
      ASSERT_EQ(Sorted(values), Expected(values)) << type->ToString();
      // Slices, and what is sorted already.
      if (values->length() > 5) {
        const ArrayPtr slice = values->Slice(3, values->length() - 4);
        ASSERT_EQ(Sorted(slice), Expected(slice)) << type->ToString();
      }
    }
  }
  for (const auto& type :
       {arrow::date32(), arrow::date64(), arrow::timestamp(arrow::TimeUnit::SECOND)}) {
    std::vector<std::string> days;
    for (int i = 0; i < 100; ++i) {
      const auto two = [&](uint64_t n, uint64_t first) {
        const uint64_t value = random() % n + first;
        return (value < 10 ? "0" : "") + std::to_string(value);
      };
      days.push_back("19" + two(90, 10) + "-" + two(12, 1) + "-" + two(28, 1));
    }
    const ArrayPtr values = Parse(type, days);
    ASSERT_EQ(Sorted(values), Expected(values)) << type->ToString();
  }
  for (const auto& type : KeyTypes()) {
    std::vector<KeyValue> keys(150);
    for (KeyValue& key : keys) key = RandomKeyValue(*type, random, true);
    const ArrayPtr values = MakeKeys(*type, keys);
    ASSERT_EQ(Sorted(values), Expected(values)) << type->ToString();
  }
  arrow::FixedSizeBinaryBuilder bytes(arrow::fixed_size_binary(3));
  for (int i = 0; i < 200; ++i) {
    std::string value;
    for (int b = 0; b < 3; ++b) value += "\0\1\x7F\x80\xFF"[random() % 5];
    ASSERT_OK(random() % 9 == 0 ? bytes.AppendNull() : bytes.Append(value));
  }
  const ArrayPtr values = bytes.Finish().ValueOrDie();
  ASSERT_EQ(Sorted(values), Expected(values));
}

// Where Arrow does not order: as upstream does.
TEST(SortedRows, ZerosAndNaNs) {
  arrow::DoubleBuilder doubles;
  const double inf = std::numeric_limits<double>::infinity();
  ASSERT_OK(doubles.AppendValues({std::nan(""), 0.0, -0.0, inf, -inf, 1.5, -1.5}));
  ASSERT_OK(doubles.AppendNull());
  EXPECT_EQ(Sorted(doubles.Finish().ValueOrDie()),
            (std::vector<uint32_t>{7, 4, 6, 2, 1, 5, 3, 0}));
  arrow::HalfFloatBuilder halves;
  for (const float f : {1.0f, -2.0f, -0.0f, 0.0f, -1.0f}) {
    ASSERT_OK(halves.Append(arrow::util::Float16(f).bits()));
  }
  EXPECT_EQ(Sorted(halves.Finish().ValueOrDie()), (std::vector<uint32_t>{1, 4, 2, 3, 0}));
}

TEST(SortedRows, OtherTypesAreRefused) {
  for (const auto& type : {arrow::list(arrow::int32()), arrow::null(),
                           arrow::dictionary(arrow::int8(), arrow::utf8())}) {
    EXPECT_FALSE(IsBtreeType(*type));
    EXPECT_KIND(ErrorKind::kNotSupported,
                SortKeys(arrow::MakeArrayOfNull(type, 2).ValueOrDie()).status());
  }
}

TEST(WriteBtreeFiles, Pages) {
  std::mt19937_64 random(TestSeed());
  const auto store = io::MakeMemoryStore();
  for (const int64_t rows : {1, 9, 10, 11, 37}) {
    std::vector<KeyValue> keys(static_cast<size_t>(rows));
    for (KeyValue& key : keys) key = RandomKeyValue(*arrow::int32(), random, true);
    const ArrayPtr values = MakeKeys(*arrow::int32(), keys);
    const auto order = Sorted(values);
    ASSERT_OK_AND_ASSIGN(const auto files,
                         WriteBtreeFiles(*store, "index", values, order,
                                         file::FileVersion::k2_2, /*page_rows=*/10));
    const auto read = [&](const char* name, int64_t size) {
      const auto object = store->Open(std::string("index/") + name).ValueOrDie();
      EXPECT_EQ(object->size_bytes(), size);
      const auto reader = file::FileReader::Open(object).ValueOrDie();
      EXPECT_EQ(reader->version(), file::FileVersion::k2_2);
      return reader->ReadRange(reader->ProjectAll().ValueOrDie(), 0, reader->num_rows())
          .ValueOrDie();
    };
    const auto data = read(kPageDataFile, files.data_bytes);
    ASSERT_EQ(data->num_rows(), rows);
    const auto& ids = static_cast<const arrow::UInt64Array&>(*data->column(1));
    for (int64_t i = 0; i < rows; ++i) {
      ASSERT_EQ(ids.Value(i), order[static_cast<size_t>(i)]);
      ASSERT_TRUE(data->column(0)->GetScalar(i).ValueOrDie()->Equals(
          *values->GetScalar(order[static_cast<size_t>(i)]).ValueOrDie()));
    }
    const auto lookup = read(kPageLookupFile, files.lookup_bytes);
    ASSERT_EQ(lookup->num_rows(), (rows + 9) / 10);
    for (int64_t p = 0; p < lookup->num_rows(); ++p) {
      const int64_t end = std::min(rows, 10 * p + 10);
      const auto page = data->column(0)->Slice(10 * p, end - 10 * p);
      const auto at = [&](int column) {
        return lookup->column(column)->GetScalar(p).ValueOrDie();
      };
      EXPECT_TRUE(at(0)->Equals(*page->GetScalar(0).ValueOrDie()));
      EXPECT_TRUE(at(1)->Equals(*page->GetScalar(page->length() - 1).ValueOrDie()));
      EXPECT_TRUE(
          at(2)->Equals(arrow::UInt32Scalar(static_cast<uint32_t>(page->null_count()))));
      EXPECT_TRUE(at(3)->Equals(arrow::UInt32Scalar(static_cast<uint32_t>(p))));
    }
  }
}

}  // namespace
}  // namespace glaive::memwal
