// Fetches the bytes that blob descriptors point at.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <arrow/type_fwd.h>

#include "base/status.h"
#include "file/schema.h"
#include "io/object_store.h"

namespace glaive::file {

// Where the files lie that belong to a data file.
struct FilesBeside {
  std::shared_ptr<io::ObjectStore> store;  // null: not known
  std::string path;                        // of the data file
};

// `data`, an array of `field` as readers return it, with descriptors replaced by their
// bytes; those of blobs of the second kind by what was given to the writer. Corruption
// when a blob lies outside of its file. Those outside of the table keep their uri;
// NotSupported for those below other base paths.
Result<std::shared_ptr<arrow::ArrayData>> LoadBlobColumn(
    io::RandomAccessObject& object, const FilesBeside& beside, const Field& field,
    const std::shared_ptr<arrow::ArrayData>& data);

// Adds to each row the bytes that LoadBlobColumn would load for it.
void AddBlobBytes(const Field& field, const arrow::ArrayData& data,
                  std::vector<uint64_t>* rows);

}  // namespace glaive::file
