#include "index/text/index_params.h"

#include <map>
#include <string>

#include <arrow/api.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "file/file_writer.h"
#include "format/inverted_index.pb.h"
#include "format/table.pb.h"
#include "io/object_store.h"
#include "runtime/runtime.h"
#include "table/names.h"

namespace glaive::text {
namespace {

using ::testing::HasSubstr;

class IndexParamsTest : public ::testing::Test {
 protected:
  IndexParamsTest() : store_(io::MakeMemoryStore()) {
    RuntimeOptions options;
    options.memory_budget_bytes = int64_t{1} << 28;
    const table::TableEnv env{Runtime::Make(options).ValueOrDie(), store_};
    const auto schema = arrow::schema({arrow::field("t", arrow::utf8())});
    dataset_ = table::Dataset::WriteEmpty(env, *schema, {}).ValueOrDie();
    index_.mutable_uuid()->set_uuid(std::string(16, 'u'));
    index_.set_name("words");
    folder_ = "_indices/" + table::FormatUuid(index_.uuid().uuid()) + "/";
  }

  void SetDetails(const lance::table::InvertedIndexDetails& details) {
    index_.mutable_index_details()->set_value(details.SerializeAsString());
  }

  void AddFile(const std::string& name, const std::string& key,
               const std::string& value) {
    const arrow::Schema schema({arrow::field("x", arrow::utf8())});
    auto writer = file::FileWriter::Make(*store_, folder_ + name,
                                         file::Schema::FromArrow(schema).ValueOrDie())
                      .ValueOrDie();
    writer->AddSchemaMetadata(key, value);
    ASSERT_TRUE(writer->Finish().ok());
  }

  const std::shared_ptr<io::ObjectStore> store_;
  table::Dataset::Ptr dataset_;
  lance::table::IndexMetadata index_;
  std::string folder_;
};

TEST_F(IndexParamsTest, FilesBeforeDetails) {
  TokenizerParams params;
  params.language = "German";
  SetDetails(ToDetails(params));
  EXPECT_EQ(ReadIndexParams(*dataset_, index_).ValueOrDie(), params);

  AddFile("tokens.lance", "tokenizer", R"({"language":"French"})");  // of old writers
  EXPECT_EQ(ReadIndexParams(*dataset_, index_).ValueOrDie().language, "French");

  AddFile("metadata.lance", "params", R"({"custom_stop_words":["x"]})");
  const TokenizerParams full = ReadIndexParams(*dataset_, index_).ValueOrDie();
  EXPECT_EQ(full.language, "English");
  EXPECT_EQ(full.custom_stop_words, std::vector<std::string>{"x"});

  index_.set_base_id(1);  // its files are somewhere else
  EXPECT_EQ(ReadIndexParams(*dataset_, index_).ValueOrDie(), params);
}

TEST_F(IndexParamsTest, WhatCannotBe) {
  const auto refused = [&](ErrorKind kind, const char* message) {
    const Status status = ReadIndexParams(*dataset_, index_).status();
    EXPECT_EQ(KindOf(status), kind) << status;
    EXPECT_THAT(status.message(), HasSubstr(message));
    EXPECT_THAT(status.message(), HasSubstr("'words'"));
  };
  refused(ErrorKind::kCorruption, "nothing says");
  index_.mutable_index_details()->set_value("\xff");
  refused(ErrorKind::kCorruption, "do not decode");
  lance::table::InvertedIndexDetails details;
  details.set_document_granularity(1);
  SetDetails(details);
  refused(ErrorKind::kNotSupported, "elements of lists");
  SetDetails({});
  AddFile("metadata.lance", "params", "{");
  refused(ErrorKind::kCorruption, "no JSON object");
}

}  // namespace
}  // namespace glaive::text
