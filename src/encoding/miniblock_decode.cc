#include "encoding/miniblock_decode.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "encoding/bitunpack.h"
#include "encoding/block_decode.h"
#include "encoding/fsst_decode.h"
#include "format/encodings21.pb.h"

namespace glaive::encoding {

namespace pb = lance::encodings21;
using pb::CompressiveEncoding;
using Kind = ValueShape::Kind;

namespace {

// Bounds for what a compressed buffer can hold.
constexpr int64_t kMostBytes = int64_t{1} << 36;
constexpr int64_t kMostGrowth = int64_t{1} << 16;

Status WrongSize(const char* codec, size_t bytes, int64_t values) {
  return Corruption(codec, " chunk of ", bytes, " bytes for ", values, " values");
}

int64_t CountOf(std::span<const ValueRange> ranges) {
  int64_t count = 0;
  for (const ValueRange& range : ranges) count += range.count;
  return count;
}

// Raw values, copied as they are.
class FlatCodec final : public MiniBlockCodec {
 public:
  explicit FlatCodec(int64_t width) : width_(width) {}
  int num_buffers() const override { return 1; }
  int64_t MaxValues(int64_t bytes) const override {
    return bytes / std::max<int64_t>(width_, 1);
  }
  Status Decode(std::span<const Bytes> buffers, int64_t num_values,
                std::span<const ValueRange> ranges, ValueSink* out) const override {
    int64_t bytes = CheckedMultiply(num_values, width_);
    if (bytes < 0 || bytes > static_cast<int64_t>(buffers[0].size())) {
      return WrongSize("Flat", buffers[0].size(), num_values);
    }
    for (const ValueRange& range : ranges) {
      GLAIVE_RETURN_NOT_OK(out->data().Append(buffers[0].data() + range.start * width_,
                                              range.count * width_));
      out->AddLength(range.count);
    }
    return Status::OK();
  }

 private:
  int64_t width_;
};

class BitsCodec final : public MiniBlockCodec {
 public:
  int num_buffers() const override { return 1; }
  int64_t MaxValues(int64_t bytes) const override { return bytes * 8; }
  Status Decode(std::span<const Bytes> buffers, int64_t num_values,
                std::span<const ValueRange> ranges, ValueSink* out) const override {
    if (num_values / 8 + (num_values % 8 != 0) >
        static_cast<int64_t>(buffers[0].size())) {
      return WrongSize("bit", buffers[0].size(), num_values);
    }
    for (const ValueRange& range : ranges) {
      GLAIVE_RETURN_NOT_OK(
          out->bits().Append(buffers[0].data(), range.start, range.count));
      out->AddLength(range.count);
    }
    return Status::OK();
  }
};

class TupleCodec final : public MiniBlockCodec {
 public:
  explicit TupleCodec(std::vector<int64_t> widths) : widths_(std::move(widths)) {
    for (int64_t width : widths_) row_bytes_ += width;
  }
  int num_buffers() const override { return 1; }
  int64_t MaxValues(int64_t bytes) const override { return bytes / row_bytes_; }
  Status Decode(std::span<const Bytes> buffers, int64_t num_values,
                std::span<const ValueRange> ranges, ValueSink* out) const override {
    int64_t bytes = CheckedMultiply(num_values, row_bytes_);
    if (bytes < 0 || bytes > static_cast<int64_t>(buffers[0].size())) {
      return WrongSize("packed struct", buffers[0].size(), num_values);
    }
    for (const ValueRange& range : ranges) {
      GLAIVE_RETURN_NOT_OK(AppendTuples(buffers[0].data() + range.start * row_bytes_,
                                        range.count, widths_, out));
    }
    return Status::OK();
  }

 private:
  std::vector<int64_t> widths_;
  int64_t row_bytes_ = 0;
};

// One block of up to 1024 values, its width in front.
template <typename T>
class InlineBitpackCodec final : public MiniBlockCodec {
 public:
  int num_buffers() const override { return 1; }
  int64_t MaxValues(int64_t) const override { return kPackedBlockValues; }
  Status Decode(std::span<const Bytes> buffers, int64_t num_values,
                std::span<const ValueRange> ranges, ValueSink* out) const override {
    constexpr int64_t kWord = sizeof(T);
    const Bytes block = buffers[0];
    if (num_values > kPackedBlockValues || block.size() < sizeof(T)) {
      return WrongSize("bit-packed", block.size(), num_values);
    }
    auto stored_width = static_cast<uint64_t>(LoadUnaligned<T>(block.data()));
    if (stored_width > 8 * sizeof(T) ||
        static_cast<int64_t>(block.size()) !=
            kWord + PackedBlockBytes(static_cast<int>(stored_width))) {
      return WrongSize("bit-packed", block.size(), num_values);
    }
    const int width = static_cast<int>(stored_width);
    const uint8_t* packed = block.data() + kWord;
    const int64_t wanted = CountOf(ranges);
    GLAIVE_RETURN_NOT_OK(out->data().Reserve(wanted * kWord));
    auto* to = reinterpret_cast<T*>(out->data().tail());  // whole words only: aligned
    if (wanted == kPackedBlockValues) {
      UnpackBlock<T>(packed, width, to);
    } else if (wanted <= kFewValues) {
      for (const ValueRange& range : ranges) {
        for (int64_t i = 0; i < range.count; ++i) {
          *to++ = UnpackValue<T>(packed, width, static_cast<int>(range.start + i));
        }
      }
    } else {
      alignas(64) T values[kPackedBlockValues];
      UnpackBlock<T>(packed, width, values);
      for (const ValueRange& range : ranges) {
        std::memcpy(to, values + range.start, static_cast<size_t>(range.count * kWord));
        to += range.count;
      }
    }
    out->data().Advance(wanted * kWord);
    out->AddLength(wanted);
    return Status::OK();
  }

 private:
  // Unpacking single values costs about as much as a block from here on.
  static constexpr int64_t kFewValues = 24;
};

// Values and 8-bit run lengths.
template <typename T>
class RunLengthCodec final : public MiniBlockCodec {
 public:
  int num_buffers() const override { return 2; }
  int64_t MaxValues(int64_t bytes) const override { return CheckedMultiply(bytes, 255); }
  Status Decode(std::span<const Bytes> buffers, int64_t num_values,
                std::span<const ValueRange> ranges, ValueSink* out) const override {
    constexpr int64_t kWord = sizeof(T);
    const uint8_t* values = buffers[0].data();
    const Bytes lengths = buffers[1];
    if (buffers[0].size() != lengths.size() * sizeof(T)) {
      return WrongSize("run-length", buffers[0].size(), num_values);
    }
    int64_t total = 0;
    for (uint8_t length : lengths) total += length;
    if (total < num_values) {
      return Corruption("run-length chunk holds ", total, " of ", num_values, " values");
    }
    const int64_t wanted = CountOf(ranges);
    GLAIVE_RETURN_NOT_OK(out->data().Reserve(wanted * kWord));
    auto* to = reinterpret_cast<T*>(out->data().tail());
    size_t run = 0;
    int64_t run_start = 0;
    for (const ValueRange& range : ranges) {
      int64_t at = range.start;
      const int64_t end = range.start + range.count;
      while (at < end) {
        while (run_start + lengths[run] <= at) run_start += lengths[run++];
        int64_t n = std::min<int64_t>(end, run_start + lengths[run]) - at;
        auto value = LoadUnaligned<T>(values + static_cast<int64_t>(run) * kWord);
        for (int64_t i = 0; i < n; ++i) to[i] = value;
        to += n;
        at += n;
      }
    }
    out->data().Advance(wanted * kWord);
    out->AddLength(wanted);
    return Status::OK();
  }
};

// Byte j of all values together.
template <typename T>
class ByteStreamSplitCodec final : public MiniBlockCodec {
 public:
  int num_buffers() const override { return 1; }
  int64_t MaxValues(int64_t bytes) const override {
    return bytes / static_cast<int64_t>(sizeof(T));
  }
  Status Decode(std::span<const Bytes> buffers, int64_t num_values,
                std::span<const ValueRange> ranges, ValueSink* out) const override {
    constexpr int64_t kWord = sizeof(T);
    if (CheckedMultiply(num_values, kWord) != static_cast<int64_t>(buffers[0].size())) {
      return WrongSize("byte-stream-split", buffers[0].size(), num_values);
    }
    const uint8_t* in = buffers[0].data();
    for (const ValueRange& range : ranges) {
      GLAIVE_RETURN_NOT_OK(out->data().Reserve(range.count * kWord));
      auto* to = reinterpret_cast<T*>(out->data().tail());
      const uint8_t* from = in + range.start;
      for (int64_t i = 0; i < range.count; ++i) {
        T value = 0;
        for (int64_t j = 0; j < kWord; ++j) {
          value |= static_cast<T>(from[j * num_values + i]) << (8 * j);
        }
        to[i] = value;
      }
      out->data().Advance(range.count * kWord);
      out->AddLength(range.count);
    }
    return Status::OK();
  }
};

// Offsets of a Variable chunk: behind the offsets themselves, in order, within the chunk.
template <typename Offset>
Status CheckOffsets(Bytes chunk, int64_t num_values, const ValueRange& range) {
  constexpr int64_t kWord = sizeof(Offset);
  const auto size = static_cast<int64_t>(chunk.size());
  if (num_values >= size / kWord) return WrongSize("Variable", chunk.size(), num_values);
  const uint8_t* offsets = chunk.data() + range.start * kWord;
  uint64_t last = LoadUnaligned<Offset>(offsets);
  bool bad = last < static_cast<uint64_t>((num_values + 1) * kWord);
  for (int64_t i = 1; i <= range.count; ++i) {
    uint64_t offset = LoadUnaligned<Offset>(offsets + i * kWord);
    bad |= offset < last;
    last = offset;
  }
  if (bad || last > static_cast<uint64_t>(size)) {
    return Corruption("Variable chunk of ", size, " bytes: offsets of values ",
                      range.start, " to ", range.start + range.count,
                      " are out of order or bounds");
  }
  return Status::OK();
}

// Offsets relative to the buffer, then the bytes; `Own` knows what the bytes mean.
template <typename Offset, typename Own>
class OffsetsCodec : public MiniBlockCodec {
 public:
  int num_buffers() const final { return 1; }
  int64_t MaxValues(int64_t bytes) const final {
    return bytes / static_cast<int64_t>(sizeof(Offset));
  }
  Status Decode(std::span<const Bytes> buffers, int64_t num_values,
                std::span<const ValueRange> ranges, ValueSink* out) const final {
    for (const ValueRange& range : ranges) {
      if (range.count == 0) continue;
      GLAIVE_RETURN_NOT_OK(CheckOffsets<Offset>(buffers[0], num_values, range));
      const uint8_t* in = buffers[0].data();
      GLAIVE_RETURN_NOT_OK(static_cast<const Own*>(this)->Append(
          in + range.start * static_cast<int64_t>(sizeof(Offset)), range.count, in, out));
    }
    return Status::OK();
  }
};

template <typename Offset>
class VariableCodec final : public OffsetsCodec<Offset, VariableCodec<Offset>> {
 public:
  Status Append(const uint8_t* offsets, int64_t count, const uint8_t* bytes,
                ValueSink* out) const {
    return out->AppendVariable<Offset>(offsets, count, bytes);
  }
};

// Expands values of `count` + 1 offsets (any unsigned width, in order) into `bytes`.
template <typename Offset>
Status ExpandAll(const FsstTable& table, const uint8_t* offsets, int64_t count,
                 const uint8_t* bytes, ValueSink* out) {
  constexpr int64_t kWord = sizeof(Offset);
  int64_t start = static_cast<int64_t>(LoadUnaligned<Offset>(offsets));
  const auto end = static_cast<int64_t>(LoadUnaligned<Offset>(offsets + count * kWord));
  GLAIVE_RETURN_NOT_OK(
      out->data().Reserve(FsstTable::kMaxSymbolBytes * (end - start + 1)));
  constexpr int64_t kBatch = 256;
  int64_t ends[kBatch];
  for (int64_t i = 0; i < count;) {
    int64_t n = 0;
    for (; n < kBatch && i < count; ++n, ++i) {
      const auto stop =
          static_cast<int64_t>(LoadUnaligned<Offset>(offsets + (i + 1) * kWord));
      const int64_t written = table.Expand(
          Bytes(bytes + start, static_cast<size_t>(stop - start)), out->data().tail());
      if (written < 0)
        return Corruption("FSST codes that the symbol table does not have");
      out->data().Advance(written);
      ends[n] = out->data().size();
      start = stop;
    }
    GLAIVE_RETURN_NOT_OK(out->AppendEnds(ends, n));
  }
  return Status::OK();
}

// Text compressed with a symbol table; the codes are Variable values.
template <typename Offset>
class FsstCodec final : public OffsetsCodec<Offset, FsstCodec<Offset>> {
 public:
  explicit FsstCodec(FsstTable table) : table_(std::move(table)) {}
  Status Append(const uint8_t* offsets, int64_t count, const uint8_t* bytes,
                ValueSink* out) const {
    return ExpandAll<Offset>(table_, offsets, count, bytes, out);
  }

 private:
  FsstTable table_;
};

// The same around any other encoding of the codes.
class NestedFsstCodec final : public MiniBlockCodec {
 public:
  NestedFsstCodec(FsstTable table, std::unique_ptr<MiniBlockCodec> inner,
                  std::unique_ptr<ValueShape> code_shape)
      : table_(std::move(table)),
        code_shape_(std::move(code_shape)),
        inner_(std::move(inner)) {}
  int num_buffers() const override { return inner_->num_buffers(); }
  int64_t MaxValues(int64_t bytes) const override { return inner_->MaxValues(bytes); }
  Status Decode(std::span<const Bytes> buffers, int64_t num_values,
                std::span<const ValueRange> ranges, ValueSink* out) const override {
    ValueSink codes(*code_shape_);
    GLAIVE_RETURN_NOT_OK(inner_->Decode(buffers, num_values, ranges, &codes));
    if (codes.length() == 0) return Status::OK();
    return ExpandAll<uint64_t>(table_, codes.offsets().data(), codes.length(),
                               codes.data().data(), out);
  }

 private:
  FsstTable table_;
  std::unique_ptr<ValueShape> code_shape_;
  std::unique_ptr<MiniBlockCodec> inner_;
};

// The first buffer is compressed as a whole.
class GeneralCodec final : public MiniBlockCodec {
 public:
  GeneralCodec(Compression scheme, std::unique_ptr<MiniBlockCodec> inner)
      : scheme_(scheme), inner_(std::move(inner)) {}
  int num_buffers() const override { return inner_->num_buffers(); }
  int64_t MaxValues(int64_t bytes) const override {
    return inner_->MaxValues(std::min(bytes, kMostBytes) * kMostGrowth);
  }
  Status Decode(std::span<const Bytes> buffers, int64_t num_values,
                std::span<const ValueRange> ranges, ValueSink* out) const override {
    ByteSink plain;
    GLAIVE_RETURN_NOT_OK(Decompress(scheme_, buffers[0], &plain));
    std::vector<Bytes> inner(buffers.begin(), buffers.end());
    inner[0] = Bytes(plain.data(), static_cast<size_t>(plain.size()));
    return inner_->Decode(inner, num_values, ranges, out);
  }

 private:
  Compression scheme_;
  std::unique_ptr<MiniBlockCodec> inner_;
};

class FixedSizeListCodec final : public MiniBlockCodec {
 public:
  FixedSizeListCodec(int64_t dimension, bool has_validity,
                     std::unique_ptr<MiniBlockCodec> inner)
      : dimension_(dimension), has_validity_(has_validity), inner_(std::move(inner)) {}
  int num_buffers() const override {
    return inner_->num_buffers() + (has_validity_ ? 1 : 0);
  }
  int64_t MaxValues(int64_t bytes) const override {
    return inner_->MaxValues(bytes) / dimension_;
  }
  Status Decode(std::span<const Bytes> buffers, int64_t num_values,
                std::span<const ValueRange> ranges, ValueSink* out) const override {
    int64_t items = CheckedMultiply(num_values, dimension_);
    if (items < 0) return Corruption("chunk of ", num_values, " vectors");
    std::vector<ValueRange> item_ranges(ranges.begin(), ranges.end());
    for (ValueRange& range : item_ranges) {
      range.start *= dimension_;
      range.count *= dimension_;
    }
    ValueSink& child = out->children()[0];
    if (has_validity_) {
      if ((items + 7) / 8 > static_cast<int64_t>(buffers[0].size())) {
        return WrongSize("vector validity", buffers[0].size(), items);
      }
      for (const ValueRange& range : item_ranges) {
        GLAIVE_RETURN_NOT_OK(
            child.validity().AppendBitmap(buffers[0].data(), range.start, range.count));
      }
      buffers = buffers.subspan(1);
    } else {
      GLAIVE_RETURN_NOT_OK(child.validity().AppendValid(CountOf(item_ranges)));
    }
    GLAIVE_RETURN_NOT_OK(inner_->Decode(buffers, items, item_ranges, &child));
    out->AddLength(CountOf(ranges));
    return Status::OK();
  }

 private:
  int64_t dimension_;
  bool has_validity_;
  std::unique_ptr<MiniBlockCodec> inner_;
};

template <template <typename> class Codec>
std::unique_ptr<MiniBlockCodec> MakeForWidth(int64_t width) {
  switch (width) {
    case 1:
      return std::make_unique<Codec<uint8_t>>();
    case 2:
      return std::make_unique<Codec<uint16_t>>();
    case 4:
      return std::make_unique<Codec<uint32_t>>();
    case 8:
      return std::make_unique<Codec<uint64_t>>();
    default:
      return nullptr;
  }
}

bool IsFlatOf(const CompressiveEncoding& encoding, int64_t width) {
  return encoding.has_flat() && !encoding.flat().has_data() &&
         encoding.flat().bits_per_value() == static_cast<uint64_t>(8 * width);
}

Status Mismatch(const CompressiveEncoding& encoding, const ValueShape& shape) {
  return Corruption("encoding ", EncodingName(encoding), " does not give values of ",
                    shape.kind == Kind::kVariable ? "variable width"
                    : shape.kind == Kind::kBits   ? "one bit"
                    : shape.kind == Kind::kFixedSizeList
                        ? "a fixed-size list of this size"
                        : "this width");
}

Result<std::unique_ptr<MiniBlockCodec>> MakeFixed(const CompressiveEncoding& encoding,
                                                  const ValueShape& shape) {
  const int64_t width = shape.byte_width;
  std::unique_ptr<MiniBlockCodec> made;
  switch (encoding.compression_case()) {
    case CompressiveEncoding::kFlat:
      if (IsFlatOf(encoding, width)) made = std::make_unique<FlatCodec>(width);
      break;
    case CompressiveEncoding::kInlineBitpacking: {
      const auto& packed = encoding.inline_bitpacking();
      if (packed.uncompressed_bits_per_value() == static_cast<uint64_t>(8 * width) &&
          !packed.has_values()) {
        made = MakeForWidth<InlineBitpackCodec>(width);
      }
      break;
    }
    case CompressiveEncoding::kRle:
      if (!encoding.rle().values().has_flat() ||
          !IsFlatOf(encoding.rle().run_lengths(), 1)) {
        return NotSupported("run-length chunks with children other than Flat");
      }
      if (IsFlatOf(encoding.rle().values(), width))
        made = MakeForWidth<RunLengthCodec>(width);
      break;
    case CompressiveEncoding::kByteStreamSplit:
      if ((width == 4 || width == 8) &&
          IsFlatOf(encoding.byte_stream_split().values(), width)) {
        made = MakeForWidth<ByteStreamSplitCodec>(width);
      }
      break;
    default:
      return NotSupported("encoding ", EncodingName(encoding), " in a mini-block page");
  }
  if (!made) return Mismatch(encoding, shape);
  return made;
}

Result<std::unique_ptr<MiniBlockCodec>> MakeVariable(const CompressiveEncoding& encoding,
                                                     const ValueShape& shape) {
  if (encoding.has_variable()) {
    const auto& variable = encoding.variable();
    if (variable.has_values()) return NotSupported("Variable with compressed bytes");
    std::unique_ptr<MiniBlockCodec> made;
    if (IsFlatOf(variable.offsets(), 4))
      made = std::make_unique<VariableCodec<uint32_t>>();
    if (IsFlatOf(variable.offsets(), 8))
      made = std::make_unique<VariableCodec<uint64_t>>();
    if (!made) {
      return NotSupported("Variable with offsets encoded as ",
                          EncodingName(variable.offsets()));
    }
    return made;
  }
  if (encoding.has_fsst()) {
    const CompressiveEncoding& codes = encoding.fsst().values();
    GLAIVE_ASSIGN_OR_RETURN(auto table, FsstTable::Parse(encoding.fsst().symbol_table()));
    if (!table.compressed()) return MakeMiniBlockCodec(codes, shape);
    std::unique_ptr<MiniBlockCodec> made;
    if (codes.has_variable() && !codes.variable().has_values()) {
      if (IsFlatOf(codes.variable().offsets(), 4)) {
        made = std::make_unique<FsstCodec<uint32_t>>(std::move(table));
      } else if (IsFlatOf(codes.variable().offsets(), 8)) {
        made = std::make_unique<FsstCodec<uint64_t>>(std::move(table));
      }
    }
    if (made) return made;
    auto code_shape = std::make_unique<ValueShape>();
    code_shape->kind = Kind::kVariable;
    code_shape->wide_offsets = true;
    GLAIVE_ASSIGN_OR_RETURN(auto inner, MakeMiniBlockCodec(codes, *code_shape));
    made = std::make_unique<NestedFsstCodec>(std::move(table), std::move(inner),
                                             std::move(code_shape));
    return made;
  }
  return Mismatch(encoding, shape);
}

}  // namespace

Status CheckTuple(std::span<const int64_t> widths, const ValueShape& shape) {
  if (shape.kind != Kind::kStruct || widths.size() != shape.children.size() ||
      widths.empty()) {
    return Corruption("packed struct of ", widths.size(), " fields instead of ",
                      shape.children.size());
  }
  for (size_t i = 0; i < widths.size(); ++i) {
    const ValueShape& child = shape.children[i];
    const ValueShape* item = &child;
    while (item->kind == Kind::kFixedSizeList) item = &item->children[0];
    bool fits = widths[i] > 0 && child.FixedBytes() == widths[i] &&
                (item->kind == Kind::kFixed || child.kind == Kind::kBits);
    if (!fits) {
      return Corruption("packed struct: field ", i, " has ", widths[i],
                        " bytes per value, which its type does not");
    }
  }
  return Status::OK();
}

Status AppendTuples(const uint8_t* rows, int64_t count, std::span<const int64_t> widths,
                    ValueSink* out) {
  int64_t row_bytes = 0;
  for (int64_t width : widths) row_bytes += width;
  int64_t at = 0;
  for (size_t f = 0; f < widths.size(); ++f) {
    ValueSink& field = out->children()[f];
    const int64_t width = widths[f];
    const uint8_t* from = rows + at;
    GLAIVE_RETURN_NOT_OK(field.validity().AppendValid(count));
    if (field.shape().kind == Kind::kBits) {
      for (int64_t i = 0; i < count; ++i) {
        GLAIVE_RETURN_NOT_OK(field.bits().AppendRun((from[i * row_bytes] & 1) != 0, 1));
      }
    } else {
      // Vectors are stored flattened: walk down to the items.
      ValueSink* items = &field;
      int64_t items_per_value = 1;
      while (items->shape().kind == Kind::kFixedSizeList) {
        items_per_value *= items->shape().list_size;
        if (items != &field)
          items->AddLength(count * items_per_value / items->shape().list_size);
        items = &items->children()[0];
        GLAIVE_RETURN_NOT_OK(items->validity().AppendValid(count * items_per_value));
      }
      GLAIVE_RETURN_NOT_OK(items->data().Reserve(count * width));
      uint8_t* to = items->data().tail();
      switch (width) {
        case 1:
          for (int64_t i = 0; i < count; ++i) to[i] = from[i * row_bytes];
          break;
        case 4:
          for (int64_t i = 0; i < count; ++i)
            std::memcpy(to + i * 4, from + i * row_bytes, 4);
          break;
        case 8:
          for (int64_t i = 0; i < count; ++i)
            std::memcpy(to + i * 8, from + i * row_bytes, 8);
          break;
        default:
          for (int64_t i = 0; i < count; ++i) {
            std::memcpy(to + i * width, from + i * row_bytes, static_cast<size_t>(width));
          }
      }
      items->data().Advance(count * width);
      if (items != &field) items->AddLength(count * items_per_value);
    }
    field.AddLength(count);
    at += width;
  }
  out->AddLength(count);
  return Status::OK();
}

Result<int64_t> DecodedWidth(const CompressiveEncoding& encoding) {
  switch (encoding.compression_case()) {
    case CompressiveEncoding::kFlat: {
      uint64_t bits = encoding.flat().bits_per_value();
      if (bits == 8 || bits == 16 || bits == 32 || bits == 64)
        return static_cast<int64_t>(bits / 8);
      return Corruption("dictionary indices of ", bits, " bits");
    }
    case CompressiveEncoding::kInlineBitpacking: {
      uint64_t bits = encoding.inline_bitpacking().uncompressed_bits_per_value();
      if (bits == 8 || bits == 16 || bits == 32 || bits == 64)
        return static_cast<int64_t>(bits / 8);
      return Corruption("dictionary indices of ", bits, " bits");
    }
    case CompressiveEncoding::kRle:
      return DecodedWidth(encoding.rle().values());
    case CompressiveEncoding::kByteStreamSplit:
      return DecodedWidth(encoding.byte_stream_split().values());
    case CompressiveEncoding::kGeneral:
      return DecodedWidth(encoding.general().values());
    default:
      return NotSupported("dictionary indices encoded as ", EncodingName(encoding));
  }
}

Result<std::unique_ptr<MiniBlockCodec>> MakeMiniBlockCodec(
    const CompressiveEncoding& encoding, const ValueShape& shape) {
  if (encoding.has_general()) {
    GLAIVE_ASSIGN_OR_RETURN(auto scheme, SchemeOf(encoding.general().compression()));
    GLAIVE_ASSIGN_OR_RETURN(auto inner,
                            MakeMiniBlockCodec(encoding.general().values(), shape));
    std::unique_ptr<MiniBlockCodec> made =
        std::make_unique<GeneralCodec>(scheme, std::move(inner));
    return made;
  }
  switch (shape.kind) {
    case Kind::kBits: {
      if (!encoding.has_flat() || encoding.flat().bits_per_value() != 1) break;
      std::unique_ptr<MiniBlockCodec> made = std::make_unique<BitsCodec>();
      return made;
    }
    case Kind::kFixed:
    case Kind::kDictionary:
      return MakeFixed(encoding, shape);
    case Kind::kVariable:
      return MakeVariable(encoding, shape);
    case Kind::kFixedSizeList: {
      if (!encoding.has_fixed_size_list()) break;
      const auto& list = encoding.fixed_size_list();
      if (list.items_per_value() != static_cast<uint64_t>(shape.list_size)) break;
      GLAIVE_ASSIGN_OR_RETURN(auto inner,
                              MakeMiniBlockCodec(list.values(), shape.children[0]));
      std::unique_ptr<MiniBlockCodec> made = std::make_unique<FixedSizeListCodec>(
          shape.list_size, list.has_validity(), std::move(inner));
      return made;
    }
    case Kind::kStruct: {
      if (!encoding.has_packed_struct()) break;
      std::vector<int64_t> widths;
      uint64_t total = 0;
      for (uint64_t bits : encoding.packed_struct().bits_per_value()) {
        if (bits % 8 != 0 || bits > (uint64_t{1} << 40)) {
          return Corruption("packed struct: a field of ", bits, " bits");
        }
        widths.push_back(static_cast<int64_t>(bits / 8));
        total += bits;
      }
      GLAIVE_RETURN_NOT_OK(CheckTuple(widths, shape));
      const auto& values = encoding.packed_struct().values();
      if (!values.has_flat() || values.flat().bits_per_value() != total) {
        return NotSupported("packed struct encoded as ", EncodingName(values));
      }
      std::unique_ptr<MiniBlockCodec> made =
          std::make_unique<TupleCodec>(std::move(widths));
      return made;
    }
    case Kind::kNull:
      break;
  }
  return Mismatch(encoding, shape);
}

}  // namespace glaive::encoding
