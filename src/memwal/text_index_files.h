// A full-text index over the rows of a memtable.
#pragma once

#include <string>

#include <arrow/type_fwd.h>

#include "base/status.h"
#include "file/version.h"
#include "index/text/tokenizer_params.h"
#include "runtime/runtime.h"

namespace glaive::io {
class ObjectStore;
}

namespace glaive::memwal {

// Texts, and lists of texts: those are one document, their elements in a row.
bool IsTextIndexType(const arrow::DataType& type);

// The files of an index of row n of `texts` under number n, in `directory`; false, and
// nothing, when no row has a token. Lists of documents are held meanwhile; what they take
// counts in `budget`, also beyond its bound: rows that wait for them take more.
Result<bool> WriteTextIndexFiles(io::ObjectStore& store, const std::string& directory,
                                 const arrow::ChunkedArray& texts,
                                 const text::TokenizerParams& params,
                                 file::FileVersion version, MemoryBudget& budget);

}  // namespace glaive::memwal
