// Rows of every kind of column read the same from a memtable, a generation and the base.
#include <arrow/api.h>
#include <arrow/compute/api.h>
#include <arrow/compute/initialize.h>
#include <arrow/io/memory.h>
#include <arrow/json/api.h>
#include <arrow/util/key_value_metadata.h>
#include <gtest/gtest.h>

#include "file/json_columns.h"
#include "memwal/converge.h"
#include "memwal/lsm_read.h"
#include "memwal/mem_wal_index.h"
#include "memwal/shard_writer.h"
#include "memwal/test_util.h"

namespace glaive::memwal {
namespace {

std::shared_ptr<arrow::Schema> Schema() {
  const auto inner = arrow::struct_(
      {arrow::field("x", arrow::int32()), arrow::field("s", arrow::utf8())});
  return arrow::schema(
      {KeyField("id", arrow::int64()), arrow::field("flag", arrow::boolean()),
       arrow::field("small", arrow::int8(), false),
       arrow::field("half", arrow::float32()), arrow::field("text", arrow::large_utf8()),
       arrow::field("when", arrow::timestamp(arrow::TimeUnit::MICRO)),
       arrow::field("numbers", arrow::list(arrow::int16())), arrow::field("inner", inner),
       arrow::field("several", arrow::list(inner)),
       arrow::field("deep", arrow::struct_({arrow::field("list", arrow::list(inner)),
                                            arrow::field("plain", arrow::float64())})),
       arrow::field("doc", arrow::utf8(), true,
                    arrow::key_value_metadata({"ARROW:extension:name"}, {"arrow.json"})),
       arrow::field("vector", arrow::fixed_size_list(arrow::float32(), 2))});
}

std::shared_ptr<arrow::RecordBatch> Rows(int64_t first, int64_t count) {
  const auto schema = Schema();
  std::string text;
  for (int64_t i = first; i < first + count; ++i) {
    const std::string n = std::to_string(i);
    text += "{\"id\": " + n + ", \"small\": " + std::to_string(i % 100);
    if (i % 5 != 0) {
      text += ", \"flag\": true, \"half\": 1.5, \"text\": \"t" + n +
              "\", \"when\": \"2024-01-02 03:04:05\", \"numbers\": [" + n +
              ", null], \"inner\": {\"x\": " + n + ", \"s\": \"in\"}";
    }
    if (i % 3 != 0) {
      text +=
          ", \"several\": [{\"x\": 1, \"s\": null}, null], \"deep\": {\"list\": "
          "[{\"x\": " +
          n + "}], \"plain\": 0.5}, \"doc\": \"{\\\"a\\\": [" + n + "]}\"";
    }
    if (i % 4 != 0) text += ", \"vector\": [" + n + ", 1]";
    text += "}\n";
  }
  auto parse = arrow::json::ParseOptions::Defaults();
  arrow::FieldVector fields;
  for (const auto& field : schema->fields()) {
    fields.push_back(field->type()->id() == arrow::Type::FIXED_SIZE_LIST
                         ? field->WithType(arrow::list(arrow::float32()))
                         : field);
  }
  parse.explicit_schema = arrow::schema(fields);
  auto reader = arrow::json::TableReader::Make(
      arrow::default_memory_pool(),
      std::make_shared<arrow::io::BufferReader>(arrow::Buffer::FromString(text)),
      arrow::json::ReadOptions::Defaults(), parse);
  EXPECT_TRUE(arrow::compute::Initialize().ok());
  const auto batch = reader.ValueOrDie()->Read().ValueOrDie()->CombineChunksToBatch();
  arrow::ArrayVector columns;
  for (const auto& field : schema->fields()) {
    auto column = batch.ValueOrDie()->GetColumnByName(field->name());
    if (!column->type()->Equals(*field->type())) {
      column = arrow::compute::Cast(*column, field->type()).ValueOrDie();
    }
    columns.push_back(std::move(column));
  }
  return arrow::RecordBatch::Make(schema, count, std::move(columns));
}

std::shared_ptr<arrow::Table> Read(const table::Dataset::Ptr& base,
                                   const exec::Selection& select,
                                   const std::string& filter, uint64_t expected_sources) {
  auto snapshot = LsmSnapshot::Open(base, Freshness::kFresh);
  EXPECT_TRUE(snapshot.ok()) << snapshot.status().ToString();
  EXPECT_EQ((*snapshot)->num_generations(), static_cast<int64_t>(expected_sources));
  LsmScanOptions options;
  options.scan.select = select;
  options.scan.filter = filter;
  auto table = LsmScanToTable(*snapshot, options);
  EXPECT_TRUE(table.ok()) << table.status().ToString();
  auto order = arrow::compute::SortIndices(
      arrow::Datum(*table), arrow::compute::SortOptions({arrow::compute::SortKey("id")}));
  EXPECT_TRUE(order.ok()) << order.status().ToString();
  auto sorted = arrow::compute::Take(arrow::Datum(*table), arrow::Datum(*order));
  EXPECT_TRUE(sorted.ok()) << sorted.status().ToString();
  return *sorted->table()->CombineChunks();
}

TEST(LsmTypes, TheSameBeforeFlushAfterFlushAndAfterMerge) {
  const auto store = io::MakeMemoryStore();
  auto data = arrow::RecordBatchReader::Make({Rows(0, 20)}, Schema());
  ASSERT_OK_AND_ASSIGN(auto base, table::Dataset::Write(MakeEnv(store), **data, {}));
  ASSERT_OK_AND_ASSIGN(base, Initialize(base, {}));
  WriterConfig config;
  config.durability = Durability::kOs;
  const ShardId shard = ShardId::Derive("unsharded");
  ASSERT_OK_AND_ASSIGN(auto writer, ShardWriter::Open(base, shard, config));
  const auto& as_table = base->arrow_schema();
  for (const auto& [first, count] : {std::pair{15, 3}, {18, 1}, {19, 40}, {21, 2}}) {
    ASSERT_OK_AND_ASSIGN(const auto rows, file::JsonToStorage(Rows(first, count)));
    ASSERT_OK(writer->Put(
        {arrow::RecordBatch::Make(as_table, rows->num_rows(), rows->columns())}));
  }
  exec::Selection some;
  some.columns = {{{"id", "id"},
                   {"x", "inner.x"},
                   {"list", "deep.list"},
                   {"sum", "inner.x + small"},
                   {"doc", "doc"}}};
  exec::Selection nested;
  nested.nested = true;
  nested.columns = {{{"id", "id"}, {"inner.s", "inner.s"}, {"deep.plain", "deep.plain"}}};
  struct Case {
    exec::Selection select;
    std::string filter;
  };
  const std::vector<Case> cases = {
      {{}, ""}, {some, "inner.x > 16 OR flag IS NULL"}, {nested, "small < 50"}};
  std::vector<std::shared_ptr<arrow::Table>> before;
  for (const Case& c : cases) before.push_back(Read(base, c.select, c.filter, 0));
  ASSERT_EQ(before[0]->num_rows(), 59);
  const auto check = [&](uint64_t generations) {
    for (size_t i = 0; i < cases.size(); ++i) {
      const auto now = Read(base, cases[i].select, cases[i].filter, generations);
      ASSERT_TRUE(now->schema()->Equals(*before[i]->schema(), true));
      ASSERT_TRUE(now->Equals(*before[i])) << "case " << i << "\n"
                                           << now->ToString() << "\n"
                                           << before[i]->ToString();
    }
  };
  ASSERT_OK(writer->Flush().status());
  check(1);
  ASSERT_OK(writer->Close());
  ASSERT_OK_AND_ASSIGN(auto merged, CompactShard(base, shard));
  ASSERT_EQ(merged.generations_remaining, 0);
  base = merged.base;
  check(0);
}

}  // namespace
}  // namespace glaive::memwal
