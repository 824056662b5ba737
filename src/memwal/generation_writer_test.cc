#include "memwal/generation_writer.h"

#include <algorithm>
#include <set>

#include "format/table.pb.h"
#include "io/faulting_store.h"
#include "io/power_loss_store.h"
#include "memwal/bloom.h"
#include "memwal/keys.h"
#include "memwal/pk_sidecar.h"
#include "memwal/test_util.h"
#include "table/deletion_vector.h"
#include "table/fragment_reader.h"

namespace glaive::memwal {
namespace {

using Arrays = std::vector<std::shared_ptr<arrow::Array>>;

const ShardId kShard = ShardId::Derive("unsharded");

// A base table with a key and columns of several kinds, and a memtable of random rows.
struct Fixture {
  Fixture(std::vector<std::shared_ptr<arrow::DataType>> types, uint64_t seed,
          std::shared_ptr<io::ObjectStore> in, int threads = 2)
      : key_types(std::move(types)), random(seed), store(std::move(in)) {
    arrow::FieldVector fields;
    for (size_t c = 0; c < key_types.size(); ++c) {
      key_names.push_back("k" + std::to_string(c));
      fields.push_back(KeyField(key_names.back(), key_types[c], static_cast<int>(c) + 1));
    }
    fields.push_back(arrow::field("n", arrow::int64(), false));
    fields.push_back(
        arrow::field("s", arrow::struct_({arrow::field("f", arrow::float32()),
                                          arrow::field("t", arrow::utf8())})));
    base = MakeBase(arrow::schema(fields), store, {}, threads);
    schema = FreshSchema::Make(*base).ValueOrDie();
    memtable = std::make_unique<Memtable>(schema, 5);
  }

  void Append(int64_t rows, int spread = 40) {
    Arrays columns;
    for (const auto& type : key_types) {
      std::vector<KeyValue> values(static_cast<size_t>(rows));
      for (KeyValue& v : values) v = RandomKeyValue(*type, random, false, spread);
      columns.push_back(MakeKeys(*type, values));
    }
    arrow::Int64Builder n;
    arrow::FloatBuilder f;
    arrow::StringBuilder t;
    arrow::BooleanBuilder tombstones;
    for (int64_t i = 0; i < rows; ++i) {
      const bool tombstone = random() % 4 == 0;
      ASSERT_OK(tombstones.Append(tombstone));
      ASSERT_OK(tombstone ? n.AppendNull() : n.Append(next++));
      ASSERT_OK(random() % 3 == 0 ? f.AppendNull()
                                  : f.Append(static_cast<float>(random() % 9) - 4));
      ASSERT_OK(t.Append("t" + std::to_string(random() % 9)));
    }
    const auto& type = schema->storage()->GetFieldByName("s")->type();
    columns.push_back(n.Finish().ValueOrDie());
    columns.push_back(std::make_shared<arrow::StructArray>(
        type, rows,
        arrow::ArrayVector{f.Finish().ValueOrDie(), t.Finish().ValueOrDie()}));
    columns.push_back(tombstones.Finish().ValueOrDie());
    ASSERT_OK(
        memtable->Append({arrow::RecordBatch::Make(schema->storage(), rows, columns)}));
  }

  Memtable::View View() const { return memtable->Read(memtable->num_batches()); }

  Result<table::Dataset::Ptr> Open(const std::string& path) const {
    return table::Dataset::Open(
        {base->env().runtime, base->env().store->Child(ShardDir(kShard) + "/" + path)});
  }

  const std::vector<std::shared_ptr<arrow::DataType>> key_types;
  std::mt19937_64 random;
  const std::shared_ptr<io::ObjectStore> store;
  std::vector<std::string> key_names;
  table::Dataset::Ptr base;
  std::shared_ptr<const FreshSchema> schema;
  std::unique_ptr<Memtable> memtable;
  int64_t next = 0;
};

std::shared_ptr<arrow::Table> TableOf(const BatchVector& batches) {
  return arrow::Table::FromRecordBatches(batches)
      .ValueOrDie()
      ->ReplaceSchemaMetadata(nullptr)
      ->CombineChunks()
      .ValueOrDie();
}

std::shared_ptr<arrow::RecordBatch> AllRows(const table::Dataset& dataset) {
  auto reader = dataset.OpenFragment(0).ValueOrDie();
  auto projection = reader->Bind(dataset.schema()).ValueOrDie();
  return reader->ReadRange(projection, 0, reader->physical_rows()).ValueOrDie();
}

void CheckKeys(const GenerationKeys& keys, const Memtable::View& view) {
  std::set<std::string> expected, listed;
  view.VisitKeys(0, [&](std::string_view key) {
    expected.emplace(key);
    ASSERT_EQ(keys.Find(key), view.Find(key));
  });
  for (int64_t i = 0; i < keys.keys().size(); ++i) listed.emplace(keys.keys()[i]);
  EXPECT_EQ(listed, expected);
  EXPECT_EQ(keys.num_keys(), static_cast<int64_t>(expected.size()));
  EXPECT_EQ(keys.keys().size(), keys.num_keys());
  EXPECT_FALSE(keys.Contains("no key at all"));
  EXPECT_GT(keys.size_bytes(), 0);
}

TEST(WriteGeneration, RoundTrips) {
  std::mt19937_64 random(TestSeed());
  for (int round = 0; round < 40; ++round) {
    std::vector<std::shared_ptr<arrow::DataType>> types;
    for (uint64_t c = 0, n = 1 + random() % 3; c < n; ++c) {
      types.push_back(KeyTypes()[random() % KeyTypes().size()]);
    }
    Fixture f(types, random(), io::MakeMemoryStore());
    const int puts = 1 + static_cast<int>(random() % 4);
    for (int p = 0; p < puts; ++p) {
      f.Append(1 + static_cast<int64_t>(random() % (round % 10 == 0 ? 9000 : 40)),
               round % 2 == 0 ? 40 : 1 << 20);
    }
    const auto view = f.View();
    GenerationOptions options;
    options.file_version = static_cast<file::FileVersion>(random() % 3);
    if (random() % 2 == 0) options.btree_indices = {{"by_n", "n"}, {"by_f", "s.f"}};
    ASSERT_OK_AND_ASSIGN(const auto sstable,
                         WriteGeneration(f.base->env(), kShard, view, options));
    EXPECT_EQ(sstable.generation(), 5u);
    EXPECT_TRUE(sstable.path().ends_with("_gen_5"));
    EXPECT_EQ(sstable.physical_rows(), static_cast<uint64_t>(view.num_rows()));
    EXPECT_EQ(sstable.in_memory_bytes(), static_cast<uint64_t>(f.memtable->row_bytes()));
    EXPECT_EQ(sstable.primary_key_bytes(),
              static_cast<uint64_t>(f.memtable->key_bytes()));

    ASSERT_OK_AND_ASSIGN(const auto dataset, f.Open(sstable.path()));
    EXPECT_EQ(dataset->version(), 1);
    EXPECT_EQ(dataset->file_version(), options.file_version);
    EXPECT_FALSE(dataset->has_stable_row_ids());
    ASSERT_EQ(dataset->num_fragments(), 1);
    EXPECT_EQ(dataset->fragment_id(0), 0);
    const auto superseded = view.Superseded();
    EXPECT_EQ(dataset->physical_rows(0), view.num_rows());
    EXPECT_EQ(dataset->count_rows(),
              view.num_rows() - static_cast<int64_t>(superseded.size()));
    ASSERT_OK_AND_ASSIGN(const auto deletions, dataset->deletions(0));
    EXPECT_EQ(deletions ? deletions->ToOffsets() : std::vector<uint32_t>(), superseded);
    EXPECT_EQ(dataset->manifest().transaction_file(), "");
    EXPECT_FALSE(dataset->manifest().has_transaction_section());
    // Ids of the base, the tombstone behind them, flags of the key kept.
    for (const file::Field& field : f.base->schema().fields()) {
      const file::Field* kept = dataset->schema().FindById(field.id);
      ASSERT_NE(kept, nullptr);
      EXPECT_EQ(kept->name, field.name);
      EXPECT_EQ(kept->metadata, field.metadata);
      EXPECT_EQ(kept->nullable, field.name[0] != 'k');
    }
    EXPECT_EQ(dataset->schema().FindTopLevel(kTombstone)->id,
              f.base->schema().max_id() + 1);
    const auto rows = AllRows(*dataset);
    const auto expected = TableOf(view.batches());
    for (int c = 0; c < rows->num_columns(); ++c) {
      ASSERT_TRUE(rows->column(c)->Equals(expected->column(c)->chunk(0)))
          << rows->schema()->field(c)->ToString();
    }

    ASSERT_OK_AND_ASSIGN(const auto keys, GenerationKeys::Load(*dataset, f.key_names));
    CheckKeys(*keys, view);
    ASSERT_OK(dataset->env().store->DeleteTree(kPkIndexDir));
    ASSERT_OK_AND_ASSIGN(const auto read, GenerationKeys::Load(*dataset, f.key_names));
    CheckKeys(*read, view);

    ASSERT_OK_AND_ASSIGN(const auto bytes, dataset->env().store->Get(kBloomFile));
    ASSERT_OK_AND_ASSIGN(
        const auto bloom,
        KeyBloom::Parse({bytes->data(), static_cast<size_t>(bytes->size())}));
    Arrays key_columns;
    for (const auto& name : f.key_names) {
      key_columns.push_back(expected->GetColumnByName(name)->chunk(0));
    }
    for (int64_t i = 0; i < view.num_rows(); i += 7) {
      ASSERT_TRUE(bloom.MayContain(key_columns, i));
    }

    lance::table::IndexSection section;
    if (!options.btree_indices.empty()) {
      ASSERT_NE(dataset->index_section(), nullptr);
      ASSERT_TRUE(section.ParseFromString(*dataset->index_section()));
    }
    ASSERT_EQ(section.indices_size(), static_cast<int>(options.btree_indices.size()));
    for (const auto& index : section.indices()) {
      const auto& uuid = index.uuid().uuid();
      ASSERT_EQ(uuid.size(), 16u);
      EXPECT_EQ(index.dataset_version(), 1u);
      EXPECT_EQ(index.files_size(), 2);
      ASSERT_EQ(index.fields_size(), 1);
      const auto path = index.name() == "by_n" ? std::vector<std::string>{"n"}
                                               : std::vector<std::string>{"s", "f"};
      EXPECT_EQ(index.fields(0), f.base->schema().FindByPath(path)->id);
    }
  }
}

TEST(WriteGeneration, NamesOfItsFiles) {
  Fixture f({arrow::int64()}, TestSeed(), io::MakeMemoryStore());
  f.Append(200);
  GenerationOptions options;
  options.btree_indices = {{"by_n", "n"}};
  ASSERT_OK_AND_ASSIGN(const auto sstable,
                       WriteGeneration(f.base->env(), kShard, f.View(), options));
  ASSERT_OK_AND_ASSIGN(const auto dataset, f.Open(sstable.path()));
  ASSERT_OK_AND_ASSIGN(const auto files, dataset->env().store->List("", true));
  std::multiset<std::string> kinds;
  for (const auto& file : files) {
    if (file.is_directory) continue;
    const auto slash = file.path.rfind('/');
    const auto name =
        slash == std::string::npos ? file.path : file.path.substr(slash + 1);
    std::string kind = file.path.substr(0, file.path.find('/'));
    if (kind == "data" || kind == "_deletions") {
      kind += name.substr(name.rfind('.'));
      EXPECT_TRUE(kind == "data.lance" || name.starts_with("0-1-")) << name;
    } else if (slash != std::string::npos) {
      kind += "/" + name;
    }
    kinds.insert(kind);
  }
  EXPECT_EQ(kinds,
            (std::multiset<std::string>{
                "_deletions.bin", "_indices/page_data.lance",
                "_indices/page_lookup.lance", "_pk_index/page_data.lance",
                "_pk_index/page_lookup.lance", "_versions/18446744073709551614.manifest",
                "_versions/latest_version_hint.json", "bloom_filter.bin", "data.lance"}));
}

TEST(WriteGeneration, WithoutAKey) {
  Fixture f({}, TestSeed(), io::MakeMemoryStore());
  f.Append(20);
  ASSERT_OK_AND_ASSIGN(const auto sstable,
                       WriteGeneration(f.base->env(), kShard, f.View(), {}));
  EXPECT_FALSE(sstable.has_primary_key_bytes());
  ASSERT_OK_AND_ASSIGN(const auto dataset, f.Open(sstable.path()));
  EXPECT_EQ(dataset->count_rows(), 20);
  ASSERT_OK_AND_ASSIGN(const auto files, dataset->env().store->List(kPkIndexDir, true));
  EXPECT_TRUE(files.empty());
}

TEST(WriteGeneration, BadInput) {
  Fixture f({arrow::int64()}, TestSeed(), io::MakeMemoryStore());
  EXPECT_KIND(ErrorKind::kInvalidInput,
              WriteGeneration(f.base->env(), kShard, f.View(), {}).status());
  f.Append(3);
  GenerationOptions options;
  options.btree_indices = {{"by_x", "x"}};
  EXPECT_KIND(ErrorKind::kInvalidInput,
              WriteGeneration(f.base->env(), kShard, f.View(), options).status());
  options.btree_indices = {{"by_s", "s"}};
  EXPECT_KIND(ErrorKind::kNotSupported,
              WriteGeneration(f.base->env(), kShard, f.View(), options).status());
  ASSERT_OK_AND_ASSIGN(const auto left, f.store->List("_mem_wal", true));
  EXPECT_TRUE(left.empty());
}

// Store calls of a write fail, every `step`-th of them, in each way: an error, and
// nothing is left.
void FailCalls(const std::shared_ptr<io::ObjectStore>& inner, int64_t step) {
  auto injector = std::make_shared<io::FaultInjector>();
  const auto store = io::MakeFaultingStore(inner, injector);
  Fixture f({arrow::int64(), arrow::utf8()}, TestSeed(), store, /*threads=*/1);
  f.Append(50);
  GenerationOptions options;
  options.btree_indices = {{"by_n", "n"}};
  const auto view = f.View();
  for (const auto effect :
       {io::FaultEffect::kNotDone, io::FaultEffect::kTorn, io::FaultEffect::kDone}) {
    int64_t calls = 0;
    for (;; calls += step) {
      io::FaultPlan plan;
      plan.fail_at = calls;
      plan.effect = effect;
      injector->Arm(plan);
      const auto written = WriteGeneration(f.base->env(), kShard, view, options);
      const bool fired = injector->fired();
      injector->Disarm();
      ASSERT_OK_AND_ASSIGN(const auto left, inner->List("_mem_wal", true));
      if (!written.ok()) {
        ASSERT_TRUE(fired);
        std::string names;
        for (const auto& file : left) names += file.path + "\n";
        ASSERT_TRUE(left.empty()) << "call " << calls << ": " << names;
        continue;
      }
      // What is only a hint may fail.
      ASSERT_OK_AND_ASSIGN(const auto dataset, f.Open(written->path()));
      ASSERT_OK_AND_ASSIGN(const auto keys, GenerationKeys::Load(*dataset, f.key_names));
      CheckKeys(*keys, view);
      ASSERT_OK(inner->DeleteTree("_mem_wal"));
      if (!fired) break;
    }
    EXPECT_GE(calls, 20);
  }
}

TEST(WriteGeneration, FaultsInMemory) { FailCalls(io::MakeMemoryStore(), 1); }

TEST(WriteGeneration, FaultsOnDisk) {
  io::TemporaryDirectory directory;
  ASSERT_OK_AND_ASSIGN(const auto store, io::OpenLocalStore(directory.path(), false));
  FailCalls(store, Soak() ? 1 : 11);
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(directory.path())) {
    EXPECT_EQ(entry.path().string().find("_gen_"), std::string::npos) << entry.path();
  }
}

// All of a generation but the hint is on the disk when the call returns.
TEST(WriteGeneration, SurvivesAPowerCut) {
  std::mt19937_64 random(TestSeed());
  for (int round = 0; round < 20; ++round) {
    const io::PowerLoss before;
    Fixture f({arrow::int64()}, random(), before.store());
    f.Append(1 + static_cast<int64_t>(random() % 100));
    GenerationOptions options;
    if (round % 2 == 0) options.btree_indices = {{"by_n", "n"}};
    ASSERT_OK_AND_ASSIGN(const auto sstable,
                         WriteGeneration(f.base->env(), kShard, f.View(), options));
    ASSERT_OK_AND_ASSIGN(const auto after, before.CutPower(random));
    const auto root = ShardDir(kShard) + "/" + sstable.path();
    const auto there = before.store()->Child(root);
    const auto kept = after->store()->Child(root);
    ASSERT_OK_AND_ASSIGN(const auto files, there->List("", true));
    for (const auto& file : files) {
      if (file.is_directory || file.path.ends_with("_hint.json")) continue;
      ASSERT_OK_AND_ASSIGN(const auto written, there->Get(file.path));
      ASSERT_OK_AND_ASSIGN(const auto found, kept->Get(file.path));
      ASSERT_TRUE(written->Equals(*found)) << file.path;
    }
    ASSERT_OK_AND_ASSIGN(const auto dataset, table::Dataset::Open(MakeEnv(kept)));
    ASSERT_OK_AND_ASSIGN(const auto keys, GenerationKeys::Load(*dataset, f.key_names));
    CheckKeys(*keys, f.View());
  }
}

// Reading a key index that does not fit its generation.
TEST(GenerationKeys, DamagedSidecars) {
  Fixture f({arrow::int32()}, TestSeed(), io::MakeMemoryStore());
  f.Append(30);
  const auto view = f.View();
  ASSERT_OK_AND_ASSIGN(const auto sstable,
                       WriteGeneration(f.base->env(), kShard, view, {}));
  ASSERT_OK_AND_ASSIGN(const auto dataset, f.Open(sstable.path()));
  auto& store = *dataset->env().store;
  const std::string path = std::string(kPkIndexDir) + "/page_data.lance";
  ASSERT_OK_AND_ASSIGN(const auto good, store.Get(path));
  const std::string bytes = io::Text(good);
  const auto load = [&] { return GenerationKeys::Load(*dataset, f.key_names).status(); };

  // Of fewer and of more rows, of another type, of several columns.
  const auto column = TableOf(view.batches())->GetColumnByName("k0")->chunk(0);
  ASSERT_OK(WritePkSidecar(store, {column->Slice(1)}));
  EXPECT_KIND(ErrorKind::kCorruption, load());
  ASSERT_OK(WritePkSidecar(store, {arrow::Concatenate({column, column}).ValueOrDie()}));
  EXPECT_KIND(ErrorKind::kCorruption, load());
  ASSERT_OK(WritePkSidecar(store, {column, column}));
  EXPECT_KIND(ErrorKind::kCorruption, load());
  ASSERT_OK(WritePkSidecar(
      store, {arrow::MakeArrayFromScalar(arrow::Int64Scalar(1), 30).ValueOrDie()}));
  EXPECT_KIND(ErrorKind::kCorruption, load());

  std::mt19937_64 random(TestSeed());
  for (int i = 0; i < 300; ++i) {
    std::string damaged = bytes;
    if (i % 3 == 0) {
      damaged.resize(random() % damaged.size());
    } else {
      damaged[random() % damaged.size()] ^= static_cast<char>(1 << (random() % 8));
    }
    ASSERT_OK(store.Put(path, io::Bytes(damaged)));
    const Status status = load();  // an error or, where it changed a key, other keys
    if (!status.ok()) {
      EXPECT_TRUE(KindOf(status) == ErrorKind::kCorruption ||
                  KindOf(status) == ErrorKind::kNotSupported)
          << status.ToString();
    }
  }
  ASSERT_OK(store.Put(path, io::Bytes(bytes)));
  ASSERT_OK(load());
}

}  // namespace
}  // namespace glaive::memwal
