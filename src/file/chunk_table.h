// Where the chunks of a mini-block page lie and which values and rows they hold.
//
// Layout: docs/format/pages.md, section "Mini-block".
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "encoding/value_sink.h"

namespace glaive::file {

// A part of one chunk that a read needs. Without lists, rows are values.
struct ChunkPiece {
  int64_t chunk = 0;
  // The rest of a row that began in an earlier chunk comes first.
  bool with_preamble = false;
  // Rows that start in this chunk, counted from the first of them.
  int64_t first_row = 0;
  int64_t end_row = 0;
  // The piece reaches the end of the chunk.
  bool to_end = false;
};

// Immutable once built.
class ChunkTable {
 public:
  // `words`: the chunk metadata, 2 or 4 bytes each. `num_items`: values of the page.
  static Result<ChunkTable> Make(encoding::Bytes words, bool wide, int64_t data_bytes,
                                 int64_t num_items);
  // Adds what the repetition index says. Corruption unless it covers `num_rows` rows.
  Status AddRepetitionIndex(encoding::Bytes index, int64_t num_rows);

  int64_t num_chunks() const { return static_cast<int64_t>(byte_start_.size()) - 1; }
  int64_t byte_start(int64_t chunk) const {
    return byte_start_[static_cast<size_t>(chunk)];
  }
  int64_t num_bytes(int64_t chunk) const {
    return byte_start(chunk + 1) - byte_start(chunk);
  }
  int64_t num_values(int64_t chunk) const {
    return value_start_[static_cast<size_t>(chunk) + 1] -
           value_start_[static_cast<size_t>(chunk)];
  }
  int64_t rows_starting(int64_t chunk) const {
    return row_start_[static_cast<size_t>(chunk) + 1] -
           row_start_[static_cast<size_t>(chunk)];
  }
  // The chunks, in order, that hold `rows` (ascending, disjoint, within the page).
  std::vector<ChunkPiece> Plan(std::span<const encoding::ValueRange> rows,
                               bool nested) const;
  int64_t memory_bytes() const;

 private:
  void PlanFlat(const encoding::ValueRange& range, std::vector<ChunkPiece>* out) const;
  void PlanNested(const encoding::ValueRange& range, std::vector<ChunkPiece>* out) const;
  bool has_trailer(int64_t chunk) const { return trailer_[static_cast<size_t>(chunk)]; }

  std::vector<int64_t> byte_start_;   // one more entry than chunks
  std::vector<int64_t> value_start_;  // one more entry than chunks
  std::vector<int64_t> row_start_;    // nested only; one more entry than chunks
  std::vector<bool> trailer_;  // nested only: the last row goes on in the next chunk
};

}  // namespace glaive::file
