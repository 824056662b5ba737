#include "memwal/mem_wal_index.h"

#include <thread>

#include "format/table.pb.h"
#include "format/transaction.pb.h"
#include "memwal/test_util.h"

namespace glaive::memwal {
namespace {

using arrow::field;

class MemWalIndexTest : public ::testing::Test {
 protected:
  MemWalIndexTest()
      : store_(io::MakeMemoryStore()),
        base_(MakeBase(
            arrow::schema({KeyField("id", arrow::int64()), field("text", arrow::utf8())}),
            store_)) {}
  lance::table::IndexSection Section(const table::Dataset& dataset) {
    lance::table::IndexSection section;
    if (dataset.index_section() != nullptr) {
      EXPECT_TRUE(section.ParseFromString(*dataset.index_section()));
    }
    return section;
  }
  // A version with an index as another writer would have made it.
  table::Dataset::Ptr WithIndex(const table::Dataset::Ptr& base, const std::string& name,
                                const std::string& type, const std::string& value = "") {
    lance::table::Transaction transaction;
    transaction.set_read_version(static_cast<uint64_t>(base->version()));
    auto* index = transaction.mutable_create_index()->add_new_indices();
    index->mutable_uuid()->set_uuid(std::string(16, name.back()));
    index->set_name(name);
    index->add_fields(0);
    index->mutable_index_details()->set_type_url(type);
    index->mutable_index_details()->set_value(value);
    auto committed = base->Commit(transaction);
    EXPECT_TRUE(committed.ok()) << committed.status().ToString();
    return *committed;
  }

  const std::shared_ptr<io::ObjectStore> store_;
  const table::Dataset::Ptr base_;
};

TEST_F(MemWalIndexTest, InitializesAndDrops) {
  ASSERT_OK_AND_ASSIGN(const auto none, ReadDetails(*base_));
  EXPECT_EQ(none, nullptr);
  EXPECT_KIND(ErrorKind::kInvalidInput, Drop(base_).status());
  InitializeOptions options;
  options.sharding = ShardingKind::kBucket;
  options.column = "id";
  options.num_buckets = 4;
  options.writer_config_defaults = {{"durable_write", "false"}};
  ASSERT_OK_AND_ASSIGN(const auto with, Initialize(base_, options));
  EXPECT_EQ(with->version(), 2);
  ASSERT_OK_AND_ASSIGN(const auto details, ReadDetails(*with));
  ASSERT_NE(details, nullptr);
  EXPECT_EQ(details->num_shards(), 4u);
  EXPECT_TRUE(details->maintain_all_indexes());
  EXPECT_EQ(details->writer_config_defaults().at("durable_write"), "false");
  ASSERT_OK_AND_ASSIGN(const auto again, ReadDetails(*with));
  EXPECT_EQ(again, details);  // cached
  ASSERT_OK_AND_ASSIGN(const auto reopened, table::Dataset::Open(MakeEnv(store_)));
  ASSERT_OK_AND_ASSIGN(const auto read, ReadDetails(*reopened));
  EXPECT_EQ(read->SerializeAsString(), details->SerializeAsString());

  const auto section = Section(*with);
  ASSERT_EQ(section.indices_size(), 1);
  const auto& entry = section.indices(0);
  EXPECT_EQ(entry.name(), "__lance_mem_wal");
  EXPECT_EQ(entry.fields_size(), 0);
  EXPECT_EQ(entry.dataset_version(), 1u);
  EXPECT_TRUE(entry.fragment_bitmap().empty());
  EXPECT_TRUE(entry.has_index_version());
  EXPECT_EQ(entry.index_version(), 0);
  EXPECT_GT(entry.created_at(), 1'600'000'000'000u);
  EXPECT_EQ(entry.index_details().type_url(), "/lance.table.MemWalIndexDetails");

  // From a stale snapshot as well.
  for (const auto& base : {with, base_}) {
    auto refused = Initialize(base, options);
    EXPECT_KIND(ErrorKind::kInvalidInput, refused.status());
    EXPECT_NE(
        refused.status().message().find("MemWAL is already initialized on this dataset."),
        std::string::npos);
  }
  ASSERT_OK_AND_ASSIGN(const auto without, Drop(base_));
  EXPECT_EQ(without->version(), 3);
  ASSERT_OK_AND_ASSIGN(const auto gone, ReadDetails(*without));
  EXPECT_EQ(gone, nullptr);
  ASSERT_OK_AND_ASSIGN(const auto second, Initialize(without, {}));
  ASSERT_OK_AND_ASSIGN(const auto manual, ReadDetails(*second));
  EXPECT_EQ(manual->sharding_specs_size(), 0);
  EXPECT_EQ(manual->num_shards(), 0u);
}

TEST_F(MemWalIndexTest, MaintainedIndexes) {
  auto base = WithIndex(base_, "bt", "/lance.table.BTreeIndexDetails");
  base = WithIndex(base, "bm", "/lance.table.BitmapIndexDetails");
  const auto refused = [&](const char* name, const char* message) {
    InitializeOptions options;
    options.maintained_indexes = {name};
    auto done = Initialize(base, options);
    EXPECT_KIND(ErrorKind::kInvalidInput, done.status());
    EXPECT_NE(done.status().message().find(message), std::string::npos);
  };
  refused("zz", "Index 'zz' from maintained_indexes not found on dataset");
  refused("bm",
          "index 'bm' has type /lance.table.BitmapIndexDetails, which no registered "
          "plugin maintains. Supported: [BTreeIndexDetails, VectorIndexDetails, "
          "InvertedIndexDetails]");
  // Of an index of texts its files must say how it makes tokens, and of which column.
  base = WithIndex(base, "fx", "/lance.table.InvertedIndexDetails");
  InitializeOptions options;
  options.maintained_indexes = {"fx"};
  auto numbers = Initialize(base, options);
  EXPECT_KIND(ErrorKind::kNotSupported, numbers.status());
  EXPECT_NE(numbers.status().message().find("'fx'"), std::string::npos);
  options.maintained_indexes = {"bt"};
  ASSERT_OK_AND_ASSIGN(const auto with, Initialize(base, options));
  ASSERT_OK_AND_ASSIGN(const auto details, ReadDetails(*with));
  ASSERT_EQ(details->maintained_indexes_size(), 1);
  EXPECT_EQ(details->maintained_indexes(0), "bt");
  EXPECT_TRUE(details->has_maintain_all_indexes());
  EXPECT_FALSE(details->maintain_all_indexes());
  // Other indices stay.
  ASSERT_OK_AND_ASSIGN(const auto without, Drop(with));
  EXPECT_EQ(Section(*without).indices_size(), 3);
}

TEST_F(MemWalIndexTest, RefusesKeysThatCannotBe) {
  const auto base =
      MakeBase(arrow::schema({KeyField("id", arrow::float64())}), io::MakeMemoryStore());
  auto refused = Initialize(base, {});
  EXPECT_KIND(ErrorKind::kInvalidInput, refused.status());
  EXPECT_NE(refused.status().message().find(
                "Primary key column 'id' has unsupported type Float64 for hashing"),
            std::string::npos);
  ASSERT_OK_AND_ASSIGN(const auto latest, base->Latest());
  EXPECT_EQ(latest->version(), 1);
}

TEST_F(MemWalIndexTest, RefusesDamagedDetails) {
  const auto damaged =
      WithIndex(base_, "__lance_mem_wal", "/lance.table.MemWalIndexDetails", "\xff\xff");
  EXPECT_KIND(ErrorKind::kCorruption, ReadDetails(*damaged).status());
  const auto other = WithIndex(
      MakeBase(arrow::schema({KeyField("id", arrow::int64())}), io::MakeMemoryStore()),
      "__lance_mem_wal", "/lance.table.SomethingElse");
  EXPECT_KIND(ErrorKind::kNotSupported, ReadDetails(*other).status());
  // Any package is accepted.
  MemWalDetails details;
  details.set_num_shards(3);
  auto* compacted = details.add_compacted_sstables();
  compacted->mutable_shard_id()->set_uuid(std::string(ShardId::Derive("x").bytes()));
  compacted->set_generation(5);
  const auto renamed = WithIndex(
      MakeBase(arrow::schema({KeyField("id", arrow::int64())}), io::MakeMemoryStore()),
      "__lance_mem_wal", "type.googleapis.com/lance.index.MemWalIndexDetails",
      details.SerializeAsString());
  ASSERT_OK_AND_ASSIGN(const auto read, ReadDetails(*renamed));
  EXPECT_EQ(read->num_shards(), 3u);
  EXPECT_EQ(CompactedGeneration(*read, ShardId::Derive("x")), 5u);
  EXPECT_EQ(CompactedGeneration(*read, ShardId::Derive("y")), 0u);
}

TEST_F(MemWalIndexTest, ProgressAlone) {
  const ShardId a = ShardId::Derive("a"), b = ShardId::Derive("b");
  EXPECT_KIND(ErrorKind::kInvalidInput, CommitMarkers(base_, {{a, 1}}).status());
  InitializeOptions options;
  options.writer_config_defaults = {{"durable_write", "false"}};
  ASSERT_OK_AND_ASSIGN(const auto with, Initialize(base_, options));
  ASSERT_OK_AND_ASSIGN(const auto marked, CommitMarkers(with, {{a, 3}, {b, 1}}));
  ASSERT_OK_AND_ASSIGN(const auto details, ReadDetails(*marked));
  EXPECT_EQ(CompactedGeneration(*details, a), 3u);
  EXPECT_EQ(CompactedGeneration(*details, b), 1u);
  EXPECT_EQ(details->writer_config_defaults().at("durable_write"), "false");
  EXPECT_NE(Section(*marked).indices(0).uuid().uuid(),
            Section(*with).indices(0).uuid().uuid());
  // From a stale snapshot, too: what counts is what is recorded.
  EXPECT_KIND(ErrorKind::kInvalidInput, CommitMarkers(with, {{a, 3}}).status());
  EXPECT_KIND(ErrorKind::kInvalidInput, CommitMarkers(marked, {{a, 2}}).status());
  EXPECT_KIND(ErrorKind::kInvalidInput, CommitMarkers(marked, {{a, 4}, {a, 5}}).status());
  ASSERT_OK_AND_ASSIGN(const auto later, CommitMarkers(with, {{a, 7}}));
  ASSERT_OK_AND_ASSIGN(const auto read, ReadDetails(*later));
  EXPECT_EQ(CompactedGeneration(*read, a), 7u);
  EXPECT_EQ(CompactedGeneration(*read, b), 1u);
  EXPECT_EQ(later->count_rows(), 0);
  ASSERT_OK_AND_ASSIGN(const auto dropped, Drop(with));
  ASSERT_OK_AND_ASSIGN(const auto gone, ReadDetails(*dropped));
  EXPECT_EQ(gone, nullptr);
}

TEST_F(MemWalIndexTest, OneOfSeveralInitializes) {
  constexpr int kThreads = 4;
  std::vector<Status> outcomes(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      const auto base = table::Dataset::Open(MakeEnv(store_, 1)).ValueOrDie();
      outcomes[static_cast<size_t>(t)] = Initialize(base, {}).status();
    });
  }
  for (auto& thread : threads) thread.join();
  int done = 0;
  for (const Status& status : outcomes) {
    if (status.ok()) {
      ++done;
    } else {
      EXPECT_KIND(ErrorKind::kInvalidInput, status);
    }
  }
  EXPECT_EQ(done, 1);
  ASSERT_OK_AND_ASSIGN(const auto latest, base_->Latest());
  EXPECT_EQ(Section(*latest).indices_size(), 1);
}

}  // namespace
}  // namespace glaive::memwal
