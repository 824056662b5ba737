#include "memwal/generation.h"

#include <utility>

#include <arrow/array.h>
#include <arrow/buffer.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>

#include "io/object_store.h"
#include "memwal/fresh_schema.h"
#include "memwal/keys.h"
#include "runtime/runtime.h"
#include "table/dataset_builder.h"
#include "table/fragment_reader.h"

namespace glaive::memwal {
namespace {

// What an open generation takes without its keys.
constexpr int64_t kGenerationBytes = 16384 + KeyBloom::kBytes;

}  // namespace

Result<KeyColumns> KeyColumns::Make(const table::Dataset& base,
                                    const std::vector<std::string>& names) {
  KeyColumns keys;
  for (const std::string& name : names) {
    const file::Field* field = base.schema().FindTopLevel(name);
    if (field == nullptr) {
      return InvalidInput("Column '", name, "' not found in schema of table ",
                          base.env().store->root());
    }
    if (!IsKeyType(*field->type)) {
      return InvalidInput("Primary key column '", name, "' has unsupported type ",
                          field->type->ToString(), " of table ",
                          base.env().store->root());
    }
    keys.names.push_back(name);
    keys.ids.push_back(field->id);
    keys.types.push_back(field->type);
    keys.cache_key += std::to_string(field->id) + ',';
  }
  return keys;
}

Result<std::shared_ptr<Generation::Facts>> Generation::Load(const table::TableEnv& own,
                                                            std::string directory,
                                                            std::string cache_key,
                                                            const KeyColumns& keys) {
  auto facts = std::make_shared<Facts>();
  GLAIVE_ASSIGN_OR_RETURN(const auto dataset, table::Dataset::Open(own, 1));
  if (dataset->num_fragments() > 1) {
    return NotSupported("generation ", own.store->root(), " has ",
                        dataset->num_fragments(), " fragments instead of one");
  }
  const file::Field* tombstone = dataset->schema().FindTopLevel(kTombstone);
  if (tombstone != nullptr) {
    if (tombstone->type->id() != arrow::Type::BOOL) {
      return Corruption("column ", kTombstone, " of generation ", own.store->root(),
                        " is not boolean");
    }
    facts->tombstone_field = tombstone->id;
  }
  for (size_t k = 0; k < keys.ids.size(); ++k) {
    const file::Field* field = dataset->schema().FindById(keys.ids[k]);
    if (field == nullptr || !field->type->Equals(*keys.types[k])) {
      return Corruption("generation ", own.store->root(), " has no key column '",
                        keys.names[k], "' of type ", keys.types[k]->ToString());
    }
    facts->key_names.push_back(field->name);
  }
  facts->key_types = keys.types;
  facts->directory = std::move(directory);
  facts->cache_key = std::move(cache_key);
  facts->snapshot = table::DatasetBuilder::SnapshotOf(*dataset);
  return facts;
}

Result<Generation::Ptr> Generation::Open(const table::TableEnv& env, const ShardId& shard,
                                         uint64_t number, const std::string& name,
                                         const KeyColumns& keys) {
  GLAIVE_ASSIGN_OR_RETURN(std::string directory, GenerationDir(shard, name));
  std::string cache_key =
      "lsm-generation:" + env.store->root() + "/" + directory + ":" + keys.cache_key;
  table::TableEnv own;
  own.runtime = env.runtime;
  own.store = env.store->Child(directory);
  Cache& cache = env.runtime->cache();
  auto facts = std::const_pointer_cast<Facts>(cache.Get<Facts>(cache_key));
  if (facts == nullptr) {
    GLAIVE_ASSIGN_OR_RETURN(facts, Load(own, std::move(directory), cache_key, keys));
    cache.Put(cache_key, facts, kGenerationBytes);
  }
  std::shared_ptr<Generation> made(new Generation());
  made->number_ = number;
  made->dataset_ = table::DatasetBuilder::Make(std::move(own), facts->snapshot);
  made->facts_ = std::move(facts);
  return made;
}

Result<std::shared_ptr<const GenerationKeys>> Generation::keys() const {
  Cache& cache = dataset_->env().runtime->cache();
  const std::string key = "keys/" + facts_->cache_key;
  if (auto known = cache.Get<GenerationKeys>(key)) return known;
  GLAIVE_ASSIGN_OR_RETURN(auto loaded,
                          GenerationKeys::Load(*dataset_, facts_->key_names));
  cache.Put(key, loaded, loaded->size_bytes());
  return loaded;
}

Result<bool> Generation::MayContain(std::span<const std::shared_ptr<arrow::Array>> key,
                                    int64_t row) const {
  Facts& facts = *facts_;
  if (!CanPrune(facts.key_types)) return true;
  std::lock_guard lock(facts.mutex);
  if (!facts.bloom_loaded) {
    auto bytes = dataset_->env().store->Get(kBloomFile);
    if (bytes.ok()) {
      GLAIVE_ASSIGN_OR_RETURN(
          facts.bloom,
          KeyBloom::Parse({(*bytes)->data(), static_cast<size_t>((*bytes)->size())}));
    } else if (KindOf(bytes.status()) != ErrorKind::kNotFound) {
      return bytes.status();
    }
    facts.bloom_loaded = true;
  }
  return !facts.bloom || facts.bloom->MayContain(key, row);
}

Result<std::shared_ptr<const table::DeletionVector>> Generation::ReadTombstones() const {
  std::shared_ptr<const table::DeletionVector> none;
  if (!facts_->tombstone_field || dataset_->num_fragments() == 0) return none;
  GLAIVE_ASSIGN_OR_RETURN(auto reader, dataset_->OpenFragment(0));
  const int32_t id = *facts_->tombstone_field;
  GLAIVE_ASSIGN_OR_RETURN(const auto projection,
                          reader->Bind(dataset_->schema().ProjectByIds({&id, 1})));
  GLAIVE_ASSIGN_OR_RETURN(auto batch,
                          reader->ReadRange(projection, 0, reader->physical_rows()));
  const auto& flags = static_cast<const arrow::BooleanArray&>(*batch->column(0));
  if (flags.true_count() == 0) return none;
  std::vector<uint32_t> offsets;
  for (int64_t i = 0; i < flags.length(); ++i) {
    if (flags.IsValid(i) && flags.Value(i)) offsets.push_back(static_cast<uint32_t>(i));
  }
  return table::DeletionVector::FromOffsets(offsets);
}

Result<std::shared_ptr<const table::DeletionVector>> Generation::tombstones() const {
  std::lock_guard lock(facts_->mutex);
  if (!facts_->tombstones_loaded) {
    GLAIVE_ASSIGN_OR_RETURN(facts_->tombstones, ReadTombstones());
    facts_->tombstones_loaded = true;
  }
  return facts_->tombstones;
}

}  // namespace glaive::memwal
