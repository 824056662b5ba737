// Framing of manifest files: round trips, sections, fields nobody knows, damage.
#include "table/manifest.h"

#include <cstring>

#include <gtest/gtest.h>

#include "format/table.pb.h"
#include "format/transaction.pb.h"
#include "io/test_util.h"
#include "table/feature_flags.h"

namespace glaive::table {
namespace {

using lance::table::DataFragment;
using lance::table::Manifest;

DataFragment MakeFragment(uint64_t id, uint64_t rows) {
  DataFragment fragment;
  fragment.set_id(id);
  fragment.set_physical_rows(rows);
  auto* file = fragment.add_files();
  file->set_path("f" + std::to_string(id) + ".lance");
  file->add_fields(0);
  file->add_column_indices(0);
  file->set_file_major_version(2);
  file->set_file_minor_version(2);
  file->set_file_size_bytes(100 + id);
  return fragment;
}

struct Example {
  Manifest header;
  std::vector<std::string> fragments;
  std::string index;
  std::string transaction;

  Example() {
    auto* field = header.add_fields();
    field->set_name("a");
    field->set_parent_id(-1);
    field->set_logical_type("int32");
    field->set_nullable(true);
    header.set_version(7);
    header.set_max_fragment_id(9);
    (*header.mutable_config())["k"] = "v";
    DataFragment with_deletions = MakeFragment(5, 100);
    with_deletions.mutable_deletion_file()->set_num_deleted_rows(30);
    with_deletions.mutable_deletion_file()->set_id(~uint64_t{0});
    fragments = {MakeFragment(0, 10).SerializeAsString(),
                 with_deletions.SerializeAsString(),
                 MakeFragment(9, 1).SerializeAsString()};
    lance::table::Transaction message;
    message.set_uuid("u");
    message.mutable_append();
    transaction = message.SerializeAsString();
    lance::table::IndexSection section;
    section.add_indices()->set_name("i");
    index = section.SerializeAsString();
  }

  std::string Serialize(std::vector<FragmentSummary>* summaries) {
    ManifestParts parts;
    parts.header = &header;
    summaries->clear();
    for (const std::string& fragment : fragments) {
      parts.fragments.push_back(fragment);
      summaries->push_back(*SummarizeFragment(fragment));
    }
    parts.index_section = index;
    parts.transaction = transaction;
    auto bytes = SerializeManifest(parts, *summaries);
    EXPECT_TRUE(bytes.ok()) << bytes.status().ToString();
    return *bytes;
  }
};

Result<ManifestFile> Parse(std::string bytes) {
  return ParseManifest(SharedBytes::FromString(std::move(bytes)));
}

TEST(ManifestFile, RoundTrip) {
  Example example;
  std::vector<FragmentSummary> written;
  const std::string bytes = example.Serialize(&written);
  EXPECT_EQ(bytes.substr(bytes.size() - 4), "LANC");
  ASSERT_OK_AND_ASSIGN(ManifestFile manifest, Parse(bytes));
  EXPECT_EQ(manifest.header->version(), 7u);
  EXPECT_EQ(manifest.header->fragments_size(), 0);
  EXPECT_EQ(manifest.header->config().at("k"), "v");
  EXPECT_EQ(manifest.index_section, example.index);
  EXPECT_EQ(manifest.transaction_section, example.transaction);
  EXPECT_EQ(manifest.header->index_section(), 0u);
  EXPECT_FALSE(manifest.header->has_transaction_section_v14());
  ASSERT_EQ(manifest.fragments.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(manifest.fragments[i].offset, written[i].offset);
    EXPECT_EQ(bytes.substr(written[i].offset, written[i].length), example.fragments[i]);
  }
  EXPECT_EQ(manifest.fragments[1].id, 5u);
  EXPECT_EQ(manifest.fragments[1].physical_rows, 100u);
  EXPECT_EQ(manifest.fragments[1].deleted_rows, 30u);
  ASSERT_OK_AND_ASSIGN(auto files, SummarizeFiles(example.fragments[1]));
  EXPECT_EQ(files.count, 1u);
  EXPECT_EQ(files.bytes, 105u);
  EXPECT_TRUE(manifest.fragments[1].has_deletion_file);
  EXPECT_FALSE(manifest.fragments[2].has_deletion_file);
}

// The message that the file holds is a plain Manifest: any protobuf reader sees all of
// it.
TEST(ManifestFile, IsOneMessage) {
  Example example;
  std::vector<FragmentSummary> summaries;
  const std::string bytes = example.Serialize(&summaries);
  uint64_t position;
  std::memcpy(&position, bytes.data() + bytes.size() - 16, 8);
  Manifest whole;
  ASSERT_TRUE(
      whole.ParseFromString(bytes.substr(position + 4, bytes.size() - position - 20)));
  ASSERT_EQ(whole.fragments_size(), 3);
  EXPECT_EQ(whole.fragments(2).SerializeAsString(), example.fragments[2]);
  EXPECT_EQ(whole.version(), 7u);
}

TEST(ManifestFile, KeepsFieldsItDoesNotKnow) {
  Example example;
  example.header.GetReflection()
      ->MutableUnknownFields(&example.header)
      ->AddVarint(9999, 5);
  DataFragment fragment = MakeFragment(11, 4);
  fragment.GetReflection()->MutableUnknownFields(&fragment)->AddLengthDelimited(77, "x");
  example.fragments.push_back(fragment.SerializeAsString());
  std::vector<FragmentSummary> summaries;
  ASSERT_OK_AND_ASSIGN(ManifestFile manifest, Parse(example.Serialize(&summaries)));
  const auto& unknown =
      manifest.header->GetReflection()->GetUnknownFields(*manifest.header);
  ASSERT_EQ(unknown.field_count(), 1);
  EXPECT_EQ(unknown.field(0).number(), 9999);
  EXPECT_EQ(manifest.fragments.back().id, 11u);
}

TEST(ManifestFile, SectionNumber23Wins) {
  Example example;
  std::vector<FragmentSummary> summaries;
  const std::string bytes = example.Serialize(&summaries);
  uint64_t position;
  std::memcpy(&position, bytes.data() + bytes.size() - 16, 8);
  Manifest whole;
  ASSERT_TRUE(
      whole.ParseFromString(bytes.substr(position + 4, bytes.size() - position - 20)));
  whole.set_transaction_section_v14(whole.index_section());
  std::string changed = bytes.substr(0, position);
  const std::string message = whole.SerializeAsString();
  const auto length = static_cast<uint32_t>(message.size());
  changed.append(reinterpret_cast<const char*>(&length), 4);
  changed += message;
  changed += bytes.substr(bytes.size() - 16);
  ASSERT_OK_AND_ASSIGN(ManifestFile manifest, Parse(changed));
  EXPECT_EQ(manifest.transaction_section, example.index);
}

TEST(ManifestFile, SurvivesDamage) {
  Example example;
  std::vector<FragmentSummary> summaries;
  const std::string bytes = example.Serialize(&summaries);
  int parsed = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    for (int flip : {0x01, 0x02, 0x08, 0x80, 0xff}) {
      std::string damaged = bytes;
      damaged[i] = static_cast<char>(damaged[i] ^ flip);
      auto manifest = Parse(damaged);
      if (manifest.ok()) {
        ++parsed;
      } else {
        EXPECT_KIND(ErrorKind::kCorruption, manifest.status());
      }
    }
    EXPECT_KIND(ErrorKind::kCorruption, Parse(bytes.substr(0, i)).status());
  }
  EXPECT_GT(parsed, 0);  // flips in names and numbers are still manifests
}

TEST(FragmentList, RefusesDoubleIds) {
  const std::string message = MakeFragment(3, 1).SerializeAsString();
  ASSERT_OK_AND_ASSIGN(auto summary, SummarizeFragment(message));
  EXPECT_KIND(
      ErrorKind::kCorruption,
      FragmentList::Make(SharedBytes::FromString(message), {summary, summary}).status());
}

TEST(FragmentList, SharesWhatStaysTheSame) {
  std::string one = MakeFragment(1, 10).SerializeAsString();
  std::string two = MakeFragment(2, 20).SerializeAsString();
  std::string changed = MakeFragment(2, 21).SerializeAsString();
  auto make = [](const std::vector<std::string>& parts, const FragmentList* previous) {
    std::string all;
    std::vector<FragmentSummary> summaries;
    for (const auto& part : parts) {
      summaries.push_back(*SummarizeFragment(part));
      summaries.back().offset = static_cast<uint32_t>(all.size());
      all += part;
    }
    return *FragmentList::Make(SharedBytes::FromString(all), summaries, previous);
  };
  auto first = make({one, two}, nullptr);
  EXPECT_EQ(first->total_physical_rows(), 30);
  EXPECT_EQ(first->state(0).message().physical_rows(), 10u);
  auto second = make({one, changed}, first.get());
  EXPECT_EQ(&first->state(0), &second->state(0));
  EXPECT_NE(&first->state(1), &second->state(1));
  EXPECT_EQ(second->state(1).message().physical_rows(), 21u);
  EXPECT_EQ(second->Find(2), 1);
  EXPECT_EQ(second->Find(3), -1);
}

TEST(FeatureFlags, Checks) {
  Manifest manifest;
  manifest.set_reader_feature_flags(1 | 2 | 4 | 8 | 16 | 32 | 128 | 2048);
  EXPECT_TRUE(CheckReaderFlags(manifest).ok());
  for (uint64_t flag : {64u, 512u, 4096u, 8192u, 131072u}) {
    Manifest bad;
    bad.set_reader_feature_flags(flag);
    bad.set_writer_feature_flags(flag);
    Status status = CheckReaderFlags(bad);
    EXPECT_KIND(ErrorKind::kNotSupported, status);
    EXPECT_NE(status.message().find(std::to_string(flag)), std::string::npos);
    Manifest writer_only;
    writer_only.set_writer_feature_flags(flag);
    EXPECT_TRUE(CheckReaderFlags(writer_only).ok()) << flag;
    EXPECT_KIND(ErrorKind::kNotSupported, CheckWriterFlags(writer_only));
  }
  for (uint64_t flag : {256u, 1024u, 16384u, 65536u}) {
    Manifest half;
    half.set_reader_feature_flags(flag);
    EXPECT_KIND(ErrorKind::kCorruption, CheckReaderFlags(half));
    Manifest other_half;
    other_half.set_writer_feature_flags(flag);
    EXPECT_KIND(ErrorKind::kCorruption, CheckReaderFlags(other_half));
  }
}

TEST(FeatureFlags, Recomputed) {
  Manifest previous;
  previous.set_reader_feature_flags(2 | 256 | 1);
  previous.set_writer_feature_flags(2 | 256 | 1 | 32);
  Manifest manifest;
  (*manifest.mutable_config())["a"] = "b";
  FragmentTraits traits;
  RecomputeFlags(&manifest, traits, false, &previous, false);
  EXPECT_EQ(manifest.reader_feature_flags(), 2u | 256u);
  EXPECT_EQ(manifest.writer_feature_flags(), 2u | 256u | 8u);
  traits.any_deletion_file = true;
  RecomputeFlags(&manifest, traits, true, nullptr, true);
  EXPECT_EQ(manifest.reader_feature_flags(), 1u | 2u | 128u);
}

}  // namespace
}  // namespace glaive::table
