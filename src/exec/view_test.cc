// Views: every read of one must be the read of a table that has lost the rows for good.
#include "table/view.h"

#include <map>
#include <set>

#include <arrow/util/key_value_metadata.h>
#include <gtest/gtest.h>

#include "exec/nearest.h"
#include "exec/scan.h"
#include "exec/test_table.h"
#include "table/deletion_vector.h"

namespace glaive::exec {
namespace {

Selection AllWithIds() {
  Selection select;
  select.with_row_id = true;
  select.with_row_address = true;
  return select;
}

// Every kind of read, as one list of tables.
std::vector<std::shared_ptr<arrow::Table>> ReadAll(const table::Dataset::Ptr& dataset,
                                                   const Selection& all,
                                                   std::mt19937_64 random) {
  std::vector<std::shared_ptr<arrow::Table>> results;
  const auto add = [&](const Result<std::shared_ptr<arrow::Table>>& table) {
    ASSERT_OK(table.status());
    results.push_back(*table);
  };
  const int64_t rows = dataset->count_rows();
  for (const char* filter : {"", "bucket < 20", "st.twice % 3 = 0 AND text > 'row 5'"}) {
    ScanOptions scan;
    scan.select = all;
    scan.filter = filter;
    add(ScanToTable(dataset, scan));
    scan.limit = static_cast<int64_t>(random() % 40);
    scan.offset = static_cast<int64_t>(random() % 30);
    scan.batch_rows = 7;
    add(ScanToTable(dataset, scan));
    auto reader = Scan(dataset, scan);
    EXPECT_OK(reader.status());
    add((*reader)->ToTable());
    auto count = CountRows(*dataset, filter);
    EXPECT_OK(count.status());
    arrow::Int64Builder counted;
    EXPECT_OK(counted.Append(*count));
    results.push_back(arrow::Table::Make(
        arrow::schema({arrow::field("n", arrow::int64())}), {*counted.Finish()}));
    NearestOptions nearest;
    nearest.column = "vector";
    nearest.filter = filter;
    nearest.prefilter = random() % 2 == 0;
    nearest.k = 17;
    nearest.select = all;
    arrow::FixedSizeListBuilder queries(arrow::default_memory_pool(),
                                        std::make_shared<arrow::FloatBuilder>(), kDim);
    for (int q = 0; q < 3; ++q) {
      EXPECT_OK(queries.Append());
      for (int d = 0; d < kDim; ++d) {
        EXPECT_OK(static_cast<arrow::FloatBuilder*>(queries.value_builder())
                      ->Append(static_cast<float>(random() % 5)));
      }
    }
    nearest.queries = *queries.Finish();
    add(Nearest(dataset, nearest));
  }
  std::vector<int64_t> offsets;
  for (int i = 0; i < 50 && rows > 0; ++i) {
    offsets.push_back(static_cast<int64_t>(random() % static_cast<uint64_t>(rows)));
  }
  add(TakeOffsets(*dataset, offsets, all));
  return results;
}

void ExpectSame(const std::vector<std::shared_ptr<arrow::Table>>& a,
                const std::vector<std::shared_ptr<arrow::Table>>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    ASSERT_TRUE(a[i]->Equals(*b[i], false)) << "read " << i << "\n"
                                            << a[i]->ToString() << "\n"
                                            << b[i]->ToString();
  }
}

TEST(View, HiddenRowsAreDeletedRows) {
  std::mt19937_64 random(FreshSeed());
  for (const bool stable : {false, true}) {
    for (const double deleted : {0.0, 0.2}) {
      TestTable table = MakeTestTable(random(), {120, 1, 70}, 50, deleted, stable);
      std::map<int64_t, std::set<uint32_t>> rows;
      for (const ModelRow& row : table.rows) {
        if (random() % 3 == 0) {
          rows[row.fragment].insert(static_cast<uint32_t>(row.offset));
        }
      }
      table::ViewOptions options;
      table::DeletedRows gone;
      for (auto& [fragment, set] : rows) {
        gone[fragment].assign(set.begin(), set.end());
        // Hiding what is deleted already changes nothing.
        const int index = table.dataset->FindFragment(fragment);
        ASSERT_OK_AND_ASSIGN(auto deletions, table.dataset->deletions(index));
        if (deletions != nullptr) {
          for (uint32_t offset : deletions->ToOffsets()) set.insert(offset);
        }
        options.hidden[index] = table::DeletionVector::FromOffsets(
            std::vector<uint32_t>(set.begin(), set.end()));
      }
      ASSERT_OK_AND_ASSIGN(auto view, table::ViewOf(*table.dataset, options));
      ASSERT_OK_AND_ASSIGN(auto lost, table.dataset->CommitDelete(gone, "test"));
      ASSERT_EQ(view->count_rows(), lost->count_rows());
      const uint64_t seed = random();
      ExpectSame(ReadAll(view, AllWithIds(), std::mt19937_64(seed)),
                 ReadAll(lost, AllWithIds(), std::mt19937_64(seed)));
      // By id: hidden rows are gone.
      std::vector<uint64_t> ids;
      for (const ModelRow& row : table.rows) ids.push_back(table.RowId(row));
      ASSERT_OK_AND_ASSIGN(auto taken, TakeRowIds(*view, ids, AllWithIds()));
      ASSERT_OK_AND_ASSIGN(auto taken_lost, TakeRowIds(*lost, ids, AllWithIds()));
      ASSERT_TRUE(taken->Equals(*taken_lost));
      ScanOptions scan;
      ASSERT_EQ(ExplainScan(*view, scan), ExplainScan(*table.dataset, scan));
      // The table itself shows all rows, and a view leads to no commit.
      ASSERT_EQ(table.dataset->count_rows(), static_cast<int64_t>(table.rows.size()));
      ASSERT_EQ(KindOf(view->CommitDelete(gone, "x").status()), ErrorKind::kInvalidInput);
      ASSERT_EQ(KindOf(view->Restore().status()), ErrorKind::kInvalidInput);
      ASSERT_OK_AND_ASSIGN(auto latest, view->Latest());
      ASSERT_EQ(latest->version(), lost->version());
      ASSERT_EQ(latest->count_rows(), lost->count_rows());
    }
  }
}

TEST(View, AllRowsOfAFragmentHidden) {
  TestTable table = MakeTestTable(5, {30}, 10, 0);
  std::vector<uint32_t> all(10);
  for (uint32_t i = 0; i < 10; ++i) all[i] = i;
  table::ViewOptions options;
  options.hidden[1] = table::DeletionVector::FromOffsets(all);
  ASSERT_OK_AND_ASSIGN(auto view, table::ViewOf(*table.dataset, options));
  ASSERT_EQ(view->count_rows(), 20);
  ASSERT_OK_AND_ASSIGN(auto read, ScanToTable(view, {}));
  ASSERT_EQ(read->num_rows(), 20);
  ASSERT_EQ(Ids(*read)[10], 20);
}

// Columns of another schema: renamed, dropped, added, another order; foreign ids.
TEST(View, ColumnsOfAnotherTable) {
  const auto write = [](const std::shared_ptr<arrow::Schema>& schema,
                        const arrow::ArrayVector& columns) {
    table::TableEnv env{MakeTestRuntime(), io::MakeMemoryStore()};
    auto reader = arrow::RecordBatchReader::Make(
        {arrow::RecordBatch::Make(schema, columns[0]->length(), columns)}, schema);
    auto dataset = table::Dataset::Write(env, **reader, {});
    EXPECT_OK(dataset.status());
    return *dataset;
  };
  arrow::Int64Builder numbers;
  EXPECT_OK(numbers.AppendValues({1, 2, 3}));
  const auto values = *numbers.Finish();
  // Ids 0, 1, 2 on both sides.
  const auto files = write(arrow::schema({arrow::field("k", arrow::int64(), false),
                                          arrow::field("old", arrow::int64()),
                                          arrow::field("other", arrow::int64())}),
                           {values, values, values});
  const auto shape = write(
      arrow::schema(
          {arrow::field("k", arrow::int64(), false), arrow::field("new", arrow::int64()),
           arrow::field("mine", arrow::int64()), arrow::field("added", arrow::utf8())}),
      {values, values, values, *arrow::MakeArrayOfNull(arrow::utf8(), 3)});
  table::ViewOptions options;
  options.columns_of = shape;
  options.foreign_fields = {2};
  options.anonymous_rows = true;
  options.hidden[0] = table::DeletionVector::FromOffsets(std::vector<uint32_t>{1});
  ASSERT_OK_AND_ASSIGN(auto view, table::ViewOf(*files, options));
  ScanOptions scan;
  scan.select = AllWithIds();
  ASSERT_OK_AND_ASSIGN(auto read, ScanToTable(view, scan));
  ASSERT_OK_AND_ASSIGN(auto expected_schema, OutputSchema(*shape, scan.select));
  ASSERT_TRUE(read->schema()->Equals(*expected_schema, true));
  ASSERT_EQ(Ids(*read, "k"), (std::vector<int64_t>{1, 3}));
  ASSERT_EQ(Ids(*read, "new"), (std::vector<int64_t>{1, 3}));
  for (const char* name : {"mine", "added", "_rowid", "_rowaddr"}) {
    ASSERT_EQ(read->GetColumnByName(name)->null_count(), 2) << name;
  }
  ASSERT_OK_AND_ASSIGN(const int64_t matching, CountRows(*view, "mine = 3"));
  ASSERT_EQ(matching, 0);
  ASSERT_OK_AND_ASSIGN(const int64_t missing, CountRows(*view, "added IS NULL"));
  ASSERT_EQ(missing, 2);
}

// Rows in memory, in batches of any size, are read as if they were in a file.
TEST(View, RowsInMemory) {
  std::mt19937_64 random(FreshSeed());
  for (const int per_batch : {1, 9, 400}) {
    TestTable table = MakeTestTable(random(), {400}, 400, 0);
    std::vector<std::shared_ptr<arrow::RecordBatch>> batches;
    for (size_t i = 0; i < table.rows.size(); i += static_cast<size_t>(per_batch)) {
      const size_t end = std::min(table.rows.size(), i + static_cast<size_t>(per_batch));
      batches.push_back(ToBatch({table.rows.begin() + static_cast<int64_t>(i),
                                 table.rows.begin() + static_cast<int64_t>(end)}));
    }
    std::vector<uint32_t> hidden;
    table::DeletedRows gone;
    for (uint32_t i = 0; i < 400; ++i) {
      if (random() % 4 == 0) hidden.push_back(i);
    }
    gone[0] = hidden;
    ASSERT_OK_AND_ASSIGN(auto lost, table.dataset->CommitDelete(gone, "test"));
    const auto stored = std::make_shared<const file::Schema>(table.dataset->schema());
    ASSERT_OK_AND_ASSIGN(
        auto view, table::ViewOfBatches(*table.dataset, stored, 5, batches,
                                        table::DeletionVector::FromOffsets(hidden)));
    ASSERT_EQ(view->count_rows(), lost->count_rows());
    const uint64_t seed = random();
    Selection some;
    some.columns = {{{"id", "id"},
                     {"twice", "st.twice"},
                     {"text", "text"},
                     {"vector", "vector"},
                     {"sum", "id + bucket"}}};
    for (const Selection& select : {Selection(), some}) {
      ExpectSame(ReadAll(view, select, std::mt19937_64(seed)),
                 ReadAll(lost, select, std::mt19937_64(seed)));
    }
    ScanOptions scan;
    scan.select = AllWithIds();
    ASSERT_OK_AND_ASSIGN(auto read, ScanToTable(view, scan));
    ASSERT_EQ(read->GetColumnByName("_rowid")->null_count(), read->num_rows());
    ASSERT_EQ(read->GetColumnByName("_rowaddr")->null_count(), read->num_rows());
  }
  TestTable table = MakeTestTable(7, {10}, 10, 0);
  const auto stored = std::make_shared<const file::Schema>(table.dataset->schema());
  ASSERT_OK_AND_ASSIGN(auto empty,
                       table::ViewOfBatches(*table.dataset, stored, 5, {}, nullptr));
  ASSERT_EQ(empty->count_rows(), 0);
  ASSERT_OK_AND_ASSIGN(auto read, ScanToTable(empty, {}));
  ASSERT_EQ(read->num_rows(), 0);
}

}  // namespace
}  // namespace glaive::exec
