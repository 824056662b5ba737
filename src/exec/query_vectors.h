// The query vectors of a search, in the element type of the column, and distances from
// them.
#pragma once

#include <cstdint>
#include <vector>

#include <arrow/type_fwd.h>

#include "base/status.h"
#include "exec/nearest.h"
#include "exec/vector_column.h"
#include "simd/distance.h"

namespace glaive::exec {

// Immutable; thread-safe.
class QueryVectors {
 public:
  // `queries`: lists of numbers, all of the column's dimension. InvalidInput on other
  // lengths, nulls, NaN, and values that the column's element type cannot hold.
  static Result<QueryVectors> Make(const VectorColumn& column,
                                   const arrow::Array& queries, Metric metric);

  size_t count() const { return count_; }

  // out[i] = distance of query `q` to vector i of `vectors`, which lie one after another.
  void OneToMany(size_t q, const uint8_t* vectors, size_t n, float* out) const;
  // out[(q - first) * stride + i], for queries [first, first + count).
  void ManyToMany(size_t first, size_t count, const uint8_t* vectors, size_t n,
                  float* out, size_t stride) const;

 private:
  template <typename T>
  const T* At(size_t q) const {
    return reinterpret_cast<const T*>(values_.data() + q * row_bytes_);
  }
  template <typename T>
  void One(const simd::VectorKernels<T>& kernels, size_t q, const uint8_t* vectors,
           size_t n, float* out) const;
  template <typename T>
  void Many(const simd::VectorKernels<T>& kernels, size_t first, size_t count,
            const uint8_t* vectors, size_t n, float* out, size_t stride) const;
  template <typename Body>
  void Dispatch(const Body& body) const;

  const simd::KernelTable* kernels_ = nullptr;
  ElementType element_ = ElementType::kFloat32;
  Metric metric_ = Metric::kL2;
  size_t count_ = 0;
  size_t dim_ = 0;
  size_t row_bytes_ = 0;
  std::vector<uint8_t> values_;
  std::vector<double> norms_;  // for cosine
};

// The number of elements of the query vectors, which all must have. InvalidInput when
// there is no query, or they differ.
Result<int64_t> QueryDimension(const arrow::Array& queries);

}  // namespace glaive::exec
