// Distance kernels for AVX-512 (F, BW, DQ, VL). Also compiled with SIMDe for the tests,
// so that they are checked on machines without AVX-512.
#ifdef GLAIVE_SIMDE
#include "simd/simde_avx512.h"
#else
#include <immintrin.h>
#endif

#include "simd/distance.h"

#ifdef GLAIVE_SIMDE
#define AddDistanceKernels_avx512 AddDistanceKernels_avx512_simde
#endif

namespace glaive::simd {
#ifdef GLAIVE_SIMDE
void AddDistanceKernels_avx512_simde(KernelTable* table);
#endif
namespace {

// 32 registers: 16 sums, 4 + 1 operands.
constexpr int kQueriesPerBlock = 2;
constexpr int kVectorsPerBlock = 4;

inline double SquareRoot(double x) {
  const __m128d value = _mm_set_sd(x);
  return _mm_cvtsd_f64(_mm_sqrt_sd(value, value));
}

inline __m512 LoadFloats(const float* p) { return _mm512_loadu_ps(p); }
inline __m512 LoadFloats(const Half* p) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
inline __m512 LoadFloats(const BFloat16* p) {
  const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
}

inline __m512 LoadFloatsTail(const float* p, size_t count) {
  return _mm512_maskz_loadu_ps(static_cast<uint16_t>((1u << count) - 1), p);
}
template <typename T>
inline __m512 LoadFloatsTail(const T* p, size_t count) {
  T padded[16] = {};
  for (size_t i = 0; i < count; ++i) padded[i] = p[i];
  return LoadFloats(padded);
}

template <typename Element>
struct FloatOps {
  using T = Element;
  using Vec = __m512;
  using Sum = float;
  static constexpr size_t kLanes = 16;
  static constexpr size_t kMaxDim = SIZE_MAX / 2;
  static Vec Zero() { return _mm512_setzero_ps(); }
  static Vec Load(const T* p) { return LoadFloats(p); }
  static Vec LoadTail(const T* p, size_t count) { return LoadFloatsTail(p, count); }
  static Vec Add(Vec a, Vec b) { return _mm512_add_ps(a, b); }
  static Vec Sub(Vec a, Vec b) { return _mm512_sub_ps(a, b); }
  static Vec MulAdd(Vec a, Vec b, Vec sum) { return _mm512_fmadd_ps(a, b, sum); }
  static Sum Reduce(Vec v) {
    const __m256 low = _mm512_castps512_ps256(v);
    const __m256 high = _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(v), 1));
    const __m256 both = _mm256_add_ps(low, high);
    __m128 half =
        _mm_add_ps(_mm256_castps256_ps128(both), _mm256_extractf128_ps(both, 1));
    half = _mm_add_ps(half, _mm_movehl_ps(half, half));
    return _mm_cvtss_f32(_mm_add_ss(half, _mm_movehdup_ps(half)));
  }
};

struct DoubleOps {
  using T = double;
  using Vec = __m512d;
  using Sum = double;
  static constexpr size_t kLanes = 8;
  static constexpr size_t kMaxDim = SIZE_MAX / 2;
  static Vec Zero() { return _mm512_setzero_pd(); }
  static Vec Load(const T* p) { return _mm512_loadu_pd(p); }
  static Vec LoadTail(const T* p, size_t count) {
    return _mm512_maskz_loadu_pd(static_cast<uint8_t>((1u << count) - 1), p);
  }
  static Vec Add(Vec a, Vec b) { return _mm512_add_pd(a, b); }
  static Vec Sub(Vec a, Vec b) { return _mm512_sub_pd(a, b); }
  static Vec MulAdd(Vec a, Vec b, Vec sum) { return _mm512_fmadd_pd(a, b, sum); }
  static Sum Reduce(Vec v) {
    const __m256d both =
        _mm256_add_pd(_mm512_castpd512_pd256(v), _mm512_extractf64x4_pd(v, 1));
    const __m128d half =
        _mm_add_pd(_mm256_castpd256_pd128(both), _mm256_extractf128_pd(both, 1));
    return _mm_cvtsd_f64(_mm_add_sd(half, _mm_unpackhi_pd(half, half)));
  }
};

inline __m512i WidenBytes(const uint8_t* p) {
  return _mm512_cvtepu8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
inline __m512i WidenBytes(const int8_t* p) {
  return _mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}

// Bytes as 16-bit lanes; sums as 32-bit lanes, each of two neighbours. Vec holds either.
template <typename Byte>
struct ByteOps {
  using T = Byte;
  using Vec = __m512i;
  using Sum = int64_t;
  static constexpr size_t kLanes = 32;
  static constexpr size_t kMaxDim = size_t{1} << 18;  // 2^18 / 16 * 255^2 < 2^31
  static Vec Zero() { return _mm512_setzero_si512(); }
  static Vec Load(const T* p) { return WidenBytes(p); }
  static Vec LoadTail(const T* p, size_t count) {
    T padded[kLanes] = {};
    for (size_t i = 0; i < count; ++i) padded[i] = p[i];
    return WidenBytes(padded);
  }
  static Vec Add(Vec a, Vec b) { return _mm512_add_epi32(a, b); }
  static Vec Sub(Vec a, Vec b) { return _mm512_sub_epi16(a, b); }
  static Vec MulAdd(Vec a, Vec b, Vec sum) {
    return _mm512_add_epi32(sum, _mm512_madd_epi16(a, b));
  }
  static Sum Reduce(Vec v) {
    int32_t lanes[16];
    _mm512_storeu_si512(lanes, v);
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

void AddDistanceKernels_avx512(KernelTable* table) {
  SetKernels(&table->f32);
  SetKernels(&table->f16);
  SetKernels(&table->bf16);
  SetKernels(&table->f64);
  SetKernels(&table->u8);
  SetKernels(&table->i8);
}

}  // namespace glaive::simd
