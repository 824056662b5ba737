// Reads over base, generations, log and memtables against a dictionary.
#include "memwal/lsm_read.h"

#include <array>
#include <atomic>
#include <map>
#include <optional>
#include <set>
#include <thread>

#include <arrow/api.h>
#include <arrow/util/key_value_metadata.h>
#include <gtest/gtest.h>

#include "exec/add_columns.h"
#include "exec/alter_columns.h"
#include "exec/scan.h"
#include "io/counting_store.h"
#include "memwal/converge.h"
#include "memwal/generation_writer.h"
#include "memwal/lsm_sources.h"
#include "memwal/mem_wal_index.h"
#include "memwal/memtable.h"
#include "memwal/shard_writer.h"
#include "memwal/test_util.h"
#include "memwal/wal.h"

#define EXPECT_OK(expr)                                              \
  do {                                                               \
    const auto& status_of_check = (expr);                            \
    EXPECT_TRUE(status_of_check.ok()) << status_of_check.ToString(); \
  } while (false)

namespace glaive::memwal {
namespace {

using table::Dataset;

constexpr int kDim = 3;

// A key: the second part only where the table has two key columns.
using Key = std::pair<int64_t, std::string>;
struct Row {
  std::map<int, std::optional<int64_t>> values;  // by column; columns without: null
  std::optional<std::array<float, kDim>> vector;
};
using Model = std::map<Key, Row>;

struct Column {
  int id;
  std::string name;
};

// A table and the shards that processes which are gone wrote, by hand.
class Table {
 public:
  // `live`: writers of this process write instead.
  Table(uint64_t seed, bool composite, int num_shards, std::shared_ptr<Runtime> runtime,
        std::shared_ptr<io::ObjectStore> store, bool live = false)
      : random_(seed), composite_(composite), live_(live) {
    env.runtime = std::move(runtime);
    env.store = std::move(store);
    columns = {{0, "v0"}, {1, "v1"}};
    next_column_ = 2;
    for (int s = 0; s < num_shards; ++s) {
      Shard shard;
      shard.id = ShardId::Derive("bucket-" + std::to_string(s));
      shards_.push_back(std::move(shard));
    }
  }

  ~Table() {
    if (live_ && base != nullptr) {
      WriterRegistry::Instance().AbortAll(base->env().store->root());
    }
  }

  uint64_t Below(uint64_t n) { return random_() % n; }

  std::shared_ptr<arrow::Schema> Schema() const {
    arrow::FieldVector fields = {KeyField("id", arrow::int64(), 1)};
    if (composite_) fields.push_back(KeyField("part", arrow::utf8(), 2));
    for (const Column& column : columns) {
      fields.push_back(arrow::field(column.name, arrow::int64(), column.id != 0));
    }
    fields.push_back(
        arrow::field("vector", arrow::fixed_size_list(arrow::float32(), kDim)));
    return arrow::schema(fields);
  }

  Key RandomKey() {
    return {
        static_cast<int64_t>(Below(60)) - 5,
        composite_ ? std::string(1, static_cast<char>('a' + Below(3))) : std::string()};
  }

  Row RandomRow() {
    Row row;
    for (const Column& column : columns) {
      if (column.id == 0 || Below(5) != 0) {
        row.values[column.id] = static_cast<int64_t>(Below(50));
      }
    }
    if (Below(6) != 0) {
      row.vector.emplace();
      for (float& v : *row.vector) v = static_cast<float>(Below(4));
    }
    return row;
  }

  std::shared_ptr<arrow::RecordBatch> Batch(
      const std::vector<std::pair<Key, Row>>& rows) const {
    arrow::Int64Builder id;
    arrow::StringBuilder part;
    std::vector<arrow::Int64Builder> values(columns.size());
    auto floats = std::make_shared<arrow::FloatBuilder>();
    arrow::FixedSizeListBuilder vector(arrow::default_memory_pool(), floats,
                                       Schema()->GetFieldByName("vector")->type());
    for (const auto& [key, row] : rows) {
      EXPECT_OK(id.Append(key.first));
      EXPECT_OK(part.Append(key.second));
      for (size_t c = 0; c < columns.size(); ++c) {
        const auto found = row.values.find(columns[c].id);
        const bool null = found == row.values.end() || !found->second;
        EXPECT_OK(null ? values[c].AppendNull() : values[c].Append(*found->second));
      }
      if (row.vector) {
        EXPECT_OK(vector.Append());
        EXPECT_OK(floats->AppendValues(row.vector->data(), kDim));
      } else {
        EXPECT_OK(vector.AppendNull());
      }
    }
    arrow::ArrayVector arrays = {*id.Finish()};
    if (composite_) arrays.push_back(*part.Finish());
    for (auto& builder : values) arrays.push_back(*builder.Finish());
    arrays.push_back(*vector.Finish());
    return arrow::RecordBatch::Make(Schema(), static_cast<int64_t>(rows.size()), arrays);
  }

  // New columns of the table come last.
  std::shared_ptr<arrow::RecordBatch> InTableOrder(
      const arrow::RecordBatch& batch) const {
    arrow::ArrayVector arrays;
    for (const auto& field : base->arrow_schema()->fields()) {
      arrays.push_back(batch.GetColumnByName(field->name()));
    }
    return arrow::RecordBatch::Make(base->arrow_schema(), batch.num_rows(), arrays);
  }

  std::shared_ptr<arrow::RecordBatch> KeyBatch(const std::vector<Key>& keys) const {
    std::vector<std::pair<Key, Row>> rows;
    for (const Key& key : keys) rows.emplace_back(key, Row());
    auto batch = Batch(rows);
    const std::vector<int> chosen =
        composite_ ? std::vector<int>{0, 1} : std::vector<int>{0};
    return *batch->SelectColumns(chosen);
  }

  void WriteBase(int rows) {
    Model distinct;
    for (int i = 0; i < rows; ++i) distinct[RandomKey()] = RandomRow();
    std::vector<std::pair<Key, Row>> all(distinct.begin(), distinct.end());
    table::WriteOptions options;
    options.max_rows_per_file = 16;
    options.stable_row_ids = Below(2) == 0;
    auto reader = arrow::RecordBatchReader::Make({Batch(all)}, Schema());
    auto written = Dataset::Write(env, **reader, options);
    EXPECT_OK(written.status());
    base = *written;
    auto deleted = exec::Delete(base, "id % 11 = 3");
    EXPECT_OK(deleted.status());
    base = deleted->dataset;
    std::erase_if(distinct, [](const auto& row) {
      return ((row.first.first % 11) + 11) % 11 == 3 && row.first.first >= 0;
    });
    fresh = flushed = distinct;
    auto initialized = Initialize(base, {});
    EXPECT_OK(initialized.status());
    base = *initialized;
    NewSchema();
  }

  // To one shard, by key.
  void Put(int rows) {
    std::map<size_t, std::vector<std::pair<Key, Row>>> by_shard;
    for (int i = 0; i < rows; ++i) {
      const Key key = RandomKey();
      by_shard[ShardOf(key)].emplace_back(key, RandomRow());
    }
    for (const auto& [s, batch] : by_shard) {
      if (live_) {
        std::shared_ptr<ShardWriter> writer;
        Writer(s, &writer);
        ASSERT_NE(writer, nullptr);
        ASSERT_OK(writer->Put({InTableOrder(*Batch(batch))}));
      } else {
        auto shaped = schema_->Shape(*InTableOrder(*Batch(batch)), 0);
        ASSERT_OK(shaped.status());
        Append(s, *shaped);
      }
      for (const auto& [key, row] : batch) fresh[key] = row;
    }
  }

  void Remove(int rows) {
    std::map<size_t, std::vector<Key>> by_shard;
    for (int i = 0; i < rows; ++i) {
      const Key key = RandomKey();
      by_shard[ShardOf(key)].push_back(key);
    }
    for (const auto& [s, keys] : by_shard) {
      if (live_) {
        std::shared_ptr<ShardWriter> writer;
        Writer(s, &writer);
        ASSERT_NE(writer, nullptr);
        ASSERT_OK(writer->Delete({KeyBatch(keys)}));
      } else {
        auto shaped = schema_->ShapeTombstones(*KeyBatch(keys));
        ASSERT_OK(shaped.status());
        Append(s, *shaped);
      }
      for (const Key& key : keys) fresh.erase(key);
    }
  }

  void Flush(size_t s) {
    Shard& shard = shards_[s];
    if (live_) {
      std::shared_ptr<ShardWriter> writer;
      Writer(s, &writer);
      ASSERT_NE(writer, nullptr);
      ASSERT_OK(writer->Flush().status());
      return;
    }
    if (shard.memtable == nullptr || shard.memtable->num_rows() == 0) return;
    GenerationOptions options;
    options.file_version = base->file_version();
    auto written = WriteGeneration(
        env, shard.id, shard.memtable->Read(shard.memtable->num_batches()), options);
    ASSERT_OK(written.status());
    auto updated = shard.manifests->Update(
        shard.manifest.writer_epoch(), shard.manifest, [&](ShardManifest* manifest) {
          *manifest->add_sstables() = *written;
          manifest->set_current_generation(written->generation() + 1);
          manifest->set_replay_after_wal_entry_position(shard.log->next_position() - 1);
          return Status::OK();
        });
    ASSERT_OK(updated.status());
    shard.manifest = *updated;
    shard.memtable.reset();
    for (auto it = flushed.begin(); it != flushed.end();) {
      it = ShardOf(it->first) == s ? flushed.erase(it) : std::next(it);
    }
    for (const auto& [key, row] : fresh) {
      if (ShardOf(key) == s) flushed[key] = row;
    }
  }
  void FlushSome() { Flush(Below(shards_.size())); }
  void FlushAll() {
    for (size_t s = 0; s < shards_.size(); ++s) Flush(s);
  }

  // Some generations get into the base, and perhaps away; readers may not know yet.
  void Merge() {
    const ShardId& shard = shards_[Below(shards_.size())].id;
    CompactOptions options;
    options.max_generations = 1 + static_cast<int>(Below(3));
    auto merged = CompactShard(base, shard, options);
    ASSERT_OK(merged.status());
    if (merged->generations_consumed > 0) has_merged = true;
    if (Below(2) == 0) {
      CollectOptions now;
      now.grace = std::chrono::milliseconds(0);
      ASSERT_OK(CollectShard(*merged->base, shard, now).status());
    }
    if (Below(2) == 0) base = merged->base;
  }

  void ChangeSchema() {
    FlushAll();
    auto latest = base->Latest();
    ASSERT_OK(latest.status());
    base = *latest;
    const uint64_t what = Below(3);
    if (what == 0) {
      Column& column = columns[Below(columns.size())];
      const std::string name = "r" + std::to_string(next_name_++);
      table::ColumnAlteration change;
      change.path = column.name;
      change.rename = name;
      auto altered = exec::AlterColumns(base, {&change, 1});
      ASSERT_OK(altered.status());
      base = *altered;
      column.name = name;
    } else if (what == 1) {
      const Column column{next_column_++, "n" + std::to_string(next_name_++)};
      auto added = exec::AddNullColumns(
          base, *arrow::schema({arrow::field(column.name, arrow::int64())}));
      ASSERT_OK(added.status());
      base = *added;
      columns.push_back(column);
    } else if (columns.size() > 1) {
      const size_t c = 1 + Below(columns.size() - 1);
      const std::string name = columns[c].name;
      auto dropped = exec::DropColumns(base, {&name, 1});
      ASSERT_OK(dropped.status());
      base = *dropped;
      columns.erase(columns.begin() + static_cast<int64_t>(c));
    }
    NewSchema();
  }

  table::TableEnv env;
  Dataset::Ptr base;
  std::vector<Column> columns;
  Model fresh, flushed;
  bool has_merged = false;

  bool composite() const { return composite_; }
  std::vector<ShardSnapshot> Snapshots() const {
    std::vector<ShardSnapshot> snapshots;
    for (const Shard& shard : shards_) {
      ShardSnapshot snapshot;
      snapshot.shard = shard.id;
      for (const auto& sstable : shard.manifest.sstables()) {
        snapshot.generations.emplace_back(sstable.generation(), sstable.path());
      }
      snapshots.push_back(std::move(snapshot));
    }
    return snapshots;
  }

 private:
  struct Shard {
    ShardId id;
    std::shared_ptr<ShardManifests> manifests;
    ShardManifest manifest;
    std::unique_ptr<WalAppender> log;
    std::unique_ptr<Memtable> memtable;
  };

  void Writer(size_t s, std::shared_ptr<ShardWriter>* writer) {
    WriterConfig config;
    config.durability = Durability::kOs;
    config.max_memtable_rows = 40;  // full ones are flushed while we go on
    auto got = WriterRegistry::Instance().Get(base, shards_[s].id, config);
    ASSERT_OK(got.status());
    *writer = *got;
  }

  size_t ShardOf(const Key& key) const {
    return static_cast<size_t>(key.first + 100) % shards_.size();
  }

  void NewSchema() {
    auto schema = FreshSchema::Make(*base);
    ASSERT_OK(schema.status());
    schema_ = *schema;
  }

  void Append(size_t s, const std::shared_ptr<arrow::RecordBatch>& batch) {
    Shard& shard = shards_[s];
    if (shard.manifests == nullptr) {
      shard.manifests = std::make_shared<ShardManifests>(env.store, shard.id);
      auto claimed = shard.manifests->Claim(0);
      ASSERT_OK(claimed.status());
      shard.manifest = *claimed;
      shard.log = std::make_unique<WalAppender>(
          env.store, shard.manifests, shard.manifest.writer_epoch(), WalAppendOptions{});
      shard.log->set_next_position(1);
    }
    if (shard.memtable == nullptr) {
      shard.memtable = std::make_unique<Memtable>(
          schema_, std::max<uint64_t>(1, shard.manifest.current_generation()));
    }
    WalEntryHeader header;
    header.writer_epoch = shard.manifest.writer_epoch();
    if (Below(3) != 0) header.generation = shard.memtable->generation();
    const auto declared =
        arrow::RecordBatch::Make(schema_->wal(), batch->num_rows(), batch->columns());
    auto entry = EncodeWalEntry(header, {declared});
    ASSERT_OK(entry.status());
    ASSERT_OK(shard.log->Append(*entry).status());
    ASSERT_OK(shard.memtable->Append({batch}));
  }

  std::mt19937_64 random_;
  const bool composite_;
  const bool live_;
  int next_column_ = 0;
  int next_name_ = 0;
  std::vector<Shard> shards_;
  std::shared_ptr<const FreshSchema> schema_;
};

std::optional<int64_t> IntAt(const arrow::Array& array, int64_t i) {
  if (array.IsNull(i)) return std::nullopt;
  return static_cast<const arrow::Int64Array&>(array).Value(i);
}

// The rows of a result, each key once.
void ToModel(const Table& table, const std::shared_ptr<arrow::Table>& rows,
             Model* model) {
  auto combined = rows->CombineChunksToBatch();
  ASSERT_OK(combined.status());
  const arrow::RecordBatch& batch = **combined;
  for (int64_t i = 0; i < batch.num_rows(); ++i) {
    Key key;
    key.first = *IntAt(*batch.GetColumnByName("id"), i);
    if (table.composite()) {
      key.second = static_cast<const arrow::StringArray&>(*batch.GetColumnByName("part"))
                       .GetString(i);
    }
    Row row;
    for (const Column& column : table.columns) {
      const auto array = batch.GetColumnByName(column.name);
      ASSERT_NE(array, nullptr) << column.name;
      row.values[column.id] = IntAt(*array, i);
    }
    const auto& vectors =
        static_cast<const arrow::FixedSizeListArray&>(*batch.GetColumnByName("vector"));
    if (vectors.IsValid(i)) {
      const auto& floats = static_cast<const arrow::FloatArray&>(*vectors.values());
      row.vector.emplace();
      for (int d = 0; d < kDim; ++d) {
        (*row.vector)[static_cast<size_t>(d)] = floats.Value(vectors.value_offset(i) + d);
      }
    }
    ASSERT_TRUE(model->emplace(key, row).second) << "key " << key.first << " twice";
  }
}

bool Same(const Table& table, const Row& a, const Row& b) {
  for (const Column& column : table.columns) {
    const auto value = [&](const Row& row) -> std::optional<int64_t> {
      const auto found = row.values.find(column.id);
      return found == row.values.end() ? std::nullopt : found->second;
    };
    if (value(a) != value(b)) return false;
  }
  return a.vector == b.vector;
}

void ExpectRows(const Table& table, const std::shared_ptr<arrow::Table>& rows,
                const Model& expected) {
  Model found;
  ToModel(table, rows, &found);
  for (const auto& [key, row] : expected) {
    ASSERT_TRUE(found.contains(key)) << "key " << key.first << key.second << " is gone";
    ASSERT_TRUE(Same(table, found[key], row)) << "key " << key.first << key.second;
  }
  ASSERT_EQ(found.size(), expected.size());
}

// Every kind of read of a snapshot.
void CheckReads(Table* table, const LsmSnapshot::Ptr& snapshot, const Model& model) {
  LsmScanOptions all;
  ASSERT_OK_AND_ASSIGN(auto rows, LsmScanToTable(snapshot, all));
  ExpectRows(*table, rows, model);
  ASSERT_OK_AND_ASSIGN(auto schema, LsmOutputSchema(*snapshot, all));
  ASSERT_TRUE(rows->schema()->Equals(*schema, true));
  ASSERT_OK_AND_ASSIGN(const int64_t count, LsmCountRows(snapshot, ""));
  ASSERT_EQ(count, static_cast<int64_t>(model.size()));

  // Filters see the newest version only, also where an old one would match.
  const Column& column = table->columns[table->Below(table->columns.size())];
  const auto bound = static_cast<int64_t>(table->Below(50));
  const std::string filter = column.name + " >= " + std::to_string(bound);
  Model matching;
  for (const auto& [key, row] : model) {
    const auto value = row.values.find(column.id);
    if (value != row.values.end() && value->second && *value->second >= bound) {
      matching.emplace(key, row);
    }
  }
  LsmScanOptions filtered;
  filtered.scan.filter = filter;
  ASSERT_OK_AND_ASSIGN(rows, LsmScanToTable(snapshot, filtered));
  ExpectRows(*table, rows, matching);
  ASSERT_OK_AND_ASSIGN(const int64_t matches, LsmCountRows(snapshot, filter));
  ASSERT_EQ(matches, static_cast<int64_t>(matching.size()));

  // Windows over the whole: those of the unlimited scan.
  for (const bool with_filter : {false, true}) {
    LsmScanOptions window = with_filter ? filtered : all;
    ASSERT_OK_AND_ASSIGN(const auto whole, LsmScanToTable(snapshot, window));
    window.scan.offset = static_cast<int64_t>(table->Below(30));
    if (table->Below(4) != 0) window.scan.limit = static_cast<int64_t>(table->Below(30));
    window.scan.batch_rows = 5;
    const auto expected = whole->Slice(std::min(window.scan.offset, whole->num_rows()),
                                       window.scan.limit.value_or(1000));
    ASSERT_OK_AND_ASSIGN(const auto at_once, LsmScanToTable(snapshot, window));
    ASSERT_TRUE(at_once->Equals(*expected)) << at_once->ToString();
    ASSERT_OK_AND_ASSIGN(auto reader, LsmScan(snapshot, window));
    ASSERT_OK_AND_ASSIGN(const auto streamed, reader->ToTable());
    ASSERT_TRUE(streamed->Equals(*expected));
  }

  // Row ids of base rows only; generations; computed columns.
  LsmScanOptions meta;
  meta.scan.select.columns = {{{"id", "id"}, {"twice", "id * 2"}, {"r", "_rowid"}}};
  meta.scan.select.with_row_address = true;
  meta.with_memtable_gen = true;
  ASSERT_OK_AND_ASSIGN(auto with_meta, LsmScanToTable(snapshot, meta));
  ASSERT_EQ(with_meta->num_rows(), count);
  ASSERT_EQ(with_meta->field(4)->name(), "_memtable_gen");
  ASSERT_OK_AND_ASSIGN(auto combined, with_meta->CombineChunksToBatch());
  for (int64_t i = 0; i < combined->num_rows(); ++i) {
    ASSERT_EQ(*IntAt(*combined->column(1), i), 2 * *IntAt(*combined->column(0), i));
    const auto generation =
        static_cast<const arrow::UInt64Array&>(*combined->column(4)).Value(i);
    ASSERT_EQ(combined->column(2)->IsValid(i), generation == 0);
    ASSERT_EQ(combined->column(3)->IsValid(i), generation == 0);
  }

  // Nearest neighbours against a sorted list of distances.
  for (const bool prefilter : {false, true}) {
    exec::NearestOptions nearest;
    nearest.column = "vector";
    nearest.k = 1 + static_cast<int64_t>(table->Below(20));
    nearest.offset = static_cast<int64_t>(table->Below(3));
    nearest.prefilter = prefilter;
    if (table->Below(2) == 0) nearest.filter = filter;
    if (table->Below(3) == 0) nearest.upper_bound = 9;
    auto floats = std::make_shared<arrow::FloatBuilder>();
    arrow::FixedSizeListBuilder queries(arrow::default_memory_pool(), floats, kDim);
    std::array<float, kDim> query;
    ASSERT_OK(queries.Append());
    for (float& v : query) {
      v = static_cast<float>(table->Below(4));
      ASSERT_OK(floats->Append(v));
    }
    nearest.queries = *queries.Finish();
    std::vector<std::pair<float, Key>> expected;
    for (const auto& [key, row] : model) {
      if (!row.vector) continue;
      if (prefilter && !nearest.filter.empty() && !matching.contains(key)) continue;
      float distance = 0;
      for (size_t d = 0; d < kDim; ++d) {
        distance += ((*row.vector)[d] - query[d]) * ((*row.vector)[d] - query[d]);
      }
      if (nearest.upper_bound && !(distance < *nearest.upper_bound)) continue;
      expected.emplace_back(distance, key);
    }
    std::sort(expected.begin(), expected.end());
    ASSERT_OK_AND_ASSIGN(auto found, LsmNearest(snapshot, nearest));
    Model found_rows;
    ToModel(*table, found, &found_rows);
    const bool postfilter = !prefilter && !nearest.filter.empty();
    const auto top =
        std::min(expected.size(), static_cast<size_t>(nearest.k + nearest.offset));
    const size_t skip = std::min(top, static_cast<size_t>(nearest.offset));
    if (postfilter) {
      ASSERT_LE(found->num_rows(), nearest.k);
    } else {
      ASSERT_EQ(found->num_rows(), static_cast<int64_t>(top - skip));
    }
    ASSERT_OK_AND_ASSIGN(auto batch, found->CombineChunksToBatch());
    const auto& distances =
        static_cast<const arrow::FloatArray&>(*batch->GetColumnByName("_distance"));
    for (int64_t i = 0; i < batch->num_rows(); ++i) {
      if (!postfilter) {
        ASSERT_EQ(distances.Value(i), expected[skip + static_cast<size_t>(i)].first);
      }
      ASSERT_LE(distances.Value(std::max<int64_t>(i, 1) - 1), distances.Value(i));
    }
    for (const auto& [key, row] : found_rows) {
      const auto known = model.find(key);
      ASSERT_NE(known, model.end());
      ASSERT_TRUE(Same(*table, known->second, row));
      ASSERT_TRUE(nearest.filter.empty() || matching.contains(key));
    }
  }

  // Keys that are there, were there, never were, and repeated ones.
  for (const int64_t many : {int64_t{1}, int64_t{12}}) {
    std::vector<Key> keys;
    Model expected;
    for (int64_t i = 0; i < many; ++i) {
      keys.push_back(table->RandomKey());
      const auto known = model.find(keys.back());
      if (known != model.end()) expected.insert(*known);
    }
    ASSERT_OK_AND_ASSIGN(auto found, LsmLookup(snapshot, *table->KeyBatch(keys), {}));
    ExpectRows(*table, found, expected);
    ASSERT_TRUE(found->schema()->Equals(*schema, true));
  }
}

TEST(LsmRead, RandomHistories) {
  std::mt19937_64 random(TestSeed());
  const auto runtime = Runtime::Make({.num_threads = 2}).ValueOrDie();
  const int histories = Soak() ? 8000 : 16;
  for (int h = 0; h < histories; ++h) {
    const bool live = h % 2 == 1;
    Table table(random(), random() % 3 == 0, 1 + static_cast<int>(random() % 2), runtime,
                io::MakeMemoryStore(), live);
    table.WriteBase(static_cast<int>(random() % 60) + 1);
    if (testing::Test::HasFailure()) return;
    for (int step = 0; step < 14; ++step) {
      switch (random() % 8) {
        case 0:
        case 1:
        case 2:
          table.Put(1 + static_cast<int>(random() % 20));
          break;
        case 3:
          table.Remove(1 + static_cast<int>(random() % 6));
          break;
        case 4:
        case 5:
          table.FlushSome();
          break;
        case 6:
          if (random() % 3 == 0) table.ChangeSchema();
          break;
        default:
          table.Merge();
          break;
      }
      if (testing::Test::HasFatalFailure() || random() % 3 == 0) continue;
      SCOPED_TRACE("history " + std::to_string(h) + ", step " + std::to_string(step));
      ASSERT_OK_AND_ASSIGN(auto fresh, LsmSnapshot::Open(table.base, Freshness::kFresh));
      CheckReads(&table, fresh, table.fresh);
      if (testing::Test::HasFailure()) return;
      if (live) continue;
      ASSERT_OK_AND_ASSIGN(auto flushed,
                           LsmSnapshot::Open(table.base, Freshness::kGenerations));
      CheckReads(&table, flushed, table.flushed);
      if (table.has_merged) continue;  // the generations named by hand may be gone
      ASSERT_OK_AND_ASSIGN(
          auto named, LsmSnapshot::OpenShards(table.base, table.Snapshots(), nullptr));
      ASSERT_OK_AND_ASSIGN(const int64_t rows, LsmCountRows(named, ""));
      ASSERT_EQ(rows, static_cast<int64_t>(table.flushed.size()));
      if (testing::Test::HasFailure()) return;
    }
  }
}

// While rows are put and memtables flushed, a reader sees each acknowledged row, once.
TEST(LsmRead, BesideAWriter) {
  Table table(5, false, 1, Runtime::Make({.num_threads = 2}).ValueOrDie(),
              io::MakeMemoryStore(), /*live=*/true);
  table.WriteBase(1);
  ASSERT_FALSE(testing::Test::HasFailure());
  const auto base_rows = static_cast<int64_t>(table.fresh.size());
  WriterConfig config;
  config.durability = Durability::kOs;
  config.max_memtable_rows = 25;
  ASSERT_OK_AND_ASSIGN(auto writer, WriterRegistry::Instance().Get(
                                        table.base, ShardId::Derive("bucket-0"), config));
  std::atomic<int64_t> acknowledged{0};
  std::atomic<bool> failed{false};
  const int64_t rows = Soak() ? 20000 : 1500;
  std::thread merger([&] {
    // The grace is longer than any read takes.
    CollectOptions collect;
    collect.grace = std::chrono::milliseconds(300);
    while (acknowledged < rows && !failed) {
      auto merged = CompactShard(table.base, writer->shard());
      if (!merged.ok() || !CollectShard(*merged->base, writer->shard(), collect).ok()) {
        failed = true;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  });
  std::thread putter([&] {
    for (int64_t i = 0; i < rows && !failed; ++i) {
      Row row;
      row.values[0] = i;
      // Each key a second time later on, which must not be seen as a second row.
      const int64_t key = 1000 + (i % 2 == 0 ? i : std::max<int64_t>(0, i - 31));
      if (!writer->Put({table.InTableOrder(*table.Batch({{{key, ""}, row}}))}).ok()) {
        failed = true;
      }
      acknowledged = i + 1;
    }
  });
  const auto distinct = [](int64_t puts) {
    std::set<int64_t> keys;
    for (int64_t i = 0; i < puts; ++i) {
      keys.insert(i % 2 == 0 ? i : std::max<int64_t>(0, i - 31));
    }
    return static_cast<int64_t>(keys.size());
  };
  while (acknowledged < rows && !failed) {
    const int64_t before = acknowledged;
    auto snapshot = LsmSnapshot::Open(table.base, Freshness::kFresh);
    const int64_t after = acknowledged;
    Result<int64_t> count =
        snapshot.ok() ? LsmCountRows(*snapshot, "") : Result<int64_t>(snapshot.status());
    const bool good = count.ok() && *count >= base_rows + distinct(before) &&
                      *count <= base_rows + distinct(after + 1);
    if (!good) failed = true;
    EXPECT_TRUE(good) << count.status().ToString() << " " << count.ValueOr(-1) << " of "
                      << base_rows << " + " << distinct(before);
  }
  putter.join();
  merger.join();
  ASSERT_FALSE(failed);
}

TEST(LsmRead, ManyGenerations) {
  const auto counters = std::make_shared<io::StoreCounters>();
  Table table(11, false, 1, Runtime::Make({.num_threads = 2}).ValueOrDie(),
              io::MakeCountingStore(io::MakeMemoryStore(), counters));
  table.WriteBase(60);
  for (int g = 0; g < 200; ++g) {
    table.Put(2);
    if (g % 5 == 0) table.Remove(1);
    table.FlushAll();
    ASSERT_FALSE(testing::Test::HasFailure());
  }
  ASSERT_OK_AND_ASSIGN(auto snapshot, LsmSnapshot::Open(table.base, Freshness::kFresh));
  ASSERT_EQ(snapshot->num_generations(), 200);
  CheckReads(&table, snapshot, table.fresh);
  // A second reader opens nothing that the first one did: it lists the shards, and looks
  // for newer manifests and log entries.
  ASSERT_OK_AND_ASSIGN(auto warm, LsmSnapshot::Open(table.base, Freshness::kFresh));
  for (int i = 0; i < 3; ++i) {
    ASSERT_OK(LsmLookup(warm, *table.KeyBatch({{i * 7, ""}}), {}).status());
  }
  counters->Reset();
  ASSERT_OK_AND_ASSIGN(auto again, LsmSnapshot::Open(table.base, Freshness::kFresh));
  ASSERT_LE(counters->total(), 12);
  counters->Reset();
  for (int i = 0; i < 3; ++i) {
    ASSERT_OK(LsmLookup(again, *table.KeyBatch({{i * 7, ""}}), {}).status());
  }
  ASSERT_LE(counters->count(io::StoreOp::kOpen), 0);
}

TEST(LsmRead, NothingThatIsKeptHoldsTheRuntime) {
  auto runtime = Runtime::Make({.num_threads = 2}).ValueOrDie();
  const std::weak_ptr<Runtime> weak = runtime;
  {
    Table table(3, false, 2, runtime, io::MakeMemoryStore());
    table.WriteBase(20);
    table.Put(9);
    table.FlushAll();
    table.Put(9);
    ASSERT_OK_AND_ASSIGN(auto snapshot, LsmSnapshot::Open(table.base, Freshness::kFresh));
    CheckReads(&table, snapshot, table.fresh);
  }
  runtime.reset();
  ASSERT_TRUE(weak.expired());
}

TEST(LsmRead, RefusesBadInput) {
  Table table(3, false, 1, Runtime::Make({.num_threads = 2}).ValueOrDie(),
              io::MakeMemoryStore());
  table.WriteBase(20);
  table.Put(5);
  table.FlushAll();
  ASSERT_OK_AND_ASSIGN(auto snapshot, LsmSnapshot::Open(table.base, Freshness::kFresh));
  LsmScanOptions options;
  options.scan.filter = "nothing = 1";
  EXPECT_KIND(ErrorKind::kInvalidInput, LsmScan(snapshot, options).status());
  options.scan.filter = "";
  options.scan.limit = -1;
  EXPECT_KIND(ErrorKind::kInvalidInput, LsmScan(snapshot, options).status());
  options.scan.limit.reset();
  options.scan.select.columns = {{{"x", "_tombstone"}}};
  EXPECT_KIND(ErrorKind::kInvalidInput, LsmScanToTable(snapshot, options).status());
  const auto two = *table.KeyBatch({{1, ""}})->AddColumn(
      1, "x", *arrow::MakeArrayOfNull(arrow::int64(), 1));
  EXPECT_KIND(ErrorKind::kInvalidInput, LsmLookup(snapshot, *two, {}).status());
  auto gone = table.Snapshots();
  gone[0].generations[0].second = "nowhere_gen_1";
  EXPECT_KIND(ErrorKind::kNotFound,
              LsmSnapshot::OpenShards(table.base, gone, nullptr).status());
  gone[0].generations[0] = {0, table.Snapshots()[0].generations[0].second};
  EXPECT_KIND(ErrorKind::kInvalidInput,
              LsmSnapshot::OpenShards(table.base, gone, nullptr).status());
  // A value that no key can have finds nothing; one of another type finds its row.
  const auto key = table.fresh.begin()->first;
  const auto as_text = arrow::RecordBatch::Make(
      arrow::schema({arrow::field("k", arrow::utf8())}), 2, {[&] {
        arrow::StringBuilder builder;
        EXPECT_OK(builder.Append(std::to_string(key.first)));
        EXPECT_OK(builder.Append("no number"));
        return *builder.Finish();
      }()});
  ASSERT_OK_AND_ASSIGN(auto found, LsmLookup(snapshot, *as_text, {}));
  ASSERT_EQ(found->num_rows(), 1);
}

}  // namespace
}  // namespace glaive::memwal
