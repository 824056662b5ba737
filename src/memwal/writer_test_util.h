// A small table with an LSM write path, and what its writer shows, for tests.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <arrow/api.h>
#include <gtest/gtest.h>

#include "memwal/mem_wal_index.h"
#include "memwal/shard_writer.h"
#include "memwal/test_util.h"
#include "table/deletion_vector.h"
#include "table/fragment_reader.h"

namespace glaive::memwal {

using Rows = std::vector<std::pair<int64_t, std::string>>;
using Contents = std::map<int64_t, std::string>;

inline std::shared_ptr<arrow::Schema> WriterSchema() {
  return arrow::schema(
      {KeyField("id", arrow::int64()), arrow::field("text", arrow::utf8())});
}

inline std::shared_ptr<arrow::RecordBatch> MakeRows(const Rows& rows) {
  arrow::Int64Builder id;
  arrow::StringBuilder text;
  for (const auto& [key, value] : rows) {
    EXPECT_TRUE(id.Append(key).ok());
    EXPECT_TRUE(text.Append(value).ok());
  }
  return arrow::RecordBatch::Make(WriterSchema(), static_cast<int64_t>(rows.size()),
                                  {id.Finish().ValueOrDie(), text.Finish().ValueOrDie()});
}

inline std::shared_ptr<arrow::RecordBatch> MakeDeletes(const std::vector<int64_t>& ids) {
  arrow::Int64Builder id;
  EXPECT_TRUE(id.AppendValues(ids).ok());
  return arrow::RecordBatch::Make(arrow::schema({KeyField("id", arrow::int64())}),
                                  static_cast<int64_t>(ids.size()),
                                  {id.Finish().ValueOrDie()});
}

// An empty base with one shard.
inline Result<table::Dataset::Ptr> MakeLsmTable(const table::TableEnv& env) {
  GLAIVE_ASSIGN_OR_RETURN(auto base,
                          table::Dataset::WriteEmpty(env, *WriterSchema(), {}));
  InitializeOptions options;
  options.sharding = ShardingKind::kUnsharded;
  return Initialize(base, options);
}

inline ShardId TestShard() { return ShardId::Derive("unsharded"); }

// Live rows of a generation: nullopt for a tombstone. A key must not come twice.
inline Result<std::map<int64_t, std::optional<std::string>>> ReadGeneration(
    const table::Dataset& base, const std::string& name) {
  GLAIVE_ASSIGN_OR_RETURN(const std::string directory, GenerationDir(TestShard(), name));
  GLAIVE_ASSIGN_OR_RETURN(
      const auto dataset,
      table::Dataset::Open({base.env().runtime, base.env().store->Child(directory)}));
  if (dataset->num_fragments() != 1) return InternalError("not one fragment");
  GLAIVE_ASSIGN_OR_RETURN(const auto reader, dataset->OpenFragment(0));
  GLAIVE_ASSIGN_OR_RETURN(auto projection, reader->Bind(dataset->schema()));
  GLAIVE_ASSIGN_OR_RETURN(const auto batch,
                          reader->ReadRange(projection, 0, reader->physical_rows()));
  GLAIVE_RETURN_NOT_OK(batch->ValidateFull());
  const auto& id = static_cast<const arrow::Int64Array&>(*batch->GetColumnByName("id"));
  const auto& text =
      static_cast<const arrow::StringArray&>(*batch->GetColumnByName("text"));
  const auto& dead =
      static_cast<const arrow::BooleanArray&>(*batch->GetColumnByName(kTombstone));
  std::map<int64_t, std::optional<std::string>> rows;
  for (int64_t i = 0; i < batch->num_rows(); ++i) {
    if (reader->deletions() != nullptr &&
        reader->deletions()->Contains(static_cast<uint32_t>(i))) {
      continue;
    }
    auto value = dead.Value(i) ? std::nullopt : std::optional(text.GetString(i));
    if (!rows.emplace(id.Value(i), std::move(value)).second) {
      return InternalError("key ", id.Value(i), " comes twice in ", name);
    }
  }
  return rows;
}

// What a reader of `writer` sees: each source checked for itself, newest last.
inline Result<Contents> ReadWriter(ShardWriter& writer) {
  GLAIVE_ASSIGN_OR_RETURN(const WriterView view, writer.View());
  std::map<uint64_t, std::map<int64_t, std::optional<std::string>>> sources;
  for (const auto& sstable : view.manifest->sstables()) {
    GLAIVE_ASSIGN_OR_RETURN(sources[sstable.generation()],
                            ReadGeneration(*writer.base(), sstable.path()));
  }
  uint64_t newest = UINT64_MAX;
  for (const Memtable::View& memtable : view.memtables) {
    if (memtable.generation() >= newest) return InternalError("memtables out of order");
    newest = memtable.generation();
    auto& rows = sources[newest];
    rows.clear();  // of a generation that is in memory as well
    const std::vector<uint8_t>& live = memtable.live();
    const std::vector<uint32_t> superseded = memtable.Superseded();
    const std::set<uint32_t> replaced(superseded.begin(), superseded.end());
    uint32_t row = 0;
    for (const auto& batch : memtable.batches()) {
      const auto& id = static_cast<const arrow::Int64Array&>(*batch->column(0));
      const auto& text = static_cast<const arrow::StringArray&>(*batch->column(1));
      for (int64_t i = 0; i < batch->num_rows(); ++i, ++row) {
        if (replaced.contains(row)) continue;
        const bool alive = (live[row / 8] >> (row % 8) & 1) != 0;
        if (alive == memtable.IsTombstone(row)) return InternalError("live is wrong");
        auto value = alive ? std::optional(text.GetString(i)) : std::nullopt;
        if (!rows.emplace(id.Value(i), std::move(value)).second) {
          return InternalError("key ", id.Value(i), " comes twice in memory");
        }
      }
    }
  }
  Contents contents;
  for (const auto& [generation, rows] : sources) {
    for (const auto& [key, value] : rows) {
      if (value) {
        contents[key] = *value;
      } else {
        contents.erase(key);
      }
    }
  }
  return contents;
}

// One call of a history, and what it does to a plain map.
struct WriterCall {
  std::vector<Rows> puts;  // batches
  std::vector<std::vector<int64_t>> deletes;

  Status Run(ShardWriter& writer) const {
    BatchVector batches;
    for (const Rows& rows : puts) batches.push_back(MakeRows(rows));
    for (const auto& ids : deletes) batches.push_back(MakeDeletes(ids));
    return deletes.empty() ? writer.Put(batches) : writer.Delete(batches);
  }
  void ApplyTo(Contents* contents) const {
    for (const Rows& rows : puts) {
      for (const auto& [key, value] : rows) (*contents)[key] = value;
    }
    for (const auto& ids : deletes) {
      for (const int64_t id : ids) contents->erase(id);
    }
  }
};

// Keys repeat, within a call too.
inline WriterCall RandomCall(std::mt19937_64& random, int* serial) {
  WriterCall call;
  const auto batches = 1 + random() % 3;
  const bool put = random() % 4 != 0;
  for (uint64_t b = 0; b < batches; ++b) {
    const auto rows = 1 + random() % 5;
    if (put) {
      Rows& batch = call.puts.emplace_back();
      for (uint64_t i = 0; i < rows; ++i) {
        batch.emplace_back(random() % 12, "v" + std::to_string((*serial)++));
      }
    } else {
      auto& batch = call.deletes.emplace_back();
      for (uint64_t i = 0; i < rows; ++i) {
        batch.push_back(static_cast<int64_t>(random() % 12));
      }
    }
  }
  return call;
}

}  // namespace glaive::memwal
