// Filters of inserted keys, by which two upserts find out that they insert the same key.
#pragma once

#include "base/status.h"
#include "format/transaction.pb.h"

namespace glaive::table {

// Whether an update with a filter may insert a key that `theirs`, which came first,
// inserted. True when that cannot be told: no filter, other key columns, another kind.
bool MayInsertSameKey(const lance::table::Transaction::Update& ours,
                      const lance::table::Transaction::Update& theirs);

}  // namespace glaive::table
