#include "memwal/file_keys.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include <arrow/array.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>

#include "runtime/memory_reservation.h"
#include "table/names.h"

namespace glaive::memwal {
namespace {

constexpr int64_t kChunkRows = int64_t{1} << 16;
// Rows of one part: their slots stay in the second-level cache while they are filled.
constexpr int64_t kPartRows = 16384;
constexpr uint64_t kSignBit = uint64_t{1} << 63;

bool IsInteger(const arrow::DataType& type) { return arrow::is_integer(type.id()); }

template <typename ArrayType>
void CopyWords(const arrow::Array& array, uint64_t* out) {
  const auto* values = static_cast<const ArrayType&>(array).raw_values();
  using T = typename ArrayType::value_type;
  for (int64_t i = 0; i < array.length(); ++i) {
    if constexpr (std::is_signed_v<T>) {
      out[i] = static_cast<uint64_t>(int64_t{values[i]}) ^ kSignBit;
    } else {
      out[i] = values[i];
    }
  }
}

Status CopyWords(const arrow::Array& array, uint64_t* out) {
  switch (array.type_id()) {
    case arrow::Type::INT8:
      CopyWords<arrow::Int8Array>(array, out);
      return Status::OK();
    case arrow::Type::INT16:
      CopyWords<arrow::Int16Array>(array, out);
      return Status::OK();
    case arrow::Type::INT32:
      CopyWords<arrow::Int32Array>(array, out);
      return Status::OK();
    case arrow::Type::INT64:
      CopyWords<arrow::Int64Array>(array, out);
      return Status::OK();
    case arrow::Type::UINT8:
      CopyWords<arrow::UInt8Array>(array, out);
      return Status::OK();
    case arrow::Type::UINT16:
      CopyWords<arrow::UInt16Array>(array, out);
      return Status::OK();
    case arrow::Type::UINT32:
      CopyWords<arrow::UInt32Array>(array, out);
      return Status::OK();
    case arrow::Type::UINT64:
      CopyWords<arrow::UInt64Array>(array, out);
      return Status::OK();
    default:
      return InternalError("keys of type ", array.type()->ToString());
  }
}

int64_t NumChunks(int64_t rows) { return (rows + kChunkRows - 1) / kChunkRows; }

// Calls `body(chunk, begin, count)` for pieces of `rows` rows, on all threads.
template <typename Body>
Status ForChunks(Runtime& runtime, int64_t rows, const Body& body) {
  return runtime.ParallelFor(NumChunks(rows), [&](int64_t chunk) -> Status {
    const int64_t begin = chunk * kChunkRows;
    return body(static_cast<size_t>(chunk), begin, std::min(kChunkRows, rows - begin));
  });
}

}  // namespace

int64_t FileKeys::EstimateBytes(const file::Schema& key_columns, int64_t rows) {
  const auto& fields = key_columns.fields();
  if (fields.size() == 1 && IsInteger(*fields[0].type)) return rows * 18;
  int64_t key = 0;
  constexpr int64_t kTextBytes = 24;
  for (const auto& field : fields) {
    key += arrow::is_primitive(field.type->id()) ? 9 : kTextBytes;
  }
  return rows * (22 + key);
}

bool FileKeys::Prepare(std::string_view key, uint64_t* word) const {
  if (rows_ == 0) return false;
  if (!integers_) {
    *word = HashKey(key);
    return true;
  }
  if (key.size() != 9 || key[0] != 1) return false;
  std::memcpy(word, key.data() + 1, 8);
  *word = __builtin_bswap64(*word);
  return *word >= min_ && *word <= max_;
}

uint64_t FileKeys::HashOf(uint64_t word) const {
  if (!integers_) return word;
  const auto wide = static_cast<unsigned __int128>(word ^ seed_) * 0x9E3779B97F4A7C15U;
  uint64_t mixed = static_cast<uint64_t>(wide) ^ static_cast<uint64_t>(wide >> 64);
  const auto again = static_cast<unsigned __int128>(mixed) * (seed_ | 1);
  return static_cast<uint64_t>(again) ^ static_cast<uint64_t>(again >> 64);
}

Status FileKeys::ReadIntegers(Runtime& runtime, const table::FragmentReader& fragment,
                              const table::FragmentProjection& projection,
                              uint64_t* words, std::vector<uint8_t>* nulls) {
  struct Range {
    uint64_t min = UINT64_MAX, max = 0;
    bool dense = true, nulls = false;
  };
  std::vector<Range> ranges(static_cast<size_t>(NumChunks(rows_)));
  std::vector<std::shared_ptr<arrow::Array>> arrays(ranges.size());
  GLAIVE_RETURN_NOT_OK(ForChunks(
      runtime, rows_, [&](size_t chunk, int64_t begin, int64_t count) -> Status {
        GLAIVE_ASSIGN_OR_RETURN(auto batch, fragment.ReadRange(projection, begin, count));
        const auto& array = batch->column(0);
        uint64_t* out = words + begin;
        GLAIVE_RETURN_NOT_OK(CopyWords(*array, out));
        Range& range = ranges[chunk];
        range.nulls = array->null_count() > 0;
        if (range.nulls) arrays[chunk] = array;
        for (int64_t i = 0; i < count; ++i) {
          if (range.nulls && array->IsNull(i)) continue;
          range.min = std::min(range.min, out[i]);
          range.max = std::max(range.max, out[i]);
          range.dense &= out[i] == out[0] + static_cast<uint64_t>(i);
        }
        return Status::OK();
      }));
  min_ = UINT64_MAX;
  max_ = 0;
  dense_ = true;
  for (size_t c = 0; c < ranges.size(); ++c) {
    min_ = std::min(min_, ranges[c].min);
    max_ = std::max(max_, ranges[c].max);
    const uint64_t expected = words[0] + static_cast<uint64_t>(c) * kChunkRows;
    dense_ &= ranges[c].dense && !ranges[c].nulls &&
              words[c * static_cast<size_t>(kChunkRows)] == expected;
    if (!ranges[c].nulls) continue;
    nulls->resize(static_cast<size_t>(rows_));
    for (int64_t i = 0; i < arrays[c]->length(); ++i) {
      (*nulls)[c * static_cast<size_t>(kChunkRows) + static_cast<size_t>(i)] =
          arrays[c]->IsNull(i) ? 1 : 0;
    }
  }
  // A sequence that passes the largest number is none.
  dense_ &= max_ - min_ == static_cast<uint64_t>(rows_ - 1) && words[0] == min_;
  return Status::OK();
}

Status FileKeys::ReadEncoded(Runtime& runtime, const table::FragmentReader& fragment,
                             const table::FragmentProjection& projection,
                             uint64_t* words) {
  chunks_.resize(static_cast<size_t>(NumChunks(rows_)));
  return ForChunks(
      runtime, rows_, [&](size_t chunk, int64_t begin, int64_t count) -> Status {
        GLAIVE_ASSIGN_OR_RETURN(auto batch, fragment.ReadRange(projection, begin, count));
        GLAIVE_ASSIGN_OR_RETURN(chunks_[chunk], EncodeKeys(batch->columns()));
        for (int64_t i = 0; i < count; ++i) {
          words[begin + i] = HashKey(chunks_[chunk][i]);
        }
        return Status::OK();
      });
}

Status FileKeys::Fill(Runtime& runtime, const uint64_t* words,
                      const std::vector<uint8_t>& nulls) {
  parts_.resize(static_cast<size_t>(rows_ / kPartRows + 1));
  const size_t num_parts = parts_.size();
  const auto skip = [&](int64_t row) {
    return !nulls.empty() && nulls[static_cast<size_t>(row)] != 0;
  };
  const auto part_of = [&](int64_t row) { return PartOf(HashOf(words[row])); };
  // Counts by chunk and part, which then become places.
  std::vector<uint32_t> places(static_cast<size_t>(NumChunks(rows_)) * num_parts);
  GLAIVE_RETURN_NOT_OK(ForChunks(
      runtime, rows_, [&](size_t chunk, int64_t begin, int64_t count) -> Status {
        uint32_t* counts = places.data() + chunk * num_parts;
        for (int64_t row = begin; row < begin + count; ++row) {
          if (!skip(row)) ++counts[part_of(row)];
        }
        return Status::OK();
      }));
  std::vector<uint32_t> part_begin(num_parts + 1);
  uint32_t place = 0;
  uint64_t slot = 0;
  for (size_t p = 0; p < num_parts; ++p) {
    part_begin[p] = place;
    for (size_t c = p; c < places.size(); c += num_parts) {
      const uint32_t count = places[c];
      places[c] = place;
      place += count;
    }
    const uint64_t rows = place - part_begin[p];
    parts_[p].begin = slot;
    parts_[p].num_slots = static_cast<uint32_t>(rows == 0 ? 0 : rows + rows / 2 + 1);
    slot += parts_[p].num_slots;
  }
  part_begin[num_parts] = place;
  std::vector<uint32_t> rows_by_part(place);
  GLAIVE_RETURN_NOT_OK(ForChunks(
      runtime, rows_, [&](size_t chunk, int64_t begin, int64_t count) -> Status {
        uint32_t* next = places.data() + chunk * num_parts;
        for (int64_t row = begin; row < begin + count; ++row) {
          if (!skip(row)) rows_by_part[next[part_of(row)]++] = static_cast<uint32_t>(row);
        }
        return Status::OK();
      }));
  num_slots_ = slot;
  slots_ = std::make_unique_for_overwrite<Slot[]>(slot);
  return runtime.ParallelFor(static_cast<int64_t>(num_parts), [&](int64_t p) -> Status {
    const Part& part = parts_[static_cast<size_t>(p)];
    Slot* slots = slots_.get() + part.begin;
    for (uint32_t i = 0; i < part.num_slots; ++i) slots[i].row = kEmpty;
    for (uint32_t i = part_begin[static_cast<size_t>(p)];
         i < part_begin[static_cast<size_t>(p) + 1]; ++i) {
      const uint32_t row = rows_by_part[i];
      const uint64_t word = words[row];
      uint32_t at = FirstSlot(HashOf(word), part);
      while (slots[at].row != kEmpty) at = at + 1 == part.num_slots ? 0 : at + 1;
      slots[at] = {static_cast<uint32_t>(word), static_cast<uint32_t>(word >> 32), row};
    }
    return Status::OK();
  });
}

Result<std::shared_ptr<const FileKeys>> FileKeys::Build(
    Runtime& runtime, const table::FragmentReader& fragment,
    const file::Schema& key_columns) {
  std::shared_ptr<FileKeys> keys(new FileKeys());
  keys->rows_ = fragment.physical_rows();
  keys->seed_ = table::RandomU64();
  const auto& fields = key_columns.fields();
  keys->integers_ = fields.size() == 1 && IsInteger(*fields[0].type);
  if (keys->rows_ == 0) return keys;
  constexpr int64_t kWorkBytes = 12;  // per row, while building
  GLAIVE_ASSIGN_OR_RETURN(
      const auto memory,
      MemoryReservation::Make(
          runtime.memory(),
          EstimateBytes(key_columns, keys->rows_) + kWorkBytes * keys->rows_,
          "an index of keys", "fragment " + std::to_string(fragment.id())));
  GLAIVE_ASSIGN_OR_RETURN(const auto projection, fragment.Bind(key_columns));
  const auto words =
      std::make_unique_for_overwrite<uint64_t[]>(static_cast<size_t>(keys->rows_));
  std::vector<uint8_t> nulls;
  if (keys->integers_) {
    GLAIVE_RETURN_NOT_OK(
        keys->ReadIntegers(runtime, fragment, projection, words.get(), &nulls));
    if (keys->dense_) return keys;
  } else {
    GLAIVE_RETURN_NOT_OK(keys->ReadEncoded(runtime, fragment, projection, words.get()));
  }
  GLAIVE_RETURN_NOT_OK(keys->Fill(runtime, words.get(), nulls));
  return keys;
}

int64_t FileKeys::size_bytes() const {
  auto bytes = static_cast<int64_t>(sizeof(FileKeys) + parts_.size() * sizeof(Part) +
                                    num_slots_ * sizeof(Slot));
  for (const EncodedKeys& chunk : chunks_) {
    bytes += static_cast<int64_t>(chunk.bytes.capacity() + chunk.ends.capacity() * 4);
  }
  return bytes;
}

}  // namespace glaive::memwal
