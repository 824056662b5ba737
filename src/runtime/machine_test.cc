#include "runtime/machine.h"

#include <sched.h>

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

namespace glaive {
namespace {

namespace fs = std::filesystem;

// A made-up /proc and /sys below a temporary directory.
class CgroupTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "glaive-cgroup-XXXXXX").string();
    root_ = ::mkdtemp(name.data());
  }
  void TearDown() override { fs::remove_all(root_); }

  void Write(const std::string& path, const std::string& text) {
    fs::create_directories(fs::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }

  std::string root_;
};

TEST_F(CgroupTest, NothingKnownMeansUnlimited) {
  const CgroupLimits limits = ReadCgroupLimits(root_);
  EXPECT_EQ(limits.cpus, 0);
  EXPECT_EQ(limits.memory_bytes, 0);
}

TEST_F(CgroupTest, Version2TakesTheTightestOnTheWayUp) {
  Write("/proc/self/cgroup", "0::/a/b\n");
  Write("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  Write("/sys/fs/cgroup/a/cpu.max", "250000 100000\n");
  Write("/sys/fs/cgroup/a/b/memory.max", "3000000000\n");
  Write("/sys/fs/cgroup/a/memory.max", "2000000000\n");
  const CgroupLimits limits = ReadCgroupLimits(root_);
  EXPECT_DOUBLE_EQ(limits.cpus, 2.5);
  EXPECT_EQ(limits.memory_bytes, 2'000'000'000);
}

TEST_F(CgroupTest, Version2InsideANamespace) {
  Write("/proc/self/cgroup", "0::/\n");
  Write("/sys/fs/cgroup/cpu.max", "150000 100000\n");
  Write("/sys/fs/cgroup/memory.max", "max\n");
  const CgroupLimits limits = ReadCgroupLimits(root_);
  EXPECT_DOUBLE_EQ(limits.cpus, 1.5);
  EXPECT_EQ(limits.memory_bytes, 0);
}

TEST_F(CgroupTest, Version1) {
  Write("/proc/self/cgroup",
        "9:name=systemd:/\n4:memory:/m/x\n2:cpu,cpuacct:/c\n1:cpuset:/\n0::/\n");
  Write("/sys/fs/cgroup/cpu,cpuacct/c/cpu.cfs_quota_us", "300000\n");
  Write("/sys/fs/cgroup/cpu,cpuacct/c/cpu.cfs_period_us", "100000\n");
  Write("/sys/fs/cgroup/memory/m/x/memory.limit_in_bytes", "1073741824\n");
  Write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  const CgroupLimits limits = ReadCgroupLimits(root_);
  EXPECT_DOUBLE_EQ(limits.cpus, 3);
  EXPECT_EQ(limits.memory_bytes, 1 << 30);
}

TEST_F(CgroupTest, Version1WithoutQuota) {
  Write("/proc/self/cgroup", "1:cpu:/\n");
  Write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  Write("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(ReadCgroupLimits(root_).cpus, 0);
}

TEST(GrantedCpus, HonoursTheAffinityMask) {
  cpu_set_t before;
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  EXPECT_GE(GrantedCpus(), 1);
  EXPECT_LE(GrantedCpus(), CPU_COUNT(&before));
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &before)) {
      CPU_SET(cpu, &one);
      break;
    }
  }
  ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(GrantedCpus(), 1);
  ASSERT_EQ(::sched_setaffinity(0, sizeof before, &before), 0);
}

TEST(GrantedMemory, IsPlausible) {
  EXPECT_GT(GrantedMemoryBytes(), int64_t{64} << 20);
  EXPECT_LT(GrantedMemoryBytes(), int64_t{1} << 50);
}

}  // namespace
}  // namespace glaive
