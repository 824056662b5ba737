#include "encoding/levels_read.h"

#include <algorithm>

namespace glaive::encoding {

void LevelBatch::Clear() {
  num_entries = 0;
  rep.Clear();
  def.Clear();
}

Result<LevelRules> LevelRules::Make(std::span<const int> kinds,
                                    std::span<const PathLayer> path) {
  LevelRules out;
  out.path_.assign(path.begin(), path.end());
  if (kinds.empty()) {
    for (const PathLayer& layer : path) {
      if (layer.is_list) return Corruption("a page of a list column without layers");
      out.layers_.push_back(LayerKind::kAllValidItem);
    }
  } else if (kinds.size() != path.size()) {
    return Corruption("a page has ", kinds.size(), " layers, its column has ",
                      path.size());
  }
  int lists = 0;
  out.owner_lists_.push_back(0);
  bool visible = true;
  uint16_t max_def = 0;
  uint16_t max_visible = 0;
  for (size_t i = 0; i < kinds.size(); ++i) {
    if (kinds[i] < 1 || kinds[i] > 6) return Corruption("unknown layer kind ", kinds[i]);
    auto kind = static_cast<LayerKind>(kinds[i]);
    if (IsList(kind) != path[i].is_list) {
      return Corruption("layer ", i, " of a page has kind ", kinds[i],
                        ", which the column's type does not have there");
    }
    out.layers_.push_back(kind);
    if (IsList(kind)) {
      ++lists;
      visible = false;
    }
    for (int n = 0; n < NumLevels(kind); ++n) {
      out.owner_lists_.push_back(static_cast<uint8_t>(lists));
      ++max_def;
    }
    if (visible) max_visible = max_def;
  }
  out.max_rep_ = static_cast<uint16_t>(lists);
  out.max_def_ = max_def;
  out.max_visible_def_ = max_visible;
  return out;
}

int64_t CountVisible(const uint16_t* def, int64_t count, uint16_t max_visible) {
  int64_t visible = 0;
  for (int64_t i = 0; i < count; ++i) visible += def[i] <= max_visible;
  return visible;
}

Status CheckLevels(const LevelRules& rules, const uint16_t* rep, const uint16_t* def,
                   int64_t count) {
  uint16_t top = 0;
  if (rep) {
    for (int64_t i = 0; i < count; ++i) top = std::max(top, rep[i]);
    if (top > rules.max_rep()) {
      return Corruption("repetition level ", top, " above ", rules.max_rep());
    }
  }
  top = 0;
  if (def) {
    for (int64_t i = 0; i < count; ++i) top = std::max(top, def[i]);
    if (top > rules.max_def()) {
      return Corruption("definition level ", top, " above ", rules.max_def());
    }
  }
  return Status::OK();
}

StructureSink::StructureSink(std::span<const PathLayer> path) : layers_(path.size()) {
  for (size_t i = 0; i < path.size(); ++i) layers_[i].is_list = path[i].is_list;
}

Status StructureSink::Append(const LevelRules& rules, const LevelBatch& levels) {
  const uint16_t* rep = levels.has_rep ? levels.rep_data() : nullptr;
  const uint16_t* def = levels.has_def ? levels.def_data() : nullptr;
  if ((rep && levels.rep.size() != 2 * levels.num_entries) ||
      (def && levels.def.size() != 2 * levels.num_entries)) {
    return Corruption("repetition and definition levels differ in number");
  }
  GLAIVE_RETURN_NOT_OK(CheckLevels(rules, rep, def, levels.num_entries));
  if (rules.max_rep() > 0) {
    if (!rep) return Corruption("a page of a list column without repetition levels");
    return AppendNested(rules, levels);
  }
  return AppendItems(0, rules, levels);
}

// No lists: every entry is a slot of every layer, apart from fixed-size lists of structs,
// whose slots stand for `dimension` entries each.
Status StructureSink::AppendItems(size_t layer, const LevelRules& rules,
                                  const LevelBatch& levels) {
  const uint16_t* def = levels.has_def ? levels.def_data() : nullptr;
  std::vector<uint16_t> thinned;
  int64_t count = levels.num_entries;
  uint16_t base = 0;
  for (; layer < layers_.size(); ++layer) {
    const int64_t dimension = rules.path()[layer].dimension;
    if (dimension > 1) {
      if (count % dimension != 0) {
        return Corruption(count, " entries are no whole number of lists of ", dimension);
      }
      count /= dimension;
      if (def) {
        std::vector<uint16_t> next(static_cast<size_t>(count));
        for (int64_t i = 0; i < count; ++i)
          next[static_cast<size_t>(i)] = def[i * dimension];
        thinned = std::move(next);
        def = thinned.data();
      }
    }
    ValiditySink& validity = layers_[layer].validity;
    const bool nullable = rules.layers()[layer] == LayerKind::kNullableItem;
    if (nullable && def) {
      GLAIVE_RETURN_NOT_OK(validity.AppendLevels(def, count, base));
    } else {
      GLAIVE_RETURN_NOT_OK(validity.AppendValid(count));
    }
    if (nullable) ++base;
  }
  return Status::OK();
}

Status StructureSink::AppendNested(const LevelRules& rules, const LevelBatch& levels) {
  auto total = static_cast<size_t>(levels.num_entries);
  std::vector<uint16_t> rep(levels.rep_data(), levels.rep_data() + total);
  std::vector<uint16_t> def(total, 0);
  if (levels.has_def) std::copy_n(levels.def_data(), total, def.data());
  std::vector<uint16_t> slots;

  int depth = 0;
  uint16_t base = 0;
  int64_t inner_slots = 0;  // slots that the layer below has got from these levels
  for (size_t li = 0; li < layers_.size(); ++li) {
    const LayerKind kind = rules.layers()[li];
    LayerSink& sink = layers_[li];
    const int64_t dimension = rules.path()[li].dimension;
    if (!IsList(kind)) {
      if (dimension > 1) {
        // Keep the first of `dimension` slots; placeholders of outer lists stay.
        size_t kept = 0;
        int64_t skip = 0;
        for (size_t i = 0; i < rep.size(); ++i) {
          bool slot = rules.OwnerLists(def[i]) <= depth;
          if (slot && skip > 0) {
            --skip;
            continue;
          }
          if (skip > 0) return Corruption("a fixed-size list of structs is cut short");
          rep[kept] = rep[i];
          def[kept++] = def[i];
          if (slot) skip = dimension - 1;
        }
        if (skip > 0) return Corruption("a fixed-size list of structs is cut short");
        rep.resize(kept);
        def.resize(kept);
      }
      slots.clear();
      for (uint16_t d : def) {
        if (rules.OwnerLists(d) <= depth) slots.push_back(d);
      }
      auto count = static_cast<int64_t>(slots.size());
      if (li > 0 && count * dimension != inner_slots) {
        return Corruption("levels give ", inner_slots, " slots inside ", count, " items");
      }
      if (kind == LayerKind::kNullableItem) {
        GLAIVE_RETURN_NOT_OK(sink.validity.AppendLevels(slots.data(), count, base));
        ++base;
      } else {
        GLAIVE_RETURN_NOT_OK(sink.validity.AppendValid(count));
      }
      inner_slots = count;
      continue;
    }

    const bool nullable =
        kind == LayerKind::kNullableList || kind == LayerKind::kNullAndEmptyList;
    const bool emptyable =
        kind == LayerKind::kEmptyableList || kind == LayerKind::kNullAndEmptyList;
    const uint16_t null_level = nullable ? static_cast<uint16_t>(base + 1) : 0;
    const uint16_t empty_level =
        emptyable ? static_cast<uint16_t>(base + (nullable ? 2 : 1)) : 0;
    base = static_cast<uint16_t>(base + NumLevels(kind));
    const uint16_t upper = base;
    uint16_t visible_max = upper;
    for (size_t k = li + 1; k < layers_.size() && !IsList(rules.layers()[k]); ++k) {
      visible_max = static_cast<uint16_t>(visible_max + NumLevels(rules.layers()[k]));
    }
    ++depth;
    const int64_t already = sink.offsets.empty() ? 0 : sink.offsets.back();
    // offsets[i] is the end of list i: a new list closes the one before it.
    int64_t current = 0;
    int64_t lists = 0;
    bool any_null = false;
    bool open = false;  // the current list may have further items
    std::vector<uint16_t> null_flags;
    null_flags.reserve(rep.size());
    size_t kept = 0;
    for (size_t i = 0; i < rep.size(); ++i) {
      const uint16_t r = rep[i];
      const uint16_t d = def[i];
      if (r == 0) {
        if (!open) return Corruption("an item after a null or empty list");
        ++current;
        continue;
      }
      rep[kept] = static_cast<uint16_t>(r - 1);
      def[kept++] = d;
      open = false;
      if (d > visible_max) continue;  // placeholder of an outer list
      if (lists > 0) sink.offsets.push_back(already + current);
      ++lists;
      const bool null = d > upper || (d != 0 && d == null_level);
      const bool empty = d != 0 && d == empty_level;
      null_flags.push_back(null);
      any_null |= null;
      open = !null && !empty;
      if (open) ++current;
    }
    if (lists > 0) {
      sink.offsets.push_back(already + current);
    } else if (current > 0) {
      return Corruption("list items that belong to no list");
    }
    rep.resize(kept);
    def.resize(kept);
    if (current != inner_slots) {
      return Corruption("lists hold ", current, " items, ", inner_slots, " are there");
    }
    if (any_null) {
      GLAIVE_RETURN_NOT_OK(sink.validity.AppendLevels(null_flags.data(), lists, 0));
    } else {
      GLAIVE_RETURN_NOT_OK(sink.validity.AppendValid(lists));
    }
    inner_slots = lists;
  }
  return Status::OK();
}

}  // namespace glaive::encoding
