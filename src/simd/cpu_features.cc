#include "simd/cpu_features.h"

#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace glaive::simd {

#if defined(__x86_64__)
namespace {

struct Registers {
  uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
};

Registers Cpuid(uint32_t leaf) {
  Registers r;
  if (__get_cpuid_count(leaf, 0, &r.eax, &r.ebx, &r.ecx, &r.edx) == 0) return {};
  return r;
}

// Register state that the operating system saves. Only callable when OSXSAVE is set.
uint64_t ReadXcr0() {
  uint32_t low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (static_cast<uint64_t>(high) << 32) | low;
}

bool Bit(uint32_t word, int bit) { return ((word >> bit) & 1) != 0; }

}  // namespace

CpuFeatures DetectCpu() {
  const Registers base = Cpuid(1);
  const Registers extended = Cpuid(7);
  const uint64_t xcr0 = Bit(base.ecx, 27) ? ReadXcr0() : 0;
  const bool saves_256 = (xcr0 & 0x06) == 0x06;
  const bool saves_512 = (xcr0 & 0xe6) == 0xe6;

  CpuFeatures cpu;
  const auto add = [&cpu](bool present, const char* name) {
    if (present) cpu.names.emplace_back(name);
    return present;
  };
  add(Bit(base.edx, 26), "sse2");
  add(Bit(base.ecx, 0), "sse3");
  add(Bit(base.ecx, 9), "ssse3");
  add(Bit(base.ecx, 19), "sse4.1");
  add(Bit(base.ecx, 20), "sse4.2");
  add(Bit(base.ecx, 23), "popcnt");
  cpu.avx = add(saves_256 && Bit(base.ecx, 28), "avx");
  cpu.avx2 = add(cpu.avx && Bit(extended.ebx, 5), "avx2");
  cpu.fma = add(cpu.avx && Bit(base.ecx, 12), "fma");
  cpu.f16c = add(cpu.avx && Bit(base.ecx, 29), "f16c");
  add(Bit(extended.ebx, 3), "bmi1");
  add(Bit(extended.ebx, 8), "bmi2");
  const bool f = add(saves_512 && Bit(extended.ebx, 16), "avx512f");
  const bool bw = add(f && Bit(extended.ebx, 30), "avx512bw");
  add(f && Bit(extended.ebx, 28), "avx512cd");
  const bool dq = add(f && Bit(extended.ebx, 17), "avx512dq");
  const bool vl = add(f && Bit(extended.ebx, 31), "avx512vl");
  cpu.avx512 = cpu.avx2 && cpu.fma && cpu.f16c && f && bw && dq && vl;

  // "AuthenticAMD", family 0x19: Zen 3 and Zen 4, of which only the latter has AVX-512.
  const Registers vendor = Cpuid(0);
  const uint32_t family = ((base.eax >> 8) & 0xf) + ((base.eax >> 20) & 0xff);
  const bool amd =
      vendor.ebx == 0x68747541 && vendor.edx == 0x69746e65 && vendor.ecx == 0x444d4163;
  cpu.splits_512 = cpu.avx512 && amd && family == 0x19;
  return cpu;
}

#else

CpuFeatures DetectCpu() { return {}; }

#endif

}  // namespace glaive::simd
