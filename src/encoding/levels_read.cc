#include "encoding/levels_read.h"

#include <algorithm>
#include <utility>

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

namespace {

// Levels of the entries that the layers further out still see.
struct Entries {
  const uint16_t* rep = nullptr;
  const uint16_t* def = nullptr;
  size_t count = 0;
  std::vector<uint16_t> own_rep;  // what the pointers show once entries were dropped
  std::vector<uint16_t> own_def;
};

// What a definition level means to one list layer.
struct ListMeaning {
  uint8_t in_layer = 0;  // not a placeholder of a list further out
  uint8_t null = 0;
  uint8_t has_item = 0;  // the entry that starts the list is its first item
};

std::vector<ListMeaning> MeaningsOf(const LevelRules& rules, size_t layer,
                                    uint16_t base) {
  const LayerKind kind = rules.layers()[layer];
  const bool nullable =
      kind == LayerKind::kNullableList || kind == LayerKind::kNullAndEmptyList;
  const bool emptyable =
      kind == LayerKind::kEmptyableList || kind == LayerKind::kNullAndEmptyList;
  const int null_level = nullable ? base + 1 : 0;
  const int empty_level = emptyable ? base + (nullable ? 2 : 1) : 0;
  const int upper = base + NumLevels(kind);
  int visible_max = upper;
  for (size_t k = layer + 1; k < rules.layers().size() && !IsList(rules.layers()[k]);
       ++k) {
    visible_max += NumLevels(rules.layers()[k]);
  }
  std::vector<ListMeaning> out(static_cast<size_t>(rules.max_def()) + 1);
  for (int d = 0; d <= rules.max_def(); ++d) {
    ListMeaning& meaning = out[static_cast<size_t>(d)];
    meaning.in_layer = d <= visible_max;
    meaning.null = meaning.in_layer && (d > upper || (d != 0 && d == null_level));
    const bool empty = d != 0 && d == empty_level;
    meaning.has_item = meaning.in_layer && !meaning.null && !empty;
  }
  return out;
}

// Keeps the first of every `dimension` slots; placeholders of outer lists stay.
Status ThinOut(const LevelRules& rules, int depth, int64_t dimension, Entries* entries) {
  std::vector<uint16_t> rep(entries->count);
  std::vector<uint16_t> def(entries->count);
  size_t kept = 0;
  int64_t skip = 0;
  for (size_t i = 0; i < entries->count; ++i) {
    const bool slot = rules.OwnerLists(entries->def[i]) <= depth;
    if (slot && skip > 0) {
      --skip;
      continue;
    }
    if (skip > 0) return Corruption("a fixed-size list of structs is cut short");
    rep[kept] = entries->rep[i];
    def[kept++] = entries->def[i];
    if (slot) skip = dimension - 1;
  }
  if (skip > 0) return Corruption("a fixed-size list of structs is cut short");
  entries->own_rep = std::move(rep);
  entries->own_def = std::move(def);
  entries->rep = entries->own_rep.data();
  entries->def = entries->own_def.data();
  entries->count = kept;
  return Status::OK();
}

}  // namespace

Status StructureSink::AppendList(size_t layer, const LevelRules& rules, uint16_t base,
                                 const uint16_t* rep, const uint16_t* def, size_t count,
                                 int64_t* items) {
  LayerSink& sink = layers_[layer];
  const std::vector<ListMeaning> meanings = MeaningsOf(rules, layer, base);
  // One slot more than can be written: the loop stores first and counts afterwards.
  std::vector<int64_t> starts(count + 1);
  std::vector<uint16_t> nulls(count + 1);
  int64_t current = 0;
  size_t lists = 0;
  unsigned open = 0;  // the current list may have further items
  unsigned bad = 0;
  unsigned any_null = 0;
  for (size_t i = 0; i < count; ++i) {
    const ListMeaning meaning = meanings[def[i]];
    const unsigned starts_list = rep[i] != 0;
    bad |= (starts_list ^ 1U) & (open ^ 1U);
    open = starts_list ? meaning.has_item : open;
    starts[lists] = current;
    nulls[lists] = meaning.null;
    any_null |= starts_list & meaning.null;
    lists += starts_list & meaning.in_layer;
    current += static_cast<int64_t>((starts_list ^ 1U) | meaning.has_item);
  }
  if (bad != 0) return Corruption("a list item that belongs to no list");
  const int64_t already = sink.offsets.empty() ? 0 : sink.offsets.back();
  const size_t old = sink.offsets.size();
  sink.offsets.resize(old + lists);
  for (size_t j = 1; j < lists; ++j) sink.offsets[old + j - 1] = already + starts[j];
  if (lists > 0) sink.offsets[old + lists - 1] = already + current;
  *items = current;
  const auto length = static_cast<int64_t>(lists);
  return any_null != 0 ? sink.validity.AppendLevels(nulls.data(), length, 0)
                       : sink.validity.AppendValid(length);
}

Status StructureSink::AppendNested(const LevelRules& rules, const LevelBatch& levels) {
  Entries entries;
  entries.count = static_cast<size_t>(levels.num_entries);
  entries.rep = levels.rep_data();
  if (levels.has_def) {
    entries.def = levels.def_data();
  } else {
    entries.own_def.assign(entries.count, 0);
    entries.def = entries.own_def.data();
  }
  std::vector<uint16_t> slots;
  int depth = 0;
  uint16_t base = 0;
  int64_t inner_slots = 0;  // slots that the layer below has got from these levels
  for (size_t li = 0; li < layers_.size(); ++li) {
    const LayerKind kind = rules.layers()[li];
    const int64_t dimension = rules.path()[li].dimension;
    if (!IsList(kind)) {
      if (dimension > 1) GLAIVE_RETURN_NOT_OK(ThinOut(rules, depth, dimension, &entries));
      slots.resize(entries.count);
      size_t count = 0;
      for (size_t i = 0; i < entries.count; ++i) {
        slots[count] = entries.def[i];
        count += static_cast<size_t>(rules.OwnerLists(entries.def[i]) <= depth);
      }
      const auto length = static_cast<int64_t>(count);
      if (li > 0 && length * dimension != inner_slots) {
        return Corruption("levels give ", inner_slots, " slots inside ", length,
                          " items");
      }
      ValiditySink& validity = layers_[li].validity;
      if (kind == LayerKind::kNullableItem) {
        GLAIVE_RETURN_NOT_OK(validity.AppendLevels(slots.data(), length, base));
        ++base;
      } else {
        GLAIVE_RETURN_NOT_OK(validity.AppendValid(length));
      }
      inner_slots = length;
      continue;
    }
    int64_t items = 0;
    GLAIVE_RETURN_NOT_OK(
        AppendList(li, rules, base, entries.rep, entries.def, entries.count, &items));
    if (items != inner_slots) {
      return Corruption("lists hold ", items, " items, ", inner_slots, " are there");
    }
    base = static_cast<uint16_t>(base + NumLevels(kind));
    ++depth;
    if (li + 1 == layers_.size()) break;
    // Only the entries that start a list go on to the layers outside.
    std::vector<uint16_t> rep(entries.count + 1);
    std::vector<uint16_t> def(entries.count + 1);
    size_t kept = 0;
    int64_t lists = 0;
    const std::vector<ListMeaning> meanings =
        MeaningsOf(rules, li, static_cast<uint16_t>(base - NumLevels(kind)));
    for (size_t i = 0; i < entries.count; ++i) {
      const unsigned starts_list = entries.rep[i] != 0;
      rep[kept] = static_cast<uint16_t>(entries.rep[i] - starts_list);
      def[kept] = entries.def[i];
      lists += starts_list & meanings[entries.def[i]].in_layer;
      kept += starts_list;
    }
    entries.own_rep = std::move(rep);
    entries.own_def = std::move(def);
    entries.rep = entries.own_rep.data();
    entries.def = entries.own_def.data();
    entries.count = kept;
    inner_slots = lists;
  }
  return Status::OK();
}

}  // namespace glaive::encoding
