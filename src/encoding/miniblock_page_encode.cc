// Assembles mini-block pages: chunk headers, levels, values, repetition index.
#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "encoding/block_encode.h"
#include "encoding/out_bytes.h"
#include "encoding/page_encode.h"

namespace glaive::encoding {
namespace {

constexpr uint8_t kPad = 0xFE;
constexpr size_t kMaxLevelBytes = std::numeric_limits<uint16_t>::max();
constexpr int64_t kMaxLevels = std::numeric_limits<uint16_t>::max();

// The levels that belong to one chunk.
struct LevelRange {
  int64_t begin = 0;
  int64_t end = 0;
};

// Levels of each chunk: as many as hold its visible values, the last takes what remains.
std::vector<LevelRange> CutLevels(const Levels& levels, const MiniBlockValues& values) {
  std::vector<LevelRange> out;
  out.reserve(values.chunk_values.size());
  const bool all_visible = levels.num_levels == levels.num_visible;
  int64_t at = 0;
  for (size_t c = 0; c < values.chunk_values.size(); ++c) {
    int64_t end = at;
    if (c + 1 == values.chunk_values.size()) {
      end = levels.num_levels;
    } else if (all_visible) {
      end = at + values.chunk_values[c];
    } else {
      for (uint32_t left = values.chunk_values[c]; left > 0; ++end)
        left -= levels.visible(end);
    }
    out.push_back({at, end});
    at = end;
  }
  return out;
}

std::span<const uint16_t> Slice(const std::vector<uint16_t>& levels, LevelRange range) {
  return std::span(levels).subspan(static_cast<size_t>(range.begin),
                                   static_cast<size_t>(range.end - range.begin));
}

// Rows that end in each chunk, and whether a row goes on into the next.
std::shared_ptr<arrow::Buffer> RepetitionIndex(const Levels& levels,
                                               const std::vector<LevelRange>& ranges) {
  OutBytes out(ranges.size() * 16);
  uint64_t previous_rows = 0;
  uint64_t previous_left = 0;
  for (size_t c = 0; c < ranges.size(); ++c) {
    const auto rep = Slice(levels.rep, ranges[c]);
    uint64_t rows = 0;
    size_t last_start = rep.size();  // none
    for (size_t i = 0; i < rep.size(); ++i) {
      if (rep[i] != levels.max_rep) continue;
      rows += i > 0;
      last_start = i;
    }
    const bool last = c + 1 == ranges.size();
    const uint64_t left = last                       ? 0
                          : last_start == rep.size() ? rep.size()
                                                     : rep.size() - last_start;
    if (c > 0) {
      if (!rep.empty() && rep[0] == levels.max_rep && previous_left != 0) {
        ++previous_rows;
        previous_left = 0;
      }
      out.Put(previous_rows);
      out.Put(previous_left);
    }
    previous_rows = rows + last;
    previous_left = left;
  }
  out.Put(previous_rows);
  out.Put(previous_left);
  return out.Finish();
}

}  // namespace

std::optional<EncodedPage> AssembleMiniBlock(const Levels& levels,
                                             const MiniBlockValues& values,
                                             const PageDictionary* dictionary,
                                             const EncodeOptions& options) {
  const std::vector<LevelRange> ranges = CutLevels(levels, values);
  const bool has_levels = levels.has_rep() || levels.has_def();
  if (has_levels) {
    for (const LevelRange& range : ranges) {
      if (range.end - range.begin > kMaxLevels) return std::nullopt;
    }
  }
  LevelCodec rep_codec = LevelCodec::Choose(levels.rep, options.v2_2);
  LevelCodec def_codec = LevelCodec::Choose(levels.def, options.v2_2);
  OutBytes rep_bytes;
  OutBytes def_bytes;
  std::vector<size_t> rep_ends;
  std::vector<size_t> def_ends;
  // Encodes the levels of all chunks; false when a chunk's do not fit its header.
  const auto encode = [&](const std::vector<uint16_t>& all, LevelCodec* codec,
                          OutBytes* bytes, std::vector<size_t>* ends) {
    if (all.empty()) return true;
    for (int attempt = 0;; ++attempt) {
      bool fits = true;
      bytes->Truncate(0);
      ends->clear();
      for (const LevelRange& range : ranges) {
        const size_t before = bytes->size();
        codec->Append(Slice(all, range), bytes);
        fits &= bytes->size() - before <= kMaxLevelBytes;
        ends->push_back(bytes->size());
      }
      if (fits) return true;
      if (attempt > 0 || !codec->is_rle()) return false;
      *codec = LevelCodec::ChooseWithoutRle(all);
    }
  };
  if (!encode(levels.rep, &rep_codec, &rep_bytes, &rep_ends)) return std::nullopt;
  if (!encode(levels.def, &def_codec, &def_bytes, &def_ends)) return std::nullopt;

  size_t total = rep_bytes.size() + def_bytes.size();
  std::vector<const uint8_t*> from;
  for (const auto& stream : values.streams) {
    total += static_cast<size_t>(stream.bytes->size());
    from.push_back(stream.bytes->data());
  }
  OutBytes data(total + ranges.size() * (24 + 8 * values.streams.size()));
  OutBytes words(ranges.size() * 4);
  const int64_t max_words = int64_t{1} << (options.v2_2 ? 28 : 12);
  for (size_t c = 0; c < ranges.size(); ++c) {
    const size_t begin = data.size();
    const auto part = [c](const OutBytes& bytes, const std::vector<size_t>& ends) {
      const size_t first = c == 0 ? 0 : ends[c - 1];
      return bytes.view().subspan(first, ends[c] - first);
    };
    data.Put(has_levels ? static_cast<uint16_t>(ranges[c].end - ranges[c].begin)
                        : uint16_t{0});
    if (levels.has_rep())
      data.Put(static_cast<uint16_t>(part(rep_bytes, rep_ends).size()));
    if (levels.has_def())
      data.Put(static_cast<uint16_t>(part(def_bytes, def_ends).size()));
    for (const auto& stream : values.streams) {
      if (options.v2_2) {
        data.Put(stream.sizes[c]);
      } else {
        if (stream.sizes[c] > std::numeric_limits<uint16_t>::max()) return std::nullopt;
        data.Put(static_cast<uint16_t>(stream.sizes[c]));
      }
    }
    data.PadTo(8, kPad);
    if (levels.has_rep()) {
      data.Append(part(rep_bytes, rep_ends));
      data.PadTo(8, kPad);
    }
    if (levels.has_def()) {
      data.Append(part(def_bytes, def_ends));
      data.PadTo(8, kPad);
    }
    for (size_t s = 0; s < values.streams.size(); ++s) {
      data.Append(from[s], values.streams[s].sizes[c]);
      from[s] += values.streams[s].sizes[c];
      data.PadTo(8, kPad);
    }
    const int64_t size_words = static_cast<int64_t>(data.size() - begin) / 8;
    if (size_words > max_words) return std::nullopt;
    const bool last = c + 1 == ranges.size();
    const uint32_t log =
        last ? 0 : static_cast<uint32_t>(std::countr_zero(values.chunk_values[c]));
    const uint32_t word = static_cast<uint32_t>(size_words - 1) << 4 | log;
    if (options.v2_2) {
      words.Put(word);
    } else {
      words.Put(static_cast<uint16_t>(word));
    }
  }

  EncodedPage page;
  page.num_rows = levels.num_rows;
  auto* layout = page.layout.mutable_mini_block_layout();
  if (levels.has_rep()) rep_codec.Describe(layout->mutable_rep_compression());
  if (levels.has_def()) def_codec.Describe(layout->mutable_def_compression());
  *layout->mutable_value_compression() = values.encoding;
  for (auto layer : levels.layers) layout->add_layers(layer);
  layout->set_num_buffers(values.streams.size());
  layout->set_num_items(static_cast<uint64_t>(levels.num_visible));
  layout->set_has_large_chunk(options.v2_2);
  page.buffers.push_back({words.Finish()});
  page.buffers.push_back({data.Finish()});
  if (dictionary != nullptr) {
    *layout->mutable_dictionary() = dictionary->encoding;
    layout->set_num_dictionary_items(static_cast<uint64_t>(dictionary->num_items));
    page.buffers.push_back({dictionary->bytes});
  }
  if (levels.has_rep()) {
    layout->set_repetition_index_depth(1);
    page.buffers.push_back({RepetitionIndex(levels, ranges)});
  }
  return page;
}

}  // namespace glaive::encoding
