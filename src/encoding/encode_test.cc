// Encoders against bytes and levels that docs/format/file.md works out by hand.
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include <arrow/api.h>
#include <gtest/gtest.h>

#include "encoding/bitpack.h"
#include "encoding/block_encode.h"
#include "encoding/fsst_encode.h"
#include "encoding/levels_build.h"
#include "encoding/page_encode.h"

namespace glaive::encoding {
namespace {

namespace pb = lance::encodings21;
using arrow::Type;

std::string Hex(const uint8_t* bytes, size_t count) {
  static const char kDigits[] = "0123456789abcdef";
  std::string out;
  for (size_t i = 0; i < count; ++i) {
    out += kDigits[bytes[i] >> 4];
    out += kDigits[bytes[i] & 15];
  }
  return out;
}

std::string Hex(const PageBuffer& buffer) {
  std::string out;
  for (const auto& piece : buffer) {
    out += Hex(piece->data(), static_cast<size_t>(piece->size()));
  }
  return out;
}

template <typename Builder, typename T>
std::shared_ptr<arrow::ArrayData> Array(const std::vector<std::optional<T>>& values) {
  Builder builder;
  for (const auto& v : values) {
    EXPECT_TRUE((v ? builder.Append(*v) : builder.AppendNull()).ok());
  }
  return builder.Finish().ValueOrDie()->data();
}

std::vector<EncodedPage> Encode(std::shared_ptr<arrow::ArrayData> data, bool v2_2 = true,
                                std::vector<PathNode> path = {PathNode::kLeaf}) {
  PageColumn column;
  column.path = std::move(path);
  column.options.v2_2 = v2_2;
  auto pages = EncodePages(column, {std::move(data)});
  EXPECT_TRUE(pages.ok()) << pages.status().ToString();
  return std::move(pages).ValueOr({});
}

TEST(Bitpack, MatchesTheCheckValues) {
  std::vector<uint32_t> values(1024);
  std::iota(values.begin(), values.end(), 0);
  std::vector<uint32_t> words(320);
  PackBlock(values.data(), 10, reinterpret_cast<uint8_t*>(words.data()));
  const std::vector<uint32_t> first(words.begin(), words.begin() + 4);
  EXPECT_EQ(first,
            (std::vector<uint32_t>{0x10020000, 0x50120401, 0x90220802, 0xd0320c03}));
  const std::vector<uint32_t> next(words.begin() + 32, words.begin() + 36);
  EXPECT_EQ(next,
            (std::vector<uint32_t>{0x0a020060, 0x1a060160, 0x2a0a0260, 0x3a0e0360}));

  std::vector<uint16_t> small(1024);
  for (size_t i = 0; i < small.size(); ++i) small[i] = i & 7;
  std::vector<uint16_t> packed(192);
  PackBlock(small.data(), 3, reinterpret_cast<uint8_t*>(packed.data()));
  EXPECT_EQ(packed[0], 0x0000);
  EXPECT_EQ(packed[1], 0x9249);
  EXPECT_EQ(packed[2], 0x2492);
  EXPECT_EQ(packed[3], 0xb6db);
}

// Every width of every word type against the formula, one value at a time.
template <typename T>
void CheckAllWidths() {
  constexpr int kBits = sizeof(T) * 8;
  constexpr int kLanes = 1024 / kBits;
  constexpr int kOrder[] = {0, 4, 2, 6, 1, 5, 3, 7};
  uint64_t state = 12345;
  for (int width = 0; width <= kBits; ++width) {
    std::vector<T> values(1024);
    for (T& v : values) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      v = width == 0 ? T{0}
                     : static_cast<T>(static_cast<T>(state >> 13) >> (kBits - width));
    }
    std::vector<T> packed(static_cast<size_t>(128 * width) / sizeof(T) + 1);
    PackBlock(values.data(), width, reinterpret_cast<uint8_t*>(packed.data()));
    for (int row = 0; row < kBits && width > 0; ++row) {
      for (int lane = 0; lane < kLanes; ++lane) {
        T got = 0;
        for (int b = 0; b < width; ++b) {
          const int bit = row * width + b;
          const T word = packed[static_cast<size_t>(kLanes * (bit / kBits) + lane)];
          got = static_cast<T>(
              got | static_cast<T>(static_cast<T>(word >> bit % kBits & 1) << b));
        }
        const int at = kOrder[row / 8] * 16 + row % 8 * 128 + lane;
        ASSERT_EQ(got, values[static_cast<size_t>(at)])
            << "width " << width << " row " << row << " lane " << lane;
      }
    }
  }
}

TEST(Bitpack, AllWidths) {
  CheckAllWidths<uint8_t>();
  CheckAllWidths<uint16_t>();
  CheckAllWidths<uint32_t>();
  CheckAllWidths<uint64_t>();
}

// [[1,2], null, [], [3,null]]
std::shared_ptr<arrow::ArrayData> ExampleList() {
  auto items = std::make_shared<arrow::Int32Builder>();
  arrow::ListBuilder lists(arrow::default_memory_pool(), items);
  EXPECT_TRUE(lists.Append().ok());
  EXPECT_TRUE(items->AppendValues({1, 2}).ok());
  EXPECT_TRUE(lists.AppendNull().ok());
  EXPECT_TRUE(lists.Append().ok());
  EXPECT_TRUE(lists.Append().ok());
  EXPECT_TRUE(items->Append(3).ok());
  EXPECT_TRUE(items->AppendNull().ok());
  return lists.Finish().ValueOrDie()->data();
}

TEST(Levels, ListWithNullsAndEmpties) {
  const std::vector<std::shared_ptr<arrow::ArrayData>> arrays = {ExampleList()};
  const PathNode path[] = {PathNode::kList, PathNode::kLeaf};
  const Levels levels = BuildLevels(arrays, path);
  EXPECT_EQ(levels.rep, (std::vector<uint16_t>{1, 0, 1, 1, 1, 0}));
  EXPECT_EQ(levels.def, (std::vector<uint16_t>{0, 0, 2, 3, 0, 1}));
  EXPECT_EQ(levels.layers,
            (std::vector<pb::RepDefLayer>{pb::REPDEF_NULLABLE_ITEM,
                                          pb::REPDEF_NULL_AND_EMPTY_LIST}));
  EXPECT_EQ(levels.max_visible_def, 1);
  EXPECT_EQ(levels.num_visible, 4);
}

TEST(Levels, SlicesOfAListSeeOnlyTheirRows) {
  const std::vector<std::shared_ptr<arrow::ArrayData>> arrays = {
      ExampleList()->Slice(3, 1), ExampleList()->Slice(0, 2)};
  const PathNode path[] = {PathNode::kList, PathNode::kLeaf};
  const Levels levels = BuildLevels(arrays, path);
  EXPECT_EQ(levels.rep, (std::vector<uint16_t>{1, 0, 1, 0, 1}));
  // No empty list is left: the null list takes the level after the null item.
  EXPECT_EQ(levels.def, (std::vector<uint16_t>{0, 1, 0, 0, 2}));
  EXPECT_EQ(levels.num_visible, 4);
}

TEST(Levels, ItemsUnderANullListAreLeftOut) {
  auto data = ExampleList()->Copy();
  // Row 1, null, now spans the first two items as well.
  const int32_t offsets[] = {0, 1, 2, 2, 4};
  data->buffers[1] = arrow::Buffer::FromString(
      std::string(reinterpret_cast<const char*>(offsets), sizeof(offsets)));
  const std::vector<std::shared_ptr<arrow::ArrayData>> arrays = {data};
  const PathNode path[] = {PathNode::kList, PathNode::kLeaf};
  const Levels levels = BuildLevels(arrays, path);
  EXPECT_EQ(levels.rep, (std::vector<uint16_t>{1, 1, 1, 1, 0}));
  EXPECT_EQ(levels.num_visible, 3);
  ASSERT_EQ(levels.values.size(), 2u);
  EXPECT_EQ(levels.values[0].length, 1);
  EXPECT_EQ(levels.values[1].start, 2);
}

TEST(Levels, NullableStruct) {
  // [{1}, null, {null}]
  auto x = Array<arrow::Int32Builder, int32_t>({1, 7, std::nullopt});
  auto data = arrow::ArrayData::Make(arrow::struct_({arrow::field("x", arrow::int32())}),
                                     3, {arrow::Buffer::FromString("\x05")}, {x});
  const std::vector<std::shared_ptr<arrow::ArrayData>> arrays = {data};
  const PathNode path[] = {PathNode::kStruct, PathNode::kLeaf};
  const Levels levels = BuildLevels(arrays, path);
  EXPECT_EQ(levels.def, (std::vector<uint16_t>{0, 2, 1}));
  EXPECT_EQ(levels.num_visible, 3);
}

TEST(Levels, BelowANullStructLayersDeclareNulls) {
  // [{1}, null]: the member has no nulls of its own, but its layer says that it can have.
  auto x = Array<arrow::Int32Builder, int32_t>({1, 7});
  auto data = arrow::ArrayData::Make(
      arrow::struct_({arrow::field("x", arrow::int32(), /*nullable=*/false)}), 2,
      {arrow::Buffer::FromString("\x01")}, {x});
  const std::vector<std::shared_ptr<arrow::ArrayData>> arrays = {data};
  const PathNode path[] = {PathNode::kStruct, PathNode::kLeaf};
  const Levels levels = BuildLevels(arrays, path);
  EXPECT_EQ(levels.layers, (std::vector<pb::RepDefLayer>{pb::REPDEF_NULLABLE_ITEM,
                                                         pb::REPDEF_NULLABLE_ITEM}));
  EXPECT_EQ(levels.def, (std::vector<uint16_t>{0, 2}));
  EXPECT_EQ(levels.max_visible_def, 2);
}

TEST(MiniBlock, NullableInt32ByteForByte) {
  auto data = Array<arrow::Int32Builder, int32_t>({10, std::nullopt, 30});
  auto page = Encode(data).at(0);
  EXPECT_EQ(page.layout.SerializeAsString(),
            std::string("\x0a\x15\x12\x04\x0a\x02\x08\x10\x1a\x04\x0a\x02\x08\x20"
                        "\x32\x01\x03\x38\x01\x48\x03\x50\x01",
                        23));
  EXPECT_EQ(Hex(page.buffers[0]), "30000000");
  EXPECT_EQ(Hex(page.buffers[1]),
            "030006000c0000000000"
            "0100"
            "0000"
            "fefe"
            "0a00000000000000"
            "1e000000fefefefe");
  auto old = Encode(data, /*v2_2=*/false).at(0);
  EXPECT_EQ(Hex(old.buffers[0]), "3000");
  EXPECT_EQ(Hex(old.buffers[1]).substr(0, 16), "030006000c00fefe");
}

TEST(MiniBlock, VariableChunkByteForByte) {
  auto page = Encode(Array<arrow::StringBuilder, std::string>({"a", "bcd", ""})).at(0);
  EXPECT_EQ(Hex(page.buffers[1]).substr(16),
            "10000000110000001400000014000000"
            "61626364fefefefe");
}

TEST(FullZip, NullableStringsByteForByte) {
  PageColumn column;
  column.path = {PathNode::kLeaf};
  column.options.structural = Structural::kFullZip;
  auto data = Array<arrow::StringBuilder, std::string>({"ab", std::nullopt, ""});
  auto page = EncodePages(column, {data}).ValueOrDie().at(0);
  EXPECT_EQ(Hex(page.buffers[0]),
            "00020000006162"
            "01"
            "0000000000");
  EXPECT_EQ(Hex(page.buffers[1]), "0007080d");
}

TEST(FullZip, PlainVectorsAreNotCopied) {
  arrow::FloatBuilder floats;
  for (int i = 0; i < 128 * 6; ++i)
    EXPECT_TRUE(floats.Append(static_cast<float>(i)).ok());
  auto values = floats.Finish().ValueOrDie();
  auto vectors =
      arrow::FixedSizeListArray::FromArrays(values, 128).ValueOrDie()->Slice(2, 3);
  auto page = Encode(vectors->data()).at(0);
  ASSERT_EQ(page.buffers.size(), 1u);
  ASSERT_EQ(page.buffers[0].size(), 1u);
  EXPECT_EQ(page.buffers[0][0]->data(),
            values->data()->buffers[1]->data() + 2 * 128 * sizeof(float));
  EXPECT_EQ(page.buffers[0][0]->size(), 3 * 128 * 4);
}

TEST(Dictionary, ItemsByteForByte) {
  const std::shared_ptr<arrow::ArrayData> items =
      Array<arrow::StringBuilder, std::string>({"x", "yz"});
  const PathNode leaf[] = {PathNode::kLeaf};
  const Levels levels = BuildLevels(std::span(&items, 1), leaf);
  auto values = GatherVariable(levels).ValueOrDie();
  EncodeOptions options;
  options.dict_values = Scheme::kNone;
  OutBytes out;
  pb::CompressiveEncoding encoding;
  ASSERT_TRUE(EncodeDictionaryItems(values, options, &out, &encoding).ok());
  EXPECT_EQ(Hex(out.data(), out.size()),
            "2000000014000000000000000100000003000000"
            "78797a");
}

// Lists of the given lengths over distinct values, in chunks of two values.
std::vector<uint64_t> RepetitionIndex(const std::vector<int>& lengths,
                                      uint32_t first_chunk) {
  Levels levels;
  levels.layers = {pb::REPDEF_ALL_VALID_ITEM, pb::REPDEF_ALL_VALID_LIST};
  levels.max_rep = 1;
  for (int n : lengths) {
    for (int i = 0; i < n; ++i) levels.rep.push_back(i == 0);
  }
  levels.num_levels = levels.num_visible = static_cast<int64_t>(levels.rep.size());
  levels.num_rows = static_cast<int64_t>(lengths.size());
  MiniBlockValues values;
  values.encoding.mutable_flat()->set_bits_per_value(8);
  const uint32_t rest = static_cast<uint32_t>(levels.num_visible) - first_chunk;
  values.chunk_values = {first_chunk, rest};
  values.streams.push_back(
      {arrow::Buffer::FromString(std::string(levels.rep.size(), 'v')),
       {first_chunk, rest}});
  auto page = AssembleMiniBlock(levels, values, nullptr, EncodeOptions{});
  EXPECT_TRUE(page.has_value());
  const auto& index = page->buffers.back()[0];
  std::vector<uint64_t> out(static_cast<size_t>(index->size()) / 8);
  std::memcpy(out.data(), index->data(), static_cast<size_t>(index->size()));
  return out;
}

TEST(MiniBlock, RepetitionIndex) {
  EXPECT_EQ(RepetitionIndex({3, 2, 1}, 4), (std::vector<uint64_t>{1, 1, 2, 0}));
  EXPECT_EQ(RepetitionIndex({2, 2, 2}, 4), (std::vector<uint64_t>{2, 0, 1, 0}));
}

TEST(MiniBlock, LevelsBeyondOneChunkSplitThePage) {
  auto items = std::make_shared<arrow::Int32Builder>();
  arrow::ListBuilder lists(arrow::default_memory_pool(), items);
  for (int row = 0; row < 200000; ++row) {
    EXPECT_TRUE(lists.Append().ok());
    if (row % 1000 == 0) {
      EXPECT_TRUE(items->Append(row).ok());
    }
  }
  auto data = lists.Finish().ValueOrDie()->data();
  const auto pages = Encode(data, true, {PathNode::kList, PathNode::kLeaf});
  EXPECT_GE(pages.size(), 4u);
  int64_t rows = 0;
  for (const auto& page : pages) {
    rows += page.num_rows;
    EXPECT_LE(page.num_rows, 65535);
  }
  EXPECT_EQ(rows, 200000);
}

// Decodes with nothing but the table's documented layout.
std::string Expand(const std::string& table, std::string_view codes) {
  const size_t n = static_cast<uint8_t>(table[0]);
  std::string out;
  for (size_t i = 0; i < codes.size(); ++i) {
    const size_t code = static_cast<uint8_t>(codes[i]);
    if (code == 255) {
      out += codes[++i];
    } else {
      EXPECT_LT(code, n);
      const size_t length = static_cast<uint8_t>(table[8 + 8 * n + code]);
      out += table.substr(8 + 8 * code, length);
    }
  }
  return out;
}

TEST(Fsst, RoundTripsAndShrinksText) {
  const uint32_t seed = testing::UnitTest::GetInstance()->random_seed();
  for (uint32_t run : {1u, seed}) {
    SCOPED_TRACE(run);
    std::vector<std::optional<std::string>> texts;
    uint64_t state = run + 1;
    const auto next = [&state] {
      return (state = state * 6364136223846793005u + 99) >> 33;
    };
    const char* const words[] = {"search ",   "vector ", "of ",   "the ",
                                 "\xff\x00z", "",        "Lance "};
    for (int i = 0; i < 3000; ++i) {
      std::string text;
      for (uint64_t k = next() % 12; k > 0; --k) text += words[next() % 7];
      if (next() % 50 == 0) text += static_cast<char>(next());
      texts.push_back(text);
    }
    const std::shared_ptr<arrow::ArrayData> data =
        Array<arrow::StringBuilder, std::string>(texts);
    const PathNode leaf[] = {PathNode::kLeaf};
    auto values = GatherVariable(BuildLevels(std::span(&data, 1), leaf)).ValueOrDie();
    auto packed = FsstEncode(values).ValueOrDie();
    ASSERT_EQ(packed.symbol_table.size(), 2312u);
    EXPECT_EQ(packed.symbol_table.substr(4, 4), "TSSF");
    for (size_t i = 0; i < texts.size(); ++i) {
      ASSERT_EQ(Expand(packed.symbol_table, packed.values.value(static_cast<int64_t>(i))),
                *texts[i]);
    }
    EXPECT_LT(packed.values.num_bytes() * 3, values.num_bytes());
  }
}

TEST(Constant, RawLevelsGiveWayToMiniBlocks) {
  std::vector<std::optional<int32_t>> values(5000, 42);
  values[7] = std::nullopt;
  EXPECT_TRUE(
      Encode(Array<arrow::Int32Builder>(values)).at(0).layout.has_mini_block_layout());
  values.resize(100);
  EXPECT_TRUE(
      Encode(Array<arrow::Int32Builder>(values)).at(0).layout.has_constant_layout());
  values.assign(5000, 42);
  auto page = Encode(Array<arrow::Int32Builder>(values)).at(0);
  EXPECT_EQ(page.layout.constant_layout().inline_value(), std::string("*\0\0\0", 4));
  EXPECT_TRUE(page.buffers.empty());
}

}  // namespace
}  // namespace glaive::encoding
