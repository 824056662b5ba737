#include "memwal/lsm_state.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include <arrow/record_batch.h>
#include <arrow/type.h>

#include "io/object_store.h"
#include "runtime/runtime.h"

namespace glaive::memwal {
namespace {

constexpr int64_t kMaxOwnerBytes = int64_t{256} << 20;
constexpr int64_t kStateBytes = int64_t{1} << 20;

std::string KeyOf(const table::TableEnv& env) { return "lsm-state:" + env.store->root(); }

}  // namespace

std::shared_ptr<LsmState> LsmState::Of(const table::TableEnv& env) {
  Runtime& runtime = *env.runtime;
  const std::string key = KeyOf(env);
  if (auto found = runtime.cache().Get<LsmState>(key)) {
    return std::const_pointer_cast<LsmState>(found);
  }
  // Two threads may both come here; what the loser's readers find out is lost.
  auto state = std::make_shared<LsmState>(
      std::min(kMaxOwnerBytes, runtime.memory().limit_bytes() / 8));
  state->accounted_bytes = kStateBytes;
  runtime.cache().Put(key, state, kStateBytes);
  return state;
}

void LsmState::Account(const table::TableEnv& env,
                       const std::shared_ptr<LsmState>& state) {
  const int64_t bytes = kStateBytes + state->tail_bytes + state->owner_bytes;
  if (std::abs(bytes - state->accounted_bytes) < kStateBytes) return;
  state->accounted_bytes = bytes;
  env.runtime->cache().Put(KeyOf(env), state, bytes);
}

Result<std::shared_ptr<const FreshSchema>> LsmState::SchemaOf(
    const table::Dataset& base) {
  auto arrow_schema = base.arrow_schema();
  {
    std::lock_guard lock(schema_mutex);
    if (schema != nullptr && schema_of == arrow_schema) return schema;
  }
  GLAIVE_ASSIGN_OR_RETURN(auto made, FreshSchema::Make(base));
  std::lock_guard lock(schema_mutex);
  schema_of = std::move(arrow_schema);
  schema = made;
  return made;
}

Result<std::shared_ptr<const BaseKeys>> LsmState::KeysOf(
    const table::Dataset::Ptr& base, const std::vector<std::string>& key_columns) {
  {
    std::lock_guard lock(schema_mutex);
    if (keys != nullptr && keys_of.lock() == base && keys_by == key_columns) return keys;
  }
  GLAIVE_ASSIGN_OR_RETURN(auto made, BaseKeys::Make(*base, key_columns));
  std::lock_guard lock(schema_mutex);
  keys_of = base;
  keys_by = key_columns;
  keys = made;
  return made;
}

MemtableHits& LsmState::HitsOf(const Memtable::View& view) {
  // Those of memtables that are gone.
  std::erase_if(memory, [](const auto& hits) { return hits->first_batch.expired(); });
  const auto& first = view.batches().front();
  for (const auto& hits : memory) {
    if (hits->first_batch.lock() == first) return *hits;
  }
  memory.push_back(std::make_unique<MemtableHits>());
  memory.back()->first_batch = first;
  return *memory.back();
}

}  // namespace glaive::memwal
