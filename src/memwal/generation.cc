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

Result<Generation::Ptr> Generation::Open(const table::TableEnv& env, const ShardId& shard,
                                         uint64_t number, const std::string& name,
                                         const KeyColumns& keys) {
  GLAIVE_ASSIGN_OR_RETURN(std::string directory, GenerationDir(shard, name));
  std::string cache_key =
      "lsm-generation:" + env.store->root() + "/" + directory + ":" + keys.cache_key;
  if (auto known = env.runtime->cache().Get<Generation>(cache_key)) return known;

  std::shared_ptr<Generation> made(new Generation());
  made->shard_ = shard;
  made->number_ = number;
  table::TableEnv own;
  own.runtime = env.runtime;
  own.store = env.store->Child(directory);
  GLAIVE_ASSIGN_OR_RETURN(made->dataset_, table::Dataset::Open(std::move(own), 1));
  const table::Dataset& dataset = *made->dataset_;
  if (dataset.num_fragments() > 1) {
    return NotSupported("generation ", directory, " of table ", env.store->root(),
                        " has ", dataset.num_fragments(), " fragments instead of one");
  }
  const file::Field* tombstone = dataset.schema().FindTopLevel(kTombstone);
  if (tombstone != nullptr) {
    if (tombstone->type->id() != arrow::Type::BOOL) {
      return Corruption("column ", kTombstone, " of generation ", directory, " of table ",
                        env.store->root(), " is not boolean");
    }
    made->tombstone_field_ = tombstone->id;
  }
  for (size_t k = 0; k < keys.ids.size(); ++k) {
    const file::Field* field = dataset.schema().FindById(keys.ids[k]);
    if (field == nullptr || !field->type->Equals(*keys.types[k])) {
      return Corruption("generation ", directory, " of table ", env.store->root(),
                        " has no key column '", keys.names[k], "' of type ",
                        keys.types[k]->ToString());
    }
    made->key_names_.push_back(field->name);
  }
  made->key_types_ = keys.types;
  made->directory_ = std::move(directory);
  made->cache_key_ = cache_key;
  Ptr result = made;
  env.runtime->cache().Put(cache_key, result, kGenerationBytes);
  return result;
}

Result<std::shared_ptr<const GenerationKeys>> Generation::keys() const {
  Cache& cache = dataset_->env().runtime->cache();
  const std::string key = "keys/" + cache_key_;
  if (auto known = cache.Get<GenerationKeys>(key)) return known;
  GLAIVE_ASSIGN_OR_RETURN(auto loaded, GenerationKeys::Load(*dataset_, key_names_));
  cache.Put(key, loaded, loaded->size_bytes());
  return loaded;
}

Result<bool> Generation::MayContain(std::span<const std::shared_ptr<arrow::Array>> key,
                                    int64_t row) const {
  if (!CanPrune(key_types_)) return true;
  std::lock_guard lock(mutex_);
  if (!bloom_loaded_) {
    auto bytes = dataset_->env().store->Get(kBloomFile);
    if (bytes.ok()) {
      GLAIVE_ASSIGN_OR_RETURN(
          bloom_,
          KeyBloom::Parse({(*bytes)->data(), static_cast<size_t>((*bytes)->size())}));
    } else if (KindOf(bytes.status()) != ErrorKind::kNotFound) {
      return bytes.status();
    }
    bloom_loaded_ = true;
  }
  return !bloom_ || bloom_->MayContain(key, row);
}

Status Generation::LoadTombstones() const {
  if (!tombstone_field_ || dataset_->num_fragments() == 0) return Status::OK();
  GLAIVE_ASSIGN_OR_RETURN(auto reader, dataset_->OpenFragment(0));
  const int32_t id = *tombstone_field_;
  GLAIVE_ASSIGN_OR_RETURN(const auto projection,
                          reader->Bind(dataset_->schema().ProjectByIds({&id, 1})));
  GLAIVE_ASSIGN_OR_RETURN(auto batch,
                          reader->ReadRange(projection, 0, reader->physical_rows()));
  const auto& flags = static_cast<const arrow::BooleanArray&>(*batch->column(0));
  std::vector<uint32_t> offsets;
  if (flags.true_count() > 0) {
    for (int64_t i = 0; i < flags.length(); ++i) {
      if (flags.IsValid(i) && flags.Value(i)) {
        offsets.push_back(static_cast<uint32_t>(i));
      }
    }
  }
  if (!offsets.empty()) tombstones_ = table::DeletionVector::FromOffsets(offsets);
  return Status::OK();
}

Result<std::shared_ptr<const table::DeletionVector>> Generation::tombstones() const {
  std::lock_guard lock(mutex_);
  if (!tombstones_loaded_) {
    GLAIVE_RETURN_NOT_OK(LoadTombstones());
    tombstones_loaded_ = true;
  }
  return tombstones_;
}

}  // namespace glaive::memwal
