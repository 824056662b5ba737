// Branches and shallow clones: lines of versions that share files.
#include "table/branches.h"

#include <unistd.h>

#include "format/table.pb.h"
#include "io/faulting_store.h"
#include "table/test_util.h"

namespace glaive::table {
namespace {

TEST(Branches, GoTheirOwnWay) {
  const TableEnv env = MakeEnv(io::MakeMemoryStore());
  ASSERT_OK_AND_ASSIGN(auto main, Create(env, {1, 2, 3}));
  ASSERT_OK_AND_ASSIGN(main, DeleteValues(*main, {2}));
  ASSERT_OK_AND_ASSIGN(auto branch, CreateBranch(*main, "dev/x"));
  EXPECT_EQ(branch->version(), 2);
  EXPECT_EQ(BranchOf(*branch), "dev/x");
  EXPECT_EQ(BranchOf(*main), std::nullopt);
  // Reads files and deletions of the parent, writes its own.
  ASSERT_OK_AND_ASSIGN(auto values, ReadValues(*branch));
  EXPECT_EQ(values, (Values{1, 3}));
  ASSERT_OK_AND_ASSIGN(branch, Append(branch->env(), {7}));
  ASSERT_OK_AND_ASSIGN(branch, DeleteValues(*branch, {3}));
  ASSERT_OK_AND_ASSIGN(main, Append(env, {8}));
  ASSERT_OK_AND_ASSIGN(values, ReadValues(*branch));
  EXPECT_EQ(values, (Values{1, 7}));
  ASSERT_OK_AND_ASSIGN(values, ReadValues(*main));
  EXPECT_EQ(values, (Values{1, 3, 8}));
  EXPECT_EQ(branch->version(), 4);
  EXPECT_EQ(branch->manifest().reader_feature_flags() & 16u, 16u);
  // The merged deletion file is the branch's.
  EXPECT_FALSE(branch->fragment(0).deletion_file().has_base_id());
  EXPECT_TRUE(branch->fragment(0).files(0).has_base_id());
  EXPECT_FALSE(branch->fragment(1).files(0).has_base_id());

  // From here and there, by name, by number, from another process.
  ASSERT_OK_AND_ASSIGN(auto other, Dataset::Open(MakeEnv(env.store)));
  ASSERT_OK_AND_ASSIGN(auto found, CheckoutBranch(*other, "dev/x", std::nullopt));
  EXPECT_EQ(found->version(), 4);
  ASSERT_OK_AND_ASSIGN(found, CheckoutBranch(*found, "dev/x", 3));
  ASSERT_OK_AND_ASSIGN(values, ReadValues(*found));
  EXPECT_EQ(values, (Values{1, 3, 7}));
  ASSERT_OK_AND_ASSIGN(found, CheckoutBranch(*found, "main", std::nullopt));
  EXPECT_EQ(found->version(), 3);
  ASSERT_OK_AND_ASSIGN(found, CheckoutBranch(*branch, std::nullopt, 1));
  ASSERT_OK_AND_ASSIGN(values, ReadValues(*found));
  EXPECT_EQ(values, (Values{1, 2, 3}));
  EXPECT_KIND(ErrorKind::kNotFound, CheckoutBranch(*main, "nope", 1).status());
  EXPECT_KIND(ErrorKind::kNotFound, CheckoutBranch(*main, "dev/x", 9).status());
}

TEST(Branches, OfBranches) {
  const TableEnv env = MakeEnv(io::MakeMemoryStore());
  ASSERT_OK_AND_ASSIGN(auto main, Create(env, {1}));
  ASSERT_OK_AND_ASSIGN(auto a, CreateBranch(*main, "a"));
  ASSERT_OK_AND_ASSIGN(a, Append(a->env(), {2}));
  ASSERT_OK_AND_ASSIGN(auto b, CreateBranch(*a, "a/b"));
  ASSERT_OK_AND_ASSIGN(b, Append(b->env(), {3}));
  ASSERT_OK_AND_ASSIGN(auto values, ReadValues(*b));
  EXPECT_EQ(values, (Values{1, 2, 3}));
  EXPECT_EQ(b->manifest().base_paths_size(), 2);
  ASSERT_OK_AND_ASSIGN(auto branches, ListBranches(*b));
  ASSERT_EQ(branches.size(), 2u);
  EXPECT_EQ(branches["a"].parent_branch, std::nullopt);
  EXPECT_EQ(branches["a"].parent_version, 1);
  EXPECT_EQ(branches["a/b"].parent_branch, "a");
  EXPECT_EQ(branches["a/b"].parent_version, 2);
  ASSERT_EQ(branches["a/b"].identifier.size(), 2u);
  EXPECT_EQ(branches["a/b"].identifier[0], branches["a"].identifier[0]);
  EXPECT_EQ(branches["a/b"].identifier[1].second.size(), 32u);
  ASSERT_OK(ReplaceBranchMetadata(*main, "a", {{"k", "v"}}));
  ASSERT_OK_AND_ASSIGN(branches, ListBranches(*main));
  EXPECT_EQ(branches["a"].metadata.at("k"), "v");

  // Tags are of the whole table and remember the branch.
  ASSERT_OK(b->CreateTag("t", 3));
  EXPECT_KIND(ErrorKind::kAlreadyExists, main->CreateTag("t", 1));
  ASSERT_OK_AND_ASSIGN(auto tags, main->ListTags());
  EXPECT_EQ(tags["t"].branch, "a/b");
  ASSERT_OK_AND_ASSIGN(auto tagged, main->CheckoutTag("t"));
  ASSERT_OK_AND_ASSIGN(values, ReadValues(*tagged));
  EXPECT_EQ(values, (Values{1, 2, 3}));

  // What another needs stays.
  EXPECT_KIND(ErrorKind::kConflict, DeleteBranch(*main, "a"));
  EXPECT_KIND(ErrorKind::kConflict, DeleteBranch(*main, "a/b"));
  ASSERT_OK(main->DeleteTag("t"));
  ASSERT_OK(DeleteBranch(*main, "a/b"));
  EXPECT_KIND(ErrorKind::kNotFound, DeleteBranch(*main, "a/b"));
  ASSERT_OK_AND_ASSIGN(values, ReadValues(*a));
  EXPECT_EQ(values, (Values{1, 2}));
  ASSERT_OK(DeleteBranch(*main, "a"));
  ASSERT_OK_AND_ASSIGN(auto left, env.store->List("tree", /*recursive=*/true));
  EXPECT_TRUE(left.empty());
  ASSERT_OK(CreateBranch(*main, "a").status());
}

TEST(Branches, NestedDirectoriesStay) {
  const TableEnv env = MakeEnv(io::MakeMemoryStore());
  ASSERT_OK_AND_ASSIGN(auto main, Create(env, {1}));
  ASSERT_OK_AND_ASSIGN(auto outer, CreateBranch(*main, "a"));
  ASSERT_OK_AND_ASSIGN(auto inner, CreateBranch(*main, "a/b"));
  ASSERT_OK_AND_ASSIGN(inner, Append(inner->env(), {2}));
  ASSERT_OK(Append(outer->env(), {9}).status());
  ASSERT_OK(DeleteBranch(*main, "a"));
  ASSERT_OK_AND_ASSIGN(inner, CheckoutBranch(*main, "a/b", std::nullopt));
  ASSERT_OK_AND_ASSIGN(auto values, ReadValues(*inner));
  EXPECT_EQ(values, (Values{1, 2}));
  EXPECT_KIND(ErrorKind::kNotFound, CheckoutBranch(*main, "a", std::nullopt).status());
}

TEST(Branches, Names) {
  const TableEnv env = MakeEnv(io::MakeMemoryStore());
  ASSERT_OK_AND_ASSIGN(auto main, Create(env, {1}));
  for (const char* name : {"", "main", "/a", "a/", "a//b", "a..b", "x y", "a.lock",
                           "a\\b", "a/data", "a/./b", "\xc3\xa9"}) {
    EXPECT_KIND(ErrorKind::kInvalidInput, CreateBranch(*main, name).status());
  }
  ASSERT_OK(CreateBranch(*main, "v1.2-rc_3/x").status());
  EXPECT_KIND(ErrorKind::kAlreadyExists, CreateBranch(*main, "v1.2-rc_3/x").status());
}

TEST(Branches, ClonesLiveOnTheirOwn) {
  const std::string directory =
      ::testing::TempDir() + "glaive_clone_" +
      std::to_string(::testing::UnitTest::GetInstance()->random_seed()) + "_" +
      std::to_string(getpid());
  ASSERT_OK_AND_ASSIGN(auto root, io::OpenLocalStore(directory, /*create=*/true));
  const TableEnv env = MakeEnv(root->Child("source"));
  ASSERT_OK_AND_ASSIGN(auto source, Create(env, {1, 2}));
  ASSERT_OK_AND_ASSIGN(source, Append(env, {3}));
  const TableEnv target = MakeEnv(root->Child("clone"));
  ASSERT_OK_AND_ASSIGN(auto clone, ShallowClone(*source, target));
  EXPECT_EQ(clone->version(), 2);
  EXPECT_KIND(ErrorKind::kAlreadyExists, ShallowClone(*source, target).status());
  ASSERT_OK_AND_ASSIGN(clone, Append(target, {4}));
  ASSERT_OK_AND_ASSIGN(clone, DeleteValues(*clone, {2}));
  ASSERT_OK_AND_ASSIGN(auto values, ReadValues(*clone));
  EXPECT_EQ(values, (Values{1, 3, 4}));
  ASSERT_OK_AND_ASSIGN(values, ReadValues(*source));
  EXPECT_EQ(values, (Values{1, 2, 3}));
  // A clone has branches of its own; a clone of a clone still finds the first files.
  ASSERT_OK_AND_ASSIGN(auto branch, CreateBranch(*clone, "b"));
  ASSERT_OK_AND_ASSIGN(auto again, ShallowClone(*branch, MakeEnv(root->Child("again"))));
  ASSERT_OK_AND_ASSIGN(values, ReadValues(*again));
  EXPECT_EQ(values, (Values{1, 3, 4}));
  // Without the source its rows are gone, and that is said.
  ASSERT_OK(root->DeleteTree("source"));
  ASSERT_OK_AND_ASSIGN(
      auto orphan,
      Dataset::Open(MakeEnv((*io::OpenLocalStore(directory, false))->Child("clone"))));
  EXPECT_FALSE(ReadValues(*orphan).ok());
  ASSERT_OK(root->DeleteTree(""));
}

// After a fault at any operation there is either a whole branch or none, and the name can
// be used.
TEST(Branches, FaultsWhileOneIsMade) {
  for (bool crash : {false, true}) {
    for (int64_t at = 0;; ++at) {
      SCOPED_TRACE(at);
      auto store = io::MakeMemoryStore();
      ASSERT_OK(Create(MakeEnv(store), {1, 2}).status());
      auto injector = std::make_shared<io::FaultInjector>();
      const TableEnv env = MakeEnv(io::MakeFaultingStore(store, injector));
      ASSERT_OK_AND_ASSIGN(auto main, Dataset::Open(env));
      io::FaultPlan plan;
      plan.fail_at = at;
      plan.crash = crash;
      injector->Arm(plan);
      auto made = CreateBranch(*main, "b");
      const bool fired = injector->fired();
      ASSERT_OK_AND_ASSIGN(auto after, Dataset::Open(MakeEnv(store)));
      if (!made.ok()) {
        Status removed = DeleteBranch(*after, "b");
        ASSERT_TRUE(removed.ok() || KindOf(removed) == ErrorKind::kNotFound)
            << removed.ToString();
        ASSERT_OK(CreateBranch(*after, "b").status());
      }
      ASSERT_OK_AND_ASSIGN(auto branch, CheckoutBranch(*after, "b", std::nullopt));
      ASSERT_OK_AND_ASSIGN(auto values, ReadValues(*branch));
      ASSERT_EQ(values, (Values{1, 2}));
      if (!fired) {
        ASSERT_OK(made.status());
        break;
      }
      ASSERT_LT(at, 100);
    }
  }
}

}  // namespace
}  // namespace glaive::table
