// Distance kernels for every CPU: the specification that the other tiers are compared
// with. Written with the compiler's portable vectors of 16 bytes.
#include "simd/distance.h"
#include "simd/kernel_macros.h"

namespace glaive::simd {
namespace {

constexpr int kQueriesPerBlock = 2;
constexpr int kVectorsPerBlock = 2;

typedef float Floats __attribute__((vector_size(16)));
typedef double Doubles __attribute__((vector_size(16)));
typedef int32_t Ints __attribute__((vector_size(16)));
typedef uint32_t Words __attribute__((vector_size(16)));
typedef uint16_t Halves __attribute__((vector_size(8)));
typedef uint8_t Bytes4 __attribute__((vector_size(4)));
typedef int8_t SignedBytes4 __attribute__((vector_size(4)));

template <typename To, typename From>
inline To LoadAs(const From* from) {
  To to;
  __builtin_memcpy(&to, from, sizeof to);
  return to;
}

double SquareRoot(double x) { return __builtin_sqrt(x); }

GLAIVE_INLINE Floats Widen(Words words) {
  Floats floats;
  __builtin_memcpy(&floats, &words, sizeof floats);
  return floats;
}

GLAIVE_INLINE Floats LoadFloats(const float* p) { return LoadAs<Floats>(p); }

GLAIVE_INLINE Floats LoadFloats(const BFloat16* p) {
  return Widen(__builtin_convertvector(LoadAs<Halves>(p), Words) << 16);
}

// Exact for every half, subnormals included, without touching a subnormal float (slow,
// and flushed to zero in some programs).
GLAIVE_INLINE Floats LoadFloats(const Half* p) {
  const Words half = __builtin_convertvector(LoadAs<Halves>(p), Words);
  const Words magnitude = (half & 0x7fff) << 13;
  const Words exponent = magnitude & 0x0f800000;
  const Words sign = (half & 0x8000) << 16;
  const Words rebias = magnitude + (112u << 23);
  const Words special = Words(exponent == 0x0f800000) & (112u << 23);
  // 2^-14 * (1 + m) - 2^-14: the subtraction normalizes.
  const Words one = magnitude + (113u << 23);
  const Words unit = Words{} + (113u << 23);
  const Floats small = Widen(one) - Widen(unit);
  const Words small_bits = LoadAs<Words>(&small);
  const Words is_small = Words(exponent == 0);
  return Widen(sign | (is_small & small_bits) | (~is_small & (rebias + special)));
}

template <typename Element>
struct FloatOps {
  using T = Element;
  using Vec = Floats;
  using Sum = float;
  static constexpr size_t kLanes = 4;
  static constexpr size_t kMaxDim = 0;  // unlimited
  GLAIVE_INLINE static Vec Zero() { return Vec{}; }
  GLAIVE_INLINE static Vec Load(const T* p) { return LoadFloats(p); }
  GLAIVE_INLINE static Vec LoadTail(const T* p, size_t count) {
    T padded[kLanes] = {};
    for (size_t i = 0; i < count; ++i) padded[i] = p[i];
    return LoadFloats(padded);
  }
  GLAIVE_INLINE static Vec Add(Vec a, Vec b) { return a + b; }
  GLAIVE_INLINE static Vec Sub(Vec a, Vec b) { return a - b; }
  GLAIVE_INLINE static Vec MulAdd(Vec a, Vec b, Vec sum) { return sum + a * b; }
  GLAIVE_INLINE static Sum Reduce(Vec v) { return (v[0] + v[2]) + (v[1] + v[3]); }
};

struct DoubleOps {
  using T = double;
  using Vec = Doubles;
  using Sum = double;
  static constexpr size_t kLanes = 2;
  static constexpr size_t kMaxDim = 0;  // unlimited
  GLAIVE_INLINE static Vec Zero() { return Vec{}; }
  GLAIVE_INLINE static Vec Load(const T* p) { return LoadAs<Vec>(p); }
  GLAIVE_INLINE static Vec LoadTail(const T* p, size_t) { return Vec{*p, 0}; }
  GLAIVE_INLINE static Vec Add(Vec a, Vec b) { return a + b; }
  GLAIVE_INLINE static Vec Sub(Vec a, Vec b) { return a - b; }
  GLAIVE_INLINE static Vec MulAdd(Vec a, Vec b, Vec sum) { return sum + a * b; }
  GLAIVE_INLINE static Sum Reduce(Vec v) { return v[0] + v[1]; }
};

template <typename Byte, typename Bytes>
struct ByteOps {
  using T = Byte;
  using Vec = Ints;
  using Sum = int64_t;
  static constexpr size_t kLanes = 4;
  static constexpr size_t kMaxDim = size_t{1} << 16;  // 2^16 / 4 * 255^2 < 2^31
  GLAIVE_INLINE static Vec Zero() { return Vec{}; }
  GLAIVE_INLINE static Vec Load(const T* p) {
    return __builtin_convertvector(LoadAs<Bytes>(p), Ints);
  }
  GLAIVE_INLINE static Vec LoadTail(const T* p, size_t count) {
    T padded[kLanes] = {};
    for (size_t i = 0; i < count; ++i) padded[i] = p[i];
    return Load(padded);
  }
  GLAIVE_INLINE static Vec Add(Vec a, Vec b) { return a + b; }
  GLAIVE_INLINE static Vec Sub(Vec a, Vec b) { return a - b; }
  GLAIVE_INLINE static Vec MulAdd(Vec a, Vec b, Vec sum) { return sum + a * b; }
  GLAIVE_INLINE static Sum Reduce(Vec v) {
    return (static_cast<Sum>(v[0]) + v[1]) + (static_cast<Sum>(v[2]) + v[3]);
  }
};

template <typename T>
struct Ops : FloatOps<T> {};
template <>
struct Ops<double> : DoubleOps {};
template <>
struct Ops<uint8_t> : ByteOps<uint8_t, Bytes4> {};
template <>
struct Ops<int8_t> : ByteOps<int8_t, SignedBytes4> {};

#include "simd/distance-inl.h"

inline uint64_t CountBits(const uint8_t* a, const uint8_t* b, size_t bytes) {
  uint64_t even = 0, odd = 0;
  size_t at = 0;
  for (; at + 16 <= bytes; at += 16) {
    even += static_cast<uint64_t>(
        __builtin_popcountll(LoadAs<uint64_t>(a + at) ^ LoadAs<uint64_t>(b + at)));
    odd += static_cast<uint64_t>(__builtin_popcountll(LoadAs<uint64_t>(a + at + 8) ^
                                                      LoadAs<uint64_t>(b + at + 8)));
  }
  return even + odd + CountTailBits(a + at, b + at, bytes - at);
}

#include "simd/hamming-inl.h"

}  // namespace

void AddDistanceKernels_scalar(KernelTable* table) {
  SetKernels(&table->f32);
  SetKernels(&table->f16);
  SetKernels(&table->bf16);
  SetKernels(&table->f64);
  SetKernels(&table->u8);
  SetKernels(&table->i8);
  table->bits = {&Hamming, &HammingMany};
}

}  // namespace glaive::simd
