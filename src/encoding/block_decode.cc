#include "encoding/block_decode.h"

#include <algorithm>

#include "encoding/bitunpack.h"
#include "format/encodings21.pb.h"

namespace glaive::encoding {

namespace pb = lance::encodings21;
using pb::CompressiveEncoding;
using Kind = ValueShape::Kind;

namespace {

// A block without bytes may stand for this many zeros at most: nothing else bounds it.
constexpr int64_t kMaxImpliedValues = int64_t{1} << 20;

Status Unsupported(const CompressiveEncoding& encoding, const char* where) {
  return NotSupported("encoding ", EncodingName(encoding), " for ", where);
}

template <typename T>
Status DecodeInline(Bytes block, int64_t count, ByteSink* out) {
  constexpr int kBits = 8 * sizeof(T);
  if (count < 0 || count > kPackedBlockValues || block.size() < sizeof(T)) {
    return Corruption("bit-packed block of ", block.size(), " bytes for ", count,
                      " values");
  }
  auto width = static_cast<uint64_t>(LoadUnaligned<T>(block.data()));
  if (width > kBits || block.size() != sizeof(T) + static_cast<size_t>(PackedBlockBytes(
                                                       static_cast<int>(width)))) {
    return Corruption("bit-packed block of ", block.size(), " bytes at ", width,
                      " bits per value");
  }
  alignas(64) T values[kPackedBlockValues];
  UnpackBlock<T>(block.data() + sizeof(T), static_cast<int>(width), values);
  return out->Append(reinterpret_cast<const uint8_t*>(values),
                     count * static_cast<int64_t>(sizeof(T)));
}

template <typename T>
Status DecodeOutOfLine(Bytes block, int64_t count, int width, ByteSink* out) {
  constexpr int64_t kWord = sizeof(T);
  const int64_t size = static_cast<int64_t>(block.size());
  const int64_t full = count / kPackedBlockValues;
  const int64_t tail = count % kPackedBlockValues;
  const int64_t block_bytes = PackedBlockBytes(width);
  if (width == 0 && count > kMaxImpliedValues) {
    return Corruption("a block of no bytes claims ", count, " values");
  }
  if (size % kWord != 0 || (block_bytes > 0 && full > size / block_bytes)) {
    return Corruption("bit-packed block of ", size, " bytes for ", count, " values");
  }
  const int64_t rest = size - full * block_bytes;
  const bool raw_tail = rest == tail * kWord;
  if (!raw_tail && rest != block_bytes) {
    return Corruption("bit-packed block of ", size, " bytes for ", count, " values at ",
                      width, " bits");
  }
  GLAIVE_RETURN_NOT_OK(out->Reserve(count * kWord));
  const uint8_t* in = block.data();
  alignas(64) T values[kPackedBlockValues];
  for (int64_t i = 0; i < full; ++i, in += block_bytes) {
    UnpackBlock<T>(in, width, values);
    GLAIVE_RETURN_NOT_OK(
        out->Append(reinterpret_cast<const uint8_t*>(values), sizeof(values)));
  }
  if (raw_tail) return out->Append(in, tail * kWord);
  UnpackBlock<T>(in, width, values);
  return out->Append(reinterpret_cast<const uint8_t*>(values), tail * kWord);
}

template <typename T>
Status ExpandRuns(const uint8_t* values, const uint8_t* lengths, int64_t runs,
                  int64_t count, ByteSink* out) {
  GLAIVE_RETURN_NOT_OK(out->Reserve(count * static_cast<int64_t>(sizeof(T))));
  uint8_t* to = out->tail();
  int64_t left = count;
  for (int64_t i = 0; i < runs && left > 0; ++i) {
    auto value = LoadUnaligned<T>(values + i * static_cast<int64_t>(sizeof(T)));
    int64_t n = std::min<int64_t>(lengths[i], left);
    for (int64_t j = 0; j < n; ++j)
      std::memcpy(to + j * static_cast<int64_t>(sizeof(T)), &value, sizeof(T));
    to += n * static_cast<int64_t>(sizeof(T));
    left -= n;
  }
  out->Advance(count * static_cast<int64_t>(sizeof(T)));
  return Status::OK();
}

template <typename T>
Status DecodeRuns(const pb::Rle& rle, Bytes block, int64_t count, bool allow_more,
                  ByteSink* out) {
  if (!rle.values().has_flat() || rle.values().flat().bits_per_value() != 8 * sizeof(T) ||
      !rle.run_lengths().has_flat() || rle.run_lengths().flat().bits_per_value() != 8) {
    return NotSupported("run-length block with children other than Flat");
  }
  if (block.size() < 8) return Corruption("run-length block of ", block.size(), " bytes");
  auto value_bytes = LoadUnaligned<uint64_t>(block.data());
  block = block.subspan(8);
  if (value_bytes > block.size() || value_bytes % sizeof(T) != 0 ||
      block.size() - value_bytes != value_bytes / sizeof(T)) {
    return Corruption("run-length block of ", block.size(), " bytes with ", value_bytes,
                      " bytes of values");
  }
  auto runs = static_cast<int64_t>(value_bytes / sizeof(T));
  const uint8_t* lengths = block.data() + value_bytes;
  int64_t total = 0;
  for (int64_t i = 0; i < runs; ++i) total += lengths[i];
  if (total < count) {
    return Corruption("run-length block holds ", total, " of ", count, " values");
  }
  return ExpandRuns<T>(block.data(), lengths, runs, allow_more ? total : count, out);
}

template <typename T>
Status DecodeTyped(const CompressiveEncoding& encoding, Bytes block, int64_t count,
                   bool allow_more, ByteSink* out) {
  constexpr uint64_t kBits = 8 * sizeof(T);
  switch (encoding.compression_case()) {
    case CompressiveEncoding::kInlineBitpacking:
      if (encoding.inline_bitpacking().uncompressed_bits_per_value() != kBits ||
          encoding.inline_bitpacking().has_values()) {
        break;
      }
      return DecodeInline<T>(block, count, out);
    case CompressiveEncoding::kOutOfLineBitpacking: {
      const auto& packed = encoding.out_of_line_bitpacking();
      if (packed.uncompressed_bits_per_value() != kBits || !packed.values().has_flat())
        break;
      uint64_t width = packed.values().flat().bits_per_value();
      if (width > kBits) return Corruption("bit-packed block at ", width, " bits");
      return DecodeOutOfLine<T>(block, count, static_cast<int>(width), out);
    }
    case CompressiveEncoding::kRle:
      return DecodeRuns<T>(encoding.rle(), block, count, allow_more, out);
    default:
      break;
  }
  return Unsupported(encoding, "integers of this width in a block");
}

template <typename Word>
Status DecodeVariableBlock(Bytes block, int64_t header, int64_t bytes_start,
                           int64_t count, ValueSink* out) {
  constexpr int64_t kWord = sizeof(Word);
  auto size = static_cast<int64_t>(block.size());
  if (count > size / kWord || bytes_start < 0 || bytes_start > size ||
      header + (count + 1) * kWord > bytes_start) {
    return Corruption("dictionary block of ", size, " bytes for ", count, " values");
  }
  const uint8_t* offsets = block.data() + header;
  auto limit = static_cast<uint64_t>(size - bytes_start);
  uint64_t last = 0;
  for (int64_t i = 0; i <= count; ++i) {
    uint64_t offset = LoadUnaligned<Word>(offsets + i * kWord);
    if (offset < last || offset > limit) {
      return Corruption("dictionary block: offset ", offset, " of value ", i);
    }
    last = offset;
  }
  return out->AppendVariable<Word>(offsets, count, block.data() + bytes_start);
}

Status DecodeVariable(Bytes block, int64_t count, ValueSink* out) {
  auto size = static_cast<int64_t>(block.size());
  if (size < 4) return Corruption("dictionary block of ", size, " bytes");
  const uint8_t* in = block.data();
  if (in[1] != 0 || in[2] != 0 || in[3] != 0) {
    // An early form: the width in one byte, then count and start without alignment.
    if (in[0] == 32 && size >= 9) {
      return DecodeVariableBlock<uint32_t>(block, 9, LoadUnaligned<uint32_t>(in + 5),
                                           count, out);
    }
    if (in[0] == 64 && size >= 17) {
      auto start = LoadUnaligned<uint64_t>(in + 9);
      if (start > static_cast<uint64_t>(size))
        return Corruption("dictionary block start");
      return DecodeVariableBlock<uint64_t>(block, 17, static_cast<int64_t>(start), count,
                                           out);
    }
    return Corruption("dictionary block with offsets of ", int{in[0]}, " bits");
  }
  auto bits = LoadUnaligned<uint32_t>(in);
  if (bits == 32 && size >= 8) {
    return DecodeVariableBlock<uint32_t>(block, 8, LoadUnaligned<uint32_t>(in + 4), count,
                                         out);
  }
  if (bits == 64 && size >= 16) {
    auto start = LoadUnaligned<uint64_t>(in + 8);
    if (start > static_cast<uint64_t>(size)) return Corruption("dictionary block start");
    return DecodeVariableBlock<uint64_t>(block, 16, static_cast<int64_t>(start), count,
                                         out);
  }
  return Corruption("dictionary block with offsets of ", bits, " bits");
}

Status DecodeFixedSizeList(const CompressiveEncoding& encoding, Bytes block,
                           int64_t count, ValueSink* out) {
  const auto& list = encoding.fixed_size_list();
  if (out->shape().kind != Kind::kFixedSizeList || list.has_validity() ||
      list.items_per_value() != static_cast<uint64_t>(out->shape().list_size)) {
    return Unsupported(encoding, "a dictionary of this type");
  }
  int64_t items = CheckedMultiply(count, out->shape().list_size);
  if (items < 0) return Corruption("dictionary of ", count, " vectors");
  ValueSink& child = out->children()[0];
  GLAIVE_RETURN_NOT_OK(DecodeBlock(list.values(), block, items, &child));
  GLAIVE_RETURN_NOT_OK(child.validity().AppendValid(items));
  out->AddLength(count);
  return Status::OK();
}

}  // namespace

Result<Compression> SchemeOf(const pb::BufferCompression& compression) {
  switch (compression.scheme()) {
    case pb::COMPRESSION_ALGORITHM_LZ4:
      return Compression::kLz4;
    case pb::COMPRESSION_ALGORITHM_ZSTD:
      return Compression::kZstd;
    default:
      return NotSupported("compression scheme ", static_cast<int>(compression.scheme()));
  }
}

const char* EncodingName(const CompressiveEncoding& encoding) {
  switch (encoding.compression_case()) {
    case CompressiveEncoding::kFlat:
      return "Flat";
    case CompressiveEncoding::kVariable:
      return "Variable";
    case CompressiveEncoding::kConstant:
      return "Constant";
    case CompressiveEncoding::kOutOfLineBitpacking:
      return "OutOfLineBitpacking";
    case CompressiveEncoding::kInlineBitpacking:
      return "InlineBitpacking";
    case CompressiveEncoding::kFsst:
      return "Fsst";
    case CompressiveEncoding::kDictionary:
      return "Dictionary";
    case CompressiveEncoding::kRle:
      return "Rle";
    case CompressiveEncoding::kByteStreamSplit:
      return "ByteStreamSplit";
    case CompressiveEncoding::kGeneral:
      return "General";
    case CompressiveEncoding::kFixedSizeList:
      return "FixedSizeList";
    case CompressiveEncoding::kPackedStruct:
      return "PackedStruct";
    case CompressiveEncoding::kVariablePackedStruct:
      return "VariablePackedStruct";
    case CompressiveEncoding::COMPRESSION_NOT_SET:
      break;
  }
  return "unknown";
}

Status DecodeFixedBlock(const CompressiveEncoding& encoding, Bytes block, int64_t count,
                        int64_t width, bool allow_more, ByteSink* out) {
  if (count < 0) return Corruption("a block claims ", count, " values");
  if (count == 0) return Status::OK();
  switch (encoding.compression_case()) {
    case CompressiveEncoding::kFlat: {
      int64_t bytes = CheckedMultiply(count, width);
      if (encoding.flat().bits_per_value() != static_cast<uint64_t>(8 * width) ||
          encoding.flat().has_data()) {
        return Unsupported(encoding, "values of another width");
      }
      if (bytes < 0 || bytes > static_cast<int64_t>(block.size())) {
        return Corruption("block of ", block.size(), " bytes for ", count, " values of ",
                          width, " bytes");
      }
      return out->Append(block.data(), bytes);
    }
    case CompressiveEncoding::kGeneral: {
      GLAIVE_ASSIGN_OR_RETURN(auto scheme, SchemeOf(encoding.general().compression()));
      ByteSink inner;
      GLAIVE_RETURN_NOT_OK(Decompress(scheme, block, &inner));
      return DecodeFixedBlock(encoding.general().values(),
                              Bytes(inner.data(), static_cast<size_t>(inner.size())),
                              count, width, allow_more, out);
    }
    case CompressiveEncoding::kConstant: {
      const std::string& value = encoding.constant().value();
      if (static_cast<int64_t>(value.size()) != width || count > kMaxImpliedValues) {
        return Corruption("constant block of ", count, " values");
      }
      for (int64_t i = 0; i < count; ++i) {
        GLAIVE_RETURN_NOT_OK(
            out->Append(reinterpret_cast<const uint8_t*>(value.data()), width));
      }
      return Status::OK();
    }
    default:
      break;
  }
  switch (width) {
    case 1:
      return DecodeTyped<uint8_t>(encoding, block, count, allow_more, out);
    case 2:
      return DecodeTyped<uint16_t>(encoding, block, count, allow_more, out);
    case 4:
      return DecodeTyped<uint32_t>(encoding, block, count, allow_more, out);
    case 8:
      return DecodeTyped<uint64_t>(encoding, block, count, allow_more, out);
    default:
      return Unsupported(encoding, "values of this width");
  }
}

Status DecodeBlock(const CompressiveEncoding& encoding, Bytes block, int64_t count,
                   ValueSink* out) {
  if (count < 0) return Corruption("a block claims ", count, " values");
  if (encoding.has_general()) {
    GLAIVE_ASSIGN_OR_RETURN(auto scheme, SchemeOf(encoding.general().compression()));
    ByteSink inner;
    GLAIVE_RETURN_NOT_OK(Decompress(scheme, block, &inner));
    return DecodeBlock(encoding.general().values(),
                       Bytes(inner.data(), static_cast<size_t>(inner.size())), count,
                       out);
  }
  switch (out->shape().kind) {
    case Kind::kVariable:
      if (!encoding.has_variable()) break;
      return DecodeVariable(block, count, out);
    case Kind::kFixed: {
      int64_t before = out->data().size();
      GLAIVE_RETURN_NOT_OK(DecodeFixedBlock(
          encoding, block, count, out->shape().byte_width, false, &out->data()));
      if (out->data().size() - before != count * out->shape().byte_width) {
        return Corruption("block decodes to another number of values");
      }
      out->AddLength(count);
      return Status::OK();
    }
    case Kind::kBits:
      if (!encoding.has_flat() || encoding.flat().bits_per_value() != 1) break;
      if (count > 8 * static_cast<int64_t>(block.size())) {
        return Corruption("block of ", block.size(), " bytes for ", count, " bits");
      }
      GLAIVE_RETURN_NOT_OK(out->bits().Append(block.data(), 0, count));
      out->AddLength(count);
      return Status::OK();
    case Kind::kFixedSizeList:
      if (!encoding.has_fixed_size_list()) break;
      return DecodeFixedSizeList(encoding, block, count, out);
    default:
      break;
  }
  return Unsupported(encoding, "a dictionary of this type");
}

}  // namespace glaive::encoding
