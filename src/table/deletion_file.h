// Reads and writes the deletion file of a fragment.
#pragma once

#include <cstdint>
#include <memory>

#include "base/status.h"

namespace lance::table {
class DataFragment;
class DeletionFile;
}  // namespace lance::table
namespace glaive::io {
class ObjectStore;
}

namespace glaive::table {

class DeletionVector;
class UnsyncedFiles;
struct TableEnv;

// Null when the fragment has none. Corruption when the file does not fit the fragment.
Result<std::shared_ptr<const DeletionVector>> ReadDeletionFile(
    const TableEnv& env, const lance::table::DataFragment& fragment,
    int64_t physical_rows);

// Writes the whole vector under a new name. Small vectors become Arrow files, as upstream
// chooses, unless `always_bitmap`. With `unsynced` the file is left to the commit;
// `store` must live until then.
Result<lance::table::DeletionFile> WriteDeletionFile(
    io::ObjectStore& store, uint64_t fragment_id, uint64_t read_version,
    const DeletionVector& vector, bool always_bitmap, UnsyncedFiles* unsynced = nullptr);

}  // namespace glaive::table
