// A base table and shards with generations for tests of convergence: rows are written
// with the table layer alone, and a dictionary says what must come out.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <arrow/api.h>
#include <arrow/util/key_value_metadata.h>
#include <gtest/gtest.h>

#include "exec/scan.h"
#include "format/memwal.pb.h"
#include "format/table.pb.h"
#include "format/transaction.pb.h"
#include "io/object_store.h"
#include "memwal/fresh_schema.h"
#include "memwal/generation_writer.h"
#include "memwal/lsm_read.h"
#include "memwal/lsm_snapshot.h"
#include "memwal/mem_wal_index.h"
#include "memwal/memtable.h"
#include "memwal/names.h"
#include "memwal/shard_manifest.h"
#include "memwal/test_util.h"
#include "runtime/runtime.h"
#include "table/dataset.h"

#ifndef EXPECT_OK
#define EXPECT_OK(expr)                                              \
  do {                                                               \
    const ::glaive::Status status_of_check = (expr);                 \
    EXPECT_TRUE(status_of_check.ok()) << status_of_check.ToString(); \
  } while (false)
#endif

namespace glaive::memwal {

// (id, word) is the key of composite tables, id alone otherwise.
using TestKey = std::pair<int64_t, std::string>;
using Model = std::map<TestKey, std::string>;

struct TestChange {
  TestKey key;
  std::optional<std::string> text;  // none: deleted
};

inline std::shared_ptr<arrow::Field> KeyField(const char* name,
                                              std::shared_ptr<arrow::DataType> type,
                                              int position) {
  return arrow::field(
      name, std::move(type), /*nullable=*/false,
      arrow::key_value_metadata({"lance-schema:unenforced-primary-key",
                                 "lance-schema:unenforced-primary-key:position"},
                                {"true", std::to_string(position)}));
}

// `text` cannot be null in the base.
inline std::shared_ptr<arrow::Schema> BaseSchema(bool composite) {
  return arrow::schema({KeyField("id", arrow::int64(), 1),
                        composite
                            ? KeyField("word", arrow::utf8(), 2)
                            : arrow::field("word", arrow::utf8(), /*nullable=*/true),
                        arrow::field("text", arrow::utf8(), /*nullable=*/false)});
}

inline table::TableEnv NewEnv(std::shared_ptr<io::ObjectStore> store, int threads = 2) {
  RuntimeOptions options;
  options.num_threads = threads;
  options.memory_budget_bytes = int64_t{1} << 30;
  options.cache_bytes = int64_t{64} << 20;
  table::TableEnv env;
  env.runtime = Runtime::Make(options).ValueOrDie();
  env.store = std::move(store);
  return env;
}

inline std::shared_ptr<arrow::RecordBatch> ToBatch(const std::vector<TestChange>& rows,
                                                   bool composite, bool tombstones) {
  arrow::Int64Builder id;
  arrow::StringBuilder word, text;
  arrow::BooleanBuilder dead;
  for (const TestChange& row : rows) {
    EXPECT_OK(id.Append(row.key.first));
    EXPECT_OK(row.text || composite ? word.Append(row.key.second) : word.AppendNull());
    EXPECT_OK(row.text ? text.Append(*row.text) : text.AppendNull());
    EXPECT_OK(dead.Append(!row.text));
  }
  auto fields = BaseSchema(composite)->fields();
  arrow::ArrayVector columns = {id.Finish().ValueOrDie(), word.Finish().ValueOrDie(),
                                text.Finish().ValueOrDie()};
  if (tombstones) {
    fields[2] = fields[2]->WithNullable(true);
    fields.push_back(arrow::field(kTombstone, arrow::boolean(), false));
    columns.push_back(dead.Finish().ValueOrDie());
  }
  return arrow::RecordBatch::Make(arrow::schema(fields),
                                  static_cast<int64_t>(rows.size()), std::move(columns));
}

inline Result<table::Dataset::Ptr> WriteBatch(
    const table::TableEnv& env, const std::shared_ptr<arrow::RecordBatch>& batch,
    const table::WriteOptions& options) {
  GLAIVE_ASSIGN_OR_RETURN(auto reader,
                          arrow::RecordBatchReader::Make({batch}, batch->schema()));
  return table::Dataset::Write(env, *reader, options);
}

inline Result<table::Dataset::Ptr> AttachMemWal(const table::Dataset::Ptr& base) {
  lance::table::Transaction transaction;
  auto* entry = transaction.mutable_create_index()->add_new_indices();
  entry->set_name("__lance_mem_wal");
  entry->mutable_uuid()->set_uuid(std::string(16, 'u'));
  entry->mutable_index_details()->set_type_url("/lance.table.MemWalIndexDetails");
  return base->Commit(std::move(transaction));
}

// A table with an LSM write path.
inline Result<table::Dataset::Ptr> MakeBase(const table::TableEnv& env, const Model& rows,
                                            bool composite, bool stable_ids = false) {
  std::vector<TestChange> changes;
  for (const auto& [key, text] : rows) changes.push_back({key, text});
  table::WriteOptions options;
  options.max_rows_per_file = 11;
  options.stable_row_ids = stable_ids;
  GLAIVE_ASSIGN_OR_RETURN(auto base,
                          WriteBatch(env, ToBatch(changes, composite, false), options));
  return AttachMemWal(base);
}

// A directory that looks like a generation.
inline Status WriteGenerationRows(const table::TableEnv& env,
                                  const std::string& directory,
                                  const std::vector<TestChange>& rows, bool composite) {
  table::TableEnv inner = env;
  inner.store = env.store->Child(directory);
  return WriteBatch(inner, ToBatch(rows, composite, true), {}).status();
}

// Writes and publishes the next generation of the shard: rows in the order they came;
// later ones of a key replace earlier ones.
inline Status AddGeneration(const table::TableEnv& env, const ShardId& shard,
                            const std::vector<TestChange>& rows, bool composite,
                            uint64_t replay_after = 0) {
  ShardManifests manifests(env.store, shard);
  GLAIVE_ASSIGN_OR_RETURN(auto manifest, manifests.ReadLatest());
  if (!manifest) {
    GLAIVE_ASSIGN_OR_RETURN(manifest, manifests.Claim(0));
  }
  const uint64_t generation = manifest->current_generation();
  GLAIVE_ASSIGN_OR_RETURN(auto base, table::Dataset::Open(env));
  GLAIVE_ASSIGN_OR_RETURN(const auto schema, FreshSchema::Make(*base));
  Memtable memtable(schema, generation);
  const auto batch = ToBatch(rows, composite, true);
  GLAIVE_RETURN_NOT_OK(memtable.Append({arrow::RecordBatch::Make(
      schema->storage(), batch->num_rows(), batch->columns())}));
  GenerationOptions options;
  options.file_version = base->file_version();
  GLAIVE_ASSIGN_OR_RETURN(const lance::table::SsTable written,
                          WriteGeneration(env, shard, memtable.Read(1), options));
  return manifests
      .Update(manifest->writer_epoch(), *manifest,
              [&](ShardManifest* next) {
                *next->add_sstables() = written;
                next->set_current_generation(generation + 1);
                if (replay_after > 0) {
                  next->set_replay_after_wal_entry_position(replay_after);
                  next->set_wal_entry_position_last_seen(replay_after);
                }
                return Status::OK();
              })
      .status();
}

inline void Apply(const std::vector<TestChange>& rows, Model* model) {
  for (const TestChange& row : rows) {
    if (row.text) {
      (*model)[row.key] = *row.text;
    } else {
      model->erase(row.key);
    }
  }
}

// Corruption when a key is there twice.
inline Result<Model> ToModel(const std::shared_ptr<arrow::Table>& table, bool composite) {
  Model rows;
  arrow::TableBatchReader reader(*table);
  GLAIVE_ASSIGN_OR_RETURN(const auto batches, reader.ToRecordBatches());
  for (const auto& batch : batches) {
    const auto& id = static_cast<const arrow::Int64Array&>(*batch->GetColumnByName("id"));
    const auto& word =
        static_cast<const arrow::StringArray&>(*batch->GetColumnByName("word"));
    const auto& text =
        static_cast<const arrow::StringArray&>(*batch->GetColumnByName("text"));
    for (int64_t i = 0; i < batch->num_rows(); ++i) {
      const TestKey key{id.Value(i), composite ? word.GetString(i) : std::string()};
      if (!rows.emplace(key, text.GetString(i)).second) {
        return Corruption("key ", key.first, ", ", key.second, " is there twice");
      }
    }
  }
  return rows;
}

// The base alone.
inline Result<Model> ReadBase(const table::TableEnv& env, bool composite) {
  GLAIVE_ASSIGN_OR_RETURN(auto base, table::Dataset::Open(env));
  GLAIVE_ASSIGN_OR_RETURN(auto table, exec::ScanToTable(base, exec::ScanOptions()));
  return ToModel(table, composite);
}

// The base and what is fresher.
inline Result<Model> ReadAll(const table::Dataset::Ptr& base, bool composite) {
  GLAIVE_ASSIGN_OR_RETURN(auto snapshot, LsmSnapshot::Open(base, Freshness::kFresh));
  GLAIVE_ASSIGN_OR_RETURN(auto table, LsmScanToTable(snapshot, LsmScanOptions()));
  return ToModel(table, composite);
}

inline Result<uint64_t> MergedGeneration(const table::TableEnv& env,
                                         const ShardId& shard) {
  GLAIVE_ASSIGN_OR_RETURN(auto base, table::Dataset::Open(env));
  GLAIVE_ASSIGN_OR_RETURN(const auto details, ReadDetails(*base));
  if (details == nullptr) return NotFound("no LSM write path");
  return CompactedGeneration(*details, shard);
}

}  // namespace glaive::memwal
