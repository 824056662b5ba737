#include "file/decode20.h"

#include <algorithm>
#include <utility>

#include <arrow/array.h>
#include <arrow/buffer.h>

#include "encoding/bitunpack.h"
#include "encoding/decompress.h"
#include "encoding/fsst_decode.h"
#include "encoding/miniblock_decode.h"
#include "file/dictionary_gather.h"
#include "format/encodings.pb.h"

namespace glaive::file {

using encoding::Bytes;
using encoding::ByteSink;
using encoding::CheckedMultiply;
using encoding::Compression;
using encoding::LoadUnaligned;
using encoding::ValiditySink;
using encoding::ValueRange;
using encoding::ValueShape;
using encoding::ValueSink;
using lance::encodings::ArrayEncoding;
using Kind = ValueShape::Kind;

namespace {

int64_t CountOf(std::span<const ValueRange> rows) {
  int64_t count = 0;
  for (const ValueRange& range : rows) count += range.count;
  return count;
}

Status Mismatch(const char* what) {
  return Corruption("a 2.0 ", what, " encoding that does not fit the column's type");
}

Result<Compression> SchemeOf(const lance::encodings::Flat& flat) {
  if (!flat.has_compression()) return Compression::kNone;
  const std::string& scheme = flat.compression().scheme();
  if (scheme == "none" || scheme.empty()) return Compression::kNone;
  if (scheme == "lz4") return Compression::kLz4;
  if (scheme == "zstd") return Compression::kZstd;
  return NotSupported("compression scheme '", scheme, "'");
}

const lance::encodings::Buffer* BufferMessage(const ArrayEncoding& encoding) {
  switch (encoding.array_encoding_case()) {
    case ArrayEncoding::kFlat:
      return &encoding.flat().buffer();
    case ArrayEncoding::kPackedStruct:
      return &encoding.packed_struct().buffer();
    case ArrayEncoding::kBitpacked:
      return &encoding.bitpacked().buffer();
    case ArrayEncoding::kBitpackedForNonNeg:
      return &encoding.bitpacked_for_non_neg().buffer();
    default:
      return nullptr;
  }
}

// Looks through Nullable.no_nulls.
const ArrayEncoding& Unwrapped(const ArrayEncoding& encoding) {
  const ArrayEncoding* at = &encoding;
  while (at->has_nullable() && at->nullable().has_no_nulls()) {
    at = &at->nullable().no_nulls().values();
  }
  return *at;
}

}  // namespace

Result<io::ByteRange> Page20::BufferOf(const ArrayEncoding& encoding) const {
  const lance::encodings::Buffer* message = BufferMessage(encoding);
  if (!message) return NotSupported("a 2.0 encoding without a buffer of its own");
  if (message->buffer_type() != lance::encodings::Buffer::page) {
    return NotSupported("2.0 values in column or file buffers");
  }
  if (message->buffer_index() >= page_.buffers.size()) {
    return Corruption("buffer ", message->buffer_index(), " of ", page_.buffers.size());
  }
  return page_.buffers[message->buffer_index()];
}

Result<Page20::Slices> Page20::FlatSlices(const ArrayEncoding& encoding, int64_t width,
                                          Ranges rows) const {
  GLAIVE_ASSIGN_OR_RETURN(io::ByteRange buffer, BufferOf(encoding));
  Compression scheme = Compression::kNone;
  if (encoding.has_flat()) {
    GLAIVE_ASSIGN_OR_RETURN(scheme, SchemeOf(encoding.flat()));
  }
  Slices out;
  std::shared_ptr<arrow::Buffer> plain;
  if (scheme != Compression::kNone) {
    GLAIVE_ASSIGN_OR_RETURN(auto stored, object_.Read(buffer));
    ByteSink bytes;
    GLAIVE_RETURN_NOT_OK(encoding::Decompress(
        scheme, Bytes(stored->data(), static_cast<size_t>(stored->size())), &bytes));
    plain = bytes.Finish();
    buffer = {0, plain->size()};
  }
  std::vector<io::ByteRange> wanted;
  for (const ValueRange& range : rows) {
    const int64_t start = CheckedMultiply(range.start, width);
    const int64_t length = CheckedMultiply(range.count, width);
    if (start < 0 || length < 0 || start > buffer.length ||
        length > buffer.length - start) {
      return Corruption("values ", range.start, " to ", range.start + range.count, " of ",
                        width, " bytes in a buffer of ", buffer.length);
    }
    if (plain) {
      out.buffers.push_back(arrow::SliceBuffer(plain, start, length));
    } else {
      wanted.push_back({buffer.offset + start, length});
    }
  }
  if (plain || wanted.empty()) return out;
  if (wanted.size() == 1) {
    GLAIVE_ASSIGN_OR_RETURN(auto one, object_.Read(wanted[0]));
    out.buffers.push_back(std::move(one));
  } else {
    GLAIVE_ASSIGN_OR_RETURN(out.buffers, object_.ReadMany(wanted));
  }
  return out;
}

Status Page20::DecodeBitmap(const ArrayEncoding& encoding, Ranges rows,
                            encoding::BitSink* bits, ValiditySink* validity) const {
  if (!encoding.has_flat() || encoding.flat().bits_per_value() != 1) {
    return Mismatch("bitmap");
  }
  std::vector<ValueRange> in_bytes;
  for (const ValueRange& range : rows) {
    const int64_t first = range.start / 8;
    in_bytes.push_back({first, (range.start + range.count + 7) / 8 - first});
  }
  GLAIVE_ASSIGN_OR_RETURN(auto slices, FlatSlices(encoding, 1, in_bytes));
  for (size_t i = 0; i < rows.size(); ++i) {
    const uint8_t* data = slices.buffers[i]->data();
    if (bits) GLAIVE_RETURN_NOT_OK(bits->Append(data, rows[i].start % 8, rows[i].count));
    if (validity) {
      GLAIVE_RETURN_NOT_OK(
          validity->AppendBitmap(data, rows[i].start % 8, rows[i].count));
    }
  }
  return Status::OK();
}

Status Page20::DecodeFlat(const ArrayEncoding& encoding, Ranges rows,
                          ValueSink* values) const {
  if (values->shape().kind == Kind::kBits) {
    GLAIVE_RETURN_NOT_OK(DecodeBitmap(encoding, rows, &values->bits(), nullptr));
    values->AddLength(CountOf(rows));
    return Status::OK();
  }
  const int64_t width = values->shape().byte_width;
  if (values->shape().kind != Kind::kFixed ||
      encoding.flat().bits_per_value() != static_cast<uint64_t>(8 * width)) {
    return Mismatch("flat");
  }
  GLAIVE_ASSIGN_OR_RETURN(auto slices, FlatSlices(encoding, width, rows));
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto& slice = slices.buffers[i];
    const auto address = reinterpret_cast<uintptr_t>(slice->data());
    const uintptr_t alignment = width % 8 == 0   ? 8
                                : width % 4 == 0 ? 4
                                : width % 2 == 0 ? 2
                                                 : 1;
    if (rows.size() == 1 && address % alignment == 0) {
      GLAIVE_RETURN_NOT_OK(values->data().AppendBuffer(slice));
    } else {
      GLAIVE_RETURN_NOT_OK(values->data().Append(slice->data(), slice->size()));
    }
    values->AddLength(rows[i].count);
  }
  return Status::OK();
}

Status Page20::DecodeNumbers(const ArrayEncoding& given, Ranges rows,
                             std::vector<uint64_t>* out) const {
  const ArrayEncoding& encoding = Unwrapped(given);
  if (!encoding.has_flat()) return NotSupported("2.0 offsets that are not flat");
  const uint64_t bits = encoding.flat().bits_per_value();
  if (bits != 8 && bits != 16 && bits != 32 && bits != 64) return Mismatch("offset");
  const auto width = static_cast<int64_t>(bits / 8);
  GLAIVE_ASSIGN_OR_RETURN(auto slices, FlatSlices(encoding, width, rows));
  for (size_t i = 0; i < rows.size(); ++i) {
    const uint8_t* at = slices.buffers[i]->data();
    for (int64_t r = 0; r < rows[i].count; ++r) {
      uint64_t value = 0;
      std::memcpy(&value, at + r * width, static_cast<size_t>(width));
      out->push_back(value);
    }
  }
  return Status::OK();
}

Status Page20::DecodeNullable(const ArrayEncoding& encoding, int64_t num_rows,
                              Ranges rows, ValueSink* values,
                              ValiditySink* validity) const {
  const auto& nullable = encoding.nullable();
  if (nullable.has_no_nulls()) {
    return Decode(nullable.no_nulls().values(), num_rows, rows, values, validity);
  }
  if (nullable.has_all_nulls()) {
    GLAIVE_RETURN_NOT_OK(validity->AppendNulls(CountOf(rows)));
    return values->AppendEmpty(CountOf(rows));
  }
  if (!nullable.has_some_nulls()) return Corruption("a 2.0 page without nullability");
  GLAIVE_RETURN_NOT_OK(
      DecodeBitmap(Unwrapped(nullable.some_nulls().validity()), rows, nullptr, validity));
  ValiditySink ignored;  // the values themselves have none
  return Decode(nullable.some_nulls().values(), num_rows, rows, values, &ignored);
}

namespace {

// Where the bytes of some rows lie, from cumulative ends with nulls folded in.
struct BinarySpan {
  std::vector<uint64_t> offsets;  // count + 1, into the bytes buffer
  std::vector<bool> valid;
};

Result<BinarySpan> SpanOf(std::span<const uint64_t> ends, uint64_t previous,
                          uint64_t adjust) {
  auto end_of = [&](uint64_t stored) { return adjust > 0 ? stored % adjust : stored; };
  BinarySpan out;
  out.offsets.reserve(ends.size() + 1);
  out.offsets.push_back(end_of(previous));
  for (uint64_t stored : ends) {
    const uint64_t end = end_of(stored);
    if (end < out.offsets.back()) return Corruption("2.0 offsets that decrease at ", end);
    out.offsets.push_back(end);
    out.valid.push_back(adjust == 0 || stored < adjust);
  }
  return out;
}

}  // namespace

Status Page20::DecodeBinary(const ArrayEncoding& encoding, Ranges rows, ValueSink* values,
                            ValiditySink* validity) const {
  const auto& binary = encoding.binary();
  if (values->shape().kind != Kind::kVariable) return Mismatch("binary");
  // The end of the row before each range is where the range starts.
  std::vector<ValueRange> with_previous(rows.begin(), rows.end());
  for (ValueRange& range : with_previous) {
    if (range.start == 0) continue;
    --range.start;
    ++range.count;
  }
  std::vector<uint64_t> ends;
  GLAIVE_RETURN_NOT_OK(DecodeNumbers(binary.indices(), with_previous, &ends));
  std::vector<BinarySpan> spans;
  std::vector<ValueRange> bytes;
  size_t at = 0;
  for (const ValueRange& range : rows) {
    uint64_t previous = 0;
    if (range.start > 0) previous = ends[at++];
    GLAIVE_ASSIGN_OR_RETURN(
        auto span, SpanOf(std::span(ends).subspan(at, static_cast<size_t>(range.count)),
                          previous, binary.null_adjustment()));
    at += static_cast<size_t>(range.count);
    if (span.offsets.back() > (uint64_t{1} << 62))
      return Corruption("2.0 offset too large");
    bytes.push_back({static_cast<int64_t>(span.offsets.front()),
                     static_cast<int64_t>(span.offsets.back() - span.offsets.front())});
    spans.push_back(std::move(span));
  }
  const ArrayEncoding& raw = Unwrapped(binary.bytes());
  Slices slices;
  const bool any_bytes = CountOf(bytes) > 0;
  if (any_bytes) {
    if (!raw.has_flat() || raw.flat().bits_per_value() != 8) {
      return NotSupported("2.0 text whose bytes are not flat");
    }
    GLAIVE_ASSIGN_OR_RETURN(slices, FlatSlices(raw, 1, bytes));
  }
  for (size_t i = 0; i < spans.size(); ++i) {
    const BinarySpan& span = spans[i];
    const auto count = static_cast<int64_t>(span.valid.size());
    if (any_bytes) {
      std::vector<uint64_t> offsets = span.offsets;
      for (uint64_t& offset : offsets) offset -= span.offsets.front();
      GLAIVE_RETURN_NOT_OK(values->AppendVariable<uint64_t>(
          reinterpret_cast<const uint8_t*>(offsets.data()), count,
          slices.buffers[i]->data()));
    } else {
      GLAIVE_RETURN_NOT_OK(values->AppendEmpty(count));
    }
    for (bool valid : span.valid) {
      GLAIVE_RETURN_NOT_OK(valid ? validity->AppendValid(1) : validity->AppendNulls(1));
    }
  }
  return Status::OK();
}

Status Page20::DecodeFsst(const ArrayEncoding& encoding, int64_t num_rows, Ranges rows,
                          ValueSink* values, ValiditySink* validity) const {
  if (values->shape().kind != Kind::kVariable) return Mismatch("FSST");
  GLAIVE_ASSIGN_OR_RETURN(auto table,
                          encoding::FsstTable::Parse(encoding.fsst().symbol_table()));
  if (!table.compressed()) {
    return Decode(encoding.fsst().binary(), num_rows, rows, values, validity);
  }
  ValueShape code_shape;
  code_shape.kind = Kind::kVariable;
  code_shape.wide_offsets = true;
  ValueSink codes(code_shape);
  GLAIVE_RETURN_NOT_OK(
      Decode(encoding.fsst().binary(), num_rows, rows, &codes, validity));
  if (codes.length() == 0) return Status::OK();
  GLAIVE_RETURN_NOT_OK(values->data().Reserve(encoding::FsstTable::kMaxSymbolBytes *
                                              (codes.data().size() + 1)));
  const auto* offsets = reinterpret_cast<const int64_t*>(codes.offsets().data());
  std::vector<int64_t> ends(static_cast<size_t>(codes.length()));
  for (int64_t i = 0; i < codes.length(); ++i) {
    Bytes value(codes.data().data() + offsets[i],
                static_cast<size_t>(offsets[i + 1] - offsets[i]));
    int64_t written = table.Expand(value, values->data().tail());
    if (written < 0) return Corruption("FSST codes that the symbol table does not have");
    values->data().Advance(written);
    ends[static_cast<size_t>(i)] = values->data().size();
  }
  return values->AppendEnds(ends.data(), codes.length());
}

Status Page20::DecodeDictionary(const ArrayEncoding& encoding, int64_t num_rows,
                                Ranges rows, ValueSink* values,
                                ValiditySink* validity) const {
  const auto& dictionary = encoding.dictionary();
  const ValueShape& shape = values->shape();
  const bool keep = shape.kind == Kind::kDictionary;
  const ValueShape& item_shape = keep ? shape.children[0] : shape;
  const int64_t num_items = dictionary.num_dictionary_items();
  ValueSink items(item_shape);
  ValiditySink item_validity;
  const ValueRange all{0, num_items};
  if (num_items > 0) {
    GLAIVE_RETURN_NOT_OK(Decode(dictionary.items(), num_items, std::span(&all, 1), &items,
                                &item_validity));
  }
  std::vector<uint64_t> indices;
  const ArrayEncoding& index_encoding = Unwrapped(dictionary.indices());
  if (!index_encoding.has_flat())
    return NotSupported("2.0 dictionary indices that are not flat");
  GLAIVE_RETURN_NOT_OK(DecodeNumbers(index_encoding, rows, &indices));
  static_cast<void>(num_rows);

  // A column that is no dictionary itself counts from one; zero stands for null.
  std::vector<int64_t> nulls;
  for (size_t i = 0; i < indices.size(); ++i) {
    bool null = false;
    if (!keep) {
      null = indices[i] == 0;
      indices[i] = null ? 0 : indices[i] - 1;
    }
    if (!null && indices[i] >= static_cast<uint64_t>(num_items)) {
      return Corruption("dictionary entry ", indices[i], " of ", num_items);
    }
    if (!null && !item_validity.IsValid(static_cast<int64_t>(indices[i]))) null = true;
    GLAIVE_RETURN_NOT_OK(null ? validity->AppendNulls(1) : validity->AppendValid(1));
    if (null) indices[i] = 0;
  }
  // The item that stands for null comes last: columns that keep the dictionary do without
  // it.
  int64_t kept = num_items;
  while (keep && kept > 0 && !item_validity.IsValid(kept - 1)) --kept;
  const int64_t item_nulls = item_validity.null_count();
  GLAIVE_ASSIGN_OR_RETURN(auto data, items.Finish(item_validity.Finish(), item_nulls));
  if (keep && kept < num_items) data = data->Slice(0, kept);
  if (data->length == 0) return values->AppendEmpty(static_cast<int64_t>(indices.size()));
  GLAIVE_ASSIGN_OR_RETURN(auto gather, DictionaryGather::Make(std::move(data), shape));
  return gather.Append(reinterpret_cast<const uint8_t*>(indices.data()),
                       static_cast<int64_t>(indices.size()), 8, values);
}

Status Page20::DecodeFixedSizeBinary(const ArrayEncoding& encoding, Ranges rows,
                                     ValueSink* values) const {
  const int64_t width = encoding.fixed_size_binary().byte_width();
  const ArrayEncoding& raw = Unwrapped(encoding.fixed_size_binary().bytes());
  if (values->shape().kind != Kind::kVariable || !raw.has_flat() ||
      raw.flat().bits_per_value() != 8) {
    return Mismatch("fixed-size binary");
  }
  GLAIVE_ASSIGN_OR_RETURN(auto slices, FlatSlices(raw, width, rows));
  for (size_t i = 0; i < rows.size(); ++i) {
    for (int64_t r = 0; r < rows[i].count; ++r) {
      GLAIVE_RETURN_NOT_OK(
          values->AppendOne(slices.buffers[i]->data() + r * width, width));
    }
  }
  return Status::OK();
}

namespace {

Result<int64_t> FixedWidthOf(const ArrayEncoding& given) {
  const ArrayEncoding& encoding = Unwrapped(given);
  if (encoding.has_flat()) {
    const uint64_t bits = encoding.flat().bits_per_value();
    if (bits % 8 != 0 || bits > (uint64_t{1} << 40)) {
      return Corruption("packed struct: a field of ", bits, " bits");
    }
    return static_cast<int64_t>(bits / 8);
  }
  if (encoding.has_fixed_size_list()) {
    GLAIVE_ASSIGN_OR_RETURN(int64_t item,
                            FixedWidthOf(encoding.fixed_size_list().items()));
    const int64_t width = CheckedMultiply(item, encoding.fixed_size_list().dimension());
    if (width < 0) return Corruption("packed struct: a vector too long");
    return width;
  }
  return NotSupported("packed struct with a field of varying width");
}

}  // namespace

Status Page20::DecodePackedStruct(const ArrayEncoding& encoding, Ranges rows,
                                  ValueSink* values) const {
  std::vector<int64_t> widths;
  int64_t row_bytes = 0;
  for (const ArrayEncoding& field : encoding.packed_struct().inner()) {
    GLAIVE_ASSIGN_OR_RETURN(int64_t width, FixedWidthOf(field));
    widths.push_back(width);
    row_bytes += width;
  }
  GLAIVE_RETURN_NOT_OK(encoding::CheckTuple(widths, values->shape()));
  GLAIVE_ASSIGN_OR_RETURN(auto slices, FlatSlices(encoding, row_bytes, rows));
  for (size_t i = 0; i < rows.size(); ++i) {
    GLAIVE_RETURN_NOT_OK(
        encoding::AppendTuples(slices.buffers[i]->data(), rows[i].count, widths, values));
  }
  return Status::OK();
}

Status Page20::DecodeBitpacked(const ArrayEncoding& encoding, Ranges rows,
                               ValueSink* values) const {
  const auto& packed = encoding.bitpacked();
  const int64_t width = values->shape().byte_width;
  const uint64_t bits = packed.compressed_bits_per_value();
  if (values->shape().kind != Kind::kFixed || width > 8 || bits == 0 ||
      packed.uncompressed_bits_per_value() != static_cast<uint64_t>(8 * width) ||
      bits > packed.uncompressed_bits_per_value()) {
    return Mismatch("bit-packed");
  }
  const auto w = static_cast<int64_t>(bits);
  for (const ValueRange& range : rows) {
    const int64_t first_bit = CheckedMultiply(range.start, w);
    const int64_t end_bit = CheckedMultiply(range.start + range.count, w);
    if (first_bit < 0 || end_bit < 0) return Corruption("bit-packed page too long");
    const ValueRange in_bytes{first_bit / 8, (end_bit + 7) / 8 - first_bit / 8};
    GLAIVE_ASSIGN_OR_RETURN(auto slices,
                            FlatSlices(encoding, 1, std::span(&in_bytes, 1)));
    const uint8_t* data = slices.buffers[0]->data();
    GLAIVE_RETURN_NOT_OK(values->data().Reserve(range.count * width));
    for (int64_t r = 0; r < range.count; ++r) {
      const int64_t bit = first_bit % 8 + r * w;
      uint64_t value = 0;
      for (int64_t b = 0; b < w; ++b) {
        value |=
            uint64_t{static_cast<uint8_t>(data[(bit + b) >> 3] >> ((bit + b) & 7)) & 1U}
            << b;
      }
      if (packed.signed_() && w < 64 && (value >> (w - 1)) != 0)
        value |= ~uint64_t{0} << w;
      std::memcpy(values->data().tail(), &value, static_cast<size_t>(width));
      values->data().Advance(width);
    }
    values->AddLength(range.count);
  }
  return Status::OK();
}

namespace {

template <typename T>
Status AppendPackedBlock(const uint8_t* block, int width, int64_t from, int64_t count,
                         ValueSink* values) {
  alignas(64) T unpacked[encoding::kPackedBlockValues];
  encoding::UnpackBlock<T>(block, width, unpacked);
  return values->data().Append(reinterpret_cast<const uint8_t*>(unpacked + from),
                               count * static_cast<int64_t>(sizeof(T)));
}

}  // namespace

Status Page20::DecodePackedBlocks(const ArrayEncoding& encoding, int64_t num_rows,
                                  Ranges rows, ValueSink* values) const {
  const auto& packed = encoding.bitpacked_for_non_neg();
  const int64_t width = values->shape().byte_width;
  const uint64_t bits = packed.compressed_bits_per_value();
  static_cast<void>(num_rows);
  if (values->shape().kind != Kind::kFixed || width > 8 ||
      packed.uncompressed_bits_per_value() != static_cast<uint64_t>(8 * width) ||
      bits > packed.uncompressed_bits_per_value()) {
    return Mismatch("bit-packed");
  }
  const int packed_width = static_cast<int>(bits);
  const int64_t block_bytes = encoding::PackedBlockBytes(packed_width);
  for (const ValueRange& range : rows) {
    int64_t at = range.start;
    const int64_t end = range.start + range.count;
    while (at < end) {
      const int64_t block = at / encoding::kPackedBlockValues;
      const int64_t from = at % encoding::kPackedBlockValues;
      const int64_t count = std::min(end - at, encoding::kPackedBlockValues - from);
      const ValueRange one{block, 1};
      GLAIVE_ASSIGN_OR_RETURN(auto slices,
                              FlatSlices(encoding, block_bytes, std::span(&one, 1)));
      const uint8_t* data = slices.buffers[0]->data();
      switch (width) {
        case 1:
          GLAIVE_RETURN_NOT_OK(
              AppendPackedBlock<uint8_t>(data, packed_width, from, count, values));
          break;
        case 2:
          GLAIVE_RETURN_NOT_OK(
              AppendPackedBlock<uint16_t>(data, packed_width, from, count, values));
          break;
        case 4:
          GLAIVE_RETURN_NOT_OK(
              AppendPackedBlock<uint32_t>(data, packed_width, from, count, values));
          break;
        default:
          GLAIVE_RETURN_NOT_OK(
              AppendPackedBlock<uint64_t>(data, packed_width, from, count, values));
      }
      at += count;
    }
    values->AddLength(range.count);
  }
  return Status::OK();
}

Status Page20::Decode(const ArrayEncoding& encoding, int64_t num_rows, Ranges rows,
                      ValueSink* values, ValiditySink* validity) const {
  switch (encoding.array_encoding_case()) {
    case ArrayEncoding::kNullable:
      return DecodeNullable(encoding, num_rows, rows, values, validity);
    case ArrayEncoding::kBinary:
      return DecodeBinary(encoding, rows, values, validity);
    case ArrayEncoding::kFsst:
      return DecodeFsst(encoding, num_rows, rows, values, validity);
    case ArrayEncoding::kDictionary:
      return DecodeDictionary(encoding, num_rows, rows, values, validity);
    default:
      break;
  }
  // What follows has no nulls of its own.
  GLAIVE_RETURN_NOT_OK(validity->AppendValid(CountOf(rows)));
  switch (encoding.array_encoding_case()) {
    case ArrayEncoding::kFlat:
      return DecodeFlat(encoding, rows, values);
    case ArrayEncoding::kFixedSizeBinary:
      return DecodeFixedSizeBinary(encoding, rows, values);
    case ArrayEncoding::kPackedStruct:
      return DecodePackedStruct(encoding, rows, values);
    case ArrayEncoding::kBitpacked:
      return DecodeBitpacked(encoding, rows, values);
    case ArrayEncoding::kBitpackedForNonNeg:
      return DecodePackedBlocks(encoding, num_rows, rows, values);
    case ArrayEncoding::kFixedSizeList: {
      const auto& list = encoding.fixed_size_list();
      if (values->shape().kind != Kind::kFixedSizeList ||
          list.dimension() != static_cast<uint64_t>(values->shape().list_size)) {
        return Mismatch("fixed-size list");
      }
      const int64_t dimension = values->shape().list_size;
      std::vector<ValueRange> items(rows.begin(), rows.end());
      for (ValueRange& range : items) {
        range.start = CheckedMultiply(range.start, dimension);
        range.count = CheckedMultiply(range.count, dimension);
        if (range.start < 0 || range.count < 0)
          return Corruption("a page of too many vectors");
      }
      ValueSink& child = values->children()[0];
      GLAIVE_RETURN_NOT_OK(Decode(list.items(), CheckedMultiply(num_rows, dimension),
                                  items, &child, &child.validity()));
      values->AddLength(CountOf(rows));
      return Status::OK();
    }
    default:
      return NotSupported("2.0 array encoding number ",
                          static_cast<int>(encoding.array_encoding_case()));
  }
}

}  // namespace glaive::file
