// Full-zip pages: levels and bytes of each value next to each other.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include <arrow/buffer.h>

#include "encoding/fullzip_decode.h"
#include "file/page_reader.h"
#include "format/encodings21.pb.h"

namespace glaive::file {
namespace {

using encoding::Bytes;
using encoding::FixedRowCodec;
using encoding::LevelBatch;
using encoding::LevelRules;
using encoding::ValueRange;
using encoding::ValueSink;
using encoding::VariableRowCodec;
using lance::encodings21::FullZipLayout;

// A repetition index up to this size is kept in memory; of larger ones the entries are
// read.
constexpr int64_t kKeptIndexBytes = int64_t{1} << 20;

class FullZipReader final : public PageReader {
 public:
  FullZipReader(LevelRules rules, const PageContext& context)
      : PageReader(std::move(rules)),
        object_(context.object),
        num_rows_(context.num_rows) {}

  Status Init(const PageContext& context, const FullZipLayout& layout);
  Status Read(std::span<const ValueRange> rows, LevelBatch* levels,
              ValueSink* values) const override;
  bool is_zero_copy() const override {
    return index_width_ == 0 && control_bytes_ == 0 && fixed_ && fixed_->is_plain();
  }
  int64_t memory_bytes() const override { return 1024 + (index_ ? index_->size() : 0); }

 private:
  struct ByteSpan {
    int64_t start;
    int64_t length;
  };

  Result<std::vector<ByteSpan>> Locate(std::span<const ValueRange> rows) const;
  uint64_t IndexEntry(const uint8_t* at) const {
    uint64_t value = 0;
    std::memcpy(&value, at, static_cast<size_t>(index_width_));
    return value;
  }
  // Rows of equal size without lists.
  Status AppendFixedRows(const std::shared_ptr<arrow::Buffer>& buffer, int64_t count,
                         bool borrow, LevelBatch* levels, ValueSink* values) const;
  // Walks the entries in `bytes`, which hold `count` whole rows.
  Status Walk(Bytes bytes, int64_t count, LevelBatch* levels, ValueSink* values) const;

  io::RandomAccessObject* object_;
  int64_t num_rows_;
  io::ByteRange data_;
  io::ByteRange index_range_;
  std::shared_ptr<arrow::Buffer> index_;  // kept whole when small
  int64_t index_width_ = 0;               // bytes per entry; 0: no index
  int bits_def_ = 0;
  int64_t control_bytes_ = 0;
  int64_t length_bytes_ = 0;  // variable width only
  bool has_rep_ = false;
  bool has_def_ = false;
  std::optional<FixedRowCodec> fixed_;
  std::optional<VariableRowCodec> variable_;
};

Status FullZipReader::Init(const PageContext& context, const FullZipLayout& layout) {
  const uint32_t bits_rep = layout.bits_rep();
  const uint32_t bits_def = layout.bits_def();
  if (bits_rep > 16 || bits_def > 16) {
    return Corruption("control words of ", bits_rep, " and ", bits_def, " bits");
  }
  bits_def_ = static_cast<int>(bits_def);
  has_rep_ = bits_rep > 0;
  has_def_ = bits_def > 0;
  const uint32_t bits = bits_rep + bits_def;
  control_bytes_ = bits == 0 ? 0 : bits <= 8 ? 1 : bits <= 16 ? 2 : 4;
  if ((rules().max_rep() > 0) != has_rep_) {
    return Corruption("a page whose repetition levels do not fit its layers");
  }
  if (context.buffers.empty() || context.buffers.size() > 2) {
    return Corruption("a full-zip page with ", context.buffers.size(), " buffers");
  }
  data_ = context.buffers[0];
  if (layout.has_bits_per_offset()) {
    if (layout.bits_per_offset() != 32 && layout.bits_per_offset() != 64) {
      return Corruption("lengths of ", layout.bits_per_offset(), " bits");
    }
    length_bytes_ = layout.bits_per_offset() / 8;
    GLAIVE_ASSIGN_OR_RETURN(
        variable_, VariableRowCodec::Make(layout.value_compression(), *context.shape));
  } else {
    GLAIVE_ASSIGN_OR_RETURN(
        fixed_, FixedRowCodec::Make(layout.value_compression(), *context.shape));
    if (layout.bits_per_value() != static_cast<uint64_t>(8 * fixed_->row_bytes())) {
      return Corruption("values of ", layout.bits_per_value(), " bits instead of ",
                        8 * fixed_->row_bytes());
    }
  }
  const bool needs_index = has_rep_ || variable_.has_value();
  if (needs_index != (context.buffers.size() == 2)) {
    return Corruption("a full-zip page with ", context.buffers.size(), " buffers");
  }
  if (!needs_index) {
    const int64_t stride = control_bytes_ + fixed_->row_bytes();
    if (stride == 0 || encoding::CheckedMultiply(num_rows_, stride) != data_.length) {
      return Corruption("a page of ", data_.length, " bytes for ", num_rows_, " rows of ",
                        stride, " bytes");
    }
    return Status::OK();
  }
  index_range_ = context.buffers[1];
  if (num_rows_ >= index_range_.length || index_range_.length % (num_rows_ + 1) != 0) {
    return Corruption("repetition index of ", index_range_.length, " bytes for ",
                      num_rows_, " rows");
  }
  index_width_ = index_range_.length / (num_rows_ + 1);
  if (index_width_ != 1 && index_width_ != 2 && index_width_ != 4 && index_width_ != 8) {
    return Corruption("repetition index with entries of ", index_width_, " bytes");
  }
  if (index_range_.length <= kKeptIndexBytes) {
    GLAIVE_ASSIGN_OR_RETURN(index_, object_->Read(index_range_));
  }
  return Status::OK();
}

Result<std::vector<FullZipReader::ByteSpan>> FullZipReader::Locate(
    std::span<const ValueRange> rows) const {
  std::vector<ByteSpan> out;
  out.reserve(rows.size());
  if (index_width_ == 0) {
    const int64_t stride = control_bytes_ + fixed_->row_bytes();
    for (const ValueRange& range : rows) {
      out.push_back({range.start * stride, range.count * stride});
    }
    return out;
  }
  std::vector<std::shared_ptr<arrow::Buffer>> entries;
  if (!index_) {
    std::vector<io::ByteRange> wanted;
    for (const ValueRange& range : rows) {
      wanted.push_back({index_range_.offset + range.start * index_width_,
                        (range.count + 1) * index_width_});
    }
    if (wanted.size() == 1) {
      GLAIVE_ASSIGN_OR_RETURN(auto one, object_->Read(wanted[0]));
      entries.push_back(std::move(one));
    } else {
      GLAIVE_ASSIGN_OR_RETURN(entries, object_->ReadMany(wanted));
    }
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    const uint8_t* first =
        index_ ? index_->data() + rows[i].start * index_width_ : entries[i]->data();
    const uint64_t start = IndexEntry(first);
    const uint64_t end = IndexEntry(first + rows[i].count * index_width_);
    if (start > end || end > static_cast<uint64_t>(data_.length)) {
      return Corruption("repetition index places row ", rows[i].start, " at ", start,
                        " to ", end, " of ", data_.length, " bytes");
    }
    out.push_back({static_cast<int64_t>(start), static_cast<int64_t>(end - start)});
  }
  return out;
}

Status FullZipReader::AppendFixedRows(const std::shared_ptr<arrow::Buffer>& buffer,
                                      int64_t count, bool borrow, LevelBatch* levels,
                                      ValueSink* values) const {
  levels->num_entries += count;
  const int64_t stride = control_bytes_ + fixed_->row_bytes();
  const uint8_t* rows = buffer->data();
  if (control_bytes_ == 0) {
    if (borrow && fixed_->is_plain()) return fixed_->AppendPlain(buffer, count, values);
    return fixed_->Append(rows, stride, count, values);
  }
  GLAIVE_RETURN_NOT_OK(levels->def.Reserve(2 * count));
  auto* def = reinterpret_cast<uint16_t*>(levels->def.tail());
  for (int64_t i = 0; i < count; ++i) {
    uint32_t word = 0;
    std::memcpy(&word, rows + i * stride, static_cast<size_t>(control_bytes_));
    if (word >> bits_def_ != 0) return Corruption("control word ", word);
    def[i] = static_cast<uint16_t>(word);
  }
  levels->def.Advance(2 * count);
  return fixed_->Append(rows + control_bytes_, stride, count, values);
}

Status FullZipReader::Walk(Bytes bytes, int64_t count, LevelBatch* levels,
                           ValueSink* values) const {
  const uint8_t* at = bytes.data();
  int64_t left = static_cast<int64_t>(bytes.size());
  const uint16_t row_level = rules().max_rep();
  const uint16_t max_visible = rules().max_visible_def();
  const uint32_t def_mask = (uint32_t{1} << bits_def_) - 1;
  int64_t rows = 0;
  // Entries without any bytes (all-null vectors without levels) never get here.
  while (left > 0) {
    if (left < control_bytes_) return Corruption("a control word is cut off");
    uint32_t word = 0;
    std::memcpy(&word, at, static_cast<size_t>(control_bytes_));
    at += control_bytes_;
    left -= control_bytes_;
    const auto rep = static_cast<uint16_t>(word >> bits_def_);
    const auto def = static_cast<uint16_t>(word & def_mask);
    rows += rep == row_level;
    if (rows == 0 || rows > count)
      return Corruption("rows do not start where the index says");
    ++levels->num_entries;
    if (has_rep_) {
      GLAIVE_RETURN_NOT_OK(
          levels->rep.Append(reinterpret_cast<const uint8_t*>(&rep), sizeof(rep)));
    }
    if (has_def_) {
      GLAIVE_RETURN_NOT_OK(
          levels->def.Append(reinterpret_cast<const uint8_t*>(&def), sizeof(def)));
    }
    if (def > max_visible) continue;
    if (fixed_) {
      const int64_t size = fixed_->row_bytes();
      if (size > left) return Corruption("a value is cut off");
      GLAIVE_RETURN_NOT_OK(fixed_->Append(at, size, 1, values));
      at += size;
      left -= size;
      continue;
    }
    if (def != 0) {
      GLAIVE_RETURN_NOT_OK(values->AppendEmpty(1));
      continue;
    }
    if (left < length_bytes_) return Corruption("a length is cut off");
    uint64_t length = 0;
    std::memcpy(&length, at, static_cast<size_t>(length_bytes_));
    at += length_bytes_;
    left -= length_bytes_;
    if (length > static_cast<uint64_t>(left)) {
      return Corruption("a value of ", length, " bytes where ", left, " are left");
    }
    GLAIVE_RETURN_NOT_OK(
        variable_->Append(Bytes(at, static_cast<size_t>(length)), values));
    at += length;
    left -= static_cast<int64_t>(length);
  }
  if (rows != count) {
    return Corruption(rows, " rows where the index promises ", count);
  }
  return Status::OK();
}

Status FullZipReader::Read(std::span<const ValueRange> rows, LevelBatch* levels,
                           ValueSink* values) const {
  levels->has_rep = has_rep_;
  levels->has_def = has_def_;
  GLAIVE_ASSIGN_OR_RETURN(auto spans, Locate(rows));
  std::vector<std::shared_ptr<arrow::Buffer>> buffers;
  if (spans.size() == 1) {
    GLAIVE_ASSIGN_OR_RETURN(
        auto one, object_->Read({data_.offset + spans[0].start, spans[0].length}));
    buffers.push_back(std::move(one));
  } else {
    std::vector<io::ByteRange> wanted;
    wanted.reserve(spans.size());
    for (const ByteSpan& span : spans) {
      wanted.push_back({data_.offset + span.start, span.length});
    }
    GLAIVE_ASSIGN_OR_RETURN(buffers, object_->ReadMany(wanted));
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    if (index_width_ == 0) {
      GLAIVE_RETURN_NOT_OK(
          AppendFixedRows(buffers[i], rows[i].count, rows.size() == 1, levels, values));
      continue;
    }
    Bytes bytes(buffers[i]->data(), static_cast<size_t>(buffers[i]->size()));
    // The bytes of text are at most those on disk unless compressed.
    if (variable_ && variable_->is_plain() && rows.size() == 1) {
      GLAIVE_RETURN_NOT_OK(values->data().Reserve(static_cast<int64_t>(bytes.size())));
    }
    GLAIVE_RETURN_NOT_OK(Walk(bytes, rows[i].count, levels, values));
  }
  return Status::OK();
}

}  // namespace

Result<std::unique_ptr<PageReader>> MakeFullZipReader(const PageContext& context,
                                                      const FullZipLayout& layout) {
  GLAIVE_ASSIGN_OR_RETURN(auto rules,
                          LevelRules::Make(LayerNumbers(layout), context.path));
  auto reader = std::make_unique<FullZipReader>(std::move(rules), context);
  GLAIVE_RETURN_NOT_OK(reader->Init(context, layout));
  return reader;
}

}  // namespace glaive::file
