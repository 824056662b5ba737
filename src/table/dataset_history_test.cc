// Random histories of one table against a model, and races between writers.
#include <algorithm>
#include <atomic>
#include <map>
#include <random>
#include <set>
#include <thread>

#include "format/table.pb.h"
#include "table/test_util.h"

namespace glaive::table {
namespace {

// What the table must hold, version by version.
struct Model {
  std::map<int64_t, Values> versions;
  std::map<std::string, int64_t> tags;
  int64_t newest = 0;
  const Values& rows() const { return versions.at(newest); }
  void Push(Values rows) { versions[++newest] = std::move(rows); }
};

class History {
 public:
  History(std::shared_ptr<io::ObjectStore> store, uint64_t seed)
      : store_(store), random_(seed) {
    env_ = MakeEnv(store_);
    stable_ = random_() % 2 == 0;
    WriteOptions options;
    options.stable_row_ids = stable_;
    options.v2_manifest_paths = random_() % 4 != 0;
    options.max_rows_per_file = 1 + static_cast<int64_t>(random_() % 20);
    Values values = Fresh(static_cast<int64_t>(random_() % 30));
    auto created = WriteValues(env_, values, options);
    EXPECT_TRUE(created.ok()) << created.status().ToString();
    dataset_ = *created;
    model_.Push(values);
  }

  void Step() {
    if (random_() % 5 == 0) env_ = MakeEnv(store_);  // another process goes on
    switch (random_() % 8) {
      case 0:
      case 1:
      case 2: {
        Values values = Fresh(static_cast<int64_t>(random_() % 8));
        WriteOptions options;
        options.mode = WriteMode::kAppend;
        options.max_rows_per_file = 1 + static_cast<int64_t>(random_() % 5);
        ASSERT_OK_AND_ASSIGN(dataset_, WriteValues(env_, values, options));
        Values rows = model_.rows();
        rows.insert(rows.end(), values.begin(), values.end());
        model_.Push(rows);
        break;
      }
      case 3:
      case 4: {
        ASSERT_OK_AND_ASSIGN(dataset_, Dataset::Open(env_));
        Values gone, kept;
        const uint64_t share = 1 + random_() % 4;
        for (int64_t value : model_.rows()) {
          (random_() % share == 0 ? gone : kept).push_back(value);
        }
        ASSERT_OK_AND_ASSIGN(dataset_, DeleteValues(*dataset_, gone));
        model_.Push(kept);
        break;
      }
      case 5: {
        if (random_() % 3 != 0) return;
        Values values = Fresh(static_cast<int64_t>(random_() % 6));
        WriteOptions options;
        options.mode = WriteMode::kOverwrite;
        ASSERT_OK_AND_ASSIGN(dataset_, WriteValues(env_, values, options));
        model_.Push(values);
        break;
      }
      case 6: {
        const int64_t version = AnyVersion();
        ASSERT_OK_AND_ASSIGN(auto old, Dataset::Open(env_, version));
        ASSERT_OK_AND_ASSIGN(dataset_, old->Restore());
        model_.Push(model_.versions.at(version));
        break;
      }
      default: {
        const int64_t version = AnyVersion();
        const std::string tag = "t" + std::to_string(random_() % 3);
        ASSERT_OK_AND_ASSIGN(dataset_, Dataset::Open(env_));
        if (model_.tags.count(tag)) {
          ASSERT_OK(dataset_->UpdateTag(tag, version));
        } else {
          ASSERT_OK(dataset_->CreateTag(tag, version));
        }
        model_.tags[tag] = version;
        break;
      }
    }
    ASSERT_EQ(dataset_->version(), model_.newest);
    Check(*dataset_);
  }

  void CheckAll() {
    const TableEnv fresh = MakeEnv(store_);
    for (const auto& [version, rows] : model_.versions) {
      ASSERT_OK_AND_ASSIGN(auto old, Dataset::Open(fresh, version));
      ASSERT_OK_AND_ASSIGN(auto values, ReadValues(*old));
      ASSERT_EQ(values, rows) << "version " << version;
    }
    ASSERT_OK_AND_ASSIGN(auto newest, Dataset::Open(fresh));
    ASSERT_EQ(newest->version(), model_.newest);
    for (const auto& [tag, version] : model_.tags) {
      ASSERT_OK_AND_ASSIGN(auto tagged, newest->CheckoutTag(tag));
      ASSERT_EQ(tagged->version(), version);
    }
  }

 private:
  Values Fresh(int64_t count) {
    Values values;
    for (int64_t i = 0; i < count; ++i) values.push_back(next_value_++);
    return values;
  }
  int64_t AnyVersion() {
    return 1 + static_cast<int64_t>(random_() % static_cast<uint64_t>(model_.newest));
  }

  void Check(const Dataset& dataset) {
    ASSERT_OK_AND_ASSIGN(auto rows, ReadRows(dataset));
    Values values;
    std::set<uint64_t> ids;
    for (const Row& row : rows) {
      values.push_back(row.value);
      ASSERT_TRUE(ids.insert(row.row_id).second) << "row id twice";
      if (stable_) {
        // A row keeps its id as long as it lives, restored versions included.
        auto [it, first_time] = id_of_.emplace(row.value, row.row_id);
        ASSERT_EQ(it->second, row.row_id);
        ASSERT_OK_AND_ASSIGN(auto index, dataset.row_id_index());
        ASSERT_TRUE(index->Find(row.row_id));
        ASSERT_EQ(index->Find(row.row_id)->value, row.address);
      }
    }
    ASSERT_EQ(values, model_.rows());
    ASSERT_EQ(dataset.has_stable_row_ids(), stable_);
  }

  std::shared_ptr<io::ObjectStore> store_;
  std::mt19937_64 random_;
  TableEnv env_;
  bool stable_ = false;
  Dataset::Ptr dataset_;
  Model model_;
  std::map<int64_t, uint64_t> id_of_;
  int64_t next_value_ = 0;
};

TEST(DatasetHistory, AgreesWithAModel) {
  const uint64_t fresh = std::random_device{}();
  std::printf("seed %llu\n", static_cast<unsigned long long>(fresh));
  for (uint64_t seed : {uint64_t{1}, uint64_t{2}, uint64_t{3}, uint64_t{4}, fresh}) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    io::TemporaryDirectory directory;
    auto store = seed % 2 == 0 ? io::OpenLocalStore(directory.path(), true).ValueOrDie()
                               : io::MakeMemoryStore();
    History history(store, seed);
    for (int step = 0; step < 60; ++step) {
      SCOPED_TRACE("step " + std::to_string(step));
      history.Step();
      if (::testing::Test::HasFatalFailure()) return;
    }
    history.CheckAll();
  }
}

TEST(DatasetRebase, DeletesOfOtherRowsMerge) {
  auto store = io::MakeMemoryStore();
  const TableEnv env = MakeEnv(store);
  ASSERT_OK_AND_ASSIGN(auto base, Create(env, {0, 1, 2, 3, 4, 5}));
  ASSERT_OK_AND_ASSIGN(auto mine, FindRows(*base, {1, 2}));
  ASSERT_OK(DeleteValues(*base, {4}).status());
  ASSERT_OK(Append(MakeEnv(store), {6}).status());
  ASSERT_OK_AND_ASSIGN(auto merged, base->CommitDelete(mine, "x"));
  EXPECT_EQ(merged->version(), 4);
  ASSERT_OK_AND_ASSIGN(auto values, ReadValues(*merged));
  EXPECT_EQ(values, (Values{0, 3, 5, 6}));
  // Merged vectors are bitmaps, whatever their size.
  EXPECT_EQ(merged->fragment(0).deletion_file().file_type(),
            lance::table::DeletionFile::BITMAP);
  EXPECT_EQ(merged->fragment(0).deletion_file().read_version(), 3u);
  // The same row: the operation must run again.
  ASSERT_OK_AND_ASSIGN(auto again, FindRows(*base, {0, 4}));
  EXPECT_KIND(ErrorKind::kRetryableConflict, base->CommitDelete(again, "x").status());
  // The last rows of the fragment, from two sides.
  ASSERT_OK_AND_ASSIGN(auto zero, FindRows(*merged, {0}));
  ASSERT_OK_AND_ASSIGN(auto rest, FindRows(*merged, {3, 5}));
  ASSERT_OK(merged->CommitDelete(zero, "x").status());
  ASSERT_OK_AND_ASSIGN(merged, merged->CommitDelete(rest, "x"));
  EXPECT_EQ(merged->num_fragments(), 1);
  ASSERT_OK_AND_ASSIGN(values, ReadValues(*merged));
  EXPECT_EQ(values, Values{6});
  // A fragment that is gone.
  EXPECT_KIND(ErrorKind::kRetryableConflict,
              base->CommitDelete({{0, {5}}}, "x").status());
}

TEST(DatasetRebase, OverwritesAndRestores) {
  auto store = io::MakeMemoryStore();
  const TableEnv env = MakeEnv(store);
  ASSERT_OK_AND_ASSIGN(auto base, Create(env, {0, 1, 2}));
  WriteOptions overwrite;
  overwrite.mode = WriteMode::kOverwrite;
  ASSERT_OK(WriteValues(MakeEnv(store), {7}, overwrite).status());
  Status status = base->CommitDelete({{0, {1}}}, "x").status();
  EXPECT_KIND(ErrorKind::kConflict, status);
  EXPECT_EQ(
      status.message(),
      "Incompatible transaction: This Delete transaction is incompatible with concurrent "
      "transaction Overwrite at version 2.");
  ASSERT_OK_AND_ASSIGN(auto restored, base->Restore());
  ASSERT_OK_AND_ASSIGN(auto values, ReadValues(*restored));
  EXPECT_EQ(values, (Values{0, 1, 2}));
}

// Writers that share nothing but the directory: all commits are kept.
TEST(DatasetRaces, AppendsAndDeletes) {
  io::TemporaryDirectory directory;
  constexpr int kWriters = 4;
  constexpr int kSteps = 12;
  auto open = [&] {
    return MakeEnv(io::OpenLocalStore(directory.path() + "/t", true).ValueOrDie());
  };
  ASSERT_OK(Create(open(), {-1}).status());
  std::vector<Values> kept(kWriters);
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  for (int w = 0; w < kWriters; ++w) {
    threads.emplace_back([&, w] {
      const TableEnv env = open();
      std::mt19937_64 random(static_cast<uint64_t>(w));
      for (int step = 0; step < kSteps; ++step) {
        const int64_t first = w * 1000 + step * 2;
        auto appended = Append(env, {first, first + 1});
        if (!appended.ok()) {
          ++failures;
          ADD_FAILURE() << appended.status().ToString();
          return;
        }
        kept[w].push_back(first);
        kept[w].push_back(first + 1);
        if (random() % 2 != 0) continue;
        // Rows of this writer only, so no delete can conflict for good.
        const int64_t victim = kept[w][random() % kept[w].size()];
        while (true) {
          auto dataset = Dataset::Open(env);
          ASSERT_TRUE(dataset.ok()) << dataset.status().ToString();
          auto deleted = DeleteValues(**dataset, {victim});
          if (deleted.ok()) break;
          if (KindOf(deleted.status()) == ErrorKind::kRetryableConflict) continue;
          ++failures;
          ADD_FAILURE() << deleted.status().ToString();
          return;
        }
        kept[w].erase(std::find(kept[w].begin(), kept[w].end(), victim));
      }
    });
  }
  for (auto& thread : threads) thread.join();
  ASSERT_EQ(failures, 0);
  Values expected{-1};
  for (const Values& values : kept) {
    expected.insert(expected.end(), values.begin(), values.end());
  }
  std::sort(expected.begin(), expected.end());
  ASSERT_OK_AND_ASSIGN(auto dataset, Dataset::Open(open()));
  ASSERT_OK_AND_ASSIGN(auto values, ReadValues(*dataset));
  std::sort(values.begin(), values.end());
  EXPECT_EQ(values, expected);
}

// Threads that share one environment queue, so that none needs a retry.
TEST(DatasetRaces, ThreadsOfOneProcess) {
  io::TemporaryDirectory directory;
  const TableEnv env = MakeEnv(io::OpenLocalStore(directory.path(), true).ValueOrDie());
  ASSERT_OK(Create(env, {-1}).status());
  std::vector<std::thread> threads;
  for (int w = 0; w < 4; ++w) {
    threads.emplace_back([&, w] {
      WriteOptions options;
      options.mode = WriteMode::kAppend;
      options.max_retries = 0;
      for (int step = 0; step < 10; ++step) {
        auto appended = WriteValues(env, {w * 100 + step}, options);
        EXPECT_TRUE(appended.ok()) << appended.status().ToString();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  ASSERT_OK_AND_ASSIGN(auto dataset, Dataset::Open(env));
  EXPECT_EQ(dataset->count_rows(), 41);
  EXPECT_EQ(dataset->version(), 41);
}

TEST(DatasetRaces, OneCreateWins) {
  for (int round = 0; round < 10; ++round) {
    auto store = io::MakeMemoryStore();
    std::atomic<int> created{0};
    std::vector<std::thread> threads;
    for (int w = 0; w < 3; ++w) {
      threads.emplace_back([&, w] {
        auto dataset = Create(MakeEnv(store), {w});
        if (dataset.ok()) {
          ++created;
        } else {
          EXPECT_KIND(ErrorKind::kAlreadyExists, dataset.status());
        }
      });
    }
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(created, 1);
    auto objects = store->List("data", true);
    ASSERT_TRUE(objects.ok());
    EXPECT_EQ(objects->size(), 1u);  // the losers' files are gone
  }
}

}  // namespace
}  // namespace glaive::table
