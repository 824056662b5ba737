// Methods of Table for its LSM write path.
#include "lsm.h"

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "call.h"
#include "db/lsm.h"
#include "errors.h"
#include "memwal/converge.h"

namespace glaive::python {
namespace {

using Names = std::vector<std::string>;
using StringMap = std::map<std::string, std::string>;

int64_t SetSpec(db::Table& self, const std::string& sharding,
                std::optional<std::string> column, std::optional<int64_t> num_buckets,
                std::optional<Names> maintained_indexes, StringMap defaults) {
  db::LsmWriteSpec spec;
  if (sharding == "bucket") {
    spec.sharding = db::LsmSharding::kBucket;
  } else if (sharding == "identity") {
    spec.sharding = db::LsmSharding::kIdentity;
  } else if (sharding != "unsharded") {
    Raise(
        InvalidInput("Invalid input, a write spec is \"bucket\", \"identity\" or "
                     "\"unsharded\", not \"",
                     sharding, "\""));
  }
  spec.column = std::move(column).value_or("");
  spec.num_buckets = num_buckets.value_or(0);
  spec.maintained_indexes = std::move(maintained_indexes);
  spec.writer_config_defaults = std::move(defaults);
  Call call;
  return call.Run([&] { return self.SetLsmWriteSpec(spec); });
}

nb::object GetSpec(db::Table& self) {
  Call call;
  const auto spec = call.Run([&] { return self.GetLsmWriteSpec(); });
  if (!spec) return nb::none();
  nb::dict out;
  out["sharding"] = spec->sharding == db::LsmSharding::kBucket     ? "bucket"
                    : spec->sharding == db::LsmSharding::kIdentity ? "identity"
                                                                   : "unsharded";
  out["column"] = spec->column.empty() ? nb::none() : nb::cast(spec->column);
  out["num_buckets"] = spec->sharding == db::LsmSharding::kBucket
                           ? nb::cast(spec->num_buckets)
                           : nb::none();
  out["maintained_indexes"] = spec->maintained_indexes;
  out["writer_config_defaults"] = spec->writer_config_defaults;
  return out;
}

nb::object Stats(db::Table& self, bool include_generation_rows) {
  Call call;
  const auto buckets =
      call.Run([&] { return self.GetLsmStats(include_generation_rows); });
  if (!buckets) return nb::none();
  nb::list out;
  for (const memwal::BucketStats& bucket : *buckets) {
    nb::dict entry;
    entry["shard_id"] = bucket.shard.ToString();
    entry["status"] = bucket.sealed ? "Sealed" : "Active";
    entry["writer_epoch"] = bucket.writer_epoch;
    entry["manifest_version"] = bucket.manifest_version;
    entry["current_generation"] = bucket.current_generation;
    entry["replay_after_wal_entry_position"] = bucket.replay_after_wal_entry_position;
    entry["wal_entry_position_last_seen"] = bucket.wal_entry_position_last_seen;
    nb::list generations;
    for (const memwal::GenerationStats& generation : bucket.generations) {
      nb::dict g;
      g["generation"] = generation.generation;
      g["bytes"] = generation.bytes;
      g["rows"] = generation.rows;
      generations.append(g);
    }
    entry["generations"] = generations;
    entry["compacting"] = bucket.compacting;
    entry["memtables"] = nb::none();
    if (bucket.memtables) {
      nb::list memtables;
      for (const memwal::LiveMemtableStats& memtable : *bucket.memtables) {
        nb::dict m;
        m["generation"] = memtable.generation;
        m["rows"] = memtable.rows;
        m["bytes"] = memtable.bytes;
        m["batches"] = memtable.batches;
        m["indexes"] = memtable.indexes;
        memtables.append(m);
      }
      entry["memtables"] = memtables;
    }
    entry["durability"] =
        bucket.durability.empty() ? nb::none() : nb::cast(bucket.durability);
    entry["log_entries"] = bucket.log_entries;
    entry["log_bytes"] = bucket.log_bytes;
    out.append(entry);
  }
  return out;
}

nb::dict Checkpoint(db::Table& self, std::optional<double> timeout, nb::object progress,
                    std::shared_ptr<CancelHandle> cancel) {
  Call call(timeout, std::move(cancel));
  memwal::CheckpointOptions options;
  options.compact.cancel = call.token();
  if (timeout) {
    options.timeout = std::chrono::milliseconds(static_cast<int64_t>(*timeout * 1000));
  }
  if (!progress.is_none()) {
    options.progress = [&progress](int64_t remaining, int64_t total) {
      nb::gil_scoped_acquire gil;
      progress(remaining, total);
    };
  }
  const auto outcome = call.Run([&] { return self.CheckpointLsm(options); });
  nb::dict out;
  out["generations_consumed"] = outcome.generations_consumed;
  out["generations_remaining"] = outcome.generations_remaining;
  out["passes"] = outcome.passes;
  out["converged"] = outcome.converged;
  return out;
}

}  // namespace

void BindTableLsm(nb::class_<db::Table>& c) {
  using nb::literals::operator""_a;
  const auto none = nb::none();
  c.def("set_lsm_write_spec", &SetSpec, "sharding"_a, nb::kw_only(), "column"_a = none,
        "num_buckets"_a = none, "maintained_indexes"_a = none,
        "writer_config_defaults"_a = StringMap());
  c.def("unset_lsm_write_spec", [](db::Table& self) {
    Call call;
    return call.Run([&] { return self.UnsetLsmWriteSpec(); });
  });
  c.def("get_lsm_write_spec", &GetSpec);
  c.def("close_lsm_writers", [](db::Table& self) {
    Call call;
    call.Run([&] { return self.CloseLsmWriters(); });
  });
  c.def("flush_lsm", [](db::Table& self) {
    Call call;
    return call.Run([&] { return self.FlushLsm(); });
  });
  c.def(
      "compact_lsm",
      [](db::Table& self, std::shared_ptr<CancelHandle> cancel) {
        Call call(std::nullopt, std::move(cancel));
        memwal::CompactOptions options;
        options.cancel = call.token();
        const auto outcome = call.Run([&] { return self.CompactLsm(options); });
        nb::dict out;
        out["generations_consumed"] = outcome.generations_consumed;
        out["generations_remaining"] = outcome.generations_remaining;
        out["rows_merged"] = outcome.rows_merged;
        out["rows_deleted"] = outcome.rows_deleted;
        return out;
      },
      nb::kw_only(), "cancel"_a = none);
  c.def("checkpoint_lsm", &Checkpoint, nb::kw_only(), "timeout"_a = none,
        "progress"_a = none, "cancel"_a = none);
  c.def("get_lsm_stats", &Stats, nb::kw_only(), "include_generation_rows"_a = false);
}

}  // namespace glaive::python
