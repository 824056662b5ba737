// Compactions: rows, ids and versions of rows stay; faults at every store operation;
// folds that run by themselves.
#include "exec/compact.h"

#include <random>

#include <gtest/gtest.h>

#include "exec/compact_fold.h"
#include "exec/scan.h"
#include "exec/test_table.h"
#include "format/table.pb.h"
#include "io/faulting_store.h"
#include "table/cleanup.h"
#include "table/in_flight.h"

namespace glaive::exec {
namespace {

using io::FaultEffect;

// What the model knows of rows, as one line each.
std::vector<std::string> Expected(const std::vector<ModelRow>& rows) {
  std::vector<std::string> lines;
  for (const ModelRow& row : rows) {
    lines.push_back(std::to_string(row.id) + "|" + row.text + "|" +
                    (row.bucket ? std::to_string(*row.bucket) : "null"));
  }
  return lines;
}

Result<std::vector<std::string>> Lines(const table::Dataset::Ptr& dataset) {
  ScanOptions options;
  options.select.columns = ColumnList{{"id", "id"}, {"text", "text"}, {"b", "bucket"}};
  GLAIVE_ASSIGN_OR_RETURN(auto rows, ScanToTable(dataset, options));
  GLAIVE_ASSIGN_OR_RETURN(auto whole, rows->CombineChunksToBatch());
  GLAIVE_RETURN_NOT_OK(whole->ValidateFull());
  const auto& id = static_cast<const arrow::Int64Array&>(*whole->column(0));
  const auto& text = static_cast<const arrow::StringArray&>(*whole->column(1));
  const auto& bucket = static_cast<const arrow::Int32Array&>(*whole->column(2));
  std::vector<std::string> lines;
  for (int64_t i = 0; i < whole->num_rows(); ++i) {
    lines.push_back(std::to_string(id.Value(i)) + "|" + std::string(text.GetView(i)) +
                    "|" + (bucket.IsValid(i) ? std::to_string(bucket.Value(i)) : "null"));
  }
  return lines;
}

CompactionOptions Target(int64_t rows) {
  CompactionOptions options;
  options.target_rows_per_fragment = rows;
  return options;
}

TEST(Compaction, KeepsRowsIdsAndOrder) {
  const uint64_t seed = FreshSeed();
  for (bool stable : {false, true}) {
    for (int64_t target : {5, 40, 1000}) {
      SCOPED_TRACE(seed);
      const TestTable table = MakeTestTable(seed, {30, 1, 17, 60, 2, 2}, 20, 0.3, stable);
      ASSERT_OK_AND_ASSIGN(auto done, Compact(table.dataset, Target(target)));
      if (target == 1000) {
        EXPECT_EQ(done.dataset->num_fragments(), 1);
      }
      ASSERT_OK_AND_ASSIGN(auto lines, Lines(done.dataset));
      auto expected = Expected(table.rows);
      if (target != 1000) {
        std::sort(lines.begin(), lines.end());
        std::sort(expected.begin(), expected.end());
      }
      EXPECT_EQ(lines, expected);
      EXPECT_EQ(done.dataset->count_rows(), static_cast<int64_t>(table.rows.size()));
      if (!stable) continue;
      // Each stable id still finds its row.
      std::vector<uint64_t> ids;
      for (const ModelRow& row : table.rows) ids.push_back(row.stable_id);
      Selection select;
      select.columns = ColumnList{{"id", "id"}};
      ASSERT_OK_AND_ASSIGN(auto taken, TakeRowIds(*done.dataset, ids, select));
      std::vector<int64_t> wanted;
      for (const ModelRow& row : table.rows) wanted.push_back(row.id);
      EXPECT_EQ(Ids(*taken), wanted);
    }
  }
}

TEST(Compaction, NothingToDoCommitsNothing) {
  const TestTable table = MakeTestTable(1, {30}, 100, 0.0);
  ASSERT_OK_AND_ASSIGN(auto done, Compact(table.dataset, {}));
  EXPECT_EQ(done.dataset->version(), table.dataset->version());
  EXPECT_EQ(done.metrics.fragments_removed, 0);
}

// As upstream has it: each fragment that is worth it is rewritten by itself, in one
// piece.
TEST(Compaction, ATargetOfNoRowsCutsNothing) {
  const TestTable table = MakeTestTable(4, {30, 20, 25}, 100, 0.5);
  const int before = table.dataset->num_fragments();
  ASSERT_OK_AND_ASSIGN(auto done, Compact(table.dataset, Target(0)));
  EXPECT_EQ(done.metrics.fragments_removed, before);
  EXPECT_EQ(done.metrics.fragments_added, before);
  ASSERT_OK_AND_ASSIGN(auto lines, Lines(done.dataset));
  EXPECT_EQ(lines, Expected(table.rows));
  ASSERT_OK_AND_ASSIGN(auto again, Compact(done.dataset, Target(0)));
  EXPECT_EQ(again.metrics.fragments_removed, 0);
  EXPECT_EQ(again.dataset->version(), done.dataset->version());
}

TEST(Compaction, IsDoneAgainWhenRowsWereDeletedMeanwhile) {
  const TestTable table = MakeTestTable(2, {20, 20, 20}, 20, 0.0);
  ASSERT_OK_AND_ASSIGN(auto plan, PlanCompaction(*table.dataset, {}));
  ASSERT_EQ(plan.tasks.size(), 1u);
  ASSERT_OK_AND_ASSIGN(auto result, ExecuteCompactionTask(*table.dataset, plan.tasks[0]));
  ASSERT_OK(table.dataset->CommitDelete({{1, {3}}}, "x").status());
  EXPECT_EQ(KindOf(CommitCompaction(*table.dataset, {result}).status()),
            ErrorKind::kRetryableConflict);
  // From the old snapshot all the same: nothing comes back.
  ASSERT_OK_AND_ASSIGN(auto done, Compact(table.dataset, {}));
  EXPECT_EQ(done.dataset->count_rows(), 59);
  EXPECT_EQ(done.dataset->num_fragments(), 1);
}

TEST(Compaction, TasksAndResultsAsJson) {
  const TestTable table = MakeTestTable(3, {20, 20, 20}, 20, 0.2, /*stable_ids=*/true);
  ASSERT_OK_AND_ASSIGN(auto plan, PlanCompaction(*table.dataset, Target(50)));
  ASSERT_OK_AND_ASSIGN(auto plan_again, PlanFromJson(ToJson(plan)));
  EXPECT_EQ(ToJson(plan_again), ToJson(plan));
  ASSERT_OK_AND_ASSIGN(auto task, TaskFromJson(ToJson(plan.tasks[0])));
  ASSERT_OK_AND_ASSIGN(auto result, ExecuteCompactionTask(*table.dataset, task));
  ASSERT_OK_AND_ASSIGN(auto again, ResultFromJson(ToJson(result)));
  EXPECT_EQ(ToJson(again), ToJson(result));
  ASSERT_OK_AND_ASSIGN(auto done, CommitCompaction(*table.dataset, {again}));
  ASSERT_OK_AND_ASSIGN(auto lines, Lines(done.dataset));
  EXPECT_EQ(lines, Expected(table.rows));
  // Damaged text is an error, never a crash.
  const std::string text = ToJson(result);
  for (size_t i = 0; i < text.size(); i += 7) {
    std::string damaged = text;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x15);
    static_cast<void>(ResultFromJson(damaged).ok());
    EXPECT_FALSE(ResultFromJson(text.substr(0, i)).ok());
  }
}

TEST(Compaction, Options) {
  ASSERT_OK_AND_ASSIGN(
      auto options,
      ParseCompactionOptions(R"({"batch_size": 7, "num_threads": null})",
                             {{"lance.compaction.target_rows_per_fragment", "5"},
                              {"lance.compaction.batch_size", "9"},
                              {"lance.compaction.materialize_deletions", "false"}}));
  EXPECT_EQ(options.target_rows_per_fragment, 5);
  EXPECT_EQ(options.batch_size, 7);
  EXPECT_FALSE(options.materialize_deletions);
  EXPECT_EQ(options.num_threads, std::nullopt);
  for (const char* bad : {R"({"foo": 1})", R"({"batch_size": "x"})", "[]", "{",
                          R"({"max_source_bytes": 0})", R"({"batch_size": -1})"}) {
    EXPECT_EQ(KindOf(ParseCompactionOptions(bad, {}).status()), ErrorKind::kInvalidInput)
        << bad;
  }
  EXPECT_EQ(KindOf(ParseCompactionOptions(
                       "{}", {{"lance.compaction.target_rows_per_fragment", "x"}})
                       .status()),
            ErrorKind::kInvalidInput);
}

// A fault at each store operation of a compaction: the rows stay, an acknowledged version
// is there, and the next compaction and clean-up put everything right.
TEST(CompactionFaults, EveryOperation) {
  for (FaultEffect effect : {FaultEffect::kNotDone, FaultEffect::kDone}) {
    for (bool crash : {false, true}) {
      for (int64_t at = 0;; ++at) {
        SCOPED_TRACE(std::to_string(at) + (crash ? " crash" : "") +
                     std::to_string(static_cast<int>(effect)));
        ASSERT_LT(at, 300);
        auto store = io::MakeMemoryStore();
        const TestTable table =
            MakeTestTable(7, {6, 6, 6}, 6, 0.2, false, nullptr, store);
        auto injector = std::make_shared<io::FaultInjector>();
        const table::TableEnv env{MakeTestRuntime(1),
                                  io::MakeFaultingStore(store, injector)};
        injector->Arm({.fail_at = at, .only = {}, .effect = effect, .crash = crash});
        auto opened = table::Dataset::Open(env);
        const Status outcome =
            opened.ok() ? Compact(*opened, {}).status() : opened.status();
        const bool fired = injector->fired();
        injector->Disarm();
        const table::TableEnv fresh{MakeTestRuntime(1), store};
        ASSERT_OK_AND_ASSIGN(auto after, table::Dataset::Open(fresh));
        ASSERT_OK_AND_ASSIGN(auto lines, Lines(after));
        ASSERT_EQ(lines, Expected(table.rows));
        if (!fired) {
          ASSERT_OK(outcome);
          ASSERT_EQ(after->num_fragments(), 1);
          break;
        }
        if (!crash && effect == FaultEffect::kNotDone && !outcome.ok() &&
            after->num_fragments() > 1) {
          ASSERT_OK_AND_ASSIGN(auto data, store->ListNames("data"));
          ASSERT_EQ(data.size(), 3u) << "litter after " << outcome.ToString();
        }
        ASSERT_OK_AND_ASSIGN(auto done, Compact(after, {}));
        ASSERT_EQ(done.dataset->num_fragments(), 1);
        table::CleanupOptions cleanup;
        cleanup.delete_unverified = true;
        ASSERT_OK(table::CleanUp(*done.dataset, cleanup).status());
        ASSERT_OK_AND_ASSIGN(auto data, store->ListNames("data"));
        ASSERT_EQ(data.size(), 1u);
        ASSERT_OK_AND_ASSIGN(lines, Lines(done.dataset));
        ASSERT_EQ(lines, Expected(table.rows));
      }
    }
  }
}

// A clean-up of the same process that takes everything unverified leaves files alone that
// are being written.
TEST(Compaction, ResultsInHandOutliveACleanUp) {
  const TestTable table = MakeTestTable(4, {20, 20}, 20, 0.0);
  ASSERT_OK_AND_ASSIGN(auto plan, PlanCompaction(*table.dataset, {}));
  ASSERT_OK_AND_ASSIGN(auto result, ExecuteCompactionTask(*table.dataset, plan.tasks[0]));
  table::CleanupOptions cleanup;
  cleanup.delete_unverified = true;
  ASSERT_OK(table::CleanUp(*table.dataset, cleanup).status());
  ASSERT_OK_AND_ASSIGN(auto done, CommitCompaction(*table.dataset, {result}));
  ASSERT_OK_AND_ASSIGN(auto lines, Lines(done.dataset));
  EXPECT_EQ(lines, Expected(table.rows));
  // What nobody holds any more is left-over.
  ASSERT_OK_AND_ASSIGN(auto before, table.env.store->ListNames("data"));
  ASSERT_OK(ExecuteCompactionTask(*table.dataset, plan.tasks[0]).status());
  ASSERT_OK(table::CleanUp(*done.dataset, cleanup).status());
  ASSERT_OK_AND_ASSIGN(auto after, table.env.store->ListNames("data"));
  EXPECT_EQ(after.size(), 1u);
}

// --- folds ---

// Appends one row at a time and folds whenever there is something to fold, as upkeep
// does.
TEST(Fold, BoundsFragmentsAndWork) {
  const auto runtime = MakeTestRuntime(1);
  table::TableEnv env{runtime, io::MakeMemoryStore()};
  int64_t appended = 0, rewritten = 0;
  int most = 0;
  table::Dataset::Ptr dataset;
  constexpr int kAppends = 1500;
  for (int i = 0; i < kAppends; ++i) {
    ModelRow row;
    row.id = i;
    row.text = "t" + std::to_string(i);
    table::WriteOptions options;
    options.mode = i == 0 ? table::WriteMode::kCreate : table::WriteMode::kAppend;
    auto reader =
        arrow::RecordBatchReader::Make({ToBatch({row})}, TestSchema()).ValueOrDie();
    ASSERT_OK_AND_ASSIGN(dataset, table::Dataset::Write(env, *reader, options));
    ++appended;
    ASSERT_OK_AND_ASSIGN(const int begin, PlanFold(*dataset, {}));
    if (begin >= 0) {
      for (int f = begin; f < dataset->num_fragments(); ++f) {
        rewritten += dataset->live_rows(f);
      }
      ASSERT_OK_AND_ASSIGN(auto done, Fold(*dataset, {}));
      ASSERT_GT(done.metrics.fragments_removed, 0);
      dataset = done.dataset;
    }
    most = std::max(most, dataset->num_fragments());
  }
  EXPECT_LT(most, 80);
  // Logarithmic, not quadratic: 1,500 rows in folds of at least 64.
  EXPECT_LT(rewritten, appended * 8);
  ASSERT_OK_AND_ASSIGN(auto lines, Lines(dataset));
  ASSERT_EQ(lines.size(), static_cast<size_t>(kAppends));
  for (int i = 0; i < kAppends; ++i) {
    ASSERT_EQ(lines[static_cast<size_t>(i)],
              std::to_string(i) + "|t" + std::to_string(i) + "|null");
  }
}

TEST(Fold, LeavesShortTablesAndLargeFragmentsAlone) {
  std::vector<int> appends(60, 1);
  const TestTable small = MakeTestTable(5, appends, 10, 0.0);
  ASSERT_OK_AND_ASSIGN(int begin, PlanFold(*small.dataset, {}));
  EXPECT_EQ(begin, -1);
  appends.insert(appends.begin(), 500);
  appends.resize(80, 1);
  const TestTable mixed = MakeTestTable(5, appends, 500, 0.0);
  ASSERT_OK_AND_ASSIGN(begin, PlanFold(*mixed.dataset, {}));
  EXPECT_EQ(begin, 1);
  ASSERT_OK_AND_ASSIGN(auto done, Fold(*mixed.dataset, {}));
  EXPECT_EQ(done.dataset->num_fragments(), 2);
  ASSERT_OK_AND_ASSIGN(auto lines, Lines(done.dataset));
  EXPECT_EQ(lines, Expected(mixed.rows));
}

}  // namespace
}  // namespace glaive::exec
