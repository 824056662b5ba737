// Which generation of a shard holds the newest row of each key, and which rows of older
// generations it hides.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "memwal/generation.h"
#include "memwal/keys.h"
#include "table/deletion_vector.h"

namespace glaive::memwal {

// Kept from read to read: a new generation costs as much as it has keys, however many
// there are. Not thread-safe.
class GenerationOwners {
 public:
  // A map of all keys may take so many bytes; above, generations are asked one by one.
  explicit GenerationOwners(int64_t max_bytes) : max_bytes_(max_bytes) {}

  // Brings this up to `generations`: ascending by number.
  Status Update(const std::vector<Generation::Ptr>& generations);

  // By place in `generations`: rows that newer generations replace, and tombstones; null:
  // none.
  std::vector<std::shared_ptr<const table::DeletionVector>> hidden() const {
    return {hidden_.begin() + static_cast<std::ptrdiff_t>(first_), hidden_.end()};
  }

  int64_t size_bytes() const {
    return map_.size_bytes() + static_cast<int64_t>(entries_.capacity() * sizeof(Entry));
  }

  struct Place {
    size_t generation = 0;  // in `generations`
    uint32_t row = 0;
  };
  // The newest row of a key (perhaps a tombstone). `generations`: those of Update.
  Result<std::optional<Place>> Find(const std::vector<Generation::Ptr>& generations,
                                    std::string_view key) const;

 private:
  struct Entry {
    uint32_t generation;  // counted from the first one ever seen
    uint32_t row;
  };
  // Takes in generations[i].
  Status Add(const std::vector<Generation::Ptr>& generations, size_t i);
  Status AddByProbing(const std::vector<Generation::Ptr>& generations, size_t i);
  void Clear();

  const int64_t max_bytes_;
  std::vector<std::string> names_;  // directories; those before first_ are gone
  size_t first_ = 0;
  std::vector<std::shared_ptr<const table::DeletionVector>> hidden_;
  bool mapped_ = true;
  KeyMap map_;  // key -> place in entries_
  std::vector<Entry> entries_;
};

}  // namespace glaive::memwal
