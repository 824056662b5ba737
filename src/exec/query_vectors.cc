#include "exec/query_vectors.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <utility>

#include <arrow/array.h>
#include <arrow/compute/api.h>
#include <arrow/type.h>
#include <arrow/type_traits.h>
#include <arrow/util/float16.h>

#include "simd/dispatch.h"

namespace glaive::exec {
namespace {

// First value and length of row i, in the child array.
Result<std::pair<int64_t, int64_t>> RowOf(const arrow::Array& lists, int64_t row) {
  if (lists.IsNull(row)) return InvalidInput("a query vector must not be null");
  switch (lists.type_id()) {
    case arrow::Type::FIXED_SIZE_LIST: {
      const auto& list = static_cast<const arrow::FixedSizeListArray&>(lists);
      return std::pair<int64_t, int64_t>(list.value_offset(row), list.value_length(row));
    }
    case arrow::Type::LIST: {
      const auto& list = static_cast<const arrow::ListArray&>(lists);
      return std::pair<int64_t, int64_t>(list.value_offset(row), list.value_length(row));
    }
    case arrow::Type::LARGE_LIST: {
      const auto& list = static_cast<const arrow::LargeListArray&>(lists);
      return std::pair<int64_t, int64_t>(list.value_offset(row), list.value_length(row));
    }
    default:
      return InvalidInput("query vectors must be lists of numbers, not ",
                          lists.type()->ToString());
  }
}

std::shared_ptr<arrow::Array> ChildOf(const arrow::Array& lists) {
  switch (lists.type_id()) {
    case arrow::Type::FIXED_SIZE_LIST:
      return static_cast<const arrow::FixedSizeListArray&>(lists).values();
    case arrow::Type::LIST:
      return static_cast<const arrow::ListArray&>(lists).values();
    default:
      return static_cast<const arrow::LargeListArray&>(lists).values();
  }
}

Result<std::vector<double>> Doubles(const arrow::Array& values) {
  std::vector<double> out(static_cast<size_t>(values.length()));
  switch (values.type_id()) {
    case arrow::Type::FLOAT: {
      const auto* from = values.data()->GetValues<float>(1);
      for (size_t i = 0; i < out.size(); ++i) out[i] = from[i];
      return out;
    }
    case arrow::Type::DOUBLE: {
      const auto* from = values.data()->GetValues<double>(1);
      for (size_t i = 0; i < out.size(); ++i) out[i] = from[i];
      return out;
    }
    case arrow::Type::HALF_FLOAT: {
      const auto* from = values.data()->GetValues<uint16_t>(1);
      for (size_t i = 0; i < out.size(); ++i) {
        out[i] = arrow::util::Float16::FromBits(from[i]).ToDouble();
      }
      return out;
    }
    default:
      break;
  }
  if (!arrow::is_integer(values.type_id())) {
    return InvalidInput("query vectors must hold numbers, not ",
                        values.type()->ToString());
  }
  GLAIVE_ASSIGN_OR_RETURN(auto cast, arrow::compute::Cast(values, arrow::float64()));
  const auto* from = cast->data()->GetValues<double>(1);
  for (size_t i = 0; i < out.size(); ++i) out[i] = from[i];
  return out;
}

// Round to nearest, ties to even. NaN does not come here.
uint16_t ToBFloat16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  return static_cast<uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}

template <typename T>
void Store(T value, uint8_t* out) {
  std::memcpy(out, &value, sizeof value);
}

Status StoreAs(const VectorColumn& column, double value, uint8_t* out) {
  switch (column.element) {
    case ElementType::kFloat16:
      Store(arrow::util::Float16::FromDouble(value).bits(), out);
      return Status::OK();
    case ElementType::kBFloat16:
      Store(ToBFloat16(static_cast<float>(value)), out);
      return Status::OK();
    case ElementType::kFloat32:
      Store(static_cast<float>(value), out);
      return Status::OK();
    case ElementType::kFloat64:
      Store(value, out);
      return Status::OK();
    case ElementType::kUInt8:
    case ElementType::kInt8:
      break;
  }
  const bool is_unsigned = column.element == ElementType::kUInt8;
  const double low = is_unsigned ? 0 : -128;
  const double high = is_unsigned ? 255 : 127;
  if (!(value >= low && value <= high) || value != std::floor(value)) {
    return InvalidInput("the query vector holds ", value, ", which is no ",
                        ElementTypeName(column.element), " as column '", column.name,
                        "' needs");
  }
  if (is_unsigned) {
    Store(static_cast<uint8_t>(value), out);
  } else {
    Store(static_cast<int8_t>(value), out);
  }
  return Status::OK();
}

}  // namespace

Result<int64_t> QueryDimension(const arrow::Array& queries) {
  if (queries.length() == 0)
    return InvalidInput("the query must be a non-empty list of numbers");
  GLAIVE_ASSIGN_OR_RETURN(const auto first, RowOf(queries, 0));
  for (int64_t row = 1; row < queries.length(); ++row) {
    GLAIVE_ASSIGN_OR_RETURN(const auto other, RowOf(queries, row));
    if (other.second != first.second) {
      return InvalidInput("query vectors have different lengths: ", first.second, " and ",
                          other.second);
    }
  }
  return first.second;
}

Result<QueryVectors> QueryVectors::Make(const VectorColumn& column,
                                        const arrow::Array& queries, Metric metric) {
  if (column.dimension <= 0) {
    return InvalidInput("column '", column.name,
                        "' holds vectors of length 0: nothing to compare");
  }
  if (metric == Metric::kHamming && column.element != ElementType::kUInt8) {
    return InvalidInput("Distance type hamming does not support ",
                        ElementTypeName(column.element), " vectors (column '",
                        column.name, "'): it needs uint8");
  }
  GLAIVE_ASSIGN_OR_RETURN(const int64_t dimension, QueryDimension(queries));
  if (dimension != column.dimension) {
    return InvalidInput("query dim(", dimension, ") doesn't match the column ",
                        column.name, " vector dim(", column.dimension, ")");
  }
  QueryVectors result;
  GLAIVE_ASSIGN_OR_RETURN(result.kernels_, simd::ActiveKernels());
  result.element_ = column.element;
  result.metric_ = metric;
  result.count_ = static_cast<size_t>(queries.length());
  result.dim_ = static_cast<size_t>(dimension);
  result.row_bytes_ = static_cast<size_t>(column.row_bytes());
  result.values_.resize(result.count_ * result.row_bytes_);
  const auto child = ChildOf(queries);
  for (size_t q = 0; q < result.count_; ++q) {
    GLAIVE_ASSIGN_OR_RETURN(const auto row, RowOf(queries, static_cast<int64_t>(q)));
    const auto values = child->Slice(row.first, row.second);
    if (values->null_count() > 0) return InvalidInput("the query vector holds a null");
    GLAIVE_ASSIGN_OR_RETURN(const std::vector<double> doubles, Doubles(*values));
    uint8_t* out = result.values_.data() + q * result.row_bytes_;
    const auto width = static_cast<size_t>(ElementBytes(column.element));
    for (size_t d = 0; d < result.dim_; ++d) {
      if (std::isnan(doubles[d])) {
        return InvalidInput("the query vector holds NaN at position ", d);
      }
      GLAIVE_RETURN_NOT_OK(StoreAs(column, doubles[d], out + d * width));
    }
  }
  if (metric == Metric::kCosine) {
    result.norms_.resize(result.count_);
    result.Dispatch([&]<typename T>(const simd::VectorKernels<T>& kernels) {
      for (size_t q = 0; q < result.count_; ++q) {
        result.norms_[q] = kernels.norm(result.At<T>(q), result.dim_);
      }
    });
  }
  return result;
}

template <typename Body>
void QueryVectors::Dispatch(const Body& body) const {
  switch (element_) {
    case ElementType::kFloat16:
      return body(kernels_->f16);
    case ElementType::kBFloat16:
      return body(kernels_->bf16);
    case ElementType::kFloat32:
      return body(kernels_->f32);
    case ElementType::kFloat64:
      return body(kernels_->f64);
    case ElementType::kUInt8:
      return body(kernels_->u8);
    case ElementType::kInt8:
      return body(kernels_->i8);
  }
}

template <typename T>
void QueryVectors::One(const simd::VectorKernels<T>& kernels, size_t q,
                       const uint8_t* vectors, size_t n, float* out) const {
  const T* many = reinterpret_cast<const T*>(vectors);
  switch (metric_) {
    case Metric::kL2:
      return kernels.l2(At<T>(q), many, dim_, n, dim_, out);
    case Metric::kDot:
      return kernels.dot(At<T>(q), many, dim_, n, dim_, out);
    case Metric::kCosine:
      return kernels.cosine(At<T>(q), norms_[q], many, dim_, n, dim_, out);
    case Metric::kHamming:
      return;  // only bytes: see OneToMany
  }
}

void QueryVectors::OneToMany(size_t q, const uint8_t* vectors, size_t n,
                             float* out) const {
  if (metric_ == Metric::kHamming) {
    kernels_->bits.hamming(At<uint8_t>(q), vectors, dim_, n, dim_, out);
    return;
  }
  Dispatch([&](const auto& kernels) { One(kernels, q, vectors, n, out); });
}

template <typename T>
void QueryVectors::Many(const simd::VectorKernels<T>& kernels, size_t first, size_t count,
                        const uint8_t* vectors, size_t n, float* out,
                        size_t stride) const {
  const T* many = reinterpret_cast<const T*>(vectors);
  switch (metric_) {
    case Metric::kL2:
      return kernels.l2_many(At<T>(first), dim_, count, many, dim_, n, dim_, out, stride);
    case Metric::kDot:
      return kernels.dot_many(At<T>(first), dim_, count, many, dim_, n, dim_, out,
                              stride);
    case Metric::kCosine:
      return kernels.cosine_many(At<T>(first), dim_, count, norms_.data() + first, many,
                                 dim_, n, dim_, out, stride);
    case Metric::kHamming:
      return;  // only bytes: see ManyToMany
  }
}

void QueryVectors::ManyToMany(size_t first, size_t count, const uint8_t* vectors,
                              size_t n, float* out, size_t stride) const {
  if (count == 1) return OneToMany(first, vectors, n, out);
  if (metric_ == Metric::kHamming) {
    kernels_->bits.hamming_many(At<uint8_t>(first), dim_, count, vectors, dim_, n, dim_,
                                out, stride);
    return;
  }
  Dispatch(
      [&](const auto& kernels) { Many(kernels, first, count, vectors, n, out, stride); });
}

}  // namespace glaive::exec
