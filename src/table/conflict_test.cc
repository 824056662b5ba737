// The conflict matrix, cell by cell.
#include "table/conflict.h"

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <arrow/type.h>
#include <gtest/gtest.h>

#include "file/schema.h"
#include "format/file.pb.h"
#include "format/table.pb.h"
#include "format/transaction.pb.h"
#include "io/test_util.h"

namespace glaive::table {
namespace {

using lance::table::Transaction;

file::Schema TwoColumns() {
  return *file::Schema::FromArrow(*arrow::schema(
      {arrow::field("a", arrow::int32()), arrow::field("b", arrow::utf8())}));
}

Transaction Append() {
  Transaction t;
  auto* file = t.mutable_append()->add_fragments()->add_files();
  file->add_fields(0);
  file->add_fields(1);
  return t;
}
Transaction Delete(uint64_t fragment) {
  Transaction t;
  t.mutable_delete_()->add_updated_fragments()->set_id(fragment);
  return t;
}
Transaction DeleteWhole(uint64_t fragment) {
  Transaction t;
  t.mutable_delete_()->add_deleted_fragment_ids(fragment);
  return t;
}
Transaction Update(uint64_t fragment) {
  Transaction t;
  t.mutable_update()->add_updated_fragments()->set_id(fragment);
  return t;
}
Transaction Overwrite(const char* key = nullptr) {
  Transaction t;
  t.mutable_overwrite();
  if (key) (*t.mutable_overwrite()->mutable_config_upsert_values())[key] = "x";
  return t;
}
Transaction Rewrite(uint64_t fragment) {
  Transaction t;
  t.mutable_rewrite()->add_groups()->add_old_fragments()->set_id(fragment);
  return t;
}
Transaction Restore() {
  Transaction t;
  t.mutable_restore()->set_version(1);
  return t;
}
Transaction Reserve() {
  Transaction t;
  t.mutable_reserve_fragments();
  return t;
}
Transaction Merge(const file::Schema& schema) {
  Transaction t;
  schema.ToProto(t.mutable_merge()->mutable_schema());
  t.mutable_merge()->set_preserves_nullability(true);
  return t;
}
Transaction Project(const file::Schema& schema, bool preserves = true) {
  Transaction t;
  schema.ToProto(t.mutable_project()->mutable_schema());
  t.mutable_project()->set_preserves_nullability(preserves);
  return t;
}
Transaction Config(const char* key) {
  Transaction t;
  t.mutable_update_config()->mutable_config_updates()->add_update_entries()->set_key(key);
  return t;
}
Transaction TableMetadata(const char* key) {
  Transaction t;
  t.mutable_update_config()
      ->mutable_table_metadata_updates()
      ->add_update_entries()
      ->set_key(key);
  return t;
}
Transaction SchemaMetadata() {
  Transaction t;
  t.mutable_update_config()->mutable_schema_metadata_updates();
  return t;
}
Transaction FieldMetadata(int32_t field) {
  Transaction t;
  (*t.mutable_update_config()->mutable_field_metadata_updates())[field];
  return t;
}
Transaction Index(const char* name, int32_t field = 0) {
  Transaction t;
  auto* index = t.mutable_create_index()->add_new_indices();
  index->set_name(name);
  index->add_fields(field);
  return t;
}
Transaction Replacement(uint64_t fragment, int32_t field) {
  Transaction t;
  auto* group = t.mutable_data_replacement()->add_replacements();
  group->set_fragment_id(fragment);
  group->mutable_new_file()->add_fields(field);
  return t;
}
Transaction MemWal() {
  Transaction t;
  t.mutable_update_mem_wal_state();
  return t;
}
Transaction Bases() {
  Transaction t;
  t.mutable_update_bases();
  return t;
}
Transaction Clone() {
  Transaction t;
  t.mutable_clone();
  return t;
}
Transaction Unknown() { return {}; }

constexpr auto kNone = ConflictKind::kNone;
constexpr auto kRebase = ConflictKind::kRebase;
constexpr auto kRetry = ConflictKind::kRetryable;
constexpr auto kNever = ConflictKind::kIncompatible;

ConflictKind Check(const Transaction& ours, const Transaction& theirs,
                   bool rows_known = true) {
  static const file::Schema schema = TwoColumns();
  return CheckConflict(ours, theirs, {&schema, rows_known});
}

// Ours (rows) against what was committed first (columns), in fragment 1 and field 0.
TEST(Conflict, WholeMatrix) {
  const auto same = TwoColumns();
  const std::vector<std::pair<const char*, Transaction>> operations = {
      {"Append", Append()},
      {"Delete", Delete(1)},
      {"Update", Update(1)},
      {"Rewrite", Rewrite(1)},
      {"Overwrite", Overwrite()},
      {"Restore", Restore()},
      {"Merge", Merge(same)},
      {"Project", Project(same)},
      {"CreateIndex", Index("i")},
      {"Config", Config("k")},
      {"FieldMetadata", FieldMetadata(0)},
      {"DataReplacement", Replacement(1, 0)},
      {"ReserveFragments", Reserve()},
      {"UpdateMemWalState", MemWal()},
      {"UpdateBases", Bases()},
      {"Clone", Clone()},
      {"Unknown", Unknown()}};
  const std::map<std::string, const char*> expected = {
      {"Append", "....XX.......X..X"},
      {"Delete", ".BBRXXR....R.X..X"},
      {"Update", ".BBRXXR....R.R..X"},
      {"Rewrite", ".RRRXXR.R..R....X"},
      {"Overwrite", "....R........X..X"},
      {"Restore", ".............X..X"},
      {"Merge", "RRRRXXRX..RR.X..X"},
      {"Project", "....XXRR..R..X..X"},
      {"CreateIndex", "...RXX..R..R.X..X"},
      {"Config", ".........X......X"},
      {"FieldMetadata", "....XXR...X.....X"},
      {"DataReplacement", "...RXXR.R..R.X..X"},
      {"ReserveFragments", "....XX..........X"},
      {"UpdateBases", "................X"},
      {"Clone", "................X"}};
  for (const auto& [name, ours] : operations) {
    const auto row = expected.find(name);
    if (row == expected.end()) continue;  // nobody commits these
    std::string seen;
    for (const auto& [other, theirs] : operations) {
      switch (Check(ours, theirs)) {
        case kNone:
          seen += '.';
          break;
        case kRebase:
          seen += 'B';
          break;
        case kRetry:
          seen += 'R';
          break;
        case kNever:
          seen += 'X';
          break;
      }
    }
    EXPECT_EQ(seen, row->second) << name;
  }
}

TEST(Conflict, OtherFragmentsFieldsAndKeys) {
  const auto same = TwoColumns();
  EXPECT_EQ(Check(Update(1), Update(2)), kNone);
  EXPECT_EQ(Check(Update(1), Rewrite(2)), kNone);
  EXPECT_EQ(Check(Rewrite(1), Delete(2)), kNone);
  EXPECT_EQ(Check(Rewrite(1), Rewrite(2)), kNone);
  EXPECT_EQ(Check(Rewrite(1), Replacement(2, 0)), kNone);
  EXPECT_EQ(Check(Replacement(1, 0), Replacement(2, 0)), kNone);
  EXPECT_EQ(Check(Replacement(1, 0), Replacement(1, 1)), kNone);
  EXPECT_EQ(Check(Replacement(1, 0), Rewrite(2)), kNone);
  EXPECT_EQ(Check(Replacement(1, 0), DeleteWhole(1)), kNever);
  EXPECT_EQ(Check(Replacement(1, 0), DeleteWhole(2)), kNone);
  EXPECT_EQ(Check(Replacement(1, 1), Index("i", 0)), kNone);
  EXPECT_EQ(Check(Merge(same), Config("k")), kNone);
  EXPECT_EQ(Check(Merge(same), SchemaMetadata()), kRetry);
  EXPECT_EQ(Check(Project(same), SchemaMetadata()), kNone);
  auto fields = same.fields();
  fields.pop_back();
  const file::Schema dropped(fields);
  EXPECT_EQ(Check(FieldMetadata(1), Project(dropped)), kNever);
  EXPECT_EQ(Check(FieldMetadata(0), Project(dropped)), kNone);
  EXPECT_EQ(Check(Replacement(1, 1), Project(dropped)), kRetry);
  // Nulls may come into a column that becomes non-null, in both orders.
  for (const Transaction& writer : {Append(), Update(1), Replacement(1, 0)}) {
    EXPECT_EQ(Check(Project(same, /*preserves=*/false), writer), kRetry);
  }
  EXPECT_EQ(Check(Replacement(1, 0), Project(same, /*preserves=*/false)), kRetry);
}

TEST(Conflict, ColumnsRewrittenInPlace) {
  Transaction columns = Update(1);
  columns.mutable_update()->set_update_mode(Transaction::Update::REWRITE_COLUMNS);
  columns.mutable_update()->add_fields_modified(0);
  EXPECT_EQ(Check(columns, Update(1)), kRetry);
  EXPECT_EQ(Check(Update(1), columns), kRetry);
  EXPECT_EQ(Check(Delete(1), columns), kRetry);
  EXPECT_EQ(Check(Delete(2), columns), kNone);
  EXPECT_EQ(Check(Index("i", 0), columns), kRetry);
  EXPECT_EQ(Check(Index("i", 1), columns), kNone);
  EXPECT_EQ(Check(columns, Project(TwoColumns())), kRetry);
  EXPECT_EQ(Check(Replacement(1, 1), columns), kRetry);
}

TEST(Conflict, Bases) {
  auto base = [](uint32_t id, const char* name, const char* path) {
    Transaction t;
    auto* added = t.mutable_update_bases()->add_new_bases();
    added->set_id(id);
    added->set_name(name);
    added->set_path(path);
    return t;
  };
  EXPECT_EQ(Check(base(0, "a", "/a"), base(0, "b", "/b")), kNone);
  EXPECT_EQ(Check(base(1, "a", "/a"), base(1, "b", "/b")), kNever);
  EXPECT_EQ(Check(base(0, "a", "/a"), base(0, "a", "/b")), kNever);
  EXPECT_EQ(Check(base(0, "a", "/a"), base(0, "b", "/a")), kNever);
}

TEST(Conflict, Append) {
  const auto same = TwoColumns();
  for (const Transaction& theirs :
       {Append(), Delete(0), DeleteWhole(0), Update(0), Rewrite(0), Reserve(), Index("i"),
        Config("k"), SchemaMetadata(), Replacement(0, 0), Bases(), Merge(same),
        Project(same)}) {
    EXPECT_EQ(Check(Append(), theirs), kNone) << theirs.ShortDebugString();
  }
  for (const Transaction& theirs : {Overwrite(), Restore(), MemWal(), Unknown()}) {
    EXPECT_EQ(Check(Append(), theirs), kNever) << theirs.ShortDebugString();
  }
}

// Where the meaning of a field id changed, committing would lose or mix up values.
TEST(Conflict, AppendOverAnotherSchema) {
  auto with = [](const std::function<void(std::vector<file::Field>*)>& change) {
    auto fields = TwoColumns().fields();
    change(&fields);
    return file::Schema(fields);
  };
  const auto renamed = with([](auto* f) { (*f)[1].name = "c"; });
  const auto dropped = with([](auto* f) { f->pop_back(); });
  const auto cast = with([](auto* f) { (*f)[1].id = 2; });
  const auto reused = with([](auto* f) { (*f)[1].logical_type = "int64"; });
  const auto added = with([](auto* f) {
    f->push_back(f->back());
    f->back().id = 2;
    f->back().name = "new";
  });
  const auto added_required = with([](auto* f) {
    f->push_back(f->back());
    f->back().id = 2;
    f->back().name = "new";
    f->back().nullable = false;
  });
  EXPECT_EQ(Check(Append(), Project(renamed)), kNone);
  EXPECT_EQ(Check(Append(), Merge(added)), kNone);
  EXPECT_EQ(Check(Append(), Project(dropped)), kRetry);
  EXPECT_EQ(Check(Append(), Merge(cast)), kRetry);
  EXPECT_EQ(Check(Append(), Merge(reused)), kRetry);
  EXPECT_EQ(Check(Append(), Merge(added_required)), kRetry);
  EXPECT_EQ(Check(Append(), Project(TwoColumns(), /*preserves=*/false)), kRetry);
}

TEST(Conflict, Delete) {
  const auto same = TwoColumns();
  EXPECT_EQ(Check(Delete(1), Append()), kNone);
  for (const Transaction& theirs : {Delete(1), DeleteWhole(1), Update(1)}) {
    EXPECT_EQ(Check(Delete(1), theirs), kRebase);
    EXPECT_EQ(Check(Delete(1), theirs, /*rows_known=*/false), kRetry);
    EXPECT_EQ(Check(DeleteWhole(1), theirs), kRebase);
    EXPECT_EQ(Check(Delete(2), theirs, /*rows_known=*/false), kNone);
  }
  EXPECT_EQ(Check(Delete(1), Rewrite(1)), kRetry);
  EXPECT_EQ(Check(Delete(1), Rewrite(2)), kNone);
  EXPECT_EQ(Check(Delete(1), Replacement(1, 0)), kRetry);
  EXPECT_EQ(Check(Delete(1), Replacement(2, 0)), kNone);
  EXPECT_EQ(Check(Delete(1), Merge(same)), kRetry);
  for (const Transaction& theirs :
       {Project(same), Index("i"), Config("k"), SchemaMetadata(), Reserve(), Bases()}) {
    EXPECT_EQ(Check(Delete(1), theirs), kNone) << theirs.ShortDebugString();
  }
  for (const Transaction& theirs : {Overwrite(), Restore(), MemWal(), Unknown()}) {
    EXPECT_EQ(Check(Delete(1), theirs), kNever) << theirs.ShortDebugString();
  }
}

TEST(Conflict, Overwrite) {
  const auto same = TwoColumns();
  EXPECT_EQ(Check(Overwrite(), Overwrite()), kRetry);
  for (const Transaction& theirs :
       {Append(), Delete(1), Update(1), Rewrite(1), Restore(), Merge(same), Project(same),
        Index("i"), Config("k")}) {
    EXPECT_EQ(Check(Overwrite(), theirs), kNone) << theirs.ShortDebugString();
  }
  EXPECT_EQ(Check(Overwrite("k"), Config("k")), kNever);
  EXPECT_EQ(Check(Overwrite("k"), Config("other")), kNone);
  EXPECT_EQ(Check(Overwrite(), MemWal()), kNever);
  EXPECT_EQ(Check(Overwrite(), Unknown()), kNever);
}

TEST(Conflict, RestoreAndReserve) {
  const auto same = TwoColumns();
  for (const Transaction& theirs :
       {Append(), Delete(1), Overwrite(), Restore(), Merge(same), Project(same),
        Rewrite(1), Config("k")}) {
    EXPECT_EQ(Check(Restore(), theirs), kNone) << theirs.ShortDebugString();
  }
  EXPECT_EQ(Check(Restore(), MemWal()), kNever);
  EXPECT_EQ(Check(Restore(), Unknown()), kNever);
  EXPECT_EQ(Check(Reserve(), Append()), kNone);
  EXPECT_EQ(Check(Reserve(), Reserve()), kNone);
  EXPECT_EQ(Check(Reserve(), Overwrite()), kNever);
  EXPECT_EQ(Check(Reserve(), Restore()), kNever);
}

TEST(Conflict, Config) {
  const auto same = TwoColumns();
  EXPECT_EQ(Check(Config("a"), Config("b")), kNone);
  EXPECT_EQ(Check(Config("a"), Config("a")), kNever);
  EXPECT_EQ(Check(TableMetadata("a"), TableMetadata("a")), kNever);
  EXPECT_EQ(Check(TableMetadata("a"), Config("a")), kNone);
  EXPECT_EQ(Check(SchemaMetadata(), SchemaMetadata()), kNever);
  EXPECT_EQ(Check(FieldMetadata(1), FieldMetadata(1)), kNever);
  EXPECT_EQ(Check(FieldMetadata(1), FieldMetadata(2)), kNone);
  EXPECT_EQ(Check(Config("a"), Append()), kNone);
  EXPECT_EQ(Check(Config("a"), Overwrite()), kNone);
  EXPECT_EQ(Check(Config("a"), Overwrite("a")), kNever);
  EXPECT_EQ(Check(SchemaMetadata(), Overwrite()), kNever);
  EXPECT_EQ(Check(FieldMetadata(1), Restore()), kNever);
  EXPECT_EQ(Check(Config("a"), Restore()), kNone);
  EXPECT_EQ(Check(FieldMetadata(1), Merge(same)), kRetry);
  EXPECT_EQ(Check(Config("a"), Merge(same)), kNone);
  EXPECT_EQ(Check(SchemaMetadata(), Project(same)), kNone);
}

TEST(Conflict, CreateIndex) {
  const auto same = TwoColumns();
  EXPECT_EQ(Check(Index("i"), Append()), kNone);
  EXPECT_EQ(Check(Index("i"), Delete(1)), kNone);
  EXPECT_EQ(Check(Index("i"), Rewrite(1)), kRetry);
  EXPECT_EQ(Check(Index("i"), Index("i")), kRetry);
  EXPECT_EQ(Check(Index("i"), Index("j")), kNone);
  EXPECT_EQ(Check(Index("i", 0), Replacement(1, 0)), kRetry);
  EXPECT_EQ(Check(Index("i", 0), Replacement(1, 1)), kNone);
  EXPECT_EQ(Check(Index("i", 0), Project(same)), kNone);
  auto fields = same.fields();
  fields.erase(fields.begin());
  EXPECT_EQ(Check(Index("i", 0), Project(file::Schema(fields))), kRetry);
  EXPECT_EQ(Check(Index("i"), Overwrite()), kNever);
  EXPECT_EQ(Check(Index("i"), Restore()), kNever);
}

Transaction Marked(uint64_t fragment, uint64_t generation = 1) {
  Transaction t = Update(fragment);
  t.mutable_update()->add_compacted_sstables()->set_generation(generation);
  return t;
}

TEST(Conflict, MemWal) {
  const auto same = TwoColumns();
  // Progress is checked against the version it lands on, not against what came between.
  for (const Transaction& theirs :
       {Append(), Delete(1), Update(1), Marked(1), Rewrite(1), Merge(same), Project(same),
        Index("i"), Config("k"), Replacement(1, 0), Reserve(), MemWal(), Bases()}) {
    EXPECT_EQ(Check(MemWal(), theirs), kNone) << theirs.ShortDebugString();
  }
  for (const Transaction& theirs : {Overwrite(), Restore(), Unknown()}) {
    EXPECT_EQ(Check(MemWal(), theirs), kNever) << theirs.ShortDebugString();
  }
  EXPECT_EQ(Check(Marked(1), Marked(1)), kRebase);
  EXPECT_EQ(Check(Marked(1), Marked(2)), kNone);
  EXPECT_EQ(Check(Marked(1), MemWal()), kRetry);
  // Later generations of the same shard look again at what the earlier ones left.
  EXPECT_EQ(Check(Marked(1, 2), Marked(2, 1)), kRetry);
  EXPECT_EQ(Check(Marked(1, 1), Marked(2, 2)), kNone);
  Transaction other_shard = Marked(2, 1);
  other_shard.mutable_update()
      ->mutable_compacted_sstables(0)
      ->mutable_shard_id()
      ->set_uuid("another");
  EXPECT_EQ(Check(Marked(1, 2), other_shard), kNone);

  // The entry gets a new uuid by progress.
  Transaction attach = Index("__lance_mem_wal");
  Transaction detach;
  *detach.mutable_create_index()->mutable_removed_indices() =
      attach.create_index().new_indices();
  EXPECT_EQ(Check(detach, Marked(1)), kRetry);
  EXPECT_EQ(Check(attach, Marked(1)), kRetry);
  EXPECT_EQ(Check(detach, Update(1)), kNone);
  EXPECT_EQ(Check(Index("i"), Marked(1)), kNone);

  // New values of columns, and columns that lose their nulls, do not reach the log.
  Transaction non_null = Project(same);
  non_null.mutable_project()->set_preserves_nullability(false);
  EXPECT_EQ(Check(Merge(same), attach), kRetry);
  EXPECT_EQ(Check(Merge(same), detach), kNone);
  EXPECT_EQ(Check(non_null, attach), kRetry);
  EXPECT_EQ(Check(Project(same), attach), kNone);
}

TEST(Conflict, WordsOfUpstream) {
  Status retry = RetryableError(Delete(0), Update(0), 7);
  EXPECT_KIND(ErrorKind::kRetryableConflict, retry);
  EXPECT_EQ(
      retry.message(),
      "Retryable commit conflict for version 7: This Delete transaction was preempted by "
      "concurrent transaction Update at version 7. Please retry.");
  Status never = IncompatibleError(Append(), Overwrite(), 3);
  EXPECT_KIND(ErrorKind::kConflict, never);
  EXPECT_EQ(
      never.message(),
      "Incompatible transaction: This Append transaction is incompatible with concurrent "
      "transaction Overwrite at version 3.");
}

}  // namespace
}  // namespace glaive::table
