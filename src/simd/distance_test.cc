// All tiers against sums in double (in integers for bytes), over odd sizes, strides and
// starts.
#include "simd/distance.h"

#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mman.h>

#include "simd/dispatch.h"

namespace glaive::simd {

void AddDistanceKernels_avx512_simde(KernelTable* table);
void AddDistanceKernels_avx512_split_simde(KernelTable* table);

namespace {

struct NamedTable {
  std::string name;
  KernelTable table;
};

const std::vector<NamedTable>& AllTables() {
  static const std::vector<NamedTable> tables = [] {
    std::vector<NamedTable> all;
    for (const Tier tier : AvailableTiers()) {
      all.push_back({std::string(TierName(tier)), KernelsOfTier(tier).ValueOrDie()});
    }
    KernelTable simde{};
    AddDistanceKernels_scalar(&simde);
    AddDistanceKernels_avx512_simde(&simde);
    all.push_back({"avx512_simde", simde});
    AddDistanceKernels_avx512_split_simde(&simde);
    all.push_back({"avx512_split_simde", simde});
    return all;
  }();
  return tables;
}

// Values

float FromHalf(Half h) {
  const int exponent = (h.bits >> 10) & 31;
  const int mantissa = h.bits & 1023;
  const float sign = (h.bits & 0x8000) != 0 ? -1.0f : 1.0f;
  if (exponent == 31) {
    return mantissa == 0 ? sign * std::numeric_limits<float>::infinity() : std::nanf("");
  }
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(mantissa), -24);
  return sign * std::ldexp(static_cast<float>(1024 + mantissa), exponent - 25);
}

float FromBFloat16(BFloat16 b) {
  const uint32_t bits = static_cast<uint32_t>(b.bits) << 16;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

double ValueOf(float x) { return x; }
double ValueOf(double x) { return x; }
double ValueOf(Half x) { return FromHalf(x); }
double ValueOf(BFloat16 x) { return FromBFloat16(x); }
double ValueOf(uint8_t x) { return x; }
double ValueOf(int8_t x) { return x; }

template <typename T>
T RandomValue(std::mt19937_64& random) {
  const uint64_t bits = random();
  if constexpr (std::is_floating_point_v<T>) {
    return std::uniform_real_distribution<T>(-2, 2)(random);
  } else if constexpr (std::is_same_v<T, Half>) {
    // Exponents 0..16: subnormal to below 4.
    return Half{static_cast<uint16_t>(((bits & 0x83ff) | ((bits >> 20) % 17 << 10)))};
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    return BFloat16{
        static_cast<uint16_t>((bits & 0x807f) | ((120 + (bits >> 20) % 9) << 7))};
  } else {
    return static_cast<T>(bits);
  }
}

template <typename T>
constexpr bool kIsByte = std::is_same_v<T, uint8_t> || std::is_same_v<T, int8_t>;

template <typename T>
const VectorKernels<T>& KernelsFor(const KernelTable& table) {
  if constexpr (std::is_same_v<T, float>) return table.f32;
  if constexpr (std::is_same_v<T, double>) return table.f64;
  if constexpr (std::is_same_v<T, Half>) return table.f16;
  if constexpr (std::is_same_v<T, BFloat16>) return table.bf16;
  if constexpr (std::is_same_v<T, uint8_t>) return table.u8;
  if constexpr (std::is_same_v<T, int8_t>) return table.i8;
}

// Reference

struct Reference {
  double l2 = 0, dot = 0, norm_a2 = 0, norm_b2 = 0;
  double dot_size = 0;  // sum of |a_i b_i|: what rounding errors are relative to
};

template <typename T>
Reference Compute(const T* a, const T* b, size_t dim) {
  Reference r;
  for (size_t i = 0; i < dim; ++i) {
    const double x = ValueOf(a[i]), y = ValueOf(b[i]);
    r.l2 += (x - y) * (x - y);
    r.dot += x * y;
    r.dot_size += std::abs(x * y);
    r.norm_a2 += x * x;
    r.norm_b2 += y * y;
  }
  return r;
}

// Half a unit in the last place of the float result, plus the error of the sum in T's
// accumulator: at most dim roundings, in practice far fewer because of the many lanes.
template <typename T>
double Tolerance(double result, double size) {
  if constexpr (kIsByte<T>) return std::abs(result) * 6e-8;
  const double epsilon = std::is_same_v<T, double> ? 1e-14 : 3e-6;
  return std::abs(result) * 1.3e-7 + (size + 1) * epsilon;
}

template <typename T>
void CheckPair(const Reference& r, float l2, float dot, float cosine,
               const std::string& where) {
  EXPECT_NEAR(l2, r.l2, Tolerance<T>(r.l2, r.l2)) << "l2 " << where;
  EXPECT_NEAR(dot, 1 - r.dot, Tolerance<T>(1 - r.dot, r.dot_size)) << "dot " << where;
  const double norms = std::sqrt(r.norm_a2) * std::sqrt(r.norm_b2);
  if (norms == 0) {
    EXPECT_TRUE(std::isnan(cosine)) << "cosine " << where;
  } else {
    EXPECT_NEAR(cosine, 1 - r.dot / norms,
                1.3e-7 + (std::is_same_v<T, double> ? 0 : 3e-6))
        << "cosine " << where;
  }
}

std::vector<size_t> Dims() {
  std::vector<size_t> dims;
  for (size_t dim = 0; dim <= 130; ++dim) dims.push_back(dim);
  for (const size_t dim : {255, 256, 257, 384, 768, 1000, 1536, 4099})
    dims.push_back(dim);
  return dims;
}

template <typename T>
void CompareWithReference(uint64_t seed) {
  std::mt19937_64 random(seed);
  for (const size_t dim : Dims()) {
    const size_t n = 1 + random() % 11;
    const size_t num_queries = 1 + random() % 7;
    const size_t stride = dim + random() % 4;
    const size_t query_stride = dim + random() % 4;
    // Starts at any element, so at any alignment that the type allows.
    const size_t shift = random() % 16;
    std::vector<T> storage(shift + n * stride + dim);
    std::vector<T> query_storage(shift + num_queries * query_stride + dim);
    for (T& value : storage) value = RandomValue<T>(random);
    for (T& value : query_storage) value = RandomValue<T>(random);
    const T* vectors = storage.data() + shift;
    const T* queries = query_storage.data() + shift;

    for (const NamedTable& named : AllTables()) {
      const VectorKernels<T>& k = KernelsFor<T>(named.table);
      const size_t out_stride = n + 3;
      std::vector<double> norms;
      for (size_t q = 0; q < num_queries; ++q) {
        norms.push_back(k.norm(queries + q * query_stride, dim));
      }
      std::vector<float> l2(n), dot(n), cosine(n);
      std::vector<float> l2_many(num_queries * out_stride, -7), dot_many = l2_many,
                                                                cosine_many = l2_many;
      k.l2_many(queries, query_stride, num_queries, vectors, stride, n, dim,
                l2_many.data(), out_stride);
      k.dot_many(queries, query_stride, num_queries, vectors, stride, n, dim,
                 dot_many.data(), out_stride);
      k.cosine_many(queries, query_stride, num_queries, norms.data(), vectors, stride, n,
                    dim, cosine_many.data(), out_stride);
      for (size_t q = 0; q < num_queries; ++q) {
        const T* query = queries + q * query_stride;
        k.l2(query, vectors, stride, n, dim, l2.data());
        k.dot(query, vectors, stride, n, dim, dot.data());
        k.cosine(query, norms[q], vectors, stride, n, dim, cosine.data());
        for (size_t i = 0; i < n; ++i) {
          const std::string where = named.name + " dim " + std::to_string(dim) +
                                    " vector " + std::to_string(i) + " of " +
                                    std::to_string(n);
          const Reference r = Compute(query, vectors + i * stride, dim);
          CheckPair<T>(r, l2[i], dot[i], cosine[i], where);
          const double norm = std::sqrt(r.norm_a2);
          EXPECT_NEAR(norms[q], norm, norm * 3e-6) << where;
          // The batch forms agree to the bit.
          const size_t at = q * out_stride + i;
          EXPECT_EQ(std::memcmp(&l2_many[at], &l2[i], sizeof(float)), 0) << where;
          EXPECT_EQ(std::memcmp(&dot_many[at], &dot[i], sizeof(float)), 0) << where;
          if (!std::isnan(cosine[i])) {
            EXPECT_EQ(cosine_many[at], cosine[i]) << where;
          }
        }
        for (size_t i = n; i < out_stride; ++i) {
          EXPECT_EQ(l2_many[q * out_stride + i], -7) << "wrote past a row";
        }
      }
      if (testing::Test::HasFailure()) return;
    }
  }
}

template <typename T>
class DistanceTest : public testing::Test {};
using Types = testing::Types<float, double, Half, BFloat16, uint8_t, int8_t>;
TYPED_TEST_SUITE(DistanceTest, Types);

TYPED_TEST(DistanceTest, EveryTierMatchesTheReference) {
  CompareWithReference<TypeParam>(1);
  const char* given = std::getenv("GLAIVE_TEST_SEED");
  const uint64_t fresh =
      given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
  std::printf("seed %llu (GLAIVE_TEST_SEED repeats it)\n",
              static_cast<unsigned long long>(fresh));
  CompareWithReference<TypeParam>(fresh);
}

TYPED_TEST(DistanceTest, EqualVectorsAreAtEqualDistances) {
  using T = TypeParam;
  std::mt19937_64 random(2);
  for (const size_t dim : {3, 16, 33, 100, 384}) {
    constexpr size_t kN = 13;
    std::vector<T> one(dim), vectors, query(dim);
    for (T& value : one) value = RandomValue<T>(random);
    for (T& value : query) value = RandomValue<T>(random);
    for (size_t i = 0; i < kN; ++i) vectors.insert(vectors.end(), one.begin(), one.end());
    for (const NamedTable& named : AllTables()) {
      const VectorKernels<T>& k = KernelsFor<T>(named.table);
      std::vector<float> l2(kN), dot(kN), cosine(kN);
      k.l2(query.data(), vectors.data(), dim, kN, dim, l2.data());
      k.dot(query.data(), vectors.data(), dim, kN, dim, dot.data());
      k.cosine(query.data(), k.norm(query.data(), dim), vectors.data(), dim, kN, dim,
               cosine.data());
      for (size_t i = 1; i < kN; ++i) {
        EXPECT_EQ(l2[i], l2[0]) << named.name;
        EXPECT_EQ(dot[i], dot[0]) << named.name;
        EXPECT_EQ(cosine[i], cosine[0]) << named.name;
      }
      float self;
      k.l2(one.data(), one.data(), dim, 1, dim, &self);
      EXPECT_EQ(self, 0);
    }
  }
}

// Two pages, the second of which must not be touched.
class GuardedPage {
 public:
  GuardedPage() : size_(static_cast<size_t>(::sysconf(_SC_PAGESIZE))) {
    base_ = static_cast<uint8_t*>(::mmap(nullptr, 2 * size_, PROT_READ | PROT_WRITE,
                                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ::mprotect(base_ + size_, size_, PROT_NONE);
  }
  ~GuardedPage() { ::munmap(base_, 2 * size_); }
  uint8_t* end() { return base_ + size_; }

 private:
  size_t size_;
  uint8_t* base_;
};

TYPED_TEST(DistanceTest, ReadsNothingPastTheEnd) {
  using T = TypeParam;
  GuardedPage page_1, page_2;
  for (size_t dim = 1; dim <= 130; ++dim) {
    T* query = reinterpret_cast<T*>(page_1.end()) - dim;
    T* vectors = reinterpret_cast<T*>(page_2.end()) - 3 * dim;
    for (const NamedTable& named : AllTables()) {
      const VectorKernels<T>& k = KernelsFor<T>(named.table);
      float out[3];
      k.l2(query, vectors, dim, 3, dim, out);
      EXPECT_EQ(out[2], 0);
      k.dot(query, vectors, dim, 3, dim, out);
      EXPECT_EQ(out[2], 1);
      k.cosine(query, 1, vectors, dim, 3, dim, out);
      k.l2_many(query, dim, 1, vectors, dim, 3, dim, out, 3);
      EXPECT_EQ(k.norm(query, dim), 0);
    }
  }
}

TEST(Distance, NanAndInfinityTravel) {
  const float inf = std::numeric_limits<float>::infinity();
  for (const NamedTable& named : AllTables()) {
    for (const size_t dim : {1, 7, 16, 33, 100}) {
      for (size_t at = 0; at < dim; ++at) {
        std::vector<float> query(dim, 0.5f), vector(dim, 1.0f);
        std::vector<double> query_d(dim, 0.5), vector_d(dim, 1.0);
        float out;
        vector[at] = std::nanf("");
        named.table.f32.l2(query.data(), vector.data(), dim, 1, dim, &out);
        EXPECT_TRUE(std::isnan(out)) << named.name;
        named.table.f32.dot(query.data(), vector.data(), dim, 1, dim, &out);
        EXPECT_TRUE(std::isnan(out)) << named.name;
        named.table.f32.cosine(query.data(), 1, vector.data(), dim, 1, dim, &out);
        EXPECT_TRUE(std::isnan(out)) << named.name;
        vector[at] = -inf;
        named.table.f32.l2(query.data(), vector.data(), dim, 1, dim, &out);
        EXPECT_EQ(out, inf) << named.name;
        named.table.f32.dot(query.data(), vector.data(), dim, 1, dim, &out);
        EXPECT_EQ(out, inf) << named.name;
        vector_d[at] = std::nan("");
        named.table.f64.l2(query_d.data(), vector_d.data(), dim, 1, dim, &out);
        EXPECT_TRUE(std::isnan(out)) << named.name;
      }
    }
  }
}

TEST(Distance, EveryHalfAndBFloat16IsReadExactly) {
  const Half one_half{0x3c00};
  const BFloat16 one_bfloat16{0x3f80};
  for (const NamedTable& named : AllTables()) {
    for (uint32_t bits = 0; bits < 65536; ++bits) {
      // In a place that changes: every lane and the tail see every value class.
      Half halves[40] = {}, half_query[40] = {};
      BFloat16 bfloats[40] = {}, bfloat_query[40] = {};
      const size_t at = bits % 37;
      halves[at].bits = bfloats[at].bits = static_cast<uint16_t>(bits);
      half_query[at] = one_half;
      bfloat_query[at] = one_bfloat16;
      float out;
      named.table.f16.dot(half_query, halves, 40, 1, 37, &out);
      const float half = FromHalf(halves[at]);
      ASSERT_TRUE(std::isnan(half) ? std::isnan(out) : out == 1.0f - half)
          << named.name << " half " << bits << " " << out;
      named.table.bf16.dot(bfloat_query, bfloats, 40, 1, 37, &out);
      const float bfloat = FromBFloat16(bfloats[at]);
      ASSERT_TRUE(std::isnan(bfloat) ? std::isnan(out) : out == 1.0f - bfloat)
          << named.name << " bfloat16 " << bits << " " << out;
      // Squares of halves are exact in float, so the norm is the magnitude, subnormals
      // included.
      if (std::isfinite(half)) {
        ASSERT_EQ(named.table.f16.norm(halves, 37), std::abs(half)) << named.name;
      }
    }
  }
}

TEST(Distance, LongByteVectorsDoNotOverflow) {
  for (const size_t dim : {65'536, 131'072, 262'144, 1'000'003}) {
    std::vector<uint8_t> zeros(dim, 0), full(dim, 255);
    std::vector<int8_t> low(dim, -128), high(dim, 127);
    const double count = static_cast<double>(dim);
    for (const NamedTable& named : AllTables()) {
      float out;
      named.table.u8.l2(zeros.data(), full.data(), dim, 1, dim, &out);
      EXPECT_EQ(out, static_cast<float>(count * 255 * 255)) << named.name;
      named.table.u8.dot(full.data(), full.data(), dim, 1, dim, &out);
      EXPECT_EQ(out, static_cast<float>(1 - count * 255 * 255)) << named.name;
      named.table.i8.l2(low.data(), high.data(), dim, 1, dim, &out);
      EXPECT_EQ(out, static_cast<float>(count * 255 * 255)) << named.name;
      named.table.i8.dot(low.data(), low.data(), dim, 1, dim, &out);
      EXPECT_EQ(out, static_cast<float>(1 - count * 128 * 128)) << named.name;
      named.table.u8.cosine(full.data(), named.table.u8.norm(full.data(), dim),
                            full.data(), dim, 1, dim, &out);
      EXPECT_NEAR(out, 0, 1e-12) << named.name;
    }
  }
}

TEST(Distance, HammingCountsBits) {
  std::mt19937_64 random(3);
  for (const size_t dim : Dims()) {
    const size_t n = 1 + random() % 5, num_queries = 1 + random() % 3;
    const size_t shift = random() % 16, stride = dim + random() % 3;
    std::vector<uint8_t> storage(shift + n * stride + dim);
    std::vector<uint8_t> queries(shift + num_queries * stride + dim);
    for (uint8_t& byte : storage) byte = static_cast<uint8_t>(random());
    for (uint8_t& byte : queries) byte = static_cast<uint8_t>(random());
    for (const NamedTable& named : AllTables()) {
      std::vector<float> many(num_queries * n), one(n);
      named.table.bits.hamming_many(queries.data() + shift, stride, num_queries,
                                    storage.data() + shift, stride, n, dim, many.data(),
                                    n);
      for (size_t q = 0; q < num_queries; ++q) {
        const uint8_t* query = queries.data() + shift + q * stride;
        named.table.bits.hamming(query, storage.data() + shift, stride, n, dim,
                                 one.data());
        for (size_t i = 0; i < n; ++i) {
          int expected = 0;
          for (size_t b = 0; b < dim; ++b) {
            const int differing = query[b] ^ storage[shift + i * stride + b];
            for (int bit = 0; bit < 8; ++bit) expected += (differing >> bit) & 1;
          }
          ASSERT_EQ(one[i], static_cast<float>(expected)) << named.name << " " << dim;
          ASSERT_EQ(many[q * n + i], one[i]) << named.name << " " << dim;
        }
      }
    }
  }
}

}  // namespace
}  // namespace glaive::simd
