// Distance kernels with 256-bit floats but neither fused multiply-add nor 256-bit
// integers (Sandy Bridge). Half, bytes and bits stay with the scalar tier: nothing there
// gets wider.
#include <immintrin.h>

#include "simd/distance.h"
#include "simd/kernel_macros.h"

namespace glaive::simd {
namespace {

// 16 registers: 12 sums (two per pair), 2 + 1 operands, a difference.
constexpr int kQueriesPerBlock = 3;
constexpr int kVectorsPerBlock = 2;

#include "simd/float256-inl.h"

template <typename T>
struct Ops : FloatOps<T> {};
template <>
struct Ops<double> : DoubleOps {};

#include "simd/distance-inl.h"

}  // namespace

void AddDistanceKernels_avx(KernelTable* table) {
  SetKernels(&table->f32);
  SetKernels(&table->bf16);
  SetKernels(&table->f64);
}

}  // namespace glaive::simd
