#include "memwal/bloom.h"

#include "memwal/test_util.h"

namespace glaive::memwal {
namespace {

using Arrays = std::vector<std::shared_ptr<arrow::Array>>;

std::shared_ptr<arrow::Array> One(const std::shared_ptr<arrow::DataType>& type,
                                  KeyValue value) {
  return MakeKeys(*type, {std::move(value)});
}

// Computed with Rust's DefaultHasher, which upstream uses.
TEST(KeyBloom, HashesWrittenDown) {
  EXPECT_EQ(BloomHash({}, 0), 0xd1fba762150c532cu);
  EXPECT_EQ(BloomHash(Arrays{One(arrow::int32(), {.number = 1})}, 0),
            0x53de5ce8452a2c5au);
  EXPECT_EQ(BloomHash(Arrays{One(arrow::int64(), {.number = 42})}, 0),
            0x93c45f51b62f6d54u);
  EXPECT_EQ(BloomHash(Arrays{One(arrow::utf8(), {.text = "abc"})}, 0),
            0xfde4b1f7e5502580u);
  EXPECT_EQ(BloomHash(Arrays{One(arrow::binary(), {.text = "abc"})}, 0),
            0xf0e2804c09bbbb30u);
}

int64_t OnlyBlock(const KeyBloom& bloom) {
  const auto bytes = bloom.ToBytes();
  int64_t block = -1;
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] == 0) continue;
    if (block >= 0 && block != static_cast<int64_t>(i / 32)) return -2;
    block = static_cast<int64_t>(i / 32);
  }
  return block;
}

TEST(KeyBloom, OtherTypesFillOneBlock) {
  for (const auto& type : KeyTypes()) {
    const bool hashed = type->Equals(arrow::int32()) || type->Equals(arrow::int64()) ||
                        type->Equals(arrow::utf8()) || type->Equals(arrow::binary());
    EXPECT_EQ(CanPrune(std::vector{type}), hashed) << type->ToString();
    EXPECT_FALSE(CanPrune(std::vector{type, arrow::int8()}));
    if (hashed) continue;
    KeyBloom bloom;
    bloom.Insert(Arrays{MakeKeys(*type, {{.number = 1}, {.number = 0}})});
    EXPECT_EQ(OnlyBlock(bloom), 418) << type->ToString();
  }
  KeyBloom keyless;
  keyless.InsertKeyless();
  EXPECT_EQ(OnlyBlock(keyless), 839);
  EXPECT_FALSE(CanPrune({}));
}

TEST(KeyBloom, FindsWhatWasInserted) {
  std::mt19937_64 random(TestSeed());
  const std::shared_ptr<arrow::DataType> types[] = {arrow::int32(), arrow::int64(),
                                                    arrow::utf8(), arrow::binary()};
  for (int round = 0; round < 20; ++round) {
    Arrays columns;
    constexpr int64_t kRows = 700;
    for (uint64_t c = 0, n = 1 + random() % 3; c < n; ++c) {
      const auto& type = types[random() % 4];
      std::vector<KeyValue> values(kRows + 1);
      for (KeyValue& v : values) v = RandomKeyValue(*type, random, true, 1 << 30);
      columns.push_back(MakeKeys(*type, values)->Slice(1));
    }
    KeyBloom bloom;
    bloom.Insert(columns);
    ASSERT_OK_AND_ASSIGN(const KeyBloom parsed, KeyBloom::Parse(bloom.ToBytes()));
    for (int64_t i = 0; i < kRows; ++i) EXPECT_TRUE(parsed.MayContain(columns, i));
  }
}

TEST(KeyBloom, SaysNoMostly) {
  arrow::Int64Builder in, out;
  for (int64_t i = 0; i < 8192; ++i) {
    ASSERT_OK(in.Append(i));
    ASSERT_OK(out.Append(i + 1'000'000));
  }
  KeyBloom bloom;
  bloom.Insert(Arrays{in.Finish().ValueOrDie()});
  const Arrays others = {out.Finish().ValueOrDie()};
  int wrong = 0;
  for (int64_t i = 0; i < 8192; ++i) wrong += bloom.MayContain(others, i) ? 1 : 0;
  EXPECT_LT(wrong, 25);  // 0.057 % are expected
}

TEST(KeyBloom, OtherSizesAreCorrupt) {
  EXPECT_KIND(ErrorKind::kCorruption,
              KeyBloom::Parse(std::vector<uint8_t>(32767)).status());
  EXPECT_KIND(ErrorKind::kCorruption, KeyBloom::Parse({}).status());
}

}  // namespace
}  // namespace glaive::memwal
