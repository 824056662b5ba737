// Changes of tables on a disk that loses power: what was acknowledged is there when the
// power comes back, whatever of the rest is.
#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>

#include <arrow/api.h>
#include <gtest/gtest.h>

#include "exec/add_columns.h"
#include "exec/compact.h"
#include "exec/merge.h"
#include "exec/scan.h"
#include "exec/test_table.h"
#include "exec/update.h"
#include "io/power_loss_store.h"

namespace glaive::exec {
namespace {

using Rows = std::map<int64_t, int32_t>;

bool Soak() {
  const char* soak = std::getenv("GLAIVE_SOAK");
  return soak != nullptr && *soak != '\0' && *soak != '0';
}

// GLAIVE_TEST_SEED, or a fresh one; printed.
uint64_t Seed() {
  const char* given = std::getenv("GLAIVE_TEST_SEED");
  const uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10)
                                         : std::random_device()() % (1u << 24);
  std::printf("seed %llu (GLAIVE_TEST_SEED repeats it)\n",
              static_cast<unsigned long long>(seed));
  return seed;
}

std::shared_ptr<arrow::RecordBatch> Batch(const Rows& rows) {
  arrow::Int64Builder id;
  arrow::Int32Builder n;
  for (const auto& [key, value] : rows) {
    EXPECT_OK(id.Append(key));
    EXPECT_OK(n.Append(value));
  }
  return arrow::RecordBatch::Make(arrow::schema({arrow::field("id", arrow::int64()),
                                                 arrow::field("n", arrow::int32())}),
                                  static_cast<int64_t>(rows.size()),
                                  {id.Finish().ValueOrDie(), n.Finish().ValueOrDie()});
}

Result<Rows> Read(const table::Dataset::Ptr& dataset) {
  ScanOptions options;
  options.select.columns = {{"id", "id"}, {"n", "n"}};
  GLAIVE_ASSIGN_OR_RETURN(const auto table, ScanToTable(dataset, options));
  Rows rows;
  GLAIVE_ASSIGN_OR_RETURN(const auto batch, table->CombineChunksToBatch());
  const auto& ids = static_cast<const arrow::Int64Array&>(*batch->column(0));
  const auto& values = static_cast<const arrow::Int32Array&>(*batch->column(1));
  for (int64_t i = 0; i < batch->num_rows(); ++i) {
    EXPECT_TRUE(rows.emplace(ids.Value(i), values.Value(i)).second);
  }
  return rows;
}

// One change of the table, applied to the model as well.
Result<table::Dataset::Ptr> Change(table::Dataset::Ptr dataset, int number,
                                   std::mt19937_64& random, Rows* model) {
  const auto below = [&](uint64_t n) { return static_cast<int64_t>(random() % n); };
  Rows fresh;
  for (int64_t i = below(5) + 1; i > 0; --i) {
    fresh[below(40)] = static_cast<int32_t>(below(100));
  }
  switch (below(6)) {
    case 0: {
      std::erase_if(fresh, [&](const auto& row) { return model->count(row.first) > 0; });
      if (fresh.empty()) return dataset;
      auto reader = arrow::RecordBatchReader::Make({Batch(fresh)}).ValueOrDie();
      table::WriteOptions options;
      options.mode = table::WriteMode::kAppend;
      model->insert(fresh.begin(), fresh.end());
      return table::Dataset::Write(dataset->env(), *reader, options);
    }
    case 1: {
      const int64_t bound = below(100);
      std::erase_if(*model, [&](const auto& row) { return row.second == bound; });
      GLAIVE_ASSIGN_OR_RETURN(auto result,
                              Delete(dataset, "n = " + std::to_string(bound)));
      return result.dataset;
    }
    case 2: {
      const int64_t rest = below(3);
      for (auto& [key, value] : *model) {
        if (key % 3 == rest) value += 1;
      }
      UpdateOptions options;
      options.where = "id % 3 = " + std::to_string(rest);
      options.assignments.push_back({"n", "n + 1", nullptr});
      GLAIVE_ASSIGN_OR_RETURN(auto result, Update(dataset, options));
      return result.dataset;
    }
    case 3: {
      MergeOptions options;
      options.on = {"id"};
      options.matched = MatchedAction::kUpdate;
      options.insert_not_matched = true;
      for (const auto& [key, value] : fresh) (*model)[key] = value;
      auto reader = arrow::RecordBatchReader::Make({Batch(fresh)}).ValueOrDie();
      GLAIVE_ASSIGN_OR_RETURN(auto result, MergeInsert(dataset, reader, options));
      return result.dataset;
    }
    case 4: {
      GLAIVE_ASSIGN_OR_RETURN(auto result, Compact(dataset, {}));
      return result.dataset;
    }
    default:
      return AddColumns(dataset, {{"c" + std::to_string(number), "n * 2"}}, {});
  }
}

TEST(PowerLoss, AcknowledgedVersionsAreWhole) {
  const int lives = Soak() ? 2000 : 40;
  const uint64_t first = Seed();
  for (int life = 0; life < lives; ++life) {
    const uint64_t seed = life < lives / 2 ? static_cast<uint64_t>(life)
                                           : first + static_cast<uint64_t>(life);
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    auto disk = std::make_shared<io::PowerLoss>();
    table::TableEnv env;
    env.runtime = MakeTestRuntime(2);
    env.store = disk->store();
    Rows model = {{1, 1}, {2, 2}, {3, 3}};
    auto reader = arrow::RecordBatchReader::Make({Batch(model)}).ValueOrDie();
    ASSERT_OK_AND_ASSIGN(auto dataset, table::Dataset::Write(env, *reader, {}));
    for (int step = 0; step < 12; ++step) {
      ASSERT_OK_AND_ASSIGN(dataset, Change(dataset, step, random, &model));
      if (random() % 3 != 0) continue;
      ASSERT_OK_AND_ASSIGN(disk, disk->CutPower(random));
      env.runtime = MakeTestRuntime(2);  // nothing is cached after a power cut
      env.store = disk->store();
      const int64_t version = dataset->version();
      ASSERT_OK_AND_ASSIGN(dataset, table::Dataset::Open(env));
      EXPECT_EQ(dataset->version(), version);
      ASSERT_OK_AND_ASSIGN(const Rows rows, Read(dataset));
      ASSERT_EQ(rows, model);
    }
  }
}

}  // namespace
}  // namespace glaive::exec
