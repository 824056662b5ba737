#include "index/text/tokenizer.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "index/text/test_golden.h"

namespace glaive::text {
namespace {

using Tokens = std::vector<std::pair<uint32_t, std::string>>;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

Tokens TokensOf(const TokenizerParams& params, const std::string& text) {
  Tokens tokens;
  auto tokenizer = Tokenizer::Make(params);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  if (!tokenizer.ok()) return tokens;
  (*tokenizer)->Tokenize(text, [&](std::string_view token, uint32_t position) {
    tokens.emplace_back(position, token);
  });
  return tokens;
}

TEST(Tokenizer, AsTheRealPackage) {
  const auto cases = ReadGolden("tokens.json");
  ASSERT_GT(cases.size(), 50u);
  for (const auto& one : cases) {
    const std::string json = one["params"].dump();
    auto params = ParseTokenizerParams(json);
    ASSERT_TRUE(params.ok()) << params.status();
    for (size_t i = 0; i < one["texts"].size(); ++i) {
      const auto text = one["texts"][i].get<std::string>();
      Tokens tokens = TokensOf(*params, text);
      // The index keeps no order among tokens of one position.
      std::sort(tokens.begin(), tokens.end());
      EXPECT_EQ(tokens, one["tokens"][i].get<Tokens>()) << json << "\n" << text;
    }
  }
}

TEST(Tokenizer, GapsStayWhereWordsWereTaken) {
  EXPECT_THAT(TokensOf({}, "Running of the dogs"),
              ElementsAre(Pair(0, "run"), Pair(3, "dog")));
}

TEST(Tokenizer, ManyTextsOneAfterTheOther) {
  auto tokenizer = Tokenizer::Make({});
  ASSERT_TRUE(tokenizer.ok());
  for (int i = 0; i < 3; ++i) {
    Tokens tokens;
    (*tokenizer)->Tokenize("Écoles", [&](std::string_view token, uint32_t position) {
      tokens.emplace_back(position, token);
    });
    EXPECT_THAT(tokens, ElementsAre(Pair(0, "ecole")));
  }
}

// Texts of others need not be UTF-8: whatever comes out, nothing is read that is not
// there.
TEST(Tokenizer, BytesThatAreNoText) {
  for (const char* base : {"simple", "whitespace", "raw", "ngram"}) {
    TokenizerParams params;
    params.base_tokenizer = base;
    for (const std::string text :
         {"\xff\xfe", "a\x80", "\xe2\x82", "\xf8\x88\x80\x80\x80", "x\xc3",
          "\x80\x80\x80", "\xf4\xbf\xbf\xbf"}) {
      TokensOf(params, text);
    }
  }
}

TEST(Tokenizer, WhatIsNotBuiltIsNamed) {
  const auto refused = [](TokenizerParams params, ErrorKind kind, const char* name) {
    const Status status = Tokenizer::Make(params).status();
    EXPECT_EQ(KindOf(status), kind) << name;
    EXPECT_THAT(status.message(), HasSubstr(name));
  };
  for (const char* base :
       {"icu", "icu/split", "jieba/default", "lindera/ipadic", "code"}) {
    TokenizerParams params;
    params.base_tokenizer = base;
    refused(params, ErrorKind::kNotSupported, base);
  }
  TokenizerParams params;
  params.lance_tokenizer = "json";
  refused(params, ErrorKind::kNotSupported, "json");
  params = {};
  params.language = "Klingon";
  refused(params, ErrorKind::kNotSupported, "Klingon");
  params.stem = params.remove_stop_words = false;  // nobody asks for the language
  EXPECT_TRUE(Tokenizer::Make(params).ok());
  params.base_tokenizer = "ngram";
  params.min_ngram_length = 0;
  refused(params, ErrorKind::kInvalidInput, "min_ngram_length");
  params.min_ngram_length = 4;
  refused(params, ErrorKind::kInvalidInput, "max_ngram_length");
}

}  // namespace
}  // namespace glaive::text
