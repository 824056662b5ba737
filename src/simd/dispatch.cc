#include "simd/dispatch.h"

#include <cstdlib>
#include <memory>
#include <type_traits>

#include "simd/cpu_features.h"

namespace glaive::simd {
namespace {

struct TierEntry {
  Tier tier;
  std::string_view name;
  void (*add)(KernelTable*);
  bool (*available)(const CpuFeatures&);
};

constexpr TierEntry kTiers[] = {
    {Tier::kScalar, "scalar", &AddDistanceKernels_scalar,
     [](const CpuFeatures&) { return true; }},
#if defined(__x86_64__)
    {Tier::kAvx, "avx", &AddDistanceKernels_avx,
     [](const CpuFeatures& cpu) { return cpu.avx; }},
    {Tier::kAvxFma, "avx_fma", &AddDistanceKernels_avx_fma,
     [](const CpuFeatures& cpu) { return cpu.avx && cpu.fma && cpu.f16c; }},
    {Tier::kAvx2Fma, "avx2_fma", &AddDistanceKernels_avx2_fma,
     [](const CpuFeatures& cpu) { return cpu.avx2 && cpu.fma && cpu.f16c; }},
    {Tier::kAvx512, "avx512", &AddDistanceKernels_avx512,
     [](const CpuFeatures& cpu) { return cpu.avx512; }},
#endif
};

constexpr std::string_view kAllNames = "scalar, avx, avx_fma, avx2_fma, avx512";

std::string NamesOf(const std::vector<Tier>& tiers) {
  std::string names;
  for (const Tier tier : tiers) {
    if (!names.empty()) names += ", ";
    names += TierName(tier);
  }
  return names;
}

// Calls visit(name, pointers...) for each kernel; the pointers are the same member of
// each table.
template <typename Visit, typename... Tables>
void ForEachKernel(Visit visit, Tables&... tables) {
  const auto of_type = [&](const std::string& type, auto member) {
    visit("l2_" + type, (tables.*member).l2...);
    visit("dot_" + type, (tables.*member).dot...);
    visit("cosine_" + type, (tables.*member).cosine...);
    visit("l2_many_" + type, (tables.*member).l2_many...);
    visit("dot_many_" + type, (tables.*member).dot_many...);
    visit("cosine_many_" + type, (tables.*member).cosine_many...);
    visit("norm_" + type, (tables.*member).norm...);
  };
  of_type("f32", &KernelTable::f32);
  of_type("f16", &KernelTable::f16);
  of_type("bf16", &KernelTable::bf16);
  of_type("f64", &KernelTable::f64);
  of_type("u8", &KernelTable::u8);
  of_type("i8", &KernelTable::i8);
  visit("hamming", tables.bits.hamming...);
  visit("hamming_many", tables.bits.hamming_many...);
}

// Each kernel from the highest tier that has one. On Zen 4, which runs 512-bit operations
// in two halves, the 512-bit kernels are as fast as the 256-bit ones or up to 1.6 times
// faster for all but one kind: a single query over floats or doubles in memory (100,000 x
// 384 floats: 18.5 against 21.5 GB/s), which has a form of its own with the same results.
KernelTable TableUpTo(Tier tier) {
  KernelTable table{};
  for (const TierEntry& entry : kTiers) {
    if (entry.tier <= tier) entry.add(&table);
  }
#if defined(__x86_64__)
  if (tier >= Tier::kAvx512 && DetectCpu().splits_512) {
    AddDistanceKernels_avx512_split(&table);
  }
#endif
  return table;
}

struct Selection {
  KernelTable table;
  SimdInfo info;
};

// The tier whose code each kernel of `table` is: the lowest one that offers the same
// pointer. Only tiers up to `highest` may run here, even their functions that fill
// tables.
std::vector<KernelInfo> TiersOfKernels(const KernelTable& table, Tier highest) {
  std::vector<KernelInfo> kernels;
  for (const TierEntry& entry : kTiers) {
    if (entry.tier > highest) break;
    const KernelTable candidate = TableUpTo(entry.tier);
    size_t index = 0;
    ForEachKernel(
        [&](const std::string& name, auto chosen, auto offered) {
          if (entry.tier == Tier::kScalar) kernels.push_back({name, Tier::kAvx512});
          if (chosen == offered && entry.tier < kernels[index].tier) {
            kernels[index].tier = entry.tier;
          }
          ++index;
        },
        table, candidate);
  }
  return kernels;
}

Result<std::unique_ptr<Selection>> Select() {
  const CpuFeatures cpu = DetectCpu();
  const char* forced = std::getenv("GLAIVE_SIMD");
  const bool is_forced = forced != nullptr && *forced != '\0';
  auto selection = std::make_unique<Selection>();
  GLAIVE_ASSIGN_OR_RETURN(selection->info.tier, ParseTier(is_forced ? forced : ""));
  selection->table = TableUpTo(selection->info.tier);
  selection->info.available = AvailableTiers();
  selection->info.host_features = cpu.names;
#if defined(__x86_64__)
  selection->info.target_arch = "x86_64";
#elif defined(__aarch64__)
  selection->info.target_arch = "aarch64";
#else
  selection->info.target_arch = "unknown";
#endif
  selection->info.kernels = TiersOfKernels(selection->table, selection->info.tier);
  return selection;
}

const Result<std::unique_ptr<Selection>>& TheSelection() {
  // Never destroyed: kernels may run while the process exits.
  static const auto* selection = new Result<std::unique_ptr<Selection>>(Select());
  return *selection;
}

}  // namespace

std::string_view TierName(Tier tier) {
  switch (tier) {
    case Tier::kScalar:
      return "scalar";
    case Tier::kAvx:
      return "avx";
    case Tier::kAvxFma:
      return "avx_fma";
    case Tier::kAvx2Fma:
      return "avx2_fma";
    case Tier::kAvx512:
      return "avx512";
  }
  return "unknown";
}

std::vector<Tier> AvailableTiers() {
  const CpuFeatures cpu = DetectCpu();
  std::vector<Tier> tiers;
  for (const TierEntry& entry : kTiers) {
    if (entry.available(cpu)) tiers.push_back(entry.tier);
  }
  return tiers;
}

Result<Tier> ParseTier(std::string_view text) {
  const std::vector<Tier> available = AvailableTiers();
  if (text.empty()) return available.back();
  for (const Tier tier : available) {
    if (TierName(tier) == text) return tier;
  }
  const bool known =
      text == "avx" || text == "avx_fma" || text == "avx2_fma" || text == "avx512";
  return InvalidInput("GLAIVE_SIMD is '", text, "', ",
                      known ? "which this CPU cannot run" : "which is no tier",
                      "; available here: ", NamesOf(available), " (of ", kAllNames, ")");
}

Result<const KernelTable*> ActiveKernels() {
  const auto& selection = TheSelection();
  if (!selection.ok()) return selection.status();
  return &(*selection)->table;
}

Result<SimdInfo> GetSimdInfo() {
  const auto& selection = TheSelection();
  if (!selection.ok()) return selection.status();
  return (*selection)->info;
}

Result<KernelTable> KernelsOfTier(Tier tier) {
  for (const Tier candidate : AvailableTiers()) {
    if (candidate == tier) return TableUpTo(tier);
  }
  return InvalidInput("this CPU cannot run the tier '", TierName(tier), "'");
}

}  // namespace glaive::simd
