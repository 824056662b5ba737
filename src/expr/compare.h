// Comparison of single values in the order that predicates use, and access to them in
// arrays.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string_view>

#include <arrow/array.h>
#include <arrow/util/decimal.h>
#include <arrow/util/float16.h>

#include "expr/literal.h"

namespace glaive::expr {

// Whole numbers in the order of the floating point numbers that have these bits: -NaN is
// below all, then come -inf, ..., -0, 0, ..., inf, and NaN is above all.
inline int64_t OrderKey(double value) {
  const auto bits = std::bit_cast<int64_t>(value);
  return bits ^ static_cast<int64_t>(static_cast<uint64_t>(bits >> 63) >> 1);
}
inline int32_t OrderKey(float value) {
  const auto bits = std::bit_cast<int32_t>(value);
  return bits ^ static_cast<int32_t>(static_cast<uint32_t>(bits >> 31) >> 1);
}

// The order of upstream's engine. Against constants -0 equals 0, which the addition of
// zero sees to; column against column it is below (see ComparePairs).
template <typename T>
inline bool TotalLess(const T& a, const T& b) {
  if constexpr (std::is_floating_point_v<T>) {
    return OrderKey(a + T{0}) < OrderKey(b + T{0});
  } else {
    return a < b;
  }
}
template <typename T>
inline bool TotalEqual(const T& a, const T& b) {
  if constexpr (std::is_floating_point_v<T>) {
    return OrderKey(a + T{0}) == OrderKey(b + T{0});
  } else {
    return a == b;
  }
}

template <CompareOp op, typename T>
inline bool Compare(const T& a, const T& b) {
  if constexpr (op == CompareOp::kEq) return TotalEqual(a, b);
  if constexpr (op == CompareOp::kNe) return !TotalEqual(a, b);
  if constexpr (op == CompareOp::kLt) return TotalLess(a, b);
  if constexpr (op == CompareOp::kLe) return !TotalLess(b, a);
  if constexpr (op == CompareOp::kGt) return TotalLess(b, a);
  if constexpr (op == CompareOp::kGe) return !TotalLess(a, b);
}

// Calls body(std::integral_constant<CompareOp, op>).
template <typename Body>
inline void DispatchOp(CompareOp op, const Body& body) {
  switch (op) {
    case CompareOp::kEq:
      return body(std::integral_constant<CompareOp, CompareOp::kEq>{});
    case CompareOp::kNe:
      return body(std::integral_constant<CompareOp, CompareOp::kNe>{});
    case CompareOp::kLt:
      return body(std::integral_constant<CompareOp, CompareOp::kLt>{});
    case CompareOp::kLe:
      return body(std::integral_constant<CompareOp, CompareOp::kLe>{});
    case CompareOp::kGt:
      return body(std::integral_constant<CompareOp, CompareOp::kGt>{});
    case CompareOp::kGe:
      return body(std::integral_constant<CompareOp, CompareOp::kGe>{});
  }
}

// Readers of values by row: `Value` is what Compare works on.
template <typename T>
struct PrimitiveValues {
  using Value = T;
  explicit PrimitiveValues(const arrow::Array& array)
      : values(array.data()->GetValues<T>(1)) {}
  T operator()(int64_t row) const { return values[row]; }
  const T* values;
};

struct HalfValues {
  using Value = float;
  explicit HalfValues(const arrow::Array& array)
      : values(array.data()->GetValues<uint16_t>(1)) {}
  float operator()(int64_t row) const {
    return arrow::util::Float16::FromBits(values[row]).ToFloat();
  }
  const uint16_t* values;
};

struct BoolValues {
  using Value = bool;
  explicit BoolValues(const arrow::Array& array)
      : bits(array.data()->buffers[1]->data()), offset(array.offset()) {}
  bool operator()(int64_t row) const {
    return (bits[(offset + row) / 8] >> ((offset + row) % 8)) & 1;
  }
  const uint8_t* bits;
  int64_t offset;
};

template <typename Offset>
struct BinaryValues {
  using Value = std::string_view;
  explicit BinaryValues(const arrow::Array& array)
      : offsets(array.data()->GetValues<Offset>(1)),
        data(array.data()->buffers[2] == nullptr
                 ? ""
                 : reinterpret_cast<const char*>(array.data()->buffers[2]->data())) {}
  std::string_view operator()(int64_t row) const {
    return {data + offsets[row], static_cast<size_t>(offsets[row + 1] - offsets[row])};
  }
  const Offset* offsets;
  const char* data;
};

struct FixedBinaryValues {
  using Value = std::string_view;
  explicit FixedBinaryValues(const arrow::Array& array)
      : width(static_cast<const arrow::FixedSizeBinaryArray&>(array).byte_width()),
        data(reinterpret_cast<const char*>(
            static_cast<const arrow::FixedSizeBinaryArray&>(array).raw_values())) {}
  std::string_view operator()(int64_t row) const {
    return {data + row * width, static_cast<size_t>(width)};
  }
  int64_t width;
  const char* data;
};

// Stored little endian, two's complement, at any alignment.
template <typename T, int kBytes>
struct DecimalValues {
  using Value = T;
  explicit DecimalValues(const arrow::Array& array)
      : data(static_cast<const arrow::FixedSizeBinaryArray&>(array).raw_values()) {}
  T operator()(int64_t row) const {
    if constexpr (kBytes == 16) {
      T value;
      std::memcpy(&value, data + row * 16, 16);
      return value;
    } else {
      return T(data + row * kBytes);
    }
  }
  const uint8_t* data;
};

// Calls body.operator()<Values>() with the reader that fits `id`; false for types without
// an order.
template <typename Body>
inline bool DispatchValues(arrow::Type::type id, const Body& body) {
  using arrow::Type;
  switch (id) {
    case Type::BOOL:
      body.template operator()<BoolValues>();
      return true;
    case Type::INT8:
      body.template operator()<PrimitiveValues<int8_t>>();
      return true;
    case Type::UINT8:
      body.template operator()<PrimitiveValues<uint8_t>>();
      return true;
    case Type::INT16:
      body.template operator()<PrimitiveValues<int16_t>>();
      return true;
    case Type::UINT16:
      body.template operator()<PrimitiveValues<uint16_t>>();
      return true;
    case Type::INT32:
    case Type::DATE32:
    case Type::TIME32:
      body.template operator()<PrimitiveValues<int32_t>>();
      return true;
    case Type::UINT32:
      body.template operator()<PrimitiveValues<uint32_t>>();
      return true;
    case Type::INT64:
    case Type::DATE64:
    case Type::TIME64:
    case Type::TIMESTAMP:
    case Type::DURATION:
      body.template operator()<PrimitiveValues<int64_t>>();
      return true;
    case Type::UINT64:
      body.template operator()<PrimitiveValues<uint64_t>>();
      return true;
    case Type::HALF_FLOAT:
      body.template operator()<HalfValues>();
      return true;
    case Type::FLOAT:
      body.template operator()<PrimitiveValues<float>>();
      return true;
    case Type::DOUBLE:
      body.template operator()<PrimitiveValues<double>>();
      return true;
    case Type::STRING:
    case Type::BINARY:
      body.template operator()<BinaryValues<int32_t>>();
      return true;
    case Type::LARGE_STRING:
    case Type::LARGE_BINARY:
      body.template operator()<BinaryValues<int64_t>>();
      return true;
    case Type::FIXED_SIZE_BINARY:
      body.template operator()<FixedBinaryValues>();
      return true;
    case Type::DECIMAL128:
      body.template operator()<DecimalValues<Int128, 16>>();
      return true;
    case Type::DECIMAL256:
      body.template operator()<DecimalValues<arrow::Decimal256, 32>>();
      return true;
    default:
      return false;
  }
}

}  // namespace glaive::expr
