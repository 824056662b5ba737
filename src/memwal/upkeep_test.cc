// Convergence that runs by itself: when, by whom, and that it can be switched off.
#include "memwal/upkeep.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <thread>

#include <sys/wait.h>

#include "memwal/converge.h"
#include "memwal/lease.h"
#include "memwal/test_shards.h"

namespace glaive::memwal {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const ShardId kShard = ShardId::Derive("unsharded");

class Upkeep : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "glaive-upkeep-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
    ASSERT_OK_AND_ASSIGN(auto store, io::OpenLocalStore(directory_, true));
    env_ = NewEnv(std::move(store));
    ASSERT_OK_AND_ASSIGN(base_, MakeBase(env_, {{{1, ""}, "a"}}, false));
    settings_.max_generations = 2;
    settings_.max_wait = std::chrono::hours(1);
    settings_.collect_grace = std::chrono::hours(1);
  }
  void TearDown() override {
    WaitForUpkeep(seconds(20));
    std::filesystem::remove_all(directory_);
  }
  void Add(int64_t key) {
    ASSERT_OK(AddGeneration(env_, kShard, {{{key, ""}, "new"}}, false));
  }
  uint64_t Merged() { return MergedGeneration(env_, kShard).ValueOrDie(); }
  bool WaitForMerged(uint64_t generation) {
    for (int i = 0; i < 2000 && Merged() < generation; ++i) {
      std::this_thread::sleep_for(milliseconds(10));
    }
    return Merged() == generation;
  }

  std::string directory_;
  table::TableEnv env_;
  table::Dataset::Ptr base_;
  UpkeepSettings settings_;
};

TEST_F(Upkeep, CompactsWhenEnoughWait) {
  int64_t told = 0;
  settings_.on_compacted = [&](const table::Dataset::Ptr& base) {
    told = base->version();
  };
  Add(1);
  NoteGeneration(base_, kShard, 1, settings_);
  ASSERT_TRUE(WaitForUpkeep(seconds(20)));
  EXPECT_EQ(Merged(), 0u);
  Add(2);
  NoteGeneration(base_, kShard, 2, settings_);
  ASSERT_TRUE(WaitForUpkeep(seconds(20)));
  ASSERT_TRUE(WaitForMerged(2));
  ASSERT_TRUE(WaitForUpkeep(seconds(20)));
  ASSERT_OK_AND_ASSIGN(auto latest, base_->Latest());
  EXPECT_EQ(told, latest->version());
  EXPECT_TRUE(WaitForFanOut(*base_, kShard, 0, seconds(20)));
  EXPECT_FALSE(IsCompacting(*base_, kShard));
  EXPECT_FALSE(LeaseIsHeld(*env_.store, kShard));
  ASSERT_OK_AND_ASSIGN(const Model rows, ReadBase(env_, false));
  EXPECT_EQ(rows, (Model{{{1, ""}, "new"}, {{2, ""}, "new"}}));
}

TEST_F(Upkeep, CompactsWhenTheOldestWaitedLong) {
  settings_.max_wait = milliseconds(100);
  Add(5);
  ShardManifests manifests(env_.store, kShard);
  ASSERT_OK_AND_ASSIGN(const auto manifest, manifests.ReadLatest());
  NoteFlush(base_, *manifest, settings_);
  ASSERT_TRUE(WaitForMerged(1));
  // It is not counted again.
  ASSERT_TRUE(WaitForUpkeep(seconds(20)));
  NoteFlush(base_, *manifest, settings_);
  ASSERT_TRUE(WaitForUpkeep(seconds(20)));
  ASSERT_OK_AND_ASSIGN(auto latest, base_->Latest());
  EXPECT_EQ(latest->version(), base_->version() + 1);
}

TEST_F(Upkeep, CollectsAfterTheGrace) {
  settings_.collect_grace = milliseconds(200);
  Add(1);
  Add(2);
  NoteGeneration(base_, kShard, 2, settings_);
  ASSERT_TRUE(WaitForMerged(2));
  ShardManifests manifests(env_.store, kShard);
  for (int i = 0; i < 2000; ++i) {
    ASSERT_OK_AND_ASSIGN(const auto manifest, manifests.ReadLatest());
    if (manifest->sstables_size() == 0) return;
    std::this_thread::sleep_for(milliseconds(10));
  }
  FAIL() << "the generations are still there";
}

TEST_F(Upkeep, SomebodyElseHoldsTheLease) {
  ASSERT_OK_AND_ASSIGN(auto lease, Lease::Take(env_.store, kShard, milliseconds(700)));
  Add(1);
  Add(2);
  NoteGeneration(base_, kShard, 2, settings_);
  std::this_thread::sleep_for(milliseconds(300));
  EXPECT_EQ(Merged(), 0u);
  EXPECT_FALSE(WaitForFanOut(*base_, kShard, 1, milliseconds(1)));
  // It never gives it back.
  EXPECT_TRUE(WaitForMerged(2));
}

TEST_F(Upkeep, SwitchedOff) {
  settings_.enabled = false;
  Add(1);
  Add(2);
  NoteGeneration(base_, kShard, 2, settings_);
  ASSERT_TRUE(WaitForUpkeep(milliseconds(0)));
  EXPECT_EQ(Merged(), 0u);
  EXPECT_TRUE(WaitForFanOut(*base_, kShard, 0, milliseconds(0)));
}

TEST_F(Upkeep, ForkedChildren) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer follows no threads that a forked child starts";
#endif
  Add(1);
  Add(2);
  NoteGeneration(base_, kShard, 2, settings_);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    // A thread of its own, in a process of its own.
    const auto env = NewEnv(io::OpenLocalStore(directory_, false).ValueOrDie());
    bool ok = AddGeneration(env, kShard, {{{7, ""}, "child"}}, false).ok();
    NoteGeneration(base_, kShard, 3, settings_);
    for (int i = 0; i < 2000; ++i) {
      if (MergedGeneration(env, kShard).ValueOr(0) == 3) break;
      std::this_thread::sleep_for(milliseconds(10));
    }
    ok = ok && MergedGeneration(env, kShard).ValueOr(0) == 3;
    ok = ok && WaitForUpkeep(seconds(20));
    ::_exit(ok ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  ASSERT_TRUE(WaitForMerged(3));
  ASSERT_OK_AND_ASSIGN(const Model rows, ReadBase(env_, false));
  EXPECT_EQ(rows, (Model{{{1, ""}, "new"}, {{2, ""}, "new"}, {{7, ""}, "child"}}));
}

TEST(UpkeepSettings, Parse) {
  ::unsetenv("GLAIVE_LSM_UPKEEP");
  ASSERT_OK_AND_ASSIGN(auto settings, ParseUpkeepSettings({{"other", "x"}}));
  EXPECT_TRUE(settings.enabled);
  EXPECT_EQ(settings.max_generations, 4);
  ASSERT_OK_AND_ASSIGN(settings,
                       ParseUpkeepSettings({{"lsm_upkeep", "off"},
                                            {"lsm_upkeep_max_generations", "7"},
                                            {"lsm_upkeep_max_wait", "5s"},
                                            {"lsm_upkeep_collect_grace", "1h 30m"}}));
  EXPECT_FALSE(settings.enabled);
  EXPECT_EQ(settings.max_generations, 7);
  EXPECT_EQ(settings.max_wait, seconds(5));
  EXPECT_EQ(settings.collect_grace, std::chrono::minutes(90));
  ::setenv("GLAIVE_LSM_UPKEEP", "0", 1);
  ASSERT_OK_AND_ASSIGN(settings, ParseUpkeepSettings({}));
  EXPECT_FALSE(settings.enabled);
  ASSERT_OK_AND_ASSIGN(settings, ParseUpkeepSettings({{"lsm_upkeep", "true"}}));
  EXPECT_TRUE(settings.enabled);
  ::setenv("GLAIVE_LSM_UPKEEP", "maybe", 1);
  EXPECT_KIND(ErrorKind::kInvalidInput, ParseUpkeepSettings({}).status());
  ::unsetenv("GLAIVE_LSM_UPKEEP");
  for (const char* bad : {"", "0", "-1", "x", "99999999999999999999"}) {
    EXPECT_KIND(ErrorKind::kInvalidInput,
                ParseUpkeepSettings({{"lsm_upkeep_max_generations", bad}}).status());
  }
  EXPECT_KIND(ErrorKind::kInvalidInput,
              ParseUpkeepSettings({{"lsm_upkeep_max_wait", "soon"}}).status());
}

}  // namespace
}  // namespace glaive::memwal
