// Damaged tables: what is found, what a repair drops.
#include "table/verify.h"

#include <map>

#include <gtest/gtest.h>

#include "format/table.pb.h"
#include "table/names.h"
#include "table/test_util.h"

namespace glaive::table {
namespace {

// Fragments {1,2,3}, {4,5}, {6,7,8,9}; 2 is deleted.
Dataset::Ptr MakeTable(const TableEnv& env) {
  EXPECT_TRUE(Create(env, {1, 2, 3}).ok());
  EXPECT_TRUE(Append(env, {4, 5}).ok());
  auto dataset = Append(env, {6, 7, 8, 9}).ValueOrDie();
  return DeleteValues(*dataset, {2}).ValueOrDie();
}

std::string FileOf(const Dataset& dataset, int fragment) {
  return DataFilePath(dataset.fragment(fragment).files(0).path());
}

std::vector<std::string> Kinds(const VerifyReport& report) {
  std::vector<std::string> kinds;
  for (const auto& problem : report.problems) {
    kinds.push_back(ProblemKindName(problem.kind));
  }
  return kinds;
}

TEST(Verify, ASoundTable) {
  const TableEnv env = MakeEnv(io::MakeMemoryStore());
  MakeTable(env);
  ASSERT_OK_AND_ASSIGN(const auto report, Verify(MakeEnv(env.store), {.decode = true}));
  EXPECT_TRUE(report.sound());
  EXPECT_TRUE(report.problems.empty());
  EXPECT_EQ(report.version, 4);
  EXPECT_EQ(report.rows_checked, 9);
  EXPECT_EQ(report.files_checked, 8);  // 3 data files, 1 deletion file, 4 manifests
  EXPECT_EQ(KindOf(Verify(MakeEnv(io::MakeMemoryStore()), {}).status()),
            ErrorKind::kNotFound);
}

TEST(Verify, MissingTruncatedAndForeignFiles) {
  const TableEnv env = MakeEnv(io::MakeMemoryStore());
  const auto dataset = MakeTable(env);
  ASSERT_OK(env.store->Delete(FileOf(*dataset, 0)));
  ASSERT_OK_AND_ASSIGN(auto bytes, env.store->Get(FileOf(*dataset, 2)));
  const std::string whole = io::Text(bytes);
  ASSERT_OK(
      env.store->Put(FileOf(*dataset, 2), io::Bytes(whole.substr(0, whole.size() / 2))));
  ASSERT_OK(env.store->Put("data/stranger.lance", io::Bytes("x")));
  VerifyOptions options;
  options.repair = true;
  const TableEnv fresh = MakeEnv(env.store);
  ASSERT_OK_AND_ASSIGN(const auto report, Verify(fresh, options));
  EXPECT_FALSE(report.sound());
  EXPECT_EQ(Kinds(report), (std::vector<std::string>{"missing", "truncated", "foreign"}));
  ASSERT_EQ(report.lost.size(), 2u);
  EXPECT_EQ(report.lost[0].fragment_id, 0);
  EXPECT_EQ(report.lost[0].rows, 2);
  EXPECT_EQ(report.lost[1].fragment_id, 2);
  EXPECT_EQ(report.lost[1].rows, 4);
  EXPECT_EQ(report.repaired_version, 5);
  ASSERT_OK_AND_ASSIGN(auto repaired, Dataset::Open(MakeEnv(env.store)));
  ASSERT_OK_AND_ASSIGN(auto values, ReadValues(*repaired));
  EXPECT_EQ(values, (Values{4, 5}));
}

TEST(Verify, LostDeletions) {
  const TableEnv env = MakeEnv(io::MakeMemoryStore());
  const auto dataset = MakeTable(env);
  ASSERT_OK(env.store->Delete(DeletionFilePath(0, dataset->fragment(0).deletion_file())));
  ASSERT_OK_AND_ASSIGN(const auto report,
                       Verify(MakeEnv(env.store), {.decode = true, .repair = true}));
  EXPECT_EQ(Kinds(report), (std::vector<std::string>{"missing"}));
  EXPECT_TRUE(report.lost.empty());
  ASSERT_EQ(report.undeleted.size(), 1u);
  EXPECT_EQ(report.undeleted[0].rows, 1);
  ASSERT_OK_AND_ASSIGN(auto repaired, Dataset::Open(MakeEnv(env.store)));
  ASSERT_OK_AND_ASSIGN(auto values, ReadValues(*repaired));
  EXPECT_EQ(values, (Values{1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

// Bytes flipped anywhere in a data file: never a crash, and no finding is an error of the
// call. Footers and page tables are found without decoding.
TEST(Verify, EveryByteOfADataFile) {
  const TableEnv env = MakeEnv(io::MakeMemoryStore());
  const auto dataset = MakeTable(env);
  const std::string path = FileOf(*dataset, 1);
  ASSERT_OK_AND_ASSIGN(auto bytes, env.store->Get(path));
  const std::string whole = io::Text(bytes);
  int found = 0;
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x5a);
    ASSERT_OK(env.store->Put(path, io::Bytes(damaged)));
    ASSERT_OK_AND_ASSIGN(const auto report, Verify(MakeEnv(env.store), {.decode = true}));
    for (const auto& problem : report.problems) {
      EXPECT_EQ(problem.fragment_id, 1);
      EXPECT_EQ(problem.path, path);
    }
    found += report.sound() ? 0 : 1;
  }
  EXPECT_GT(found, static_cast<int>(whole.size()) / 4);
}

TEST(Verify, OlderVersions) {
  const TableEnv env = MakeEnv(io::MakeMemoryStore());
  ASSERT_OK_AND_ASSIGN(auto first, Create(env, {1, 2, 3}));
  WriteOptions overwrite;
  overwrite.mode = WriteMode::kOverwrite;
  ASSERT_OK(WriteValues(env, {9}, overwrite).status());
  ASSERT_OK(env.store->Delete(FileOf(*first, 0)));
  ASSERT_OK_AND_ASSIGN(const auto report, Verify(MakeEnv(env.store), {.repair = true}));
  ASSERT_EQ(Kinds(report), (std::vector<std::string>{"missing"}));
  EXPECT_EQ(report.problems[0].version, 1);
  // Nothing of the newest version is lost, so there is nothing to repair.
  EXPECT_EQ(report.repaired_version, 0);
}

TEST(Verify, DamagedFilesThatOnlyOlderVersionsName) {
  const TableEnv env = MakeEnv(io::MakeMemoryStore());
  ASSERT_OK(Create(env, {1, 2, 3}).status());
  ASSERT_OK_AND_ASSIGN(auto appended, Append(env, {4, 5}));
  ASSERT_OK_AND_ASSIGN(auto deleted, DeleteValues(*appended, {2}));
  WriteOptions overwrite;
  overwrite.mode = WriteMode::kOverwrite;
  ASSERT_OK(WriteValues(env, {9}, overwrite).status());
  const std::string deletions = DeletionFilePath(0, deleted->fragment(0).deletion_file());
  const auto damage = [&](const std::string& path, auto change) {
    std::string bytes = io::Text(env.store->Get(path).ValueOrDie());
    change(&bytes);
    ASSERT_OK(env.store->Put(path, io::Bytes(bytes)));
  };
  ASSERT_OK_AND_ASSIGN(const auto sound, Verify(MakeEnv(env.store), {}));
  EXPECT_TRUE(sound.problems.empty());
  EXPECT_EQ(sound.files_checked, 8);  // 3 data files, 1 deletion file, 4 manifests
  damage(FileOf(*deleted, 0), [](std::string* bytes) { bytes->back() ^= 1; });
  damage(FileOf(*deleted, 1), [](std::string* bytes) { bytes->pop_back(); });
  damage(deletions, [](std::string* bytes) { bytes->resize(bytes->size() / 2); });
  ASSERT_OK_AND_ASSIGN(const auto report, Verify(MakeEnv(env.store), {.repair = true}));
  std::map<std::string, std::string> found;
  for (const auto& problem : report.problems) {
    found[problem.path] = ProblemKindName(problem.kind);
    EXPECT_EQ(problem.version, 3);
    EXPECT_EQ(problem.fragment_id, -1);
  }
  EXPECT_EQ(found, (std::map<std::string, std::string>{{FileOf(*deleted, 0), "corrupt"},
                                                       {FileOf(*deleted, 1), "truncated"},
                                                       {deletions, "corrupt"}}));
  EXPECT_FALSE(report.sound());
  EXPECT_TRUE(report.lost.empty());
  EXPECT_EQ(report.repaired_version, 0);
}

}  // namespace
}  // namespace glaive::table
