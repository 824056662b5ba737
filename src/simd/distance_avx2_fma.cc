// Distance kernels for CPUs with AVX2, FMA and F16C (Haswell, Zen).
#include <immintrin.h>

#include "simd/distance.h"

namespace glaive::simd {
namespace {

constexpr int kQueriesPerBlock = 2;
constexpr int kVectorsPerBlock = 2;

#define GLAIVE_HAS_FMA
#include "simd/float256-inl.h"

inline __m256i Load32(const void* p) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(p));
}

inline __m256i WidenBytes(const uint8_t* p) {
  return _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
inline __m256i WidenBytes(const int8_t* p) {
  return _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}

// Bytes as 16-bit lanes; sums as 32-bit lanes, each of two neighbours. Vec holds either.
template <typename Byte>
struct ByteOps {
  using T = Byte;
  using Vec = __m256i;
  using Sum = int64_t;
  static constexpr size_t kLanes = 16;
  static constexpr size_t kMaxDim = size_t{1} << 17;  // 2^17 / 8 * 255^2 < 2^31
  static Vec Zero() { return _mm256_setzero_si256(); }
  static Vec Load(const T* p) { return WidenBytes(p); }
  static Vec LoadTail(const T* p, size_t count) {
    T padded[kLanes] = {};
    for (size_t i = 0; i < count; ++i) padded[i] = p[i];
    return WidenBytes(padded);
  }
  static Vec Add(Vec a, Vec b) { return _mm256_add_epi32(a, b); }
  static Vec Sub(Vec a, Vec b) { return _mm256_sub_epi16(a, b); }
  static Vec MulAdd(Vec a, Vec b, Vec sum) {
    return _mm256_add_epi32(sum, _mm256_madd_epi16(a, b));
  }
  static Sum Reduce(Vec v) {
    alignas(32) int32_t lanes[8];
    _mm256_store_si256(reinterpret_cast<__m256i*>(lanes), v);
    Sum sum = 0;
    for (const int32_t lane : lanes) sum += lane;
    return sum;
  }
};

template <typename T>
struct Ops : FloatOps<T> {};
template <>
struct Ops<double> : DoubleOps {};
template <>
struct Ops<uint8_t> : ByteOps<uint8_t> {};
template <>
struct Ops<int8_t> : ByteOps<int8_t> {};

#include "simd/distance-inl.h"

}  // namespace

void AddDistanceKernels_avx2_fma(KernelTable* table) {
  SetKernels(&table->f32);
  SetKernels(&table->f16);
  SetKernels(&table->bf16);
  SetKernels(&table->f64);
  SetKernels(&table->u8);
  SetKernels(&table->i8);
}

}  // namespace glaive::simd
