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

// NotSupported, by name, for a full-text index over a column, or with a tokenizer, that
// is not built; Corruption.
Status CheckTextIndex(const table::Dataset& base,
                      const lance::table::IndexMetadata& index);

// BTree indices of one column, vector indices over fixed-size lists of float32, and
// full-text indices. All that the table has when it says so, leaving out what cannot be
// maintained; otherwise those that it names: NotSupported or InvalidInput says which one
// cannot be.
Status FindMaintainedIndices(const table::Dataset& base, const MemWalDetails& details,
                             GenerationOptions* options);

}  // namespace glaive::memwal
