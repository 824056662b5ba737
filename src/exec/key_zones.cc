#include "exec/key_zones.h"

#include <algorithm>
#include <memory>

#include <arrow/type.h>

#include "format/table.pb.h"
#include "io/object_store.h"
#include "runtime/runtime.h"

namespace glaive::exec {

KeyZones::KeyZones(const table::Dataset& dataset, const KeyCodec& codec)
    : dataset_(dataset) {
  if (!codec.fixed()) return;
  const file::Field* field =
      dataset.schema().FindTopLevel(codec.fields().front()->name());
  if (field != nullptr) field_id_ = field->id;
}

std::string KeyZones::CacheKey(const Morsel& morsel) const {
  if (field_id_ < 0) return {};
  for (const auto& file : dataset_.fragment(morsel.fragment).files()) {
    if (std::find(file.fields().begin(), file.fields().end(), field_id_) ==
        file.fields().end()) {
      continue;
    }
    // Names of files are given once.
    std::string key = "key-zone:" + dataset_.env().store->root();
    for (const std::string& part :
         {file.path(), std::to_string(field_id_), std::to_string(morsel.start),
          std::to_string(morsel.count)}) {
      key += '\n';
      key += part;
    }
    return key;
  }
  return {};
}

KeyZone KeyZones::Of(const Morsel& morsel) const {
  const std::string key = CacheKey(morsel);
  if (key.empty()) return {};
  const auto found = dataset_.env().runtime->cache().Get<KeyZone>(key);
  return found == nullptr ? KeyZone() : *found;
}

void KeyZones::Remember(const Morsel& morsel, const KeyBatch& keys) const {
  const std::string key = CacheKey(morsel);
  if (key.empty()) return;
  auto zone = std::make_shared<KeyZone>();
  zone->known = true;
  zone->least = UINT64_MAX;
  for (int64_t i = 0; i < keys.rows; ++i) {
    if (keys.IsNull(i)) continue;
    zone->least = std::min(zone->least, keys.words[i]);
    zone->most = std::max(zone->most, keys.words[i]);
  }
  const auto bytes = static_cast<int64_t>(sizeof(KeyZone) + 2 * key.size());
  dataset_.env().runtime->cache().Put(key, std::move(zone), bytes);
}

}  // namespace glaive::exec
