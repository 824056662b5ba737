// glaive._glaive: the log, the manifests of shards and the MemWAL index, for tests.
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <arrow/record_batch.h>
#include <arrow/table.h>
#include <arrow/type.h>

#include "arrow_interop.h"
#include "bindings.h"
#include "call.h"
#include "db/environment.h"
#include "memwal/fresh_schema.h"
#include "memwal/mem_wal_index.h"
#include "memwal/sharding.h"
#include "memwal/wal.h"

namespace glaive::python {
namespace {

Result<table::Dataset::Ptr> OpenDataset(const std::string& uri) {
  GLAIVE_ASSIGN_OR_RETURN(const auto env, db::OpenTableEnv(uri, /*create=*/false));
  return table::Dataset::Open(env);
}

// A claim, a sentinel and one entry for each of `calls` ("put" or "delete" and
// rows); nothing but the log. Returns epoch and positions.
nb::tuple WriteLog(const std::string& uri, const std::string& shard,
                   std::vector<std::pair<std::string, nb::object>> calls,
                   std::optional<uint64_t> generation, bool durable) {
  Call call;
  std::vector<std::shared_ptr<arrow::RecordBatchReader>> streams;
  for (const auto& [kind, rows] : calls) streams.push_back(ImportStream(rows, &call));
  struct Written {
    uint64_t epoch = 0;
    std::vector<uint64_t> positions;
  };
  const auto written = call.Run([&]() -> Result<Written> {
    GLAIVE_ASSIGN_OR_RETURN(const auto base, OpenDataset(uri));
    GLAIVE_ASSIGN_OR_RETURN(const auto id, memwal::ShardId::Parse(shard));
    GLAIVE_ASSIGN_OR_RETURN(const auto schema, memwal::FreshSchema::Make(*base));
    const auto& store = base->env().store;
    const auto manifests = std::make_shared<memwal::ShardManifests>(store, id);
    GLAIVE_ASSIGN_OR_RETURN(const auto manifest, manifests->Claim(1));
    Written out{manifest.writer_epoch(), {}};
    memwal::WalAppendOptions options;
    options.durability = durable ? memwal::Durability::kFsync : memwal::Durability::kOs;
    memwal::WalAppender appender(store, manifests, out.epoch, options);
    uint64_t next = manifest.replay_after_wal_entry_position() + 1;
    if (out.epoch > 1) {
      GLAIVE_ASSIGN_OR_RETURN(next, appender.AppendSentinel(next));
      ++next;
    }
    appender.set_next_position(next);
    for (size_t i = 0; i < streams.size(); ++i) {
      GLAIVE_ASSIGN_OR_RETURN(auto batches, streams[i]->ToRecordBatches());
      for (size_t b = 0; b < batches.size(); ++b) {
        auto shaped = calls[i].first == "put"
                          ? schema->Shape(*batches[b], static_cast<int>(b))
                          : schema->ShapeTombstones(*batches[b]);
        GLAIVE_RETURN_NOT_OK(shaped.status());
        batches[b] = arrow::RecordBatch::Make(schema->wal(), (*shaped)->num_rows(),
                                              (*shaped)->columns());
      }
      GLAIVE_ASSIGN_OR_RETURN(const auto entry,
                              memwal::EncodeWalEntry({out.epoch, generation}, batches));
      GLAIVE_ASSIGN_OR_RETURN(const uint64_t position, appender.Append(entry));
      out.positions.push_back(position);
    }
    return out;
  });
  return nb::make_tuple(written.epoch, written.positions);
}

// All entries of the log as (position, epoch, generation, sentinel, rows in
// the table's columns and `_tombstone`).
nb::list ReadLog(const std::string& uri, const std::string& shard, uint64_t first) {
  Call call;
  std::vector<std::shared_ptr<arrow::Table>> tables;
  const auto tail = call.Run([&]() -> Result<memwal::WalReader::Tail> {
    GLAIVE_ASSIGN_OR_RETURN(const auto base, OpenDataset(uri));
    GLAIVE_ASSIGN_OR_RETURN(const auto id, memwal::ShardId::Parse(shard));
    GLAIVE_ASSIGN_OR_RETURN(const auto schema, memwal::FreshSchema::Make(*base));
    const memwal::WalReader reader(base->env().store, id);
    GLAIVE_ASSIGN_OR_RETURN(auto read, reader.ReadFrom(first));
    for (const auto& entry : read.entries) {
      memwal::BatchVector rows;
      for (const auto& batch : entry.batches) {
        GLAIVE_ASSIGN_OR_RETURN(auto conformed, schema->Conform(*batch));
        rows.push_back(std::move(conformed));
      }
      GLAIVE_ASSIGN_OR_RETURN(auto table,
                              arrow::Table::FromRecordBatches(schema->storage(), rows));
      tables.push_back(std::move(table));
    }
    return read;
  });
  nb::list out;
  for (size_t i = 0; i < tables.size(); ++i) {
    const memwal::WalEntry& entry = tail.entries[i];
    out.append(nb::make_tuple(entry.position, entry.header.writer_epoch,
                              entry.header.generation, entry.sentinel,
                              ToPyArrow(tables[i])));
  }
  return out;
}

// The newest manifest of a shard.
nb::dict ShardManifestOf(const std::string& uri, const std::string& shard) {
  Call call;
  const auto manifest = call.Run([&]() -> Result<memwal::ShardManifest> {
    GLAIVE_ASSIGN_OR_RETURN(const auto env, db::OpenTableEnv(uri, /*create=*/false));
    GLAIVE_ASSIGN_OR_RETURN(const auto id, memwal::ShardId::Parse(shard));
    GLAIVE_ASSIGN_OR_RETURN(auto latest,
                            memwal::ShardManifests(env.store, id).ReadLatest());
    if (!latest) return NotFound("shard ", shard, " of ", uri, " does not exist");
    return *std::move(latest);
  });
  nb::list generations;
  for (const auto& sstable : manifest.sstables()) {
    generations.append(nb::make_tuple(sstable.generation(), sstable.path()));
  }
  nb::dict out;
  out["manifest_version"] = manifest.version();
  out["writer_epoch"] = manifest.writer_epoch();
  out["current_generation"] = manifest.current_generation();
  out["replay_after_wal_entry_position"] = manifest.replay_after_wal_entry_position();
  out["wal_entry_position_last_seen"] = manifest.wal_entry_position_last_seen();
  out["shard_spec_id"] = manifest.shard_spec_id();
  out["sstables"] = generations;
  return out;
}

// The values by which the table's sharding spec routes `rows`, and the shards
// that they go to.
nb::tuple RouteRows(const std::string& uri, nb::object rows) {
  Call call;
  const auto stream = ImportStream(rows, &call);
  std::vector<std::string> shards;
  const auto values = call.Run([&]() -> Result<std::shared_ptr<arrow::RecordBatch>> {
    GLAIVE_ASSIGN_OR_RETURN(const auto base, OpenDataset(uri));
    GLAIVE_ASSIGN_OR_RETURN(const auto details, memwal::ReadDetails(*base));
    if (details == nullptr || details->sharding_specs().empty()) {
      return InvalidInput("table ", uri, " has no sharding spec");
    }
    std::shared_ptr<arrow::RecordBatch> batch;
    GLAIVE_RETURN_NOT_OK(stream->ReadNext(&batch));
    if (batch == nullptr) return InvalidInput("no rows");
    const auto& spec = details->sharding_specs(0);
    GLAIVE_ASSIGN_OR_RETURN(const auto routed,
                            memwal::Route(*batch, spec, base->schema()));
    shards.resize(static_cast<size_t>(batch->num_rows()));
    for (const auto& part : routed) {
      if (part.rows.empty()) shards.assign(shards.size(), part.shard.ToString());
      for (int64_t row : part.rows) {
        shards[static_cast<size_t>(row)] = part.shard.ToString();
      }
    }
    return memwal::EvaluateSpec(*batch, spec, base->schema());
  });
  return nb::make_tuple(ToPyArrow(values), shards);
}

// Installs (or with `kind` "none" drops) the MemWAL index; details as bytes.
nb::object MemWalIndex(const std::string& uri, const std::string& kind,
                       const std::string& column, int64_t num_buckets,
                       std::optional<std::vector<std::string>> maintained,
                       std::map<std::string, std::string> defaults) {
  Call call;
  const auto details =
      call.Run([&]() -> Result<std::shared_ptr<const memwal::MemWalDetails>> {
        GLAIVE_ASSIGN_OR_RETURN(auto base, OpenDataset(uri));
        const std::map<std::string, memwal::ShardingKind> kinds = {
            {"manual", memwal::ShardingKind::kManual},
            {"unsharded", memwal::ShardingKind::kUnsharded},
            {"bucket", memwal::ShardingKind::kBucket},
            {"identity", memwal::ShardingKind::kIdentity}};
        if (const auto found = kinds.find(kind); found != kinds.end()) {
          GLAIVE_ASSIGN_OR_RETURN(
              base, memwal::Initialize(base, {found->second, column, num_buckets,
                                              maintained, defaults}));
        } else if (kind == "none") {
          GLAIVE_ASSIGN_OR_RETURN(base, memwal::Drop(base));
        } else if (kind != "read") {
          return InvalidInput("unknown kind of sharding '", kind, "'");
        }
        return memwal::ReadDetails(*base);
      });
  if (details == nullptr) return nb::none();
  const std::string bytes = details->SerializeAsString();
  return nb::bytes(bytes.data(), bytes.size());
}

// Records progress alone.
void CommitMarkers(const std::string& uri,
                   std::vector<std::pair<std::string, uint64_t>> markers) {
  Call call;
  call.Run([&]() -> Status {
    GLAIVE_ASSIGN_OR_RETURN(const auto base, OpenDataset(uri));
    std::vector<memwal::CompactedMarker> progress;
    for (const auto& [shard, generation] : markers) {
      GLAIVE_ASSIGN_OR_RETURN(const auto id, memwal::ShardId::Parse(shard));
      progress.push_back({id, generation});
    }
    return memwal::CommitMarkers(base, progress).status();
  });
}

}  // namespace

void BindMemWalLog(nb::module_& m) {
  using nb::literals::operator""_a;
  m.def("_write_log", &WriteLog, "uri"_a, "shard"_a, "calls"_a,
        "generation"_a = nb::none(), "durable"_a = true);
  m.def("_read_log", &ReadLog, "uri"_a, "shard"_a, "first"_a = 1);
  m.def("_shard_manifest", &ShardManifestOf, "uri"_a, "shard"_a);
  m.def("_route_rows", &RouteRows, "uri"_a, "rows"_a);
  m.def("_mem_wal_index", &MemWalIndex, "uri"_a, "kind"_a, "column"_a = "",
        "num_buckets"_a = 0, "maintained"_a = nb::none(),
        "defaults"_a = std::map<std::string, std::string>());
  m.def("_commit_markers", &CommitMarkers, "uri"_a, "markers"_a);
}

}  // namespace glaive::python
