// Merges whose source also says which keys to delete, and which record the progress of an
// LSM write path: what compaction is made of.
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "exec/add_columns.h"
#include "exec/alter_columns.h"
#include "exec/merge.h"
#include "exec/scan.h"
#include "exec/test_table.h"
#include "format/memwal.pb.h"
#include "format/table.pb.h"
#include "format/transaction.pb.h"
#include "table/schema_change.h"

namespace glaive::exec {
namespace {

using Rows = std::map<int64_t, std::string>;

struct SourceRow {
  int64_t id = 0;
  std::string text;
  bool dead = false;
};

std::shared_ptr<arrow::RecordBatchReader> Source(const std::vector<SourceRow>& rows,
                                                 int64_t per_batch = 100) {
  const auto schema = arrow::schema({arrow::field("dead", arrow::boolean()),
                                     arrow::field("text", arrow::utf8()),
                                     arrow::field("id", arrow::int64())});
  arrow::Int64Builder id;
  arrow::StringBuilder text;
  arrow::BooleanBuilder dead;
  for (const SourceRow& row : rows) {
    EXPECT_OK(id.Append(row.id));
    EXPECT_OK(row.dead ? text.AppendNull() : text.Append(row.text));
    EXPECT_OK(dead.Append(row.dead));
  }
  const auto all = arrow::RecordBatch::Make(
      schema, static_cast<int64_t>(rows.size()),
      {dead.Finish().ValueOrDie(), text.Finish().ValueOrDie(), id.Finish().ValueOrDie()});
  arrow::RecordBatchVector batches;
  for (int64_t at = 0; at < all->num_rows(); at += per_batch) {
    batches.push_back(all->Slice(at, per_batch));
  }
  return arrow::RecordBatchReader::Make(batches, schema).ValueOrDie();
}

// `text` is not nullable, and the source has nulls there for rows to delete.
Result<table::Dataset::Ptr> MakeTable(
    const std::vector<std::pair<int64_t, std::string>>& rows, bool stable_ids) {
  const auto schema =
      arrow::schema({arrow::field("id", arrow::int64(), false),
                     arrow::field("text", arrow::utf8(), /*nullable=*/false)});
  arrow::Int64Builder id;
  arrow::StringBuilder text;
  for (const auto& [key, value] : rows) {
    EXPECT_OK(id.Append(key));
    EXPECT_OK(text.Append(value));
  }
  const auto batch =
      arrow::RecordBatch::Make(schema, static_cast<int64_t>(rows.size()),
                               {id.Finish().ValueOrDie(), text.Finish().ValueOrDie()});
  GLAIVE_ASSIGN_OR_RETURN(auto reader, arrow::RecordBatchReader::Make({batch}, schema));
  table::WriteOptions options;
  options.max_rows_per_file = 7;
  options.stable_row_ids = stable_ids;
  table::TableEnv env;
  env.runtime = MakeTestRuntime(2);
  env.store = io::MakeMemoryStore();
  return table::Dataset::Write(env, *reader, options);
}

Result<Rows> Read(const table::Dataset::Ptr& dataset) {
  GLAIVE_ASSIGN_OR_RETURN(auto table, ScanToTable(dataset, ScanOptions()));
  Rows rows;
  arrow::TableBatchReader reader(*table);
  GLAIVE_ASSIGN_OR_RETURN(const auto chunks, reader.ToRecordBatches());
  for (const auto& chunk : chunks) {
    const auto& id = static_cast<const arrow::Int64Array&>(*chunk->GetColumnByName("id"));
    const auto& text =
        static_cast<const arrow::StringArray&>(*chunk->GetColumnByName("text"));
    for (int64_t i = 0; i < chunk->num_rows(); ++i) {
      if (!rows.emplace(id.Value(i), text.GetString(i)).second) {
        return Corruption("row ", id.Value(i), " is there twice");
      }
    }
  }
  return rows;
}

MergeOptions Options() {
  MergeOptions options;
  options.on = {"id"};
  options.matched = MatchedAction::kUpdate;
  options.insert_not_matched = true;
  options.duplicates = SourceDuplicates::kFirstSeen;
  options.tombstone_column = "dead";
  return options;
}

TEST(MergeTombstones, EqualsAMap) {
  const uint64_t seed = FreshSeed();
  for (int round = 0; round < 60; ++round) {
    std::mt19937_64 random(seed + static_cast<uint64_t>(round));
    const auto below = [&](uint64_t n) { return static_cast<int64_t>(random() % n); };
    const auto range = 1 + static_cast<uint64_t>(below(60));
    std::vector<std::pair<int64_t, std::string>> before;
    Rows model;
    const int64_t count = below(40);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t key = below(range);  // some keys several times
      before.emplace_back(key, "old" + std::to_string(i));
      model[key] = before.back().second;
    }
    ASSERT_OK_AND_ASSIGN(auto dataset, MakeTable(before, round % 2 == 0));
    std::vector<SourceRow> source;
    Rows first_seen, deleted;
    const int64_t changes = below(50);
    for (int64_t i = 0; i < changes; ++i) {
      SourceRow row{below(range), "new" + std::to_string(i), below(3) == 0};
      if (first_seen.emplace(row.id, "").second) {
        if (row.dead) {
          model.erase(row.id);
        } else {
          model[row.id] = row.text;
        }
      }
      source.push_back(std::move(row));
    }
    // Keys with several rows that the source does not touch stay out of the comparison.
    std::map<int64_t, int> times;
    for (const auto& [key, text] : before) ++times[key];
    std::vector<std::pair<int64_t, std::string>> kept;
    for (auto& row : before) {
      if (times[row.first] == 1 || first_seen.count(row.first) > 0) kept.push_back(row);
    }
    for (const auto& [key, n] : times) {
      if (n > 1 && first_seen.count(key) == 0) model.erase(key);
    }
    ASSERT_OK_AND_ASSIGN(dataset, MakeTable(kept, round % 2 == 0));
    MergeOptions options = Options();
    if (round % 3 == 0) options.memory_bytes = 1;  // spill
    ASSERT_OK_AND_ASSIGN(auto result,
                         MergeInsert(dataset, Source(source, 1 + below(60)), options));
    ASSERT_OK_AND_ASSIGN(const Rows seen, Read(result.dataset));
    ASSERT_EQ(seen, model) << "seed " << seed << ", round " << round;
    EXPECT_EQ(static_cast<int64_t>(kept.size()) - result.num_deleted_rows +
                  result.num_inserted_rows,
              static_cast<int64_t>(seen.size()));
  }
}

TEST(MergeTombstones, WhatIsRefused) {
  ASSERT_OK_AND_ASSIGN(auto dataset, MakeTable({{1, "a"}}, false));
  MergeOptions options = Options();
  options.tombstone_column = "other";
  EXPECT_ERROR_KIND(MergeInsert(dataset, Source({{1, "b"}}), options).status(),
                    ErrorKind::kInvalidInput);
  options.tombstone_column = "id";
  EXPECT_ERROR_KIND(MergeInsert(dataset, Source({{1, "b"}}), options).status(),
                    ErrorKind::kInvalidInput);
  options = Options();
  options.matched = MatchedAction::kDelete;
  EXPECT_ERROR_KIND(MergeInsert(dataset, Source({{1, "b"}}), options).status(),
                    ErrorKind::kInvalidInput);
  ASSERT_OK_AND_ASSIGN(auto latest, dataset->Latest());
  EXPECT_EQ(latest->version(), 1);
}

Result<table::Dataset::Ptr> AttachMemWal(const table::Dataset::Ptr& dataset) {
  lance::table::Transaction transaction;
  auto* entry = transaction.mutable_create_index()->add_new_indices();
  entry->set_name("__lance_mem_wal");
  entry->mutable_uuid()->set_uuid(std::string(16, 'u'));
  entry->mutable_index_details()->set_type_url("/lance.table.MemWalIndexDetails");
  return dataset->Commit(std::move(transaction));
}

Result<uint64_t> Progress(const table::Dataset& dataset) {
  lance::table::IndexSection section;
  lance::table::MemWalIndexDetails details;
  if (!section.ParseFromString(*dataset.index_section()) ||
      !details.ParseFromString(section.indices(0).index_details().value()) ||
      details.compacted_sstables_size() != 1) {
    return Corruption("the entry");
  }
  return details.compacted_sstables(0).generation();
}

TEST(MergeProgress, RidesWithTheRows) {
  ASSERT_OK_AND_ASSIGN(auto dataset, MakeTable({{1, "a"}, {2, "b"}}, false));
  MergeOptions options = Options();
  options.compacted = {{std::string(16, 's'), 2}};
  EXPECT_ERROR_KIND(MergeInsert(dataset, Source({{1, "x"}}), options).status(),
                    ErrorKind::kInvalidInput);
  ASSERT_OK_AND_ASSIGN(dataset, AttachMemWal(dataset));
  ASSERT_OK_AND_ASSIGN(auto result,
                       MergeInsert(dataset, Source({{1, "x"}, {2, "", true}}), options));
  ASSERT_OK_AND_ASSIGN(uint64_t progress, Progress(*result.dataset));
  EXPECT_EQ(progress, 2u);
  EXPECT_EQ(result.num_updated_rows, 1);
  EXPECT_EQ(result.num_deleted_rows, 1);
  // Without rows, and not twice.
  options.compacted[0].generation = 5;
  ASSERT_OK_AND_ASSIGN(result, MergeInsert(result.dataset, Source({}), options));
  ASSERT_OK_AND_ASSIGN(progress, Progress(*result.dataset));
  EXPECT_EQ(progress, 5u);
  EXPECT_ERROR_KIND(MergeInsert(result.dataset, Source({{3, "y"}}), options).status(),
                    ErrorKind::kInvalidInput);
  ASSERT_OK_AND_ASSIGN(Rows seen, Read(result.dataset));
  EXPECT_EQ(seen, (Rows{{1, "x"}}));
}

// A later generation deletes a key that is not in the table as it looks at it, but that
// an earlier generation inserts meanwhile.
TEST(MergeProgress, LaterGenerationsLookAgain) {
  ASSERT_OK_AND_ASSIGN(auto old, MakeTable({{1, "a"}}, false));
  ASSERT_OK_AND_ASSIGN(old, AttachMemWal(old));
  MergeOptions options = Options();
  options.compacted = {{std::string(16, 's'), 1}};
  ASSERT_OK(MergeInsert(old, Source({{9, "early"}}), options).status());
  options.compacted[0].generation = 2;
  ASSERT_OK_AND_ASSIGN(auto result, MergeInsert(old, Source({{9, "", true}}), options));
  EXPECT_EQ(result.num_attempts, 2);
  ASSERT_OK_AND_ASSIGN(Rows seen, Read(result.dataset));
  EXPECT_EQ(seen, (Rows{{1, "a"}}));
}

TEST(MergeProgress, ColumnsThatChanged) {
  ASSERT_OK_AND_ASSIGN(auto dataset, MakeTable({{1, "a"}}, false));
  MergeOptions options = Options();
  options.made_for = std::make_shared<const file::Schema>(dataset->schema());
  ASSERT_OK_AND_ASSIGN(auto result, MergeInsert(dataset, Source({{2, "b"}}), options));
  const arrow::Schema added({arrow::field("more", arrow::int32())});
  ASSERT_OK_AND_ASSIGN(dataset, AddNullColumns(result.dataset, added));
  EXPECT_ERROR_KIND(MergeInsert(dataset, Source({{3, "c"}}), options).status(),
                    ErrorKind::kSchemaMismatch);
}

TEST(ColumnChanges, RefusedBesideAnLsmWritePath) {
  ASSERT_OK_AND_ASSIGN(auto dataset, MakeTable({{1, "a"}}, false));
  ASSERT_OK_AND_ASSIGN(dataset, AttachMemWal(dataset));
  table::ColumnAlteration retype;
  retype.path = "text";
  retype.type = arrow::large_utf8();
  EXPECT_ERROR_KIND(AlterColumns(dataset, std::span(&retype, 1)).status(),
                    ErrorKind::kInvalidInput);
  EXPECT_ERROR_KIND(AddColumns(dataset, {{"more", "id + 1"}}).status(),
                    ErrorKind::kInvalidInput);
  auto stream = Source({{1, "x"}});
  EXPECT_ERROR_KIND(AddColumnsFromReader(dataset, *stream).status(),
                    ErrorKind::kInvalidInput);
  // What rows in the log can follow is allowed.
  table::ColumnAlteration rename;
  rename.path = "text";
  rename.rename = "words";
  rename.nullable = true;
  ASSERT_OK_AND_ASSIGN(dataset, AlterColumns(dataset, std::span(&rename, 1)));
  const arrow::Schema added({arrow::field("more", arrow::int32())});
  ASSERT_OK_AND_ASSIGN(dataset, AddNullColumns(dataset, added));
  table::ColumnAlteration strict;
  strict.path = "more";
  strict.nullable = false;
  EXPECT_ERROR_KIND(AlterColumns(dataset, std::span(&strict, 1)).status(),
                    ErrorKind::kInvalidInput);
  const std::vector<std::string> dropped = {"more"};
  ASSERT_OK_AND_ASSIGN(dataset, DropColumns(dataset, dropped));
  EXPECT_EQ(dataset->schema().fields().size(), 2u);
}

}  // namespace
}  // namespace glaive::exec
