#include "file/stored_levels.h"

#include <utility>

namespace glaive::file {

using encoding::ByteSink;
using encoding::LevelBatch;
using encoding::LevelRules;
using encoding::ValueRange;

Result<StoredLevels> StoredLevels::Make(const LevelRules& rules, ByteSink rep,
                                        ByteSink def, bool has_rep, bool has_def,
                                        int64_t num_rows) {
  StoredLevels out;
  out.has_rep_ = has_rep;
  out.has_def_ = has_def;
  out.rep_ = std::move(rep);
  out.def_ = std::move(def);
  if (has_rep != (rules.max_rep() > 0)) {
    return Corruption("a page whose repetition levels do not fit its layers");
  }
  const int64_t entries = has_rep ? out.rep_.size() / 2 : num_rows;
  if (has_def && out.def_.size() != 2 * entries) {
    return Corruption(out.def_.size() / 2, " definition levels for ", entries,
                      " entries");
  }
  if (!has_rep) return out;
  const auto* levels = reinterpret_cast<const uint16_t*>(out.rep_.data());
  for (int64_t i = 0; i < entries; ++i) {
    if (levels[i] == rules.max_rep()) out.row_start_.push_back(i);
  }
  if (static_cast<int64_t>(out.row_start_.size()) != num_rows ||
      (num_rows > 0 && out.row_start_[0] != 0)) {
    return Corruption("levels of ", out.row_start_.size(), " rows, the page has ",
                      num_rows);
  }
  out.row_start_.push_back(entries);
  return out;
}

Result<int64_t> StoredLevels::Append(const LevelRules& rules,
                                     std::span<const ValueRange> rows,
                                     LevelBatch* out) const {
  out->has_rep = has_rep_;
  out->has_def = has_def_;
  int64_t visible = 0;
  for (const ValueRange& range : rows) {
    int64_t from = range.start;
    int64_t to = range.start + range.count;
    if (has_rep_) {
      from = row_start_[static_cast<size_t>(from)];
      to = row_start_[static_cast<size_t>(to)];
      GLAIVE_RETURN_NOT_OK(out->rep.Append(rep_.data() + 2 * from, 2 * (to - from)));
    }
    out->num_entries += to - from;
    if (has_def_) {
      GLAIVE_RETURN_NOT_OK(out->def.Append(def_.data() + 2 * from, 2 * (to - from)));
      visible +=
          encoding::CountVisible(reinterpret_cast<const uint16_t*>(def_.data()) + from,
                                 to - from, rules.max_visible_def());
    } else {
      visible += to - from;
    }
  }
  return visible;
}

int64_t StoredLevels::memory_bytes() const {
  return rep_.size() + def_.size() + static_cast<int64_t>(row_start_.capacity() * 8);
}

}  // namespace glaive::file
