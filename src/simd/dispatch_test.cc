#include "simd/dispatch.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>

#include <gtest/gtest.h>

namespace glaive::simd {
namespace {

// Output of this test program's PrintsItsChoice with GLAIVE_SIMD set. The choice is made
// once per process, so each needs one of its own.
std::string ChoiceWith(const std::string& forced) {
  const std::string command = "GLAIVE_SIMD='" + forced +
                              "' /proc/self/exe "
                              "--gtest_filter=Dispatch.PrintsItsChoice 2>&1";
  // /proc/self would be the shell's.
  char self[4096];
  const ssize_t length = ::readlink("/proc/self/exe", self, sizeof self - 1);
  if (length <= 0) return "";
  std::string with_path = command;
  with_path.replace(with_path.find("/proc/self/exe"), 14,
                    std::string(self, static_cast<size_t>(length)));
  FILE* pipe = ::popen(with_path.c_str(), "r");
  std::string output;
  char buffer[4096];
  while (std::fgets(buffer, sizeof buffer, pipe) != nullptr) output += buffer;
  ::pclose(pipe);
  return output;
}

TEST(Dispatch, PrintsItsChoice) {
  auto info = GetSimdInfo();
  if (!info.ok()) {
    std::printf("simd error: %s\n", info.status().message().c_str());
    EXPECT_FALSE(ActiveKernels().ok());
    return;
  }
  std::printf("simd tier: %s\n", std::string(TierName(info->tier)).c_str());
  std::printf("simd available:");
  for (const Tier tier : info->available) {
    std::printf(" %s", std::string(TierName(tier)).c_str());
  }
  std::printf("\n");
  for (const KernelInfo& kernel : info->kernels) {
    std::printf("simd kernel %s: %s\n", kernel.name.c_str(),
                std::string(TierName(kernel.tier)).c_str());
  }
}

TEST(Dispatch, ChoosesTheBestTier) {
  if (std::getenv("GLAIVE_SIMD") != nullptr) GTEST_SKIP() << "a tier is forced";
  auto info = GetSimdInfo();
  ASSERT_TRUE(info.ok());
  EXPECT_EQ(info->available, AvailableTiers());
  EXPECT_EQ(info->tier, info->available.back());
#if defined(__x86_64__)
  EXPECT_EQ(info->target_arch, "x86_64");
  EXPECT_NE(std::find(info->host_features.begin(), info->host_features.end(), "sse4.2"),
            info->host_features.end());
#endif
}

TEST(Dispatch, EveryKernelIsSetAndNamedOnce) {
  auto info = GetSimdInfo();
  ASSERT_TRUE(info.ok()) << info.status().ToString();
  std::set<std::string> names;
  for (const KernelInfo& kernel : info->kernels) {
    EXPECT_LE(kernel.tier, info->tier) << kernel.name;
    names.insert(kernel.name);
  }
  EXPECT_EQ(names.size(), info->kernels.size());
  EXPECT_EQ(names.size(), 6u * 7 + 2);
  for (const Tier tier : AvailableTiers()) {
    const KernelTable table = KernelsOfTier(tier).ValueOrDie();
    const auto* words = reinterpret_cast<void* const*>(&table);
    for (size_t i = 0; i < sizeof table / sizeof(void*); ++i)
      EXPECT_NE(words[i], nullptr);
  }
  EXPECT_EQ(sizeof(KernelTable) / sizeof(void*), names.size());
}

TEST(Dispatch, TheEnvironmentForcesATier) {
  for (const Tier tier : AvailableTiers()) {
    const std::string name(TierName(tier));
    const std::string output = ChoiceWith(name);
    EXPECT_NE(output.find("simd tier: " + name + "\n"), std::string::npos) << output;
    // Float kernels exist in every tier: forcing one must give exactly that one's.
    EXPECT_NE(output.find("simd kernel l2_f32: " + name + "\n"), std::string::npos)
        << output;
  }
}

TEST(Dispatch, WrongTiersAreErrorsThatListTheRightOnes) {
  const std::string output = ChoiceWith("sse9");
  EXPECT_NE(output.find("simd error: GLAIVE_SIMD is 'sse9'"), std::string::npos)
      << output;
  const Status unknown = ParseTier("sse9").status();
  EXPECT_EQ(KindOf(unknown), ErrorKind::kInvalidInput);
  for (const Tier tier : AvailableTiers()) {
    EXPECT_NE(unknown.message().find(TierName(tier)), std::string::npos);
    EXPECT_EQ(ParseTier(TierName(tier)).ValueOrDie(), tier);
  }
  for (const Tier tier : {Tier::kAvx, Tier::kAvxFma, Tier::kAvx2Fma, Tier::kAvx512}) {
    const auto available = AvailableTiers();
    if (std::find(available.begin(), available.end(), tier) != available.end()) continue;
    EXPECT_NE(ParseTier(TierName(tier)).status().message().find("cannot run"),
              std::string::npos);
    EXPECT_FALSE(KernelsOfTier(tier).ok());
  }
  EXPECT_EQ(ParseTier("").ValueOrDie(), AvailableTiers().back());
  EXPECT_FALSE(ParseTier("AVX").ok());
}

}  // namespace
}  // namespace glaive::simd
