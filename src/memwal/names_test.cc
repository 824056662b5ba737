#include "memwal/names.h"

#include <limits>
#include <random>
#include <set>
#include <string>

#include "base/testing.h"
#include "memwal/sha1.h"

namespace glaive::memwal {
namespace {

TEST(BitReversedTest, KnownNames) {
  EXPECT_EQ(BitReversed(1), "1" + std::string(63, '0'));
  EXPECT_EQ(BitReversed(5), "101" + std::string(61, '0'));
  EXPECT_EQ(BitReversed(0), std::string(64, '0'));
  EXPECT_EQ(BitReversed(std::numeric_limits<uint64_t>::max()), std::string(64, '1'));
  EXPECT_EQ(BitReversed(uint64_t{1} << 63), std::string(63, '0') + "1");
}

TEST(BitReversedTest, RoundTrips) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 200; ++i) {
    const uint64_t n = random() >> (random() % 64);
    EXPECT_EQ(ParseBitReversed(BitReversed(n) + ".arrow"), n);
    EXPECT_EQ(ParseBitReversed(BitReversed(n)), n);
  }
}

TEST(BitReversedTest, RefusesOtherNames) {
  EXPECT_FALSE(ParseBitReversed(""));
  EXPECT_FALSE(ParseBitReversed("version_hint.json"));
  EXPECT_FALSE(ParseBitReversed(std::string(63, '0') + ".arrow"));
  EXPECT_FALSE(ParseBitReversed(std::string(65, '0') + ".arrow"));
  EXPECT_FALSE(ParseBitReversed(std::string(63, '0') + "2.arrow"));
  EXPECT_FALSE(ParseBitReversed("." + std::string(64, '0')));
}

TEST(Sha1Test, PublishedVectors) {
  const auto hex = [](std::string_view text) {
    std::string out;
    for (uint8_t byte : Sha1("", text)) {
      out += "0123456789abcdef"[byte >> 4];
      out += "0123456789abcdef"[byte & 15];
    }
    return out;
  };
  EXPECT_EQ(hex(""), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
  EXPECT_EQ(hex("abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
  EXPECT_EQ(hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
  EXPECT_EQ(hex(std::string(1'000'000, 'a')), "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
}

TEST(ShardIdTest, DerivesAsLanceDb) {
  EXPECT_EQ(ShardId::Derive("unsharded").ToString(),
            "aa48498d-ac91-59e2-8452-69f46010ace2");
  EXPECT_EQ(ShardId::Derive("bucket-0").ToString(),
            "4a388480-a25b-59a8-b058-24217f980256");
  EXPECT_EQ(ShardId::Derive("bucket-3").ToString(),
            "1d8d46d4-1ffd-5f6e-9aea-466d5ea76fdb");
  EXPECT_EQ(ShardId::Derive("identity-us").ToString(),
            "e1794536-1200-59f9-8b6e-2da8285e103c");
  EXPECT_EQ(ShardId::Derive(std::string("identity-") + '\x01' + std::string(7, '\0'))
                .ToString(),
            "d2e289e0-8bef-529d-9036-907161abc5f8");
}

TEST(ShardIdTest, ParsesUsualSpellings) {
  const std::string text = "aa48498d-ac91-59e2-8452-69f46010ace2";
  for (const std::string& spelling :
       {text, std::string("AA48498D-AC91-59E2-8452-69F46010ACE2"),
        std::string("aa48498dac9159e2845269f46010ace2"), "{" + text + "}",
        "urn:uuid:" + text}) {
    ASSERT_OK_AND_ASSIGN(const ShardId id, ShardId::Parse(spelling));
    EXPECT_EQ(id.ToString(), text);
    EXPECT_EQ(id, ShardId::Derive("unsharded"));
  }
}

TEST(ShardIdTest, RefusesEverythingElse) {
  for (const char* text :
       {"", "x", "aa48498d-ac91-59e2-8452-69f46010ace",
        "aa48498dac9159e2845269f46010aceg", "aa48498d-ac91-59e2-845269f4-6010ace2",
        "{aa48498dac9159e2845269f46010ace2}", "../aa48498d-ac91-59e2-8452-69f4601..",
        " aa48498d-ac91-59e2-8452-69f46010ace2"}) {
    auto id = ShardId::Parse(text);
    EXPECT_ERROR_KIND(id, ErrorKind::kInvalidInput);
    EXPECT_NE(id.status().message().find("Invalid shard_id UUID: "), std::string::npos);
  }
  EXPECT_ERROR_KIND(ShardId::FromBytes("short"), ErrorKind::kInvalidInput);
}

TEST(PathsTest, LieBelowTheShard) {
  const ShardId shard = ShardId::Derive("unsharded");
  const std::string dir = "_mem_wal/aa48498d-ac91-59e2-8452-69f46010ace2";
  EXPECT_EQ(ShardDir(shard), dir);
  EXPECT_EQ(ShardManifestPath(shard, 2),
            dir + "/manifest/01" + std::string(62, '0') + ".binpb");
  EXPECT_EQ(ShardManifestHintPath(shard), dir + "/manifest/version_hint.json");
  EXPECT_EQ(WalEntryPath(shard, 1), dir + "/wal/1" + std::string(63, '0') + ".arrow");
}

TEST(PathsTest, Generations) {
  const ShardId shard = ShardId::Derive("unsharded");
  std::set<std::string> names;
  for (int i = 0; i < 20; ++i) {
    const std::string name = NewGenerationName(7);
    ASSERT_EQ(name.size(), 14u);
    EXPECT_EQ(name.substr(8), "_gen_7");
    EXPECT_EQ(name.find_first_not_of("0123456789abcdef"), 8u);
    names.insert(name);
  }
  EXPECT_EQ(names.size(), 20u);
  for (const char* name : {"gen_1", "gen_1/", "gen_1//"}) {
    ASSERT_OK_AND_ASSIGN(const std::string dir, GenerationDir(shard, name));
    EXPECT_EQ(dir, ShardDir(shard) + "/gen_1");
  }
  ASSERT_OK_AND_ASSIGN(const std::string nested, GenerationDir(shard, "a/b"));
  EXPECT_EQ(nested, ShardDir(shard) + "/a/b");
  for (const char* name : {"", "/", ".", "..", "../x", "a/../b", "/etc", "a//b", "a/..",
                           "manifest", "wal/", "manifest/x"}) {
    EXPECT_ERROR_KIND(GenerationDir(shard, name), ErrorKind::kCorruption);
  }
}

}  // namespace
}  // namespace glaive::memwal
