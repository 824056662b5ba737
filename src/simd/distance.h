// Distances between vectors: types of the kernels and of their table. Plain pointers and
// sizes only, so that no inline function crosses between files that are compiled for
// different CPUs.
//
// Distances are those of the table format: l2 is the squared distance, dot is 1 - a·b,
// cosine is 1 - cos(a, b), Hamming counts differing bits. Sums are kept in float for
// float, half and bfloat16, in double for double, exactly for bytes; results are float.
// NaN and infinity travel as IEEE says; the cosine of a zero vector is NaN.
//
// Within one table the distance of two vectors does not depend on where they stand in a
// batch, nor on which of the batch forms computed it: equal vectors are at equal
// distances, to the bit.
//
// Kernels check nothing and cannot fail. No alignment is needed. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>

namespace glaive::simd {

struct Half {
  uint16_t bits;
};
struct BFloat16 {
  uint16_t bits;
};

// `dim` counts elements; strides are in elements, from the start of one vector to the
// next.
template <typename T>
struct VectorKernels {
  // out[i] = distance(query, vectors + i * stride), i < n.
  using OneToMany = void (*)(const T* query, const T* vectors, size_t stride, size_t n,
                             size_t dim, float* out);
  using OneToManyCosine = void (*)(const T* query, double query_norm, const T* vectors,
                                   size_t stride, size_t n, size_t dim, float* out);
  // out[q * out_stride + i] = distance(queries + q * query_stride, vectors + i * stride).
  // Blocked for registers and cache: far faster than a pass per query.
  using ManyToMany = void (*)(const T* queries, size_t query_stride, size_t num_queries,
                              const T* vectors, size_t stride, size_t n, size_t dim,
                              float* out, size_t out_stride);
  using ManyToManyCosine = void (*)(const T* queries, size_t query_stride,
                                    size_t num_queries, const double* query_norms,
                                    const T* vectors, size_t stride, size_t n, size_t dim,
                                    float* out, size_t out_stride);
  // Euclidean length: what the cosine kernels want as query_norm.
  using Norm = double (*)(const T* vector, size_t dim);

  OneToMany l2;
  OneToMany dot;
  OneToManyCosine cosine;
  ManyToMany l2_many;
  ManyToMany dot_many;
  ManyToManyCosine cosine_many;
  Norm norm;
};

// Vectors of bits, packed into bytes; `dim` counts bytes.
struct BitKernels {
  VectorKernels<uint8_t>::OneToMany hamming;
  VectorKernels<uint8_t>::ManyToMany hamming_many;
};

struct KernelTable {
  VectorKernels<float> f32;
  VectorKernels<Half> f16;
  VectorKernels<BFloat16> bf16;
  VectorKernels<double> f64;
  VectorKernels<uint8_t> u8;
  VectorKernels<int8_t> i8;
  BitKernels bits;
};

// Each sets the kernels that its tier improves and leaves the others alone. Both these
// functions and the kernels may only be called on a CPU that has the tier's instructions.
void AddDistanceKernels_scalar(KernelTable* table);  // all of them
void AddDistanceKernels_avx(KernelTable* table);
void AddDistanceKernels_avx_fma(KernelTable* table);
void AddDistanceKernels_avx2_fma(KernelTable* table);
void AddDistanceKernels_avx512(KernelTable* table);
// After the one before, on CPUs that run 512-bit operations in two halves.
void AddDistanceKernels_avx512_split(KernelTable* table);

}  // namespace glaive::simd
