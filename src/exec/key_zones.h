// What earlier merges learnt about the keys of a table: the smallest and the largest of a
// range of rows, so that the next one reads only the ranges that may hold its keys.
//
// Data files never change, so this stays true; it is kept in the runtime's cache.
#pragma once

#include <cstdint>
#include <string>

#include "exec/merge_keys.h"
#include "exec/merge_table.h"
#include "exec/morsel.h"
#include "table/dataset.h"

namespace glaive::exec {

// Bounds of keys as words (see KeyBatch), deleted rows included.
struct KeyZone {
  bool known = false;
  uint64_t least = 0;
  uint64_t most = 0;  // below `least`: no key but null

  bool MayHold(const KeyTable& keys) const {
    return !known || (least <= keys.most_word() && keys.least_word() <= most);
  }
};

// Thread-safe.
class KeyZones {
 public:
  // Knows nothing about keys that are no words.
  KeyZones(const table::Dataset& dataset, const KeyCodec& codec);

  KeyZone Of(const Morsel& morsel) const;
  // `keys`: those of the morsel, all of them.
  void Remember(const Morsel& morsel, const KeyBatch& keys) const;

 private:
  // Empty when there is no telling which file the keys are from.
  std::string CacheKey(const Morsel& morsel) const;

  const table::Dataset& dataset_;
  int32_t field_id_ = -1;  // of the key; -1: nothing is known
};

}  // namespace glaive::exec
