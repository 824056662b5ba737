// Which indices of the base a writer's generations get as well.
#pragma once

#include "base/status.h"
#include "memwal/generation_writer.h"
#include "memwal/mem_wal_index.h"
#include "table/dataset.h"

namespace lance::table {
class IndexMetadata;
}

namespace glaive::memwal {

// InvalidInput, as upstream words it, for a vector index that no memtable can maintain.
Status CheckVectorIndex(const table::Dataset& base,
                        const lance::table::IndexMetadata& index);

// BTree indices of one column, and vector indices over fixed-size lists of float32. All
// that the table has when it says so, leaving out what cannot be maintained; otherwise
// those that it names: NotSupported or InvalidInput says which one cannot be.
Status FindMaintainedIndices(const table::Dataset& base, const MemWalDetails& details,
                             GenerationOptions* options);

}  // namespace glaive::memwal
