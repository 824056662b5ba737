// The key index of a generation: _pk_index/page_data.lance and page_lookup.lance, a
// BTree over all its rows (superseded ones and tombstones included).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <arrow/type_fwd.h>

#include "base/status.h"
#include "memwal/keys.h"
#include "table/dataset.h"

namespace glaive::memwal {

inline constexpr char kPkIndexDir[] = "_pk_index";

// Writes both files into `generation` (a store rooted at the generation's directory).
// `keys`: of the rows 0, 1, …. For one key column its values (of its own type) are
// stored, for several the encoded keys (Binary). Files of version 2.0, pages of 8192, as
// upstream's. Nothing is written when there is no row.
Status WritePkSidecar(io::ObjectStore& generation,
                      const std::vector<std::shared_ptr<arrow::Array>>& key_columns);

// The keys of a generation, in memory: key -> its newest live row. Immutable.
class GenerationKeys {
 public:
  // From _pk_index, or, where it is missing (a generation that no newer source needs), by
  // reading the key columns of `dataset`. Corruption when it does not fit the generation.
  static Result<std::shared_ptr<const GenerationKeys>> Load(
      const table::Dataset& generation, const std::vector<std::string>& key_names);

  // The row offset in fragment 0, or -1.
  int64_t Find(std::string_view key) const;
  bool Contains(std::string_view key) const { return Find(key) >= 0; }
  int64_t num_keys() const { return keys_.size(); }
  // Each distinct key once, in no order.
  const EncodedKeys& keys() const { return keys_; }
  int64_t size_bytes() const;

 private:
  friend class GenerationKeysLoader;
  GenerationKeys() = default;
  // The key's slot, or the free one where it belongs.
  size_t Probe(std::string_view key, uint32_t tag) const;
  void Resize(size_t num_slots);
  // Keeps the higher row of a key that comes again. False: there are too many keys.
  bool Add(std::string_view key, uint32_t row);

  EncodedKeys keys_;
  std::vector<uint32_t> rows_;  // as keys_
  // Upper half of a key's hash and its number in keys_ plus one; zero: free.
  std::vector<uint64_t> slots_;
};

}  // namespace glaive::memwal
