#include "memwal/wal_entry.h"

#include <cstring>
#include <limits>

#include <arrow/api.h>
#include <arrow/io/memory.h>
#include <arrow/ipc/api.h>
#include <arrow/util/compression.h>
#include <arrow/util/key_value_metadata.h>

#include "base/testing.h"

namespace glaive::memwal {
namespace {

std::shared_ptr<arrow::Buffer> Join(const EncodedWalEntry& entry) {
  auto joined = arrow::ConcatenateBuffers(entry.parts).ValueOrDie();
  EXPECT_EQ(joined->size(), entry.size_bytes);
  return joined;
}

std::shared_ptr<arrow::RecordBatch> MakeBatch(int64_t first, int64_t rows) {
  arrow::Int64Builder id;
  arrow::StringBuilder text;
  arrow::BooleanBuilder tombstone;
  for (int64_t i = first; i < first + rows; ++i) {
    EXPECT_TRUE(id.Append(i).ok());
    EXPECT_TRUE(
        (i % 3 == 0 ? text.AppendNull() : text.Append("row " + std::to_string(i))).ok());
    EXPECT_TRUE(tombstone.Append(i % 5 == 0).ok());
  }
  auto schema =
      arrow::schema({arrow::field("id", arrow::int64(), false,
                                  arrow::key_value_metadata({"lance:field_id"}, {"0"})),
                     arrow::field("text", arrow::utf8(), true,
                                  arrow::key_value_metadata({"lance:field_id"}, {"1"})),
                     arrow::field("_tombstone", arrow::boolean(), false)},
                    arrow::key_value_metadata({"owner"}, {"us"}));
  return arrow::RecordBatch::Make(schema, rows,
                                  {id.Finish().ValueOrDie(), text.Finish().ValueOrDie(),
                                   tombstone.Finish().ValueOrDie()});
}

// A stream as another writer may write it.
std::shared_ptr<arrow::Buffer> Foreign(
    const std::map<std::string, std::string>& metadata, const BatchVector& batches,
    std::optional<arrow::Compression::type> compression = std::nullopt) {
  auto schema =
      batches.empty() ? arrow::schema(arrow::FieldVector{}) : batches[0]->schema();
  std::vector<std::string> keys, values;
  for (const auto& [key, value] : metadata) {
    keys.push_back(key);
    values.push_back(value);
  }
  schema = schema->WithMetadata(arrow::key_value_metadata(keys, values));
  auto options = arrow::ipc::IpcWriteOptions::Defaults();
  if (compression) {
    options.codec = arrow::util::Codec::Create(*compression).ValueOrDie();
  }
  auto sink = arrow::io::BufferOutputStream::Create().ValueOrDie();
  auto writer = arrow::ipc::MakeStreamWriter(sink, schema, options).ValueOrDie();
  for (const auto& batch : batches) EXPECT_TRUE(writer->WriteRecordBatch(*batch).ok());
  EXPECT_TRUE(writer->Close().ok());
  return sink->Finish().ValueOrDie();
}

std::shared_ptr<arrow::Buffer> Bytes(std::string_view text) {
  return arrow::Buffer::FromString(std::string(text));
}

TEST(WalEntryTest, RoundTrips) {
  const BatchVector batches = {MakeBatch(0, 7), MakeBatch(7, 2000)->Slice(3, 1500)};
  ASSERT_OK_AND_ASSIGN(const auto encoded, EncodeWalEntry({3, 9}, batches));
  const auto bytes = Join(encoded);
  ASSERT_OK_AND_ASSIGN(const WalEntry entry, DecodeWalEntry(4, "e", bytes));
  EXPECT_EQ(entry.position, 4u);
  EXPECT_EQ(entry.header.writer_epoch, 3u);
  EXPECT_EQ(entry.header.generation, 9u);
  EXPECT_FALSE(entry.sentinel);
  EXPECT_EQ(entry.size_bytes, bytes->size());
  EXPECT_TRUE(entry.schema->Equals(batches[0]->schema(), /*check_metadata=*/true))
      << entry.schema->ToString();
  ASSERT_EQ(entry.batches.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_TRUE(entry.batches[i]->Equals(*batches[i], true));
  }
  // Zero-copy.
  const auto* values = entry.batches[1]->column_data(0)->buffers[1]->data();
  EXPECT_GE(values, bytes->data());
  EXPECT_LT(values, bytes->data() + bytes->size());
  EXPECT_FALSE(EndsEarly(std::string_view(*bytes)));
}

TEST(WalEntryTest, BodiesAreNotCopied) {
  arrow::Int64Builder builder;
  for (int64_t i = 0; i < 10000; ++i) ASSERT_OK(builder.Append(i));
  ASSERT_OK_AND_ASSIGN(const auto values, builder.Finish());
  const auto batch = arrow::RecordBatch::Make(
      arrow::schema({arrow::field("v", arrow::int64())}), values->length(), {values});
  ASSERT_OK_AND_ASSIGN(const auto encoded, EncodeWalEntry({1, std::nullopt}, {batch}));
  bool found = false;
  for (const auto& part : encoded.parts) {
    found = found || part->data() == values->data()->buffers[1]->data();
  }
  EXPECT_TRUE(found);
  ASSERT_OK_AND_ASSIGN(const auto entry, DecodeWalEntry(1, "e", Join(encoded)));
  EXPECT_FALSE(entry.header.generation);
}

TEST(WalEntryTest, Dictionaries) {
  arrow::StringDictionaryBuilder builder;
  for (const char* text : {"a", "b", "a", "c"}) ASSERT_OK(builder.Append(text));
  ASSERT_OK_AND_ASSIGN(const auto values, builder.Finish());
  const auto batch = arrow::RecordBatch::Make(
      arrow::schema({arrow::field("v", values->type())}), values->length(), {values});
  ASSERT_OK_AND_ASSIGN(const auto encoded, EncodeWalEntry({1, 1}, {batch, batch}));
  ASSERT_OK_AND_ASSIGN(const auto entry, DecodeWalEntry(1, "e", Join(encoded)));
  ASSERT_EQ(entry.batches.size(), 2u);
  EXPECT_TRUE(entry.batches[1]->Equals(*batch));
}

TEST(WalEntryTest, RefusesWhatIsNoEntry) {
  EXPECT_ERROR_KIND(EncodeWalEntry({1, 1}, {}), ErrorKind::kInvalidInput);
  EXPECT_ERROR_KIND(EncodeWalEntry({1, 1}, {MakeBatch(0, 1), MakeBatch(0, 0)}),
                    ErrorKind::kInvalidInput);
  const auto other =
      arrow::RecordBatch::MakeEmpty(arrow::schema({arrow::field("x", arrow::int8())}))
          .ValueOrDie();
  EXPECT_ERROR_KIND(EncodeWalEntry({1, 1}, {MakeBatch(0, 1), other}),
                    ErrorKind::kInvalidInput);
}

TEST(WalEntryTest, Sentinel) {
  ASSERT_OK_AND_ASSIGN(const auto encoded, EncodeFenceSentinel(5));
  ASSERT_OK_AND_ASSIGN(const auto entry, DecodeWalEntry(2, "e", Join(encoded)));
  EXPECT_TRUE(entry.sentinel);
  EXPECT_EQ(entry.header.writer_epoch, 5u);
  EXPECT_FALSE(entry.header.generation);
  EXPECT_EQ(entry.schema->num_fields(), 0);
  EXPECT_TRUE(entry.batches.empty());
}

TEST(WalEntryTest, AcceptsWhatUpstreamAccepts) {
  const BatchVector batches = {MakeBatch(0, 5000)};
  // No generation, keys of blob targets, keys of others, batches without rows.
  ASSERT_OK_AND_ASSIGN(WalEntry entry,
                       DecodeWalEntry(1, "e",
                                      Foreign({{"writer_epoch", "1"},
                                               {"mem_wal_target_generation", "3"},
                                               {"theirs", "x"}},
                                              {batches[0], batches[0]->Slice(0, 0)})));
  EXPECT_FALSE(entry.header.generation);
  EXPECT_EQ(entry.batches.size(), 1u);
  ASSERT_TRUE(entry.schema->HasMetadata());
  EXPECT_EQ(entry.schema->metadata()->ToString(),
            arrow::key_value_metadata({"theirs"}, {"x"})->ToString());
  // Compressed buffers outlive the decoder.
  for (const auto codec : {arrow::Compression::LZ4_FRAME, arrow::Compression::ZSTD}) {
    ASSERT_OK_AND_ASSIGN(
        entry, DecodeWalEntry(1, "e", Foreign({{"writer_epoch", "1"}}, batches, codec)));
    ASSERT_EQ(entry.batches.size(), 1u);
    EXPECT_TRUE(entry.batches[0]->Equals(*batches[0]));
    EXPECT_OK(entry.batches[0]->ValidateFull());
  }
  // No end-of-stream marker.
  auto bytes = Foreign({{"writer_epoch", "1"}}, batches);
  bytes = arrow::SliceBuffer(bytes, 0, bytes->size() - 8);
  ASSERT_OK_AND_ASSIGN(entry, DecodeWalEntry(1, "e", bytes));
  EXPECT_EQ(entry.batches.size(), 1u);
  // A schema and nothing else.
  ASSERT_OK_AND_ASSIGN(entry,
                       DecodeWalEntry(1, "e", Foreign({{"writer_epoch", "1"}}, {})));
  EXPECT_FALSE(entry.sentinel);
  EXPECT_TRUE(entry.batches.empty());
}

TEST(WalEntryTest, RefusesBadMetadata) {
  const BatchVector batches = {MakeBatch(0, 3)};
  using Metadata = std::map<std::string, std::string>;
  for (const auto& [metadata, text] : std::vector<std::pair<Metadata, std::string>>{
           {{}, "WAL entry missing writer_epoch metadata"},
           {{{"writer_epoch", ""}}, "malformed writer_epoch"},
           {{{"writer_epoch", "-1"}}, "malformed writer_epoch"},
           {{{"writer_epoch", "1x"}}, "malformed writer_epoch"},
           {{{"writer_epoch", "99999999999999999999"}}, "malformed writer_epoch"},
           {{{"writer_epoch", "1"}, {"generation", "one"}}, "malformed generation"},
           {{{"writer_epoch", "1"}, {"fence_sentinel", "true"}}, "sentinel"}}) {
    auto entry = DecodeWalEntry(1, "the-entry", Foreign(metadata, batches));
    EXPECT_ERROR_KIND(entry, ErrorKind::kCorruption);
    EXPECT_NE(entry.status().message().find(text), std::string::npos);
    EXPECT_NE(entry.status().message().find("the-entry"), std::string::npos);
  }
}

TEST(WalEntryTest, EveryTruncationIsNoticed) {
  ASSERT_OK_AND_ASSIGN(const auto encoded,
                       EncodeWalEntry({1, 1}, {MakeBatch(0, 20), MakeBatch(20, 20)}));
  const auto bytes = Join(encoded);
  int whole = 0;
  for (int64_t size = 0; size < bytes->size(); ++size) {
    const auto cut = arrow::SliceBuffer(bytes, 0, size);
    EXPECT_TRUE(EndsEarly(std::string_view(*cut))) << size;
    auto entry = DecodeWalEntry(1, "e", cut);
    if (!entry.ok()) {
      EXPECT_ERROR_KIND(entry, ErrorKind::kCorruption);
      continue;
    }
    // Between two messages nothing is missing but the marker, which may be.
    ++whole;
    EXPECT_LE(entry->batches.size(), 2u);
  }
  EXPECT_LE(whole, 3 + 3 * 4);
}

TEST(WalEntryTest, TrailersTellDamage) {
  ASSERT_OK_AND_ASSIGN(const auto encoded, EncodeWalEntry({1, 1}, {MakeBatch(0, 300)}));
  for (const auto level : {Durability::kFsync, Durability::kOs}) {
    const auto sealed = SealWalEntry(encoded, level);
    const std::string bytes = Join(sealed)->ToString();
    EXPECT_EQ(bytes.size(), static_cast<size_t>(encoded.size_bytes) + 16);
    EXPECT_FALSE(EndsEarly(bytes));
    ASSERT_OK_AND_ASSIGN(const auto entry, DecodeWalEntry(1, "e", Bytes(bytes)));
    EXPECT_EQ(entry.durability, level);
    EXPECT_EQ(entry.batches.size(), 1u);
    // A flipped bit anywhere in the stream, and every truncation but that of the whole
    // trailer.
    for (size_t at = 0; at < bytes.size() - 16; ++at) {
      std::string flipped = bytes;
      flipped[at] = static_cast<char>(flipped[at] ^ 0x10);
      EXPECT_ERROR_KIND(DecodeWalEntry(1, "e", Bytes(flipped)), ErrorKind::kCorruption);
      EXPECT_FALSE(EndsEarly(flipped));
    }
    for (size_t size = bytes.size() - 15; size < bytes.size(); ++size) {
      const std::string cut = bytes.substr(0, size);
      EXPECT_ERROR_KIND(DecodeWalEntry(1, "e", Bytes(cut)), ErrorKind::kCorruption);
      EXPECT_TRUE(EndsEarly(cut));
    }
    // Everybody else reads the stream alone.
    arrow::io::BufferReader stream(Bytes(bytes));
    auto reader = arrow::ipc::RecordBatchStreamReader::Open(&stream).ValueOrDie();
    EXPECT_EQ(reader->ToRecordBatches().ValueOrDie().size(), 1u);
  }
  ASSERT_OK_AND_ASSIGN(const auto plain, DecodeWalEntry(1, "e", Join(encoded)));
  EXPECT_FALSE(plain.durability);
}

TEST(WalEntryTest, BlocksOfZerosAreNoticed) {
  ASSERT_OK_AND_ASSIGN(const auto encoded, EncodeWalEntry({1, 1}, {MakeBatch(1, 900)}));
  const std::string bytes = Join(encoded)->ToString();
  for (const size_t kept : {size_t{0}, size_t{512}, bytes.size() / 512 * 512}) {
    std::string zeroed = bytes.substr(0, kept);
    zeroed.resize(bytes.size(), '\0');
    EXPECT_ERROR_KIND(DecodeWalEntry(1, "e", Bytes(zeroed)), ErrorKind::kCorruption);
    EXPECT_TRUE(EndsEarly(zeroed));
  }
}

TEST(WalEntryTest, HugeNumbersAreRefused) {
  ASSERT_OK_AND_ASSIGN(const auto encoded, EncodeWalEntry({1, 1}, {MakeBatch(0, 50)}));
  const std::string bytes = Join(encoded)->ToString();
  // The length of the schema's metadata.
  for (const int32_t length :
       {std::numeric_limits<int32_t>::max(), std::numeric_limits<int32_t>::max() - 7,
        std::numeric_limits<int32_t>::min(), -1, 1 << 30}) {
    std::string changed = bytes;
    std::memcpy(changed.data() + 4, &length, 4);
    EXPECT_ERROR_KIND(DecodeWalEntry(1, "e", Bytes(changed)), ErrorKind::kCorruption);
  }
  // Every eight bytes of the entry made huge: an error or harmless, and bounded memory.
  for (size_t at = 0; at + 8 <= bytes.size(); at += 4) {
    for (const uint64_t value : {uint64_t{0x7ffffffffffffff8}, uint64_t{0x7ffffff8},
                                 uint64_t{0xfffffffffffffff8}}) {
      std::string changed = bytes;
      std::memcpy(changed.data() + at, &value, 8);
      auto entry = DecodeWalEntry(1, "e", Bytes(changed));
      if (entry.ok()) {
        for (const auto& batch : entry->batches) EXPECT_OK(batch->ValidateFull());
      } else {
        EXPECT_ERROR_KIND(entry, ErrorKind::kCorruption);
      }
    }
  }
}

TEST(WalEntryTest, DecompressionIsBounded) {
  arrow::Int64Builder builder;
  for (int64_t i = 0; i < 200; ++i) ASSERT_OK(builder.Append(i));
  const auto batch =
      arrow::RecordBatch::Make(arrow::schema({arrow::field("v", arrow::int64())}), 200,
                               {builder.Finish().ValueOrDie()});
  const std::string bytes =
      Foreign({{"writer_epoch", "1"}}, {batch}, arrow::Compression::LZ4_FRAME)
          ->ToString();
  // The length of 1600 bytes stands before the compressed buffer.
  const uint64_t length = 1600, huge = uint64_t{1} << 40;
  const size_t at = bytes.find(std::string(reinterpret_cast<const char*>(&length), 8));
  const size_t last = bytes.rfind(std::string(reinterpret_cast<const char*>(&length), 8));
  ASSERT_NE(at, std::string::npos);
  std::string changed = bytes;
  std::memcpy(changed.data() + last, &huge, 8);
  auto entry = DecodeWalEntry(1, "e", Bytes(changed));
  EXPECT_ERROR_KIND(entry, ErrorKind::kCorruption);
}

}  // namespace
}  // namespace glaive::memwal
