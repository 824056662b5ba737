// Takes against the rows of a model, and what they read.
#include <algorithm>
#include <random>

#include "exec/scan.h"
#include "exec/test_table.h"
#include "io/counting_store.h"

namespace glaive::exec {
namespace {

void CheckRows(const TestTable& table, const std::vector<size_t>& wanted,
               const arrow::Table& result) {
  ASSERT_OK(result.ValidateFull());
  ASSERT_EQ(result.num_rows(), static_cast<int64_t>(wanted.size()));
  const auto ids = Ids(result);
  const auto row_ids = UInts(result, "_rowid");
  for (size_t i = 0; i < wanted.size(); ++i) {
    const ModelRow& row = table.rows[wanted[i]];
    ASSERT_EQ(ids[i], row.id);
    ASSERT_EQ(row_ids[i], table.RowId(row));
    const auto n = static_cast<int64_t>(i);
    CheckTextAndVector(result, n, row);
  }
}

TEST(Take, OffsetsAndRowIdsInAnyOrder) {
  const std::vector<uint64_t> seeds = {1, 2, FreshSeed()};
  for (uint64_t seed : seeds) {
    for (bool stable : {false, true}) {
      for (double share : {0.0, 0.3}) {
        const TestTable table = MakeTestTable(seed, {500, 1, 300}, 90, share, stable);
        std::mt19937_64 random(seed);
        Selection select;
        select.with_row_id = true;
        for (size_t count : {size_t{0}, size_t{1}, size_t{2}, size_t{40}, size_t{1000}}) {
          std::vector<size_t> wanted;
          std::vector<int64_t> offsets;
          std::vector<uint64_t> ids;
          for (size_t i = 0; i < count; ++i) {
            wanted.push_back(random() % table.rows.size());
            offsets.push_back(static_cast<int64_t>(wanted.back()));
            ids.push_back(table.RowId(table.rows[wanted.back()]));
          }
          ASSERT_OK_AND_ASSIGN(auto by_offset,
                               TakeOffsets(*table.dataset, offsets, select));
          CheckRows(table, wanted, *by_offset);
          ids.push_back(uint64_t{77} << 32);  // no such fragment
          ids.push_back(UINT64_MAX);
          ASSERT_OK_AND_ASSIGN(auto by_id, TakeRowIds(*table.dataset, ids, select));
          CheckRows(table, wanted, *by_id);
        }
      }
    }
  }
}

TEST(Take, DeletedRowsAreLeftOut) {
  const TestTable table = MakeTestTable(3, {100}, 100, 0.5);
  std::vector<uint64_t> every(120);
  for (size_t i = 0; i < every.size(); ++i) every[i] = i;
  ASSERT_OK_AND_ASSIGN(auto result, TakeRowIds(*table.dataset, every, {}));
  std::vector<int64_t> expected;
  for (const ModelRow& row : table.rows) expected.push_back(row.id);
  EXPECT_EQ(Ids(*result), expected);
}

TEST(Take, Expressions) {
  const TestTable table = MakeTestTable(4, {100}, 30, 0.1);
  Selection select;
  select.columns = ColumnList{{"a", "st.twice + 1"}, {"where", "_rowoffset"}};
  const std::vector<int64_t> offsets = {70, 3, 3};
  ASSERT_OK_AND_ASSIGN(auto result, TakeOffsets(*table.dataset, offsets, select));
  EXPECT_EQ(result->schema()->field_names(), (std::vector<std::string>{"a", "where"}));
  EXPECT_EQ(UInts(*result, "where"), (std::vector<uint64_t>{70, 3, 3}));
  EXPECT_EQ(Ids(*result, "a"),
            (std::vector<int64_t>{table.rows[70].id * 2 + 1, table.rows[3].id * 2 + 1,
                                  table.rows[3].id * 2 + 1}));
}

TEST(Take, OutOfRangeIsRefused) {
  const TestTable table = MakeTestTable(5, {100}, 30, 0.1);
  const auto rows = static_cast<int64_t>(table.rows.size());
  for (int64_t bad : {int64_t{-1}, rows, INT64_MAX, INT64_MIN}) {
    const std::vector<int64_t> offsets = {0, bad};
    EXPECT_ERROR_KIND(TakeOffsets(*table.dataset, offsets, {}).status(),
                      ErrorKind::kInvalidInput);
  }
}

// Warm metadata: one read for the value of a fixed-width column, two for one of variable
// width.
TEST(Take, ReadsAsLittleAsPromised) {
  auto counters = std::make_shared<io::StoreCounters>();
  auto store = io::MakeCountingStore(io::MakeMemoryStore(), counters);
  const TestTable table = MakeTestTable(6, {2000}, 1000, 0, false, nullptr, store);
  const auto ranges = [&](const char* column) {
    Selection select;
    select.columns = ColumnList{{column, column}};
    const std::vector<int64_t> warm = {1};
    EXPECT_OK(TakeOffsets(*table.dataset, warm, select).status());
    counters->Reset();
    const std::vector<int64_t> one = {777};
    EXPECT_OK(TakeOffsets(*table.dataset, one, select).status());
    return counters->ranges_read();
  };
  EXPECT_LE(ranges("id"), 1);
  EXPECT_LE(ranges("text"), 2);
}

}  // namespace
}  // namespace glaive::exec
