#include "table/deletion_vector.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <optional>

#include <arrow/array.h>
#include <arrow/buffer.h>
#include <arrow/io/memory.h>
#include <arrow/ipc/api.h>
#include <arrow/memory_pool.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>
#include <arrow/util/compression.h>
#include <roaring/roaring.h>

namespace glaive::table {
namespace {

constexpr char kColumn[] = "row_id";
constexpr int kLoadChunk = 256;

struct FreeBitmap {
  void operator()(roaring_bitmap_t* bitmap) const { roaring_bitmap_free(bitmap); }
};
using Bitmap = std::unique_ptr<roaring_bitmap_t, FreeBitmap>;

Status Broken(const char* why) {
  return Corruption("a deletion bitmap is broken: ", why);
}

Status OutOfRange(uint64_t offset, int64_t rows) {
  return Corruption("a deletion file names row ", offset, " of a fragment of ", rows,
                    " rows");
}

// The portable serialization of 32-bit Roaring bitmaps, checked in full: the library
// trusts its input.
class PortableReader {
 public:
  PortableReader(std::span<const uint8_t> bytes, int64_t rows)
      : bytes_(bytes), rows_(rows) {}

  Result<Bitmap> Read() {
    constexpr uint32_t kCookieNoRuns = 12346;
    constexpr uint32_t kCookieRuns = 12347;
    constexpr uint32_t kNoOffsetThreshold = 4;
    GLAIVE_ASSIGN_OR_RETURN(const uint32_t cookie, Load<uint32_t>());
    uint32_t containers = 0;
    std::span<const uint8_t> run_flags;
    if (cookie == kCookieNoRuns) {
      GLAIVE_ASSIGN_OR_RETURN(containers, Load<uint32_t>());
    } else if ((cookie & 0xffff) == kCookieRuns) {
      containers = (cookie >> 16) + 1;
      GLAIVE_ASSIGN_OR_RETURN(run_flags, Slice((containers + 7) / 8));
    } else {
      return Broken("unknown cookie");
    }
    if (containers > 65536) return Broken("too many containers");
    GLAIVE_ASSIGN_OR_RETURN(std::span<const uint8_t> keys, Slice(containers * 4));
    if (run_flags.empty() || containers >= kNoOffsetThreshold) {
      GLAIVE_RETURN_NOT_OK(
          Slice(containers * 4).status());  // offsets: implied by the order
    }
    Bitmap bitmap(roaring_bitmap_create());
    int64_t previous_key = -1;
    for (uint32_t i = 0; i < containers; ++i) {
      uint16_t key, cardinality_minus_one;
      std::memcpy(&key, keys.data() + i * 4, 2);
      std::memcpy(&cardinality_minus_one, keys.data() + i * 4 + 2, 2);
      if (key <= previous_key) return Broken("container keys");
      previous_key = key;
      const uint32_t cardinality = uint32_t{cardinality_minus_one} + 1;
      const bool is_run = !run_flags.empty() && ((run_flags[i / 8] >> (i % 8)) & 1);
      const uint32_t high = uint32_t{key} << 16;
      if (is_run) {
        GLAIVE_RETURN_NOT_OK(ReadRuns(high, cardinality, bitmap.get()));
      } else if (cardinality <= 4096) {
        GLAIVE_RETURN_NOT_OK(ReadArray(high, cardinality, bitmap.get()));
      } else {
        GLAIVE_RETURN_NOT_OK(ReadBits(high, cardinality, bitmap.get()));
      }
    }
    if (position_ != bytes_.size()) return Broken("bytes after the end");
    return bitmap;
  }

 private:
  Result<std::span<const uint8_t>> Slice(size_t length) {
    if (length > bytes_.size() - position_) return Broken("truncated");
    auto slice = bytes_.subspan(position_, length);
    position_ += length;
    return slice;
  }
  template <typename T>
  Result<T> Load() {
    GLAIVE_ASSIGN_OR_RETURN(auto slice, Slice(sizeof(T)));
    T value;
    std::memcpy(&value, slice.data(), sizeof(T));
    return value;
  }
  Status Check(uint32_t offset) const {
    return offset < rows_ ? Status::OK() : OutOfRange(offset, rows_);
  }

  Status ReadArray(uint32_t high, uint32_t cardinality, roaring_bitmap_t* bitmap) {
    GLAIVE_ASSIGN_OR_RETURN(auto slice, Slice(size_t{cardinality} * 2));
    values_.resize(cardinality);
    for (uint32_t i = 0; i < cardinality; ++i) {
      uint16_t low;
      std::memcpy(&low, slice.data() + size_t{i} * 2, 2);
      values_[i] = high | low;
      if (i > 0 && values_[i] <= values_[i - 1]) return Broken("array container");
    }
    GLAIVE_RETURN_NOT_OK(Check(values_.back()));
    roaring_bitmap_add_many(bitmap, values_.size(), values_.data());
    return Status::OK();
  }

  Status ReadBits(uint32_t high, uint32_t cardinality, roaring_bitmap_t* bitmap) {
    GLAIVE_ASSIGN_OR_RETURN(auto slice, Slice(8192));
    values_.clear();
    for (uint32_t word = 0; word < 1024; ++word) {
      uint64_t bits;
      std::memcpy(&bits, slice.data() + size_t{word} * 8, 8);
      for (; bits != 0; bits &= bits - 1) {
        values_.push_back(high |
                          (word * 64 + static_cast<uint32_t>(std::countr_zero(bits))));
      }
    }
    if (values_.size() != cardinality) return Broken("bitset container");
    GLAIVE_RETURN_NOT_OK(Check(values_.back()));
    roaring_bitmap_add_many(bitmap, values_.size(), values_.data());
    return Status::OK();
  }

  Status ReadRuns(uint32_t high, uint32_t cardinality, roaring_bitmap_t* bitmap) {
    GLAIVE_ASSIGN_OR_RETURN(const uint16_t runs, Load<uint16_t>());
    GLAIVE_ASSIGN_OR_RETURN(auto slice, Slice(size_t{runs} * 4));
    int64_t end = -1;
    uint32_t total = 0;
    for (uint32_t i = 0; i < runs; ++i) {
      uint16_t start, length;
      std::memcpy(&start, slice.data() + size_t{i} * 4, 2);
      std::memcpy(&length, slice.data() + size_t{i} * 4 + 2, 2);
      if (int64_t{start} <= end || uint32_t{start} + length > 65535) {
        return Broken("run container");
      }
      end = int64_t{start} + length;
      total += uint32_t{length} + 1;
      GLAIVE_RETURN_NOT_OK(Check(high | static_cast<uint32_t>(end)));
      const uint64_t first = uint64_t{high} | start;
      roaring_bitmap_add_range(bitmap, first, first + length + 1);
    }
    return total == cardinality ? Status::OK() : Broken("run container");
  }

  std::span<const uint8_t> bytes_;
  const int64_t rows_;
  size_t position_ = 0;
  std::vector<uint32_t> values_;
};

}  // namespace

struct DeletionVector::Impl {
  Bitmap bitmap;
  int64_t size = 0;
};

DeletionVector::DeletionVector() : impl_(std::make_unique<Impl>()) {}
DeletionVector::~DeletionVector() = default;

std::shared_ptr<const DeletionVector> DeletionVector::FromOffsets(
    std::span<const uint32_t> offsets) {
  std::shared_ptr<DeletionVector> vector(new DeletionVector());
  vector->impl_->bitmap.reset(roaring_bitmap_of_ptr(offsets.size(), offsets.data()));
  vector->impl_->size =
      static_cast<int64_t>(roaring_bitmap_get_cardinality(vector->impl_->bitmap.get()));
  return vector;
}

Result<std::shared_ptr<const DeletionVector>> DeletionVector::ParseArrow(
    std::span<const uint8_t> bytes, int64_t physical_rows) {
  const auto broken = [](const Status& status) {
    return Corruption("a deletion file does not decode: ", status.message());
  };
  // What the file claims to hold decompressed must not exceed what the fragment can need.
  // The proxy counts this call alone: the default pool counts the whole process.
  arrow::ProxyMemoryPool own(arrow::default_memory_pool());
  arrow::CappedMemoryPool pool(&own, physical_rows * 8 + (int64_t{16} << 20));
  auto options = arrow::ipc::IpcReadOptions::Defaults();
  options.memory_pool = &pool;
  options.use_threads = false;
  // The bytes come from anywhere, and so do the buffers in them.
  options.ensure_alignment = arrow::ipc::Alignment::kDataTypeSpecificAlignment;
  auto buffer =
      std::make_shared<arrow::Buffer>(bytes.data(), static_cast<int64_t>(bytes.size()));
  auto source = std::make_shared<arrow::io::BufferReader>(buffer);
  auto reader = arrow::ipc::RecordBatchFileReader::Open(source, options);
  if (!reader.ok()) return broken(reader.status());
  const auto& schema = *(*reader)->schema();
  if (schema.num_fields() != 1 || schema.field(0)->type()->id() != arrow::Type::UINT32) {
    return Corruption("a deletion file must hold one column of uint32, not: ",
                      schema.ToString());
  }
  if ((*reader)->num_record_batches() != 1) {
    return Corruption("a deletion file must hold one batch, not ",
                      (*reader)->num_record_batches());
  }
  auto batch = (*reader)->ReadRecordBatch(0);
  if (!batch.ok()) return broken(batch.status());
  if (Status valid = (*batch)->ValidateFull(); !valid.ok()) return broken(valid);
  const auto& values = static_cast<const arrow::UInt32Array&>(*(*batch)->column(0));
  if (values.null_count() != 0) return Corruption("a deletion file holds nulls");
  std::span<const uint32_t> offsets(values.raw_values(),
                                    static_cast<size_t>(values.length()));
  for (uint32_t offset : offsets) {
    if (offset >= physical_rows) return OutOfRange(offset, physical_rows);
  }
  return FromOffsets(offsets);
}

Result<std::shared_ptr<const DeletionVector>> DeletionVector::ParseBitmap(
    std::span<const uint8_t> bytes, int64_t physical_rows) {
  std::shared_ptr<DeletionVector> vector(new DeletionVector());
  GLAIVE_ASSIGN_OR_RETURN(vector->impl_->bitmap,
                          PortableReader(bytes, physical_rows).Read());
  vector->impl_->size =
      static_cast<int64_t>(roaring_bitmap_get_cardinality(vector->impl_->bitmap.get()));
  return vector;
}

Result<std::vector<uint8_t>> DeletionVector::ToArrow() const {
  std::vector<uint32_t> offsets = ToOffsets();
  auto values = std::make_shared<arrow::UInt32Array>(static_cast<int64_t>(offsets.size()),
                                                     arrow::Buffer::Wrap(offsets));
  auto schema =
      arrow::schema({arrow::field(kColumn, arrow::uint32(), /*nullable=*/false)});
  auto batch = arrow::RecordBatch::Make(schema, values->length(), {values});
  auto options = arrow::ipc::IpcWriteOptions::Defaults();
  options.use_threads = false;
  GLAIVE_ASSIGN_OR_RETURN(options.codec,
                          arrow::util::Codec::Create(arrow::Compression::ZSTD));
  GLAIVE_ASSIGN_OR_RETURN(auto sink, arrow::io::BufferOutputStream::Create(1024));
  GLAIVE_ASSIGN_OR_RETURN(auto writer, arrow::ipc::MakeFileWriter(sink, schema, options));
  GLAIVE_RETURN_NOT_OK(writer->WriteRecordBatch(*batch));
  GLAIVE_RETURN_NOT_OK(writer->Close());
  GLAIVE_ASSIGN_OR_RETURN(auto buffer, sink->Finish());
  return std::vector<uint8_t>(buffer->data(), buffer->data() + buffer->size());
}

std::vector<uint8_t> DeletionVector::ToBitmap() const {
  Bitmap plain(roaring_bitmap_copy(impl_->bitmap.get()));
  roaring_bitmap_remove_run_compression(plain.get());
  std::vector<uint8_t> bytes(roaring_bitmap_portable_size_in_bytes(plain.get()));
  roaring_bitmap_portable_serialize(plain.get(), reinterpret_cast<char*>(bytes.data()));
  return bytes;
}

int64_t DeletionVector::size() const { return impl_->size; }

bool DeletionVector::Contains(uint32_t offset) const {
  return roaring_bitmap_contains(impl_->bitmap.get(), offset);
}

bool DeletionVector::Intersects(std::span<const uint32_t> offsets) const {
  return std::any_of(offsets.begin(), offsets.end(),
                     [this](uint32_t offset) { return Contains(offset); });
}

std::shared_ptr<const DeletionVector> DeletionVector::Without(
    std::span<const uint32_t> offsets) const {
  std::shared_ptr<DeletionVector> vector(new DeletionVector());
  vector->impl_->bitmap.reset(roaring_bitmap_copy(impl_->bitmap.get()));
  for (uint32_t offset : offsets) {
    roaring_bitmap_remove(vector->impl_->bitmap.get(), offset);
  }
  vector->impl_->size =
      static_cast<int64_t>(roaring_bitmap_get_cardinality(vector->impl_->bitmap.get()));
  return vector;
}

std::shared_ptr<const DeletionVector> DeletionVector::Union(
    std::span<const uint32_t> offsets) const {
  std::shared_ptr<DeletionVector> vector(new DeletionVector());
  vector->impl_->bitmap.reset(roaring_bitmap_copy(impl_->bitmap.get()));
  roaring_bitmap_add_many(vector->impl_->bitmap.get(), offsets.size(), offsets.data());
  vector->impl_->size =
      static_cast<int64_t>(roaring_bitmap_get_cardinality(vector->impl_->bitmap.get()));
  return vector;
}

int64_t DeletionVector::CountInRange(int64_t start, int64_t end) const {
  start = std::max<int64_t>(start, 0);
  if (end <= start) return 0;
  // rank(x) counts values <= x.
  constexpr int64_t kMax = std::numeric_limits<uint32_t>::max();
  auto below = [this](int64_t bound) -> int64_t {
    if (bound <= 0) return 0;
    if (bound > kMax) return impl_->size;
    return static_cast<int64_t>(
        roaring_bitmap_rank(impl_->bitmap.get(), static_cast<uint32_t>(bound - 1)));
  };
  return below(end) - below(start);
}

void DeletionVector::MaskRange(int64_t start, int64_t count, uint8_t* keep) const {
  if (count <= 0 || start > std::numeric_limits<uint32_t>::max()) return;
  roaring_uint32_iterator_t it;
  roaring_init_iterator(impl_->bitmap.get(), &it);
  if (!roaring_move_uint32_iterator_equalorlarger(&it, static_cast<uint32_t>(start)))
    return;
  uint32_t chunk[kLoadChunk];
  while (true) {
    const uint32_t n = roaring_read_uint32_iterator(&it, chunk, kLoadChunk);
    for (uint32_t i = 0; i < n; ++i) {
      const int64_t k = int64_t{chunk[i]} - start;
      if (k >= count) return;
      keep[k >> 3] = static_cast<uint8_t>(keep[k >> 3] & ~(1u << (k & 7)));
    }
    if (n < kLoadChunk) return;
  }
}

int64_t DeletionVector::SelectLive(int64_t n, int64_t physical_rows) const {
  // The smallest offset with n + 1 live rows up to and including it.
  int64_t low = n, high = std::min(physical_rows, n + impl_->size);
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (middle + 1 - CountInRange(0, middle + 1) > n) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return std::min(low, physical_rows);
}

std::shared_ptr<const DeletionVector> DeletionVector::UnionOf(
    std::span<const std::shared_ptr<const DeletionVector>> parts) {
  std::vector<const roaring_bitmap_t*> bitmaps;
  std::shared_ptr<const DeletionVector> last;
  for (const auto& part : parts) {
    if (part == nullptr || part->size() == 0) continue;
    bitmaps.push_back(part->impl_->bitmap.get());
    last = part;
  }
  if (bitmaps.size() <= 1) return last;
  std::shared_ptr<DeletionVector> vector(new DeletionVector());
  vector->impl_->bitmap.reset(roaring_bitmap_or_many(bitmaps.size(), bitmaps.data()));
  vector->impl_->size =
      static_cast<int64_t>(roaring_bitmap_get_cardinality(vector->impl_->bitmap.get()));
  return vector;
}

int64_t DeletionVector::size_bytes() const {
  return static_cast<int64_t>(
             roaring_bitmap_portable_size_in_bytes(impl_->bitmap.get())) +
         64;
}

std::vector<uint32_t> DeletionVector::ToOffsets() const {
  std::vector<uint32_t> offsets(static_cast<size_t>(impl_->size));
  roaring_bitmap_to_uint32_array(impl_->bitmap.get(), offsets.data());
  return offsets;
}

}  // namespace glaive::table
