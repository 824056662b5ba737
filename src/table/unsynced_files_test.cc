// What a commit names is on the disk before its manifest appears, and nothing of a change
// that is given up stays behind.
#include "table/unsynced_files.h"

#include <atomic>
#include <mutex>

#include <gtest/gtest.h>

#include "format/table.pb.h"
#include "format/transaction.pb.h"
#include "io/store_hook.h"
#include "table/fragment_writer.h"
#include "table/names.h"
#include "table/test_util.h"

namespace glaive::table {
namespace {

// Notes what became durable, in order; lets one step of one kind of file fail.
class Recorder : public io::StoreHook {
 public:
  io::HookVerdict Before(io::StoreOp op, std::string_view path) override {
    std::lock_guard lock(mutex_);
    if (op == failing_op_ && !failing_.empty() && path.starts_with(failing_)) {
      return {IoError("no room"), {}};
    }
    if (op == io::StoreOp::kSync || op == io::StoreOp::kPut ||
        op == io::StoreOp::kPutIfAbsent) {
      written_.emplace_back(path);
    }
    return {};
  }
  std::vector<std::string> Take() {
    std::lock_guard lock(mutex_);
    return std::exchange(written_, {});
  }
  void FailAt(std::string directory, io::StoreOp op = io::StoreOp::kFinish) {
    std::lock_guard lock(mutex_);
    failing_ = std::move(directory);
    failing_op_ = op;
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> written_;               // guarded by mutex_
  std::string failing_;                            // guarded by mutex_
  io::StoreOp failing_op_ = io::StoreOp::kFinish;  // guarded by mutex_
};

// Replaces the row 2 by 20.
Result<Dataset::Ptr> Replace(const Dataset& dataset) {
  RowUpdate update;
  GLAIVE_ASSIGN_OR_RETURN(update.deleted, FindRows(dataset, {2}));
  FragmentWriter writer(dataset.env(), dataset.schema(), {});
  GLAIVE_RETURN_NOT_OK(writer.Write(*MakeBatch({20})));
  GLAIVE_ASSIGN_OR_RETURN(update.new_fragments, writer.Finish(LastFile::kLeftToCommit));
  CommitOutcome outcome = CommitOutcome::kUnknown;
  auto committed = dataset.CommitUpdate(update, &outcome);
  if (outcome != CommitOutcome::kNotCommitted) writer.Keep();
  return committed;
}

struct Watched {
  std::shared_ptr<Recorder> recorder = std::make_shared<Recorder>();
  TableEnv env = MakeEnv(io::MakeHookedStore(io::MakeMemoryStore(), recorder));
};

size_t PlaceOf(const std::vector<std::string>& written, std::string_view directory) {
  for (size_t i = 0; i < written.size(); ++i) {
    if (written[i].starts_with(directory) && !written[i].ends_with(".json")) return i;
  }
  return written.size();
}

TEST(UnsyncedFiles, AreFinishedBeforeTheManifest) {
  Watched table;
  ASSERT_OK_AND_ASSIGN(auto dataset, Create(table.env, {1, 2, 3}));
  auto written = table.recorder->Take();
  EXPECT_LT(PlaceOf(written, "data/"), PlaceOf(written, "_versions/"));
  ASSERT_OK_AND_ASSIGN(dataset, Replace(*dataset));
  written = table.recorder->Take();
  const size_t manifest = PlaceOf(written, "_versions/");
  ASSERT_LT(manifest, written.size());
  EXPECT_LT(PlaceOf(written, "data/"), manifest);
  EXPECT_LT(PlaceOf(written, "_deletions/"), manifest);
  ASSERT_OK_AND_ASSIGN(auto values, ReadValues(*dataset));
  EXPECT_EQ(values, (Values{1, 3, 20}));
}

TEST(UnsyncedFiles, AFailureCommitsNothingAndLeavesNothing) {
  for (const char* directory : {"data/", "_deletions/"}) {
    for (const io::StoreOp op :
         {io::StoreOp::kCreate, io::StoreOp::kFinish, io::StoreOp::kSync}) {
      Watched table;
      ASSERT_OK_AND_ASSIGN(auto dataset, Create(table.env, {1, 2, 3}));
      ASSERT_OK_AND_ASSIGN(const auto before, table.env.store->List("", true));
      table.recorder->FailAt(directory, op);
      EXPECT_KIND(ErrorKind::kIo, Replace(*dataset).status());
      ASSERT_OK_AND_ASSIGN(const auto after, table.env.store->List("", true));
      EXPECT_EQ(after.size(), before.size()) << directory << " " << io::StoreOpName(op);
      table.recorder->FailAt("");
      ASSERT_OK_AND_ASSIGN(dataset, Replace(*dataset));
      EXPECT_EQ(dataset->version(), 2);
    }
  }
}

// Both lose the same row of a fragment: the deletion file that was not written yet is
// replaced by one of both.
TEST(UnsyncedFiles, ARebaseDropsWhatItReplaces) {
  Watched table;
  ASSERT_OK_AND_ASSIGN(auto dataset, Create(table.env, {1, 2, 3}));
  ASSERT_OK(DeleteValues(*dataset, {3}).status());
  ASSERT_OK_AND_ASSIGN(auto replaced, Replace(*dataset));
  ASSERT_OK_AND_ASSIGN(auto values, ReadValues(*replaced));
  EXPECT_EQ(values, (Values{1, 20}));
  ASSERT_OK_AND_ASSIGN(const auto files, table.env.store->List("_deletions", true));
  EXPECT_EQ(files.size(), 2u);  // of versions 2 and 3
}

TEST(UnsyncedFiles, OnlyWhatATransactionNames) {
  Watched table;
  UnsyncedFiles files(*table.env.store);
  for (const char* name : {"a.lance", "b.lance", "c.lance"}) {
    ASSERT_OK_AND_ASSIGN(auto writer, table.env.store->Create(DataFilePath(name)));
    files.Add(DataFilePath(name), std::move(writer));
  }
  lance::table::Transaction transaction;
  auto* append = transaction.mutable_append();
  append->add_fragments()->add_files()->set_path("a.lance");
  append->add_fragments()->add_files()->set_path("b.lance");
  EXPECT_TRUE(files.Drop(DataFilePath("b.lance")));
  std::atomic<int> beside{0};
  const auto finish = [&](const TableEnv& env) {
    return FinishUnsynced(env, transaction, {[&] {
                            ++beside;
                            return Status::OK();
                          }});
  };
  ASSERT_OK(finish(table.env));
  EXPECT_EQ(table.recorder->Take(), std::vector{DataFilePath("a.lance")});
  EXPECT_FALSE(files.Drop(DataFilePath("a.lance")));
  ASSERT_OK(finish(table.env));  // once only
  EXPECT_TRUE(table.recorder->Take().empty());
  // Another table's file of the same name is another one.
  append->add_fragments()->add_files()->set_path("c.lance");
  ASSERT_OK(finish(MakeEnv(io::MakeMemoryStore())));
  EXPECT_TRUE(table.recorder->Take().empty());
  EXPECT_EQ(beside, 3);
  ASSERT_OK_AND_ASSIGN(const auto found, table.env.store->List("", true));
  EXPECT_EQ(found.size(), 1u);
}

}  // namespace
}  // namespace glaive::table
