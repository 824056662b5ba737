#include "file/chunk_table.h"

#include <algorithm>
#include <span>

namespace glaive::file {

using encoding::Bytes;
using encoding::LoadUnaligned;
using encoding::ValueRange;

Result<ChunkTable> ChunkTable::Make(Bytes words, bool wide, int64_t data_bytes,
                                    int64_t num_items) {
  const size_t word_bytes = wide ? 4 : 2;
  if (words.size() % word_bytes != 0) {
    return Corruption("chunk table of ", words.size(), " bytes");
  }
  const size_t chunks = words.size() / word_bytes;
  ChunkTable out;
  out.byte_start_.resize(chunks + 1);
  out.value_start_.resize(chunks + 1);
  int64_t bytes = 0;
  int64_t values = 0;
  for (size_t c = 0; c < chunks; ++c) {
    const uint8_t* at = words.data() + c * word_bytes;
    uint32_t word = wide ? LoadUnaligned<uint32_t>(at) : LoadUnaligned<uint16_t>(at);
    const int64_t size = (int64_t{word >> 4} + 1) * 8;
    const int log_values = static_cast<int>(word & 15);
    out.byte_start_[c] = bytes;
    out.value_start_[c] = values;
    bytes += size;
    if (c + 1 < chunks) {
      if (log_values == 0)
        return Corruption("chunk ", c, " of ", chunks, " holds one value");
      values += int64_t{1} << log_values;
      if (values >= num_items) {
        return Corruption("chunk ", c, " of ", chunks, " passes the page's ", num_items,
                          " values");
      }
    } else {
      if (log_values != 0 && num_items - values != int64_t{1} << log_values) {
        return Corruption("the last chunk is marked as ", int64_t{1} << log_values,
                          " values, the page leaves it ", num_items - values);
      }
      values = num_items;
    }
  }
  if (bytes != data_bytes) {
    return Corruption("chunks take ", bytes, " bytes, the page has ", data_bytes);
  }
  if (chunks == 0 && num_items != 0) {
    return Corruption("a page of ", num_items, " values without chunks");
  }
  out.byte_start_[chunks] = bytes;
  out.value_start_[chunks] = values;
  return out;
}

Status ChunkTable::AddRepetitionIndex(Bytes index, int64_t num_rows) {
  const auto chunks = static_cast<size_t>(num_chunks());
  if (index.size() != chunks * 16) {
    return Corruption("repetition index of ", index.size(), " bytes for ", chunks,
                      " chunks");
  }
  row_start_.resize(chunks + 1);
  trailer_.resize(chunks);
  int64_t rows = 0;
  bool preamble = false;
  for (size_t c = 0; c < chunks; ++c) {
    auto finished = LoadUnaligned<uint64_t>(index.data() + 16 * c);
    const bool trailer = LoadUnaligned<uint64_t>(index.data() + 16 * c + 8) > 0;
    if (finished > static_cast<uint64_t>(num_rows) ||
        static_cast<int64_t>(finished) + trailer < static_cast<int64_t>(preamble) ||
        (trailer && c + 1 == chunks)) {
      return Corruption("repetition index: chunk ", c, " finishes ", finished, " rows");
    }
    row_start_[c] = rows;
    trailer_[c] = trailer;
    rows += static_cast<int64_t>(finished) + trailer - preamble;
    if (rows > num_rows) break;
    preamble = trailer;
  }
  if (rows != num_rows) {
    return Corruption("repetition index covers ", rows, " rows, the page has ", num_rows);
  }
  row_start_[chunks] = rows;
  return Status::OK();
}

void ChunkTable::PlanFlat(const ValueRange& range, std::vector<ChunkPiece>* out) const {
  auto it = std::upper_bound(value_start_.begin(), value_start_.end() - 1, range.start);
  auto chunk = static_cast<int64_t>(it - value_start_.begin()) - 1;
  int64_t at = range.start;
  const int64_t end = range.start + range.count;
  while (at < end) {
    const int64_t chunk_start = value_start_[static_cast<size_t>(chunk)];
    const int64_t chunk_end = value_start_[static_cast<size_t>(chunk) + 1];
    const int64_t stop = std::min(end, chunk_end);
    out->push_back(
        {chunk, false, at - chunk_start, stop - chunk_start, stop == chunk_end});
    at = stop;
    ++chunk;
  }
}

void ChunkTable::PlanNested(const ValueRange& range, std::vector<ChunkPiece>* out) const {
  // The last chunk whose first row is not behind the wanted one: chunks in the middle of
  // a long row start no row, and the one that starts the next row comes after them.
  auto it = std::upper_bound(row_start_.begin(), row_start_.end() - 1, range.start);
  auto chunk = static_cast<int64_t>(it - row_start_.begin()) - 1;
  int64_t at = range.start;
  const int64_t end = range.start + range.count;
  bool preamble = false;
  while (true) {
    const int64_t first = row_start_[static_cast<size_t>(chunk)];
    const int64_t starting = rows_starting(chunk);
    const int64_t stop = std::min(end - first, starting);
    const bool to_end = stop == starting;
    out->push_back({chunk, preamble, preamble ? 0 : at - first, stop, to_end});
    at = first + stop;
    // The last row wanted may go on in the chunks that follow.
    if (at >= end && !(to_end && has_trailer(chunk))) return;
    preamble = has_trailer(chunk);
    ++chunk;
  }
}

std::vector<ChunkPiece> ChunkTable::Plan(std::span<const ValueRange> rows,
                                         bool nested) const {
  std::vector<ChunkPiece> out;
  out.reserve(rows.size());
  for (const ValueRange& range : rows) {
    if (nested) {
      PlanNested(range, &out);
    } else {
      PlanFlat(range, &out);
    }
  }
  return out;
}

int64_t ChunkTable::memory_bytes() const {
  return static_cast<int64_t>(
      (byte_start_.capacity() + value_start_.capacity() + row_start_.capacity()) *
          sizeof(int64_t) +
      trailer_.capacity() / 8);
}

}  // namespace glaive::file
