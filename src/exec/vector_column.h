// The vector column of a search: its element type, dimension and place in the schema.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <arrow/type_fwd.h>

#include "base/status.h"
#include "file/schema.h"

namespace glaive::exec {

enum class ElementType : uint8_t {
  kFloat16,
  kBFloat16,
  kFloat32,
  kFloat64,
  kUInt8,
  kInt8
};
std::string_view ElementTypeName(ElementType type);
int ElementBytes(ElementType type);

struct VectorColumn {
  std::vector<std::string> path;
  std::string name;  // the path, quoted where needed
  ElementType element = ElementType::kFloat32;
  int64_t dimension = 0;
  bool multi = false;  // lists of vectors

  int64_t row_bytes() const { return dimension * ElementBytes(element); }
};

// InvalidInput when the column does not exist or holds no vectors.
Result<VectorColumn> FindVectorColumn(const file::Schema& schema, std::string_view name);
// Every vector column, in schema order.
std::vector<VectorColumn> AllVectorColumns(const file::Schema& schema);

// Vectors of some rows, as they lie in memory.
struct VectorBlock {
  std::shared_ptr<arrow::Array> owner;
  const uint8_t* data = nullptr;  // vector i at data + i * row_bytes
  int64_t num_vectors = 0;
  // Bit `valid_offset + i`: vector i is not null. Null: all are.
  const uint8_t* valid = nullptr;
  int64_t valid_offset = 0;
  // Vectors with a null element, which cannot be compared; empty: none.
  std::vector<bool> broken;

  // Of a column of lists of vectors: row r owns vectors [offsets[r], offsets[r + 1])
  // relative to the block; null rows own none.
  std::vector<int64_t> offsets;
};

// `batch` was read with a projection of just this column.
Result<VectorBlock> BlockOf(const VectorColumn& column, const arrow::RecordBatch& batch);

}  // namespace glaive::exec
