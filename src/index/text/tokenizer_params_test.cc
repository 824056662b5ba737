#include "index/text/tokenizer_params.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "format/inverted_index.pb.h"
#include "index/text/test_golden.h"

namespace glaive::text {
namespace {

using ::testing::HasSubstr;

TEST(TokenizerParams, UnknownKeysArePassedOverAndMissingOnesHaveDefaults) {
  auto params = ParseTokenizerParams(R"({"language":"German","new":{"a":[1]}})");
  ASSERT_TRUE(params.ok()) << params.status();
  TokenizerParams expected;
  expected.language = "German";
  EXPECT_EQ(*params, expected);
}

TEST(TokenizerParams, EveryKey) {
  const std::string json =
      R"({"lance_tokenizer":"text","base_tokenizer":"ngram","language":"French",)"
      R"("with_position":true,"max_token_length":null,"lower_case":false,"stem":false,)"
      R"("remove_stop_words":false,"custom_stop_words":["a","é"],"ascii_folding":false,)"
      R"("min_ngram_length":2,"max_ngram_length":5,"prefix_only":true,"block_size":256,)"
      R"("split_identifiers":true,"split_on_numerics":true,"preserve_original":true,)"
      R"("index_operators":true})";
  auto params = ParseTokenizerParams(json);
  ASSERT_TRUE(params.ok()) << params.status();
  EXPECT_EQ(ToJson(*params), json);
}

// Byte for byte what the real package writes.
TEST(TokenizerParams, AsWrittenByTheRealPackage) {
  const std::string real =
      R"({"lance_tokenizer":null,"base_tokenizer":"simple","language":"English",)"
      R"("with_position":false,"max_token_length":40,"lower_case":true,"stem":true,)"
      R"("remove_stop_words":true,"custom_stop_words":null,"ascii_folding":true,)"
      R"("min_ngram_length":3,"max_ngram_length":3,"prefix_only":false,"block_size":128,)"
      R"("split_identifiers":false,"split_on_numerics":false,"preserve_original":false,)"
      R"("index_operators":false})";
  EXPECT_EQ(ToJson(TokenizerParams()), real);
}

TEST(TokenizerParams, DamagedTexts) {
  for (const char* json :
       {"", "[]", "{", "null", R"({"language":3})", R"({"stem":"yes"})",
        R"({"max_token_length":-1})", R"({"min_ngram_length":4294967296})",
        R"({"custom_stop_words":[1]})", R"({"max_token_length":1.5})"}) {
    EXPECT_EQ(KindOf(ParseTokenizerParams(json).status()), ErrorKind::kCorruption)
        << json;
  }
}

TEST(TokenizerParams, OfAManifest) {
  lance::table::InvertedIndexDetails details;
  auto params = ParamsOfDetails(details);
  ASSERT_TRUE(params.ok());
  EXPECT_FALSE(params->has_value()) << "blank details say nothing";

  details.set_base_tokenizer("raw");
  EXPECT_EQ(KindOf(ParamsOfDetails(details).status()), ErrorKind::kCorruption);
  details.set_language("\"Tamil\"");
  details.set_lower_case(true);
  params = ParamsOfDetails(details);
  ASSERT_TRUE(params.ok() && params->has_value());
  EXPECT_EQ((*params)->base_tokenizer, "raw");
  EXPECT_EQ((*params)->language, "Tamil");
  EXPECT_EQ((*params)->max_token_length, std::nullopt);
  EXPECT_TRUE((*params)->lower_case);
  EXPECT_FALSE((*params)->stem);
}

}  // namespace
}  // namespace glaive::text
