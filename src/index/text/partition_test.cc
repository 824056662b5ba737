#include "index/text/partition.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace glaive::text {
namespace {

using ::testing::ElementsAre;

Partition Make(bool with_position, const std::vector<std::string>& texts) {
  TokenizerParams params;
  params.with_position = with_position;
  auto made = Partition::Make(params);
  EXPECT_TRUE(made.ok()) << made.status();
  Partition partition = std::move(made).ValueOrDie();
  for (size_t row = 0; row < texts.size(); ++row) {
    EXPECT_TRUE(partition.Add(row, texts[row]).ok());
  }
  return partition;
}

// The bytes that the real package wrote for the same three texts.
TEST(Partition, AsTheRealPackageEncodes) {
  const Partition partition =
      Make(true, {"hello brave new world", "stay deleted later", "dogs of war of dogs"});
  EXPECT_THAT(partition.rows(), ElementsAre(0, 1, 2));
  EXPECT_THAT(partition.lengths(), ElementsAre(4, 3, 3));
  const auto tokens = partition.SortedTokens();
  ASSERT_EQ(tokens.size(), 9u);
  EXPECT_EQ(tokens[0].token, "brave");
  const EncodedPosting brave = partition.Encode(tokens[0].index);
  EXPECT_THAT(brave.blocks, ElementsAre(std::string("#\x1ah?\0\x01", 6)));
  EXPECT_FLOAT_EQ(brave.max_score, 0.9066488146781921f);
  EXPECT_THAT(brave.impacts, ElementsAre(std::string("\0\x01\x01\x04", 4),
                                         std::string("\0\x01\x01\x04", 4)));
  EXPECT_EQ(brave.positions, "\x01");
  EXPECT_THAT(brave.position_offsets, ElementsAre(0));
  EXPECT_EQ(tokens[2].token, "dog");
  EXPECT_EQ(partition.Encode(tokens[2].index).positions, std::string("\0\x04", 2));
}

TEST(Partition, TextsWithoutTokensAreNoDocuments) {
  const Partition partition = Make(false, {"the", "", "...", "of dogs"});
  EXPECT_THAT(partition.rows(), ElementsAre(3));
  EXPECT_TRUE(Make(false, {"the", ""}).empty());
}

TEST(Partition, ManyBlocks) {
  std::vector<std::string> texts;
  for (int i = 0; i < 128 * 33 + 5; ++i) {
    texts.push_back("every" + std::string(i % 3 == 0 ? " every" : "") + " row" +
                    std::to_string(i));
  }
  const Partition partition = Make(true, texts);
  EXPECT_GT(partition.size_bytes(), 0);
  const auto tokens = partition.SortedTokens();
  const auto every = std::find_if(tokens.begin(), tokens.end(),
                                  [](const auto& t) { return t.token == "everi"; });
  ASSERT_NE(every, tokens.end());
  EXPECT_EQ(partition.NumDocs(every->index), texts.size());
  const EncodedPosting posting = partition.Encode(every->index);
  EXPECT_EQ(posting.blocks.size(), 34u);
  EXPECT_EQ(posting.impacts.size(), 34u + 2u) << "and two groups of up to 32 blocks";
  EXPECT_EQ(posting.position_offsets.size(), 34u);
}

TEST(Partition, LengthsInEightBits) {
  EXPECT_EQ(LengthByte(0), 0);
  EXPECT_EQ(LengthByte(7), 7);
  EXPECT_EQ(LengthByte(8), 8);
  // The byte stands for the smallest length of its range: 39 for 36, 300 for 288.
  EXPECT_EQ(LengthByte(39), LengthByte(36));
  EXPECT_NE(LengthByte(35), LengthByte(36));
  EXPECT_EQ(LengthByte(300), LengthByte(288));
  EXPECT_NE(LengthByte(287), LengthByte(288));
}

}  // namespace
}  // namespace glaive::text
