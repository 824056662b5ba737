#include "encoding/jsonb.h"

#include <random>

#include "base/testing.h"

namespace glaive::encoding {
namespace {

std::string Hex(std::string_view bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (char c : bytes) {
    out += kDigits[static_cast<uint8_t>(c) >> 4];
    out += kDigits[static_cast<uint8_t>(c) & 15];
  }
  return out;
}

// Bytes and texts as pylance 14.0.2 writes and reads them.
struct Case {
  const char* json;
  const char* hex;
  const char* back;
};
const Case kCases[] = {
    {"0", "200000002000000100", "0"},
    {"-0.0", "2000000020000009608000000000000000", "-0.0"},
    {"-1", "200000002000000240ff", "-1"},
    {"-129", "200000002000000340ff7f", "-129"},
    {"255", "200000002000000250ff", "255"},
    {"65536", "20000000200000055000010000", "65536"},
    {"18446744073709551615", "200000002000000950ffffffffffffffff",
     "18446744073709551615"},
    {"18446744073709551616", "20000000200000096043f0000000000000",
     "1.8446744073709552e+19"},
    {"-9223372036854775809", "200000002000000960c3e0000000000000",
     "-9.223372036854776e+18"},
    {"1e5", "20000000200000096040f86a0000000000", "100000.0"},
    {"1e-7", "2000000020000009603e7ad7f29abcaf48", "1e-7"},
    {"null", "2000000000000000", "null"},
    {"true", "2000000040000000", "true"},
    {"\"a\\u00e9\\n\\t\\\"\\\\/\\u0001\"", "200000001000000961c3a90a09225c2f01",
     "\"a\xc3\xa9\\n\\t\\\"\\\\/\\u0001\""},
    {"[]", "80000000", "[]"},
    {"{}", "40000000", "{}"},
    {"{\"bb\":1,\"a\":2,\"\":0}",
     "400000031000000010000001100000022000000120000002200000026162620050025001",
     "{\"\":0,\"a\":2,\"bb\":1}"},
    {" [ 1 , {\"x\" : [ ] } ] ",
     "80000002200000025000001150014000000110000001500000047880000000", "[1,{\"x\":[]}]"},
};

TEST(Jsonb, BytesAndTextsAsUpstream) {
  for (const Case& c : kCases) {
    std::string bytes, text;
    ASSERT_OK(JsonToJsonb(c.json, &bytes));
    EXPECT_EQ(Hex(bytes), c.hex) << c.json;
    ASSERT_OK(JsonbToJson(bytes, &text));
    EXPECT_EQ(text, c.back);
  }
}

TEST(Jsonb, RefusesWhatIsNotJson) {
  for (const char* bad :
       {"", "{", "[1,]", "{\"a\":01}", "nul", "{\"a\":1,\"a\":2}", "\"\\x\""}) {
    std::string bytes = "kept";
    EXPECT_ERROR_KIND(JsonToJsonb(bad, &bytes), ErrorKind::kInvalidInput);
    EXPECT_EQ(bytes, "kept");
  }
  std::string deep(100000, '['), out;
  EXPECT_ERROR_KIND(JsonToJsonb(deep, &out), ErrorKind::kInvalidInput);
}

TEST(Jsonb, DamagedBytesAreAnErrorOrSomeText) {
  std::string bytes, text;
  ASSERT_OK(JsonToJsonb("{\"a\":[1,2.5,{\"b\":\"c\"},-7],\"k\":null}", &bytes));
  std::mt19937 random(7);
  for (int i = 0; i < 20000; ++i) {
    std::string broken = bytes.substr(0, random() % (bytes.size() + 1));
    for (int flips = static_cast<int>(random() % 3); flips > 0 && !broken.empty();
         --flips) {
      broken[random() % broken.size()] ^= static_cast<char>(1u << (random() % 8));
    }
    text.clear();
    Status s = JsonbToJson(broken, &text);
    EXPECT_TRUE(s.ok() || KindOf(s) == ErrorKind::kCorruption ||
                KindOf(s) == ErrorKind::kNotSupported)
        << s.ToString();
  }
}

}  // namespace
}  // namespace glaive::encoding
