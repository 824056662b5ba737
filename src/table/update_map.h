// Applies the changes of an UpdateMap, a message of transactions, to a map of strings.
#pragma once

#include "format/transaction.pb.h"

namespace glaive::table {

// `map`: of protobuf or of the standard library.
template <typename StringMap>
void ApplyUpdateMap(const lance::table::UpdateMap& update, StringMap* map) {
  if (update.replace()) map->clear();
  for (const auto& entry : update.update_entries()) {
    if (entry.has_value()) {
      (*map)[entry.key()] = entry.value();
    } else {
      map->erase(entry.key());
    }
  }
}

}  // namespace glaive::table
