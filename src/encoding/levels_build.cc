// Builds levels from the outer-most layer inwards.
//
// The number of a definition level counts from the inner-most layer and so is known only
// at the end. While building, layers take tags 1, 2, 3, … from the outside; Finish turns
// them round.
#include "encoding/levels_build.h"

#include <algorithm>

#include <arrow/array/data.h>
#include <arrow/type.h>
#include <arrow/util/bit_util.h>
#include <arrow/util/bitmap_ops.h>

namespace glaive::encoding {
namespace {

namespace pb = lance::encodings21;

const uint8_t* Validity(const arrow::ArrayData& data) {
  if (data.buffers.empty() || data.buffers[0] == nullptr) return nullptr;
  return data.buffers[0]->data();
}

class Builder {
 public:
  Builder(std::span<const std::shared_ptr<arrow::ArrayData>> arrays,
          std::span<const PathNode> path) {
    for (const auto& array : arrays) {
      if (array->length > 0)
        segments_.push_back({array.get(), array->offset, array->length});
      count_ += array->length;
    }
    num_rows_ = count_;
    for (PathNode node : path) max_rep_ += node == PathNode::kList;
    next_rep_ = max_rep_;
  }

  void AddStruct(uint8_t always) {
    AddItems(always);
    below_null_struct_ = kinds_.back() == pb::REPDEF_NULLABLE_ITEM;
    std::vector<Segment> below;
    below.reserve(segments_.size());
    for (const Segment& s : segments_) {
      const auto& child = s.data->child_data[0];
      below.push_back({child.get(), child->offset + s.start, s.length});
    }
    segments_ = std::move(below);
  }

  void AddFixedStruct(uint8_t always) {
    AddItems(always);
    below_null_struct_ = false;
    std::vector<Segment> below;
    below.reserve(segments_.size());
    int64_t dimension = 1;
    for (const Segment& s : segments_) {
      dimension = static_cast<const arrow::FixedSizeListType&>(*s.data->type).list_size();
      const auto& child = s.data->child_data[0];
      below.push_back(
          {child.get(), child->offset + s.start * dimension, s.length * dimension});
    }
    segments_ = std::move(below);
    // No list encloses this layer, so there are no placeholders: every entry owns a slot.
    if (!def_.empty()) {
      std::vector<uint16_t> wide;
      wide.reserve(def_.size() * static_cast<size_t>(dimension));
      for (uint16_t def : def_)
        wide.insert(wide.end(), static_cast<size_t>(dimension), def);
      def_ = std::move(wide);
    }
    count_ *= dimension;
    num_rows_ *= dimension;
  }

  void AddItems(uint8_t always) {
    int64_t nulls = 0;
    for (const Segment& s : segments_) nulls += CountNulls(s);
    if (nulls == 0 && (always & kAlwaysNullable) == 0 && !below_null_struct_) {
      kinds_.push_back(pb::REPDEF_ALL_VALID_ITEM);
      return;
    }
    kinds_.push_back(pb::REPDEF_NULLABLE_ITEM);
    const uint16_t tag = ++tags_;
    if (nulls == 0) return;
    if (def_.empty() && special_.empty()) {
      SetFresh(tag);
      return;
    }
    if (def_.empty()) def_.assign(static_cast<size_t>(count_), 0);
    size_t at = 0;
    for (const Segment& s : segments_) {
      const uint8_t* bits = Validity(*s.data);
      const bool all_null = s.data->type->id() == arrow::Type::NA;
      for (int64_t i = 0; i < s.length; ++i, ++at) {
        if (!special_.empty()) {
          while (special_[at]) ++at;
        }
        const bool valid =
            !all_null && (bits == nullptr || arrow::bit_util::GetBit(bits, s.start + i));
        if (!valid && def_[at] == 0) def_[at] = tag;
      }
    }
  }

  void AddList(uint8_t always) {
    if (!segments_.empty() && segments_[0].data->type->id() == arrow::Type::LARGE_LIST) {
      AddListOf<int64_t>(always);
    } else {
      AddListOf<int32_t>(always);
    }
  }

  Levels Finish() && {
    Levels out;
    out.num_rows = num_rows_;
    out.num_levels = count_;
    out.max_rep = max_rep_;
    out.max_def = tags_;
    for (const Segment& s : segments_) out.num_visible += s.length;
    out.layers.assign(kinds_.rbegin(), kinds_.rend());
    for (pb::RepDefLayer layer : out.layers) {
      if (layer != pb::REPDEF_ALL_VALID_ITEM && layer != pb::REPDEF_NULLABLE_ITEM) break;
      out.max_visible_def += layer == pb::REPDEF_NULLABLE_ITEM;
    }
    if (tags_ > 0) {
      for (uint16_t& def : def_) {
        if (def != 0) def = static_cast<uint16_t>(tags_ + 1 - def);
      }
      out.def = std::move(def_);
      if (out.def.empty()) out.def.assign(static_cast<size_t>(count_), 0);
    }
    out.rep = std::move(rep_);
    out.values = std::move(segments_);
    return out;
  }

 private:
  // The first nulls of the page, without placeholders in between: one level per value.
  void SetFresh(uint16_t tag) {
    def_.resize(static_cast<size_t>(count_));
    uint16_t* to = def_.data();
    for (const Segment& s : segments_) {
      const uint8_t* bits = Validity(*s.data);
      if (s.data->type->id() == arrow::Type::NA) {
        std::fill(to, to + s.length, tag);
      } else if (bits != nullptr) {
        for (int64_t i = 0; i < s.length; ++i) {
          to[i] = arrow::bit_util::GetBit(bits, s.start + i) ? uint16_t{0} : tag;
        }
      }
      to += s.length;
    }
  }

  template <typename Offset>
  void AddListOf(uint8_t always) {
    bool any_null = (always & kAlwaysNullable) != 0 || below_null_struct_;
    bool any_empty = (always & kAlwaysEmptyable) != 0;
    int64_t items = 0;
    for (const Segment& s : segments_) {
      const bool nulls = CountNulls(s) > 0;
      any_null |= nulls;
      const Offset* offsets = s.data->GetValues<Offset>(1, s.start);
      for (int64_t i = 0; i < s.length; ++i) {
        any_empty |= offsets[i] == offsets[i + 1] && !(nulls && IsNull(s, i));
      }
      items += static_cast<int64_t>(offsets[s.length] - offsets[0]);
    }
    // Counted from the outside: the empty level is the outer one of the two.
    const uint16_t empty_tag = any_empty ? ++tags_ : uint16_t{0};
    const uint16_t null_tag = any_null ? ++tags_ : uint16_t{0};
    kinds_.push_back(
        any_null ? (any_empty ? pb::REPDEF_NULL_AND_EMPTY_LIST : pb::REPDEF_NULLABLE_LIST)
                 : (any_empty ? pb::REPDEF_EMPTYABLE_LIST : pb::REPDEF_ALL_VALID_LIST));
    const uint16_t list_rep = next_rep_--;

    const size_t estimate = static_cast<size_t>(count_ + items);
    std::vector<uint16_t> rep;
    std::vector<uint16_t> def;
    std::vector<uint8_t> special;
    rep.reserve(estimate);
    def.reserve(estimate);
    special.reserve(estimate);
    std::vector<Segment> below;
    size_t at = 0;
    const auto old_rep = [&](size_t i) { return rep_.empty() ? uint16_t{0} : rep_[i]; };
    const auto old_def = [&](size_t i) { return def_.empty() ? uint16_t{0} : def_[i]; };
    const auto copy_special = [&] {
      while (!special_.empty() && at < special_.size() && special_[at]) {
        rep.push_back(rep_[at]);
        def.push_back(def_[at]);
        special.push_back(1);
        ++at;
      }
    };
    for (const Segment& s : segments_) {
      const Offset* offsets = s.data->GetValues<Offset>(1, s.start);
      const uint8_t* bits = Validity(*s.data);
      const arrow::ArrayData* child = s.data->child_data[0].get();
      for (int64_t i = 0; i < s.length; ++i) {
        copy_special();
        const uint16_t r = old_rep(at) == 0 ? list_rep : old_rep(at);
        uint16_t d = old_def(at);
        ++at;
        if (d == 0 && bits != nullptr && !arrow::bit_util::GetBit(bits, s.start + i)) {
          d = null_tag;
        }
        const int64_t length = static_cast<int64_t>(offsets[i + 1] - offsets[i]);
        rep.push_back(r);
        if (d != 0 || length == 0) {
          def.push_back(d != 0 ? d : empty_tag);
          special.push_back(1);
          continue;
        }
        rep.insert(rep.end(), static_cast<size_t>(length - 1), uint16_t{0});
        def.insert(def.end(), static_cast<size_t>(length), uint16_t{0});
        special.insert(special.end(), static_cast<size_t>(length), uint8_t{0});
        const int64_t first = child->offset + static_cast<int64_t>(offsets[i]);
        if (!below.empty() && below.back().data == child &&
            below.back().start + below.back().length == first) {
          below.back().length += length;
        } else {
          below.push_back({child, first, length});
        }
      }
    }
    copy_special();
    rep_ = std::move(rep);
    def_ = std::move(def);
    special_ = std::move(special);
    if (std::find(special_.begin(), special_.end(), 1) == special_.end())
      special_.clear();
    count_ = static_cast<int64_t>(rep_.size());
    segments_ = std::move(below);
    below_null_struct_ = false;
  }

  std::vector<Segment> segments_;
  std::vector<pb::RepDefLayer> kinds_;  // outer-most first
  std::vector<uint16_t> rep_;
  std::vector<uint16_t> def_;     // tags
  std::vector<uint8_t> special_;  // 1: placeholder of a null or empty list
  // The layer above is a struct that can be null. Readers expect the layer below it to
  // declare nulls too, even where it has none of its own.
  bool below_null_struct_ = false;
  int64_t count_ = 0;
  int64_t num_rows_ = 0;
  uint16_t tags_ = 0;
  uint16_t max_rep_ = 0;
  uint16_t next_rep_ = 0;
};

}  // namespace

int64_t CountNulls(const Segment& segment) {
  if (segment.data->type->id() == arrow::Type::NA) return segment.length;
  const uint8_t* bits = Validity(*segment.data);
  if (bits == nullptr || segment.data->null_count == 0) return 0;
  return segment.length -
         arrow::internal::CountSetBits(bits, segment.start, segment.length);
}

bool IsNull(const Segment& segment, int64_t i) {
  if (segment.data->type->id() == arrow::Type::NA) return true;
  const uint8_t* bits = Validity(*segment.data);
  return bits != nullptr && !arrow::bit_util::GetBit(bits, segment.start + i);
}

Levels BuildLevels(std::span<const std::shared_ptr<arrow::ArrayData>> arrays,
                   std::span<const PathNode> path, std::span<const uint8_t> always) {
  Builder builder(arrays, path);
  for (size_t i = 0; i < path.size(); ++i) {
    const uint8_t flags = always.empty() ? uint8_t{0} : always[i];
    switch (path[i]) {
      case PathNode::kStruct:
        builder.AddStruct(flags);
        break;
      case PathNode::kList:
        builder.AddList(flags);
        break;
      case PathNode::kFixedStruct:
        builder.AddFixedStruct(flags);
        break;
      case PathNode::kLeaf:
        builder.AddItems(flags);
        break;
    }
  }
  return std::move(builder).Finish();
}

}  // namespace glaive::encoding
