// The two files of a vector index of one partition that holds the vectors as they are, so
// that a search through it is exact.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <arrow/type_fwd.h>

#include "base/status.h"
#include "file/version.h"

namespace glaive::io {
class ObjectStore;
}

namespace glaive::memwal {

// Whether a column of this type can have one: fixed-size lists of float32.
bool IsVectorIndexType(const arrow::DataType& type);

// Writes both files of an IVF_FLAT index into `directory`. `metric`: "l2", "cosine" or
// "dot". Rows without a vector, with an element that is null or not finite, and for
// cosine those of length zero, are not in it, as in every index of this kind. False when
// no row is left: nothing was written then.
Result<bool> WriteVectorIndexFiles(io::ObjectStore& store, const std::string& directory,
                                   const arrow::ChunkedArray& vectors,
                                   std::string_view metric, file::FileVersion version);

}  // namespace glaive::memwal
