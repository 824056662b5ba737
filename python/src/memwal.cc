// The LSM write path of datasets: ShardWriter, LsmSnapshot, and what sets it up.
#include "memwal.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include <arrow/record_batch.h>
#include <arrow/table.h>
#include <arrow/type.h>
#include <nanobind/stl/tuple.h>

#include "arrow_interop.h"
#include "bindings.h"
#include "call.h"
#include "db/search.h"
#include "expr/predicate.h"
#include "file/schema.h"
#include "format/memwal.pb.h"
#include "io/object_store.h"
#include "memwal/lsm_read.h"
#include "memwal/lsm_snapshot.h"
#include "memwal/mem_wal_index.h"
#include "memwal/shard_writer.h"
#include "memwal/sharding.h"
#include "pyarrow_api.h"
#include "readable.h"
#include "table/schema_change.h"

namespace glaive::python {
namespace {

using StringMap = std::map<std::string, std::string>;
using WriterPtr = std::shared_ptr<memwal::ShardWriter>;

struct PyShardWriter {
  WriterPtr writer;
};

struct PyLsmSnapshot {
  memwal::LsmSnapshot::Ptr snapshot;
};

memwal::ShardId ParseShard(const std::string& text) {
  return Unwrap(memwal::ShardId::Parse(text));
}

template <typename T>
void Take(nb::handle value, T* out) {
  *out = nb::cast<T>(value);
}

void Take(nb::handle value, memwal::Durability* out) {
  const auto level = nb::cast<std::string>(value);
  const auto parsed = memwal::ParseDurability(level);
  if (!parsed) {
    Raise(InvalidInput("durability must be \"fsync\" or \"os\", not \"", level, "\""));
  }
  *out = *parsed;
}

memwal::WriterConfig ParseConfig(const nb::dict& given) {
  memwal::WriterConfig config;
  const auto settings = memwal::ConfigSettings();
  for (const auto& [key, value] : given) {
    const auto name = nb::cast<std::string>(key);
    const auto setting = std::find_if(settings.begin(), settings.end(),
                                      [&](const auto& s) { return s.name == name; });
    if (setting == settings.end()) {
      Raise(InternalError("a shard writer has no option ", name));
    }
    std::visit([&, &value = value](auto field) { Take(value, &(config.*field)); },
               setting->field);
  }
  return config;
}

// --- writers ---------------------------------------------------------------------------

// Calls `write` with all batches of `data`, without the GIL. With many threads that write
// a row each, what is done under the GIL and taking it are what bounds them.
template <typename Write>
void Collected(nb::handle data, const Write& write) {
  Call call;
  if (PyArrowLoaded() && PyArrow().is_batch(data.ptr())) {
    const memwal::BatchVector one{PyArrow().unwrap_batch(data.ptr())};
    call.Run([&] { return write(one); });
    return;
  }
  auto stream = ImportStream(data, &call);
  call.Run([&]() -> Status {
    GLAIVE_ASSIGN_OR_RETURN(const auto batches, stream->ToRecordBatches());
    return write(batches);
  });
}

void Put(PyShardWriter& self, nb::object data) {
  Collected(data, [&](const auto& batches) { return self.writer->Put(batches); });
}

int64_t PutStream(PyShardWriter& self, nb::object data) {
  Call call;
  auto stream = ImportStream(data, &call);
  return call.Run([&] { return self.writer->PutStream(*stream); });
}

void Delete(PyShardWriter& self, nb::object keys) {
  Collected(keys, [&](const auto& batches) { return self.writer->Delete(batches); });
}

nb::dict Stats(PyShardWriter& self) {
  const memwal::WriterStats stats = self.writer->stats();
  nb::dict out;
  out["put_count"] = stats.put_count;
  out["put_time_ms"] = stats.put_time_us / 1000;
  out["wal_flush_count"] = stats.wal_flush_count;
  out["wal_flush_bytes"] = stats.wal_flush_bytes;
  out["wal_flush_time_ms"] = stats.wal_flush_time_us / 1000;
  out["memtable_flush_count"] = stats.memtable_flush_count;
  out["memtable_flush_rows"] = stats.memtable_flush_rows;
  out["memtable_flush_failures"] = stats.memtable_flush_failures;
  out["memtable_flush_time_ms"] = stats.memtable_flush_time_us / 1000;
  const memwal::WriterConfig& config = self.writer->config();
  out["durability"] = config.durability == memwal::Durability::kOs ? "os" : "fsync";
  return out;
}

nb::dict MemtableStats(PyShardWriter& self) {
  const memwal::MemtableStats stats = self.writer->memtable_stats();
  const int64_t pending = stats.pending_wal_batch_count;
  nb::dict out;
  out["row_count"] = stats.row_count;
  out["batch_count"] = stats.batch_count;
  out["estimated_size_bytes"] = stats.estimated_size_bytes;
  out["index_bytes"] = stats.index_bytes;
  out["generation"] = stats.generation;
  const auto position = [](int64_t value) {
    return value < 0 ? nb::none() : nb::cast(value);
  };
  out["max_buffered_batch_position"] = position(stats.batch_count - 1);
  out["durable_batch_count"] = stats.durable_batch_count;
  out["global_offset"] = stats.global_offset;
  out["pending_wal_start_batch_position"] =
      position(pending > 0 ? stats.batch_count - pending : -1);
  out["pending_wal_end_batch_position"] = position(pending > 0 ? stats.batch_count : -1);
  out["pending_wal_batch_count"] = pending;
  out["pending_wal_row_count"] = stats.pending_wal_row_count;
  out["pending_wal_estimated_bytes"] = stats.pending_wal_estimated_bytes;
  out["frozen_count"] = stats.frozen_count;
  out["frozen_bytes"] = stats.frozen_bytes;
  out["grace_bytes"] = 0;
  out["retained_bytes"] = stats.frozen_bytes;
  return out;
}

void BindWriter(nb::module_& m) {
  using nb::literals::operator""_a;
  nb::class_<PyShardWriter>(m, "ShardWriter")
      .def_prop_ro("shard_id",
                   [](PyShardWriter& self) { return self.writer->shard().ToString(); })
      .def_prop_ro("epoch", [](PyShardWriter& self) { return self.writer->epoch(); })
      .def_prop_ro("is_closed",
                   [](PyShardWriter& self) { return self.writer->is_closed(); })
      .def("put", &Put, "data"_a)
      .def("put_stream", &PutStream, "data"_a)
      .def("delete", &Delete, "keys"_a)
      .def("flush",
           [](PyShardWriter& self) {
             Call call;
             return call.Run([&] { return self.writer->Flush(); });
           })
      .def("close",
           [](PyShardWriter& self) {
             Call call;
             call.Run([&] { return self.writer->Close(); });
           })
      .def(
          "abort", [](PyShardWriter& self) { self.writer->Abort(); },
          nb::call_guard<nb::gil_scoped_release>())
      .def("dataset",
           [](PyShardWriter& self) {
             const auto& base = self.writer->base();
             return std::make_unique<PyDataset>(base, base->env().store->root());
           })
      .def("stats", &Stats)
      .def("memtable_stats", &MemtableStats);
}

// --- reads -----------------------------------------------------------------------------

using Generations = std::vector<std::pair<uint64_t, std::string>>;
using Shards = std::vector<std::tuple<std::string, uint32_t, uint64_t, Generations>>;

std::unique_ptr<PyLsmSnapshot> OpenSnapshot(PyDataset& dataset, const Shards& shards,
                                            PyShardWriter* writer) {
  std::vector<memwal::ShardSnapshot> named;
  for (const auto& [id, spec_id, current, generations] : shards) {
    memwal::ShardSnapshot shard;
    shard.shard = ParseShard(id);
    shard.spec_id = spec_id;
    shard.current_generation = current;
    shard.generations = generations;
    named.push_back(std::move(shard));
  }
  const WriterPtr live = writer == nullptr ? nullptr : writer->writer;
  Call call;
  auto out = std::make_unique<PyLsmSnapshot>();
  out->snapshot = call.Run(
      [&] { return memwal::LsmSnapshot::OpenShards(dataset.dataset, named, live); });
  return out;
}

memwal::LsmScanOptions LsmArguments(PyLsmSnapshot& self, nb::handle columns,
                                    std::optional<std::string> filter,
                                    std::optional<int64_t> limit,
                                    std::optional<int64_t> offset, bool with_row_address,
                                    bool with_memtable_gen) {
  auto arguments =
      ParseScan(columns, std::move(filter), limit, offset, false, with_row_address,
                nb::none(), true, std::nullopt, std::nullopt);
  memwal::LsmScanOptions options;
  options.scan = std::move(arguments.options);
  options.scan.select = Unwrap(
      MakeSelection(*self.snapshot->base(), arguments.columns, false, with_row_address));
  options.with_memtable_gen = with_memtable_gen;
  return options;
}

std::unique_ptr<PyBatchReader> LsmScan(PyLsmSnapshot& self, nb::object columns,
                                       std::optional<std::string> filter,
                                       std::optional<int64_t> limit,
                                       std::optional<int64_t> offset,
                                       bool with_row_address, bool with_memtable_gen) {
  auto options = LsmArguments(self, columns, std::move(filter), limit, offset,
                              with_row_address, with_memtable_gen);
  auto reader = std::make_unique<PyBatchReader>();
  reader->call = std::make_unique<Call>();
  options.scan.cancel = reader->call->token();
  reader->stream = reader->call->Run(
      [&] { return memwal::LsmScan(self.snapshot, std::move(options)); });
  reader->schema = reader->stream->schema();
  return reader;
}

int64_t LsmCount(PyLsmSnapshot& self, std::optional<std::string> filter) {
  const std::string sql = FilterText(std::move(filter));
  Call call;
  return call.Run([&] { return memwal::LsmCountRows(self.snapshot, sql, call.token()); });
}

nb::object LsmSchema(PyLsmSnapshot& self, nb::object columns, bool with_row_address,
                     bool with_memtable_gen) {
  const auto options = LsmArguments(self, columns, std::nullopt, std::nullopt,
                                    std::nullopt, with_row_address, with_memtable_gen);
  Call call;
  return ToPyArrow(
      call.Run([&] { return memwal::LsmOutputSchema(*self.snapshot, options); }));
}

std::string LsmExplain(PyLsmSnapshot& self, nb::object columns,
                       std::optional<std::string> filter, std::optional<int64_t> limit,
                       std::optional<int64_t> offset, bool with_row_address,
                       bool with_memtable_gen) {
  const auto options = LsmArguments(self, columns, std::move(filter), limit, offset,
                                    with_row_address, with_memtable_gen);
  Call call;
  return call.Run([&]() -> Result<std::string> {
    return memwal::ExplainLsmScan(*self.snapshot, options);
  });
}

nb::object Lookup(PyLsmSnapshot& self, nb::object keys, nb::object columns) {
  const Columns parsed = ParseColumns(columns);
  Call call;
  auto stream = ImportStream(keys, &call);
  return ToPyArrow(call.Run([&]() -> Result<std::shared_ptr<arrow::Table>> {
    GLAIVE_ASSIGN_OR_RETURN(const auto table, stream->ToTable());
    GLAIVE_ASSIGN_OR_RETURN(const auto batch, table->CombineChunksToBatch());
    GLAIVE_ASSIGN_OR_RETURN(const auto select,
                            MakeSelection(*self.snapshot->base(), parsed, false, false));
    return memwal::LsmLookup(self.snapshot, *batch, select);
  }));
}

nb::object LsmNearest(PyLsmSnapshot& self, nb::object queries,
                      std::optional<std::string> column, int64_t k,
                      const std::string& metric, std::optional<std::string> filter,
                      bool prefilter, int64_t offset, std::optional<float> lower_bound,
                      std::optional<float> upper_bound, nb::object columns) {
  auto arguments =
      ParseNearest(queries, std::move(column), k, metric, std::move(filter), prefilter,
                   offset, lower_bound, upper_bound, columns, false, false);
  Call call;
  return ToPyArrow(call.Run([&]() -> Result<std::shared_ptr<arrow::Table>> {
    const table::Dataset& base = *self.snapshot->base();
    GLAIVE_ASSIGN_OR_RETURN(arguments.options.select,
                            MakeSelection(base, arguments.columns, false, false));
    GLAIVE_RETURN_NOT_OK(db::ResolveSearch(base, &arguments.options));
    arguments.options.cancel = call.token();
    return memwal::LsmNearest(self.snapshot, std::move(arguments.options));
  }));
}

void BindSnapshot(nb::module_& m) {
  using nb::literals::operator""_a;
  const auto none = nb::none();
  nb::class_<PyLsmSnapshot>(m, "LsmSnapshot")
      .def_static("open", &OpenSnapshot, "dataset"_a, "shards"_a,
                  "writer"_a.none() = none)
      .def("scan", &LsmScan, "columns"_a = none, "filter"_a = none, "limit"_a = none,
           "offset"_a = none, nb::kw_only(), "with_row_address"_a = false,
           "with_memtable_gen"_a = false)
      .def("count_rows", &LsmCount, "filter"_a = none)
      .def("output_schema", &LsmSchema, "columns"_a = none, nb::kw_only(),
           "with_row_address"_a = false, "with_memtable_gen"_a = false)
      .def("explain", &LsmExplain, "columns"_a = none, "filter"_a = none,
           "limit"_a = none, "offset"_a = none, nb::kw_only(),
           "with_row_address"_a = false, "with_memtable_gen"_a = false)
      .def("lookup", &Lookup, "keys"_a, "columns"_a = none)
      .def("nearest", &LsmNearest, "queries"_a, "column"_a = none, "k"_a = 10,
           nb::kw_only(), "metric"_a = "l2", "filter"_a = none, "prefilter"_a = true,
           "offset"_a = 0, "lower_bound"_a = none, "upper_bound"_a = none,
           "columns"_a = none);
}

// --- setting up ------------------------------------------------------------------------

std::unique_ptr<PyDataset> Initialize(PyDataset& self, const std::string& sharding,
                                      std::optional<std::string> column,
                                      std::optional<int64_t> num_buckets,
                                      std::optional<std::vector<std::string>> maintained,
                                      StringMap defaults) {
  memwal::InitializeOptions options;
  options.sharding = sharding == "bucket"      ? memwal::ShardingKind::kBucket
                     : sharding == "identity"  ? memwal::ShardingKind::kIdentity
                     : sharding == "unsharded" ? memwal::ShardingKind::kUnsharded
                                               : memwal::ShardingKind::kManual;
  options.column = std::move(column).value_or("");
  options.num_buckets = num_buckets.value_or(0);
  options.maintained_indexes = std::move(maintained);
  options.writer_config_defaults = std::move(defaults);
  Call call;
  return std::make_unique<PyDataset>(
      call.Run([&] { return memwal::Initialize(self.dataset, options); }), self.uri);
}

nb::dict SpecToPython(const lance::table::ShardingSpec& spec) {
  nb::list fields;
  for (const auto& field : spec.fields()) {
    nb::dict entry;
    entry["field_id"] = field.field_id();
    nb::list sources;
    for (const int32_t id : field.source_ids()) sources.append(id);
    entry["source_ids"] = sources;
    entry["transform"] = field.has_transform() ? nb::cast(field.transform()) : nb::none();
    entry["expression"] =
        field.has_expression() ? nb::cast(field.expression()) : nb::none();
    entry["result_type"] = field.result_type();
    entry["parameters"] = StringMap(field.parameters().begin(), field.parameters().end());
    fields.append(entry);
  }
  nb::dict out;
  out["spec_id"] = spec.spec_id();
  out["fields"] = fields;
  return out;
}

nb::object Details(PyDataset& self) {
  Call call;
  const auto details = call.Run([&] { return memwal::ReadDetails(*self.dataset); });
  if (details == nullptr) return nb::none();
  nb::dict out;
  out["num_shards"] = details->num_shards();
  out["maintained_indexes"] = std::vector<std::string>(
      details->maintained_indexes().begin(), details->maintained_indexes().end());
  out["maintain_all_indexes"] = details->maintain_all_indexes();
  out["writer_config_defaults"] = StringMap(details->writer_config_defaults().begin(),
                                            details->writer_config_defaults().end());
  nb::list specs;
  for (const auto& spec : details->sharding_specs()) specs.append(SpecToPython(spec));
  out["sharding_specs"] = specs;
  return out;
}

// Markers of merged generations: not shown by upstream's dictionary, but worth a look.
std::vector<std::pair<std::string, uint64_t>> Compacted(PyDataset& self) {
  Call call;
  const auto details = call.Run([&] { return memwal::ReadDetails(*self.dataset); });
  std::vector<std::pair<std::string, uint64_t>> out;
  if (details == nullptr) return out;
  for (const auto& marker : details->compacted_sstables()) {
    const auto shard = Unwrap(memwal::ShardId::FromBytes(marker.shard_id().uuid()));
    out.emplace_back(shard.ToString(), marker.generation());
  }
  return out;
}

std::unique_ptr<PyShardWriter> OpenWriter(PyDataset& self, const std::string& shard_id,
                                          const nb::dict& config) {
  const memwal::ShardId shard = ParseShard(shard_id);
  const memwal::WriterConfig parsed = ParseConfig(config);
  Call call;
  auto out = std::make_unique<PyShardWriter>();
  out->writer =
      call.Run([&] { return memwal::ShardWriter::Open(self.dataset, shard, parsed); });
  return out;
}

// `fields`: of a sharding spec, as dictionaries; `ids`: field id -> column of the batch.
nb::object EvaluateSpec(nb::object data, uint32_t spec_id, const nb::list& fields,
                        const std::map<int32_t, std::string>& ids) {
  lance::table::ShardingSpec spec;
  spec.set_spec_id(spec_id);
  for (nb::handle given : fields) {
    const auto entry = nb::cast<nb::dict>(given);
    auto* field = spec.add_fields();
    field->set_field_id(nb::cast<std::string>(entry["field_id"]));
    for (const int32_t id : nb::cast<std::vector<int32_t>>(entry["source_ids"])) {
      field->add_source_ids(id);
    }
    if (!nb::handle(entry["transform"]).is_none()) {
      field->set_transform(nb::cast<std::string>(entry["transform"]));
    }
    if (!nb::handle(entry["expression"]).is_none()) {
      field->set_expression(nb::cast<std::string>(entry["expression"]));
    }
    field->set_result_type(nb::cast<std::string>(entry["result_type"]));
    for (const auto& [key, value] : nb::cast<StringMap>(entry["parameters"])) {
      (*field->mutable_parameters())[key] = value;
    }
  }
  Call call;
  auto stream = ImportStream(data, &call);
  return ToPyArrow(call.Run([&]() -> Result<std::shared_ptr<arrow::RecordBatch>> {
    GLAIVE_ASSIGN_OR_RETURN(const auto table, stream->ToTable());
    GLAIVE_ASSIGN_OR_RETURN(const auto batch, table->CombineChunksToBatch());
    std::vector<file::Field> known;
    for (const auto& [id, name] : ids) {
      file::Field field;
      field.id = id;
      field.name = name;
      const auto column = batch->schema()->GetFieldByName(name);
      field.type = column == nullptr ? arrow::null() : column->type();
      known.push_back(std::move(field));
    }
    return memwal::EvaluateSpec(*batch, spec, file::Schema(std::move(known)));
  }));
}

}  // namespace

void BindDatasetMemWal(nb::class_<PyDataset>& c) {
  using nb::literals::operator""_a;
  const auto none = nb::none();
  c.def("initialize_mem_wal", &Initialize, "sharding"_a, nb::kw_only(), "column"_a = none,
        "num_buckets"_a = none, "maintained_indexes"_a = none,
        "writer_config_defaults"_a = StringMap());
  c.def("drop_mem_wal", [](PyDataset& self) {
    Call call;
    return std::make_unique<PyDataset>(
        call.Run([&] { return memwal::Drop(self.dataset); }), self.uri);
  });
  c.def(
      "check_filter",
      [](PyDataset& self, const std::string& filter) {
        const std::string sql = FilterText(filter);
        Call call;
        call.Run([&]() -> Status {
          return expr::Predicate::Make(sql, self.dataset->schema()).status();
        });
      },
      "filter"_a);
  c.def("primary_key", [](PyDataset& self) {
    const file::Schema& schema = self.dataset->schema();
    std::vector<std::string> names;
    for (const int32_t id : table::PrimaryKeyOf(schema)) {
      names.push_back(schema.FindById(id)->name);
    }
    return names;
  });
  c.def("mem_wal_index_details", &Details);
  c.def("mem_wal_compacted", &Compacted);
  c.def("mem_wal_writer", &OpenWriter, "shard_id"_a, "config"_a);
}

void BindMemWal(nb::module_& m) {
  using nb::literals::operator""_a;
  BindWriter(m);
  BindSnapshot(m);
  m.def("evaluate_sharding_spec", &EvaluateSpec, "batch"_a, "spec_id"_a, "fields"_a,
        "ids"_a);
  m.def(
      "parse_shard_id",
      [](const std::string& text) { return ParseShard(text).ToString(); }, "text"_a);
}

}  // namespace glaive::python
