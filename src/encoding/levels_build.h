// Turns the nested structure above one leaf into repetition and definition levels.
//
// Rules: docs/format/file.md, section "Repetition and definition levels".
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <arrow/type_fwd.h>

#include "base/status.h"
#include "format/encodings21.pb.h"

namespace glaive::encoding {

// One node on the way from the top-level column to the leaf.
enum class PathNode : uint8_t {
  kStruct,       // the next node is its only child
  kList,         // list, large list or map
  kFixedStruct,  // fixed-size list whose items are structs
  kLeaf,         // the value itself, whatever its type
};

// Rows [start, start + length) of `data`; `start` counts from the first value of the
// buffers, so the array's own offset is already in it.
struct Segment {
  const arrow::ArrayData* data = nullptr;
  int64_t start = 0;
  int64_t length = 0;
};

struct Levels {
  std::vector<lance::encodings21::RepDefLayer> layers;  // inner-most first
  std::vector<uint16_t> rep;                            // empty when max_rep is 0
  std::vector<uint16_t> def;                            // empty when max_def is 0
  int64_t num_levels = 0;   // entries, or values when there are no levels
  int64_t num_visible = 0;  // entries that own a value
  int64_t num_rows = 0;     // rows of the page, in slots of the outer-most list or leaf
  uint16_t max_rep = 0;
  uint16_t max_def = 0;
  uint16_t max_visible_def = 0;
  // The values in order, without those under null or empty lists.
  std::vector<Segment> values;

  bool has_rep() const { return max_rep > 0; }
  bool has_def() const { return max_def > 0; }
  bool visible(int64_t level) const {
    return def.empty() || def[static_cast<size_t>(level)] <= max_visible_def;
  }
};

// What the layer of a node allows for, even if no row of this page makes use of it.
inline constexpr uint8_t kAlwaysNullable = 1;
inline constexpr uint8_t kAlwaysEmptyable = 2;  // lists

// `arrays` hold the same column one after the other. Along the path every struct has
// exactly one child. `always` has the flags above per node, or is empty. `Levels::values`
// points into `arrays`.
Levels BuildLevels(std::span<const std::shared_ptr<arrow::ArrayData>> arrays,
                   std::span<const PathNode> path, std::span<const uint8_t> always = {});

// Nulls among the rows of a segment.
int64_t CountNulls(const Segment& segment);
bool IsNull(const Segment& segment, int64_t i);

}  // namespace glaive::encoding
