#include "memwal/generation_owners.h"

#include <algorithm>
#include <utility>

namespace glaive::memwal {
namespace {

using table::DeletionVector;

// From so many generations that are gone on, the map is made anew.
constexpr size_t kMaxGone = 32;
// Guess for a key and its entry, before any is read.
constexpr int64_t kKeyBytes = 48;

}  // namespace

void GenerationOwners::Clear() {
  names_.clear();
  hidden_.clear();
  entries_.clear();
  map_ = KeyMap();
  first_ = 0;
  mapped_ = true;
}

Status GenerationOwners::Update(const std::vector<Generation::Ptr>& generations) {
  // What is known must be the wanted ones, but for some at the front that are gone and
  // some at the end that are new.
  size_t first = first_;
  if (!generations.empty()) {
    while (first < names_.size() && names_[first] != generations[0]->directory()) ++first;
  }
  const size_t known = names_.size() - first;
  bool extends = !generations.empty() && known > 0 && known <= generations.size() &&
                 first <= kMaxGone;
  for (size_t i = 0; extends && i < known; ++i) {
    extends = names_[first + i] == generations[i]->directory();
  }
  if (extends) {
    for (; first_ < first; ++first_) hidden_[first_] = nullptr;
  } else {
    Clear();
  }
  int64_t rows = 0;
  for (const auto& generation : generations) {
    rows += generation->dataset()->num_fragments() == 0
                ? 0
                : generation->dataset()->physical_rows(0);
  }
  const bool fits = rows * kKeyBytes <= max_bytes_ && map_.size_bytes() <= max_bytes_;
  if (mapped_ && !fits) Clear();
  mapped_ = fits;
  if (mapped_ && names_.empty()) map_.Reserve(rows);
  for (size_t i = names_.size() - first_; i < generations.size(); ++i) {
    Status added = mapped_ ? Add(generations, i) : AddByProbing(generations, i);
    if (!added.ok()) {
      Clear();
      return added;
    }
  }
  return Status::OK();
}

Status GenerationOwners::Add(const std::vector<Generation::Ptr>& generations, size_t i) {
  const Generation::Ptr& generation = generations[i];
  GLAIVE_ASSIGN_OR_RETURN(const auto keys, generation->keys());
  GLAIVE_ASSIGN_OR_RETURN(auto tombstones, generation->tombstones());
  const auto number = static_cast<uint32_t>(names_.size());
  std::vector<std::vector<uint32_t>> replaced(names_.size());
  const EncodedKeys& all = keys->keys();
  for (int64_t k = 0; k < all.size(); ++k) {
    const std::string_view key = all[k];
    const auto row = static_cast<uint32_t>(keys->Find(key));
    const int64_t known = map_.Find(key);
    if (known < 0) {
      map_.Put(key, static_cast<uint32_t>(entries_.size()));
      entries_.push_back({number, row});
      continue;
    }
    Entry& entry = entries_[static_cast<size_t>(known)];
    if (entry.generation >= first_) replaced[entry.generation].push_back(entry.row);
    entry = {number, row};
  }
  for (size_t g = 0; g < replaced.size(); ++g) {
    if (replaced[g].empty()) continue;
    std::sort(replaced[g].begin(), replaced[g].end());
    hidden_[g] = hidden_[g] == nullptr ? DeletionVector::FromOffsets(replaced[g])
                                       : hidden_[g]->Union(replaced[g]);
  }
  hidden_.push_back(std::move(tombstones));
  names_.push_back(generation->directory());
  return Status::OK();
}

Status GenerationOwners::AddByProbing(const std::vector<Generation::Ptr>& generations,
                                      size_t i) {
  const Generation::Ptr& generation = generations[i];
  GLAIVE_ASSIGN_OR_RETURN(const auto keys, generation->keys());
  GLAIVE_ASSIGN_OR_RETURN(auto tombstones, generation->tombstones());
  const EncodedKeys& all = keys->keys();
  for (size_t g = first_; g < names_.size(); ++g) {
    GLAIVE_ASSIGN_OR_RETURN(const auto older, generations[g - first_]->keys());
    std::vector<uint32_t> replaced;
    for (int64_t k = 0; k < all.size(); ++k) {
      const int64_t row = older->Find(all[k]);
      if (row >= 0) replaced.push_back(static_cast<uint32_t>(row));
    }
    if (replaced.empty()) continue;
    std::sort(replaced.begin(), replaced.end());
    hidden_[g] = hidden_[g] == nullptr ? DeletionVector::FromOffsets(replaced)
                                       : hidden_[g]->Union(replaced);
  }
  hidden_.push_back(std::move(tombstones));
  names_.push_back(generation->directory());
  return Status::OK();
}

Result<std::optional<GenerationOwners::Place>> GenerationOwners::Find(
    const std::vector<Generation::Ptr>& generations, std::string_view key) const {
  if (mapped_) {
    const int64_t known = map_.Find(key);
    if (known < 0) return std::nullopt;
    const Entry& entry = entries_[static_cast<size_t>(known)];
    if (entry.generation < first_) return std::nullopt;
    return Place{entry.generation - first_, entry.row};
  }
  for (size_t g = generations.size(); g-- > 0;) {
    GLAIVE_ASSIGN_OR_RETURN(const auto keys, generations[g]->keys());
    const int64_t row = keys->Find(key);
    if (row >= 0) return Place{g, static_cast<uint32_t>(row)};
  }
  return std::nullopt;
}

}  // namespace glaive::memwal
