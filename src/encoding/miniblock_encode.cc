// Chooses and runs the value codec of a mini-block page.
#include "encoding/miniblock_encode.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include <arrow/util/bitmap_ops.h>

#include "encoding/bitpack.h"
#include "encoding/compress.h"
#include "encoding/fsst_encode.h"
#include "encoding/out_bytes.h"

namespace glaive::encoding {
namespace {

namespace pb = lance::encodings21;

constexpr int64_t kMaxChunkValues = 4096;
// 8 KiB less the largest header of a chunk with one buffer.
constexpr int64_t kChunkBytes = 8 * 1024 - 6;
constexpr int64_t kMaxRun = 255;
constexpr int64_t kMinGeneralBytes = 4096;
constexpr double kMaxSplitEntropy = 4.0;

void DescribeFlat(int64_t bits, pb::CompressiveEncoding* out) {
  out->mutable_flat()->set_bits_per_value(static_cast<uint64_t>(bits));
}

// Chunks of `per_chunk` values whose bytes are a plain cut of `bytes`.
MiniBlockValues::Stream CutEvenly(std::shared_ptr<arrow::Buffer> bytes, int64_t count,
                                  int64_t per_chunk, int64_t bits,
                                  std::vector<uint32_t>* chunk_values) {
  MiniBlockValues::Stream out;
  for (int64_t at = 0; at < count; at += per_chunk) {
    const int64_t n = std::min(per_chunk, count - at);
    out.sizes.push_back(static_cast<uint32_t>((n * bits + 7) / 8));
    chunk_values->push_back(static_cast<uint32_t>(n));
  }
  out.bytes = std::move(bytes);
  return out;
}

MiniBlockValues EncodeFlat(const FixedValues& values) {
  MiniBlockValues out;
  DescribeFlat(values.bits, &out.encoding);
  out.streams.push_back(CutEvenly(values.Contiguous(), values.count,
                                  FlatChunkValues(values.bits), values.bits,
                                  &out.chunk_values));
  return out;
}

// Bit widths of the blocks of some values, and what packing them takes.
struct BitWidths {
  std::vector<uint8_t> widths;
  int64_t bytes = 0;
};

// Stops when packing would take more than `stop_above` bytes.
template <typename T>
BitWidths MeasureBlocks(std::span<const T> values, int64_t stop_above) {
  BitWidths out;
  out.widths.reserve(values.size() / kBitpackBlock + 1);
  for (size_t at = 0; at < values.size() && out.bytes <= stop_above;
       at += kBitpackBlock) {
    const size_t n = std::min(values.size() - at, static_cast<size_t>(kBitpackBlock));
    const int width = MaxBitWidth(values.data() + at, static_cast<int64_t>(n));
    out.widths.push_back(static_cast<uint8_t>(width));
    out.bytes += static_cast<int64_t>(sizeof(T)) + PackedBlockBytes(width);
  }
  return out;
}

template <typename T>
MiniBlockValues EncodeBitpacked(std::span<const T> values, const BitWidths& measured) {
  constexpr int kBits = std::numeric_limits<T>::digits;
  MiniBlockValues out;
  out.encoding.mutable_inline_bitpacking()->set_uncompressed_bits_per_value(kBits);
  OutBytes bytes(static_cast<size_t>(measured.bytes));
  MiniBlockValues::Stream stream;
  for (size_t at = 0; at < values.size(); at += kBitpackBlock) {
    const size_t n = std::min(values.size() - at, static_cast<size_t>(kBitpackBlock));
    const T* block = values.data() + at;
    const int width = measured.widths[at / kBitpackBlock];
    bytes.Put(static_cast<T>(width));
    uint8_t* to = bytes.Extend(static_cast<size_t>(PackedBlockBytes(width)));
    if (n == static_cast<size_t>(kBitpackBlock)) {
      PackBlock(block, width, to);
    } else {
      PackPartialBlock(block, static_cast<int64_t>(n), width, to);
    }
    stream.sizes.push_back(static_cast<uint32_t>(sizeof(T)) +
                           static_cast<uint32_t>(PackedBlockBytes(width)));
    out.chunk_values.push_back(static_cast<uint32_t>(n));
  }
  stream.bytes = bytes.Finish();
  out.streams.push_back(std::move(stream));
  return out;
}

// Adjacent values that differ, plus one: the runs before long ones are cut. Stops some
// way above `stop_above`.
template <typename T>
int64_t CountRuns(std::span<const T> values, int64_t stop_above) {
  constexpr size_t kStep = 1024;
  int64_t runs = 1;
  size_t i = 1;
  for (; i + kStep <= values.size() && runs <= stop_above; i += kStep) {
    const T* at = values.data() + i;
    const T* before = at - 1;
    int differ = 0;
    for (size_t k = 0; k < kStep; ++k) differ += at[k] != before[k];
    runs += differ;
  }
  for (; i < values.size() && runs <= stop_above; ++i) runs += values[i] != values[i - 1];
  return runs;
}

// Run lengths of values[0, n); stops and returns nothing when more than `limit` bytes
// come out.
template <typename T>
struct Runs {
  std::vector<T> values;
  std::vector<uint8_t> lengths;

  int64_t bytes() const {
    return static_cast<int64_t>(values.size() * sizeof(T) + lengths.size());
  }
  bool Collect(const T* in, size_t n, int64_t limit) {
    values.clear();
    lengths.clear();
    for (size_t i = 0; i < n;) {
      size_t end = i + 1;
      const size_t stop = std::min(n, i + static_cast<size_t>(kMaxRun));
      while (end < stop && in[end] == in[i]) ++end;
      values.push_back(in[i]);
      lengths.push_back(static_cast<uint8_t>(end - i));
      if (bytes() > limit) return false;
      i = end;
    }
    return true;
  }
};

template <typename T>
MiniBlockValues EncodeRle(std::span<const T> values) {
  MiniBlockValues out;
  DescribeFlat(8 * static_cast<int64_t>(sizeof(T)),
               out.encoding.mutable_rle()->mutable_values());
  DescribeFlat(8, out.encoding.mutable_rle()->mutable_run_lengths());
  OutBytes value_bytes;
  OutBytes length_bytes;
  MiniBlockValues::Stream value_stream;
  MiniBlockValues::Stream length_stream;
  Runs<T> runs;
  for (size_t at = 0; at < values.size();) {
    const size_t rest = values.size() - at;
    size_t n = std::min(rest, static_cast<size_t>(kMaxChunkValues));
    // Only the last chunk may hold something else than a power of two.
    while (!runs.Collect(values.data() + at, n, kChunkBytes)) {
      n = std::bit_floor(n - 1);
    }
    value_bytes.Append(runs.values.data(), runs.values.size() * sizeof(T));
    length_bytes.Append(runs.lengths.data(), runs.lengths.size());
    value_stream.sizes.push_back(static_cast<uint32_t>(runs.values.size() * sizeof(T)));
    length_stream.sizes.push_back(static_cast<uint32_t>(runs.lengths.size()));
    out.chunk_values.push_back(static_cast<uint32_t>(n));
    at += n;
  }
  value_stream.bytes = value_bytes.Finish();
  length_stream.bytes = length_bytes.Finish();
  out.streams.push_back(std::move(value_stream));
  out.streams.push_back(std::move(length_stream));
  return out;
}

// Mean over the byte positions of the entropy of the bytes there, in bits.
double SplitEntropy(const uint8_t* bytes, int64_t count, int64_t width) {
  double sum = 0;
  for (int64_t j = 0; j < width; ++j) {
    int64_t histogram[256] = {};
    for (int64_t i = 0; i < count; ++i) ++histogram[bytes[i * width + j]];
    for (int64_t n : histogram) {
      if (n == 0) continue;
      const double p = static_cast<double>(n) / static_cast<double>(count);
      sum -= p * std::log2(p);
    }
  }
  return sum / static_cast<double>(width);
}

MiniBlockValues EncodeByteStreamSplit(const FixedValues& values) {
  MiniBlockValues out;
  DescribeFlat(values.bits, out.encoding.mutable_byte_stream_split()->mutable_values());
  const auto in = values.Contiguous();
  const int64_t width = values.byte_width();
  OutBytes bytes;
  uint8_t* to = bytes.Extend(static_cast<size_t>(values.num_bytes()));
  const int64_t per_chunk = FlatChunkValues(values.bits);
  for (int64_t at = 0; at < values.count; at += per_chunk) {
    const int64_t n = std::min(per_chunk, values.count - at);
    const uint8_t* from = in->data() + at * width;
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < width; ++j) to[j * n + i] = from[i * width + j];
    }
    to += n * width;
  }
  out.streams.push_back(
      CutEvenly(bytes.Finish(), values.count, per_chunk, values.bits, &out.chunk_values));
  return out;
}

// Compresses the first buffer of every chunk, when the page is large enough and gains by
// it.
Status WrapGeneral(const EncodeOptions& options, MiniBlockValues* out) {
  MiniBlockValues::Stream& first = out->streams[0];
  int64_t total = 0;
  for (uint32_t size : first.sizes) total += size;
  if (total < kMinGeneralBytes) return Status::OK();
  GLAIVE_ASSIGN_OR_RETURN(
      auto compressor, Compressor::Make(options.compression, options.compression_level));
  OutBytes bytes(static_cast<size_t>(total));
  std::vector<uint32_t> sizes;
  const uint8_t* from = first.bytes->data();
  for (uint32_t size : first.sizes) {
    const size_t before = bytes.size();
    GLAIVE_RETURN_NOT_OK(compressor.Append({from, size}, &bytes));
    sizes.push_back(static_cast<uint32_t>(bytes.size() - before));
    from += size;
  }
  if (static_cast<int64_t>(bytes.size()) >= total) return Status::OK();
  first.bytes = bytes.Finish();
  first.sizes = std::move(sizes);
  pb::CompressiveEncoding inner;
  inner.Swap(&out->encoding);
  compressor.Describe(out->encoding.mutable_general()->mutable_compression());
  *out->encoding.mutable_general()->mutable_values() = std::move(inner);
  return Status::OK();
}

template <typename T>
MiniBlockValues ChooseFixed(const FixedValues& values, const EncodeOptions& options) {
  const auto buffer = values.Contiguous();
  const std::span<const T> in(reinterpret_cast<const T*>(buffer->data()),
                              static_cast<size_t>(values.count));
  const int64_t raw = values.num_bytes();
  const BitWidths measured = MeasureBlocks(in, raw);
  const int64_t packed = measured.bytes;
  if (!options.rle_threshold || *options.rle_threshold > 0) {
    constexpr int64_t kRunBytes = static_cast<int64_t>(sizeof(T)) + 1;
    const int64_t runs = CountRuns(in, std::min(raw, packed) / kRunBytes);
    // Longer runs are cut.
    const int64_t rle = (runs + values.count / int64_t{kMaxRun}) * kRunBytes;
    const bool few = !options.rle_threshold ||
                     static_cast<double>(runs) <
                         static_cast<double>(values.count) * *options.rle_threshold;
    if (few && rle < raw && rle <= packed) return EncodeRle(in);
  }
  if (packed < raw) return EncodeBitpacked(in, measured);
  FixedValues flat = values;
  flat.pieces = {buffer};
  return EncodeFlat(flat);
}

// Chunks of `Offset` offsets followed by the bytes they delimit.
template <typename Offset>
MiniBlockValues EncodeVariable(const VariableValues& values, int64_t target) {
  MiniBlockValues out;
  DescribeFlat(8 * static_cast<int64_t>(sizeof(Offset)),
               out.encoding.mutable_variable()->mutable_offsets());
  const int64_t* offsets = values.offsets.data();
  const auto chunk_bytes = [&](int64_t at, int64_t n) {
    return (n + 1) * static_cast<int64_t>(sizeof(Offset)) + offsets[at + n] - offsets[at];
  };
  OutBytes bytes(static_cast<size_t>(values.num_bytes() + values.num_bytes() / 8 +
                                     values.count * static_cast<int64_t>(sizeof(Offset)) +
                                     64));
  MiniBlockValues::Stream stream;
  for (int64_t at = 0; at < values.count;) {
    const int64_t rest = values.count - at;
    int64_t n = rest;
    if (rest > 2 && (rest > kMaxChunkValues || chunk_bytes(at, rest) > target)) {
      n = 2;
      while (2 * n <= std::min(rest, kMaxChunkValues) && chunk_bytes(at, 2 * n) <= target)
        n *= 2;
    }
    const size_t before = bytes.size();
    const int64_t first = offsets[at];
    const int64_t header = (n + 1) * static_cast<int64_t>(sizeof(Offset));
    uint8_t* to = bytes.Extend(static_cast<size_t>(header));
    for (int64_t i = 0; i <= n; ++i) {
      const Offset offset = static_cast<Offset>(offsets[at + i] - first + header);
      std::memcpy(to + static_cast<size_t>(i) * sizeof(Offset), &offset, sizeof(Offset));
    }
    bytes.Append(values.bytes + first, static_cast<size_t>(offsets[at + n] - first));
    const size_t rest_bytes = (bytes.size() - before) % sizeof(Offset);
    if (rest_bytes != 0) {
      std::memset(bytes.Extend(sizeof(Offset) - rest_bytes), 0x48,
                  sizeof(Offset) - rest_bytes);
    }
    stream.sizes.push_back(static_cast<uint32_t>(bytes.size() - before));
    out.chunk_values.push_back(static_cast<uint32_t>(n));
    at += n;
  }
  stream.bytes = bytes.Finish();
  out.streams.push_back(std::move(stream));
  return out;
}

}  // namespace

int64_t FlatChunkValues(int64_t bits) {
  int64_t n = bits % 8 == 0 ? 2 : 8;
  int64_t size = bits % 8 == 0 ? 2 * bits / 8 : bits;
  while (2 * size < kChunkBytes && 2 * n <= kMaxChunkValues) {
    n *= 2;
    size *= 2;
  }
  return n;
}

bool WantsFsst(const VariableValues& values, const EncodeOptions& options) {
  constexpr int64_t kMinBytes = 32 * 1024;
  constexpr int64_t kMinMaxLength = 5;
  if (options.compression == Scheme::kFsst) return values.num_bytes() > 0;
  return options.compression == Scheme::kDefault && !values.binary &&
         values.num_bytes() >= kMinBytes && values.max_length() >= kMinMaxLength;
}

Result<MiniBlockValues> EncodeMiniBlock(const FixedValues& values,
                                        const EncodeOptions& options) {
  MiniBlockValues out;
  const bool splittable = values.bits == 32 || values.bits == 64;
  bool split = false;
  if (splittable && (options.general() || options.compression == Scheme::kFsst) &&
      options.bss != BssMode::kOff) {
    split = options.bss == BssMode::kOn ||
            SplitEntropy(values.Contiguous()->data(), values.count, values.byte_width()) <
                kMaxSplitEntropy;
  }
  if (options.compression == Scheme::kNone) {
    out = EncodeFlat(values);
  } else if (split) {
    out = EncodeByteStreamSplit(values);
  } else {
    switch (values.bits) {
      case 8:
        out = ChooseFixed<uint8_t>(values, options);
        break;
      case 16:
        out = ChooseFixed<uint16_t>(values, options);
        break;
      case 32:
        out = ChooseFixed<uint32_t>(values, options);
        break;
      case 64:
        out = ChooseFixed<uint64_t>(values, options);
        break;
      default:
        out = EncodeFlat(values);
    }
  }
  if (options.general()) GLAIVE_RETURN_NOT_OK(WrapGeneral(options, &out));
  return out;
}

Result<MiniBlockValues> EncodeMiniBlock(const VariableValues& values,
                                        const EncodeOptions& options) {
  MiniBlockValues out;
  const auto encode = [&](const VariableValues& v) {
    return v.large ? EncodeVariable<uint64_t>(v, options.minichunk_bytes)
                   : EncodeVariable<uint32_t>(v, options.minichunk_bytes);
  };
  if (WantsFsst(values, options)) {
    GLAIVE_ASSIGN_OR_RETURN(FsstValues packed, FsstEncode(values));
    out = encode(packed.values);
    pb::CompressiveEncoding inner;
    inner.Swap(&out.encoding);
    out.encoding.mutable_fsst()->set_symbol_table(std::move(packed.symbol_table));
    *out.encoding.mutable_fsst()->mutable_values() = std::move(inner);
    return out;
  }
  out = encode(values);
  if (options.general()) GLAIVE_RETURN_NOT_OK(WrapGeneral(options, &out));
  return out;
}

Result<MiniBlockValues> EncodeMiniBlock(const FixedListValues& values,
                                        const EncodeOptions&) {
  MiniBlockValues out;
  pb::CompressiveEncoding* at = &out.encoding;
  const int64_t row_items = values.items_per_row();
  for (size_t layer = 0; layer < values.dimensions.size(); ++layer) {
    auto* list = at->mutable_fixed_size_list();
    list->set_items_per_value(static_cast<uint64_t>(values.dimensions[layer]));
    list->set_has_validity(values.validity[layer] != nullptr);
    at = list->mutable_values();
  }
  DescribeFlat(values.items.bits, at);
  const int64_t row_bits = row_items * values.items.bits;
  int64_t per_chunk = FlatChunkValues(row_bits);
  // Bits of the items begin at a byte in every chunk.
  while (per_chunk * row_bits % 8 != 0) per_chunk *= 2;
  int64_t cumulative = 1;
  for (size_t layer = 0; layer < values.dimensions.size(); ++layer) {
    cumulative *= values.dimensions[layer];
    if (values.validity[layer] == nullptr) continue;
    MiniBlockValues::Stream stream;
    OutBytes bytes;
    for (int64_t row = 0; row < values.count; row += per_chunk) {
      const int64_t bits = std::min(per_chunk, values.count - row) * cumulative;
      const size_t size = static_cast<size_t>((bits + 7) / 8);
      uint8_t* to = bytes.Extend(size);
      std::memset(to, 0, size);
      arrow::internal::CopyBitmap(values.validity[layer]->data(), row * cumulative, bits,
                                  to, 0);
      stream.sizes.push_back(static_cast<uint32_t>(size));
    }
    stream.bytes = bytes.Finish();
    out.streams.push_back(std::move(stream));
  }
  out.streams.push_back(CutEvenly(values.items.Contiguous(), values.count, per_chunk,
                                  row_bits, &out.chunk_values));
  return out;
}

Result<MiniBlockValues> EncodeMiniBlockPacked(const FixedValues& rows,
                                              const std::vector<int64_t>& member_bits,
                                              const EncodeOptions& options) {
  MiniBlockValues out = EncodeFlat(rows);
  pb::CompressiveEncoding inner;
  inner.Swap(&out.encoding);
  auto* packed = out.encoding.mutable_packed_struct();
  for (int64_t bits : member_bits)
    packed->add_bits_per_value(static_cast<uint64_t>(bits));
  *packed->mutable_values() = std::move(inner);
  if (options.general()) GLAIVE_RETURN_NOT_OK(WrapGeneral(options, &out));
  return out;
}

}  // namespace glaive::encoding
