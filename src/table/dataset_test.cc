// Tables end to end over memory and local stores.
#include "table/dataset.h"

#include <functional>
#include <set>

#include "format/table.pb.h"
#include "format/transaction.pb.h"
#include "table/names.h"
#include "table/test_util.h"

namespace glaive::table {
namespace {

Values Range(int64_t from, int64_t to) {
  Values values;
  for (int64_t i = from; i < to; ++i) values.push_back(i);
  return values;
}

std::vector<std::string> Paths(io::ObjectStore& store, std::string_view prefix) {
  std::vector<std::string> paths;
  auto objects = store.List(prefix, true);
  EXPECT_TRUE(objects.ok()) << objects.status().ToString();
  for (const auto& object : *objects) paths.push_back(object.path);
  return paths;
}

class DatasetTest : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (GetParam()) {
      directory_ = std::make_unique<io::TemporaryDirectory>();
      store_ = io::OpenLocalStore(directory_->path() + "/t.lance", true).ValueOrDie();
    } else {
      store_ = io::MakeMemoryStore()->Child("t.lance");
    }
    env_ = MakeEnv(store_);
  }

  std::unique_ptr<io::TemporaryDirectory> directory_;
  std::shared_ptr<io::ObjectStore> store_;
  TableEnv env_;
};

INSTANTIATE_TEST_SUITE_P(Stores, DatasetTest, ::testing::Bool(),
                         [](const auto& p) { return p.param ? "Local" : "Memory"; });

TEST_P(DatasetTest, CreateAppendOpen) {
  EXPECT_KIND(ErrorKind::kNotFound, Dataset::Open(env_).status());
  ASSERT_OK_AND_ASSIGN(auto created, Create(env_, Range(0, 10)));
  EXPECT_EQ(created->version(), 1);
  ASSERT_OK_AND_ASSIGN(auto appended, Append(env_, Range(10, 15)));
  EXPECT_EQ(appended->version(), 2);
  EXPECT_EQ(appended->num_fragments(), 2);
  EXPECT_EQ(appended->count_rows(), 15);

  // As another process sees it.
  const TableEnv other = MakeEnv(store_);
  ASSERT_OK_AND_ASSIGN(auto opened, Dataset::Open(other));
  EXPECT_EQ(opened->version(), 2);
  ASSERT_OK_AND_ASSIGN(auto values, ReadValues(*opened));
  EXPECT_EQ(values, Range(0, 15));
  ASSERT_OK_AND_ASSIGN(auto first, Dataset::Open(other, 1));
  ASSERT_OK_AND_ASSIGN(values, ReadValues(*first));
  EXPECT_EQ(values, Range(0, 10));
  EXPECT_KIND(ErrorKind::kNotFound, Dataset::Open(other, 3).status());
  EXPECT_KIND(ErrorKind::kNotFound, Dataset::Open(other, -1).status());
  ASSERT_OK_AND_ASSIGN(auto latest, first->Latest());
  EXPECT_EQ(latest->version(), 2);
  ASSERT_OK_AND_ASSIGN(const bool is_latest, first->IsLatest());
  EXPECT_FALSE(is_latest);

  Status again = Create(env_, Range(0, 1)).status();
  EXPECT_KIND(ErrorKind::kAlreadyExists, again);
  EXPECT_EQ(again.message().rfind("Dataset already exists: ", 0), 0u) << again.message();
  EXPECT_EQ(Paths(*store_, "data").size(), 2u);
}

TEST_P(DatasetTest, WhatStandsInTheDirectory) {
  ASSERT_OK_AND_ASSIGN(auto dataset, Create(env_, Range(0, 3)));
  ASSERT_OK_AND_ASSIGN(dataset, Append(env_, Range(3, 5)));
  EXPECT_EQ(Paths(*store_, "_versions"),
            (std::vector<std::string>{"_versions/18446744073709551613.manifest",
                                      "_versions/18446744073709551614.manifest",
                                      "_versions/latest_version_hint.json"}));
  ASSERT_OK_AND_ASSIGN(auto hint, store_->Get("_versions/latest_version_hint.json"));
  EXPECT_EQ(io::Text(hint), "{\"version\":2}");
  const auto& manifest = dataset->manifest();
  EXPECT_EQ(manifest.writer_version().library(), "glaive");
  EXPECT_EQ(manifest.data_format().version(), "2.2");
  EXPECT_EQ(manifest.max_fragment_id(), 1u);
  EXPECT_TRUE(manifest.has_transaction_section());
  ASSERT_OK_AND_ASSIGN(auto bytes,
                       store_->Get(TransactionPath(manifest.transaction_file())));
  lance::table::Transaction transaction;
  ASSERT_TRUE(transaction.ParseFromString(io::Text(bytes)));
  EXPECT_EQ(transaction.read_version(), 1u);
  ASSERT_EQ(transaction.append().fragments_size(), 1);
  EXPECT_EQ(transaction.append().fragments(0).physical_rows(), 2u);
  const auto& file = dataset->fragment(1).files(0);
  EXPECT_EQ(std::vector<int>(file.fields().begin(), file.fields().end()),
            (std::vector<int>{0, 1}));
  EXPECT_EQ(std::vector<int>(file.column_indices().begin(), file.column_indices().end()),
            (std::vector<int>{0, 1}));
  EXPECT_EQ(file.file_major_version(), 2u);
  EXPECT_EQ(file.file_minor_version(), 2u);
  ASSERT_OK_AND_ASSIGN(auto info, store_->Head(DataFilePath(file.path())));
  EXPECT_EQ(static_cast<int64_t>(file.file_size_bytes()), info.size_bytes);
}

TEST_P(DatasetTest, WritingToNoTableMakesIt) {
  ASSERT_OK_AND_ASSIGN(auto dataset, Append(env_, Range(0, 3)));
  EXPECT_EQ(dataset->version(), 1);
  ASSERT_OK_AND_ASSIGN(auto values, ReadValues(*dataset));
  EXPECT_EQ(values, Range(0, 3));
}

TEST_P(DatasetTest, EmptyTablesAndEmptyAppends) {
  ASSERT_OK_AND_ASSIGN(auto dataset, Dataset::WriteEmpty(env_, *TestSchema(), {}));
  EXPECT_EQ(dataset->count_rows(), 0);
  EXPECT_EQ(dataset->num_fragments(), 0);
  EXPECT_FALSE(dataset->manifest().has_max_fragment_id());
  ASSERT_OK_AND_ASSIGN(dataset, Append(env_, {}));
  EXPECT_EQ(dataset->version(), 2);
  ASSERT_OK_AND_ASSIGN(dataset, Append(env_, {7}));
  ASSERT_OK_AND_ASSIGN(auto values, ReadValues(*dataset));
  EXPECT_EQ(values, Values{7});
  EXPECT_EQ(dataset->fragment_id(0), 0);
}

TEST_P(DatasetTest, FilesAreCutByRows) {
  WriteOptions options;
  options.max_rows_per_file = 4;
  ASSERT_OK_AND_ASSIGN(auto dataset, WriteValues(env_, Range(0, 10), options));
  ASSERT_EQ(dataset->num_fragments(), 3);
  EXPECT_EQ(dataset->physical_rows(2), 2);
  ASSERT_OK_AND_ASSIGN(auto values, ReadValues(*dataset));
  EXPECT_EQ(values, Range(0, 10));
  options.max_rows_per_file = 0;
  options.mode = WriteMode::kAppend;
  EXPECT_KIND(ErrorKind::kInvalidInput, WriteValues(env_, {1}, options).status());
}

TEST_P(DatasetTest, OverwriteReplacesRowsAndSchema) {
  ASSERT_OK_AND_ASSIGN(auto dataset, Create(env_, Range(0, 5)));
  auto schema = arrow::schema({arrow::field("x", arrow::float64())});
  WriteOptions options;
  options.mode = WriteMode::kOverwrite;
  ASSERT_OK_AND_ASSIGN(dataset, Dataset::WriteEmpty(env_, *schema, options));
  EXPECT_EQ(dataset->version(), 2);
  EXPECT_EQ(dataset->count_rows(), 0);
  EXPECT_TRUE(dataset->arrow_schema()->Equals(*schema));
  ASSERT_OK_AND_ASSIGN(dataset, WriteValues(env_, {1}, options));
  EXPECT_EQ(dataset->fragment_id(0), 1);  // ids go on
  ASSERT_OK_AND_ASSIGN(auto values, ReadValues(*dataset));
  EXPECT_EQ(values, Values{1});
}

TEST_P(DatasetTest, AppendChecksTheSchema) {
  auto required = arrow::schema(
      {arrow::field("a", arrow::int64(), false), arrow::field("s", arrow::utf8())});
  ASSERT_OK_AND_ASSIGN(auto dataset, Dataset::WriteEmpty(env_, *required, {}));
  auto append = [&](std::shared_ptr<arrow::Schema> schema) {
    WriteOptions options;
    options.mode = WriteMode::kAppend;
    return Dataset::WriteEmpty(env_, *schema, options).status();
  };
  auto mentions = [](const Status& status, const std::string& name) {
    return status.message().find(name) != std::string::npos;
  };
  Status extra = append(arrow::schema(
      {arrow::field("a", arrow::int64()), arrow::field("zz", arrow::int64())}));
  EXPECT_KIND(ErrorKind::kSchemaMismatch, extra);
  EXPECT_TRUE(mentions(extra, "zz")) << extra.message();
  Status type = append(arrow::schema({arrow::field("a", arrow::utf8())}));
  EXPECT_KIND(ErrorKind::kSchemaMismatch, type);
  EXPECT_TRUE(mentions(type, "`a` should have type int64 but type was string"))
      << type.message();
  Status missing = append(arrow::schema({arrow::field("s", arrow::utf8())}));
  EXPECT_KIND(ErrorKind::kSchemaMismatch, missing);
  EXPECT_TRUE(mentions(missing, "missing=[a]")) << missing.message();
  Status twice = append(arrow::schema(
      {arrow::field("a", arrow::int64()), arrow::field("a", arrow::int64())}));
  EXPECT_KIND(ErrorKind::kSchemaMismatch, twice);
  EXPECT_TRUE(append(arrow::schema({arrow::field("s", arrow::large_utf8()),
                                    arrow::field("a", arrow::int64())}))
                  .ok());
  ASSERT_OK_AND_ASSIGN(dataset, Dataset::Open(env_));
  EXPECT_EQ(dataset->version(), 2);
}

TEST_P(DatasetTest, AppendOfSomeColumnsInAnyOrder) {
  ASSERT_OK_AND_ASSIGN(auto dataset, Create(env_, {1}));
  auto batch = MakeBatch({2, 3});
  auto only_s = arrow::RecordBatch::Make(arrow::schema({batch->schema()->field(1)}), 2,
                                         {batch->column(1)});
  auto swapped = arrow::RecordBatch::Make(
      arrow::schema({batch->schema()->field(1), batch->schema()->field(0)}), 2,
      {batch->column(1), batch->column(0)});
  WriteOptions options;
  options.mode = WriteMode::kAppend;
  auto reader = *arrow::RecordBatchReader::Make({swapped});
  ASSERT_OK_AND_ASSIGN(dataset, Dataset::Write(env_, *reader, options));
  ASSERT_OK_AND_ASSIGN(auto values, ReadValues(*dataset));
  EXPECT_EQ(values, (Values{1, 2, 3}));
  reader = *arrow::RecordBatchReader::Make({only_s});
  ASSERT_OK_AND_ASSIGN(dataset, Dataset::Write(env_, *reader, options));
  EXPECT_EQ(dataset->fragment(2).files(0).fields_size(), 1);
  ASSERT_OK_AND_ASSIGN(auto fragment, dataset->OpenFragment(2));
  ASSERT_OK_AND_ASSIGN(auto projection, fragment->Bind(dataset->schema()));
  ASSERT_OK_AND_ASSIGN(auto rows, fragment->ReadRange(projection, 0, 2));
  ASSERT_OK(rows->ValidateFull());
  EXPECT_EQ(rows->column(0)->null_count(), 2);
  EXPECT_TRUE(rows->column(1)->Equals(batch->column(1)));
  const std::vector<int64_t> offsets{1, 0, 1};
  ASSERT_OK_AND_ASSIGN(rows, fragment->Take(projection, offsets));
  EXPECT_EQ(static_cast<const arrow::StringArray&>(*rows->column(1)).GetView(0), "s3");
  EXPECT_EQ(rows->column(0)->null_count(), 3);
  EXPECT_KIND(ErrorKind::kInvalidInput, fragment->ReadRange(projection, 1, 2).status());
  const std::vector<int64_t> outside{2};
  EXPECT_KIND(ErrorKind::kInvalidInput, fragment->Take(projection, outside).status());
}

// A reader that fails after its first batch.
class BrokenReader : public arrow::RecordBatchReader {
 public:
  std::shared_ptr<arrow::Schema> schema() const override { return TestSchema(); }
  Status ReadNext(std::shared_ptr<arrow::RecordBatch>* batch) override {
    if (count_++ > 3) return InvalidInput("the source broke");
    *batch = MakeBatch({1, 2, 3});
    return Status::OK();
  }

 private:
  int count_ = 0;
};

TEST_P(DatasetTest, AFailedWriteLeavesNothing) {
  BrokenReader broken;
  WriteOptions options;
  options.max_rows_per_file = 2;
  EXPECT_KIND(ErrorKind::kInvalidInput, Dataset::Write(env_, broken, options).status());
  EXPECT_TRUE(Paths(*store_, "").empty());
  ASSERT_OK_AND_ASSIGN(auto dataset, Create(env_, {1}));
  options.mode = WriteMode::kAppend;
  BrokenReader broken_again;
  EXPECT_KIND(ErrorKind::kInvalidInput,
              Dataset::Write(env_, broken_again, options).status());
  EXPECT_EQ(Paths(*store_, "data").size(), 1u);
  ASSERT_OK_AND_ASSIGN(const bool latest, dataset->IsLatest());
  EXPECT_TRUE(latest);
}

TEST_P(DatasetTest, Deletes) {
  WriteOptions options;
  options.max_rows_per_file = 5;
  ASSERT_OK_AND_ASSIGN(auto dataset, WriteValues(env_, Range(0, 12), options));
  ASSERT_OK_AND_ASSIGN(dataset, DeleteValues(*dataset, {1, 6}));
  ASSERT_OK_AND_ASSIGN(auto values, ReadValues(*dataset));
  EXPECT_EQ(values, (Values{0, 2, 3, 4, 5, 7, 8, 9, 10, 11}));
  EXPECT_EQ(dataset->manifest().reader_feature_flags(), 1u);
  EXPECT_EQ(dataset->fragment(0).deletion_file().num_deleted_rows(), 1u);
  ASSERT_OK_AND_ASSIGN(dataset, DeleteValues(*dataset, {0, 2, 3, 4, 11}));
  EXPECT_EQ(dataset->num_fragments(), 2);  // the first one is empty now
  ASSERT_OK_AND_ASSIGN(auto reopened, Dataset::Open(MakeEnv(store_)));
  ASSERT_OK_AND_ASSIGN(values, ReadValues(*reopened));
  EXPECT_EQ(values, (Values{5, 7, 8, 9, 10}));
  // Nothing to delete is a version all the same.
  ASSERT_OK_AND_ASSIGN(dataset, dataset->CommitDelete({}, "false"));
  EXPECT_EQ(dataset->version(), 4);
  EXPECT_KIND(ErrorKind::kInvalidInput, dataset->CommitDelete({{0, {1}}}, "x").status());
  EXPECT_KIND(ErrorKind::kInvalidInput, dataset->CommitDelete({{1, {5}}}, "x").status());
  EXPECT_KIND(ErrorKind::kInvalidInput,
              dataset->CommitDelete({{1, {3, 2}}}, "x").status());
  ASSERT_OK_AND_ASSIGN(dataset, DeleteValues(*dataset, {5, 7, 8, 9, 10}));
  EXPECT_EQ(dataset->num_fragments(), 0);
  EXPECT_EQ(dataset->manifest().reader_feature_flags(), 0u);
  ASSERT_OK_AND_ASSIGN(dataset, Append(env_, {1}));
  EXPECT_EQ(dataset->fragment_id(0), 3);
}

TEST_P(DatasetTest, LargeDeletesBecomeBitmaps) {
  ASSERT_OK_AND_ASSIGN(auto dataset, Create(env_, Range(0, 12000)));
  Values half, some;
  DeletedRows rows;
  for (uint32_t i = 0; i < 12000; i += 2) rows[0].push_back(i);
  ASSERT_OK_AND_ASSIGN(dataset, dataset->CommitDelete(rows, "even"));
  EXPECT_EQ(dataset->fragment(0).deletion_file().file_type(),
            lance::table::DeletionFile::BITMAP);
  EXPECT_EQ(dataset->count_rows(), 6000);
  ASSERT_OK_AND_ASSIGN(auto values, ReadValues(*dataset));
  EXPECT_EQ(values.front(), 1);
  EXPECT_EQ(values.size(), 6000u);
}

TEST_P(DatasetTest, StableRowIds) {
  WriteOptions options;
  options.stable_row_ids = true;
  options.max_rows_per_file = 3;
  ASSERT_OK_AND_ASSIGN(auto dataset, WriteValues(env_, Range(0, 5), options));
  EXPECT_TRUE(dataset->has_stable_row_ids());
  EXPECT_EQ(dataset->manifest().next_row_id(), 5u);
  ASSERT_OK_AND_ASSIGN(dataset, DeleteValues(*dataset, {1, 3, 4}));
  ASSERT_OK_AND_ASSIGN(dataset, Append(env_, Range(10, 12)));
  ASSERT_OK_AND_ASSIGN(auto rows, ReadRows(*dataset));
  const std::vector<Row> expected{
      {0, 0, 0}, {2, 2, 2}, {5, uint64_t{2} << 32, 10}, {6, (uint64_t{2} << 32) | 1, 11}};
  EXPECT_EQ(rows, expected);
  ASSERT_OK_AND_ASSIGN(auto index, dataset->row_id_index());
  for (const Row& row : expected) EXPECT_EQ(index->Find(row.row_id)->value, row.address);
  for (uint64_t gone : {1u, 3u, 4u, 7u}) EXPECT_FALSE(index->Find(gone)) << gone;
  ASSERT_OK_AND_ASSIGN(auto fragment, dataset->OpenFragment(1));
  for (RowVersion which : {RowVersion::kCreatedAt, RowVersion::kLastUpdatedAt}) {
    ASSERT_OK_AND_ASSIGN(auto row_versions, fragment->RowVersions(which));
    EXPECT_EQ(row_versions, (std::vector<uint64_t>{3, 3}));
  }
  // An overwrite goes on counting.
  options.mode = WriteMode::kOverwrite;
  ASSERT_OK_AND_ASSIGN(dataset, WriteValues(env_, {1}, options));
  EXPECT_EQ(dataset->manifest().next_row_id(), 8u);
  EXPECT_EQ(dataset->manifest().reader_feature_flags(), 2u);
}

TEST_P(DatasetTest, VersionsTagsAndTime) {
  ASSERT_OK_AND_ASSIGN(auto dataset, Create(env_, Range(0, 3)));
  ASSERT_OK_AND_ASSIGN(dataset, Append(env_, {3}));
  ASSERT_OK_AND_ASSIGN(dataset, DeleteValues(*dataset, {0}));
  ASSERT_OK_AND_ASSIGN(auto versions, dataset->ListVersions());
  ASSERT_EQ(versions.size(), 3u);
  EXPECT_EQ(versions[2].version, 3);
  EXPECT_EQ(versions[2].metadata.at("total_rows"), "3");
  EXPECT_EQ(versions[2].metadata.at("total_data_file_rows"), "4");
  EXPECT_EQ(versions[2].metadata.at("total_deletion_files"), "1");
  EXPECT_EQ(versions[1].metadata.at("total_fragments"), "2");
  EXPECT_LE(versions[0].timestamp_us, versions[1].timestamp_us);
  ASSERT_OK_AND_ASSIGN(auto then, dataset->CheckoutAsOf(versions[2].timestamp_us));
  EXPECT_EQ(then->version(), 3);
  EXPECT_KIND(ErrorKind::kNotFound,
              dataset->CheckoutAsOf(versions[0].timestamp_us - 1).status());

  ASSERT_OK(dataset->CreateTag("first", 1));
  EXPECT_KIND(ErrorKind::kAlreadyExists, dataset->CreateTag("first", 2));
  EXPECT_KIND(ErrorKind::kNotFound, dataset->CreateTag("other", 99));
  for (const char* name : {"", "a/b", "..", ".a", "a.", "a..b", "x.lock", "ä"}) {
    EXPECT_KIND(ErrorKind::kInvalidInput, dataset->CreateTag(name, 1));
  }
  ASSERT_OK_AND_ASSIGN(auto tagged, dataset->CheckoutTag("first"));
  EXPECT_EQ(tagged->version(), 1);
  ASSERT_OK(dataset->UpdateTag("first", 2));
  EXPECT_KIND(ErrorKind::kNotFound, dataset->UpdateTag("second", 2));
  ASSERT_OK_AND_ASSIGN(auto tags, dataset->ListTags());
  ASSERT_EQ(tags.size(), 1u);
  EXPECT_EQ(tags["first"].version, 2);
  EXPECT_GT(tags["first"].manifest_size, 0);
  ASSERT_OK(dataset->DeleteTag("first"));
  EXPECT_KIND(ErrorKind::kNotFound, dataset->DeleteTag("first"));
  EXPECT_KIND(ErrorKind::kNotFound, dataset->CheckoutTag("first").status());
}

TEST_P(DatasetTest, Restore) {
  ASSERT_OK_AND_ASSIGN(auto first, Create(env_, Range(0, 3)));
  ASSERT_OK_AND_ASSIGN(auto dataset, Append(env_, {3}));
  ASSERT_OK_AND_ASSIGN(dataset, DeleteValues(*dataset, {0}));
  ASSERT_OK_AND_ASSIGN(auto restored, first->Restore());
  EXPECT_EQ(restored->version(), 4);
  ASSERT_OK_AND_ASSIGN(auto values, ReadValues(*restored));
  EXPECT_EQ(values, Range(0, 3));
  EXPECT_EQ(restored->manifest().max_fragment_id(), 1u);
  EXPECT_EQ(restored->manifest().reader_feature_flags(), 0u);
  ASSERT_OK_AND_ASSIGN(dataset, Append(env_, {9}));
  EXPECT_EQ(dataset->fragment_id(1), 2);  // id 1 stays used
  ASSERT_OK_AND_ASSIGN(values, ReadValues(*dataset));
  EXPECT_EQ(values, (Values{0, 1, 2, 9}));
}

TEST_P(DatasetTest, OldManifestNames) {
  WriteOptions options;
  options.v2_manifest_paths = false;
  ASSERT_OK_AND_ASSIGN(auto dataset, WriteValues(env_, Range(0, 3), options));
  for (int i = 3; i < 12; ++i) ASSERT_OK(Append(env_, {i}).status());
  ASSERT_OK_AND_ASSIGN(const bool named, store_->Exists("_versions/10.manifest"));
  EXPECT_TRUE(named);
  ASSERT_OK(store_->Delete("_versions/latest_version_hint.json"));
  ASSERT_OK_AND_ASSIGN(dataset, Dataset::Open(MakeEnv(store_)));
  EXPECT_EQ(dataset->version(), 10);
  ASSERT_OK_AND_ASSIGN(auto values, ReadValues(*dataset));
  EXPECT_EQ(values, Range(0, 12));
  // A manifest of the other kind.
  ASSERT_OK_AND_ASSIGN(auto bytes, store_->Get("_versions/10.manifest"));
  ASSERT_OK(store_->PutIfAbsent(ManifestPath(11, NamingScheme::kV2),
                                {bytes->data(), static_cast<size_t>(bytes->size())}));
  EXPECT_KIND(ErrorKind::kCorruption, Dataset::Open(MakeEnv(store_)).status());
}

TEST_P(DatasetTest, HintsMayBeWrong) {
  for (int i = 0; i < 4; ++i) ASSERT_OK(Append(env_, {i}).status());
  for (const char* hint : {"{\"version\":2}", "{\"version\":400}", "{\"version\":0}", "",
                           "{}", "{\"version\":-1}", "nonsense", " { \"version\" : 3 }\n",
                           "{\"version\":99999999999999999999}"}) {
    ASSERT_OK(store_->Put("_versions/latest_version_hint.json", io::Bytes(hint)));
    ASSERT_OK_AND_ASSIGN(auto dataset, Dataset::Open(MakeEnv(store_)));
    EXPECT_EQ(dataset->version(), 4) << hint;
  }
}

TEST_P(DatasetTest, DroppedAndMadeAnew) {
  ASSERT_OK_AND_ASSIGN(auto old, Create(env_, Range(0, 3)));
  ASSERT_OK_AND_ASSIGN(auto newer, Append(env_, {3}));
  ASSERT_OK(store_->DeleteTree(""));
  EXPECT_KIND(ErrorKind::kNotFound, newer->Latest().status());
  EXPECT_KIND(ErrorKind::kNotFound, Dataset::Open(env_).status());
  EXPECT_KIND(ErrorKind::kNotFound, DeleteValues(*old, {}).status());
  ASSERT_OK_AND_ASSIGN(auto made, Create(env_, Range(100, 103)));
  ASSERT_OK_AND_ASSIGN(auto latest, newer->Latest());
  EXPECT_EQ(latest->version(), 1);
  ASSERT_OK_AND_ASSIGN(auto values, ReadValues(*latest));
  EXPECT_EQ(values, Range(100, 103));
  // A delete that was worked out on the old table must not hit the new one.
  EXPECT_KIND(ErrorKind::kConflict, old->CommitDelete({{0, {1}}}, "x").status());
  EXPECT_KIND(ErrorKind::kConflict, newer->CommitDelete({{0, {1}}}, "x").status());
  ASSERT_OK_AND_ASSIGN(made, Append(env_, {103}));
  Status behind = old->CommitDelete({{0, {1}}}, "x").status();
  EXPECT_KIND(ErrorKind::kConflict, behind);
}

TEST_P(DatasetTest, CleanedUpUnderneath) {
  ASSERT_OK_AND_ASSIGN(auto old, Create(env_, Range(0, 3)));
  const TableEnv other = MakeEnv(store_);
  for (int i = 3; i < 8; ++i) ASSERT_OK(Append(other, {i}).status());
  for (uint64_t v = 1; v < 6; ++v) {
    ASSERT_OK(store_->Delete(ManifestPath(v, NamingScheme::kV2)));
  }
  EXPECT_KIND(ErrorKind::kRetryableConflict, old->CommitDelete({{0, {1}}}, "x").status());
  ASSERT_OK_AND_ASSIGN(auto latest, old->Latest());
  EXPECT_EQ(latest->version(), 6);
  ASSERT_OK_AND_ASSIGN(latest, Append(env_, {8}));
  ASSERT_OK_AND_ASSIGN(auto values, ReadValues(*latest));
  EXPECT_EQ(values, Range(0, 9));
}

TEST_P(DatasetTest, ConfigAndMetadata) {
  ASSERT_OK_AND_ASSIGN(auto dataset, Create(env_, {1}));
  lance::table::Transaction transaction;
  auto* update = transaction.mutable_update_config();
  auto* entry = update->mutable_config_updates()->add_update_entries();
  entry->set_key("k");
  entry->set_value("v");
  auto* field = (*update->mutable_field_metadata_updates())[1].add_update_entries();
  field->set_key("unit");
  field->set_value("m");
  ASSERT_OK_AND_ASSIGN(dataset, dataset->Commit(transaction));
  EXPECT_EQ(dataset->manifest().config().at("k"), "v");
  EXPECT_EQ(dataset->manifest().writer_feature_flags(), 8u);
  EXPECT_EQ(dataset->manifest().reader_feature_flags(), 0u);
  EXPECT_EQ(dataset->schema().FindById(1)->metadata.at("unit"), "m");
  ASSERT_OK_AND_ASSIGN(auto values, ReadValues(*dataset));
  EXPECT_EQ(values, Values{1});
  lance::table::Transaction clone;
  clone.mutable_clone();
  EXPECT_KIND(ErrorKind::kNotSupported, dataset->Commit(clone).status());
}

}  // namespace
}  // namespace glaive::table
