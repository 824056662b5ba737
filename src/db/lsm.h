// Tables with an LSM write path: how they are set up, and the writes that take it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <arrow/type_fwd.h>

#include "base/status.h"
#include "exec/update.h"
#include "table/dataset.h"

namespace glaive {
class CancelToken;
namespace memwal {
struct UpkeepSettings;  // memwal/upkeep.h
}
}  // namespace glaive

namespace glaive::db {

enum class LsmSharding : uint8_t { kUnsharded, kBucket, kIdentity };

struct LsmWriteSpec {
  LsmSharding sharding = LsmSharding::kUnsharded;
  std::string column;       // bucket and identity
  int64_t num_buckets = 0;  // bucket
  // Unset: every index of the table. A spec that is read back has the list.
  std::optional<std::vector<std::string>> maintained_indexes;
  // Values of the writers' configuration by name; see memwal::ApplyConfigDefaults.
  std::map<std::string, std::string> writer_config_defaults;
};

// Nullopt: the table has no LSM write path.
Result<std::optional<LsmWriteSpec>> ReadLsmWriteSpec(const table::Dataset& base);

// Commits the spec. InvalidInput: one is set already, an unknown index or column, a
// column that cannot shard, a bad number of buckets.
Result<table::Dataset::Ptr> SetLsmWriteSpec(const table::Dataset::Ptr& base,
                                            const LsmWriteSpec& spec);
// Flushes and closes the writers of this process, then commits the removal. Rows that
// are not merged into the base are no longer seen.
Result<table::Dataset::Ptr> UnsetLsmWriteSpec(const table::Dataset::Ptr& base);

struct LsmWriteOutcome {
  int64_t num_rows = 0;  // written, duplicates counted
  // By key: how many were new, and how many replaced a row (each key once).
  int64_t num_inserted_rows = 0;
  int64_t num_updated_rows = 0;
  int64_t num_deleted_rows = 0;
};

struct LsmWriteOptions {
  // Refuse rows of more than one shard, as callers that spread rows by themselves want.
  bool single_shard = false;
  // Look up which keys exist, for the counters.
  bool count = true;
  // How generations that the writers make reach the base by themselves. Null: not at all.
  std::shared_ptr<const memwal::UpkeepSettings> upkeep;
  CancelToken* cancel = nullptr;
};

// Writes rows (of the base's columns, in any order, by name; see CoerceToSchema) through
// the writers of their shards: acknowledged rows are durable and visible on return. Of
// rows with one key the last counts. A call of moderate size is one put per shard; larger
// ones are several, each durable by itself. InvalidInput: no primary key, null shard
// values; Fenced when another process took the shard (the next call takes it back). Where
// a column that is no part of the key decides the shard, a row whose value changes moves:
// what its old shard holds of it is merged into the base first, within the call.
Result<LsmWriteOutcome> LsmUpsert(const table::Dataset::Ptr& base,
                                  std::shared_ptr<arrow::RecordBatchReader> rows,
                                  const LsmWriteOptions& options);
// Deletes the rows for which `predicate` is true, fresh ones included.
Result<LsmWriteOutcome> LsmDelete(const table::Dataset::Ptr& base,
                                  const std::string& predicate,
                                  const LsmWriteOptions& options);
// exec::Update over fresh rows and base. A row whose key changes is written under the new
// key first and deleted under the old one then.
Result<LsmWriteOutcome> LsmUpdate(const table::Dataset::Ptr& base,
                                  const exec::UpdateOptions& update,
                                  const LsmWriteOptions& options);

}  // namespace glaive::db
