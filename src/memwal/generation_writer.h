// Turns a memtable into a generation: a Lance dataset of one fragment with its key index
// and bloom filter.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "file/version.h"
#include "format/memwal.pb.h"
#include "index/text/tokenizer_params.h"
#include "memwal/memtable.h"
#include "memwal/names.h"
#include "table/dataset.h"

namespace glaive::memwal {

// A vector index that a generation gets: exact, whatever kind the base's index is.
struct GenerationVectorIndex {
  std::string name;
  std::string column;  // fixed-size lists of float32
  std::string metric;  // "l2", "cosine" or "dot"
};

// A full-text index that a generation gets.
struct GenerationTextIndex {
  std::string name;
  std::string column;  // IsTextIndexType
  text::TokenizerParams params;
};

struct GenerationOptions {
  file::FileVersion file_version = file::kDefaultFileVersion;  // the base table's
  // Names of scalar indices of the base that the generation gets as well (BTree on one
  // column); name and column.
  std::vector<std::pair<std::string, std::string>> btree_indices;
  std::vector<GenerationVectorIndex> vector_indices;
  std::vector<GenerationTextIndex> text_indices;
};

// Writes all rows of `rows` in their order into a new directory of the shard (`base`: the
// table's environment); superseded rows go to the deletion vector. Everything is durable
// on return and invisible until a shard manifest names it. On an error the directory is
// removed again.
Result<lance::table::SsTable> WriteGeneration(const table::TableEnv& base,
                                              const ShardId& shard,
                                              const Memtable::View& rows,
                                              const GenerationOptions& options);

}  // namespace glaive::memwal
