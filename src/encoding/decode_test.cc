// Decoders of single chunks and blocks against bytes made by hand.
#include <cstring>
#include <initializer_list>
#include <string>
#include <vector>

#include <arrow/array.h>
#include <arrow/scalar.h>
#include <arrow/type.h>
#include <arrow/util/compression.h>
#include <gtest/gtest.h>

#include "encoding/block_decode.h"
#include "encoding/decompress.h"
#include "encoding/fsst_decode.h"
#include "encoding/fullzip_decode.h"
#include "encoding/miniblock_decode.h"
#include "format/encodings21.pb.h"
#include "io/test_util.h"

namespace glaive::encoding {
namespace {

using lance::encodings21::CompressiveEncoding;
using Raw = std::vector<uint8_t>;

Raw Make(std::initializer_list<int> bytes) {
  Raw out;
  for (int b : bytes) out.push_back(static_cast<uint8_t>(b));
  return out;
}

template <typename T>
void Push(Raw* out, std::initializer_list<T> values) {
  for (T value : values) {
    const auto* p = reinterpret_cast<const uint8_t*>(&value);
    out->insert(out->end(), p, p + sizeof(T));
  }
}

CompressiveEncoding FlatOf(uint64_t bits) {
  CompressiveEncoding out;
  out.mutable_flat()->set_bits_per_value(bits);
  return out;
}
CompressiveEncoding VariableOf(uint64_t bits) {
  CompressiveEncoding out;
  *out.mutable_variable()->mutable_offsets() = FlatOf(bits);
  return out;
}
CompressiveEncoding RleOf(uint64_t bits) {
  CompressiveEncoding out;
  *out.mutable_rle()->mutable_values() = FlatOf(bits);
  *out.mutable_rle()->mutable_run_lengths() = FlatOf(8);
  return out;
}
CompressiveEncoding OutOfLineOf(uint64_t from, uint64_t to) {
  CompressiveEncoding out;
  out.mutable_out_of_line_bitpacking()->set_uncompressed_bits_per_value(from);
  *out.mutable_out_of_line_bitpacking()->mutable_values() = FlatOf(to);
  return out;
}

ValueShape ShapeOf(const std::shared_ptr<arrow::DataType>& type) {
  auto shape = ValueShape::Of(type);
  EXPECT_TRUE(shape.ok()) << shape.status();
  return *shape;
}

// Decodes the ranges of one chunk and returns the array as text, one value a line.
Result<std::shared_ptr<arrow::Array>> DecodeChunk(
    const CompressiveEncoding& encoding, const std::shared_ptr<arrow::DataType>& type,
    const std::vector<Raw>& buffers, int64_t count, std::vector<ValueRange> ranges) {
  const ValueShape shape = ShapeOf(type);
  GLAIVE_ASSIGN_OR_RETURN(auto codec, MakeMiniBlockCodec(encoding, shape));
  if (codec->num_buffers() != static_cast<int>(buffers.size())) {
    return InternalError("wrong number of buffers");
  }
  std::vector<Bytes> views(buffers.begin(), buffers.end());
  ValueSink sink(shape);
  GLAIVE_RETURN_NOT_OK(codec->Decode(views, count, ranges, &sink));
  GLAIVE_ASSIGN_OR_RETURN(auto data, sink.Finish(nullptr, 0));
  auto array = arrow::MakeArray(data);
  GLAIVE_RETURN_NOT_OK(array->ValidateFull());
  return array;
}

std::string Text(const Result<std::shared_ptr<arrow::Array>>& array) {
  if (!array.ok()) return array.status().ToString();
  std::string out;
  for (int64_t i = 0; i < (*array)->length(); ++i) {
    out += (i ? " " : "") + (*(*array)->GetScalar(i))->ToString();
  }
  return out;
}

TEST(MiniBlock, FlatPicksRanges) {
  Raw values;
  Push<int32_t>(&values, {10, 20, 30, 40, 50});
  EXPECT_EQ(Text(DecodeChunk(FlatOf(32), arrow::int32(), {values}, 5, {{0, 5}})),
            "10 20 30 40 50");
  EXPECT_EQ(Text(DecodeChunk(FlatOf(32), arrow::int32(), {values}, 5, {{1, 1}, {3, 2}})),
            "20 40 50");
  EXPECT_KIND(ErrorKind::kCorruption,
              DecodeChunk(FlatOf(32), arrow::int32(), {values}, 6, {{0, 6}}).status());
  EXPECT_KIND(ErrorKind::kCorruption,
              DecodeChunk(FlatOf(64), arrow::int32(), {values}, 2, {{0, 2}}).status());
}

TEST(MiniBlock, Bits) {
  EXPECT_EQ(Text(DecodeChunk(FlatOf(1), arrow::boolean(), {Make({0b01101, 0b1})}, 9,
                             {{0, 3}, {7, 2}})),
            "true false true false true");
}

TEST(MiniBlock, Variable) {
  Raw chunk;
  Push<uint32_t>(&chunk, {0x10, 0x11, 0x14, 0x14});
  for (char c : {'a', 'b', 'c', 'd'}) chunk.push_back(static_cast<uint8_t>(c));
  EXPECT_EQ(Text(DecodeChunk(VariableOf(32), arrow::utf8(), {chunk}, 3, {{0, 3}})),
            "a bcd ");
  EXPECT_EQ(Text(DecodeChunk(VariableOf(32), arrow::large_utf8(), {chunk}, 3, {{1, 1}})),
            "bcd");
  Raw decreasing = chunk;
  decreasing[4] = 0x15;
  Raw too_long = chunk;
  too_long[12] = 0x15;
  Raw into_offsets = chunk;
  into_offsets[0] = 0x0c;
  for (const Raw& bad : {decreasing, too_long, into_offsets}) {
    EXPECT_KIND(ErrorKind::kCorruption,
                DecodeChunk(VariableOf(32), arrow::utf8(), {bad}, 3, {{0, 3}}).status());
  }
  EXPECT_KIND(ErrorKind::kCorruption,
              DecodeChunk(VariableOf(32), arrow::utf8(), {chunk}, 5, {{0, 5}}).status());
}

TEST(MiniBlock, RunLengths) {
  Raw values;
  Push<int64_t>(&values, {7, -1, 9});
  const Raw lengths = Make({3, 0, 255});
  EXPECT_EQ(Text(DecodeChunk(RleOf(64), arrow::int64(), {values, lengths}, 5, {{0, 5}})),
            "7 7 7 9 9");
  EXPECT_EQ(Text(DecodeChunk(RleOf(64), arrow::int64(), {values, lengths}, 258,
                             {{2, 2}, {257, 1}})),
            "7 9 9");
  EXPECT_KIND(
      ErrorKind::kCorruption,
      DecodeChunk(RleOf(64), arrow::int64(), {values, lengths}, 259, {{0, 1}}).status());
  EXPECT_KIND(ErrorKind::kCorruption,
              DecodeChunk(RleOf(64), arrow::int64(), {values, Make({3, 0})}, 3, {{0, 3}})
                  .status());
}

TEST(MiniBlock, InlineBitpacking) {
  CompressiveEncoding encoding;
  encoding.mutable_inline_bitpacking()->set_uncompressed_bits_per_value(16);
  Raw empty;
  Push<uint16_t>(&empty, {0});  // width 0: no bytes, all zero
  EXPECT_EQ(Text(DecodeChunk(encoding, arrow::uint16(), {empty}, 4, {{1, 2}})), "0 0");
  Raw wide;
  Push<uint16_t>(&wide, {17});
  EXPECT_KIND(ErrorKind::kCorruption,
              DecodeChunk(encoding, arrow::uint16(), {wide}, 4, {{0, 1}}).status());
  Raw cut;
  Push<uint16_t>(&cut, {1, 2, 3});
  EXPECT_KIND(ErrorKind::kCorruption,
              DecodeChunk(encoding, arrow::uint16(), {cut}, 4, {{0, 1}}).status());
  EXPECT_KIND(ErrorKind::kCorruption,
              DecodeChunk(encoding, arrow::uint16(), {empty}, 1025, {{0, 1}}).status());
}

TEST(MiniBlock, ByteStreamSplit) {
  CompressiveEncoding encoding;
  *encoding.mutable_byte_stream_split()->mutable_values() = FlatOf(32);
  // 0x04030201 and 0x14131211, byte by byte.
  const Raw chunk = Make({0x01, 0x11, 0x02, 0x12, 0x03, 0x13, 0x04, 0x14});
  EXPECT_EQ(Text(DecodeChunk(encoding, arrow::uint32(), {chunk}, 2, {{0, 2}})),
            std::to_string(0x04030201) + " " + std::to_string(0x14131211));
  EXPECT_EQ(Text(DecodeChunk(encoding, arrow::uint32(), {chunk}, 2, {{1, 1}})),
            std::to_string(0x14131211));
}

TEST(MiniBlock, FixedSizeListWithValidity) {
  CompressiveEncoding encoding;
  auto* list = encoding.mutable_fixed_size_list();
  list->set_items_per_value(3);
  list->set_has_validity(true);
  *list->mutable_values() = FlatOf(8);
  auto type = arrow::fixed_size_list(arrow::uint8(), 3);
  auto got = DecodeChunk(encoding, type, {Make({0b111011, 0}), Make({1, 2, 3, 4, 5, 6})},
                         2, {{0, 2}});
  const std::string prefix = "fixed_size_list<item: uint8>[3]";
  EXPECT_EQ(Text(got), prefix + "[1, 2, null] " + prefix + "[4, 5, 6]");
  auto second = DecodeChunk(encoding, type,
                            {Make({0b111011, 0}), Make({1, 2, 3, 4, 5, 6})}, 2, {{1, 1}});
  EXPECT_EQ(Text(second), prefix + "[4, 5, 6]");
}

TEST(MiniBlock, PackedStruct) {
  CompressiveEncoding encoding;
  encoding.mutable_packed_struct()->add_bits_per_value(8);
  encoding.mutable_packed_struct()->add_bits_per_value(32);
  *encoding.mutable_packed_struct()->mutable_values() = FlatOf(40);
  auto type = arrow::struct_(
      {arrow::field("a", arrow::uint8()), arrow::field("b", arrow::int32())});
  const Raw rows = Make({1, 10, 0, 0, 0, 2, 20, 0, 0, 0});
  EXPECT_EQ(Text(DecodeChunk(encoding, type, {rows}, 2, {{0, 2}})),
            "{a:uint8 = 1, b:int32 = 10} {a:uint8 = 2, b:int32 = 20}");
  auto other = arrow::struct_(
      {arrow::field("a", arrow::uint8()), arrow::field("b", arrow::int64())});
  EXPECT_KIND(ErrorKind::kCorruption,
              DecodeChunk(encoding, other, {rows}, 2, {{0, 2}}).status());
}

TEST(Block, DictionaryOfText) {
  Raw block;
  Push<uint32_t>(&block, {32, 20, 0, 1, 3});
  for (char c : {'x', 'y', 'z'}) block.push_back(static_cast<uint8_t>(c));
  const ValueShape shape = ShapeOf(arrow::utf8());
  ValueSink sink(shape);
  ASSERT_OK(DecodeBlock(VariableOf(32), block, 2, &sink));
  ASSERT_OK_AND_ASSIGN(auto data, sink.Finish(nullptr, 0));
  EXPECT_EQ(Text(arrow::MakeArray(data)), "x yz");
  for (size_t at : {size_t{0}, size_t{4}, size_t{16}}) {
    Raw bad = block;
    bad[at] = 99;
    ValueSink other(shape);
    EXPECT_KIND(ErrorKind::kCorruption, DecodeBlock(VariableOf(32), bad, 2, &other));
  }
  ValueSink other(shape);
  EXPECT_KIND(ErrorKind::kCorruption,
              DecodeBlock(VariableOf(32), block, int64_t{1} << 40, &other));
}

std::vector<uint16_t> Levels(const CompressiveEncoding& encoding, const Raw& block,
                             int64_t count, bool allow_more, Status* status) {
  ByteSink sink;
  *status = DecodeFixedBlock(encoding, block, count, 2, allow_more, &sink);
  const auto* p = reinterpret_cast<const uint16_t*>(sink.data());
  return std::vector<uint16_t>(p, p + sink.size() / 2);
}

TEST(Block, RunLengthLevels) {
  Raw block;
  Push<uint64_t>(&block, {4});
  Push<uint16_t>(&block, {1, 0});
  block.push_back(2);
  block.push_back(5);
  Status s;
  EXPECT_EQ(Levels(RleOf(16), block, 4, false, &s), (std::vector<uint16_t>{1, 1, 0, 0}));
  EXPECT_EQ(Levels(RleOf(16), block, 4, true, &s).size(), 7U);
  Levels(RleOf(16), block, 8, false, &s);
  EXPECT_KIND(ErrorKind::kCorruption, s);
}

TEST(Block, OutOfLineTails) {
  Status s;
  // Three values: raw words.
  Raw raw;
  Push<uint16_t>(&raw, {1, 0, 1});
  EXPECT_EQ(Levels(OutOfLineOf(16, 1), raw, 3, false, &s),
            (std::vector<uint16_t>{1, 0, 1}));
  // The same in a padded block of 64 words: value i of the first 64 is bit 0 of word i.
  Raw packed(128, 0);
  packed[0] = 1;
  packed[4] = 1;
  EXPECT_EQ(Levels(OutOfLineOf(16, 1), packed, 3, false, &s),
            (std::vector<uint16_t>{1, 0, 1}));
  // Width 0: nothing stored.
  EXPECT_EQ(Levels(OutOfLineOf(16, 0), {}, 3, false, &s),
            (std::vector<uint16_t>{0, 0, 0}));
  Levels(OutOfLineOf(16, 0), {}, int64_t{1} << 40, false, &s);
  EXPECT_KIND(ErrorKind::kCorruption, s);
  Levels(OutOfLineOf(16, 1), Raw(126, 0), 3, false, &s);
  EXPECT_KIND(ErrorKind::kCorruption, s);
  Levels(OutOfLineOf(16, 17), Raw(128, 0), 3, false, &s);
  EXPECT_KIND(ErrorKind::kCorruption, s);
}

std::string FsstBytes(const std::vector<std::string>& symbols) {
  std::string out(2312, '\0');
  out[0] = static_cast<char>(symbols.size());
  out[3] = 1;
  out.replace(4, 4, "TSSF");
  for (size_t i = 0; i < symbols.size(); ++i) {
    out.replace(8 + 8 * i, symbols[i].size(), symbols[i]);
    out[8 + 8 * symbols.size() + i] = static_cast<char>(symbols[i].size());
  }
  return out;
}

TEST(Fsst, ExpandsSymbolsAndEscapes) {
  ASSERT_OK_AND_ASSIGN(auto table, FsstTable::Parse(FsstBytes({"the ", "cat", "x"})));
  auto expand = [&](const Raw& codes) {
    std::string out(8 * (codes.size() + 1), '?');
    int64_t n = table.Expand(codes, reinterpret_cast<uint8_t*>(out.data()));
    return n < 0 ? std::string("bad") : out.substr(0, static_cast<size_t>(n));
  };
  EXPECT_EQ(expand(Make({0, 1, 255, '!', 2})), "the cat!x");
  EXPECT_EQ(expand({}), "");
  // Longer than the fast path's step, escapes at every place.
  for (size_t at = 0; at < 20; ++at) {
    Raw codes;
    std::string want;
    for (size_t i = 0; i < 20; ++i) {
      if (i == at) {
        codes.push_back(255);
        codes.push_back('#');
        want += "#";
      }
      codes.push_back(static_cast<uint8_t>(i % 3));
      want += std::vector<std::string>{"the ", "cat", "x"}[i % 3];
    }
    EXPECT_EQ(expand(codes), want) << at;
  }
  EXPECT_EQ(expand(Make({0, 3})), "bad");
  EXPECT_EQ(expand(Make({0, 255})), "bad");
  EXPECT_EQ(expand(Make({0, 0, 0, 0, 0, 0, 0, 255})), "bad");
}

TEST(Fsst, DamagedTables) {
  std::string good = FsstBytes({"ab"});
  std::string no_mark = good;
  no_mark[5] = 'x';
  std::string long_symbol = good;
  long_symbol[16] = 9;
  for (const std::string& bad : {no_mark, long_symbol, good.substr(0, 16), std::string(),
                                 std::string("\x01\0\0\x01TSSF", 8)}) {
    EXPECT_KIND(ErrorKind::kCorruption, FsstTable::Parse(bad).status());
  }
}

Raw Compressed(const std::string& text, Compression scheme) {
  auto codec = *arrow::util::Codec::Create(
      scheme == Compression::kLz4 ? arrow::Compression::LZ4 : arrow::Compression::ZSTD);
  const auto* in = reinterpret_cast<const uint8_t*>(text.data());
  const auto n = static_cast<int64_t>(text.size());
  Raw body(static_cast<size_t>(codec->MaxCompressedLen(n, in)));
  body.resize(static_cast<size_t>(
      *codec->Compress(n, in, static_cast<int64_t>(body.size()), body.data())));
  Raw out;
  if (scheme == Compression::kLz4) {
    Push<uint32_t>(&out, {static_cast<uint32_t>(n)});
  } else {
    Push<uint64_t>(&out, {static_cast<uint64_t>(n)});
  }
  out.insert(out.end(), body.begin(), body.end());
  return out;
}

TEST(General, BothSchemesAndLies) {
  const std::string text(5000, 'q');
  for (Compression scheme : {Compression::kLz4, Compression::kZstd}) {
    const Raw unit = Compressed(text, scheme);
    ByteSink out;
    ASSERT_OK(Decompress(scheme, unit, &out));
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(out.data()), text.size()), text);
    EXPECT_EQ(out.size(), 5000);
    ByteSink none;
    ASSERT_OK(Decompress(scheme, {}, &none));
    EXPECT_EQ(none.size(), 0);
    for (uint8_t lie : {uint8_t{0x10}, uint8_t{0xff}}) {
      Raw bad = unit;
      bad[1] = lie;  // of the size
      ByteSink sink;
      EXPECT_KIND(ErrorKind::kCorruption, Decompress(scheme, bad, &sink));
      bad[3] = 0x7f;  // two billion bytes: refused before any is allocated
      EXPECT_KIND(ErrorKind::kCorruption, Decompress(scheme, bad, &sink));
    }
    Raw cut(unit.begin(), unit.end() - 3);
    ByteSink sink;
    EXPECT_KIND(ErrorKind::kCorruption, Decompress(scheme, cut, &sink));
  }
}

TEST(General, BareZstdFrame) {
  const std::string text(3000, 'z');
  Raw unit = Compressed(text, Compression::kZstd);
  unit.erase(unit.begin(), unit.begin() + 8);
  ByteSink out;
  ASSERT_OK(Decompress(Compression::kZstd, unit, &out));
  EXPECT_EQ(out.size(), 3000);
}

TEST(FullZip, VectorRowsWithValidity) {
  CompressiveEncoding encoding;
  encoding.mutable_fixed_size_list()->set_items_per_value(2);
  encoding.mutable_fixed_size_list()->set_has_validity(true);
  *encoding.mutable_fixed_size_list()->mutable_values() = FlatOf(16);
  const ValueShape shape = ShapeOf(arrow::fixed_size_list(arrow::int16(), 2));
  ASSERT_OK_AND_ASSIGN(auto codec, FixedRowCodec::Make(encoding, shape));
  EXPECT_EQ(codec.row_bytes(), 5);
  EXPECT_FALSE(codec.is_plain());
  // A control byte before each row.
  const Raw rows = Make({0, 0b11, 1, 0, 2, 0, 0, 0b01, 3, 0, 9, 9});
  ValueSink sink(shape);
  ASSERT_OK(codec.Append(rows.data() + 1, 6, 2, &sink));
  ASSERT_OK_AND_ASSIGN(auto data, sink.Finish(nullptr, 0));
  const std::string prefix = "fixed_size_list<item: int16>[2]";
  EXPECT_EQ(Text(arrow::MakeArray(data)), prefix + "[1, 2] " + prefix + "[3, null]");
}

TEST(FullZip, VariablePackedStruct) {
  CompressiveEncoding encoding;
  auto* fixed = encoding.mutable_variable_packed_struct()->add_fields();
  *fixed->mutable_value() = FlatOf(16);
  fixed->set_bits_per_value(16);
  auto* text = encoding.mutable_variable_packed_struct()->add_fields();
  *text->mutable_value() = VariableOf(32);
  text->set_bits_per_length(32);
  const ValueShape shape = ShapeOf(arrow::struct_(
      {arrow::field("a", arrow::int16()), arrow::field("b", arrow::utf8())}));
  ASSERT_OK_AND_ASSIGN(auto codec, VariableRowCodec::Make(encoding, shape));
  ValueSink sink(shape);
  ASSERT_OK(codec.Append(Make({7, 0, 2, 0, 0, 0, 'h', 'i'}), &sink));
  ASSERT_OK_AND_ASSIGN(auto data, sink.Finish(nullptr, 0));
  EXPECT_EQ(Text(arrow::MakeArray(data)), "{a:int16 = 7, b:string = hi}");
  ValueSink other(shape);
  for (const Raw& bad :
       {Make({7}), Make({7, 0, 2, 0, 0}), Make({7, 0, 3, 0, 0, 0, 'h', 'i'}),
        Make({7, 0, 1, 0, 0, 0, 'h', 'i'})}) {
    EXPECT_KIND(ErrorKind::kCorruption, codec.Append(bad, &other));
  }
}

}  // namespace
}  // namespace glaive::encoding
