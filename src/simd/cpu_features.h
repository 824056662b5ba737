// What the CPU can do and the operating system allows.
#pragma once

#include <string>
#include <vector>

namespace glaive::simd {

struct CpuFeatures {
  std::vector<std::string>
      names;  // in the order and spelling that lance.simd_info() uses
  bool avx = false;
  bool fma = false;
  bool f16c = false;
  bool avx2 = false;
  bool avx512 = false;  // F, BW, DQ and VL
  // 512-bit operations run as two halves (AMD Zen 4).
  bool splits_512 = false;
};

CpuFeatures DetectCpu();

}  // namespace glaive::simd
