// Which kernels this process uses: detection of the CPU, choice per kernel, override by
// GLAIVE_SIMD.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "simd/distance.h"

namespace glaive::simd {

// In ascending order: each includes the instructions of those before it.
enum class Tier : uint8_t {
  kScalar = 0,  // x86-64-v2, or any other CPU
  kAvx = 1,
  kAvxFma = 2,  // with F16C, which all such CPUs have
  kAvx2Fma = 3,
  kAvx512 = 4,  // F, BW, DQ, VL
};

// "scalar", "avx", "avx_fma", "avx2_fma", "avx512".
std::string_view TierName(Tier tier);

// Tiers that this CPU and operating system can run, in ascending order.
std::vector<Tier> AvailableTiers();

struct KernelInfo {
  std::string name;  // "l2_f32"
  Tier tier;         // which one's code runs
};

struct SimdInfo {
  Tier tier;                               // the highest in use
  std::string target_arch;                 // "x86_64"
  std::vector<std::string> host_features;  // "sse2", …, "avx512vl"
  std::vector<Tier> available;
  std::vector<KernelInfo> kernels;
};

// The kernels chosen for this process, once: the best of each kind for this CPU, or those
// of the tier that GLAIVE_SIMD names (a tier without a kernel of its own uses the next
// lower one's). InvalidInput when GLAIVE_SIMD is unknown or unavailable here.
// Thread-safe; cheap after the first call. The table lives for ever.
Result<const KernelTable*> ActiveKernels();

// What ActiveKernels chose.
Result<SimdInfo> GetSimdInfo();

// The kernels of one tier, for tests and benches. InvalidInput when this CPU cannot run
// it.
Result<KernelTable> KernelsOfTier(Tier tier);

// What GLAIVE_SIMD=`text` asks for; empty: the best available tier.
Result<Tier> ParseTier(std::string_view text);

}  // namespace glaive::simd
