// Distance kernels with 256-bit floats, fused multiply-add and half conversion, but
// without 256-bit integers (Piledriver).
#include <immintrin.h>

#include "simd/distance.h"

namespace glaive::simd {
namespace {

constexpr int kQueriesPerBlock = 2;
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
