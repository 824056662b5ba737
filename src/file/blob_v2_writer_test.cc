// Blobs of the second kind: where their bytes lie, and what is left of a failed write.
#include "file/blob_v2_writer.h"

#include <optional>
#include <string>
#include <vector>

#include <arrow/api.h>
#include <gtest/gtest.h>

#include "base/testing.h"
#include "file/file_reader.h"
#include "file/file_writer.h"
#include "io/faulting_store.h"
#include "io/object_store.h"

namespace glaive::file {
namespace {

std::shared_ptr<arrow::Field> BlobField(
    std::shared_ptr<const arrow::KeyValueMetadata> limits = nullptr) {
  auto metadata =
      limits == nullptr ? arrow::KeyValueMetadata::Make({}, {}) : limits->Copy();
  metadata->Append("ARROW:extension:name", "lance.blob.v2");
  return arrow::field("b",
                      arrow::struct_({arrow::field("data", arrow::large_binary()),
                                      arrow::field("uri", arrow::utf8())}),
                      true, metadata);
}

std::shared_ptr<arrow::KeyValueMetadata> SmallLimits() {
  return arrow::KeyValueMetadata::Make({"lance-encoding:blob-inline-size-threshold",
                                        "lance-encoding:blob-dedicated-size-threshold",
                                        "lance-encoding:blob-pack-file-size-threshold"},
                                       {"10", "30", "50"});
}

using Blobs = std::vector<std::optional<std::string>>;

std::shared_ptr<arrow::Array> MakeBlobs(const Blobs& blobs) {
  arrow::LargeBinaryBuilder data;
  arrow::StringBuilder uri;
  std::vector<bool> valid;
  for (const auto& blob : blobs) {
    EXPECT_OK(blob ? data.Append(*blob) : data.AppendNull());
    EXPECT_OK(uri.AppendNull());
    valid.push_back(blob.has_value());
  }
  arrow::TypedBufferBuilder<bool> bits;
  EXPECT_OK(bits.Reserve(static_cast<int64_t>(valid.size())));
  for (bool bit : valid) bits.UnsafeAppend(bit);
  return std::make_shared<arrow::StructArray>(
      BlobField()->type(), static_cast<int64_t>(blobs.size()),
      arrow::ArrayVector{data.Finish().ValueOrDie(), uri.Finish().ValueOrDie()},
      bits.Finish().ValueOrDie());
}

Status Write(io::ObjectStore& store, const std::shared_ptr<arrow::Field>& field,
             const std::shared_ptr<arrow::Array>& array,
             std::vector<std::string>* blob_files = nullptr) {
  auto arrow_schema = arrow::schema({field});
  GLAIVE_ASSIGN_OR_RETURN(const Schema schema, Schema::FromArrow(*arrow_schema));
  GLAIVE_ASSIGN_OR_RETURN(auto writer, FileWriter::Make(store, "data/f.lance", schema));
  GLAIVE_RETURN_NOT_OK(
      writer->Write(*arrow::RecordBatch::Make(arrow_schema, array->length(), {array})));
  GLAIVE_ASSIGN_OR_RETURN(auto summary, writer->Finish());
  if (blob_files != nullptr) *blob_files = summary.blob_files;
  return Status::OK();
}

// The descriptors that the file holds.
std::shared_ptr<arrow::Array> ReadBack(io::ObjectStore& store) {
  auto object = store.Open("data/f.lance").ValueOrDie();
  auto reader = FileReader::Open(object).ValueOrDie();
  auto projection = reader->ProjectAll().ValueOrDie();
  return reader->ReadRange(projection, 0, reader->num_rows()).ValueOrDie()->column(0);
}

std::string BytesOf(io::ObjectStore& store, const arrow::StructArray& rows, int64_t row) {
  const auto number = [&](int member) {
    return std::stoull(rows.field(member)->GetScalar(row).ValueOrDie()->ToString());
  };
  std::string path = "data/f.lance";
  if (number(0) != 0) {
    path = "data/f/";
    for (int bit = 0; bit < 32; ++bit) path += ((number(3) >> bit) & 1) ? '1' : '0';
    path += ".blob";
  }
  return store.Get(path).ValueOrDie()->ToString().substr(number(1), number(2));
}

TEST(BlobV2Writer, KindsBySize) {
  auto store = io::MakeMemoryStore();
  Blobs blobs = {"", std::nullopt, "abc"};
  for (const int size : {10, 11, 20, 21, 30, 31, 40, 9}) {
    blobs.push_back(
        std::string(static_cast<size_t>(size), static_cast<char>('a' + size)));
  }
  std::vector<std::string> files;
  ASSERT_OK(Write(*store, BlobField(SmallLimits()), MakeBlobs(blobs), &files));
  // 11 and 20 bytes share a file; 21 more do not fit; 30 more neither.
  EXPECT_EQ(files.size(), 5u);
  const auto array = ReadBack(*store);
  ASSERT_OK(array->ValidateFull());
  const auto& rows = static_cast<const arrow::StructArray&>(*array);
  const std::vector<int> kinds = {0, -1, 0, 0, 1, 1, 1, 1, 2, 2, 0};
  const std::vector<int> numbers = {0, -1, 0, 0, 1, 1, 2, 3, 4, 5, 0};
  ASSERT_EQ(rows.length(), static_cast<int64_t>(blobs.size()));
  for (size_t i = 0; i < blobs.size(); ++i) {
    const auto row = static_cast<int64_t>(i);
    ASSERT_EQ(rows.IsValid(row), blobs[i].has_value()) << i;
    if (!blobs[i]) continue;
    EXPECT_EQ(rows.field(0)->GetScalar(row).ValueOrDie()->ToString(),
              std::to_string(kinds[i]));
    EXPECT_EQ(rows.field(3)->GetScalar(row).ValueOrDie()->ToString(),
              std::to_string(numbers[i]));
    EXPECT_EQ(BytesOf(*store, rows, row), *blobs[i]) << i;
  }
}

TEST(BlobV2Writer, SlicesAndLists) {
  auto store = io::MakeMemoryStore();
  const auto values = MakeBlobs({"zero", "one", std::nullopt, "three", "four", "five"});
  arrow::TypedBufferBuilder<bool> valid;
  for (bool bit : {true, true, false, true}) ASSERT_OK(valid.Append(bit));
  const auto offsets = arrow::Buffer::FromVector(std::vector<int32_t>{1, 1, 3, 4, 6});
  const auto type = arrow::list(BlobField()->WithName("item"));
  const auto lists = std::make_shared<arrow::ListArray>(type, 4, offsets, values,
                                                        valid.Finish().ValueOrDie());
  // Without the first list; the third, null, hides "three".
  std::vector<std::string> files;
  ASSERT_OK(Write(*store, arrow::field("b", type), lists->Slice(1), &files));
  EXPECT_TRUE(files.empty());
  const auto array = ReadBack(*store);
  const auto& found = static_cast<const arrow::ListArray&>(*array);
  ASSERT_EQ(found.length(), 3);
  EXPECT_TRUE(found.IsNull(1));
  EXPECT_EQ(found.value_length(0), 2);
  EXPECT_EQ(found.value_length(2), 2);
  const auto& rows = static_cast<const arrow::StructArray&>(*found.values());
  const int64_t first = found.value_offset(0);
  const int64_t last = found.value_offset(2);
  EXPECT_EQ(BytesOf(*store, rows, first), "one");
  EXPECT_TRUE(rows.IsNull(first + 1));
  EXPECT_EQ(BytesOf(*store, rows, last), "four");
  EXPECT_EQ(BytesOf(*store, rows, last + 1), "five");
}

TEST(BlobV2Writer, FailuresLeaveNothing) {
  const Blobs blobs = {std::string(5, 'a'), std::string(25, 'b'), std::string(60, 'c'),
                       std::string(29, 'd')};
  for (int64_t at = 0;; ++at) {
    auto store = io::MakeMemoryStore();
    io::FaultPlan plan;
    plan.fail_at = at;
    auto injector = std::make_shared<io::FaultInjector>();
    injector->Arm(plan);
    auto faulty = io::MakeFaultingStore(store, injector);
    const Status status = Write(*faulty, BlobField(SmallLimits()), MakeBlobs(blobs));
    if (status.ok()) {
      EXPECT_GT(at, 8);
      break;
    }
    EXPECT_TRUE(store->List("", true).ValueOrDie().empty()) << "operation " << at;
  }
}

TEST(BlobV2Writer, WhatCannotBeStored) {
  auto store = io::MakeMemoryStore();
  const auto uris = [](std::optional<std::string> data, std::optional<std::string> uri) {
    arrow::LargeBinaryBuilder datas;
    arrow::StringBuilder texts;
    EXPECT_OK(data ? datas.Append(*data) : datas.AppendNull());
    EXPECT_OK(uri ? texts.Append(*uri) : texts.AppendNull());
    return arrow::StructArray::Make(
               {datas.Finish().ValueOrDie(), texts.Finish().ValueOrDie()},
               BlobField()->type()->fields())
        .ValueOrDie();
  };
  EXPECT_EQ(KindOf(Write(*store, BlobField(), uris(std::nullopt, std::nullopt))),
            ErrorKind::kInvalidInput);
  EXPECT_EQ(KindOf(Write(*store, BlobField(), uris("x", "file:///x"))),
            ErrorKind::kInvalidInput);
  EXPECT_EQ(KindOf(Write(*store, BlobField(), uris(std::nullopt, "file:///x"))),
            ErrorKind::kNotSupported);
  auto odd = arrow::KeyValueMetadata::Make({"lance-encoding:blob-inline-size-threshold"},
                                           {"many"});
  EXPECT_EQ(KindOf(Write(*store, BlobField(odd), MakeBlobs({"x"}))),
            ErrorKind::kInvalidInput);
  EXPECT_TRUE(store->List("", true).ValueOrDie().empty());
  FileWriterOptions old;
  old.version = FileVersion::k2_1;
  const auto schema = Schema::FromArrow(*arrow::schema({BlobField()})).ValueOrDie();
  EXPECT_EQ(KindOf(FileWriter::Make(*store, "f.lance", schema, old).status()),
            ErrorKind::kInvalidInput);
}

}  // namespace
}  // namespace glaive::file
