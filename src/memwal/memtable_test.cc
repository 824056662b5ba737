#include "memwal/memtable.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <set>
#include <thread>

#include <arrow/util/bit_util.h>

#include "memwal/keys.h"
#include "memwal/test_util.h"

namespace glaive::memwal {
namespace {

using Arrays = std::vector<std::shared_ptr<arrow::Array>>;

struct ModelRow {
  std::string key;
  int64_t value = 0;
  bool tombstone = false;
};

bool Bit(const std::vector<uint8_t>& bits, int64_t i) {
  return arrow::bit_util::GetBit(bits.data(), i);
}

// Batches of a key and a number, whose rows the model knows.
class Rows {
 public:
  Rows(std::vector<std::shared_ptr<arrow::DataType>> key_types, uint64_t seed)
      : key_types_(std::move(key_types)), random_(seed) {
    arrow::FieldVector fields;
    for (size_t c = 0; c < key_types_.size(); ++c) {
      fields.push_back(
          KeyField("k" + std::to_string(c), key_types_[c], static_cast<int>(c) + 1));
    }
    fields.push_back(arrow::field("v", arrow::int64()));
    schema_ = MakeFresh(arrow::schema(fields));
  }

  const std::shared_ptr<const FreshSchema>& schema() const { return schema_; }
  std::mt19937_64& random() { return random_; }

  std::shared_ptr<arrow::RecordBatch> Batch(int64_t rows, std::vector<ModelRow>* model,
                                            int spread = 40) {
    Arrays columns;
    for (const auto& type : key_types_) {
      std::vector<KeyValue> values(static_cast<size_t>(rows) + 1);
      for (KeyValue& v : values) v = RandomKeyValue(*type, random_, false, spread);
      columns.push_back(MakeKeys(*type, values)->Slice(1));
    }
    auto keys = EncodeKeys(columns).ValueOrDie();
    arrow::Int64Builder values;
    arrow::BooleanBuilder tombstones;
    for (int64_t i = 0; i < rows; ++i) {
      ModelRow row{keys.size() > 0 ? std::string(keys[i]) : "", next_++,
                   random_() % 5 == 0};
      EXPECT_TRUE(values.Append(row.value).ok());
      EXPECT_TRUE(tombstones.Append(row.tombstone).ok());
      model->push_back(std::move(row));
    }
    columns.push_back(values.Finish().ValueOrDie());
    columns.push_back(tombstones.Finish().ValueOrDie());
    return arrow::RecordBatch::Make(schema_->storage(), rows, columns);
  }

 private:
  const std::vector<std::shared_ptr<arrow::DataType>> key_types_;
  std::mt19937_64 random_;
  std::shared_ptr<const FreshSchema> schema_;
  int64_t next_ = 0;
};

void Check(const Memtable::View& view, const std::vector<ModelRow>& all, int64_t rows,
           std::mt19937_64& random) {
  ASSERT_EQ(view.num_rows(), rows);
  std::map<std::string, int64_t> newest;
  std::vector<uint32_t> superseded;
  for (int64_t i = 0; i < rows; ++i) {
    const auto [at, added] = newest.emplace(all[static_cast<size_t>(i)].key, i);
    if (added) continue;
    superseded.push_back(static_cast<uint32_t>(at->second));
    at->second = i;
  }
  std::sort(superseded.begin(), superseded.end());
  ASSERT_EQ(view.Superseded(), superseded);
  int64_t num_live = 0;
  for (int64_t i = 0; i < rows; ++i) {
    const ModelRow& row = all[static_cast<size_t>(i)];
    const bool live = newest[row.key] == i && !row.tombstone;
    num_live += live ? 1 : 0;
    ASSERT_EQ(Bit(view.live(), i), live) << i;
    ASSERT_EQ(view.IsTombstone(i), row.tombstone);
    const auto one = view.Row(i);
    ASSERT_EQ(one->num_rows(), 1);
    ASSERT_EQ(static_cast<const arrow::Int64Array&>(*one->GetColumnByName("v")).Value(0),
              row.value);
  }
  ASSERT_EQ(view.num_live(), num_live);
  for (const ModelRow& row : all) {
    const auto at = newest.find(row.key);
    ASSERT_EQ(view.Find(row.key), at == newest.end() ? -1 : at->second);
  }
  const auto first = static_cast<int64_t>(random() % static_cast<uint64_t>(rows + 1));
  std::multiset<std::string> expected, visited;
  std::set<std::string> distinct;
  for (int64_t i = first; i < rows; ++i) distinct.insert(all[static_cast<size_t>(i)].key);
  expected.insert(distinct.begin(), distinct.end());
  view.VisitKeys(first, [&](std::string_view key) { visited.emplace(key); });
  ASSERT_EQ(visited, expected);
}

TEST(Memtable, AgainstADictionaryAtEveryWatermark) {
  std::mt19937_64 random(TestSeed());
  for (int round = 0; round < 60; ++round) {
    std::vector<std::shared_ptr<arrow::DataType>> types;
    for (uint64_t c = 0, n = 1 + random() % 3; c < n; ++c) {
      types.push_back(KeyTypes()[random() % KeyTypes().size()]);
    }
    Rows rows(types, random());
    Memtable memtable(rows.schema(), 7);
    EXPECT_EQ(memtable.generation(), 7u);
    std::vector<ModelRow> model;
    struct Kept {
      Memtable::View view;
      int64_t rows;
    };
    std::vector<Kept> kept;
    std::vector<int64_t> ends = {0};
    for (int put = 0; put < 8; ++put) {
      BatchVector batches;
      for (uint64_t b = 0, n = 1 + random() % 3; b < n; ++b) {
        batches.push_back(rows.Batch(1 + static_cast<int64_t>(random() % 60), &model));
        ends.push_back(static_cast<int64_t>(model.size()));
      }
      ASSERT_OK(memtable.Append(batches));
      ASSERT_EQ(memtable.num_rows(), static_cast<int64_t>(model.size()));
      ASSERT_EQ(memtable.num_batches(), static_cast<int64_t>(ends.size()) - 1);
      const auto visible = random() % ends.size();
      kept.push_back({memtable.Read(static_cast<int64_t>(visible)), ends[visible]});
      ASSERT_EQ(kept.back().view.batches().size(), visible);
    }
    kept.push_back({memtable.Read(memtable.num_batches()), ends.back()});
    for (const Kept& one : kept) Check(one.view, model, one.rows, random);
    std::set<std::string> distinct;
    for (const ModelRow& row : model) distinct.insert(row.key);
    EXPECT_EQ(memtable.has_overrides(), distinct.size() < model.size());
  }
}

TEST(Memtable, OneLargeBatchAndManySmallOnes) {
  Rows rows({arrow::int64()}, TestSeed());
  Memtable memtable(rows.schema(), 1);
  std::vector<ModelRow> model;
  ASSERT_OK(memtable.Append({rows.Batch(3000, &model, 1'000'000)}));
  for (int i = 0; i < 300; ++i) {
    ASSERT_OK(memtable.Append({rows.Batch(1, &model, 1'000'000)}));
  }
  Check(memtable.Read(301), model, 3300, rows.random());
  Check(memtable.Read(150), model, 3149, rows.random());
}

TEST(Memtable, ViewsOutliveIt) {
  Rows rows({arrow::utf8()}, TestSeed());
  std::vector<ModelRow> model;
  auto memtable = std::make_unique<Memtable>(rows.schema(), 3);
  ASSERT_OK(memtable->Append({rows.Batch(100, &model)}));
  const Memtable::View view = memtable->Read(1);
  memtable.reset();
  EXPECT_EQ(view.generation(), 3u);
  Check(view, model, 100, rows.random());
}

TEST(Memtable, WithoutAKeyAllRowsStay) {
  const auto schema = MakeFresh(arrow::schema({arrow::field("v", arrow::int64())}));
  Memtable memtable(schema, 1);
  arrow::Int64Builder values;
  arrow::BooleanBuilder tombstones;
  for (int64_t i = 0; i < 10; ++i) {
    ASSERT_OK(values.Append(1));
    ASSERT_OK(tombstones.Append(false));
  }
  const auto batch = arrow::RecordBatch::Make(
      schema->storage(), 10,
      {values.Finish().ValueOrDie(), tombstones.Finish().ValueOrDie()});
  ASSERT_OK(memtable.Append({batch, batch}));
  const auto view = memtable.Read(2);
  EXPECT_EQ(view.num_rows(), 20);
  EXPECT_EQ(view.num_live(), 20);
  EXPECT_EQ(view.live().size(), 3u);
  EXPECT_TRUE(view.Superseded().empty());
  EXPECT_EQ(view.Find("x"), -1);
  EXPECT_FALSE(memtable.has_overrides());
  EXPECT_EQ(memtable.key_bytes(), 0);
}

TEST(Memtable, NothingOfABatchThatDoesNotFit) {
  Rows rows({arrow::int64()}, TestSeed());
  Memtable memtable(rows.schema(), 1);
  std::vector<ModelRow> model;
  const auto good = rows.Batch(5, &model);
  const auto bad = good->RemoveColumn(1).ValueOrDie();
  EXPECT_FALSE(memtable.Append({good, bad}).ok());
  EXPECT_EQ(memtable.num_rows(), 0);
  EXPECT_EQ(memtable.Read(1).num_rows(), 0);
  ASSERT_OK(memtable.Append({good}));
  Check(memtable.Read(1), model, 5, rows.random());
}

TEST(Memtable, BytesAreCountedOnce) {
  const auto schema = MakeFresh(arrow::schema(
      {KeyField("id", arrow::int64()), arrow::field("text", arrow::utf8()),
       arrow::field("vector", arrow::fixed_size_list(arrow::float32(), 4))}));
  constexpr int64_t kRows = 1000;
  arrow::Int64Builder ids;
  arrow::StringBuilder texts;
  auto floats = std::make_shared<arrow::FloatBuilder>();
  arrow::FixedSizeListBuilder vectors(arrow::default_memory_pool(), floats, 4);
  arrow::BooleanBuilder tombstones;
  for (int64_t i = 0; i < kRows; ++i) {
    ASSERT_OK(ids.Append(i));
    ASSERT_OK(texts.Append("abcd"));
    ASSERT_OK(vectors.Append());
    for (int d = 0; d < 4; ++d) ASSERT_OK(floats->Append(1.0f));
    ASSERT_OK(tombstones.Append(false));
  }
  const auto whole = arrow::RecordBatch::Make(
      schema->storage(), kRows,
      {ids.Finish().ValueOrDie(), texts.Finish().ValueOrDie(),
       vectors.Finish().ValueOrDie(), tombstones.Finish().ValueOrDie()});
  Memtable one(schema, 1), sliced(schema, 1);
  ASSERT_OK(one.Append({whole}));
  for (int64_t at = 0; at < kRows; at += 100) {
    ASSERT_OK(sliced.Append({whole->Slice(at, 100)}));
  }
  // 8 per id, 4 per text and 4 per offset, 16 per vector, a bit.
  EXPECT_EQ(one.row_bytes(), 8000 + 4000 + 4000 + 16000 + 125);
  EXPECT_EQ(sliced.row_bytes(), 8000 + 4000 + 4000 + 16000 + 130);
  EXPECT_EQ(one.key_bytes(), 8000);
  EXPECT_EQ(sliced.key_bytes(), 8000);
  EXPECT_EQ(one.Read(1).key_bytes(), 8000);
  EXPECT_EQ(sliced.Read(5).row_bytes(), sliced.row_bytes() / 2);
  // Buffers are capacity, rounded up by the allocator; the slices share them.
  EXPECT_GE(one.resident_bytes(), one.row_bytes());
  EXPECT_LT(one.resident_bytes(), one.row_bytes() + 400'000);
  EXPECT_LT(std::abs(sliced.resident_bytes() - one.resident_bytes()), 8000);
}

// One writer, several readers: what a reader was told of is there, and only that.
TEST(Memtable, ReadersBesideTheWriter) {
  Rows rows({arrow::int64()}, TestSeed());
  const int puts = Soak() ? 5000 : 300;
  std::vector<ModelRow> model;
  std::vector<BatchVector> all;
  std::vector<int64_t> batch_ends = {0};
  for (int p = 0; p < puts; ++p) {
    BatchVector batches;
    for (uint64_t b = 0, n = 1 + rows.random()() % 2; b < n; ++b) {
      batches.push_back(
          rows.Batch(1 + static_cast<int64_t>(rows.random()() % 30), &model, 500));
      batch_ends.push_back(static_cast<int64_t>(model.size()));
    }
    all.push_back(std::move(batches));
  }
  Memtable memtable(rows.schema(), 1);
  std::atomic<bool> done{false};
  std::atomic<int> wrong{0};
  std::vector<std::thread> readers;
  for (int r = 0; r < 3; ++r) {
    readers.emplace_back([&, r] {
      std::mt19937_64 random(static_cast<uint64_t>(r));
      do {
        const int64_t visible = memtable.num_batches();
        const Memtable::View view = memtable.Read(visible);
        const int64_t n = view.num_rows();
        if (n != batch_ends[static_cast<size_t>(visible)]) ++wrong;
        if (n == 0) continue;
        for (int k = 0; k < 20; ++k) {
          const auto row = static_cast<int64_t>(random() % static_cast<uint64_t>(n));
          const std::string& key = model[static_cast<size_t>(row)].key;
          const int64_t found = view.Find(key);
          if (found < row || found >= n || model[static_cast<size_t>(found)].key != key) {
            ++wrong;
            continue;
          }
          const auto one = view.Row(found);
          const auto& v = static_cast<const arrow::Int64Array&>(*one->column(1));
          if (v.Value(0) != model[static_cast<size_t>(found)].value) ++wrong;
          if (view.IsTombstone(found) != model[static_cast<size_t>(found)].tombstone) {
            ++wrong;
          }
          if (k == 0) {
            const bool live = !view.IsTombstone(found);
            if (Bit(view.live(), found) != live) ++wrong;
            if (found != row && Bit(view.live(), row)) ++wrong;
          }
        }
      } while (!done);
    });
  }
  for (const BatchVector& batches : all) ASSERT_OK(memtable.Append(batches));
  done = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(wrong, 0);
  Check(memtable.Read(memtable.num_batches()), model, static_cast<int64_t>(model.size()),
        rows.random());
}

}  // namespace
}  // namespace glaive::memwal
