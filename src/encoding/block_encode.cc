// Block encoders: run lengths, bit packing, raw, and general compression of dictionary
// items.
#include "encoding/block_encode.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "encoding/bitpack.h"
#include "encoding/compress.h"

namespace glaive::encoding {
namespace {

namespace pb = lance::encodings21;

constexpr int64_t kMaxRun = 255;

// Runs of equal values, long ones cut at kMaxRun.
int64_t CountRuns(std::span<const uint16_t> values) {
  int64_t runs = 0;
  for (size_t i = 0; i < values.size();) {
    size_t end = i + 1;
    while (end < values.size() && values[end] == values[i]) ++end;
    runs += (static_cast<int64_t>(end - i) + kMaxRun - 1) / kMaxRun;
    i = end;
  }
  return runs;
}

// Whether the tail of `tail` values is packed like a full block, or kept as raw words.
template <typename T>
bool PacksTail(int width, int64_t tail) {
  constexpr int kBits = std::numeric_limits<T>::digits;
  return width * (kBitpackBlock - tail) < (kBits - width) * tail;
}

template <typename T>
int64_t OutOfLineBytes(int width, int64_t count) {
  const int64_t tail = count % kBitpackBlock;
  int64_t bytes = count / kBitpackBlock * PackedBlockBytes(width);
  if (tail > 0) {
    bytes += PacksTail<T>(width, tail) ? PackedBlockBytes(width)
                                       : tail * static_cast<int64_t>(sizeof(T));
  }
  return bytes;
}

template <typename T>
void AppendOutOfLine(std::span<const T> values, int width, OutBytes* out) {
  const size_t full = values.size() / kBitpackBlock;
  const size_t tail = values.size() % kBitpackBlock;
  const size_t block = static_cast<size_t>(PackedBlockBytes(width));
  for (size_t i = 0; i < full; ++i) {
    PackBlock(values.data() + i * kBitpackBlock, width, out->Extend(block));
  }
  if (tail == 0) return;
  const T* rest = values.data() + full * kBitpackBlock;
  if (PacksTail<T>(width, static_cast<int64_t>(tail))) {
    PackPartialBlock(rest, static_cast<int64_t>(tail), width, out->Extend(block));
  } else {
    out->Append(rest, tail * sizeof(T));
  }
}

void DescribeFlat(uint64_t bits, pb::CompressiveEncoding* out) {
  out->mutable_flat()->set_bits_per_value(bits);
}

void DescribeOutOfLine(uint64_t bits, int width, pb::CompressiveEncoding* out) {
  auto* packed = out->mutable_out_of_line_bitpacking();
  packed->set_uncompressed_bits_per_value(bits);
  DescribeFlat(static_cast<uint64_t>(width), packed->mutable_values());
}

// Compresses `raw` when the scheme asks for it; `inner` describes the raw form.
Status FinishItems(std::span<const uint8_t> raw, const pb::CompressiveEncoding& inner,
                   const EncodeOptions& options, OutBytes* out,
                   pb::CompressiveEncoding* encoding) {
  Scheme scheme = options.dict_values;
  if (!options.v2_2 || (scheme != Scheme::kLz4 && scheme != Scheme::kZstd)) {
    out->Append(raw);
    *encoding = inner;
    return Status::OK();
  }
  if (raw.size() > 0x7E000000) scheme = Scheme::kZstd;  // above LZ4's input limit
  GLAIVE_ASSIGN_OR_RETURN(auto compressor,
                          Compressor::Make(scheme, options.dict_values_level));
  GLAIVE_RETURN_NOT_OK(compressor.Append(raw, out));
  compressor.Describe(encoding->mutable_general()->mutable_compression());
  *encoding->mutable_general()->mutable_values() = inner;
  return Status::OK();
}

template <typename T>
bool TryPackedItems(const FixedValues& items, size_t limit, OutBytes* out,
                    pb::CompressiveEncoding* encoding) {
  const auto buffer = items.Contiguous();
  const std::span<const T> values(reinterpret_cast<const T*>(buffer->data()),
                                  static_cast<size_t>(items.count));
  const int width = MaxBitWidth(values.data(), items.count);
  // Width 0 would leave an empty buffer behind; such dictionaries have one item anyway.
  if (width == 0 || width >= std::numeric_limits<T>::digits) return false;
  if (static_cast<size_t>(OutOfLineBytes<T>(width, items.count)) >= limit) return false;
  AppendOutOfLine(values, width, out);
  DescribeOutOfLine(std::numeric_limits<T>::digits, width, encoding);
  return true;
}

template <typename Offset>
void AppendVariableBlock(const VariableValues& items, OutBytes* out) {
  const Offset header = sizeof(Offset) * 2;
  const Offset count = static_cast<Offset>(items.count);
  out->Put(static_cast<Offset>(sizeof(Offset) * 8));
  out->Put(static_cast<Offset>(header + (count + 1) * sizeof(Offset)));
  for (int64_t offset : items.offsets) {
    out->Put(static_cast<Offset>(offset - items.offsets.front()));
  }
  out->Append(items.bytes + items.offsets.front(),
              static_cast<size_t>(items.num_bytes()));
}

}  // namespace

LevelCodec LevelCodec::Choose(std::span<const uint16_t> levels, bool allow_rle) {
  LevelCodec out;
  const int64_t count = static_cast<int64_t>(levels.size());
  const int64_t raw = 2 * count;
  const int width = MaxBitWidth(levels.data(), count);
  int64_t packed = raw;
  if (count <= kBitpackBlock) {
    const int64_t bytes = 2 + PackedBlockBytes(width);
    if (PackedBlockBytes(width) < raw) {
      out.kind_ = Kind::kInline;
      packed = bytes;
    }
  } else if (width < 16) {
    out.kind_ = Kind::kOutOfLine;
    out.width_ = width;
    packed = OutOfLineBytes<uint16_t>(width, count);
  }
  if (allow_rle && count > 0) {
    const int64_t rle = 3 * CountRuns(levels);
    if (rle + 8 < raw && rle <= packed) {
      out.kind_ = Kind::kRle;
    }
  }
  return out;
}

void LevelCodec::Append(std::span<const uint16_t> levels, OutBytes* out) const {
  switch (kind_) {
    case Kind::kFlat:
      out->Append(levels.data(), levels.size() * 2);
      return;
    case Kind::kInline: {
      const int64_t count = static_cast<int64_t>(levels.size());
      const int width = MaxBitWidth(levels.data(), count);
      out->Put(static_cast<uint16_t>(width));
      PackPartialBlock(levels.data(), count, width,
                       out->Extend(static_cast<size_t>(PackedBlockBytes(width))));
      return;
    }
    case Kind::kOutOfLine:
      AppendOutOfLine(levels, width_, out);
      return;
    case Kind::kRle: {
      const size_t runs = static_cast<size_t>(CountRuns(levels));
      out->Put(static_cast<uint64_t>(runs * 2));
      uint8_t* values = out->Extend(runs * 3);
      uint8_t* lengths = values + runs * 2;
      for (size_t i = 0; i < levels.size();) {
        size_t end = i + 1;
        while (end < levels.size() && levels[end] == levels[i] &&
               end - i < static_cast<size_t>(kMaxRun)) {
          ++end;
        }
        std::memcpy(values, &levels[i], 2);
        values += 2;
        *lengths++ = static_cast<uint8_t>(end - i);
        i = end;
      }
      return;
    }
  }
}

void LevelCodec::Describe(pb::CompressiveEncoding* out) const {
  switch (kind_) {
    case Kind::kFlat:
      DescribeFlat(16, out);
      return;
    case Kind::kInline:
      out->mutable_inline_bitpacking()->set_uncompressed_bits_per_value(16);
      return;
    case Kind::kOutOfLine:
      DescribeOutOfLine(16, width_, out);
      return;
    case Kind::kRle:
      DescribeFlat(16, out->mutable_rle()->mutable_values());
      DescribeFlat(8, out->mutable_rle()->mutable_run_lengths());
      return;
  }
}

Status EncodeDictionaryItems(const FixedValues& items, const EncodeOptions& options,
                             OutBytes* out, pb::CompressiveEncoding* encoding) {
  pb::CompressiveEncoding flat;
  DescribeFlat(static_cast<uint64_t>(items.bits), &flat);
  const auto raw = items.Contiguous();
  const std::span<const uint8_t> bytes(raw->data(), static_cast<size_t>(raw->size()));
  OutBytes general;
  pb::CompressiveEncoding general_encoding;
  GLAIVE_RETURN_NOT_OK(FinishItems(bytes, flat, options, &general, &general_encoding));
  bool packed = false;
  if (options.dict_values != Scheme::kNone) {
    switch (items.bits) {
      case 8:
        packed = TryPackedItems<uint8_t>(items, general.size(), out, encoding);
        break;
      case 16:
        packed = TryPackedItems<uint16_t>(items, general.size(), out, encoding);
        break;
      case 32:
        packed = TryPackedItems<uint32_t>(items, general.size(), out, encoding);
        break;
      case 64:
        packed = TryPackedItems<uint64_t>(items, general.size(), out, encoding);
        break;
      default:
        break;
    }
  }
  if (packed) return Status::OK();
  out->Append(general.view());
  *encoding = general_encoding;
  return Status::OK();
}

Status EncodeDictionaryItems(const VariableValues& items, const EncodeOptions& options,
                             OutBytes* out, pb::CompressiveEncoding* encoding) {
  pb::CompressiveEncoding variable;
  DescribeFlat(static_cast<uint64_t>(8 * items.offset_bytes()),
               variable.mutable_variable()->mutable_offsets());
  OutBytes raw(
      static_cast<size_t>(items.num_bytes() + (items.count + 3) * items.offset_bytes()));
  if (items.large) {
    AppendVariableBlock<uint64_t>(items, &raw);
  } else {
    if (items.num_bytes() > std::numeric_limits<int32_t>::max()) {
      return InvalidInput(
          "a dictionary holds more than 2 GiB of text; use a large string type");
    }
    AppendVariableBlock<uint32_t>(items, &raw);
  }
  return FinishItems(raw.view(), variable, options, out, encoding);
}

}  // namespace glaive::encoding
