#include "table/row_id_index.h"

#include <algorithm>

#include "table/deletion_vector.h"

namespace glaive::table {
namespace {

// Consecutive ids at consecutive addresses.
struct Entry {
  uint64_t first_id;
  uint64_t count;
  uint64_t address;
};

class RowIdIndexImpl final : public RowIdIndex {
 public:
  explicit RowIdIndexImpl(std::vector<Entry> entries) : entries_(std::move(entries)) {}

  std::optional<RowAddress> Find(uint64_t row_id) const override {
    auto it =
        std::upper_bound(entries_.begin(), entries_.end(), row_id,
                         [](uint64_t id, const Entry& e) { return id < e.first_id; });
    if (it == entries_.begin()) return std::nullopt;
    --it;
    if (row_id - it->first_id >= it->count) return std::nullopt;
    return RowAddress{it->address + (row_id - it->first_id)};
  }

 private:
  const std::vector<Entry> entries_;
};

// Adds the live rows of [offset, offset + count), whose ids start at `id`.
void AddLive(int64_t fragment_id, uint64_t id, uint64_t offset, uint64_t count,
             std::span<const uint32_t> deleted, std::vector<Entry>* entries) {
  const uint64_t end = offset + count;
  auto it = std::lower_bound(deleted.begin(), deleted.end(), offset);
  while (offset < end) {
    const uint64_t stop = it != deleted.end() && *it < end ? *it : end;
    if (stop > offset) {
      entries->push_back(
          {id, stop - offset,
           RowAddress::Make(fragment_id, static_cast<uint32_t>(offset)).value});
    }
    if (stop == end) return;
    id += stop - offset + 1;
    offset = stop + 1;
    ++it;
  }
}

}  // namespace

Result<std::shared_ptr<const RowIdIndex>> BuildRowIdIndex(
    std::span<const RowIdSource> sources) {
  std::vector<Entry> entries;
  for (const RowIdSource& source : sources) {
    std::vector<uint32_t> deleted;
    if (source.deletions) deleted = source.deletions->ToOffsets();
    uint64_t offset = 0;
    for (const RowIdRun& run : source.runs) {
      AddLive(source.fragment_id, run.first_id, offset, run.count, deleted, &entries);
      offset += run.count;
    }
  }
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.first_id < b.first_id; });
  for (size_t i = 1; i < entries.size(); ++i) {
    if (entries[i].first_id - entries[i - 1].first_id < entries[i - 1].count) {
      return Corruption("two live rows have the row id ", entries[i].first_id);
    }
  }
  entries.shrink_to_fit();
  return std::make_shared<RowIdIndexImpl>(std::move(entries));
}

}  // namespace glaive::table
