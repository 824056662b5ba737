// What each kind of transaction makes of a table: columns, rewrites, replaced files,
// settings; and the hazards of two handles.
#include <algorithm>
#include <map>
#include <set>

#include "format/file.pb.h"
#include "format/table.pb.h"
#include "format/transaction.pb.h"
#include "io/faulting_store.h"
#include "table/field_ids.h"
#include "table/fragment_writer.h"
#include "table/row_ids.h"
#include "table/test_util.h"

namespace glaive::table {
namespace {

using lance::table::DataFragment;
using lance::table::Transaction;

file::Field NewField(const char* name, int32_t id,
                     const std::shared_ptr<arrow::DataType>& type = arrow::int64()) {
  const file::Schema schema =
      *file::Schema::FromArrow(*arrow::schema({arrow::field(name, type)}), id);
  return schema.fields()[0];
}

// A file with `rows` values of one column; its entry in the manifest.
Result<lance::table::DataFile> WriteColumn(const TableEnv& env, const file::Field& field,
                                           int64_t rows, int64_t value) {
  arrow::Int64Builder builder;
  for (int64_t i = 0; i < rows; ++i) GLAIVE_RETURN_NOT_OK(builder.Append(value + i));
  GLAIVE_ASSIGN_OR_RETURN(auto array, builder.Finish());
  FragmentWriter writer(env, file::Schema({field}), {});
  GLAIVE_RETURN_NOT_OK(writer.Write(*arrow::RecordBatch::Make(
      arrow::schema({arrow::field(field.name, arrow::int64())}), rows, {array})));
  GLAIVE_ASSIGN_OR_RETURN(auto fragments, writer.Finish());
  writer.Keep();
  return fragments.at(0).files(0);
}

// Adds an int64 column with a value of its own in every row.
Result<Transaction> AddColumn(const Dataset& dataset, const char* name, int32_t id,
                              int64_t value) {
  auto fields = dataset.schema().fields();
  fields.push_back(NewField(name, id));
  Transaction transaction;
  auto* merge = transaction.mutable_merge();
  file::Schema(fields).ToProto(merge->mutable_schema());
  merge->set_preserves_nullability(true);
  for (int i = 0; i < dataset.num_fragments(); ++i) {
    auto* fragment = merge->add_fragments();
    *fragment = dataset.fragment(i);
    GLAIVE_ASSIGN_OR_RETURN(
        *fragment->add_files(),
        WriteColumn(dataset.env(), fields.back(), dataset.physical_rows(i), value));
  }
  return transaction;
}

Transaction DropLast(const Dataset& dataset) {
  auto fields = dataset.schema().fields();
  fields.pop_back();
  Transaction transaction;
  file::Schema(fields).ToProto(transaction.mutable_project()->mutable_schema());
  transaction.mutable_project()->set_preserves_nullability(true);
  return transaction;
}

Result<Dataset::Ptr> AddAndCommit(const Dataset& dataset, const char* name,
                                  int64_t value) {
  GLAIVE_ASSIGN_OR_RETURN(const int32_t max_id, dataset.max_field_id());
  GLAIVE_ASSIGN_OR_RETURN(auto transaction, AddColumn(dataset, name, max_id + 1, value));
  return dataset.Commit(std::move(transaction));
}

// Values of an int64 column in scan order; nulls are -1.
Result<Values> ReadColumn(const Dataset& dataset, const char* name) {
  Values values;
  for (int f = 0; f < dataset.num_fragments(); ++f) {
    GLAIVE_ASSIGN_OR_RETURN(auto reader, dataset.OpenFragment(f));
    GLAIVE_ASSIGN_OR_RETURN(auto projection, reader->Bind(dataset.schema()));
    GLAIVE_ASSIGN_OR_RETURN(auto batch,
                            reader->ReadRange(projection, 0, reader->physical_rows()));
    auto column = batch->GetColumnByName(name);
    if (column == nullptr) return NotFound(name);
    const auto& array = static_cast<const arrow::Int64Array&>(*column);
    for (int64_t i = 0; i < array.length(); ++i) {
      values.push_back(array.IsNull(i) ? -1 : array.Value(i));
    }
  }
  return values;
}

uint64_t LastUpdated(const Dataset& dataset, int fragment) {
  auto runs =
      DecodeRowVersions(dataset.fragment(fragment).inline_last_updated_at_versions(),
                        dataset.physical_rows(fragment));
  if (!runs.ok() || runs->size() != 1) return 0;
  return (*runs)[0].version;
}

WriteOptions StableIds() {
  WriteOptions options;
  options.stable_row_ids = true;
  return options;
}

TEST(Operations, MergeAndProject) {
  const TableEnv env = MakeEnv(io::MakeMemoryStore());
  ASSERT_OK_AND_ASSIGN(auto dataset, WriteValues(env, {1, 2}, StableIds()));
  ASSERT_OK_AND_ASSIGN(dataset, Append(env, {3}));
  ASSERT_OK_AND_ASSIGN(dataset, AddAndCommit(*dataset, "x", 70));
  EXPECT_EQ(dataset->schema().fields().back().id, 2);
  ASSERT_OK_AND_ASSIGN(auto values, ReadColumn(*dataset, "x"));
  EXPECT_EQ(values, (Values{70, 71, 70}));
  // New values: the rows were updated. Their ids stay.
  EXPECT_EQ(LastUpdated(*dataset, 0), 3u);
  EXPECT_EQ(LastUpdated(*dataset, 1), 3u);
  ASSERT_OK_AND_ASSIGN(auto rows, ReadRows(*dataset));
  EXPECT_EQ(rows[2].row_id, 2u);
  ASSERT_OK_AND_ASSIGN(auto dropped, dataset->Commit(DropLast(*dataset)));
  EXPECT_EQ(dropped->schema().fields().size(), 2u);
  // The files of the column alone are gone, no row was touched.
  EXPECT_EQ(dropped->fragment(0).files_size(), 1);
  EXPECT_EQ(LastUpdated(*dropped, 0), 3u);
}

TEST(Operations, MergesThatLoseRowsAreRefused) {
  const TableEnv env = MakeEnv(io::MakeMemoryStore());
  ASSERT_OK_AND_ASSIGN(auto dataset, Create(env, {1, 2}));
  ASSERT_OK_AND_ASSIGN(dataset, Append(env, {3}));
  ASSERT_OK_AND_ASSIGN(const auto good, AddColumn(*dataset, "x", 2, 70));
  auto bad = good;
  bad.mutable_merge()->mutable_fragments()->RemoveLast();
  EXPECT_KIND(ErrorKind::kInvalidInput, dataset->Commit(bad).status());
  bad = good;
  bad.mutable_merge()->mutable_fragments(0)->set_physical_rows(1);
  EXPECT_KIND(ErrorKind::kInvalidInput, dataset->Commit(bad).status());
  bad = good;
  bad.mutable_merge()->mutable_fragments(1)->set_id(7);
  EXPECT_KIND(ErrorKind::kInvalidInput, dataset->Commit(bad).status());
  bad = good;
  bad.mutable_merge()->mutable_schema(2)->set_id(1);
  EXPECT_KIND(ErrorKind::kInvalidInput, dataset->Commit(bad).status());
  bad = good;
  bad.mutable_merge()->mutable_schema(0)->set_logical_type("int32");
  EXPECT_KIND(ErrorKind::kInvalidInput, dataset->Commit(bad).status());
  // A projection adds nothing.
  Transaction project;
  *project.mutable_project()->mutable_schema() = good.merge().schema();
  EXPECT_KIND(ErrorKind::kInvalidInput, dataset->Commit(project).status());
  EXPECT_EQ((*dataset->Latest())->version(), 2);
  ASSERT_OK(dataset->Commit(good).status());
}

TEST(Operations, FieldIdsAreGivenOnce) {
  const TableEnv env = MakeEnv(io::MakeMemoryStore());
  ASSERT_OK_AND_ASSIGN(auto dataset, Create(env, {1, 2}));
  ASSERT_OK_AND_ASSIGN(auto with_x, AddAndCommit(*dataset, "x", 70));
  EXPECT_EQ(with_x->manifest().config_size(), 0);
  // Nothing is left of x, whose file held only that column.
  ASSERT_OK_AND_ASSIGN(dataset, with_x->Commit(DropLast(*with_x)));
  EXPECT_EQ(dataset->manifest().config().at(kMaxFieldIdKey), "2");
  EXPECT_EQ(*dataset->max_field_id(), 2);
  ASSERT_OK_AND_ASSIGN(auto reused, AddColumn(*dataset, "y", 2, 90));
  EXPECT_KIND(ErrorKind::kInvalidInput, dataset->Commit(reused).status());
  ASSERT_OK_AND_ASSIGN(dataset, AddAndCommit(*dataset, "y", 90));
  EXPECT_EQ(dataset->schema().fields().back().id, 3);
  // A version before any of these is restored: its columns, no id of theirs.
  ASSERT_OK_AND_ASSIGN(auto first, dataset->Checkout(1));
  ASSERT_OK_AND_ASSIGN(dataset, first->Restore());
  EXPECT_EQ(*dataset->max_field_id(), 3);
  // Nor does a user who replaces the whole config change that.
  Transaction config;
  auto* updates = config.mutable_update_config()->mutable_config_updates();
  updates->set_replace(true);
  updates->add_update_entries()->set_key("k");
  updates->mutable_update_entries(0)->set_value("v");
  ASSERT_OK_AND_ASSIGN(dataset, dataset->Commit(config));
  EXPECT_EQ(*dataset->max_field_id(), 3);
  EXPECT_EQ(dataset->manifest().config().at("k"), "v");
  ASSERT_OK_AND_ASSIGN(dataset, AddAndCommit(*dataset, "z", 1));
  EXPECT_EQ(dataset->schema().fields().back().id, 4);
  // A column of the first file is dropped, then the last fragment that has it goes.
  ASSERT_OK_AND_ASSIGN(dataset, WriteValues(MakeEnv(io::MakeMemoryStore()), {5}, {}));
  ASSERT_OK_AND_ASSIGN(dataset, dataset->Commit(DropLast(*dataset)));
  EXPECT_EQ(dataset->manifest().config_size(), 0);
  ASSERT_OK_AND_ASSIGN(dataset, dataset->CommitDelete({{0, {0}}}, "true"));
  EXPECT_EQ(*dataset->max_field_id(), 1);
  EXPECT_EQ(dataset->num_fragments(), 0);
}

// Two handles on the same version, one adds and drops columns: values of one column never
// show up under another, and none is lost.
TEST(Operations, HazardsOfColumns) {
  for (const char* change : {"cast", "drop and add", "add", "rename"}) {
    SCOPED_TRACE(change);
    const TableEnv env = MakeEnv(io::MakeMemoryStore());
    ASSERT_OK_AND_ASSIGN(auto dataset, Create(env, {1, 2}));
    ASSERT_OK_AND_ASSIGN(dataset, AddAndCommit(*dataset, "x", 70));
    const TableEnv other_env = MakeEnv(env.store);
    ASSERT_OK_AND_ASSIGN(auto other, Dataset::Open(other_env));
    const std::string what = change;
    auto apply = [&](const Dataset& on) -> Result<Dataset::Ptr> {
      if (what == "add") return AddAndCommit(on, "y", 5);
      if (what == "rename") {
        auto fields = on.schema().fields();
        fields.back().name = "renamed";
        Transaction project;
        file::Schema(fields).ToProto(project.mutable_project()->mutable_schema());
        project.mutable_project()->set_preserves_nullability(true);
        return on.Commit(project);
      }
      if (what == "drop and add") {
        GLAIVE_ASSIGN_OR_RETURN(auto next, on.Commit(DropLast(on)));
        return AddAndCommit(*next, "y", 5);
      }
      // A cast is a drop and an add in one version.
      GLAIVE_ASSIGN_OR_RETURN(const int32_t max_id, on.max_field_id());
      auto fields = on.schema().fields();
      fields.pop_back();
      GLAIVE_ASSIGN_OR_RETURN(auto cast, AddColumn(on, "x", max_id + 1, 500));
      fields.push_back(NewField("x", max_id + 1));
      cast.mutable_merge()->clear_schema();
      file::Schema(fields).ToProto(cast.mutable_merge()->mutable_schema());
      return on.Commit(cast);
    };
    // An append (as a transaction, so that it stays one of the old version) that brings
    // x.
    FragmentWriter writer(env, dataset->schema(), {});
    auto batch = MakeBatch({9});
    arrow::Int64Builder x;
    ASSERT_OK(x.Append(79));
    ASSERT_OK_AND_ASSIGN(
        batch, batch->AddColumn(2, arrow::field("x", arrow::int64()), *x.Finish()));
    ASSERT_OK(writer.Write(*batch));
    ASSERT_OK_AND_ASSIGN(auto fragments, writer.Finish());
    writer.Keep();
    Transaction append;
    *append.mutable_append()->add_fragments() = fragments[0];
    Transaction index;
    index.mutable_create_index()->add_new_indices()->set_name("i");
    index.mutable_create_index()->mutable_new_indices(0)->add_fields(2);
    index.mutable_create_index()->mutable_new_indices(0)->mutable_uuid()->set_uuid(
        "0123456789abcdef");

    // The append first, then the change of columns.
    ASSERT_OK(Append(MakeEnv(env.store), {3}).status());
    auto late = apply(*other);
    if (what == "rename" || what == "drop and add") {
      ASSERT_OK(late.status());
    } else {
      EXPECT_KIND(ErrorKind::kRetryableConflict, late.status());
      ASSERT_OK_AND_ASSIGN(other, other->Latest());
      ASSERT_OK(apply(*other).status());
    }
    // The change first, then the append and the index of the old version.
    auto appended = dataset->Commit(append);
    const bool compatible = what == "add" || what == "rename";
    if (compatible) {
      ASSERT_OK(appended.status());
      ASSERT_OK_AND_ASSIGN(auto values,
                           ReadColumn(**appended, what == "rename" ? "renamed" : "x"));
      EXPECT_EQ(values.back(), 79);
      ASSERT_OK(dataset->Commit(index).status());
    } else {
      EXPECT_KIND(ErrorKind::kRetryableConflict, appended.status());
      EXPECT_KIND(ErrorKind::kRetryableConflict, dataset->Commit(index).status());
    }
    ASSERT_OK_AND_ASSIGN(auto latest, dataset->Latest());
    if (what == "drop and add") {
      ASSERT_OK_AND_ASSIGN(auto values, ReadColumn(*latest, "y"));
      EXPECT_EQ(values, (Values{5, 6, 5}));
      EXPECT_EQ(latest->schema().fields().back().id, 3);
    }
  }
}

// Writes the live rows of fragments [first, last] as one new fragment.
Result<Transaction> Compact(const Dataset& dataset, int first, int last) {
  Transaction transaction;
  auto* group = transaction.mutable_rewrite()->add_groups();
  GLAIVE_ASSIGN_OR_RETURN(auto rows, ReadRows(dataset));
  Values values;
  std::vector<uint64_t> ids;
  for (int i = first; i <= last; ++i) {
    *group->add_old_fragments() = dataset.fragment(i);
    for (const Row& row : rows) {
      if (RowAddress{row.address}.fragment_id() != dataset.fragment_id(i)) continue;
      values.push_back(row.value);
      ids.push_back(row.row_id);
    }
  }
  FragmentWriter writer(dataset.env(), dataset.schema(), {});
  GLAIVE_RETURN_NOT_OK(writer.Write(*MakeBatch(values)));
  GLAIVE_ASSIGN_OR_RETURN(auto fragments, writer.Finish());
  writer.Keep();
  *group->add_new_fragments() = fragments.at(0);
  if (dataset.has_stable_row_ids()) {
    group->mutable_new_fragments(0)->set_inline_row_ids(EncodeRowIds(ids));
  }
  return transaction;
}

TEST(Operations, Rewrite) {
  for (bool stable : {false, true}) {
    SCOPED_TRACE(stable);
    const TableEnv env = MakeEnv(io::MakeMemoryStore());
    WriteOptions options;
    options.stable_row_ids = stable;
    ASSERT_OK_AND_ASSIGN(auto dataset, WriteValues(env, {1, 2}, options));
    ASSERT_OK_AND_ASSIGN(dataset, Append(env, {3, 4}));
    ASSERT_OK_AND_ASSIGN(dataset, Append(env, {5}));
    ASSERT_OK_AND_ASSIGN(dataset, DeleteValues(*dataset, {2, 3}));
    ASSERT_OK_AND_ASSIGN(auto before, ReadRows(*dataset));
    ASSERT_OK_AND_ASSIGN(auto compaction, Compact(*dataset, 0, 1));
    // Reserved, as somebody does who must know the id beforehand.
    Transaction reserve;
    reserve.mutable_reserve_fragments()->set_num_fragments(1);
    ASSERT_OK_AND_ASSIGN(auto reserved, dataset->Commit(reserve));
    EXPECT_EQ(reserved->manifest().max_fragment_id(), 3u);
    compaction.mutable_rewrite()->mutable_groups(0)->mutable_new_fragments(0)->set_id(3);
    // Others append and delete elsewhere meanwhile.
    ASSERT_OK_AND_ASSIGN(auto appended, Append(env, {6, 7}));
    ASSERT_OK(DeleteValues(*appended, {7}).status());
    ASSERT_OK_AND_ASSIGN(auto after, dataset->Commit(compaction));
    ASSERT_OK_AND_ASSIGN(auto values, ReadValues(*after));
    EXPECT_EQ(values, (Values{5, 1, 4, 6}));
    EXPECT_EQ(after->fragment_id(0), 2);
    EXPECT_EQ(after->fragment_id(1), 3);
    EXPECT_EQ(after->fragment_id(2), 4);
    if (stable) {
      ASSERT_OK_AND_ASSIGN(auto rows, ReadRows(*after));
      for (const Row& row : rows) {
        for (const Row& old : before) {
          if (old.value != row.value) continue;
          EXPECT_EQ(row.row_id, old.row_id);
        }
      }
    }
    // Fragments of ours were changed or are gone: the compaction must run again.
    EXPECT_KIND(ErrorKind::kRetryableConflict, dataset->Commit(compaction).status());
    EXPECT_KIND(ErrorKind::kRetryableConflict, DeleteValues(*dataset, {1}).status());
    ASSERT_OK(DeleteValues(*dataset, {5}).status());
  }
}

TEST(Operations, FaultsWhileRewriting) {
  for (bool crash : {false, true}) {
    for (int64_t at = 0;; ++at) {
      SCOPED_TRACE(at);
      auto store = io::MakeMemoryStore();
      ASSERT_OK(Create(MakeEnv(store), {1, 2}).status());
      ASSERT_OK(Append(MakeEnv(store), {3}).status());
      auto injector = std::make_shared<io::FaultInjector>();
      ASSERT_OK_AND_ASSIGN(
          auto dataset, Dataset::Open(MakeEnv(io::MakeFaultingStore(store, injector))));
      ASSERT_OK_AND_ASSIGN(auto compaction, Compact(*dataset, 0, 1));
      ASSERT_OK(Append(MakeEnv(store), {4}).status());
      io::FaultPlan plan;
      plan.fail_at = at;
      plan.crash = crash;
      injector->Arm(plan);
      const Status status = dataset->Commit(compaction).status();
      ASSERT_OK_AND_ASSIGN(auto after, Dataset::Open(MakeEnv(store)));
      ASSERT_OK_AND_ASSIGN(Values seen, ReadValues(*after));
      std::sort(seen.begin(), seen.end());
      ASSERT_EQ(seen, (Values{1, 2, 3, 4}));
      ASSERT_TRUE(after->num_fragments() == 2 || after->num_fragments() == 3);
      if (status.ok()) {
        ASSERT_EQ(after->num_fragments(), 2);
      }
      if (!injector->fired()) {
        ASSERT_OK(status);
        break;
      }
      ASSERT_LT(at, 200);
    }
  }
}

TEST(Operations, RewritesThatLoseRowsAreRefused) {
  const TableEnv env = MakeEnv(io::MakeMemoryStore());
  ASSERT_OK_AND_ASSIGN(auto dataset, Create(env, {1, 2}));
  ASSERT_OK_AND_ASSIGN(dataset, Append(env, {3}));
  ASSERT_OK_AND_ASSIGN(dataset, Append(env, {4}));
  ASSERT_OK_AND_ASSIGN(const auto good, Compact(*dataset, 0, 1));
  auto change = [&](const std::function<void(Transaction::RewriteGroup*)>& edit) {
    auto bad = good;
    edit(bad.mutable_rewrite()->mutable_groups(0));
    return dataset->Commit(bad).status();
  };
  EXPECT_KIND(ErrorKind::kInvalidInput,
              change([](auto* g) { g->mutable_old_fragments()->RemoveLast(); }));
  EXPECT_KIND(ErrorKind::kInvalidInput,
              change([](auto* g) { g->mutable_old_fragments(1)->set_id(2); }));
  EXPECT_KIND(ErrorKind::kInvalidInput,
              change([](auto* g) { g->mutable_old_fragments(0)->set_id(9); }));
  EXPECT_KIND(ErrorKind::kInvalidInput,
              change([](auto* g) { g->mutable_new_fragments(0)->set_id(2); }));
  EXPECT_KIND(ErrorKind::kInvalidInput, change([](auto* g) {
                g->mutable_new_fragments(0)->set_inline_row_ids(EncodeRowIdRange(0, 3));
              }));
  auto twice = good;
  *twice.mutable_rewrite()->add_groups() = good.rewrite().groups(0);
  EXPECT_KIND(ErrorKind::kInvalidInput, dataset->Commit(twice).status());
  ASSERT_OK(dataset->Commit(good).status());
}

TEST(Operations, DataReplacement) {
  const TableEnv env = MakeEnv(io::MakeMemoryStore());
  ASSERT_OK_AND_ASSIGN(auto dataset, WriteValues(env, {1, 2}, StableIds()));
  ASSERT_OK_AND_ASSIGN(dataset, Append(env, {3}));
  ASSERT_OK_AND_ASSIGN(dataset, AddAndCommit(*dataset, "x", 70));
  Transaction replace;
  auto* group = replace.mutable_data_replacement()->add_replacements();
  group->set_fragment_id(0);
  ASSERT_OK_AND_ASSIGN(*group->mutable_new_file(),
                       WriteColumn(env, dataset->schema().fields()[2], 2, 30));
  ASSERT_OK_AND_ASSIGN(auto after, dataset->Commit(replace));
  ASSERT_OK_AND_ASSIGN(auto values, ReadColumn(*after, "x"));
  EXPECT_EQ(values, (Values{30, 31, 70}));
  EXPECT_EQ(LastUpdated(*after, 0), 4u);
  EXPECT_EQ(LastUpdated(*after, 1), 3u);
  EXPECT_KIND(ErrorKind::kRetryableConflict, dataset->Commit(replace).status());
  auto partly = replace;
  partly.mutable_data_replacement()
      ->mutable_replacements(0)
      ->mutable_new_file()
      ->add_fields(1);
  EXPECT_KIND(ErrorKind::kInvalidInput, after->Commit(partly).status());
  auto elsewhere = replace;
  elsewhere.mutable_data_replacement()->mutable_replacements(0)->set_fragment_id(9);
  EXPECT_KIND(ErrorKind::kInvalidInput, after->Commit(elsewhere).status());
}

TEST(Operations, ColumnsRewrittenInPlace) {
  const TableEnv env = MakeEnv(io::MakeMemoryStore());
  ASSERT_OK_AND_ASSIGN(auto dataset, WriteValues(env, {1, 2, 3}, StableIds()));
  ASSERT_OK_AND_ASSIGN(dataset, AddAndCommit(*dataset, "x", 70));
  Transaction update;
  auto* operation = update.mutable_update();
  operation->set_update_mode(Transaction::Update::REWRITE_COLUMNS);
  operation->add_fields_modified(2);
  auto* fragment = operation->add_updated_fragments();
  *fragment = dataset->fragment(0);
  fragment->mutable_files(1)->set_fields(0, -2);
  ASSERT_OK_AND_ASSIGN(*fragment->add_files(),
                       WriteColumn(env, dataset->schema().fields()[2], 3, 30));
  const auto rows = DeletionVector::FromOffsets(std::vector<uint32_t>{1})->ToBitmap();
  (*operation->mutable_updated_fragment_offset_bitmaps())[0] =
      std::string(rows.begin(), rows.end());
  ASSERT_OK_AND_ASSIGN(auto after, dataset->Commit(update));
  ASSERT_OK_AND_ASSIGN(auto values, ReadColumn(*after, "x"));
  EXPECT_EQ(values, (Values{30, 31, 32}));
  EXPECT_EQ(after->fragment(0).files_size(), 2);
  ASSERT_OK_AND_ASSIGN(
      auto runs,
      DecodeRowVersions(after->fragment(0).inline_last_updated_at_versions(), 3));
  ASSERT_EQ(runs.size(), 3u);
  EXPECT_EQ(runs[0].version, 2u);
  EXPECT_EQ(runs[1].version, 3u);
  EXPECT_EQ(runs[2].version, 2u);
  EXPECT_KIND(ErrorKind::kRetryableConflict, DeleteValues(*dataset, {1}).status());
}

// The ids that moved rows bring tell when they were created, if the update does not.
TEST(Operations, CreationVersionsAreLookedUp) {
  const TableEnv env = MakeEnv(io::MakeMemoryStore());
  ASSERT_OK_AND_ASSIGN(auto dataset, WriteValues(env, {1, 2}, StableIds()));
  ASSERT_OK_AND_ASSIGN(dataset, Append(env, {3}));
  RowUpdate update;
  ASSERT_OK_AND_ASSIGN(update.deleted, FindRows(*dataset, {2, 3}));
  FragmentWriter writer(env, dataset->schema(), {});
  ASSERT_OK(writer.Write(*MakeBatch({30, 20})));
  ASSERT_OK_AND_ASSIGN(update.new_fragments, writer.Finish());
  update.new_fragments[0].set_inline_row_ids(EncodeRowIds(std::vector<uint64_t>{2, 1}));
  CommitOutcome outcome;
  ASSERT_OK_AND_ASSIGN(auto after, dataset->CommitUpdate(update, &outcome));
  writer.Keep();
  const auto& moved = after->fragment(after->num_fragments() - 1);
  ASSERT_OK_AND_ASSIGN(auto runs,
                       DecodeRowVersions(moved.inline_created_at_versions(), 2));
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[0].version, 2u);
  EXPECT_EQ(runs[1].version, 1u);
}

TEST(Operations, DeprecatedConfig) {
  const TableEnv env = MakeEnv(io::MakeMemoryStore());
  ASSERT_OK_AND_ASSIGN(auto dataset, Create(env, {1}));
  Transaction config;
  auto* update = config.mutable_update_config();
  (*update->mutable_upsert_values())["a"] = "1";
  (*update->mutable_upsert_values())["b"] = "2";
  (*update->mutable_schema_metadata())["s"] = "3";
  (*(*update->mutable_field_metadata())[0].mutable_metadata())["f"] = "4";
  ASSERT_OK_AND_ASSIGN(dataset, dataset->Commit(config));
  Transaction remove;
  remove.mutable_update_config()->add_delete_keys("a");
  ASSERT_OK_AND_ASSIGN(dataset, dataset->Commit(remove));
  EXPECT_EQ(dataset->manifest().config_size(), 1);
  EXPECT_EQ(dataset->manifest().config().at("b"), "2");
  EXPECT_EQ(dataset->schema().metadata().at("s"), "3");
  EXPECT_EQ(dataset->schema().fields()[0].metadata.at("f"), "4");
}

TEST(Operations, PrimaryKeyIsSetOnce) {
  const TableEnv env = MakeEnv(io::MakeMemoryStore());
  ASSERT_OK_AND_ASSIGN(auto dataset, Create(env, {1}));
  auto set = [](int32_t field, const char* value) {
    Transaction config;
    auto* entry =
        (*config.mutable_update_config()->mutable_field_metadata_updates())[field]
            .add_update_entries();
    entry->set_key("lance-schema:unenforced-primary-key");
    entry->set_value(value);
    return config;
  };
  ASSERT_OK_AND_ASSIGN(dataset, dataset->Commit(set(0, "true")));
  EXPECT_TRUE(dataset->manifest().fields(0).unenforced_primary_key());
  EXPECT_KIND(ErrorKind::kInvalidInput, dataset->Commit(set(0, "false")).status());
  EXPECT_KIND(ErrorKind::kInvalidInput, dataset->Commit(set(1, "true")).status());
}

}  // namespace
}  // namespace glaive::table
