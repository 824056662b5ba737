// Distance kernels for AVX-512 (F, BW, DQ, VL). Also compiled with SIMDe for the tests,
// so that they are checked on machines without AVX-512.
#ifdef GLAIVE_SIMDE
#include "simd/simde_avx512.h"
#else
#include <immintrin.h>
#endif

#include "simd/distance.h"
#include "simd/kernel_macros.h"

#ifdef GLAIVE_SIMDE
#define AddDistanceKernels_avx512 AddDistanceKernels_avx512_simde
#define AddDistanceKernels_avx512_split AddDistanceKernels_avx512_split_simde
#endif

namespace glaive::simd {
#ifdef GLAIVE_SIMDE
void AddDistanceKernels_avx512_simde(KernelTable* table);
void AddDistanceKernels_avx512_split_simde(KernelTable* table);
#endif
namespace {

// 32 registers: 24 sums (two per pair), 3 + 1 operands, a difference.
constexpr int kQueriesPerBlock = 4;
constexpr int kVectorsPerBlock = 3;

inline double SquareRoot(double x) {
  const __m128d value = _mm_set_sd(x);
  return _mm_cvtsd_f64(_mm_sqrt_sd(value, value));
}

GLAIVE_INLINE __m512 LoadFloats(const float* p) { return _mm512_loadu_ps(p); }
GLAIVE_INLINE __m512 LoadFloats(const Half* p) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
GLAIVE_INLINE __m512 LoadFloats(const BFloat16* p) {
  const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
}

GLAIVE_INLINE __m512 LoadFloatsTail(const float* p, size_t count) {
  return _mm512_maskz_loadu_ps(static_cast<uint16_t>((1u << count) - 1), p);
}
template <typename T>
GLAIVE_INLINE __m512 LoadFloatsTail(const T* p, size_t count) {
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
  static constexpr size_t kMaxDim = 0;  // unlimited
  GLAIVE_INLINE static Vec Zero() { return _mm512_setzero_ps(); }
  GLAIVE_INLINE static Vec Load(const T* p) { return LoadFloats(p); }
  GLAIVE_INLINE static Vec LoadTail(const T* p, size_t count) {
    return LoadFloatsTail(p, count);
  }
  GLAIVE_INLINE static Vec Add(Vec a, Vec b) { return _mm512_add_ps(a, b); }
  GLAIVE_INLINE static Vec Sub(Vec a, Vec b) { return _mm512_sub_ps(a, b); }
  GLAIVE_INLINE static Vec MulAdd(Vec a, Vec b, Vec sum) {
    return _mm512_fmadd_ps(a, b, sum);
  }
  GLAIVE_INLINE static Sum Reduce(Vec v) {
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
  static constexpr size_t kMaxDim = 0;  // unlimited
  GLAIVE_INLINE static Vec Zero() { return _mm512_setzero_pd(); }
  GLAIVE_INLINE static Vec Load(const T* p) { return _mm512_loadu_pd(p); }
  GLAIVE_INLINE static Vec LoadTail(const T* p, size_t count) {
    return _mm512_maskz_loadu_pd(static_cast<uint8_t>((1u << count) - 1), p);
  }
  GLAIVE_INLINE static Vec Add(Vec a, Vec b) { return _mm512_add_pd(a, b); }
  GLAIVE_INLINE static Vec Sub(Vec a, Vec b) { return _mm512_sub_pd(a, b); }
  GLAIVE_INLINE static Vec MulAdd(Vec a, Vec b, Vec sum) {
    return _mm512_fmadd_pd(a, b, sum);
  }
  GLAIVE_INLINE static Sum Reduce(Vec v) {
    const __m256d both =
        _mm256_add_pd(_mm512_castpd512_pd256(v), _mm512_extractf64x4_pd(v, 1));
    const __m128d half =
        _mm_add_pd(_mm256_castpd256_pd128(both), _mm256_extractf128_pd(both, 1));
    return _mm_cvtsd_f64(_mm_add_sd(half, _mm_unpackhi_pd(half, half)));
  }
};

GLAIVE_INLINE __m512i WidenBytes(const uint8_t* p) {
  return _mm512_cvtepu8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
GLAIVE_INLINE __m512i WidenBytes(const int8_t* p) {
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
  GLAIVE_INLINE static Vec Zero() { return _mm512_setzero_si512(); }
  GLAIVE_INLINE static Vec Load(const T* p) { return WidenBytes(p); }
  GLAIVE_INLINE static Vec LoadTail(const T* p, size_t count) {
    T padded[kLanes] = {};
    for (size_t i = 0; i < count; ++i) padded[i] = p[i];
    return WidenBytes(padded);
  }
  GLAIVE_INLINE static Vec Add(Vec a, Vec b) { return _mm512_add_epi32(a, b); }
  GLAIVE_INLINE static Vec Sub(Vec a, Vec b) { return _mm512_sub_epi16(a, b); }
  GLAIVE_INLINE static Vec MulAdd(Vec a, Vec b, Vec sum) {
    return _mm512_add_epi32(sum, _mm512_madd_epi16(a, b));
  }
  GLAIVE_INLINE static Sum Reduce(Vec v) {
    int32_t lanes[16];
    _mm512_storeu_si512(lanes, v);
    Sum sum = 0;
    for (const int32_t lane : lanes) sum += lane;
    return sum;
  }
};

// The same lanes in two registers of half the size: the same sums to the bit, from twice
// as many loads. That is what a CPU that runs 512-bit operations in two halves wants when
// it reads from memory.
struct FloatPairOps {
  using T = float;
  struct Vec {
    __m256 low, high;
  };
  using Sum = float;
  static constexpr size_t kLanes = 16;
  static constexpr size_t kMaxDim = 0;  // unlimited
  GLAIVE_INLINE static Vec Zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
  GLAIVE_INLINE static Vec Load(const T* p) {
    return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)};
  }
  GLAIVE_INLINE static Vec LoadTail(const T* p, size_t count) {
    const __m512d tail = _mm512_castps_pd(LoadFloatsTail(p, count));
    return {_mm256_castpd_ps(_mm512_castpd512_pd256(tail)),
            _mm256_castpd_ps(_mm512_extractf64x4_pd(tail, 1))};
  }
  GLAIVE_INLINE static Vec Add(Vec a, Vec b) {
    return {_mm256_add_ps(a.low, b.low), _mm256_add_ps(a.high, b.high)};
  }
  GLAIVE_INLINE static Vec Sub(Vec a, Vec b) {
    return {_mm256_sub_ps(a.low, b.low), _mm256_sub_ps(a.high, b.high)};
  }
  GLAIVE_INLINE static Vec MulAdd(Vec a, Vec b, Vec sum) {
    return {_mm256_fmadd_ps(a.low, b.low, sum.low),
            _mm256_fmadd_ps(a.high, b.high, sum.high)};
  }
  GLAIVE_INLINE static Sum Reduce(Vec v) {
    const __m512d low = _mm512_castpd256_pd512(_mm256_castps_pd(v.low));
    return FloatOps<float>::Reduce(
        _mm512_castpd_ps(_mm512_insertf64x4(low, _mm256_castps_pd(v.high), 1)));
  }
};

struct DoublePairOps {
  using T = double;
  struct Vec {
    __m256d low, high;
  };
  using Sum = double;
  static constexpr size_t kLanes = 8;
  static constexpr size_t kMaxDim = 0;  // unlimited
  GLAIVE_INLINE static Vec Zero() { return {_mm256_setzero_pd(), _mm256_setzero_pd()}; }
  GLAIVE_INLINE static Vec Load(const T* p) {
    return {_mm256_loadu_pd(p), _mm256_loadu_pd(p + 4)};
  }
  GLAIVE_INLINE static Vec LoadTail(const T* p, size_t count) {
    const __m512d tail = DoubleOps::LoadTail(p, count);
    return {_mm512_castpd512_pd256(tail), _mm512_extractf64x4_pd(tail, 1)};
  }
  GLAIVE_INLINE static Vec Add(Vec a, Vec b) {
    return {_mm256_add_pd(a.low, b.low), _mm256_add_pd(a.high, b.high)};
  }
  GLAIVE_INLINE static Vec Sub(Vec a, Vec b) {
    return {_mm256_sub_pd(a.low, b.low), _mm256_sub_pd(a.high, b.high)};
  }
  GLAIVE_INLINE static Vec MulAdd(Vec a, Vec b, Vec sum) {
    return {_mm256_fmadd_pd(a.low, b.low, sum.low),
            _mm256_fmadd_pd(a.high, b.high, sum.high)};
  }
  GLAIVE_INLINE static Sum Reduce(Vec v) {
    return DoubleOps::Reduce(
        _mm512_insertf64x4(_mm512_castpd256_pd512(v.low), v.high, 1));
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

// Set bits of each byte, by looking its two halves up.
inline __m512i CountBytes(__m512i bytes) {
  const __m512i table = _mm512_broadcast_i32x4(
      _mm_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4));
  const __m512i low_half = _mm512_set1_epi8(15);
  const __m512i low = _mm512_and_si512(bytes, low_half);
  const __m512i high = _mm512_and_si512(_mm512_srli_epi16(bytes, 4), low_half);
  return _mm512_add_epi8(_mm512_shuffle_epi8(table, low),
                         _mm512_shuffle_epi8(table, high));
}

inline uint64_t CountBits(const uint8_t* a, const uint8_t* b, size_t bytes) {
  if (bytes < 64) return CountTailBits(a, b, bytes);
  const __m512i zero = _mm512_setzero_si512();
  __m512i sums = zero;
  size_t at = 0;
  for (; at + 64 <= bytes; at += 64) {
    const __m512i differing =
        _mm512_xor_si512(_mm512_loadu_si512(a + at), _mm512_loadu_si512(b + at));
    sums = _mm512_add_epi64(sums, _mm512_sad_epu8(CountBytes(differing), zero));
  }
  const __m256i both =
      _mm256_add_epi64(_mm512_castsi512_si256(sums), _mm512_extracti64x4_epi64(sums, 1));
  const __m128i half =
      _mm_add_epi64(_mm256_castsi256_si128(both), _mm256_extracti128_si256(both, 1));
  const uint64_t count = static_cast<uint64_t>(_mm_cvtsi128_si64(half)) +
                         static_cast<uint64_t>(_mm_extract_epi64(half, 1));
  return count + CountTailBits(a + at, b + at, bytes - at);
}

#include "simd/hamming-inl.h"

}  // namespace

void AddDistanceKernels_avx512(KernelTable* table) {
  SetKernels(&table->f32);
  SetKernels(&table->f16);
  SetKernels(&table->bf16);
  SetKernels(&table->f64);
  SetKernels(&table->u8);
  SetKernels(&table->i8);
  table->bits = {&Hamming, &HammingMany};
}

void AddDistanceKernels_avx512_split(KernelTable* table) {
  table->f32.l2 = &OneToMany<FloatPairOps, Step::kL2>;
  table->f32.dot = &OneToMany<FloatPairOps, Step::kDot>;
  table->f32.cosine = &OneToManyCosine<FloatPairOps>;
  table->f64.l2 = &OneToMany<DoublePairOps, Step::kL2>;
  table->f64.dot = &OneToMany<DoublePairOps, Step::kDot>;
  table->f64.cosine = &OneToManyCosine<DoublePairOps>;
}

}  // namespace glaive::simd
