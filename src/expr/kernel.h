// What functions over arrays share: operands, null handling, builders of results.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <arrow/array.h>
#include <arrow/buffer.h>
#include <arrow/type.h>

#include "expr/bitmap.h"
#include "expr/bound.h"
#include "expr/coercion.h"

namespace glaive::expr {

using ArrayPtr = std::shared_ptr<arrow::Array>;

// Row i of an operand is element i * stride: constants are arrays of one value.
struct Arg {
  ArrayPtr array;
  int64_t stride = 1;
  bool constant() const { return stride == 0; }
  bool IsNull(int64_t row) const { return array->IsNull(row * stride); }
};

struct KernelArgs {
  std::vector<Arg> args;
  int64_t rows = 0;
  const Arg& operator[](size_t i) const { return args[i]; }
  size_t size() const { return args.size(); }
};

using Kernel = std::function<Result<ArrayPtr>(const KernelArgs&)>;

enum class Volatility : uint8_t { kImmutable, kVolatile };

// A function of type `type`. With constant operands alone it is evaluated once, now,
// unless it is volatile or fails: the error is then that of the first evaluation.
ValuePtr MakeKernel(TypePtr type, std::vector<ValuePtr> operands, Kernel kernel,
                    Volatility volatility = Volatility::kImmutable);

// `value` evaluated now, when that gives a constant without error.
ValuePtr Fold(ValuePtr value);
// The value, or the error, of an expression without columns.
Result<arrow::Datum> EvaluateOnce(const ValueExpr& value);
ValuePtr ConstantOf(std::shared_ptr<arrow::Scalar> scalar);
ValuePtr MakeNull(const TypePtr& type);
// The operand as `type` where that loses nothing; no expression when it is that already.
ValuePtr Coerce(ValuePtr operand, const TypePtr& type);

// Rows where no operand is null; `words` has WordCount(rows) words. Returns the number of
// nulls.
int64_t CommonValidity(const KernelArgs& args, uint64_t* words);
// The same as an Arrow bitmap: nullptr when there are no nulls.
Result<std::shared_ptr<arrow::Buffer>> ValidityBuffer(const KernelArgs& args,
                                                      int64_t* nulls);
Result<std::shared_ptr<arrow::Buffer>> ToBuffer(const Words& words, int64_t rows);
inline bool GetBit(const uint64_t* words, int64_t i) {
  return ((words[i / 64] >> (i % 64)) & 1) != 0;
}
inline void SetBit(uint64_t* words, int64_t i) {
  words[i / 64] |= uint64_t{1} << (i % 64);
}
inline void ClearBit(uint64_t* words, int64_t i) {
  words[i / 64] &= ~(uint64_t{1} << (i % 64));
}

// Strings and binary values of either offset width. Rows that are null read as something
// valid.
class Texts {
 public:
  explicit Texts(const Arg& arg) : stride_(arg.stride) {
    const arrow::ArrayData& data = *arg.array->data();
    if (data.type->id() == arrow::Type::FIXED_SIZE_BINARY) {
      width_ = static_cast<const arrow::FixedSizeBinaryType&>(*data.type).byte_width();
      data_ =
          reinterpret_cast<const char*>(data.buffers[1]->data()) + data.offset * width_;
      return;
    }
    if (data.type->id() == arrow::Type::STRING ||
        data.type->id() == arrow::Type::BINARY) {
      narrow_ = data.GetValues<int32_t>(1);
    } else {
      wide_ = data.GetValues<int64_t>(1);
    }
    if (data.buffers[2] != nullptr) {
      data_ = reinterpret_cast<const char*>(data.buffers[2]->data());
    }
  }
  std::string_view operator[](int64_t row) const {
    const int64_t i = row * stride_;
    if (narrow_ != nullptr) {
      return {data_ + narrow_[i], static_cast<size_t>(narrow_[i + 1] - narrow_[i])};
    }
    if (wide_ != nullptr) {
      return {data_ + wide_[i], static_cast<size_t>(wide_[i + 1] - wide_[i])};
    }
    return {data_ + i * width_, static_cast<size_t>(width_)};
  }

 private:
  const int32_t* narrow_ = nullptr;
  const int64_t* wide_ = nullptr;
  const char* data_ = "";
  int64_t width_ = 0;
  int64_t stride_;
};

template <typename T>
class Numbers {
 public:
  explicit Numbers(const Arg& arg)
      : values_(arg.array->data()->GetValues<T>(1)), stride_(arg.stride) {}
  T operator[](int64_t row) const { return values_[row * stride_]; }

 private:
  const T* values_;
  int64_t stride_;
};

class Bools {
 public:
  explicit Bools(const Arg& arg)
      : bits_(arg.array->data()->buffers[1]->data()),
        offset_(arg.array->offset()),
        stride_(arg.stride) {}
  bool operator[](int64_t row) const {
    const int64_t i = offset_ + row * stride_;
    return ((bits_[i / 8] >> (i % 8)) & 1) != 0;
  }

 private:
  const uint8_t* bits_;
  int64_t offset_;
  int64_t stride_;
};

// result[i] = f(i), null where an operand is; f is called for null rows too and must not
// mind what they hold.
template <typename T, typename F>
Result<ArrayPtr> MapNumbers(const KernelArgs& args, const TypePtr& type, const F& f) {
  int64_t nulls = 0;
  GLAIVE_ASSIGN_OR_RETURN(auto valid, ValidityBuffer(args, &nulls));
  GLAIVE_ASSIGN_OR_RETURN(
      std::shared_ptr<arrow::Buffer> data,
      arrow::AllocateBuffer(args.rows * static_cast<int64_t>(sizeof(T))));
  T* out = reinterpret_cast<T*>(data->mutable_data());
  for (int64_t i = 0; i < args.rows; ++i) out[i] = f(i);
  return arrow::MakeArray(arrow::ArrayData::Make(
      type, args.rows, {std::move(valid), std::move(data)}, nulls));
}

// f(i, &value) is called for rows without nulls and returns whether there is a value; its
// errors end the evaluation.
template <typename T, typename F>
Result<ArrayPtr> TryMapNumbers(const KernelArgs& args, const TypePtr& type, const F& f) {
  Words valid(static_cast<size_t>(WordCount(args.rows)) + 1);
  CommonValidity(args, valid.data());
  GLAIVE_ASSIGN_OR_RETURN(
      std::shared_ptr<arrow::Buffer> data,
      arrow::AllocateBuffer(args.rows * static_cast<int64_t>(sizeof(T))));
  T* out = reinterpret_cast<T*>(data->mutable_data());
  for (int64_t i = 0; i < args.rows; ++i) {
    out[i] = T{};
    if (!GetBit(valid.data(), i)) continue;
    GLAIVE_ASSIGN_OR_RETURN(const bool there, f(i, &out[i]));
    if (!there) ClearBit(valid.data(), i);
  }
  GLAIVE_ASSIGN_OR_RETURN(auto bitmap, ToBuffer(valid, args.rows));
  return arrow::MakeArray(
      arrow::ArrayData::Make(type, args.rows, {std::move(bitmap), std::move(data)}));
}

// As TryMapNumbers, for booleans.
template <typename F>
Result<ArrayPtr> TryMapBools(const KernelArgs& args, const F& f) {
  Words valid(static_cast<size_t>(WordCount(args.rows)) + 1);
  Words bits(valid.size());
  CommonValidity(args, valid.data());
  for (int64_t i = 0; i < args.rows; ++i) {
    if (!GetBit(valid.data(), i)) continue;
    bool value = false;
    GLAIVE_ASSIGN_OR_RETURN(const bool there, f(i, &value));
    if (!there) ClearBit(valid.data(), i);
    if (value) SetBit(bits.data(), i);
  }
  GLAIVE_ASSIGN_OR_RETURN(auto bitmap, ToBuffer(valid, args.rows));
  GLAIVE_ASSIGN_OR_RETURN(auto data, ToBuffer(bits, args.rows));
  return arrow::MakeArray(arrow::ArrayData::Make(arrow::boolean(), args.rows,
                                                 {std::move(bitmap), std::move(data)}));
}

// Collects strings or binary values: text is appended to one buffer, then closed as a
// row.
class TextBuilder {
 public:
  TextBuilder(TypePtr type, int64_t rows);
  std::string* text() { return &data_; }
  // Ends a row with what was appended since the last.
  Status Close();
  // Ends a row with null; what was appended is dropped.
  void CloseNull();
  Result<ArrayPtr> Finish();

 private:
  TypePtr type_;
  bool wide_;
  std::string data_;
  std::vector<int64_t> offsets_;
  Words valid_;
  int64_t nulls_ = 0;
};

// f(i, out) appends the text of row i to *out and returns whether there is a value; it is
// called for rows without nulls only.
template <typename F>
Result<ArrayPtr> MapText(const KernelArgs& args, const TypePtr& type, const F& f) {
  Words valid(static_cast<size_t>(WordCount(args.rows)) + 1);
  CommonValidity(args, valid.data());
  TextBuilder builder(type, args.rows);
  for (int64_t i = 0; i < args.rows; ++i) {
    if (!GetBit(valid.data(), i)) {
      builder.CloseNull();
      continue;
    }
    GLAIVE_ASSIGN_OR_RETURN(const bool there, f(i, builder.text()));
    if (there) {
      GLAIVE_RETURN_NOT_OK(builder.Close());
    } else {
      builder.CloseNull();
    }
  }
  return builder.Finish();
}

}  // namespace glaive::expr
