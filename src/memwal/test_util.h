// Helpers for tests of the LSM write path.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <arrow/api.h>
#include <gtest/gtest.h>

#include "io/object_store.h"
#include "io/test_util.h"
#include "memwal/fresh_schema.h"
#include "runtime/runtime.h"
#include "table/dataset.h"

namespace glaive::memwal {

// GLAIVE_TEST_SEED, or a fresh one; printed once.
inline uint64_t TestSeed() {
  static const uint64_t seed = [] {
    const char* given = std::getenv("GLAIVE_TEST_SEED");
    const uint64_t value =
        given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
    std::printf("seed %llu (GLAIVE_TEST_SEED repeats it)\n",
                static_cast<unsigned long long>(value));
    return value;
  }();
  return seed;
}

inline bool Soak() {
  const char* soak = std::getenv("GLAIVE_SOAK");
  return soak != nullptr && std::string(soak) == "1";
}

inline const std::vector<std::shared_ptr<arrow::DataType>>& KeyTypes() {
  static const std::vector<std::shared_ptr<arrow::DataType>> types = {
      arrow::int8(),        arrow::int16(),  arrow::int32(),      arrow::int64(),
      arrow::uint8(),       arrow::uint16(), arrow::uint32(),     arrow::uint64(),
      arrow::boolean(),     arrow::utf8(),   arrow::large_utf8(), arrow::binary(),
      arrow::large_binary()};
  return types;
}

// A value of a key column: a number, or text.
struct KeyValue {
  bool null = false;
  int64_t number = 0;  // the bits of a uint64 for unsigned types
  std::string text = {};
  friend bool operator==(const KeyValue&, const KeyValue&) = default;
};

inline bool IsText(const arrow::DataType& type) {
  return arrow::is_base_binary_like(type.id());
}

inline int64_t TruncateTo(const arrow::DataType& type, int64_t number) {
  switch (type.id()) {
    case arrow::Type::BOOL:
      return number & 1;
    case arrow::Type::INT8:
      return static_cast<int8_t>(number);
    case arrow::Type::INT16:
      return static_cast<int16_t>(number);
    case arrow::Type::INT32:
      return static_cast<int32_t>(number);
    case arrow::Type::UINT8:
      return static_cast<uint8_t>(number);
    case arrow::Type::UINT16:
      return static_cast<uint16_t>(number);
    case arrow::Type::UINT32:
      return static_cast<uint32_t>(number);
    default:
      return number;
  }
}

// Few enough different ones that keys repeat; extremes, empty text and zero bytes among
// them.
inline KeyValue RandomKeyValue(const arrow::DataType& type, std::mt19937_64& random,
                               bool nulls = false, int spread = 40) {
  KeyValue value;
  if (nulls && random() % 6 == 0) {
    value.null = true;
    return value;
  }
  if (IsText(type)) {
    const bool utf8 = arrow::is_string(type.id());
    const auto size = random() % 4 == 0 ? random() % 30 : random() % 4;
    for (size_t i = 0; i < size; ++i) {
      const char bytes[] = {0, 1, 'a', 'b', utf8 ? '~' : '\xFF'};
      value.text += bytes[random() % 5];
    }
    return value;
  }
  const int64_t extremes[] = {0,         -1,        1,   INT64_MAX, INT64_MIN,
                              INT32_MAX, INT32_MIN, 127, -128};
  value.number =
      random() % 4 == 0
          ? extremes[random() % 9]
          : static_cast<int64_t>(random() % static_cast<uint64_t>(spread)) - spread / 2;
  value.number = TruncateTo(type, value.number);
  return value;
}

template <typename Builder, typename Convert>
std::shared_ptr<arrow::Array> BuildKeys(const std::vector<KeyValue>& values,
                                        Convert convert) {
  Builder builder;
  for (const KeyValue& value : values) {
    EXPECT_TRUE(
        (value.null ? builder.AppendNull() : builder.Append(convert(value))).ok());
  }
  return builder.Finish().ValueOrDie();
}

inline std::shared_ptr<arrow::Array> MakeKeys(const arrow::DataType& type,
                                              const std::vector<KeyValue>& values) {
  const auto text = [](const KeyValue& v) -> const std::string& { return v.text; };
  switch (type.id()) {
#define GLAIVE_NUMBERS(ID, Name)                                       \
  case arrow::Type::ID:                                                \
    return BuildKeys<arrow::Name##Builder>(values, [](const auto& v) { \
      return static_cast<arrow::Name##Type::c_type>(v.number);         \
    })
    GLAIVE_NUMBERS(INT8, Int8);
    GLAIVE_NUMBERS(INT16, Int16);
    GLAIVE_NUMBERS(INT32, Int32);
    GLAIVE_NUMBERS(INT64, Int64);
    GLAIVE_NUMBERS(UINT8, UInt8);
    GLAIVE_NUMBERS(UINT16, UInt16);
    GLAIVE_NUMBERS(UINT32, UInt32);
    GLAIVE_NUMBERS(UINT64, UInt64);
#undef GLAIVE_NUMBERS
    case arrow::Type::BOOL:
      return BuildKeys<arrow::BooleanBuilder>(
          values, [](const auto& v) { return v.number != 0; });
    case arrow::Type::STRING:
      return BuildKeys<arrow::StringBuilder>(values, text);
    case arrow::Type::LARGE_STRING:
      return BuildKeys<arrow::LargeStringBuilder>(values, text);
    case arrow::Type::BINARY:
      return BuildKeys<arrow::BinaryBuilder>(values, text);
    default:
      return BuildKeys<arrow::LargeBinaryBuilder>(values, text);
  }
}

inline table::TableEnv MakeEnv(std::shared_ptr<io::ObjectStore> store, int threads = 2) {
  return {Runtime::Make({.num_threads = threads}).ValueOrDie(), std::move(store)};
}

// A column of the primary key; `position` from 1.
inline std::shared_ptr<arrow::Field> KeyField(std::string name,
                                              std::shared_ptr<arrow::DataType> type,
                                              int position = 1) {
  return arrow::field(
      std::move(name), std::move(type), /*nullable=*/false,
      arrow::key_value_metadata({"lance-schema:unenforced-primary-key",
                                 "lance-schema:unenforced-primary-key:position"},
                                {"true", std::to_string(position)}));
}

// An empty base table.
inline table::Dataset::Ptr MakeBase(const std::shared_ptr<arrow::Schema>& schema,
                                    std::shared_ptr<io::ObjectStore> store,
                                    table::WriteOptions options = {}, int threads = 2) {
  auto base =
      table::Dataset::WriteEmpty(MakeEnv(std::move(store), threads), *schema, options);
  EXPECT_TRUE(base.ok()) << base.status().ToString();
  return *base;
}

inline std::shared_ptr<const FreshSchema> MakeFresh(
    const std::shared_ptr<arrow::Schema>& schema) {
  auto fresh = FreshSchema::Make(*MakeBase(schema, io::MakeMemoryStore()));
  EXPECT_TRUE(fresh.ok()) << fresh.status().ToString();
  return *fresh;
}

}  // namespace glaive::memwal
