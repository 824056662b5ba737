// Distance kernels with 256-bit floats, fused multiply-add and half conversion, but
// without 256-bit integers (Piledriver).
#include <immintrin.h>

#include "simd/distance.h"
#include "simd/kernel_macros.h"

namespace glaive::simd {
namespace {

// 16 registers: 12 sums (two per pair), 2 + 1 operands, a difference.
constexpr int kQueriesPerBlock = 3;
constexpr int kVectorsPerBlock = 2;

#define GLAIVE_HAS_FMA
#include "simd/float256-inl.h"

template <typename T>
struct Ops : FloatOps<T> {};
template <>
struct Ops<double> : DoubleOps {};

#include "simd/distance-inl.h"

}  // namespace

void AddDistanceKernels_avx_fma(KernelTable* table) {
  SetKernels(&table->f32);
  SetKernels(&table->f16);
  SetKernels(&table->bf16);
  SetKernels(&table->f64);
}

}  // namespace glaive::simd
