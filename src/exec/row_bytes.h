// How many bytes the rows of a batch take, whatever it was sliced from.
#pragma once

#include <cstdint>
#include <optional>

#include <arrow/type_fwd.h>

namespace glaive::exec {

// Bytes that rows [begin, begin + count) of `data` take in their buffers, with one offset
// for each row that needs one; nullopt for layouts (views, unions, dictionaries) that are
// not counted row by row. Cheap: no allocation, no look at the values.
std::optional<int64_t> RowBytes(const arrow::ArrayData& data, int64_t begin,
                                int64_t count);
// The same of a whole batch; columns of other layouts count with the parts of their
// buffers that they refer to, or with all of them where Arrow cannot tell.
int64_t RowBytes(const arrow::RecordBatch& batch);

}  // namespace glaive::exec
