// The two files of a BTree index: sorted values with their rows, and the bounds of their
// pages.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <arrow/type_fwd.h>

#include "base/status.h"
#include "file/version.h"
#include "memwal/keys.h"

namespace glaive::io {
class ObjectStore;
}

namespace glaive::memwal {

inline constexpr char kPageDataFile[] = "page_data.lance";
inline constexpr char kPageLookupFile[] = "page_lookup.lance";

// Whether the values of a column of this type can be sorted into a BTree.
bool IsBtreeType(const arrow::DataType& type);

// Bytes whose order is that of the values: nulls first, numbers by value with -0 before 0
// and NaN last, text and bytes by byte. NotSupported unless IsBtreeType.
Result<EncodedKeys> SortKeys(const std::shared_ptr<arrow::Array>& values);

// Rows in ascending order of `keys`, equal ones by row. Below 2^32 rows.
std::vector<uint32_t> SortedRows(const EncodedKeys& keys);

struct BtreeFiles {
  int64_t data_bytes = 0;
  int64_t lookup_bytes = 0;
};

// Writes both into `directory`. `order`: SortedRows of `values`, all of them; at least
// one.
Result<BtreeFiles> WriteBtreeFiles(io::ObjectStore& store, const std::string& directory,
                                   const std::shared_ptr<arrow::Array>& values,
                                   const std::vector<uint32_t>& order,
                                   file::FileVersion version, int64_t page_rows);

}  // namespace glaive::memwal
