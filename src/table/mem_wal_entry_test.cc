// Progress of an LSM write path in the index section, and who else touches the entry.
#include "table/mem_wal_entry.h"

#include <map>
#include <string>
#include <vector>

#include "format/memwal.pb.h"
#include "format/table.pb.h"
#include "format/transaction.pb.h"
#include "table/fragment_writer.h"
#include "table/test_util.h"

namespace glaive::table {
namespace {

using lance::table::IndexMetadata;
using lance::table::MemWalIndexDetails;

const std::string kShardA(16, 'a');
const std::string kShardB(16, 'b');
// Fields 100 and 101 with values that this build does not know.
constexpr char kUnknown[] = "\xa0\x06\x07\xaa\x06\x02hi";

IndexMetadata Named(const std::string& name) {
  IndexMetadata index;
  index.set_name(name);
  index.mutable_uuid()->set_uuid(name);
  index.mutable_index_details()->set_type_url("/lance.table.BTreeIndexDetails");
  return index;
}

// A table of 1, 2, 3 whose entry stands between two other indices.
Result<Dataset::Ptr> CreateWithEntry(const TableEnv& env) {
  GLAIVE_ASSIGN_OR_RETURN(auto dataset, Create(env, {1, 2, 3}));
  MemWalIndexDetails details;
  details.set_num_shards(7);
  details.add_maintained_indexes("before");
  (*details.mutable_writer_config_defaults())["key"] = "value";
  lance::table::Transaction transaction;
  auto* indices = transaction.mutable_create_index();
  *indices->add_new_indices() = Named("before");
  IndexMetadata* entry = indices->add_new_indices();
  *entry = Named(kMemWalIndex);
  entry->mutable_index_details()->set_type_url("/lance.table.MemWalIndexDetails");
  entry->mutable_index_details()->set_value(details.SerializeAsString() + kUnknown);
  entry->set_index_version(0);
  *indices->add_new_indices() = Named("behind");
  return dataset->Commit(std::move(transaction));
}

Result<IndexMetadata> Entry(const Dataset& dataset) {
  lance::table::IndexSection section;
  if (dataset.index_section() == nullptr ||
      !section.ParseFromString(*dataset.index_section())) {
    return NotFound("no index section");
  }
  for (const auto& index : section.indices()) {
    if (index.name() == kMemWalIndex) return index;
  }
  return NotFound("no entry");
}

Result<std::map<std::string, uint64_t>> Recorded(const Dataset& dataset) {
  GLAIVE_ASSIGN_OR_RETURN(const IndexMetadata entry, Entry(dataset));
  MemWalIndexDetails details;
  if (!details.ParseFromString(entry.index_details().value())) {
    return Corruption("details");
  }
  std::map<std::string, uint64_t> recorded;
  for (const auto& marker : details.compacted_sstables()) {
    if (!recorded.emplace(marker.shard_id().uuid(), marker.generation()).second) {
      return Corruption("a shard twice");
    }
  }
  return recorded;
}

using Markers = std::vector<CompactedGeneration>;

// Deletes `values`, inserts `inserted`, records `markers`; no retry of others' commits.
Result<Dataset::Ptr> Merge(const Dataset& dataset, const Markers& markers,
                           const Values& values = {}, const Values& inserted = {}) {
  RowUpdate update;
  GLAIVE_ASSIGN_OR_RETURN(update.deleted, FindRows(dataset, values));
  FragmentWriter writer(dataset.env(), dataset.schema(), {});
  if (!inserted.empty()) GLAIVE_RETURN_NOT_OK(writer.Write(*MakeBatch(inserted)));
  GLAIVE_ASSIGN_OR_RETURN(update.new_fragments, writer.Finish());
  update.compacted = markers;
  CommitOutcome outcome = CommitOutcome::kUnknown;
  auto committed = dataset.CommitUpdate(update, &outcome);
  EXPECT_EQ(outcome,
            committed.ok() ? CommitOutcome::kCommitted : CommitOutcome::kNotCommitted);
  if (outcome != CommitOutcome::kNotCommitted) writer.Keep();
  return committed;
}

Result<Dataset::Ptr> Record(const Dataset& dataset, const Markers& markers) {
  lance::table::Transaction transaction;
  for (const auto& each : markers) {
    auto* marker = transaction.mutable_update_mem_wal_state()->add_compacted_sstables();
    marker->mutable_shard_id()->set_uuid(each.shard);
    marker->set_generation(each.generation);
  }
  return dataset.Commit(std::move(transaction));
}

using Recording = std::map<std::string, uint64_t>;

TEST(MemWalEntry, ProgressAndRowsInOneVersion) {
  const TableEnv env = MakeEnv(io::MakeMemoryStore());
  ASSERT_OK_AND_ASSIGN(auto dataset, CreateWithEntry(env));
  ASSERT_OK_AND_ASSIGN(const IndexMetadata before, Entry(*dataset));
  ASSERT_OK_AND_ASSIGN(dataset, Merge(*dataset, {{kShardA, 3}}, {2}, {9}));
  EXPECT_EQ(dataset->version(), 3);
  ASSERT_OK_AND_ASSIGN(auto values, ReadValues(*dataset));
  EXPECT_EQ(values, (Values{1, 3, 9}));
  ASSERT_OK_AND_ASSIGN(auto recorded, Recorded(*dataset));
  EXPECT_EQ(recorded, (Recording{{kShardA, 3}}));

  ASSERT_OK_AND_ASSIGN(const IndexMetadata after, Entry(*dataset));
  EXPECT_NE(after.uuid().uuid(), before.uuid().uuid());
  EXPECT_EQ(after.uuid().uuid().size(), 16u);
  EXPECT_EQ(after.dataset_version(), 3u);
  EXPECT_GT(after.created_at(), 1'600'000'000'000u);
  EXPECT_EQ(after.index_details().type_url(), before.index_details().type_url());
  MemWalIndexDetails details;
  ASSERT_TRUE(details.ParseFromString(after.index_details().value()));
  EXPECT_EQ(details.num_shards(), 7u);
  EXPECT_EQ(details.maintained_indexes(0), "before");
  EXPECT_EQ(details.writer_config_defaults().at("key"), "value");
  EXPECT_FALSE(details.has_maintain_all_indexes());
  EXPECT_NE(after.index_details().value().find(kUnknown), std::string::npos);
  lance::table::IndexSection section;
  ASSERT_TRUE(section.ParseFromString(*dataset->index_section()));
  ASSERT_EQ(section.indices_size(), 3);
  EXPECT_EQ(section.indices(0).name(), "before");
  EXPECT_EQ(section.indices(1).name(), kMemWalIndex);
  EXPECT_EQ(section.indices(2).name(), "behind");

  // Another process reads the same.
  ASSERT_OK_AND_ASSIGN(auto other, Dataset::Open(MakeEnv(env.store)));
  ASSERT_OK_AND_ASSIGN(recorded, Recorded(*other));
  EXPECT_EQ(recorded, (Recording{{kShardA, 3}}));
  // Progress without rows, by both kinds of transactions.
  ASSERT_OK_AND_ASSIGN(dataset, Merge(*other, {{kShardB, 1}, {kShardA, 4}}));
  ASSERT_OK_AND_ASSIGN(dataset, Record(*dataset, {{kShardA, 6}}));
  ASSERT_OK_AND_ASSIGN(recorded, Recorded(*dataset));
  EXPECT_EQ(recorded, (Recording{{kShardA, 6}, {kShardB, 1}}));
  ASSERT_OK_AND_ASSIGN(values, ReadValues(*dataset));
  EXPECT_EQ(values, (Values{1, 3, 9}));
}

void ExpectRefused(const Result<Dataset::Ptr>& result, const std::string& message) {
  EXPECT_KIND(ErrorKind::kInvalidInput, result.status());
  EXPECT_EQ(result.status().message(), message);
}

TEST(MemWalEntry, WhatIsRefused) {
  const TableEnv env = MakeEnv(io::MakeMemoryStore());
  ASSERT_OK_AND_ASSIGN(auto dataset, Create(env, {1, 2, 3}));
  const std::string missing =
      "Cannot record SSTable compaction progress: the __lance_mem_wal system index does "
      "not exist on this table";
  ExpectRefused(Merge(*dataset, {{kShardA, 1}}), missing);
  ExpectRefused(Record(*dataset, {{kShardA, 1}}), missing);

  const TableEnv other = MakeEnv(io::MakeMemoryStore());
  ASSERT_OK_AND_ASSIGN(dataset, CreateWithEntry(other));
  ASSERT_OK_AND_ASSIGN(dataset, Merge(*dataset, {{kShardA, 5}}));
  const std::string shard = "61616161-6161-6161-6161-616161616161";
  for (uint64_t generation : {5, 4, 0}) {
    ExpectRefused(Merge(*dataset, {{kShardB, 1}, {kShardA, generation}}, {1}, {8}),
                  "Stale SSTable compaction for shard " + shard +
                      ": proposed generation " + std::to_string(generation) +
                      " is not greater than the recorded generation 5");
  }
  ExpectRefused(Merge(*dataset, {{kShardA, 6}, {kShardA, 7}}),
                "Duplicate shard " + shard +
                    " in one SSTable compaction update; each shard may advance at most "
                    "once per transaction");
  EXPECT_KIND(ErrorKind::kInvalidInput, Merge(*dataset, {{"short", 6}}).status());
  ASSERT_OK_AND_ASSIGN(auto latest, Dataset::Open(MakeEnv(other.store)));
  EXPECT_EQ(latest->version(), 3);
  ASSERT_OK_AND_ASSIGN(auto values, ReadValues(*latest));
  EXPECT_EQ(values, (Values{1, 2, 3}));
}

TEST(MemWalEntry, CheckedAgainstTheVersionItLandsOn) {
  const TableEnv env = MakeEnv(io::MakeMemoryStore());
  ASSERT_OK_AND_ASSIGN(auto dataset, CreateWithEntry(env));
  const auto handle = [&] { return Dataset::Open(MakeEnv(env.store)); };
  ASSERT_OK_AND_ASSIGN(auto first, handle());
  ASSERT_OK_AND_ASSIGN(auto second, handle());
  ASSERT_OK_AND_ASSIGN(auto third, handle());
  ASSERT_OK_AND_ASSIGN(auto fourth, handle());
  ASSERT_OK_AND_ASSIGN(dataset, Merge(*first, {{kShardA, 3}}, {1}));
  ASSERT_OK_AND_ASSIGN(dataset, Merge(*second, {{kShardB, 1}}, {2}));  // another shard
  // Newer generations of a shard: to be merged into what the older ones left.
  EXPECT_KIND(ErrorKind::kRetryableConflict,
              Merge(*third, {{kShardA, 4}}, {3}, {7}).status());
  ASSERT_OK_AND_ASSIGN(third, third->Latest());
  ASSERT_OK_AND_ASSIGN(dataset, Merge(*third, {{kShardA, 4}}, {3}, {7}));
  EXPECT_KIND(ErrorKind::kRetryableConflict,
              Merge(*fourth, {{kShardA, 4}}, {}, {8}).status());
  ASSERT_OK_AND_ASSIGN(fourth, fourth->Latest());
  EXPECT_KIND(ErrorKind::kInvalidInput, Merge(*fourth, {{kShardA, 4}}, {}, {8}).status());
  ASSERT_OK_AND_ASSIGN(auto recorded, Recorded(*dataset));
  EXPECT_EQ(recorded, (Recording{{kShardA, 4}, {kShardB, 1}}));
  // Appends and deletes of others come between.
  ASSERT_OK_AND_ASSIGN(first, handle());
  ASSERT_OK_AND_ASSIGN(second, handle());
  ASSERT_OK_AND_ASSIGN(dataset, Append(MakeEnv(env.store), {20, 21}));
  ASSERT_OK_AND_ASSIGN(dataset, DeleteValues(*dataset, {20}));
  ASSERT_OK_AND_ASSIGN(dataset, Merge(*first, {{kShardA, 5}}, {7}, {70}));
  ASSERT_OK_AND_ASSIGN(dataset, Record(*second, {{kShardB, 2}}));
  ASSERT_OK_AND_ASSIGN(auto values, ReadValues(*dataset));
  EXPECT_EQ(values, (Values{21, 70}));
  ASSERT_OK_AND_ASSIGN(recorded, Recorded(*dataset));
  EXPECT_EQ(recorded, (Recording{{kShardA, 5}, {kShardB, 2}}));
}

TEST(MemWalEntry, OverwritesDropIt) {
  const TableEnv env = MakeEnv(io::MakeMemoryStore());
  ASSERT_OK_AND_ASSIGN(auto dataset, CreateWithEntry(env));
  ASSERT_OK_AND_ASSIGN(dataset, DeleteValues(*dataset, {1}));
  ASSERT_OK_AND_ASSIGN(bool has, HasMemWal(*dataset));
  EXPECT_TRUE(has);
  EXPECT_KIND(ErrorKind::kInvalidInput, CheckNoMemWal(*dataset, "do this to", "why"));
  WriteOptions options;
  options.mode = WriteMode::kOverwrite;
  ASSERT_OK_AND_ASSIGN(dataset, WriteValues(env, {1}, options));
  ASSERT_OK_AND_ASSIGN(has, HasMemWal(*dataset));
  EXPECT_FALSE(has);
  ASSERT_OK(CheckNoMemWal(*dataset, "do this to", "why"));
}

}  // namespace
}  // namespace glaive::table
