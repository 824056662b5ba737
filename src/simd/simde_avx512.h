// AVX-512 intrinsics in portable C, for tests only: SIMDe, plus the few that Debian 12's
// version of it does not have yet.
#pragma once

#define SIMDE_ENABLE_NATIVE_ALIASES
#include <cstddef>
#include <cstdint>

#include <simde/x86/avx2.h>
#include <simde/x86/avx512.h>
#include <simde/x86/f16c.h>
#include <simde/x86/fma.h>

namespace glaive::simd::fill {

inline simde__m512 CvtphPs(simde__m256i halves) {
  alignas(32) uint16_t in[16];
  alignas(64) float out[16];
  simde_mm256_storeu_si256(reinterpret_cast<simde__m256i*>(in), halves);
  for (int i = 0; i < 16; i += 8) {
    const simde__m128i part =
        simde_mm_loadu_si128(reinterpret_cast<const simde__m128i*>(in + i));
    simde_mm256_storeu_ps(out + i, simde_mm256_cvtph_ps(part));
  }
  return simde_mm512_loadu_ps(out);
}

inline simde__m512i Cvtepu16Epi32(simde__m256i words) {
  uint16_t in[16];
  uint32_t out[16];
  simde_mm256_storeu_si256(reinterpret_cast<simde__m256i*>(in), words);
  for (int i = 0; i < 16; ++i) out[i] = in[i];
  return simde_mm512_loadu_si512(out);
}

inline simde__m512i Cvtepu8Epi16(simde__m256i bytes) {
  uint8_t in[32];
  uint16_t out[32];
  simde_mm256_storeu_si256(reinterpret_cast<simde__m256i*>(in), bytes);
  for (int i = 0; i < 32; ++i) out[i] = in[i];
  return simde_mm512_loadu_si512(out);
}

inline simde__m512 MaskzLoaduPs(uint16_t mask, const float* p) {
  float out[16] = {};
  for (int i = 0; i < 16; ++i) {
    if ((mask >> i) & 1) out[i] = p[i];
  }
  return simde_mm512_loadu_ps(out);
}

inline simde__m512d MaskzLoaduPd(uint8_t mask, const double* p) {
  double out[8] = {};
  for (int i = 0; i < 8; ++i) {
    if ((mask >> i) & 1) out[i] = p[i];
  }
  return simde_mm512_loadu_pd(out);
}

}  // namespace glaive::simd::fill

#undef _mm512_cvtph_ps
#define _mm512_cvtph_ps(a) ::glaive::simd::fill::CvtphPs(a)
#undef _mm512_cvtepu16_epi32
#define _mm512_cvtepu16_epi32(a) ::glaive::simd::fill::Cvtepu16Epi32(a)
#undef _mm512_cvtepu8_epi16
#define _mm512_cvtepu8_epi16(a) ::glaive::simd::fill::Cvtepu8Epi16(a)
#undef _mm512_maskz_loadu_ps
#define _mm512_maskz_loadu_ps(k, p) ::glaive::simd::fill::MaskzLoaduPs(k, p)
#undef _mm512_maskz_loadu_pd
#define _mm512_maskz_loadu_pd(k, p) ::glaive::simd::fill::MaskzLoaduPd(k, p)
#undef _mm512_madd_epi16  // an alias of the wrong function there
#define _mm512_madd_epi16(a, b) simde_mm512_madd_epi16(a, b)
