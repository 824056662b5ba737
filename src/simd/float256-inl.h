// Vector operations on 256-bit registers for floats and doubles, shared by the tiers that
// have them. Included like distance-inl.h, before it. GLAIVE_HAS_FMA: fused multiply-add
// and half conversion exist.

GLAIVE_INLINE __m256 LoadFloats(const float* p) { return _mm256_loadu_ps(p); }

GLAIVE_INLINE __m256 LoadFloats(const BFloat16* p) {
  const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  const __m128i zero = _mm_setzero_si128();
  const __m128 low = _mm_castsi128_ps(_mm_unpacklo_epi16(zero, bits));
  const __m128 high = _mm_castsi128_ps(_mm_unpackhi_epi16(zero, bits));
  return _mm256_insertf128_ps(_mm256_castps128_ps256(low), high, 1);
}

#ifdef GLAIVE_HAS_FMA
GLAIVE_INLINE __m256 LoadFloats(const Half* p) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
#endif

inline double SquareRoot(double x) {
  const __m128d value = _mm_set_sd(x);
  return _mm_cvtsd_f64(_mm_sqrt_sd(value, value));
}

// All bits set in the first `count` of 8 lanes of 4 bytes.
inline __m256i FirstLanes(size_t count) {
  alignas(32) static const int32_t kMask[16] = {-1, -1, -1, -1, -1, -1, -1, -1,
                                                0,  0,  0,  0,  0,  0,  0,  0};
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(kMask + 8 - count));
}

GLAIVE_INLINE __m256 LoadFloatsTail(const float* p, size_t count) {
  return _mm256_maskload_ps(p, FirstLanes(count));
}

template <typename T>
GLAIVE_INLINE __m256 LoadFloatsTail(const T* p, size_t count) {
  T padded[8] = {};
  for (size_t i = 0; i < count; ++i) padded[i] = p[i];
  return LoadFloats(padded);
}

template <typename Element>
struct FloatOps {
  using T = Element;
  using Vec = __m256;
  using Sum = float;
  static constexpr size_t kLanes = 8;
  static constexpr size_t kMaxDim = 0;  // unlimited
  GLAIVE_INLINE static Vec Zero() { return _mm256_setzero_ps(); }
  GLAIVE_INLINE static Vec Load(const T* p) { return LoadFloats(p); }
  GLAIVE_INLINE static Vec LoadTail(const T* p, size_t count) {
    return LoadFloatsTail(p, count);
  }
  GLAIVE_INLINE static Vec Add(Vec a, Vec b) { return _mm256_add_ps(a, b); }
  GLAIVE_INLINE static Vec Sub(Vec a, Vec b) { return _mm256_sub_ps(a, b); }
  GLAIVE_INLINE static Vec MulAdd(Vec a, Vec b, Vec sum) {
#ifdef GLAIVE_HAS_FMA
    return _mm256_fmadd_ps(a, b, sum);
#else
    return _mm256_add_ps(_mm256_mul_ps(a, b), sum);
#endif
  }
  GLAIVE_INLINE static Sum Reduce(Vec v) {
    __m128 half = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    half = _mm_add_ps(half, _mm_movehl_ps(half, half));
    return _mm_cvtss_f32(_mm_add_ss(half, _mm_movehdup_ps(half)));
  }
};

struct DoubleOps {
  using T = double;
  using Vec = __m256d;
  using Sum = double;
  static constexpr size_t kLanes = 4;
  static constexpr size_t kMaxDim = 0;  // unlimited
  GLAIVE_INLINE static Vec Zero() { return _mm256_setzero_pd(); }
  GLAIVE_INLINE static Vec Load(const T* p) { return _mm256_loadu_pd(p); }
  GLAIVE_INLINE static Vec LoadTail(const T* p, size_t count) {
    return _mm256_maskload_pd(p, FirstLanes(2 * count));
  }
  GLAIVE_INLINE static Vec Add(Vec a, Vec b) { return _mm256_add_pd(a, b); }
  GLAIVE_INLINE static Vec Sub(Vec a, Vec b) { return _mm256_sub_pd(a, b); }
  GLAIVE_INLINE static Vec MulAdd(Vec a, Vec b, Vec sum) {
#ifdef GLAIVE_HAS_FMA
    return _mm256_fmadd_pd(a, b, sum);
#else
    return _mm256_add_pd(_mm256_mul_pd(a, b), sum);
#endif
  }
  GLAIVE_INLINE static Sum Reduce(Vec v) {
    const __m128d half =
        _mm_add_pd(_mm256_castpd256_pd128(v), _mm256_extractf128_pd(v, 1));
    return _mm_cvtsd_f64(_mm_add_sd(half, _mm_unpackhi_pd(half, half)));
  }
};
