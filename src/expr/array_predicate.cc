#include "expr/array_predicate.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <unordered_set>

#include <arrow/array.h>
#include <arrow/type.h>

#include "expr/bitmap.h"
#include "expr/compare.h"
#include "expr/like.h"

namespace glaive::expr {
namespace {

// The literal in the form in which a column of some type stores its values.
struct Operand {
  enum class Kind : uint8_t {
    kInteger,
    kFloat,
    kBool,
    kBytes,
    kDecimal256,
    kAlways,
    kNever
  } kind;
  CompareOp op = CompareOp::kEq;
  Int128 integer = 0;  // also the bits of decimal128
  double floating = 0;
  bool flag = false;
  std::string bytes;
  arrow::Decimal256 decimal256;
};

Status Mismatch(const arrow::DataType& type, const Literal& literal) {
  return InvalidInput("expression: a value of type ", type.ToString(),
                      " cannot be compared with ", LiteralKindName(literal.kind),
                      literal.bytes.empty() ? std::string() : " '" + literal.bytes + "'",
                      "; use CAST if that is meant");
}

Int128 UnitNanos(arrow::TimeUnit::type unit) {
  switch (unit) {
    case arrow::TimeUnit::SECOND:
      return 1000000000;
    case arrow::TimeUnit::MILLI:
      return 1000000;
    case arrow::TimeUnit::MICRO:
      return 1000;
    case arrow::TimeUnit::NANO:
      return 1;
  }
  return 1;
}

constexpr Int128 kDayNanos = static_cast<Int128>(86400) * 1000000000;

Operand FromFloor(CompareOp op, const Floor& floor, Int128 min, Int128 max) {
  const IntegerTest test = ReduceToInteger(op, floor, min, max);
  Operand operand{};
  operand.kind = test.kind == IntegerTest::Kind::kAlways  ? Operand::Kind::kAlways
                 : test.kind == IntegerTest::Kind::kNever ? Operand::Kind::kNever
                                                          : Operand::Kind::kInteger;
  operand.op = test.op;
  operand.integer = test.value;
  return operand;
}

template <typename T>
Operand FromFloorOf(CompareOp op, const Floor& floor) {
  return FromFloor(op, floor, std::numeric_limits<T>::min(),
                   std::numeric_limits<T>::max());
}

// Instants: dates and timestamps, and strings that read as such, in units of `unit`
// nanoseconds.
template <typename T>
Result<Operand> InstantOperand(const arrow::DataType& type, CompareOp op,
                               const Literal& literal, Int128 unit) {
  Int128 nanos = 0;
  if (literal.kind == LiteralKind::kDate) {
    nanos = literal.days * kDayNanos;
  } else if (literal.kind == LiteralKind::kTimestamp) {
    nanos = literal.nanos;
  } else if (literal.kind == LiteralKind::kString) {
    const auto parsed = ParseTimestamp(literal.bytes);
    if (!parsed) return Mismatch(type, literal);
    nanos = *parsed;
  } else {
    return Mismatch(type, literal);
  }
  return FromFloorOf<T>(op, FloorDiv(nanos, unit));
}

template <typename T>
Result<Operand> TimeOperand(const arrow::DataType& type, CompareOp op,
                            const Literal& literal, Int128 unit) {
  Int128 nanos = literal.nanos;
  if (literal.kind == LiteralKind::kString) {
    const auto parsed = ParseTime(literal.bytes);
    if (!parsed) return Mismatch(type, literal);
    nanos = *parsed;
  } else if (literal.kind != LiteralKind::kTime) {
    return Mismatch(type, literal);
  }
  return FromFloorOf<T>(op, FloorDiv(nanos, unit));
}

Result<Operand> FloatOperand(const arrow::DataType& type, CompareOp op,
                             const Literal& literal) {
  if (literal.kind != LiteralKind::kNumber) return Mismatch(type, literal);
  Operand operand{};
  operand.kind = Operand::Kind::kFloat;
  operand.op = op;
  operand.floating = literal.number.value;
  // The literal takes the type of the column, as upstream's does: 0.1 finds the float32
  // 0.1.
  if (type.id() == arrow::Type::FLOAT) {
    operand.floating = static_cast<float>(literal.number.value);
  } else if (type.id() == arrow::Type::HALF_FLOAT) {
    operand.floating = arrow::util::Float16::FromDouble(literal.number.value).ToFloat();
  }
  return operand;
}

Result<Operand> DecimalOperand(const arrow::DataType& type, CompareOp op,
                               const Literal& literal) {
  Literal number = literal;
  if (literal.kind == LiteralKind::kString) {
    // As in upstream's casts: text that is a number.
    char* end = nullptr;
    std::strtod(literal.bytes.c_str(), &end);
    const bool plain =
        literal.bytes.find_first_not_of("0123456789.-+eE") == std::string::npos;
    if (literal.bytes.empty() || *end != '\0' || !plain) return Mismatch(type, literal);
    number.number = Number::Parse(literal.bytes);
  } else if (literal.kind != LiteralKind::kNumber) {
    return Mismatch(type, literal);
  }
  const auto& decimal = static_cast<const arrow::DecimalType&>(type);
  constexpr Int128 kMax = static_cast<Int128>(~static_cast<unsigned __int128>(0) >> 1);
  const Floor floor = FloorOf(number.number, decimal.scale());
  if (type.id() == arrow::Type::DECIMAL128) return FromFloor(op, floor, -kMax - 1, kMax);
  if (floor.overflow != 0) {
    return NotSupported("expression: comparison of ", type.ToString(),
                        " with a number of more than 38 digits is not supported");
  }
  Operand operand = FromFloor(op, floor, -kMax - 1, kMax);
  if (operand.kind == Operand::Kind::kInteger) {
    operand.kind = Operand::Kind::kDecimal256;
    const auto low =
        static_cast<uint64_t>(static_cast<unsigned __int128>(operand.integer));
    const auto high = static_cast<int64_t>(operand.integer >> 64);
    operand.decimal256 = arrow::Decimal256(arrow::Decimal128(high, low));
  }
  return operand;
}

Result<Operand> MakeOperand(const arrow::DataType& type, CompareOp op,
                            const Literal& literal) {
  using arrow::Type;
  const auto integer = [&]<typename T>() -> Result<Operand> {
    if (literal.kind != LiteralKind::kNumber) return Mismatch(type, literal);
    return FromFloorOf<T>(op, FloorOf(literal.number, 0));
  };
  Operand operand{};
  operand.op = op;
  switch (type.id()) {
    case Type::BOOL:
      if (literal.kind != LiteralKind::kBool) return Mismatch(type, literal);
      operand.kind = Operand::Kind::kBool;
      operand.flag = literal.flag;
      return operand;
    case Type::INT8:
      return integer.operator()<int8_t>();
    case Type::UINT8:
      return integer.operator()<uint8_t>();
    case Type::INT16:
      return integer.operator()<int16_t>();
    case Type::UINT16:
      return integer.operator()<uint16_t>();
    case Type::INT32:
      return integer.operator()<int32_t>();
    case Type::UINT32:
      return integer.operator()<uint32_t>();
    case Type::INT64:
      return integer.operator()<int64_t>();
    case Type::UINT64:
      return integer.operator()<uint64_t>();
    case Type::HALF_FLOAT:
    case Type::FLOAT:
    case Type::DOUBLE:
      return FloatOperand(type, op, literal);
    case Type::DATE32:
      return InstantOperand<int32_t>(type, op, literal, kDayNanos);
    case Type::DATE64:
      return InstantOperand<int64_t>(type, op, literal, 1000000);
    case Type::TIMESTAMP:
      return InstantOperand<int64_t>(
          type, op, literal,
          UnitNanos(static_cast<const arrow::TimestampType&>(type).unit()));
    case Type::TIME32:
      return TimeOperand<int32_t>(
          type, op, literal,
          UnitNanos(static_cast<const arrow::Time32Type&>(type).unit()));
    case Type::TIME64:
      return TimeOperand<int64_t>(
          type, op, literal,
          UnitNanos(static_cast<const arrow::Time64Type&>(type).unit()));
    case Type::STRING:
    case Type::LARGE_STRING:
      if (literal.kind != LiteralKind::kString) return Mismatch(type, literal);
      break;
    case Type::BINARY:
    case Type::LARGE_BINARY:
    case Type::FIXED_SIZE_BINARY:
      if (literal.kind != LiteralKind::kBinary) return Mismatch(type, literal);
      break;
    case Type::DECIMAL128:
    case Type::DECIMAL256:
      return DecimalOperand(type, op, literal);
    default:
      return Mismatch(type, literal);
  }
  operand.kind = Operand::Kind::kBytes;
  operand.bytes = literal.bytes;
  return operand;
}

class ConstantPredicate : public ArrayPredicate {
 public:
  explicit ConstantPredicate(bool value) : value_(value) {}

 private:
  void Test(const arrow::Array& array, uint64_t* out) const override {
    FillMask(out, array.length(), value_);
  }
  bool value_;
};

template <typename Values>
class ComparePredicate : public ArrayPredicate {
 public:
  using Value = typename Values::Value;
  // `bytes` backs a string_view value.
  ComparePredicate(CompareOp op, Value value, std::string bytes)
      : op_(op), value_(value), bytes_(std::move(bytes)) {
    if constexpr (std::is_same_v<Value, std::string_view>) value_ = bytes_;
  }

 private:
  void Test(const arrow::Array& array, uint64_t* out) const override {
    const Values values(array);
    const Value operand = value_;
    DispatchOp(op_, [&](auto op) {
      FillWith(out, array.length(), [&](int64_t row) {
        return Compare<decltype(op)::value>(static_cast<Value>(values(row)), operand);
      });
    });
  }
  CompareOp op_;
  Value value_;
  std::string bytes_;
};

template <typename Value>
Value OperandAs(const Operand& operand) {
  if constexpr (std::is_same_v<Value, bool>) {
    return operand.flag;
  } else if constexpr (std::is_floating_point_v<Value>) {
    return static_cast<Value>(operand.floating);
  } else if constexpr (std::is_same_v<Value, std::string_view>) {
    return operand.bytes;
  } else if constexpr (std::is_same_v<Value, arrow::Decimal256>) {
    return operand.decimal256;
  } else {
    return static_cast<Value>(operand.integer);
  }
}

// Up to this many values a list is compared one by one.
constexpr size_t kFewValues = 4;

struct HashValue {
  size_t operator()(std::string_view value) const {
    return std::hash<std::string_view>()(value);
  }
  size_t operator()(Int128 value) const {
    const auto bits = static_cast<unsigned __int128>(value);
    return (static_cast<uint64_t>(bits) ^ static_cast<uint64_t>(bits >> 64)) *
           0x9E3779B97F4A7C15ULL;
  }
};

// Sorted values; whole numbers in a narrow range become a table of bits.
template <typename Values>
class InPredicate : public ArrayPredicate {
 public:
  using Value = typename Values::Value;
  using Stored =
      std::conditional_t<std::is_same_v<Value, std::string_view>, std::string,
                         std::conditional_t<std::is_same_v<Value, bool>, uint8_t,
                                            Value>>;  // no vector<bool>

  explicit InPredicate(std::vector<Stored> values) : sorted_(std::move(values)) {
    const auto less = [](const Stored& a, const Stored& b) { return TotalLess(a, b); };
    std::sort(sorted_.begin(), sorted_.end(), less);
    sorted_.erase(
        std::unique(sorted_.begin(), sorted_.end(),
                    [](const Stored& a, const Stored& b) { return TotalEqual(a, b); }),
        sorted_.end());
    if constexpr (std::is_integral_v<Value> && !std::is_same_v<Value, bool>) {
      if (!sorted_.empty()) {
        const auto span =
            static_cast<uint64_t>(sorted_.back()) - static_cast<uint64_t>(sorted_[0]);
        if (span < kMaxTableBits && span / 64 <= sorted_.size() * 64) {
          table_.resize(span / 64 + 1);
          for (Value v : sorted_) {
            const uint64_t bit =
                static_cast<uint64_t>(v) - static_cast<uint64_t>(sorted_[0]);
            table_[bit / 64] |= uint64_t{1} << (bit % 64);
          }
          table_bits_ = span + 1;
        }
      }
    }
    if constexpr (std::is_same_v<Value, std::string_view>) {
      set_.insert(sorted_.begin(), sorted_.end());
    }
  }

 private:
  static constexpr uint64_t kMaxTableBits = uint64_t{1} << 22;

  void Test(const arrow::Array& array, uint64_t* out) const override {
    const Values values(array);
    const int64_t rows = array.length();
    if (sorted_.size() <= kFewValues) {
      FillWith(out, rows, [&](int64_t row) {
        const Value value = values(row);
        bool found = false;
        for (const Stored& candidate : sorted_)
          found |= TotalEqual(value, Value(candidate));
        return found;
      });
      return;
    }
    if constexpr (std::is_integral_v<Value> && !std::is_same_v<Value, bool>) {
      if (table_bits_ > 0) {
        const auto first = static_cast<uint64_t>(sorted_[0]);
        FillWith(out, rows, [&](int64_t row) {
          const uint64_t bit = static_cast<uint64_t>(values(row)) - first;
          return bit < table_bits_ && ((table_[bit / 64] >> (bit % 64)) & 1) != 0;
        });
        return;
      }
    }
    if constexpr (std::is_same_v<Value, std::string_view>) {
      FillWith(out, rows,
               [&](int64_t row) { return set_.find(values(row)) != set_.end(); });
    } else {
      FillWith(out, rows, [&](int64_t row) {
        const Value value = values(row);
        return std::binary_search(
            sorted_.begin(), sorted_.end(), value,
            [](const Value& a, const Value& b) { return TotalLess(a, b); });
      });
    }
  }

  std::vector<Stored> sorted_;
  std::unordered_set<std::string_view, HashValue> set_;  // views into sorted_
  std::vector<uint64_t> table_;
  uint64_t table_bits_ = 0;
};

template <typename Values>
class TextPredicate : public ArrayPredicate {
 public:
  TextPredicate(TextTest test, std::string pattern, char escape)
      : test_(test), text_(pattern), like_(pattern, escape) {}

 private:
  void Test(const arrow::Array& array, uint64_t* out) const override {
    const Values values(array);
    const int64_t rows = array.length();
    const std::string_view text = text_;
    switch (test_) {
      case TextTest::kLike:
        return FillWith(out, rows,
                        [&](int64_t row) { return like_.Matches(values(row)); });
      case TextTest::kContains:
        return FillWith(out, rows, [&](int64_t row) {
          return values(row).find(text) != std::string_view::npos;
        });
      case TextTest::kStartsWith:
        return FillWith(out, rows,
                        [&](int64_t row) { return values(row).starts_with(text); });
      case TextTest::kEndsWith:
        return FillWith(out, rows,
                        [&](int64_t row) { return values(row).ends_with(text); });
    }
  }
  TextTest test_;
  std::string text_;
  LikePattern like_;
};

class DictionaryPredicate : public ArrayPredicate {
 public:
  explicit DictionaryPredicate(ArrayPredicatePtr values) : values_(std::move(values)) {}

 private:
  void Test(const arrow::Array& array, uint64_t* out) const override {
    const auto& dictionary = static_cast<const arrow::DictionaryArray&>(array);
    const arrow::Array& values = *dictionary.dictionary();
    Words hits(static_cast<size_t>(WordCount(values.length())) + 1);
    values_->Eval(values, true, hits.data());
    const auto size = static_cast<uint64_t>(values.length());
    const arrow::Array& indices = *dictionary.indices();
    const auto gather = [&]<typename T>() {
      const T* index = indices.data()->GetValues<T>(1);
      // The slot of a null row may hold anything.
      FillWith(out, array.length(), [&](int64_t row) {
        const auto i = static_cast<uint64_t>(index[row]);
        return i < size && ((hits[i / 64] >> (i % 64)) & 1) != 0;
      });
    };
    switch (indices.type_id()) {
      case arrow::Type::INT8:
        return gather.operator()<int8_t>();
      case arrow::Type::UINT8:
        return gather.operator()<uint8_t>();
      case arrow::Type::INT16:
        return gather.operator()<int16_t>();
      case arrow::Type::UINT16:
        return gather.operator()<uint16_t>();
      case arrow::Type::INT32:
        return gather.operator()<int32_t>();
      case arrow::Type::UINT32:
        return gather.operator()<uint32_t>();
      case arrow::Type::INT64:
        return gather.operator()<int64_t>();
      default:
        return gather.operator()<uint64_t>();
    }
  }
  ArrayPredicatePtr values_;
};

Status NoOrder(const arrow::DataType& type) {
  return NotSupported("expression: comparison of values of type ", type.ToString(),
                      " is not supported");
}

}  // namespace

void AndValidity(const arrow::Array& array, uint64_t* out) {
  const int64_t rows = array.length();
  if (array.type_id() == arrow::Type::NA) {
    FillMask(out, rows, false);
    return;
  }
  if (const uint8_t* bitmap = array.null_bitmap_data(); bitmap != nullptr) {
    AndBitmap(out, rows, bitmap, array.offset());
  }
  if (array.type_id() == arrow::Type::DICTIONARY) {
    const auto& dictionary = static_cast<const arrow::DictionaryArray&>(array);
    const arrow::Array& values = *dictionary.dictionary();
    if (values.null_count() == 0) return;
    for (int64_t row = 0; row < rows; ++row) {
      if (((out[row / 64] >> (row % 64)) & 1) == 0) continue;
      if (values.IsNull(dictionary.GetValueIndex(row))) {
        out[row / 64] &= ~(uint64_t{1} << (row % 64));
      }
    }
  }
}

void ArrayPredicate::Eval(const arrow::Array& array, bool want, uint64_t* out) const {
  const int64_t rows = array.length();
  if (rows == 0) return;
  if (array.type_id() == arrow::Type::NA) {
    FillMask(out, rows, false);
    return;
  }
  Test(array, out);
  if (!want) {
    for (int64_t w = 0; w < WordCount(rows); ++w) out[w] = ~out[w];
    ClearTail(out, rows);
  }
  AndValidity(array, out);
}

Result<ArrayPredicatePtr> MakeComparePredicate(
    const std::shared_ptr<arrow::DataType>& type, CompareOp op, const Literal& literal) {
  if (type->id() == arrow::Type::DICTIONARY) {
    GLAIVE_ASSIGN_OR_RETURN(
        ArrayPredicatePtr values,
        MakeComparePredicate(
            static_cast<const arrow::DictionaryType&>(*type).value_type(), op, literal));
    return MakeDictionaryPredicate(std::move(values));
  }
  GLAIVE_ASSIGN_OR_RETURN(Operand operand, MakeOperand(*type, op, literal));
  if (operand.kind == Operand::Kind::kAlways || operand.kind == Operand::Kind::kNever) {
    return std::make_shared<ConstantPredicate>(operand.kind == Operand::Kind::kAlways);
  }
  ArrayPredicatePtr predicate;
  DispatchValues(type->id(), [&]<typename Values>() {
    predicate = std::make_shared<ComparePredicate<Values>>(
        operand.op, OperandAs<typename Values::Value>(operand), operand.bytes);
  });
  if (predicate == nullptr) return NoOrder(*type);
  return predicate;
}

Result<ArrayPredicatePtr> MakeInPredicate(const std::shared_ptr<arrow::DataType>& type,
                                          const std::vector<Literal>& literals) {
  if (type->id() == arrow::Type::DICTIONARY) {
    GLAIVE_ASSIGN_OR_RETURN(
        ArrayPredicatePtr values,
        MakeInPredicate(static_cast<const arrow::DictionaryType&>(*type).value_type(),
                        literals));
    return MakeDictionaryPredicate(std::move(values));
  }
  std::vector<Operand> operands;
  for (const Literal& literal : literals) {
    GLAIVE_ASSIGN_OR_RETURN(Operand operand, MakeOperand(*type, CompareOp::kEq, literal));
    if (operand.kind != Operand::Kind::kNever) operands.push_back(std::move(operand));
  }
  if (operands.empty()) return std::make_shared<ConstantPredicate>(false);
  ArrayPredicatePtr predicate;
  DispatchValues(type->id(), [&]<typename Values>() {
    std::vector<typename InPredicate<Values>::Stored> values;
    values.reserve(operands.size());
    for (const Operand& operand : operands) {
      values.emplace_back(OperandAs<typename Values::Value>(operand));
    }
    predicate = std::make_shared<InPredicate<Values>>(std::move(values));
  });
  if (predicate == nullptr) return NoOrder(*type);
  return predicate;
}

Result<ArrayPredicatePtr> MakeTextPredicate(const std::shared_ptr<arrow::DataType>& type,
                                            TextTest test, std::string pattern,
                                            char escape) {
  switch (type->id()) {
    case arrow::Type::STRING:
      return std::make_shared<TextPredicate<BinaryValues<int32_t>>>(
          test, std::move(pattern), escape);
    case arrow::Type::LARGE_STRING:
      return std::make_shared<TextPredicate<BinaryValues<int64_t>>>(
          test, std::move(pattern), escape);
    case arrow::Type::DICTIONARY: {
      GLAIVE_ASSIGN_OR_RETURN(
          ArrayPredicatePtr values,
          MakeTextPredicate(static_cast<const arrow::DictionaryType&>(*type).value_type(),
                            test, std::move(pattern), escape));
      return MakeDictionaryPredicate(std::move(values));
    }
    default:
      return InvalidInput(
          "expression: text functions and LIKE need a string, not a value of type ",
          type->ToString());
  }
}

ArrayPredicatePtr MakeDictionaryPredicate(ArrayPredicatePtr values) {
  return std::make_shared<DictionaryPredicate>(std::move(values));
}

Status ComparePairs(const arrow::Array& left, CompareOp op, const arrow::Array& right,
                    bool want, uint64_t* out) {
  const int64_t rows = left.length();
  if (rows == 0) return Status::OK();
  const bool known = DispatchValues(left.type_id(), [&]<typename Values>() {
    const Values a(left);
    const Values b(right);
    using Value = typename Values::Value;
    DispatchOp(op, [&](auto constant) {
      // Upstream compares the bits of floating point numbers here, and tells -0 from 0.
      const auto key = [](Value value) {
        if constexpr (std::is_floating_point_v<Value>) {
          return OrderKey(value);
        } else {
          return value;
        }
      };
      FillWith(out, rows, [&](int64_t row) {
        return Compare<decltype(constant)::value>(key(static_cast<Value>(a(row))),
                                                  key(static_cast<Value>(b(row)))) ==
               want;
      });
    });
  });
  if (!known) return NoOrder(*left.type());
  AndValidity(left, out);
  AndValidity(right, out);
  return Status::OK();
}

}  // namespace glaive::expr
