#include "memwal/keys.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <thread>
#include <unordered_map>

#include <arrow/util/bit_util.h>

#include "memwal/test_util.h"
#include "runtime/runtime.h"

namespace glaive::memwal {
namespace {

using Arrays = std::vector<std::shared_ptr<arrow::Array>>;

std::string Hex(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    char two[3];
    std::snprintf(two, sizeof(two), "%02x", static_cast<unsigned char>(c));
    text += two;
  }
  return text;
}

// The format as its description puts it, one value at a time.
std::string Encode(const arrow::DataType& type, const KeyValue& value) {
  if (value.null) return std::string(1, '\0');
  std::string out(1, '\1');
  if (IsText(type)) {
    for (const char c : value.text) {
      out += c;
      if (c == '\0') out += '\xFF';
    }
    out += '\0';
    out += '\0';
  } else if (type.id() == arrow::Type::BOOL) {
    out += static_cast<char>(value.number);
  } else {
    auto word = static_cast<uint64_t>(value.number);
    if (arrow::is_signed_integer(type.id())) word += uint64_t{1} << 63;
    for (int shift = 56; shift >= 0; shift -= 8) {
      out += static_cast<char>(word >> shift & 0xFF);
    }
  }
  return out;
}

TEST(EncodeKeys, WrittenDown) {
  const auto encode = [](const arrow::DataType& type, KeyValue value) {
    auto keys = EncodeKeys(Arrays{MakeKeys(type, {std::move(value)})});
    EXPECT_TRUE(keys.ok());
    return Hex((*keys)[0]);
  };
  EXPECT_EQ(encode(*arrow::int64(), {.number = 0}), "018000000000000000");
  EXPECT_EQ(encode(*arrow::int64(), {.number = -1}), "017fffffffffffffff");
  EXPECT_EQ(encode(*arrow::int64(), {.number = INT64_MIN}), "010000000000000000");
  EXPECT_EQ(encode(*arrow::int32(), {.number = 258}), "018000000000000102");
  EXPECT_EQ(encode(*arrow::int8(), {.number = -2}), "017ffffffffffffffe");
  EXPECT_EQ(encode(*arrow::uint8(), {.number = 255}), "0100000000000000ff");
  EXPECT_EQ(encode(*arrow::uint64(), {.number = -1}), "01ffffffffffffffff");
  EXPECT_EQ(encode(*arrow::boolean(), {.number = 1}), "0101");
  EXPECT_EQ(encode(*arrow::boolean(), {.number = 0}), "0100");
  EXPECT_EQ(encode(*arrow::utf8(), {}), "010000");
  EXPECT_EQ(encode(*arrow::utf8(), {.text = "ab"}), "0161620000");
  EXPECT_EQ(encode(*arrow::binary(), {.text = std::string("a\0b", 3)}), "016100ff620000");
  EXPECT_EQ(encode(*arrow::int64(), {.null = true}), "00");
  EXPECT_EQ(encode(*arrow::large_utf8(), {.null = true}), "00");
}

TEST(EncodeKeys, RandomColumns) {
  std::mt19937_64 random(TestSeed());
  for (int round = 0; round < 300; ++round) {
    const auto rows = static_cast<size_t>(random() % 50);
    const bool nulls = random() % 2 == 0;
    Arrays columns;
    std::vector<std::string> expected(rows);
    const auto num_columns = 1 + random() % 3;
    for (size_t c = 0; c < num_columns; ++c) {
      const auto& type = KeyTypes()[random() % KeyTypes().size()];
      std::vector<KeyValue> values(rows + 3);
      for (KeyValue& value : values) value = RandomKeyValue(*type, random, nulls);
      // A slice, so that offsets count.
      columns.push_back(MakeKeys(*type, values)->Slice(2, static_cast<int64_t>(rows)));
      for (size_t i = 0; i < rows; ++i) expected[i] += Encode(*type, values[i + 2]);
    }
    ASSERT_OK_AND_ASSIGN(const EncodedKeys keys, EncodeKeys(columns));
    ASSERT_EQ(keys.size(), static_cast<int64_t>(rows));
    for (size_t i = 0; i < rows; ++i) {
      ASSERT_EQ(Hex(keys[static_cast<int64_t>(i)]), Hex(expected[i]));
    }
  }
}

TEST(EncodeKeys, OrderOfBytesIsOrderOfValues) {
  std::mt19937_64 random(TestSeed() + 1);
  for (const auto& type : KeyTypes()) {
    std::vector<KeyValue> values(200);
    for (KeyValue& value : values) value = RandomKeyValue(*type, random, true);
    ASSERT_OK_AND_ASSIGN(const EncodedKeys keys,
                         EncodeKeys(Arrays{MakeKeys(*type, values)}));
    const auto less = [&](const KeyValue& a, const KeyValue& b) {
      if (a.null || b.null) return a.null && !b.null;
      if (IsText(*type)) return a.text < b.text;
      if (arrow::is_unsigned_integer(type->id())) {
        return static_cast<uint64_t>(a.number) < static_cast<uint64_t>(b.number);
      }
      return a.number < b.number;
    };
    for (size_t i = 0; i < values.size(); ++i) {
      for (size_t j = 0; j < values.size(); ++j) {
        ASSERT_EQ(keys[static_cast<int64_t>(i)] < keys[static_cast<int64_t>(j)],
                  less(values[i], values[j]))
            << type->ToString();
      }
    }
  }
}

TEST(EncodeKeys, OtherTypesAreRefused) {
  for (const auto& type :
       {arrow::float32(), arrow::float64(), arrow::date32(),
        arrow::timestamp(arrow::TimeUnit::MICRO), arrow::fixed_size_binary(4)}) {
    EXPECT_FALSE(IsKeyType(*type));
    auto array = arrow::MakeArrayOfNull(type, 1).ValueOrDie();
    EXPECT_KIND(ErrorKind::kNotSupported, EncodeKeys(Arrays{array}).status());
  }
  for (const auto& type : KeyTypes()) EXPECT_TRUE(IsKeyType(*type));
}

TEST(KeyMap, AgainstADictionary) {
  std::mt19937_64 random(TestSeed() + 2);
  for (int round = 0; round < 40; ++round) {
    const auto& type = KeyTypes()[static_cast<size_t>(round) % KeyTypes().size()];
    KeyMap map;
    if (round % 3 == 0) map.Reserve(static_cast<int64_t>(random() % 500));
    std::unordered_map<std::string, uint32_t> model;
    uint32_t row = 0;
    std::vector<KeyMap::Link> links;
    for (int batch = 0; batch < 12; ++batch) {
      std::vector<KeyValue> values(random() % 300);
      for (KeyValue& v : values) v = RandomKeyValue(*type, random, true, 3000);
      ASSERT_OK_AND_ASSIGN(const EncodedKeys keys,
                           EncodeKeys(Arrays{MakeKeys(*type, values)}));
      links.resize(values.size());
      const bool all = random() % 2 == 0;
      int64_t known = 0;
      if (all) known = map.PutAll(keys, 0, keys.size(), row, links.data());
      for (int64_t i = 0; i < keys.size(); ++i) {
        const std::string key(keys[i]);
        const auto found = model.find(key);
        const int64_t before = found == model.end() ? -1 : int64_t{found->second};
        if (all) {
          const KeyMap::Link& link = links[static_cast<size_t>(i)];
          ASSERT_EQ(link.previous == KeyMap::kNoRow ? -1 : int64_t{link.previous},
                    before);
          ASSERT_EQ(Hex(map.key(link.key)), Hex(key));
          known -= before >= 0 ? 1 : 0;
        } else {
          ASSERT_EQ(map.Put(key, row), before);
        }
        model[key] = row++;
      }
      ASSERT_EQ(known, 0);
      ASSERT_EQ(map.num_keys(), static_cast<int64_t>(model.size()));
    }
    for (const auto& [key, last] : model) {
      ASSERT_EQ(map.Find(key), last);
      ASSERT_EQ(map.Find(key + '\x7F'), -1);
    }
    KeyMap moved = std::move(map);
    for (const auto& [key, last] : model) ASSERT_EQ(moved.Find(key), last);
  }
}

// Keys of many batches at once, on one thread and on several, with few and many
// duplicates: as one after the other.
TEST(KeyMap, BuiltAtOnce) {
  std::mt19937_64 random(TestSeed());
  for (const int threads : {1, 2, 4}) {
    ASSERT_OK_AND_ASSIGN(const auto runtime, Runtime::Make({.num_threads = threads}));
    for (const uint64_t distinct : {uint64_t{50}, uint64_t{20'000}, ~uint64_t{0}}) {
      for (const bool long_ones : {false, true}) {
        std::vector<EncodedKeys> batches(20);
        for (EncodedKeys& batch : batches) {
          const size_t rows = random() % 3500;  // some parts are not worth a thread
          for (size_t i = 0; i < rows; ++i) {
            const uint64_t number = random() % distinct;
            const auto* bytes = reinterpret_cast<const uint8_t*>(&number);
            const size_t size = 1 + number % 8;
            batch.bytes.insert(batch.bytes.end(), bytes, bytes + size);
            if (long_ones && number % 1024 == 0)
              batch.bytes.resize(batch.bytes.size() + 300);
            batch.ends.push_back(static_cast<uint32_t>(batch.bytes.size()));
          }
        }
        KeyMap map, expected;
        KeyMap::Links links;
        uint32_t rows = 0;
        for (const EncodedKeys& batch : batches)
          rows += static_cast<uint32_t>(batch.size());
        links.Grow(rows);
        std::vector<KeyTags> tags;
        for (const EncodedKeys& batch : batches) tags.push_back(TagKeys(batch));
        ASSERT_OK_AND_ASSIGN(const int64_t known,
                             map.Build(batches, tags, &links, runtime.get()));
        int64_t expected_known = 0;
        uint32_t row = 0;
        for (const EncodedKeys& batch : batches) {
          for (int64_t i = 0; i < batch.size(); ++i, ++row) {
            const int64_t before = expected.Put(batch[i], row);
            expected_known += before >= 0 ? 1 : 0;
            const KeyMap::Link& link = links[row];
            ASSERT_EQ(link.previous == KeyMap::kNoRow ? -1 : int64_t{link.previous},
                      before);
            ASSERT_EQ(map.key(link.key), batch[i]);
          }
        }
        EXPECT_EQ(known, expected_known);
        EXPECT_EQ(map.num_keys(), expected.num_keys());
        for (const EncodedKeys& batch : batches) {
          for (int64_t i = 0; i < batch.size(); ++i) {
            ASSERT_EQ(map.Find(batch[i]), expected.Find(batch[i]));
          }
        }
        // It goes on as any other.
        ASSERT_EQ(map.Put("one more", row), -1);
        EXPECT_EQ(map.Find("one more"), row);
        EXPECT_EQ(map.Find("none"), -1);
      }
    }
  }
}

TEST(KeyMap, LongKeys) {
  std::mt19937_64 random(TestSeed() + 3);
  KeyMap map;
  std::map<std::string, uint32_t> model;
  for (uint32_t row = 0; row < 200; ++row) {
    std::string key(random() % 3 == 0 ? random() % 300'000 : random() % 64, 'k');
    if (!key.empty()) key[random() % key.size()] = static_cast<char>(random() % 3);
    map.Put(key, row);
    model[key] = row;
  }
  for (const auto& [key, row] : model) ASSERT_EQ(map.Find(key), row);
  EXPECT_GT(map.size_bytes(), 1 << 20);
}

TEST(KeyMap, KeysThatDifferInOneBitSpread) {
  // Neither the place in the table nor the stored bits may be the same for many keys.
  std::map<uint32_t, int> top, tag;
  for (uint64_t i = 0; i < (1 << 16); ++i) {
    std::string key("\1", 1);
    const uint64_t word = __builtin_bswap64(i << 20 ^ uint64_t{1} << 63);
    key.append(reinterpret_cast<const char*>(&word), 8);
    ++top[static_cast<uint32_t>(HashKey(key) >> 48)];
    ++tag[static_cast<uint32_t>(HashKey(key) >> 32)];
  }
  int worst = 0;
  for (const auto& [_, count] : top) worst = std::max(worst, count);
  EXPECT_LT(worst, 16);
  EXPECT_GT(tag.size(), (1u << 16) - 20);
}

// Products that become zero must not swallow what came before.
TEST(KeyMap, CraftedWordsDoNotCollide) {
  std::map<uint64_t, int> hashes;
  for (const uint64_t word : {uint64_t{0}, ~uint64_t{0}, uint64_t{0x9E3779B97F4A7C15}}) {
    for (uint64_t i = 0; i < 1000; ++i) {
      std::string key(40, '\0');
      std::memcpy(key.data(), &i, 8);
      for (int at = 8; at < 40; at += 8) std::memcpy(key.data() + at, &word, 8);
      ++hashes[HashKey(key)];
    }
  }
  EXPECT_EQ(hashes.size(), 3000u);
}

TEST(KeyMap, FindBesidePut) {
  KeyMap map;
  constexpr uint32_t kRows = 60'000;
  std::vector<KeyMap::Link> links(kRows);
  std::atomic<uint32_t> published{0};
  std::atomic<bool> wrong{false};
  const auto key_of = [](uint32_t row) { return "key" + std::to_string(row % 20'000); };
  std::vector<std::thread> readers;
  for (int r = 0; r < 3; ++r) {
    readers.emplace_back([&, r] {
      std::mt19937_64 random(static_cast<uint64_t>(r));
      uint32_t seen = 0;
      while (seen < kRows) {
        seen = published.load(std::memory_order_acquire);
        if (seen == 0) continue;
        const auto row = static_cast<uint32_t>(random() % seen);
        int64_t found = map.Find(key_of(row));
        if (found < int64_t{row} || key_of(static_cast<uint32_t>(found)) != key_of(row)) {
          wrong = true;
        }
        // Back along the links to the row itself.
        while (found > int64_t{row}) found = links[static_cast<size_t>(found)].previous;
        if (found != int64_t{row}) wrong = true;
      }
    });
  }
  for (uint32_t row = 0; row < kRows; row += 100) {
    arrow::BinaryBuilder builder;
    EncodedKeys keys;
    for (uint32_t i = row; i < row + 100; ++i) {
      const std::string key = key_of(i);
      keys.bytes.insert(keys.bytes.end(), key.begin(), key.end());
      keys.ends.push_back(static_cast<uint32_t>(keys.bytes.size()));
    }
    map.PutAll(keys, 0, keys.size(), row, links.data() + row);
    published.store(row + 100, std::memory_order_release);
  }
  for (std::thread& reader : readers) reader.join();
  EXPECT_FALSE(wrong);
}

}  // namespace
}  // namespace glaive::memwal
