// Columns added, altered and dropped: values beside deleted rows, casts at their edges,
// faults at every operation of the store, and two handles that change the same table.
#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include <arrow/api.h>
#include <gtest/gtest.h>

#include "exec/add_columns.h"
#include "exec/alter_columns.h"
#include "exec/scan.h"
#include "exec/test_table.h"
#include "format/table.pb.h"
#include "io/faulting_store.h"

namespace glaive::exec {
namespace {

using arrow::field;
using table::ColumnAlteration;
using table::Dataset;
using Cells = std::vector<std::optional<int64_t>>;

std::shared_ptr<arrow::Table> Numbers(const std::string& name, const Cells& cells,
                                      bool nullable = true) {
  arrow::Int64Builder builder;
  for (const auto& cell : cells) {
    EXPECT_OK(cell ? builder.Append(*cell) : builder.AppendNull());
  }
  return arrow::Table::Make(arrow::schema({field(name, arrow::int64(), nullable)}),
                            {builder.Finish().ValueOrDie()});
}

// Three fragments of three rows; n = 10, 20, ... and rows 1, 3, 4, 5 deleted, which
// leaves the second fragment out; then one row of the third.
Result<Dataset::Ptr> MakeNumbers(const table::TableEnv& env) {
  auto data = Numbers("n", {10, 20, 30, 40, 50, 60, 70, 80, std::nullopt});
  arrow::TableBatchReader reader(*data);
  table::WriteOptions options;
  options.max_rows_per_file = 3;
  GLAIVE_ASSIGN_OR_RETURN(auto dataset, Dataset::Write(env, reader, options));
  return dataset->CommitDelete({{0, {1}}, {1, {0, 2}}, {2, {0}}}, "test");
}
const Cells kNumbers = {10, 30, 50, 80, std::nullopt};

Result<Cells> Read(const Dataset::Ptr& dataset, const std::string& column) {
  ScanOptions options;
  options.select.columns = {{column, "cast(`" + column + "` as bigint)"}};
  GLAIVE_ASSIGN_OR_RETURN(auto table, ScanToTable(dataset, options));
  Cells cells;
  for (const auto& chunk : table->column(0)->chunks()) {
    const auto& values = static_cast<const arrow::Int64Array&>(*chunk);
    for (int64_t i = 0; i < values.length(); ++i) {
      cells.push_back(values.IsNull(i) ? std::nullopt
                                       : std::optional<int64_t>(values.Value(i)));
    }
  }
  return cells;
}

table::TableEnv MakeEnv(std::shared_ptr<io::ObjectStore> store, int threads = 2) {
  return {MakeTestRuntime(threads), std::move(store)};
}

ColumnAlteration CastTo(std::shared_ptr<arrow::DataType> type) {
  ColumnAlteration out;
  out.path = "n";
  out.type = std::move(type);
  return out;
}

Result<Dataset::Ptr> AddRows(const Dataset::Ptr& dataset, const Cells& cells) {
  auto data = Numbers("v", cells);
  arrow::TableBatchReader reader(*data);
  reader.set_chunksize(2);
  return AddColumnsFromReader(dataset, reader);
}

TEST(ChangeColumns, ComputedForLiveRowsOnly) {
  const auto env = MakeEnv(io::MakeMemoryStore());
  ASSERT_OK_AND_ASSIGN(auto dataset, MakeNumbers(env));
  // 60 and 20 are deleted: the division by zero never happens.
  ASSERT_OK_AND_ASSIGN(dataset,
                       AddColumns(dataset, {{"d", "600 / (n - 20)"}, {"one", "1"}}));
  ASSERT_OK_AND_ASSIGN(auto cells, Read(dataset, "d"));
  EXPECT_EQ(cells, (Cells{-60, 60, 20, 10, std::nullopt}));
  EXPECT_TRUE(dataset->arrow_schema()->GetFieldByName("d")->nullable());
  EXPECT_FALSE(dataset->arrow_schema()->GetFieldByName("one")->nullable());
  ASSERT_OK_AND_ASSIGN(cells, Read(dataset, "one"));
  EXPECT_EQ(cells, (Cells{1, 1, 1, 1, 1}));
  ASSERT_OK_AND_ASSIGN(cells, Read(dataset, "n"));
  EXPECT_EQ(cells, kNumbers);
}

// Far more rows than one batch, so that many threads bring pages at once: all of them
// must come in order. Nulls in some batches only, and deleted rows.
TEST(ChangeColumns, ComputedInManyPages) {
  constexpr int64_t kRows = 2'300'000;
  const auto env = MakeEnv(io::MakeMemoryStore(), /*threads=*/4);
  arrow::Int64Builder builder;
  ASSERT_OK(builder.Reserve(kRows));
  for (int64_t i = 0; i < kRows; ++i) {
    if (i > kRows / 2 && i % 1000 == 0) {
      builder.UnsafeAppendNull();
    } else {
      builder.UnsafeAppend(i * 7919 % 100'003);
    }
  }
  auto data = arrow::Table::Make(arrow::schema({field("n", arrow::int64())}),
                                 {builder.Finish().ValueOrDie()});
  arrow::TableBatchReader reader(*data);
  table::WriteOptions one_fragment;
  one_fragment.max_rows_per_file = kRows;
  ASSERT_OK_AND_ASSIGN(auto dataset, Dataset::Write(env, reader, one_fragment));
  ASSERT_EQ(dataset->num_fragments(), 1);
  ASSERT_OK_AND_ASSIGN(dataset,
                       dataset->CommitDelete({{0, {5, 70'000, 2'000'000}}}, "test"));
  std::vector<int64_t> done;
  ColumnChangeOptions options;
  options.progress = [&](int64_t rows) { done.push_back(rows); };
  ASSERT_OK_AND_ASSIGN(dataset, AddColumns(dataset, {{"c", "n * 3 + 1"}}, options));
  ASSERT_OK_AND_ASSIGN(const auto before, Read(dataset, "n"));
  ASSERT_OK_AND_ASSIGN(const auto after, Read(dataset, "c"));
  ASSERT_EQ(after.size(), static_cast<size_t>(kRows - 3));
  for (size_t i = 0; i < after.size(); ++i) {
    ASSERT_EQ(after[i].has_value(), before[i].has_value()) << i;
    if (after[i]) {
      ASSERT_EQ(*after[i], *before[i] * 3 + 1) << i;
    }
  }
  EXPECT_TRUE(std::is_sorted(done.begin(), done.end()));
  EXPECT_EQ(done.back(), kRows);
}

TEST(ChangeColumns, GivenForLiveRowsInOrder) {
  const auto env = MakeEnv(io::MakeMemoryStore());
  ASSERT_OK_AND_ASSIGN(auto dataset, MakeNumbers(env));
  const Cells given = {1, 2, std::nullopt, 4, 5};
  ASSERT_OK_AND_ASSIGN(auto added, AddRows(dataset, given));
  ASSERT_OK_AND_ASSIGN(auto cells, Read(added, "v"));
  EXPECT_EQ(cells, given);
  EXPECT_EQ(AddRows(dataset, {1, 2}).status().message(),
            "Stream ended before producing values for all rows in dataset");
  EXPECT_EQ(AddRows(dataset, {1, 2, 3, 4, 5, 6}).status().message(),
            "Stream produced more values than expected for dataset");
}

TEST(ChangeColumns, JoinedByKeyNullsIncluded) {
  const auto env = MakeEnv(io::MakeMemoryStore());
  ASSERT_OK_AND_ASSIGN(auto dataset, MakeNumbers(env));
  auto keys = Numbers("k", {50, 10, std::nullopt, 99, 10});
  ASSERT_OK_AND_ASSIGN(auto data,
                       keys->AddColumn(1, field("v", arrow::int64()),
                                       Numbers("v", {1, 2, 3, 4, 5})->column(0)));
  arrow::TableBatchReader reader(*data);
  ASSERT_OK_AND_ASSIGN(dataset, MergeColumns(dataset, reader, "n", "k"));
  ASSERT_OK_AND_ASSIGN(auto cells, Read(dataset, "v"));
  EXPECT_EQ(cells, (Cells{5, std::nullopt, 1, std::nullopt, 3}));
}

TEST(ChangeColumns, CastsWriteOneColumnAndRefuseWhatDoesNotFit) {
  const auto env = MakeEnv(io::MakeMemoryStore());
  ASSERT_OK_AND_ASSIGN(auto dataset, MakeNumbers(env));
  const std::vector<ColumnAlteration> narrow = {CastTo(arrow::int8())};
  ASSERT_OK_AND_ASSIGN(auto cast, AlterColumns(dataset, narrow));
  ASSERT_OK_AND_ASSIGN(auto cells, Read(cast, "n"));
  EXPECT_EQ(cells, kNumbers);
  EXPECT_EQ(cast->schema().fields()[0].id, 1);
  // 300 has no place in int8; the table stays as it is.
  ASSERT_OK_AND_ASSIGN(auto more, AddColumns(cast, {{"w", "cast(n as int) * 10"}}));
  ColumnAlteration wide = CastTo(arrow::int8());
  wide.path = "w";
  ASSERT_OK_AND_ASSIGN(auto files, env.store->ListNames("data"));
  auto refused = AlterColumns(more, std::vector<ColumnAlteration>{wide});
  EXPECT_ERROR_KIND(refused, ErrorKind::kInvalidInput);
  ASSERT_OK_AND_ASSIGN(auto after, env.store->ListNames("data"));
  EXPECT_EQ(after.size(), files.size());
  ASSERT_OK_AND_ASSIGN(const bool latest, more->IsLatest());
  EXPECT_TRUE(latest);

  ColumnAlteration strict;
  strict.path = "n";
  strict.nullable = false;
  refused = AlterColumns(more, std::vector<ColumnAlteration>{strict});
  EXPECT_EQ(refused.status().message(),
            "Column \"n\" contains NULL values and cannot be made non-nullable");
}

TEST(ChangeColumns, ArraysAreCastAsUpstreamDoes) {
  const auto cast = [](const std::shared_ptr<arrow::Array>& array,
                       std::shared_ptr<arrow::DataType> type) {
    auto result = CastColumn(array, type);
    return result.ok() ? (*result)->ToString() : result.status().message();
  };
  arrow::TimestampBuilder times(arrow::timestamp(arrow::TimeUnit::MILLI),
                                arrow::default_memory_pool());
  ASSERT_OK(times.AppendValues({-1500, -1, 1500}));
  ASSERT_OK(times.AppendNull());
  ASSERT_OK_AND_ASSIGN(auto ms, times.Finish());
  ASSERT_OK_AND_ASSIGN(auto days, CastColumn(ms, arrow::date32()));
  const auto& dates = static_cast<const arrow::Date32Array&>(*days);
  EXPECT_EQ(dates.Value(0), -1);
  EXPECT_EQ(dates.Value(1), -1);
  EXPECT_EQ(dates.Value(2), 0);
  EXPECT_TRUE(dates.IsNull(3));
  arrow::Decimal128Builder decimals(arrow::decimal128(10, 2));
  ASSERT_OK(decimals.Append(arrow::Decimal128(1255)));
  ASSERT_OK(decimals.Append(arrow::Decimal128(-1255)));
  ASSERT_OK_AND_ASSIGN(auto hundredths, decimals.Finish());
  EXPECT_EQ(cast(hundredths, arrow::decimal128(10, 1)), "[\n  12.6,\n  -12.6\n]");
  EXPECT_ERROR_KIND(CastColumn(hundredths, arrow::decimal128(2, 2)),
                    ErrorKind::kInvalidInput);
  arrow::StringBuilder texts;
  ASSERT_OK(texts.AppendValues({"b", "a", "b"}));
  ASSERT_OK(texts.AppendNull());
  ASSERT_OK_AND_ASSIGN(auto plain, texts.Finish());
  ASSERT_OK_AND_ASSIGN(
      auto coded, CastColumn(plain, arrow::dictionary(arrow::int8(), arrow::utf8())));
  EXPECT_EQ(coded->type()->ToString(),
            "dictionary<values=string, indices=int8, ordered=0>");
  ASSERT_OK_AND_ASSIGN(auto decoded, CastColumn(coded, arrow::utf8()));
  EXPECT_TRUE(decoded->Equals(*plain));
}

struct Change {
  const char* name;
  std::function<Result<Dataset::Ptr>(const Dataset::Ptr&)> run;
  const char* column;  // to look at afterwards
  Cells after;
};

std::vector<Change> Changes() {
  return {
      {"add computed",
       [](const auto& d) {
         return AddColumns(d, {{"v", "n + 1"}});
       },
       "v",
       {11, 31, 51, 81, std::nullopt}},
      {"add nulls",
       [](const auto& d) {
         return AddNullColumns(d, *arrow::schema({field("v", arrow::int64())}));
       },
       "v", Cells(5)},
      {"add from reader",
       [](const auto& d) {
         return AddRows(d, {1, 2, 3, 4, 5});
       },
       "v",
       {1, 2, 3, 4, 5}},
      {"merge",
       [](const auto& d) -> Result<Dataset::Ptr> {
         GLAIVE_ASSIGN_OR_RETURN(auto data,
                                 Numbers("k", {10, 50})
                                     ->AddColumn(1, field("v", arrow::int64()),
                                                 Numbers("v", {1, 2})->column(0)));
         arrow::TableBatchReader reader(*data);
         return MergeColumns(d, reader, "n", "k");
       },
       "v",
       {1, std::nullopt, 2, std::nullopt, std::nullopt}},
      {"cast",
       [](const auto& d) {
         const std::vector<ColumnAlteration> changes = {CastTo(arrow::int16())};
         return AlterColumns(d, changes);
       },
       "n", kNumbers},
  };
}

std::set<std::string> DataFiles(io::ObjectStore& store) {
  auto names = store.ListNames("data").ValueOrDie();
  return {names.begin(), names.end()};
}

std::set<std::string> FilesOf(const Dataset& dataset) {
  std::set<std::string> names;
  for (int i = 0; i < dataset.num_fragments(); ++i) {
    for (const auto& file : dataset.fragment(i).files()) names.insert(file.path());
  }
  return names;
}

// Whatever fails, the table is as it was or as it should be, and no file is left that it
// does not know.
TEST(ChangeColumns, EveryOperationOfEveryChangeFails) {
  for (const Change& change : Changes()) {
    for (auto effect : {io::FaultEffect::kNotDone, io::FaultEffect::kDone}) {
      for (int64_t at = 0;; ++at) {
        SCOPED_TRACE(std::string(change.name) + ", operation " + std::to_string(at) +
                     ", effect " + std::to_string(static_cast<int>(effect)));
        auto store = io::MakeMemoryStore();
        ASSERT_OK(MakeNumbers(MakeEnv(store)).status());
        auto injector = std::make_shared<io::FaultInjector>();
        const auto env = MakeEnv(io::MakeFaultingStore(store, injector), 1);
        ASSERT_OK_AND_ASSIGN(auto dataset, Dataset::Open(env));
        io::FaultPlan plan;
        plan.fail_at = at;
        plan.effect = effect;
        injector->Arm(plan);
        const auto changed = change.run(dataset);
        if (!injector->fired()) {
          ASSERT_OK(changed.status());
          break;
        }
        ASSERT_LT(at, 300);
        ASSERT_OK_AND_ASSIGN(auto seen, Dataset::Open(MakeEnv(store)));
        const bool done = seen->version() == 3;
        ASSERT_TRUE(done || seen->version() == 2);
        ASSERT_TRUE(done || !changed.ok()) << "an acknowledged version is not there";
        ASSERT_OK_AND_ASSIGN(auto numbers, Read(seen, "n"));
        ASSERT_EQ(numbers, kNumbers);
        if (done) {
          ASSERT_OK_AND_ASSIGN(auto cells, Read(seen, change.column));
          ASSERT_EQ(cells, change.after);
        } else {
          EXPECT_EQ(seen->schema().fields().size(), 1u);
        }
        if (effect != io::FaultEffect::kNotDone) continue;
        // Version 2 knows all files of before, the newest what was added.
        std::set<std::string> known = FilesOf(*seen);
        ASSERT_OK_AND_ASSIGN(auto before, seen->Checkout(2));
        known.merge(FilesOf(*before));
        EXPECT_EQ(DataFiles(*store), known);
      }
    }
  }
}

// Drops, renames and the like write no data. Whatever fails, another process sees the
// columns of before or of after, with their values, finds no file that neither version
// knows, and its own next change succeeds.
TEST(ChangeColumns, EveryOperationOfADropOrARenameFails) {
  struct SchemaChange {
    const char* name;
    std::function<Result<Dataset::Ptr>(const Dataset::Ptr&)> run;
    std::vector<std::string> after;  // the columns, in order
  };
  const auto drop = [](std::vector<std::string> names) {
    return [names](const Dataset::Ptr& d) { return DropColumns(d, names); };
  };
  const auto alter = [](const char* path, const char* name,
                        std::optional<bool> nullable) {
    ColumnAlteration change;
    change.path = path;
    if (name != nullptr) change.rename = name;
    change.nullable = nullable;
    return [change](const Dataset::Ptr& d) {
      return AlterColumns(d, std::vector<ColumnAlteration>{change});
    };
  };
  const std::vector<SchemaChange> changes = {
      {"drop what has files of its own", drop({"v"}), {"n", "w"}},
      {"drop the first", drop({"n"}), {"v", "w"}},
      {"drop two", drop({"n", "w"}), {"v"}},
      {"rename", alter("n", "m", std::nullopt), {"m", "v", "w"}},
      {"non-null", alter("v", nullptr, false), {"n", "v", "w"}},
  };
  const std::map<std::string, Cells> values = {
      {"n", kNumbers}, {"m", kNumbers}, {"v", {1, 2, 3, 4, 5}}, {"w", Cells(5)}};
  for (const SchemaChange& change : changes) {
    for (auto effect : {io::FaultEffect::kNotDone, io::FaultEffect::kDone}) {
      for (bool crash : {false, true}) {
        for (int64_t at = 0;; ++at) {
          SCOPED_TRACE(std::string(change.name) + ", operation " + std::to_string(at) +
                       ", effect " + std::to_string(static_cast<int>(effect)) +
                       (crash ? ", crash" : ""));
          auto store = io::MakeMemoryStore();
          ASSERT_OK_AND_ASSIGN(auto made, MakeNumbers(MakeEnv(store)));
          ASSERT_OK_AND_ASSIGN(made, AddRows(made, {1, 2, 3, 4, 5}));
          ASSERT_OK_AND_ASSIGN(
              made, AddNullColumns(made, *arrow::schema({field("w", arrow::int64())})));
          const int64_t before = made->version();
          const std::set<std::string> files = DataFiles(*store);
          auto injector = std::make_shared<io::FaultInjector>();
          const auto env = MakeEnv(io::MakeFaultingStore(store, injector), 1);
          ASSERT_OK_AND_ASSIGN(auto dataset, Dataset::Open(env));
          injector->Arm({.fail_at = at, .only = {}, .effect = effect, .crash = crash});
          const auto changed = change.run(dataset);
          if (!injector->fired()) {
            ASSERT_OK(changed.status());
            ASSERT_GT(at, 1);  // a change that touches no store would prove nothing
            break;
          }
          ASSERT_LT(at, 200);
          ASSERT_OK_AND_ASSIGN(auto seen, Dataset::Open(MakeEnv(store)));
          const bool done = seen->version() == before + 1;
          ASSERT_TRUE(done || seen->version() == before);
          ASSERT_TRUE(done || !changed.ok()) << "an acknowledged version is not there";
          std::vector<std::string> names;
          for (const auto& f : seen->schema().fields()) names.push_back(f.name);
          ASSERT_EQ(names,
                    done ? change.after : (std::vector<std::string>{"n", "v", "w"}));
          for (const auto& name : names) {
            ASSERT_OK_AND_ASSIGN(auto cells, Read(seen, name));
            ASSERT_EQ(cells, values.at(name)) << name;
          }
          EXPECT_EQ(DataFiles(*store), files);
          if (!done) {
            ASSERT_OK_AND_ASSIGN(seen, change.run(seen));
          }
          EXPECT_EQ(seen->version(), before + 1);
          ASSERT_OK_AND_ASSIGN(auto cells, Read(seen, change.after[0]));
          EXPECT_EQ(cells, values.at(change.after[0]));
        }
      }
    }
  }
}

// Two handles on one version; each pair in both orders. Nobody ever sees a value under
// the wrong name or a null where there was a value.
TEST(ChangeColumns, TwoHandles) {
  const auto append = [](const Dataset::Ptr& d, const std::string& column,
                         int64_t value) -> Result<Dataset::Ptr> {
    auto data = Numbers(column, {value});
    arrow::TableBatchReader reader(*data);
    table::WriteOptions options;
    options.mode = table::WriteMode::kAppend;
    return Dataset::Write(d->env(), reader, options);
  };
  const auto env = MakeEnv(io::MakeMemoryStore());
  ASSERT_OK_AND_ASSIGN(auto base, MakeNumbers(env));
  // Computed over a version that has got rows meanwhile: computed again.
  ASSERT_OK_AND_ASSIGN(auto appended, append(base, "n", 7));
  ASSERT_OK_AND_ASSIGN(auto added, AddColumns(base, {{"v", "n + 1"}}));
  ASSERT_OK_AND_ASSIGN(auto cells, Read(added, "v"));
  EXPECT_EQ(cells, (Cells{11, 31, 51, 81, std::nullopt, 8}));
  // A stream cannot be read again.
  EXPECT_ERROR_KIND(AddRows(base, {1, 2, 3, 4, 5}), ErrorKind::kRetryableConflict);
  // The same column by two.
  auto again = AddColumns(base, {{"v", "n + 2"}});
  EXPECT_ERROR_KIND(again, ErrorKind::kInvalidInput);
  // A cast over an append.
  ASSERT_OK_AND_ASSIGN(appended, append(added, "n", 8));
  const std::vector<ColumnAlteration> narrow = {CastTo(arrow::int16())};
  ASSERT_OK_AND_ASSIGN(auto cast, AlterColumns(added, narrow));
  ASSERT_OK_AND_ASSIGN(cells, Read(cast, "n"));
  EXPECT_EQ(cells, (Cells{10, 30, 50, 80, std::nullopt, 7, 8}));
  // Dropped and added anew under the same name: none of the old values, no old id.
  const int32_t old_id = cast->schema().FindTopLevel("v")->id;
  const std::vector<std::string> names = {"v"};
  ASSERT_OK_AND_ASSIGN(auto dropped, DropColumns(cast, names));
  ASSERT_OK_AND_ASSIGN(
      auto readded,
      AddNullColumns(dropped, *arrow::schema({field("v", arrow::int64())})));
  EXPECT_GT(readded->schema().FindTopLevel("v")->id, old_id);
  ASSERT_OK_AND_ASSIGN(cells, Read(readded, "v"));
  EXPECT_EQ(cells, Cells(7));
  // A drop over an append, an append after it.
  ASSERT_OK_AND_ASSIGN(appended, append(readded, "v", 9));
  ASSERT_OK_AND_ASSIGN(dropped, DropColumns(readded, names));
  EXPECT_ERROR_KIND(append(dropped, "v", 9), ErrorKind::kSchemaMismatch);
  ASSERT_OK_AND_ASSIGN(cells, Read(dropped, "n"));
  EXPECT_EQ(cells, (Cells{10, 30, 50, 80, std::nullopt, 7, 8, std::nullopt}));
}

}  // namespace
}  // namespace glaive::exec
