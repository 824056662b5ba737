// Scans, counts and deletes against the rows of a model.
#include "exec/scan.h"

#include <algorithm>
#include <thread>

#include <arrow/compute/api.h>

#include "exec/test_table.h"
#include "runtime/cancel.h"

namespace glaive::exec {
namespace {

struct Filter {
  const char* sql;
  bool (*test)(const TestTable&, const ModelRow&, int64_t ordinal);
};

const Filter kFilters[] = {
    {"", [](const TestTable&, const ModelRow&, int64_t) { return true; }},
    {"true", [](const TestTable&, const ModelRow&, int64_t) { return true; }},
    {"false", [](const TestTable&, const ModelRow&, int64_t) { return false; }},
    {"bucket = 7",
     [](const TestTable&, const ModelRow& r, int64_t) { return r.bucket == 7; }},
    {"bucket < 45", [](const TestTable&, const ModelRow& r,
                       int64_t) { return r.bucket && *r.bucket < 45; }},
    {"bucket IS NULL",
     [](const TestTable&, const ModelRow& r, int64_t) { return !r.bucket; }},
    {"NOT (bucket >= 10)", [](const TestTable&, const ModelRow& r,
                              int64_t) { return r.bucket && *r.bucket < 10; }},
    {"id % 100 = 3 OR text = 'row 5'",
     [](const TestTable&, const ModelRow& r, int64_t) {
       return r.id % 100 == 3 || r.text == "row 5";
     }},
    {"st.twice > 100 AND vector IS NOT NULL",
     [](const TestTable&, const ModelRow& r, int64_t) {
       return r.id * 2 > 100 && r.vector;
     }},
    {"_rowid < 4294967300", [](const TestTable& t, const ModelRow& r,
                               int64_t) { return t.RowId(r) < 4294967300; }},
    {"_rowaddr >= 4294967296",
     [](const TestTable&, const ModelRow& r, int64_t) {
       return TestTable::Address(r) >= 4294967296;
     }},
    {"_rowoffset IN (0, 17, 100000) AND id >= 0",
     [](const TestTable&, const ModelRow&, int64_t o) {
       return o == 0 || o == 17 || o == 100000;
     }},
};

std::vector<int64_t> Expected(const TestTable& table, const Filter& filter,
                              int64_t offset = 0,
                              std::optional<int64_t> limit = std::nullopt) {
  std::vector<int64_t> ids;
  int64_t ordinal = 0;
  for (const ModelRow& row : table.rows) {
    if (filter.test(table, row, ordinal++)) ids.push_back(row.id);
  }
  const auto begin = std::min(ids.size(), static_cast<size_t>(offset));
  const auto count =
      std::min(ids.size() - begin, static_cast<size_t>(limit.value_or(INT64_MAX)));
  return {ids.begin() + static_cast<int64_t>(begin),
          ids.begin() + static_cast<int64_t>(begin + count)};
}

void CheckTable(const TestTable& table) {
  for (const Filter& filter : kFilters) {
    SCOPED_TRACE(filter.sql);
    ASSERT_OK_AND_ASSIGN(const int64_t count, CountRows(*table.dataset, filter.sql));
    EXPECT_EQ(count, static_cast<int64_t>(Expected(table, filter).size()));
    for (const auto& [offset, limit] :
         std::vector<std::pair<int64_t, std::optional<int64_t>>>{{0, std::nullopt},
                                                                 {0, 0},
                                                                 {0, 1},
                                                                 {5, 10},
                                                                 {3, std::nullopt},
                                                                 {0, 100},
                                                                 {1000000, 5}}) {
      ScanOptions options;
      options.filter = filter.sql;
      options.offset = offset;
      options.limit = limit;
      ASSERT_OK_AND_ASSIGN(auto whole, ScanToTable(table.dataset, options));
      ASSERT_OK(whole->ValidateFull());
      EXPECT_EQ(Ids(*whole), Expected(table, filter, offset, limit)) << offset;
      options.batch_rows = 64;
      ASSERT_OK_AND_ASSIGN(auto reader, Scan(table.dataset, options));
      std::vector<std::shared_ptr<arrow::RecordBatch>> batches;
      for (;;) {
        ASSERT_OK_AND_ASSIGN(auto batch, reader->Next());
        if (batch == nullptr) break;
        EXPECT_LE(batch->num_rows(), 64);
        EXPECT_GT(batch->num_rows(), 0);
        batches.push_back(std::move(batch));
      }
      ASSERT_OK_AND_ASSIGN(auto streamed,
                           arrow::Table::FromRecordBatches(reader->schema(), batches));
      EXPECT_TRUE(streamed->Equals(*whole)) << filter.sql;
    }
  }
}

// Every value of the rows with the given ids, in order.
void CheckValues(const TestTable& table, const arrow::Table& result) {
  size_t at = 0;
  const auto ids = Ids(result);
  for (size_t i = 0; i < ids.size(); ++i) {
    while (at < table.rows.size() && table.rows[at].id != ids[i]) ++at;
    ASSERT_LT(at, table.rows.size());
    const ModelRow& row = table.rows[at];
    const auto n = static_cast<int64_t>(i);
    ASSERT_OK_AND_ASSIGN(auto bucket, result.GetColumnByName("bucket")->GetScalar(n));
    ASSERT_EQ(bucket->is_valid, row.bucket.has_value());
    if (row.bucket) {
      ASSERT_EQ(ValueAt<arrow::Int32Array>(result, "bucket", n), *row.bucket);
    }
    CheckTextAndVector(result, n, row);
  }
}

TEST(Scan, RandomTables) {
  const std::vector<uint64_t> seeds = {1, 2, 3, FreshSeed()};
  for (uint64_t seed : seeds) {
    SCOPED_TRACE(seed);
    CheckTable(MakeTestTable(seed, {1}, 10, 0));
    CheckTable(MakeTestTable(seed, {700, 1, 90}, 100, 0));
    CheckTable(MakeTestTable(seed, {700, 1, 90}, 100, 0.3));
    CheckTable(MakeTestTable(seed, {20, 30}, 7, 0.9));
    CheckTable(MakeTestTable(seed, {300, 90}, 100, 0.2, /*stable_ids=*/true));
  }
}

TEST(Scan, LargerTablesOnSeveralThreads) {
  const TestTable table = MakeTestTable(5, {40000, 9000}, 30000, 0.01);
  CheckTable(table);
  ScanOptions options;
  options.filter = "id % 13 = 0";
  ASSERT_OK_AND_ASSIGN(auto selective, ScanToTable(table.dataset, options));
  CheckValues(table, *selective);
  options.filter = "id % 2 = 0 AND id < 3000";
  ASSERT_OK_AND_ASSIGN(auto many, ScanToTable(table.dataset, options));
  CheckValues(table, *many);
}

// Too long to be kept as a plan.
TEST(Scan, LongFilters) {
  const TestTable table = MakeTestTable(6, {900, 100}, 300, 0.2);
  ScanOptions options;
  options.filter = "id IN (-1";
  for (int id = 0; id < 2000; id += 7) options.filter += ", " + std::to_string(id);
  options.filter += ") AND text <> '" + std::string(5000, 'x') + "'";
  std::vector<int64_t> expected;
  for (const ModelRow& row : table.rows) {
    if (row.id % 7 == 0) expected.push_back(row.id);
  }
  ASSERT_OK_AND_ASSIGN(auto result, ScanToTable(table.dataset, options));
  EXPECT_EQ(Ids(*result), expected);
}

TEST(Scan, EmptyTable) {
  TestTable table;
  table.env.runtime = MakeTestRuntime();
  table.env.store = io::MakeMemoryStore();
  ASSERT_OK_AND_ASSIGN(table.dataset,
                       table::Dataset::WriteEmpty(table.env, *TestSchema(), {}));
  CheckTable(table);
}

TEST(Scan, Selections) {
  const TestTable table = MakeTestTable(9, {50, 20}, 30, 0.2);
  ScanOptions options;
  options.select.columns = ColumnList{{"x", "id"},
                                      {"st.twice", "st.twice"},
                                      {"sum", "id + st.twice"},
                                      {"address", "_rowaddr"},
                                      {"_rowoffset", "_rowoffset"},
                                      {"next", "_rowid + 1"},
                                      {"st", "st"}};
  options.select.with_row_id = true;
  ASSERT_OK_AND_ASSIGN(auto result, ScanToTable(table.dataset, options));
  ASSERT_OK(result->ValidateFull());
  ASSERT_OK_AND_ASSIGN(auto schema, OutputSchema(*table.dataset, options.select));
  EXPECT_TRUE(result->schema()->Equals(*schema));
  EXPECT_EQ(schema->field_names(),
            (std::vector<std::string>{"x", "st.twice", "sum", "address", "_rowoffset",
                                      "next", "st", "_rowid"}));
  EXPECT_TRUE(schema->field(1)->type()->Equals(*arrow::int64()));
  ASSERT_EQ(result->num_rows(), static_cast<int64_t>(table.rows.size()));
  const auto x = Ids(*result, "x");
  const auto twice = Ids(*result, "st.twice");
  const auto sum = Ids(*result, "sum");
  const auto address = UInts(*result, "address");
  const auto offset = UInts(*result, "_rowoffset");
  const auto next = UInts(*result, "next");
  const auto row_id = UInts(*result, "_rowid");
  for (size_t i = 0; i < table.rows.size(); ++i) {
    EXPECT_EQ(x[i], table.rows[i].id);
    EXPECT_EQ(twice[i], x[i] * 2);
    EXPECT_EQ(sum[i], x[i] * 3);
    EXPECT_EQ(address[i], TestTable::Address(table.rows[i]));
    EXPECT_EQ(row_id[i], address[i]);
    EXPECT_EQ(next[i], address[i] + 1);
    EXPECT_EQ(offset[i], i);
  }
  options.select.columns.emplace();
  ASSERT_OK_AND_ASSIGN(result, ScanToTable(table.dataset, options));
  EXPECT_EQ(result->schema()->field_names(), std::vector<std::string>{"_rowid"});
  EXPECT_EQ(UInts(*result, "_rowid"), row_id);
  options.filter = "bucket = 7";
  ASSERT_OK_AND_ASSIGN(result, ScanToTable(table.dataset, options));
  EXPECT_EQ(result->num_rows(),
            static_cast<int64_t>(Expected(table, kFilters[3]).size()));
}

TEST(Scan, StableRowIdsAreReturned) {
  const TestTable table = MakeTestTable(11, {50, 20}, 30, 0.2, /*stable_ids=*/true);
  ScanOptions options;
  options.select.with_row_id = true;
  options.select.with_row_address = true;
  ASSERT_OK_AND_ASSIGN(auto result, ScanToTable(table.dataset, options));
  const auto ids = UInts(*result, "_rowid");
  const auto addresses = UInts(*result, "_rowaddr");
  for (size_t i = 0; i < table.rows.size(); ++i) {
    EXPECT_EQ(ids[i], table.rows[i].stable_id);
    EXPECT_EQ(addresses[i], TestTable::Address(table.rows[i]));
  }
}

TEST(Scan, ChosenFragments) {
  const TestTable table = MakeTestTable(12, {100}, 30, 0.2);
  ScanOptions options;
  options.fragment_ids = {2, 0};
  ASSERT_OK_AND_ASSIGN(auto result, ScanToTable(table.dataset, options));
  std::vector<int64_t> expected;
  for (int64_t fragment : {2, 0}) {
    for (const ModelRow& row : table.rows) {
      if (row.fragment == fragment) expected.push_back(row.id);
    }
  }
  EXPECT_EQ(Ids(*result), expected);
  options.fragment_ids = {9};
  EXPECT_ERROR_KIND(ScanToTable(table.dataset, options).status(),
                    ErrorKind::kInvalidInput);
}

TEST(Scan, BatchesAreBoundedByBytes) {
  const TestTable table = MakeTestTable(13, {5000}, 5000, 0);
  ScanOptions options;
  options.batch_bytes = 4096;
  ASSERT_OK_AND_ASSIGN(auto reader, Scan(table.dataset, options));
  int64_t rows = 0;
  for (;;) {
    ASSERT_OK_AND_ASSIGN(auto batch, reader->Next());
    if (batch == nullptr) break;
    rows += batch->num_rows();
    // 28 bytes of vector, 20 of numbers, 10 of text per row.
    EXPECT_LE(batch->num_rows(), 100);
  }
  EXPECT_EQ(rows, 5000);
}

TEST(Scan, RefusesBadInput) {
  const TestTable table = MakeTestTable(14, {10}, 10, 0);
  const auto scan = [&](const std::function<void(ScanOptions*)>& change) {
    ScanOptions options;
    change(&options);
    return Scan(table.dataset, options).status();
  };
  EXPECT_ERROR_KIND(scan([](auto* o) { o->limit = -1; }), ErrorKind::kInvalidInput);
  EXPECT_ERROR_KIND(scan([](auto* o) { o->offset = -1; }), ErrorKind::kInvalidInput);
  EXPECT_ERROR_KIND(scan([](auto* o) { o->batch_rows = 0; }), ErrorKind::kInvalidInput);
  EXPECT_ERROR_KIND(scan([](auto* o) { o->filter = "nope = 1"; }),
                    ErrorKind::kInvalidInput);
  EXPECT_ERROR_KIND(scan([](auto* o) {
                      o->select.columns = ColumnList{{"a", "nope"}};
                    }),
                    ErrorKind::kInvalidInput);
  EXPECT_ERROR_KIND(scan([](auto* o) {
                      o->select.columns = ColumnList{{"a", "id"}, {"a", "id"}};
                    }),
                    ErrorKind::kInvalidInput);
  EXPECT_ERROR_KIND(scan([](auto* o) {
                      o->select.columns = ColumnList{{"a", "_distance"}};
                    }),
                    ErrorKind::kInvalidInput);
  EXPECT_ERROR_KIND(CountRows(*table.dataset, "id >").status(), ErrorKind::kInvalidInput);
}

TEST(Scan, StopsWhenCancelled) {
  const TestTable table = MakeTestTable(15, {3000}, 500, 0);
  CancelToken cancel;
  ScanOptions options;
  options.cancel = &cancel;
  options.batch_rows = 100;
  ASSERT_OK_AND_ASSIGN(auto reader, Scan(table.dataset, options));
  ASSERT_OK(reader->Next().status());
  cancel.Cancel();
  EXPECT_ERROR_KIND(reader->Next().status(), ErrorKind::kCancelled);
  EXPECT_ERROR_KIND(ScanToTable(table.dataset, options).status(), ErrorKind::kCancelled);
  EXPECT_ERROR_KIND(CountRows(*table.dataset, "id > 1", &cancel).status(),
                    ErrorKind::kCancelled);
  CancelToken late(std::chrono::nanoseconds(0));
  options.cancel = &late;
  EXPECT_ERROR_KIND(ScanToTable(table.dataset, options).status(), ErrorKind::kTimeout);
}

TEST(Scan, WorkingMemoryIsChargedToTheBudget) {
  const TestTable table = MakeTestTable(16, {3000}, 1000, 0);
  MemoryBudget& memory = table.env.runtime->memory();
  ScanOptions options;
  ASSERT_OK(ScanToTable(table.dataset, options).status());
  EXPECT_EQ(memory.used_bytes(), 0);
  // Somebody else has all but a little.
  const int64_t held = memory.limit_bytes() - 100;
  ASSERT_OK(memory.Reserve(held));
  const Status refused = ScanToTable(table.dataset, options).status();
  EXPECT_ERROR_KIND(refused, ErrorKind::kResourceExhausted);
  EXPECT_NE(refused.message().find(table.env.store->root()), std::string::npos);
  ASSERT_OK_AND_ASSIGN(auto reader, Scan(table.dataset, options));
  EXPECT_ERROR_KIND(reader->Next().status(), ErrorKind::kResourceExhausted);
  EXPECT_EQ(memory.used_bytes(), held);
  memory.Release(held);
  ASSERT_OK_AND_ASSIGN(auto all, ScanToTable(table.dataset, options));
  EXPECT_EQ(all->num_rows(), 3000);
}

TEST(Scan, RowVersionsOfRandomRows) {
  const TestTable table = MakeTestTable(17, {700, 1, 300}, 90, 0.2, /*stable_ids=*/true);
  Selection select;
  select.columns = ColumnList{{"v", kRowUpdatedAt}, {"id", "id"}, {"c", kRowCreatedAt}};
  // Appends of 700, 1 and 300 rows made versions 1, 2 and 3.
  const auto version_of = [](int64_t id) -> uint64_t {
    return id < 700 ? 1 : id == 700 ? 2 : 3;
  };
  ScanOptions options;
  options.select = select;
  for (const char* filter : {"", "_row_created_at_version >= 2", "id % 50 = 3",
                             "_row_last_updated_at_version = 1 AND id % 2 = 0"}) {
    options.filter = filter;
    ASSERT_OK_AND_ASSIGN(auto found, ScanToTable(table.dataset, options));
    const auto ids = Ids(*found);
    ASSERT_GT(ids.size(), 10u);
    for (size_t i = 0; i < ids.size(); ++i) {
      ASSERT_EQ(UInts(*found, "v")[i], version_of(ids[i])) << filter;
      ASSERT_EQ(UInts(*found, "c")[i], version_of(ids[i])) << filter;
    }
  }
  std::mt19937_64 random(3);
  std::vector<int64_t> offsets;
  for (int i = 0; i < 50; ++i) {
    offsets.push_back(static_cast<int64_t>(random() % table.rows.size()));
  }
  ASSERT_OK_AND_ASSIGN(auto taken, TakeOffsets(*table.dataset, offsets, select));
  for (size_t i = 0; i < offsets.size(); ++i) {
    const int64_t id = table.rows[static_cast<size_t>(offsets[i])].id;
    ASSERT_EQ(Ids(*taken)[i], id);
    ASSERT_EQ(UInts(*taken, "v")[i], version_of(id));
  }
}

TEST(Delete, FindsAndCommits) {
  for (const char* sql : {"bucket = 7", "id % 3 = 0", "true", "false", "_rowoffset < 10",
                          "bucket IS NULL"}) {
    SCOPED_TRACE(sql);
    for (double share : {0.0, 0.3}) {
      TestTable table = MakeTestTable(21, {200, 50}, 60, share);
      ASSERT_OK_AND_ASSIGN(const int64_t matching, CountRows(*table.dataset, sql));
      ScanOptions options;
      options.filter = std::string("(") + sql + ") IS NOT TRUE";
      ASSERT_OK_AND_ASSIGN(auto expected, ScanToTable(table.dataset, options));
      ASSERT_OK_AND_ASSIGN(auto result, Delete(table.dataset, sql));
      EXPECT_EQ(result.num_deleted_rows, matching);
      EXPECT_EQ(result.dataset->version(), table.dataset->version() + 1);
      ASSERT_OK_AND_ASSIGN(auto left, ScanToTable(result.dataset, {}));
      EXPECT_EQ(Ids(*left), Ids(*expected));
      EXPECT_EQ(result.dataset->count_rows(),
                static_cast<int64_t>(table.rows.size()) - matching);
      // The old snapshot still has its rows.
      ASSERT_OK_AND_ASSIGN(auto old, ScanToTable(table.dataset, {}));
      EXPECT_EQ(old->num_rows(), static_cast<int64_t>(table.rows.size()));
    }
  }
  const TestTable table = MakeTestTable(22, {10}, 10, 0);
  EXPECT_ERROR_KIND(Delete(table.dataset, "nope").status(), ErrorKind::kInvalidInput);
  EXPECT_ERROR_KIND(Delete(table.dataset, "").status(), ErrorKind::kInvalidInput);
}

// Deletes that clash look again at the newest version; every row is counted once.
TEST(Delete, ConcurrentDeletesOfOverlappingRows) {
  const TestTable table = MakeTestTable(23, {400}, 100, 0);
  constexpr int kThreads = 4;
  std::vector<int64_t> deleted(kThreads);
  std::vector<Status> statuses(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      auto result =
          Delete(table.dataset, "id % 2 = 0 AND id < " + std::to_string(100 * (t + 1)));
      statuses[static_cast<size_t>(t)] = result.status();
      if (result.ok()) deleted[static_cast<size_t>(t)] = result->num_deleted_rows;
    });
  }
  for (auto& thread : threads) thread.join();
  int64_t total = 0;
  for (int t = 0; t < kThreads; ++t) {
    ASSERT_OK(statuses[static_cast<size_t>(t)]);
    total += deleted[static_cast<size_t>(t)];
  }
  EXPECT_EQ(total, 200);
  ASSERT_OK_AND_ASSIGN(auto latest, table.dataset->Latest());
  EXPECT_EQ(latest->count_rows(), 200);
  ASSERT_OK_AND_ASSIGN(const int64_t even, CountRows(*latest, "id % 2 = 0"));
  EXPECT_EQ(even, 0);
}

TEST(Explain, Tokens) {
  const TestTable table = MakeTestTable(24, {10}, 10, 0);
  ScanOptions options;
  options.filter = "id = 1";
  options.limit = 1;
  options.offset = 1;
  const std::string text = ExplainScan(*table.dataset, options);
  for (const char* token : {"LanceRead", "full_filter=id = Int64(1)",
                            "GlobalLimitExec: skip=1, fetch=1", "ProjectionExec"}) {
    EXPECT_NE(text.find(token), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace glaive::exec
