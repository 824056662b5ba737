// What becomes of indices, which are not read, when fragments and columns change.
#include "table/index_section.h"

#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "format/file.pb.h"
#include "io/test_util.h"
#include "table/deletion_vector.h"

namespace glaive::table {
namespace {

using Ids = std::vector<uint32_t>;
using lance::table::IndexMetadata;
using lance::table::Transaction;

IndexMetadata MakeIndex(const char* name, const char* type, int32_t field,
                        const Ids& fragments, int version = 0) {
  IndexMetadata index;
  index.mutable_uuid()->set_uuid(std::string("uuid of ") + name);
  index.set_name(name);
  index.add_fields(field);
  index.set_index_version(version);
  index.mutable_index_details()->set_type_url(std::string("/lance.table.") + type);
  const auto bytes = DeletionVector::FromOffsets(fragments)->ToBitmap();
  index.set_fragment_bitmap(bytes.data(), bytes.size());
  return index;
}

std::shared_ptr<const std::string> Section(const std::vector<IndexMetadata>& indices) {
  lance::table::IndexSection section;
  for (const auto& index : indices) *section.add_indices() = index;
  return std::make_shared<const std::string>(section.SerializeAsString());
}

std::map<std::string, Ids> Coverage(IndexEditor* editor) {
  std::map<std::string, Ids> coverage;
  lance::table::IndexSection section;
  auto serialized = editor->Serialized();
  if (serialized == nullptr) return coverage;
  EXPECT_TRUE(section.ParseFromString(*serialized));
  for (const auto& index : section.indices()) {
    const std::string& bytes = index.fragment_bitmap();
    auto set = DeletionVector::ParseBitmap(
        {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, 1000);
    EXPECT_TRUE(set.ok());
    if (set.ok()) coverage[index.name()] = (*set)->ToOffsets();
  }
  return coverage;
}

std::vector<IndexMetadata> Kinds() {
  return {MakeIndex("bitmap", "BitmapIndexDetails", 0, {1, 2}),
          MakeIndex("old btree", "BTreeIndexDetails", 1, {1, 2, 3}),
          MakeIndex("btree", "BTreeIndexDetails", 0, {1, 2}, 1),
          MakeIndex("zones", "ZoneMapIndexDetails", 0, {1, 2}),
          MakeIndex("partly", "BitmapIndexDetails", 1, {1})};
}

TEST(IndexSection, StaysAsItIs) {
  const auto section = Section(Kinds());
  IndexEditor editor(section);
  EXPECT_EQ(editor.Serialized(), section);
  const std::vector<int32_t> fields = {7};
  const Ids fragments = {1};
  ASSERT_OK(editor.Uncover(fields, fragments));
  EXPECT_EQ(editor.Serialized(), section);
}

TEST(IndexSection, ValuesChangedInPlace) {
  IndexEditor editor(Section(Kinds()));
  const std::vector<int32_t> fields = {0};
  const Ids fragments = {2, 3};
  ASSERT_OK(editor.Uncover(fields, fragments));
  const auto coverage = Coverage(&editor);
  EXPECT_EQ(coverage.at("bitmap"), (Ids{1}));
  EXPECT_EQ(coverage.at("btree"), (Ids{1}));
  EXPECT_EQ(coverage.at("old btree"), (Ids{1, 2, 3}));
  EXPECT_EQ(coverage.at("partly"), (Ids{1}));
}

TEST(IndexSection, RowsMoved) {
  IndexEditor editor(Section(Kinds()));
  const std::vector<int32_t> changed = {1};
  const Ids sources = {1, 2};
  const Ids moved = {7};
  ASSERT_OK(editor.CoverMovedRows(changed, sources, moved));
  const auto coverage = Coverage(&editor);
  EXPECT_EQ(coverage.at("bitmap"), (Ids{1, 2, 7}));
  EXPECT_EQ(coverage.at("btree"), (Ids{1, 2}));  // holds addresses
  EXPECT_EQ(coverage.at("old btree"), (Ids{1, 2, 3}));
  EXPECT_EQ(coverage.at("zones"), (Ids{1, 2}));
}

TEST(IndexSection, FragmentsRewritten) {
  const std::vector<IndexEditor::RewrittenGroup> groups = {{{1, 2}, {8}}};
  {
    IndexEditor editor(Section(Kinds()));
    ASSERT_OK(editor.Rewrite({}, groups, /*stable_row_ids=*/true));
    const auto coverage = Coverage(&editor);
    EXPECT_EQ(coverage.at("bitmap"), (Ids{8}));
    EXPECT_EQ(coverage.at("old btree"), (Ids{3, 8}));
    EXPECT_EQ(coverage.at("btree"), (Ids{1, 2}));
    EXPECT_EQ(coverage.at("zones"), (Ids{1, 2}));
    EXPECT_EQ(coverage.at("partly"), (Ids{1}));
  }
  {
    // Entries by address: none covers the new fragment.
    const auto section = Section(Kinds());
    IndexEditor editor(section);
    ASSERT_OK(editor.Rewrite({}, groups, /*stable_row_ids=*/false));
    EXPECT_EQ(editor.Serialized(), section);
  }
  {
    Transaction::Rewrite operation;
    auto* rewritten = operation.add_rewritten_indices();
    rewritten->mutable_old_id()->set_uuid("uuid of btree");
    rewritten->mutable_new_id()->set_uuid("another");
    rewritten->set_new_index_version(1);
    IndexEditor editor(Section(Kinds()));
    ASSERT_OK(editor.Rewrite(operation, groups, /*stable_row_ids=*/false));
    const auto coverage = Coverage(&editor);
    EXPECT_EQ(coverage.at("btree"), (Ids{8}));
    EXPECT_EQ(coverage.at("bitmap"), (Ids{1, 2}));
    rewritten->mutable_old_id()->set_uuid("uuid of partly");
    IndexEditor mixed(Section(Kinds()));
    EXPECT_KIND(ErrorKind::kInvalidInput, mixed.Rewrite(operation, groups, false));
  }
}

TEST(IndexSection, UnknownCoverage) {
  auto index = MakeIndex("i", "BTreeIndexDetails", 0, {});
  index.clear_fragment_bitmap();
  const std::vector<int32_t> fields = {0};
  const Ids fragments = {2};
  IndexEditor editor(Section({index}));
  ASSERT_OK(editor.Uncover(fields, fragments));
  EXPECT_EQ(editor.Serialized(), nullptr);
}

TEST(IndexSection, ColumnsAndDamage) {
  IndexEditor editor(Section(Kinds()));
  google::protobuf::RepeatedPtrField<lance::file::Field> schema;
  schema.Add()->set_id(1);
  ASSERT_OK(editor.KeepColumns(schema));
  EXPECT_EQ(Coverage(&editor).size(), 2u);
  IndexEditor broken(std::make_shared<const std::string>("\xff"));
  EXPECT_KIND(ErrorKind::kCorruption, broken.KeepColumns(schema));
  auto index = MakeIndex("i", "BTreeIndexDetails", 0, {});
  index.set_fragment_bitmap("no bitmap");
  IndexEditor damaged(Section({index}));
  const std::vector<int32_t> fields = {0};
  const Ids fragments = {2};
  EXPECT_KIND(ErrorKind::kCorruption, damaged.Uncover(fields, fragments));
}

}  // namespace
}  // namespace glaive::table
