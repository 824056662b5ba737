// Distance kernels for CPUs with AVX2, FMA and F16C (Haswell, Zen).
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

GLAIVE_INLINE __m256i Load32(const void* p) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(p));
}

GLAIVE_INLINE __m256i WidenBytes(const uint8_t* p) {
  return _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
GLAIVE_INLINE __m256i WidenBytes(const int8_t* p) {
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
  GLAIVE_INLINE static Vec Zero() { return _mm256_setzero_si256(); }
  GLAIVE_INLINE static Vec Load(const T* p) { return WidenBytes(p); }
  GLAIVE_INLINE static Vec LoadTail(const T* p, size_t count) {
    T padded[kLanes] = {};
    for (size_t i = 0; i < count; ++i) padded[i] = p[i];
    return WidenBytes(padded);
  }
  GLAIVE_INLINE static Vec Add(Vec a, Vec b) { return _mm256_add_epi32(a, b); }
  GLAIVE_INLINE static Vec Sub(Vec a, Vec b) { return _mm256_sub_epi16(a, b); }
  GLAIVE_INLINE static Vec MulAdd(Vec a, Vec b, Vec sum) {
    return _mm256_add_epi32(sum, _mm256_madd_epi16(a, b));
  }
  GLAIVE_INLINE static Sum Reduce(Vec v) {
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

// Set bits of each byte, by looking its two halves up.
inline __m256i CountBytes(__m256i bytes) {
  const __m256i table =
      _mm256_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4,  //
                       0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4);
  const __m256i low_half = _mm256_set1_epi8(15);
  const __m256i low = _mm256_and_si256(bytes, low_half);
  const __m256i high = _mm256_and_si256(_mm256_srli_epi16(bytes, 4), low_half);
  return _mm256_add_epi8(_mm256_shuffle_epi8(table, low),
                         _mm256_shuffle_epi8(table, high));
}

inline uint64_t CountBits(const uint8_t* a, const uint8_t* b, size_t bytes) {
  if (bytes < 32) return CountTailBits(a, b, bytes);
  const __m256i zero = _mm256_setzero_si256();
  __m256i sums = zero;
  size_t at = 0;
  for (; at + 64 <= bytes; at += 64) {
    const __m256i first = _mm256_xor_si256(Load32(a + at), Load32(b + at));
    const __m256i second = _mm256_xor_si256(Load32(a + at + 32), Load32(b + at + 32));
    const __m256i counts = _mm256_add_epi8(CountBytes(first), CountBytes(second));
    sums = _mm256_add_epi64(sums, _mm256_sad_epu8(counts, zero));
  }
  for (; at + 32 <= bytes; at += 32) {
    const __m256i differing = _mm256_xor_si256(Load32(a + at), Load32(b + at));
    sums = _mm256_add_epi64(sums, _mm256_sad_epu8(CountBytes(differing), zero));
  }
  const __m128i half =
      _mm_add_epi64(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
  uint64_t count = static_cast<uint64_t>(_mm_cvtsi128_si64(half)) +
                   static_cast<uint64_t>(_mm_extract_epi64(half, 1));
  return count + CountTailBits(a + at, b + at, bytes - at);
}

#include "simd/hamming-inl.h"

}  // namespace

void AddDistanceKernels_avx2_fma(KernelTable* table) {
  SetKernels(&table->f32);
  SetKernels(&table->f16);
  SetKernels(&table->bf16);
  SetKernels(&table->f64);
  SetKernels(&table->u8);
  SetKernels(&table->i8);
  table->bits = {&Hamming, &HammingMany};
}

}  // namespace glaive::simd
