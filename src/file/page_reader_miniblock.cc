// Mini-block pages: chunks of a few KiB, each decoded as a whole or in part.
#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include <arrow/array/data.h>
#include <arrow/buffer.h>

#include "encoding/block_decode.h"
#include "encoding/miniblock_decode.h"
#include "file/chunk_table.h"
#include "file/dictionary_gather.h"
#include "file/page_reader.h"
#include "format/encodings21.pb.h"

namespace glaive::file {
namespace {

using encoding::Bytes;
using encoding::ByteSink;
using encoding::LevelBatch;
using encoding::LevelRules;
using encoding::LoadUnaligned;
using encoding::MiniBlockCodec;
using encoding::ValueRange;
using encoding::ValueShape;
using encoding::ValueSink;
using lance::encodings21::CompressiveEncoding;
using lance::encodings21::MiniBlockLayout;

constexpr size_t kMaxBuffers = 16;

int64_t Align8(int64_t bytes) { return (bytes + 7) & ~int64_t{7}; }

Bytes BytesOf(const arrow::Buffer& buffer) {
  return Bytes(buffer.data(), static_cast<size_t>(buffer.size()));
}

// One chunk, its header taken apart.
struct Chunk {
  int64_t num_values = 0;
  int64_t num_levels = 0;
  Bytes rep;
  Bytes def;
  std::array<Bytes, kMaxBuffers> values;
};

class MiniBlockReader final : public PageReader {
 public:
  MiniBlockReader(LevelRules rules, const PageContext& context)
      : PageReader(std::move(rules)), object_(context.object) {}

  Status Init(const PageContext& context, const MiniBlockLayout& layout);
  Status Read(std::span<const ValueRange> rows, LevelBatch* levels,
              ValueSink* values) const override;
  int64_t memory_bytes() const override {
    return 1024 + chunks_.memory_bytes() +
           (dictionary_ ? dictionary_->memory_bytes() : 0);
  }

 private:
  Status InitDictionary(const PageContext& context, const MiniBlockLayout& layout,
                        const arrow::Buffer& block);
  Result<Chunk> ParseChunk(Bytes bytes, int64_t num_values) const;
  // Decodes all pieces of one chunk.
  Status DecodeChunk(Bytes bytes, std::span<const ChunkPiece> pieces, LevelBatch* levels,
                     ValueSink* values) const;
  Status DecodeLevels(const Chunk& chunk, ByteSink* rep, ByteSink* def) const;
  Status SelectFlat(const Chunk& chunk, std::span<const ChunkPiece> pieces,
                    LevelBatch* levels, std::vector<ValueRange>* ranges) const;
  Status SelectNested(const Chunk& chunk, std::span<const ChunkPiece> pieces,
                      LevelBatch* levels, std::vector<ValueRange>* ranges) const;

  io::RandomAccessObject* object_;
  io::ByteRange data_;
  ChunkTable chunks_;
  bool nested_ = false;
  bool wide_sizes_ = false;
  std::optional<CompressiveEncoding> rep_encoding_;
  std::optional<CompressiveEncoding> def_encoding_;
  std::unique_ptr<MiniBlockCodec> codec_;
  ValueShape index_shape_;
  std::optional<DictionaryGather> dictionary_;
};

Status MiniBlockReader::Init(const PageContext& context, const MiniBlockLayout& layout) {
  wide_sizes_ = layout.has_large_chunk();
  nested_ = rules().max_rep() > 0;
  if (layout.has_rep_compression()) rep_encoding_ = layout.rep_compression();
  if (layout.has_def_compression()) def_encoding_ = layout.def_compression();
  const bool has_dictionary = layout.has_dictionary();
  const bool has_index = layout.repetition_index_depth() > 0;
  if (layout.repetition_index_depth() > 1) {
    return NotSupported("repetition index of depth ", layout.repetition_index_depth());
  }
  if (nested_ != rep_encoding_.has_value() || nested_ != has_index) {
    return Corruption("a page whose repetition levels do not fit its layers");
  }
  if (context.buffers.size() != 2 + size_t{has_dictionary} + size_t{has_index}) {
    return Corruption("a mini-block page with ", context.buffers.size(), " buffers");
  }
  if (layout.num_items() > (uint64_t{1} << 62)) {
    return Corruption("a page of ", layout.num_items(), " values");
  }
  data_ = context.buffers[1];

  std::vector<io::ByteRange> wanted(context.buffers.begin(), context.buffers.end());
  wanted.erase(wanted.begin() + 1);
  std::vector<std::shared_ptr<arrow::Buffer>> buffers;
  if (wanted.size() == 1) {
    GLAIVE_ASSIGN_OR_RETURN(auto words, object_->Read(wanted[0]));
    buffers.push_back(std::move(words));
  } else {
    GLAIVE_ASSIGN_OR_RETURN(buffers, object_->ReadMany(wanted));
  }
  auto num_items = static_cast<int64_t>(layout.num_items());
  GLAIVE_ASSIGN_OR_RETURN(chunks_, ChunkTable::Make(BytesOf(*buffers[0]), wide_sizes_,
                                                    data_.length, num_items));
  if (has_index) {
    GLAIVE_RETURN_NOT_OK(
        chunks_.AddRepetitionIndex(BytesOf(*buffers.back()), context.num_rows));
  } else if (num_items != context.num_rows) {
    return Corruption("a page of ", context.num_rows, " rows holds ", num_items,
                      " values");
  }

  const ValueShape* shape = context.shape;
  if (has_dictionary) {
    GLAIVE_RETURN_NOT_OK(InitDictionary(context, layout, *buffers[1]));
    shape = &index_shape_;
  } else if (shape->kind == ValueShape::Kind::kDictionary) {
    return NotSupported("a dictionary column with a page without a dictionary");
  }
  GLAIVE_ASSIGN_OR_RETURN(
      codec_, encoding::MakeMiniBlockCodec(layout.value_compression(), *shape));
  if (layout.num_buffers() != static_cast<uint64_t>(codec_->num_buffers()) ||
      layout.num_buffers() > kMaxBuffers) {
    return Corruption("a page with ", layout.num_buffers(),
                      " buffers per chunk instead of ", codec_->num_buffers());
  }
  // Only the last chunk's count is not bounded by its own word.
  if (int64_t last = chunks_.num_chunks() - 1; last >= 0) {
    int64_t most = codec_->MaxValues(chunks_.num_bytes(last));
    if (chunks_.num_values(last) > most) {
      return Corruption("the last chunk of ", chunks_.num_bytes(last), " bytes claims ",
                        chunks_.num_values(last), " values");
    }
  }
  return Status::OK();
}

Status MiniBlockReader::InitDictionary(const PageContext& context,
                                       const MiniBlockLayout& layout,
                                       const arrow::Buffer& block) {
  const ValueShape& shape = *context.shape;
  const bool keep = shape.kind == ValueShape::Kind::kDictionary;
  const ValueShape& item_shape = keep ? shape.children[0] : shape;
  GLAIVE_ASSIGN_OR_RETURN(int64_t width,
                          encoding::DecodedWidth(layout.value_compression()));
  index_shape_ = ValueShape::Fixed(width);
  ValueSink items(item_shape);
  if (layout.num_dictionary_items() > (uint64_t{1} << 40)) {
    return Corruption("a dictionary of ", layout.num_dictionary_items(), " values");
  }
  Status decoded =
      encoding::DecodeBlock(layout.dictionary(), BytesOf(block),
                            static_cast<int64_t>(layout.num_dictionary_items()), &items);
  if (!decoded.ok()) return WithContext(decoded, "dictionary");
  GLAIVE_ASSIGN_OR_RETURN(auto data, items.Finish(nullptr, 0));
  GLAIVE_ASSIGN_OR_RETURN(dictionary_, DictionaryGather::Make(std::move(data), shape));
  return Status::OK();
}

Result<Chunk> MiniBlockReader::ParseChunk(Bytes bytes, int64_t num_values) const {
  const int num_buffers = codec_->num_buffers();
  const int64_t size_bytes = wide_sizes_ ? 4 : 2;
  const auto size = static_cast<int64_t>(bytes.size());
  const int64_t header = 2 + 2 * int64_t{rep_encoding_.has_value()} +
                         2 * int64_t{def_encoding_.has_value()} +
                         size_bytes * num_buffers;
  if (header > size) return Corruption("a chunk of ", size, " bytes");
  const uint8_t* at = bytes.data();
  Chunk out;
  out.num_values = num_values;
  out.num_levels = LoadUnaligned<uint16_t>(at);
  at += 2;
  int64_t position = Align8(header);
  bool fits = true;
  auto take = [&](int64_t length) {
    if (position > size || length > size - position) {
      fits = false;
      return Bytes();
    }
    Bytes part =
        bytes.subspan(static_cast<size_t>(position), static_cast<size_t>(length));
    position = Align8(position + length);
    return part;
  };
  int64_t rep_size = 0;
  int64_t def_size = 0;
  if (rep_encoding_) {
    rep_size = LoadUnaligned<uint16_t>(at);
    at += 2;
  }
  if (def_encoding_) {
    def_size = LoadUnaligned<uint16_t>(at);
    at += 2;
  }
  if (rep_encoding_) out.rep = take(rep_size);
  if (def_encoding_) out.def = take(def_size);
  for (int b = 0; b < num_buffers; ++b, at += size_bytes) {
    int64_t length = wide_sizes_ ? int64_t{LoadUnaligned<uint32_t>(at)}
                                 : int64_t{LoadUnaligned<uint16_t>(at)};
    out.values[static_cast<size_t>(b)] = take(length);
  }
  if (!fits) return Corruption("the buffers of a chunk pass its ", size, " bytes");
  return out;
}

Status MiniBlockReader::DecodeLevels(const Chunk& chunk, ByteSink* rep,
                                     ByteSink* def) const {
  // A run-length payload may hold 65536 levels more than the header can say.
  auto decode = [&](const CompressiveEncoding& how, Bytes from, ByteSink* out) -> Status {
    const int64_t before = out->size();
    GLAIVE_RETURN_NOT_OK(
        encoding::DecodeFixedBlock(how, from, chunk.num_levels, 2, true, out));
    const int64_t got = (out->size() - before) / 2;
    if (got % 65536 != chunk.num_levels) {
      return Corruption("a chunk has ", got, " levels and announces ", chunk.num_levels);
    }
    return Status::OK();
  };
  if (rep_encoding_) GLAIVE_RETURN_NOT_OK(decode(*rep_encoding_, chunk.rep, rep));
  if (def_encoding_) GLAIVE_RETURN_NOT_OK(decode(*def_encoding_, chunk.def, def));
  return Status::OK();
}

// Without lists, entry i of the levels belongs to value i.
Status MiniBlockReader::SelectFlat(const Chunk& chunk, std::span<const ChunkPiece> pieces,
                                   LevelBatch* levels,
                                   std::vector<ValueRange>* ranges) const {
  int64_t wanted = 0;
  for (const ChunkPiece& piece : pieces) {
    ranges->push_back({piece.first_row, piece.end_row - piece.first_row});
    wanted += piece.end_row - piece.first_row;
  }
  levels->num_entries += wanted;
  if (!def_encoding_) return Status::OK();
  const bool whole = wanted == chunk.num_values;
  ByteSink scratch;
  ByteSink& def = whole ? levels->def : scratch;
  const int64_t before = def.size();
  GLAIVE_RETURN_NOT_OK(DecodeLevels(chunk, nullptr, &def));
  if (def.size() - before != 2 * chunk.num_values) {
    return Corruption("a chunk of ", chunk.num_values, " values has ",
                      (def.size() - before) / 2, " levels");
  }
  if (whole) return Status::OK();
  for (const ValueRange& range : *ranges) {
    GLAIVE_RETURN_NOT_OK(
        levels->def.Append(scratch.data() + 2 * range.start, 2 * range.count));
  }
  return Status::OK();
}

Status MiniBlockReader::SelectNested(const Chunk& chunk,
                                     std::span<const ChunkPiece> pieces,
                                     LevelBatch* levels,
                                     std::vector<ValueRange>* ranges) const {
  ByteSink rep_bytes;
  ByteSink def_bytes;
  GLAIVE_RETURN_NOT_OK(DecodeLevels(chunk, &rep_bytes, &def_bytes));
  const int64_t num_levels = rep_bytes.size() / 2;
  if (def_encoding_ && def_bytes.size() != rep_bytes.size()) {
    return Corruption("a chunk has ", num_levels, " repetition and ",
                      def_bytes.size() / 2, " definition levels");
  }
  const auto* rep = reinterpret_cast<const uint16_t*>(rep_bytes.data());
  const auto* def =
      def_encoding_ ? reinterpret_cast<const uint16_t*>(def_bytes.data()) : nullptr;
  const uint16_t row_level = rules().max_rep();
  auto visible_in = [&](int64_t from, int64_t to) {
    return def ? encoding::CountVisible(def + from, to - from, rules().max_visible_def())
               : to - from;
  };
  int64_t at = 0;     // level reached
  int64_t value = 0;  // visible entries before `at`
  int64_t row = 0;    // row starts in [0, at)
  // Moves `at` to the start of the row with number `target` in this chunk.
  auto seek = [&](int64_t target) -> Status {
    const int64_t from = at;
    // Whole blocks that hold no more starts than are to be skipped, then level by level.
    constexpr int64_t kBlock = 64;
    while (at + kBlock <= num_levels) {
      int64_t starts = 0;
      for (int64_t i = 0; i < kBlock; ++i) starts += rep[at + i] == row_level;
      if (row + starts > target) break;
      row += starts;
      at += kBlock;
    }
    while (at < num_levels && (rep[at] != row_level || row < target)) {
      row += rep[at] == row_level;
      ++at;
    }
    if (at == num_levels || row != target) {
      return Corruption("row ", target, " of a chunk does not start in it");
    }
    value += visible_in(from, at);
    return Status::OK();
  };
  for (const ChunkPiece& piece : pieces) {
    if (!piece.with_preamble) GLAIVE_RETURN_NOT_OK(seek(piece.first_row));
    const int64_t level_start = at;
    const int64_t value_start = value;
    if (piece.to_end) {
      value += visible_in(at, num_levels);
      at = num_levels;
    } else {
      GLAIVE_RETURN_NOT_OK(seek(piece.end_row));
    }
    if (value > chunk.num_values || (piece.to_end && value != chunk.num_values)) {
      return Corruption("a chunk of ", chunk.num_values, " values has levels for ",
                        value);
    }
    levels->num_entries += at - level_start;
    GLAIVE_RETURN_NOT_OK(
        levels->rep.Append(rep_bytes.data() + 2 * level_start, 2 * (at - level_start)));
    if (def) {
      GLAIVE_RETURN_NOT_OK(
          levels->def.Append(def_bytes.data() + 2 * level_start, 2 * (at - level_start)));
    }
    ranges->push_back({value_start, value - value_start});
  }
  return Status::OK();
}

Status MiniBlockReader::DecodeChunk(Bytes bytes, std::span<const ChunkPiece> pieces,
                                    LevelBatch* levels, ValueSink* values) const {
  GLAIVE_ASSIGN_OR_RETURN(Chunk chunk,
                          ParseChunk(bytes, chunks_.num_values(pieces[0].chunk)));
  std::vector<ValueRange> ranges;
  ranges.reserve(pieces.size());
  GLAIVE_RETURN_NOT_OK(nested_ ? SelectNested(chunk, pieces, levels, &ranges)
                               : SelectFlat(chunk, pieces, levels, &ranges));
  return codec_->Decode(
      std::span(chunk.values).first(static_cast<size_t>(codec_->num_buffers())),
      chunk.num_values, ranges, values);
}

Status MiniBlockReader::Read(std::span<const ValueRange> rows, LevelBatch* levels,
                             ValueSink* values) const {
  levels->has_rep = nested_;
  levels->has_def = def_encoding_.has_value();
  const std::vector<ChunkPiece> pieces = chunks_.Plan(rows, nested_);

  // Neighbouring chunks are read together.
  struct Run {
    size_t first_piece;
    int64_t byte_start;
  };
  std::vector<Run> runs;
  std::vector<io::ByteRange> wanted;
  for (size_t i = 0; i < pieces.size(); ++i) {
    const int64_t chunk = pieces[i].chunk;
    const int64_t end = chunks_.byte_start(chunk + 1);
    if (i > 0 && chunk <= pieces[i - 1].chunk + 1) {
      wanted.back().length = data_.offset + end - wanted.back().offset;
      continue;
    }
    const int64_t start = chunks_.byte_start(chunk);
    runs.push_back({i, start});
    wanted.push_back({data_.offset + start, end - start});
  }
  std::vector<std::shared_ptr<arrow::Buffer>> buffers;
  if (wanted.size() == 1) {
    GLAIVE_ASSIGN_OR_RETURN(auto one, object_->Read(wanted[0]));
    buffers.push_back(std::move(one));
  } else {
    GLAIVE_ASSIGN_OR_RETURN(buffers, object_->ReadMany(wanted));
  }

  std::optional<ValueSink> indices;
  if (dictionary_) indices.emplace(index_shape_);
  ValueSink* target = dictionary_ ? &*indices : values;
  for (size_t r = 0; r < runs.size(); ++r) {
    const size_t stop = r + 1 < runs.size() ? runs[r + 1].first_piece : pieces.size();
    const Bytes bytes = BytesOf(*buffers[r]);
    for (size_t i = runs[r].first_piece; i < stop;) {
      size_t next = i + 1;
      while (next < stop && pieces[next].chunk == pieces[i].chunk) ++next;
      const int64_t chunk = pieces[i].chunk;
      const int64_t offset = chunks_.byte_start(chunk) - runs[r].byte_start;
      Status decoded =
          DecodeChunk(bytes.subspan(static_cast<size_t>(offset),
                                    static_cast<size_t>(chunks_.num_bytes(chunk))),
                      std::span(pieces).subspan(i, next - i), levels, target);
      if (!decoded.ok()) return WithContext(decoded, "chunk " + std::to_string(chunk));
      i = next;
    }
  }
  if (!dictionary_) return Status::OK();
  return dictionary_->Append(indices->data().data(), indices->length(),
                             index_shape_.byte_width, values);
}

}  // namespace

Result<std::unique_ptr<PageReader>> MakeMiniBlockReader(const PageContext& context,
                                                        const MiniBlockLayout& layout) {
  GLAIVE_ASSIGN_OR_RETURN(auto rules,
                          LevelRules::Make(LayerNumbers(layout), context.path));
  auto reader = std::make_unique<MiniBlockReader>(std::move(rules), context);
  GLAIVE_RETURN_NOT_OK(reader->Init(context, layout));
  return reader;
}

}  // namespace glaive::file
