// The specification of an LSM write path: set, read back, removed.
#include "db/lsm.h"

#include <utility>

#include "file/schema.h"
#include "format/memwal.pb.h"
#include "io/object_store.h"
#include "memwal/mem_wal_index.h"
#include "memwal/shard_writer.h"

namespace glaive::db {
namespace {

memwal::ShardingKind ToKind(LsmSharding sharding) {
  switch (sharding) {
    case LsmSharding::kBucket:
      return memwal::ShardingKind::kBucket;
    case LsmSharding::kIdentity:
      return memwal::ShardingKind::kIdentity;
    case LsmSharding::kUnsharded:
      break;
  }
  return memwal::ShardingKind::kUnsharded;
}

// The name of the one column that decides the shard.
Result<std::string> SourceColumn(const table::Dataset& base,
                                 const lance::table::ShardingField& field) {
  if (field.source_ids_size() != 1) {
    return Corruption("the sharding field '", field.field_id(), "' of table ",
                      base.env().store->root(), " names ", field.source_ids_size(),
                      " columns instead of one");
  }
  const file::Field* column = base.schema().FindById(field.source_ids(0));
  if (column == nullptr) {
    return InvalidInput("Invalid input, the sharding column with id ",
                        field.source_ids(0), " of table ", base.env().store->root(),
                        " was dropped");
  }
  return column->name;
}

}  // namespace

Result<std::optional<LsmWriteSpec>> ReadLsmWriteSpec(const table::Dataset& base) {
  GLAIVE_ASSIGN_OR_RETURN(const auto details, memwal::ReadDetails(base));
  if (details == nullptr) return std::nullopt;
  LsmWriteSpec spec;
  if (details->sharding_specs_size() == 1 &&
      details->sharding_specs(0).fields_size() == 1) {
    const auto& field = details->sharding_specs(0).fields(0);
    if (field.transform() == "bucket") {
      spec.sharding = LsmSharding::kBucket;
      spec.num_buckets = details->num_shards();
      GLAIVE_ASSIGN_OR_RETURN(spec.column, SourceColumn(base, field));
    } else if (field.transform() == "identity") {
      spec.sharding = LsmSharding::kIdentity;
      GLAIVE_ASSIGN_OR_RETURN(spec.column, SourceColumn(base, field));
    } else if (field.transform() != "unsharded") {
      return NotSupported("the MemWAL sharding transform '", field.transform(),
                          "' of table ", base.env().store->root());
    }
  } else if (details->sharding_specs_size() != 0) {
    return NotSupported("a MemWAL sharding by several fields or specs (table ",
                        base.env().store->root(), ")");
  } else {
    return NotSupported(
        "an LSM write path without a sharding spec: its shards are named by hand, "
        "through glaive.lance's mem_wal_writer (table ",
        base.env().store->root(), ")");
  }
  spec.maintained_indexes.emplace(details->maintained_indexes().begin(),
                                  details->maintained_indexes().end());
  for (const auto& [key, value] : details->writer_config_defaults()) {
    spec.writer_config_defaults[key] = value;
  }
  return spec;
}

Result<table::Dataset::Ptr> SetLsmWriteSpec(const table::Dataset::Ptr& base,
                                            const LsmWriteSpec& spec) {
  GLAIVE_ASSIGN_OR_RETURN(const auto present, memwal::ReadDetails(*base));
  if (present != nullptr) {
    return InvalidInput(
        "Invalid input, an LSM write spec is already set on this table; mutation is not "
        "supported (table ",
        base->env().store->root(), ": unset_lsm_write_spec comes first)");
  }
  memwal::InitializeOptions options;
  options.sharding = ToKind(spec.sharding);
  options.column = spec.column;
  options.num_buckets = spec.num_buckets;
  options.maintained_indexes = spec.maintained_indexes;
  if (!options.maintained_indexes) {
    // By name, as LanceDB does: its searches look for the names.
    GLAIVE_ASSIGN_OR_RETURN(const auto latest, base->Latest());
    auto names = memwal::AllMaintainableIndices(*latest);
    if (!names.ok() && KindOf(names.status()) == ErrorKind::kInvalidInput) {
      return InvalidInput("Invalid input, ", names.status().message());
    }
    GLAIVE_ASSIGN_OR_RETURN(options.maintained_indexes, std::move(names));
  }
  options.writer_config_defaults = spec.writer_config_defaults;
  return memwal::Initialize(base, options);
}

Result<table::Dataset::Ptr> UnsetLsmWriteSpec(const table::Dataset::Ptr& base) {
  GLAIVE_ASSIGN_OR_RETURN(const auto present, memwal::ReadDetails(*base));
  if (present == nullptr) {
    return InvalidInput(
        "Invalid input, unset_lsm_write_spec: no LSM write spec is set on this table (",
        base->env().store->root(), ")");
  }
  GLAIVE_RETURN_NOT_OK(memwal::WriterRegistry::Instance().CloseAll(*base));
  return memwal::Drop(base);
}

}  // namespace glaive::db
