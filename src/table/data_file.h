// Opens the data files of a table; readers are shared through the runtime's cache.
#pragma once

#include <memory>

#include "base/status.h"
#include "file/file_reader.h"
#include "file/version.h"
#include "table/dataset.h"

namespace lance::table {
class DataFile;
class DataFragment;
}  // namespace lance::table

namespace glaive::table {

// NotSupported for legacy and unstable versions.
Result<file::FileVersion> DataFileVersionOf(const lance::table::DataFile& file);

// Corruption when the file does not have the size or version that the manifest says.
// Without a runtime (it may have ended before a reader of the table) nothing is shared.
Result<std::shared_ptr<const file::FileReader>> OpenDataFile(
    const TableEnv& env, const lance::table::DataFile& file);

// Bytes of all data files of a fragment, as the manifest knows them.
int64_t DataFileBytes(const lance::table::DataFragment& fragment);

// Lets the next OpenDataFile read the file's metadata again.
void ForgetDataFile(const TableEnv& env, const lance::table::DataFile& file);

}  // namespace glaive::table
