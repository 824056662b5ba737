// The writer of one shard: acknowledges rows when they are durable in the log, serves
// them at once, and turns full memtables into generations.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <arrow/type_fwd.h>

#include "base/status.h"
#include "memwal/memtable.h"
#include "memwal/names.h"
#include "memwal/shard_manifest.h"
#include "memwal/wal.h"
#include "table/dataset.h"

namespace glaive::memwal {

// Defaults are upstream's. Keys of `writer_config_defaults` are the names of the fields
// (see ConfigSettings).
struct WriterConfig {
  // False: puts return when their rows are visible; the log follows within
  // max_wal_flush_interval or when max_wal_buffer_size is pending. What is not appended
  // yet is lost with the process.
  bool durable_write = true;
  Durability durability = Durability::kFsync;  // "fsync" or "os"
  int64_t max_wal_buffer_size = int64_t{10} << 20;
  int64_t max_wal_flush_interval_ms = 100;  // only without durable_write
  int max_wal_persist_retries = 3;
  int64_t wal_persist_retry_base_delay_ms = 50;
  int64_t max_memtable_size = int64_t{256} << 20;
  int64_t max_memtable_rows = 100'000;
  int64_t max_memtable_batches = 8'000;
  int64_t max_unflushed_memtable_bytes = int64_t{1} << 30;
  // Entries name their memtable's generation, as pylance 14 does. LanceDB 0.40 cannot
  // replay such entries.
  bool write_generation = true;
  uint32_t shard_spec_id = 0;
};
// One setting of a writer that has a name.
struct ConfigSetting {
  std::string_view name;
  std::variant<bool WriterConfig::*, int WriterConfig::*, int64_t WriterConfig::*,
               Durability WriterConfig::*>
      field;
  // Whether a table may record a default for it.
  bool is_default = true;
};
std::span<const ConfigSetting> ConfigSettings();
// "fsync" or "os"; nullopt for other names.
std::optional<Durability> ParseDurability(std::string_view name);

// Values of a table's writer_config_defaults over `config`; unknown and unparsable ones
// are left out, as upstream does.
WriterConfig ApplyConfigDefaults(const std::map<std::string, std::string>& defaults,
                                 WriterConfig config);
// InvalidInput names the setting that no writer can work with.
Status CheckWriterConfig(const WriterConfig& config);

struct WriterStats {
  int64_t put_count = 0;  // deletes count as puts
  int64_t put_time_us = 0;
  int64_t wal_flush_count = 0;
  int64_t wal_flush_bytes = 0;
  int64_t wal_flush_time_us = 0;
  int64_t memtable_flush_count = 0;
  int64_t memtable_flush_rows = 0;
  int64_t memtable_flush_failures = 0;
  int64_t memtable_flush_time_us = 0;
};

struct MemtableStats {
  uint64_t generation = 0;
  int64_t row_count = 0;
  int64_t batch_count = 0;
  int64_t estimated_size_bytes = 0;
  int64_t index_bytes = 0;
  int64_t durable_batch_count = 0;  // since the writer was opened
  int64_t global_offset = 0;        // batches before the active memtable
  int64_t pending_wal_batch_count = 0;
  int64_t pending_wal_row_count = 0;
  int64_t pending_wal_estimated_bytes = 0;
  int64_t frozen_count = 0;  // memtables being flushed
  int64_t frozen_bytes = 0;
};

// What readers take of a live writer: memtables newest first, and a manifest that was
// read after them (duplicates are possible then, holes are not).
struct WriterView {
  std::vector<Memtable::View> memtables;          // without empty ones
  std::shared_ptr<const ShardManifest> manifest;  // never null
};

// Thread-safe. Puts of many threads share appends: whoever finds no append running writes
// what is pending, the others wait for it. A writer belongs to the process that opened
// it: in a forked child every call is Closed.
class ShardWriter : public std::enable_shared_from_this<ShardWriter> {
 public:
  struct Impl;  // shard_writer_impl.h

  // Checks the configuration, claims the shard (fencing any other writer), replays the
  // log behind the last generation. InvalidInput: no LSM write path, a bad configuration,
  // a maintained index of a kind that is not supported (NotSupported, by name).
  // Corruption names a damaged log entry.
  static Result<std::shared_ptr<ShardWriter>> Open(table::Dataset::Ptr base,
                                                   const ShardId& shard,
                                                   const WriterConfig& config);
  ~ShardWriter();  // without Close: what is in the log stays there

  const ShardId& shard() const;
  uint64_t epoch() const;
  // The version of the base that the writer was opened on.
  const table::Dataset::Ptr& base() const;
  const FreshSchema& schema() const;
  const WriterConfig& config() const;

  // Batches of the base's schema (FreshSchema::Shape); all become visible and durable
  // together. InvalidInput: no batch, an empty one, more rows than a memtable holds.
  // Closed, Fenced, WriterFailed; ResourceExhausted (retryable) when back-pressure finds
  // nothing that could drain.
  Status Put(const BatchVector& batches);
  // Batches with at least the key columns. A key that does not exist is no error.
  Status Delete(const BatchVector& keys);
  // Everything that `reader` gives, in puts of bounded size; each is durable by itself.
  // The number of rows; an error says how many rows before it were stored.
  Result<int64_t> PutStream(arrow::RecordBatchReader& reader);

  // Makes the rows that are visible now a generation, and waits for it. True when there
  // were any.
  Result<bool> Flush();
  // Flush, then no more calls. Idempotent. The writer is closed even when it fails.
  Status Close();
  // No more calls, no I/O: for tables that are dropped.
  void Abort();
  bool is_closed() const;
  // OK, or why the writer serves nothing any more.
  Status health() const;

  // Closed, Fenced, WriterFailed as Put.
  Result<WriterView> View();

  WriterStats stats() const;
  MemtableStats memtable_stats() const;

  // Called (on the flushing thread, outside all locks) after each generation that the
  // writer published. For upkeep. The callback must not wait for the writer (Flush,
  // Close).
  void set_on_flush(std::function<void(const ShardManifest&)> callback);
  bool has_on_flush() const;  // takes no lock

 private:
  explicit ShardWriter(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;  // its threads share it
};

// Writers that this process shares: one per table and shard, opened on demand. A writer
// that failed, was fenced or was closed is replaced by a new one at the next call, and so
// is one whose table has another schema now. Thread-safe; a forked child has none.
class WriterRegistry {
 public:
  static WriterRegistry& Instance();
  // `config` counts for a writer that is opened now.
  Result<std::shared_ptr<ShardWriter>> Get(const table::Dataset::Ptr& base,
                                           const ShardId& shard,
                                           const WriterConfig& config);
  // The open one, if any; healthy or not.
  std::shared_ptr<ShardWriter> Find(const table::Dataset& base, const ShardId& shard);
  std::vector<std::shared_ptr<ShardWriter>> FindAll(const table::Dataset& base);
  // Closes those of the table; the first error wins, all are closed.
  Status CloseAll(const table::Dataset& base);
  // Without I/O, for a table that is dropped: those of the table whose store has this
  // root.
  void AbortAll(const std::string& root);

 private:
  WriterRegistry();
  ~WriterRegistry();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace glaive::memwal
