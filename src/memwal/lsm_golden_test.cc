// The golden trees of tests/golden/memwal must read as the real packages read them.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <arrow/api.h>
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include "memwal/lsm_read.h"
#include "memwal/test_util.h"

namespace glaive::memwal {
namespace {

namespace fs = std::filesystem;
using google::protobuf::Struct;
using google::protobuf::Value;

// Tests run somewhere below the root of the sources.
fs::path GoldenDirectory() {
  for (fs::path at = fs::current_path();; at = at.parent_path()) {
    if (fs::exists(at / "tests/golden/memwal/expected.json")) {
      return at / "tests/golden/memwal";
    }
    if (at == at.parent_path()) return {};
  }
}

const Struct& Expected() {
  static const auto* expected = [] {
    auto* made = new Struct();
    std::ifstream file(GoldenDirectory() / "expected.json");
    std::stringstream text;
    text << file.rdbuf();
    EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(text.str(), made).ok());
    return made;
  }();
  return *expected;
}

std::string NumberText(double value) {
  std::ostringstream out;
  out.precision(9);
  out << value;
  return out.str();
}

// One line per row: every column that the expectation names, in its order of names.
std::string LineOf(const Struct& row) {
  std::string line;
  std::vector<std::string> names;
  for (const auto& [name, value] : row.fields()) names.push_back(name);
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    const Value& value = row.fields().at(name);
    line += name + "=";
    if (value.has_number_value()) {
      line += NumberText(value.number_value());
    } else if (value.has_string_value()) {
      line += value.string_value();
    } else if (value.has_list_value()) {
      for (const Value& item : value.list_value().values()) {
        line += NumberText(item.number_value()) + ",";
      }
    } else {
      line += "null";
    }
    line += " ";
  }
  return line;
}

std::vector<std::string> LinesOf(const Value& rows) {
  std::vector<std::string> lines;
  for (const Value& row : rows.list_value().values()) {
    lines.push_back(LineOf(row.struct_value()));
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

std::string CellText(const arrow::Array& array, int64_t i) {
  if (array.IsNull(i)) return "null";
  switch (array.type_id()) {
    case arrow::Type::INT64:
      return NumberText(
          static_cast<double>(static_cast<const arrow::Int64Array&>(array).Value(i)));
    case arrow::Type::UINT64:
      return NumberText(
          static_cast<double>(static_cast<const arrow::UInt64Array&>(array).Value(i)));
    case arrow::Type::FLOAT:
      return NumberText(static_cast<const arrow::FloatArray&>(array).Value(i));
    case arrow::Type::STRING:
      return static_cast<const arrow::StringArray&>(array).GetString(i);
    default: {
      const auto& list = static_cast<const arrow::FixedSizeListArray&>(array);
      std::string text;
      for (int64_t k = 0; k < list.value_length(i); ++k) {
        text += CellText(*list.values(), list.value_offset(i) + k) + ",";
      }
      return text;
    }
  }
}

std::vector<std::string> LinesOf(const arrow::Table& table, bool sorted = true) {
  std::vector<std::string> lines;
  auto combined = table.CombineChunksToBatch();
  EXPECT_TRUE(combined.ok());
  std::vector<std::string> names = table.ColumnNames();
  std::sort(names.begin(), names.end());
  for (int64_t i = 0; i < table.num_rows(); ++i) {
    std::string line;
    for (const std::string& name : names) {
      line += name + "=" + CellText(*(*combined)->GetColumnByName(name), i) + " ";
    }
    lines.push_back(std::move(line));
  }
  if (sorted) std::sort(lines.begin(), lines.end());
  return lines;
}

struct Tree {
  explicit Tree(const std::string& name) : expected(Expected().fields().at(name)) {
    fs::copy(GoldenDirectory() / name, directory.path(), fs::copy_options::recursive);
    auto store = io::OpenLocalStore(directory.path(), false);
    EXPECT_TRUE(store.ok());
    auto opened = table::Dataset::Open(MakeEnv(*store));
    EXPECT_TRUE(opened.ok()) << opened.status().ToString();
    base = *opened;
  }
  const Value& operator[](const std::string& name) const {
    return expected.struct_value().fields().at(name);
  }
  io::TemporaryDirectory directory;
  const Value& expected;
  table::Dataset::Ptr base;
};

// The protobuf library, not built for ThreadSanitizer, lays Struct out otherwise than its
// headers do then.
#ifdef __SANITIZE_THREAD__
#define GLAIVE_SKIP_WITHOUT_STRUCT() GTEST_SKIP() << "no google::protobuf::Struct"
#else
#define GLAIVE_SKIP_WITHOUT_STRUCT() (void)0
#endif

TEST(LsmGolden, ReadsAsTheRealPackages) {
  GLAIVE_SKIP_WITHOUT_STRUCT();
  ASSERT_FALSE(GoldenDirectory().empty());
  for (const char* name : {"wal_only", "flushed", "bucket_indexed"}) {
    SCOPED_TRACE(name);
    const Tree tree(name);
    ASSERT_OK_AND_ASSIGN(auto flushed,
                         LsmSnapshot::Open(tree.base, Freshness::kGenerations));
    LsmScanOptions options;
    options.with_memtable_gen = true;
    ASSERT_OK_AND_ASSIGN(auto rows, LsmScanToTable(flushed, options));
    ASSERT_EQ(LinesOf(*rows), LinesOf(tree["snapshot_scan"]));
    ASSERT_OK_AND_ASSIGN(const int64_t count, LsmCountRows(flushed, ""));
    ASSERT_EQ(count, rows->num_rows());
    for (const auto& [key, expected] :
         tree["snapshot_point_lookup"].struct_value().fields()) {
      arrow::Int64Builder id;
      ASSERT_OK(id.Append(std::stoll(key)));
      const auto batch = arrow::RecordBatch::Make(
          arrow::schema({arrow::field("id", arrow::int64())}), 1, {*id.Finish()});
      ASSERT_OK_AND_ASSIGN(auto found, LsmLookup(flushed, *batch, {}));
      ASSERT_EQ(LinesOf(*found), LinesOf(expected)) << key;
    }
    ASSERT_OK_AND_ASSIGN(auto fresh, LsmSnapshot::Open(tree.base, Freshness::kFresh));
    ASSERT_OK_AND_ASSIGN(rows, LsmScanToTable(fresh, options));
    const bool in_log = tree.expected.struct_value().fields().contains("writer_scan");
    ASSERT_EQ(LinesOf(*rows), LinesOf(tree[in_log ? "writer_scan" : "snapshot_scan"]));
  }
}

TEST(LsmGolden, SearchesAsTheRealPackages) {
  GLAIVE_SKIP_WITHOUT_STRUCT();
  ASSERT_FALSE(GoldenDirectory().empty());
  const Tree tree("bucket_indexed");
  const Struct& search = tree["snapshot_vector_search"].struct_value();
  ASSERT_OK_AND_ASSIGN(auto snapshot,
                       LsmSnapshot::Open(tree.base, Freshness::kGenerations));
  exec::NearestOptions options;
  options.k = static_cast<int64_t>(search.fields().at("k").number_value());
  options.select.columns = {{{"id", "id"}}};
  auto floats = std::make_shared<arrow::FloatBuilder>();
  arrow::FixedSizeListBuilder query(arrow::default_memory_pool(), floats, 4);
  ASSERT_OK(query.Append());
  for (const Value& value : search.fields().at("query").list_value().values()) {
    ASSERT_OK(floats->Append(static_cast<float>(value.number_value())));
  }
  options.queries = *query.Finish();
  ASSERT_OK_AND_ASSIGN(auto found, LsmNearest(snapshot, options));
  std::vector<std::string> expected;
  for (const Value& row : search.fields().at("result").list_value().values()) {
    expected.push_back(LineOf(row.struct_value()));
  }
  ASSERT_EQ(LinesOf(*found, /*sorted=*/false), expected);
}

}  // namespace
}  // namespace glaive::memwal
