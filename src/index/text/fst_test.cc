#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "index/text/fst_builder.h"
#include "index/text/fst_format.h"
#include "index/text/fst_reader.h"

namespace glaive::text {
namespace {

using Map = std::map<std::string, uint64_t>;
using ::testing::HasSubstr;

std::span<const uint8_t> Bytes(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

std::string Build(const Map& map) {
  FstBuilder builder;
  for (const auto& [key, value] : map) EXPECT_TRUE(builder.Add(key, value).ok());
  return std::move(builder).Finish();
}

Result<Map> Read(const std::string& bytes) {
  GLAIVE_ASSIGN_OR_RETURN(const FstReader reader, FstReader::Open(Bytes(bytes)));
  Map map;
  GLAIVE_RETURN_NOT_OK(reader.ForEach([&](std::string_view key, uint64_t value) {
    EXPECT_TRUE(map.empty() || map.rbegin()->first < key);
    map[std::string(key)] = value;
    return Status::OK();
  }));
  return map;
}

void Check(const Map& map) {
  const std::string bytes = Build(map);
  auto read = Read(bytes);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, map);
  auto reader = FstReader::Open(Bytes(bytes));
  ASSERT_TRUE(reader.ok());
  for (const auto& [key, value] : map) {
    EXPECT_EQ(reader->Find(key).ValueOrDie(), value) << key;
    if (!map.contains(key + "~")) {
      EXPECT_EQ(reader->Find(key + "~").ValueOrDie(), std::nullopt);
    }
  }
}

void Seal(std::string* bytes) {
  bytes->resize(bytes->size() - 4);
  const uint32_t sum = FstChecksum(Bytes(*bytes));
  for (int i = 0; i < 4; ++i) bytes->push_back(static_cast<char>(sum >> (8 * i)));
}

TEST(Fst, Small) {
  Check({});
  Check({{"", 0}});
  Check({{"", 7}});
  Check({{"", 7}, {"a", 3}});
  Check({{"a", 0}});
  Check({{"a", 1}, {"ab", 0}, {"abc", 1u << 31}});
  Check({{"jul", 31}, {"mar", 31}, {"may", 31}, {"jun", 30}, {"feb", 28}});
  Check({{"x", UINT64_MAX}, {"y", 0}, {"yy", UINT64_MAX}});
  Check({{std::string("\0", 1), 5}, {std::string("\0\xff", 2), 4}, {"\xff", 3}});
}

// Every number of transitions, with and without outputs and finality.
TEST(Fst, Wide) {
  for (const int count : {1, 2, 31, 32, 33, 62, 63, 64, 65, 255, 256}) {
    for (const bool final : {false, true}) {
      for (const uint64_t factor : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 40}) {
        Map map;
        if (final) map["k"] = 9 * factor;
        for (int i = 0; i < count; ++i) {
          map[std::string("k") + static_cast<char>(i)] =
              factor * static_cast<uint64_t>(i % 7);
        }
        Check(map);
      }
    }
  }
}

// Byte for byte what the real package wrote for tokens "base" and "row" to "row2".
TEST(Fst, BytesOfTheRealPackage) {
  const std::string real(
      "\x03\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x10\x82\xc6\xc5\x02\x01\0\0\0\0"
      "210\x11\x03\xd2\xc7\xc4\x01\0\x01\x0fwb\x11\x02\x04\0\0\0\0\0\0\0*\0\0\0\0\0\0\0"
      "7\x8fh\xd4",
      63);
  auto map = Read(real);
  ASSERT_TRUE(map.ok()) << map.status();
  EXPECT_EQ(*map, (Map{{"base", 0}, {"word0", 1}, {"word1", 2}, {"word2", 3}}));
  EXPECT_EQ(Build(*map), real);
}

TEST(Fst, RandomMaps) {
  const char* text = std::getenv("GLAIVE_TEST_SEED");
  const auto seed = static_cast<uint32_t>(text ? std::atoi(text) : 20261201);
  SCOPED_TRACE("GLAIVE_TEST_SEED=" + std::to_string(seed));
  std::mt19937 rng(seed);
  for (int round = 0; round < 60; ++round) {
    const uint32_t letters = 1 + rng() % (round % 3 == 0 ? 256 : 4);
    const size_t size = rng() % 400;
    const uint64_t bound = uint64_t{1} << (rng() % 60);
    Map map;
    while (map.size() < size) {
      std::string key(rng() % 12, ' ');
      for (char& c : key) c = static_cast<char>('a' + rng() % letters);
      map[key] = (uint64_t{rng()} << 32 | rng()) % bound;
      if (letters == 1 && map.size() == 12) break;
    }
    Check(map);
  }
}

TEST(Fst, KeysMustAscend) {
  FstBuilder builder;
  ASSERT_TRUE(builder.Add("b", 0).ok());
  EXPECT_EQ(KindOf(builder.Add("b", 1)), ErrorKind::kInvalidInput);
  EXPECT_EQ(KindOf(builder.Add("a", 1)), ErrorKind::kInvalidInput);
}

// Whatever single byte is changed, reading ends, and without reading outside.
TEST(Fst, Damage) {
  Map map;
  for (int i = 0; i < 300; ++i) map["t" + std::to_string(i * 7919 % 1000)] = i;
  const std::string whole = Build(map);
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string bytes = whole;
    bytes[at] = static_cast<char>(bytes[at] + 1);
    EXPECT_EQ(KindOf(Read(bytes).status()), ErrorKind::kCorruption) << at;
    for (const int by : {1, 0x80, 0xff}) {
      std::string sealed = whole;
      sealed[at] = static_cast<char>(sealed[at] ^ by);
      Seal(&sealed);
      const Status status = Read(sealed).status();
      EXPECT_TRUE(status.ok() || KindOf(status) == ErrorKind::kCorruption) << status;
    }
  }
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(Read(whole.substr(0, size)).ok());
  }
}

}  // namespace
}  // namespace glaive::text
