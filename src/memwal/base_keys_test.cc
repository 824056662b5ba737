// The index of a table's keys against a plain map.
#include "memwal/base_keys.h"

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <map>
#include <random>
#include <set>

#include <arrow/api.h>
#include <gtest/gtest.h>

#include "base/testing.h"
#include "io/object_store.h"
#include "runtime/runtime.h"

namespace glaive::memwal {
namespace {

using table::Dataset;

uint64_t Seed() {
  const char* given = std::getenv("GLAIVE_TEST_SEED");
  const auto seed =
      given != nullptr ? std::strtoull(given, nullptr, 10)
                       : static_cast<uint64_t>(
                             std::chrono::steady_clock::now().time_since_epoch().count());
  std::cout << "seed " << seed << " (GLAIVE_TEST_SEED repeats it)\n";
  return seed;
}

table::TableEnv MakeEnv() {
  return {Runtime::Make({.num_threads = 2}).ValueOrDie(), io::MakeMemoryStore()};
}

Dataset::Ptr Write(const table::TableEnv& env, const arrow::ArrayVector& columns,
                   int64_t rows_per_file) {
  arrow::FieldVector fields;
  for (size_t c = 0; c < columns.size(); ++c) {
    fields.push_back(
        arrow::field("k" + std::to_string(c), columns[c]->type(), c == columns.size()));
  }
  const auto schema = arrow::schema(fields);
  auto reader = arrow::RecordBatchReader::Make(
      {arrow::RecordBatch::Make(schema, columns[0]->length(), columns)}, schema);
  table::WriteOptions options;
  options.max_rows_per_file = rows_per_file;
  auto dataset = Dataset::Write(env, **reader, options);
  EXPECT_OK(dataset.status());
  return *dataset;
}

// Compares both ways of finding keys with a map of them.
void Check(Dataset::Ptr dataset, const arrow::ArrayVector& columns,
           const arrow::ArrayVector& others, int64_t per_file, std::mt19937_64* random) {
  ASSERT_OK_AND_ASSIGN(const EncodedKeys rows, EncodeKeys(columns));
  table::DeletedRows deleted;
  std::map<std::string, std::set<int64_t>, std::less<>> all, live;
  for (int64_t r = 0; r < rows.size(); ++r) {
    all[std::string(rows[r])].insert(r);
    if ((*random)() % 4 == 0) {
      deleted[r / per_file].push_back(static_cast<uint32_t>(r % per_file));
    } else {
      live[std::string(rows[r])].insert(r);
    }
  }
  if (!deleted.empty()) {
    ASSERT_OK_AND_ASSIGN(dataset, dataset->CommitDelete(deleted, "x"));
  }
  // All rows of fragments that are left; one without a live row is gone.
  std::set<int64_t> there;
  for (int f = 0; f < dataset->num_fragments(); ++f) {
    for (int64_t i = 0; i < per_file; ++i) {
      there.insert(dataset->fragment_id(f) * per_file + i);
    }
  }
  std::vector<std::string> names;
  for (size_t c = 0; c < columns.size(); ++c) names.push_back("k" + std::to_string(c));
  std::vector<int> fragments(static_cast<size_t>(dataset->num_fragments()));
  for (size_t i = 0; i < fragments.size(); ++i) fragments[i] = static_cast<int>(i);
  for (const int64_t max_bytes : {int64_t{0}, int64_t{1}}) {
    ASSERT_OK_AND_ASSIGN(auto keys, BaseKeys::Make(*dataset, names, max_bytes));
    ASSERT_EQ(keys->indexed(), max_bytes == 0 || there.empty());
    for (const arrow::ArrayVector& probe : {columns, others}) {
      ASSERT_OK_AND_ASSIGN(const EncodedKeys probes, EncodeKeys(probe));
      ASSERT_OK_AND_ASSIGN(const auto places, keys->FindLive(*dataset, probes));
      std::set<int64_t> expected;
      for (int64_t k = 0; k < probes.size(); ++k) {
        const auto& place = places[static_cast<size_t>(k)];
        const auto model = live.find(probes[k]);
        ASSERT_EQ(place.has_value(), model != live.end()) << k;
        if (auto found = all.find(probes[k]); found != all.end()) {
          for (const int64_t row : found->second) {
            if (there.contains(row)) expected.insert(row);
          }
        }
        if (!place) continue;
        const int64_t row =
            dataset->fragment_id(place->fragment) * per_file + place->offset;
        ASSERT_TRUE(model->second.contains(row));
      }
      ASSERT_OK_AND_ASSIGN(const auto matching,
                           keys->Matching(*dataset, fragments, probes));
      std::set<int64_t> found;
      for (size_t f = 0; f < matching.size(); ++f) {
        ASSERT_TRUE(std::is_sorted(matching[f].begin(), matching[f].end()));
        for (uint32_t offset : matching[f]) {
          found.insert(dataset->fragment_id(static_cast<int>(f)) * per_file + offset);
        }
      }
      ASSERT_EQ(found, expected);
    }
  }
}

template <typename Builder, typename Value>
std::shared_ptr<arrow::Array> Make(int64_t rows, const Value& value) {
  Builder builder;
  for (int64_t i = 0; i < rows; ++i) EXPECT_OK(builder.Append(value(i)));
  return *builder.Finish();
}

TEST(BaseKeys, IntegersAndTextAndSeveralColumns) {
  std::mt19937_64 random(Seed());
  const int64_t rows = 5000, per_file = 1700;
  const auto any = [&](int64_t) { return static_cast<int64_t>(random()); };
  const auto few = [&](int64_t) { return static_cast<int64_t>(random() % 3000) - 1000; };
  const auto text = [&](int64_t) {
    return std::string(random() % 4, static_cast<char>(random() % 3)) +
           std::to_string(random() % 4000);
  };
  {
    const auto a = Make<arrow::Int64Builder>(rows, any);
    Check(Write(MakeEnv(), {a}, per_file), {a}, {Make<arrow::Int64Builder>(99, any)},
          per_file, &random);
  }
  {  // dense in each file, with duplicates between them
    const auto a = Make<arrow::Int32Builder>(
        rows, [&](int64_t i) { return static_cast<int32_t>(i % per_file - 5); });
    Check(Write(MakeEnv(), {a}, per_file), {a},
          {Make<arrow::Int32Builder>(
              500, [](int64_t i) { return static_cast<int32_t>(i * 100 - 2000); })},
          per_file, &random);
  }
  {  // the ends of the range
    const auto a = Make<arrow::UInt64Builder>(
        4, [](int64_t i) { return static_cast<uint64_t>(i - 2); });
    Check(Write(MakeEnv(), {a}, per_file), {a},
          {Make<arrow::UInt64Builder>(2, [](int64_t i) { return i == 0 ? 2 : 77; })},
          per_file, &random);
  }
  {
    const auto a = Make<arrow::Int64Builder>(rows, few);
    Check(Write(MakeEnv(), {a}, per_file), {a}, {Make<arrow::Int64Builder>(99, few)},
          per_file, &random);
  }
  {
    const auto a = Make<arrow::StringBuilder>(rows, text);
    Check(Write(MakeEnv(), {a}, per_file), {a}, {Make<arrow::StringBuilder>(99, text)},
          per_file, &random);
    const auto b = Make<arrow::Int16Builder>(
        rows, [&](int64_t) { return static_cast<int16_t>(random() % 3); });
    Check(Write(MakeEnv(), {a, b}, per_file), {a, b}, {a->Slice(7, 90), b->Slice(9, 90)},
          per_file, &random);
  }
}

TEST(BaseKeys, AMillionKeysTakeLittleMemory) {
  std::mt19937_64 random(7);
  const int64_t rows = 1'000'000;
  const auto a = Make<arrow::Int64Builder>(
      rows, [&](int64_t) { return static_cast<int64_t>(random()); });
  const auto env = MakeEnv();
  const auto dataset = Write(env, {a}, rows);
  ASSERT_OK_AND_ASSIGN(auto reader, dataset->OpenFragment(0));
  const auto start = std::chrono::steady_clock::now();
  ASSERT_OK_AND_ASSIGN(auto keys,
                       FileKeys::Build(*env.runtime, *reader, dataset->schema()));
  const auto built = std::chrono::steady_clock::now();
  ASSERT_LE(keys->size_bytes(), rows * 20);
  ASSERT_OK_AND_ASSIGN(const EncodedKeys encoded, EncodeKeys(arrow::ArrayVector{a}));
  const auto probing = std::chrono::steady_clock::now();
  int64_t found = 0;
  for (int64_t i = 0; i < rows; ++i) {
    keys->Find(encoded[i], [&](uint32_t offset) { found += offset == i ? 1 : 0; });
  }
  const auto done = std::chrono::steady_clock::now();
  ASSERT_EQ(found, rows);
  const auto us = [](auto a1, auto b1) {
    return std::chrono::duration_cast<std::chrono::microseconds>(b1 - a1).count();
  };
  std::cout << "built in " << us(start, built) << " us, 1 M look-ups in "
            << us(probing, done) << " us, " << keys->size_bytes() << " bytes\n";
}

}  // namespace
}  // namespace glaive::memwal
