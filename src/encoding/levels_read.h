// Turns repetition and definition levels of leaf columns back into validity and list
// offsets.
//
// Rules: docs/format/pages.md, section "Repetition and definition levels".
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "encoding/value_sink.h"

namespace glaive::encoding {

// The numbers are those of the format.
enum class LayerKind : uint8_t {
  kAllValidItem = 1,
  kAllValidList = 2,
  kNullableItem = 3,
  kNullableList = 4,
  kEmptyableList = 5,
  kNullAndEmptyList = 6,
};

inline bool IsList(LayerKind kind) {
  return kind != LayerKind::kAllValidItem && kind != LayerKind::kNullableItem;
}
// Definition levels that the layer takes.
inline int NumLevels(LayerKind kind) {
  if (kind == LayerKind::kNullAndEmptyList) return 2;
  return kind == LayerKind::kAllValidItem || kind == LayerKind::kAllValidList ? 0 : 1;
}

// What one layer of a leaf's path is in the schema.
struct PathLayer {
  bool is_list = false;
  int64_t dimension = 1;  // of a fixed-size list of structs, else 1
};

// The layers of one page, inner-most first, and what follows from them.
class LevelRules {
 public:
  // `kinds`: as stored; empty means that nothing can be null. `path`: what the schema
  // says, same order. Corruption when the two do not fit.
  static Result<LevelRules> Make(std::span<const int> kinds,
                                 std::span<const PathLayer> path);

  std::span<const LayerKind> layers() const { return layers_; }
  const std::vector<PathLayer>& path() const { return path_; }
  uint16_t max_rep() const { return max_rep_; }
  uint16_t max_def() const { return max_def_; }
  // Entries with a definition level up to this one own a value.
  uint16_t max_visible_def() const { return max_visible_def_; }
  // List layers met from the leaf up to the layer that owns level `def`, that layer
  // included.
  int OwnerLists(uint16_t def) const { return owner_lists_[def]; }

 private:
  std::vector<LayerKind> layers_;
  std::vector<PathLayer> path_;
  std::vector<uint8_t> owner_lists_;
  uint16_t max_rep_ = 0;
  uint16_t max_def_ = 0;
  uint16_t max_visible_def_ = 0;
};

// Levels of consecutive rows; `rep` or `def` is empty when the page has none of that
// kind.
struct LevelBatch {
  int64_t num_entries = 0;
  bool has_rep = false;
  bool has_def = false;
  ByteSink rep;  // uint16_t each
  ByteSink def;

  const uint16_t* rep_data() const {
    return reinterpret_cast<const uint16_t*>(rep.data());
  }
  const uint16_t* def_data() const {
    return reinterpret_cast<const uint16_t*>(def.data());
  }
  void Clear();
};

// Structure of one layer over all pages read: validity, and offsets where it is a list.
struct LayerSink {
  bool is_list = false;
  ValiditySink validity;
  std::vector<int64_t> offsets;  // end of each list; the start of the first is 0
  int64_t length() const { return validity.length(); }
};

// Collects the structure of one leaf's path, inner-most layer first.
class StructureSink {
 public:
  explicit StructureSink(std::span<const PathLayer> path);
  // Adds the levels of some rows of a page. Corruption when they contradict each other.
  Status Append(const LevelRules& rules, const LevelBatch& levels);
  std::vector<LayerSink>& layers() { return layers_; }

 private:
  Status AppendItems(size_t layer, const LevelRules& rules, const LevelBatch& levels);
  Status AppendNested(const LevelRules& rules, const LevelBatch& levels);
  // One list layer; `items`: how many items its lists hold.
  Status AppendList(size_t layer, const LevelRules& rules, uint16_t base,
                    const uint16_t* rep, const uint16_t* def, size_t count,
                    int64_t* items);

  std::vector<LayerSink> layers_;
};

// Entries of `def[0, count)` that own a value.
int64_t CountVisible(const uint16_t* def, int64_t count, uint16_t max_visible);

// Corruption when a level lies above its maximum.
Status CheckLevels(const LevelRules& rules, const uint16_t* rep, const uint16_t* def,
                   int64_t count);

}  // namespace glaive::encoding
