// Private calls into parts of the LSM write path, for tests.
#include <utility>

#include <arrow/array.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>

#include "arrow_interop.h"
#include "bindings.h"
#include "call.h"
#include "db/environment.h"
#include "memwal/fresh_schema.h"
#include "memwal/generation_writer.h"
#include "memwal/memtable.h"
#include "memwal/pk_sidecar.h"

namespace glaive::python {
namespace {

Result<table::Dataset::Ptr> OpenDataset(const std::string& uri) {
  GLAIVE_ASSIGN_OR_RETURN(const auto env, db::OpenTableEnv(uri, /*create=*/false));
  return table::Dataset::Open(env);
}

// For tests: one generation out of rows that have the table's columns and `_tombstone`.
nb::tuple WriteGeneration(const std::string& uri, const std::string& shard,
                          uint64_t generation, nb::object rows,
                          std::vector<std::pair<std::string, std::string>> btrees) {
  Call call;
  const auto stream = ImportStream(rows, &call);
  const auto written = call.Run([&]() -> Result<lance::table::SsTable> {
    GLAIVE_ASSIGN_OR_RETURN(const auto base, OpenDataset(uri));
    GLAIVE_ASSIGN_OR_RETURN(const auto id, memwal::ShardId::Parse(shard));
    GLAIVE_ASSIGN_OR_RETURN(const auto schema, memwal::FreshSchema::Make(*base));
    GLAIVE_ASSIGN_OR_RETURN(const auto batches, stream->ToRecordBatches());
    memwal::Memtable memtable(schema, generation);
    for (const auto& batch : batches) {
      for (int c = 0; c < schema->storage()->num_fields(); ++c) {
        const auto& wanted = schema->storage()->field(c);
        if (batch->num_columns() != schema->storage()->num_fields() ||
            batch->schema()->field(c)->name() != wanted->name() ||
            !batch->column(c)->type()->Equals(*wanted->type())) {
          return SchemaMismatch("generations of ", uri, " have the columns ",
                                schema->storage()->ToString());
        }
      }
    }
    GLAIVE_RETURN_NOT_OK(memtable.Append(batches));
    memwal::GenerationOptions options;
    options.file_version = base->file_version();
    options.btree_indices = std::move(btrees);
    return memwal::WriteGeneration(base->env(), id, memtable.Read(memtable.num_batches()),
                                   options);
  });
  return nb::make_tuple(written.path(), written.in_memory_bytes(),
                        written.physical_rows(), written.primary_key_bytes());
}

// For tests: encoded key -> row of a generation.
nb::dict GenerationKeys(const std::string& uri,
                        const std::vector<std::string>& key_names) {
  Call call;
  const auto keys =
      call.Run([&]() -> Result<std::shared_ptr<const memwal::GenerationKeys>> {
        GLAIVE_ASSIGN_OR_RETURN(const auto generation, OpenDataset(uri));
        return memwal::GenerationKeys::Load(*generation, key_names);
      });
  nb::dict out;
  for (int64_t i = 0; i < keys->keys().size(); ++i) {
    const std::string_view key = keys->keys()[i];
    out[nb::bytes(key.data(), key.size())] = keys->Find(key);
  }
  return out;
}

}  // namespace

void BindMemWalParts(nb::module_& m) {
  using nb::literals::operator""_a;
  m.def("_write_generation", &WriteGeneration, "uri"_a, "shard"_a, "generation"_a,
        "rows"_a, "btrees"_a);
  m.def("_generation_keys", &GenerationKeys, "uri"_a, "key_names"_a);
}

}  // namespace glaive::python
