// Field ids are given once: a column that is added later never gets the id of one that
// was dropped, even where nothing of the dropped one is left.
#pragma once

#include <cstdint>

#include "base/status.h"

namespace lance::table {
class DataFragment;
class Manifest;
}  // namespace lance::table

namespace glaive::table {

struct Snapshot;

// The table's config remembers the highest id where neither the schema nor a data file
// does. Writers that do not know it keep it, and at worst give an id again.
inline constexpr char kMaxFieldIdKey[] = "glaive.max_field_id";

// What the config remembers; -1 when nothing.
int32_t RememberedFieldId(const lance::table::Manifest& header);
// The highest id that the data files of a fragment know; -1 when none does.
int32_t MaxFieldIdOf(const lance::table::DataFragment& fragment);
// The highest field id that the table ever gave, as far as it knows: new ones lie above.
Result<int32_t> MaxFieldId(const Snapshot& snapshot);

}  // namespace glaive::table
