#include "memwal/text_index_files.h"

#include <algorithm>
#include <string>

#include <arrow/api.h>
#include <arrow/json/from_string.h>

#include "file/file_reader.h"
#include "index/text/fst_reader.h"
#include "memwal/test_util.h"

namespace glaive::memwal {
namespace {

using arrow::json::ArrayFromJSONString;

class TextIndexFilesTest : public ::testing::Test {
 protected:
  bool Write(const arrow::ArrayVector& chunks, const text::TokenizerParams& params = {}) {
    auto any = WriteTextIndexFiles(*store_, "i", arrow::ChunkedArray(chunks), params,
                                   file::FileVersion::k2_0, budget_);
    EXPECT_TRUE(any.ok()) << any.status();
    EXPECT_EQ(budget_.used_bytes(), 0) << "nothing is held afterwards";
    return any.ValueOr(false);
  }

  // The one row, or all, of the file whose name ends so.
  std::shared_ptr<arrow::RecordBatch> Read(const std::string& ending) {
    const auto names = store_->ListNames("i").ValueOrDie();
    const auto name =
        std::find_if(names.begin(), names.end(),
                     [&](const std::string& each) { return each.ends_with(ending); });
    EXPECT_NE(name, names.end());
    auto reader =
        file::FileReader::Open(store_->Open("i/" + *name).ValueOrDie()).ValueOrDie();
    return reader->ReadRange(reader->ProjectAll().ValueOrDie(), 0, reader->num_rows())
        .ValueOrDie();
  }

  std::vector<std::string> Tokens() {
    const auto batch = Read("_tokens.lance");
    const auto& bytes = static_cast<const arrow::LargeBinaryArray&>(*batch->column(0));
    const std::string_view map = bytes.GetView(0);
    std::vector<std::string> tokens;
    auto reader =
        text::FstReader::Open({reinterpret_cast<const uint8_t*>(map.data()), map.size()});
    EXPECT_TRUE(reader.ok()) << reader.status();
    const Status read = reader->ForEach([&](std::string_view token, uint64_t number) {
      EXPECT_EQ(number, tokens.size());
      tokens.emplace_back(token);
      return Status::OK();
    });
    EXPECT_TRUE(read.ok()) << read;
    return tokens;
  }

  const std::shared_ptr<io::ObjectStore> store_ = io::MakeMemoryStore();
  MemoryBudget budget_{
      1};  // too small for anything: what is held is counted, not refused
};

TEST_F(TextIndexFilesTest, RowsAreCountedOverAllChunks) {
  const auto a = ArrayFromJSONString(arrow::utf8(), R"([null, "dogs", ""])").ValueOrDie();
  const auto b =
      ArrayFromJSONString(arrow::utf8(), R"(["the", "two cats"])").ValueOrDie();
  ASSERT_TRUE(Write({a, b->Slice(0, 0), b}));
  EXPECT_EQ(Tokens(), (std::vector<std::string>{"cat", "dog", "two"}));
  const auto docs = Read("_docs.lance");
  EXPECT_EQ(docs->column(0)->ToString(),
            ArrayFromJSONString(arrow::uint64(), "[1, 4]").ValueOrDie()->ToString());
  EXPECT_EQ(docs->column(1)->ToString(),
            ArrayFromJSONString(arrow::uint32(), "[1, 2]").ValueOrDie()->ToString());
}

TEST_F(TextIndexFilesTest, NothingToFind) {
  const auto texts =
      ArrayFromJSONString(arrow::large_utf8(), R"([null, "", "the"])").ValueOrDie();
  EXPECT_FALSE(Write({texts}));
  EXPECT_FALSE(store_->Exists("i/metadata.lance").ValueOrDie());
}

TEST_F(TextIndexFilesTest, ListsAreOneText) {
  const auto lists =
      ArrayFromJSONString(
          arrow::list(arrow::utf8()),
          R"([["a b", null, "c"], null, [], [null], ["", "", "d", "", "e"]])")
          .ValueOrDie();
  text::TokenizerParams params;
  params.base_tokenizer = "raw";
  params.stem = false;
  ASSERT_TRUE(Write({lists->Slice(0)}, params));
  // As upstream: a list without elements is the empty text, and so is none at all.
  EXPECT_EQ(Tokens(), (std::vector<std::string>{"", "a b c", "d  e"}));
  EXPECT_EQ(Read("_docs.lance")->num_rows(), 5);
}

TEST_F(TextIndexFilesTest, Types) {
  EXPECT_TRUE(IsTextIndexType(*arrow::utf8()));
  EXPECT_TRUE(IsTextIndexType(*arrow::large_list(arrow::large_utf8())));
  EXPECT_FALSE(IsTextIndexType(*arrow::int32()));
  EXPECT_FALSE(IsTextIndexType(*arrow::binary()));
  EXPECT_FALSE(IsTextIndexType(*arrow::list(arrow::list(arrow::utf8()))));
}

}  // namespace
}  // namespace glaive::memwal
