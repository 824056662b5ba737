// Which rows of each source of a snapshot are hidden by fresher ones.
#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include <arrow/record_batch.h>

#include "io/object_store.h"
#include "memwal/lsm_sources.h"
#include "memwal/lsm_state.h"
#include "table/view.h"

namespace glaive::memwal {
namespace {

using table::Dataset;
using table::DeletionVector;

HiddenRows With(const HiddenRows& hidden, const std::vector<uint32_t>& more) {
  if (more.empty()) return hidden;
  return hidden == nullptr ? DeletionVector::FromOffsets(more) : hidden->Union(more);
}

// The distinct keys of the rows from `first` on.
EncodedKeys KeysFrom(const Memtable::View& view, int64_t first) {
  EncodedKeys keys;
  view.VisitKeys(first, [&](std::string_view key) {
    keys.bytes.insert(keys.bytes.end(), key.begin(), key.end());
    keys.ends.push_back(static_cast<uint32_t>(keys.bytes.size()));
  });
  return keys;
}

// Rows of a memtable that are superseded within it, or tombstones.
std::vector<uint32_t> DeadRows(const Memtable::View& view) {
  std::vector<uint32_t> dead;
  const int64_t rows = view.num_rows();
  if (view.num_live() == rows) return dead;
  const std::vector<uint8_t>& live = view.live();
  dead.reserve(static_cast<size_t>(rows - view.num_live()));
  for (int64_t i = 0; i < rows; ++i) {
    if (((live[static_cast<size_t>(i / 8)] >> (i % 8)) & 1) == 0) {
      dead.push_back(static_cast<uint32_t>(i));
    }
  }
  return dead;
}

// Fills in what a snapshot hides, from what earlier reads left in the state.
class Masker {
 public:
  Masker(const Dataset::Ptr& base, const BaseKeys& keys, LsmState& state)
      : base_(base),
        keys_(keys),
        state_(state),
        hidden_(static_cast<size_t>(base->num_fragments())) {}

  // The shard's sources with live rows, newest first.
  Status AddShard(const ShardSources& shard, std::vector<LsmSource>* sources) {
    auto& owners =
        state_.owners.try_emplace(shard.shard, state_.max_owner_bytes).first->second;
    std::vector<std::vector<HiddenRows>> of_generation(shard.generations.size());
    std::vector<std::vector<HiddenRows>> of_memory(shard.memory.size());
    if (!shard.generations.empty()) {
      GLAIVE_RETURN_NOT_OK(owners.Update(shard.generations));
      const auto hidden = owners.hidden();
      for (size_t g = 0; g < hidden.size(); ++g) of_generation[g].push_back(hidden[g]);
      for (const auto& generation : shard.generations) {
        GLAIVE_RETURN_NOT_OK(HideInBase(*generation));
      }
    }
    for (size_t m = 0; m < shard.memory.size(); ++m) {
      const Memtable::View& view = shard.memory[m];
      of_memory[m].push_back(With(nullptr, DeadRows(view)));
      MemtableHits scratch;
      MemtableHits* hits = &state_.HitsOf(view);
      // What is known is of more rows than this snapshot sees.
      if (hits->rows > view.num_rows()) hits = &scratch;
      Status status = Extend(hits, view, shard, m, owners);
      if (!status.ok()) {
        *hits = MemtableHits();
        return status;
      }
      for (size_t g = 0; g < hits->generations.size(); ++g) {
        of_generation[g].push_back(hits->generations[g]);
      }
      for (size_t older = m + 1; older < shard.memory.size(); ++older) {
        of_memory[older].push_back(hits->memtables[older - m - 1].hidden);
      }
      for (size_t f = 0; f < hidden_.size(); ++f) {
        const auto found = hits->base.find(keys_.file_of(static_cast<int>(f)));
        if (found->second != nullptr) hidden_[f].push_back(found->second);
      }
    }
    for (size_t m = 0; m < shard.memory.size(); ++m) {
      const Memtable::View& view = shard.memory[m];
      const auto stored = LsmSources::StoredSchema(view);
      GLAIVE_ASSIGN_OR_RETURN(
          auto rows,
          table::ViewOfBatches(*base_, stored, stored->fields().size() - 1,
                               view.batches(), DeletionVector::UnionOf(of_memory[m])));
      Add(std::move(rows), shard.shard, view.generation(), true, sources);
    }
    for (size_t g = shard.generations.size(); g-- > 0;) {
      const Generation& generation = *shard.generations[g];
      table::ViewOptions options;
      options.columns_of = base_;
      options.anonymous_rows = true;
      if (generation.tombstone_field()) {
        options.foreign_fields = {*generation.tombstone_field()};
      }
      options.hidden[0] = DeletionVector::UnionOf(of_generation[g]);
      GLAIVE_ASSIGN_OR_RETURN(auto rows, table::ViewOf(*generation.dataset(), options));
      Add(std::move(rows), shard.shard, generation.number(), false, sources);
    }
    return Status::OK();
  }

  Result<Dataset::Ptr> Base() const {
    table::ViewOptions options;
    for (size_t f = 0; f < hidden_.size(); ++f) {
      if (hidden_[f].empty()) continue;
      options.hidden[static_cast<int>(f)] = DeletionVector::UnionOf(hidden_[f]);
    }
    if (options.hidden.empty()) return base_;
    return table::ViewOf(*base_, options);
  }

 private:
  static void Add(Dataset::Ptr rows, const ShardId& shard, uint64_t generation,
                  bool in_memory, std::vector<LsmSource>* sources) {
    if (rows->count_rows() == 0) return;
    sources->push_back({std::move(rows), shard, generation, in_memory});
  }

  // The fragments of the base whose files `known` knows, or does not.
  template <typename Known>
  std::vector<int> Fragments(const Known& known, bool wanted) const {
    std::vector<int> fragments;
    for (size_t f = 0; f < hidden_.size(); ++f) {
      const int fragment = static_cast<int>(f);
      if (known.contains(keys_.file_of(fragment)) == wanted)
        fragments.push_back(fragment);
    }
    return fragments;
  }

  Status HideInBase(const Generation& generation) {
    Generation::Hits& hits = generation.hits();
    std::vector<HiddenRows> found(hidden_.size());
    std::vector<int> missing;
    {
      std::lock_guard lock(hits.mutex);
      for (size_t f = 0; f < hidden_.size(); ++f) {
        const int fragment = static_cast<int>(f);
        const auto known = hits.by_file.find(keys_.file_of(fragment));
        if (known == hits.by_file.end()) {
          missing.push_back(fragment);
        } else {
          found[f] = known->second;
        }
      }
    }
    if (!missing.empty()) {
      GLAIVE_ASSIGN_OR_RETURN(const auto keys, generation.keys());
      GLAIVE_ASSIGN_OR_RETURN(const auto offsets,
                              keys_.Matching(*base_, missing, keys->keys()));
      std::lock_guard lock(hits.mutex);
      DropGone(&hits.by_file);
      for (size_t i = 0; i < missing.size(); ++i) {
        auto& rows = found[static_cast<size_t>(missing[i])];
        rows = With(nullptr, offsets[i]);
        hits.by_file[keys_.file_of(missing[i])] = rows;
      }
    }
    for (size_t f = 0; f < hidden_.size(); ++f) {
      if (found[f] != nullptr) hidden_[f].push_back(std::move(found[f]));
    }
    return Status::OK();
  }

  // Forgets files that the base no longer has, now and then.
  template <typename Map>
  void DropGone(Map* by_file) const {
    if (by_file->size() <= 2 * hidden_.size() + 64) return;
    Map kept;
    for (size_t f = 0; f < hidden_.size(); ++f) {
      const auto found = by_file->find(keys_.file_of(static_cast<int>(f)));
      if (found != by_file->end()) kept.insert(*found);
    }
    *by_file = std::move(kept);
  }

  // Brings `hits`, of memtable `m` of the shard, up to the rows of `view`.
  Status Extend(MemtableHits* hits, const Memtable::View& view, const ShardSources& shard,
                size_t m, const GenerationOwners& owners) {
    const int64_t rows = view.num_rows();
    const EncodedKeys added = KeysFrom(view, hits->rows);
    EncodedKeys all;
    const auto all_keys = [&]() -> const EncodedKeys& {
      if (hits->rows == 0) return added;
      if (all.size() == 0) all = KeysFrom(view, 0);
      return all;
    };

    // The base.
    if (added.size() > 0 && hits->rows > 0) {
      const std::vector<int> known = Fragments(hits->base, true);
      GLAIVE_ASSIGN_OR_RETURN(const auto offsets, keys_.Matching(*base_, known, added));
      for (size_t i = 0; i < known.size(); ++i) {
        HiddenRows& hidden = hits->base[keys_.file_of(known[i])];
        hidden = With(hidden, offsets[i]);
      }
      // Files of other versions miss the added keys now.
      if (known.size() < hits->base.size()) {
        std::unordered_map<std::string, HiddenRows> kept;
        for (const int f : known) kept[keys_.file_of(f)] = hits->base[keys_.file_of(f)];
        hits->base = std::move(kept);
      }
    }
    const std::vector<int> missing = Fragments(hits->base, false);
    if (!missing.empty()) {
      GLAIVE_ASSIGN_OR_RETURN(const auto offsets,
                              keys_.Matching(*base_, missing, all_keys()));
      DropGone(&hits->base);
      for (size_t i = 0; i < missing.size(); ++i) {
        hits->base[keys_.file_of(missing[i])] = With(nullptr, offsets[i]);
      }
    }

    // The generations.
    std::vector<std::string> list;
    for (const auto& generation : shard.generations) {
      list.push_back(generation->directory());
    }
    const bool same_list = hits->generation_list == list;
    if (!same_list) hits->generations.assign(list.size(), nullptr);
    hits->generation_list = std::move(list);
    if (!shard.generations.empty()) {
      const EncodedKeys& keys = same_list ? added : all_keys();
      std::vector<std::vector<uint32_t>> found(shard.generations.size());
      for (int64_t k = 0; k < keys.size(); ++k) {
        GLAIVE_ASSIGN_OR_RETURN(const auto place,
                                owners.Find(shard.generations, keys[k]));
        if (place) found[place->generation].push_back(place->row);
      }
      for (size_t g = 0; g < found.size(); ++g) {
        std::sort(found[g].begin(), found[g].end());
        hits->generations[g] = With(hits->generations[g], found[g]);
      }
    }

    // Older memtables.
    std::vector<MemtableHits::Older> older;
    for (size_t o = m + 1; o < shard.memory.size(); ++o) {
      const Memtable::View& other = shard.memory[o];
      MemtableHits::Older entry;
      const auto& first = other.batches().front();
      for (const auto& known : hits->memtables) {
        if (known.first_batch.lock() == first && known.rows == other.num_rows()) {
          entry = known;
        }
      }
      const bool is_known = entry.rows > 0;
      entry.first_batch = first;
      entry.rows = other.num_rows();
      const EncodedKeys& keys = is_known ? added : all_keys();
      std::vector<uint32_t> found;
      for (int64_t k = 0; k < keys.size(); ++k) {
        const int64_t row = other.Find(keys[k]);
        if (row >= 0) found.push_back(static_cast<uint32_t>(row));
      }
      std::sort(found.begin(), found.end());
      entry.hidden = With(entry.hidden, found);
      older.push_back(std::move(entry));
    }
    hits->memtables = std::move(older);
    hits->first_batch = view.batches().front();
    hits->rows = rows;
    return Status::OK();
  }

  const Dataset::Ptr& base_;
  const BaseKeys& keys_;
  LsmState& state_;
  std::vector<std::vector<HiddenRows>> hidden_;  // of the base, by fragment
};

}  // namespace

Status LsmSnapshot::Impl::Mask() const {
  {
    std::lock_guard lock(mutex);
    if (fresh != nullptr) return Status::OK();
  }
  // Asked for anew: in a forked child it is another one.
  const auto state = LsmState::Of(base->env());
  GLAIVE_ASSIGN_OR_RETURN(const auto of_base, state->KeysOf(base, keys.names));
  std::vector<LsmSource> sources;
  Dataset::Ptr masked;
  {
    std::lock_guard lock(state->mutex);
    Masker masker(base, *of_base, *state);
    for (const ShardSources& shard : shards) {
      GLAIVE_RETURN_NOT_OK(masker.AddShard(shard, &sources));
    }
    GLAIVE_ASSIGN_OR_RETURN(masked, masker.Base());
    int64_t bytes = 0;
    for (const auto& [shard, owners] : state->owners) bytes += owners.size_bytes();
    state->owner_bytes = bytes;
  }
  LsmState::Account(base->env(), state);
  // Once only: who knows that they are there reads them without the lock.
  std::lock_guard lock(mutex);
  if (fresh != nullptr) return Status::OK();
  fresh = std::make_shared<const std::vector<LsmSource>>(std::move(sources));
  masked_base = std::move(masked);
  return Status::OK();
}

std::shared_ptr<const file::Schema> LsmSources::StoredSchema(const Memtable::View& view) {
  const auto& schema = view.shared_schema();
  return {schema, &schema->generation()};
}

Result<Dataset::Ptr> LsmSources::PlainGeneration(const LsmSnapshot& snapshot,
                                                 const Generation& generation) {
  const LsmSnapshot::Impl& impl = Of(snapshot);
  {
    std::lock_guard lock(impl.mutex);
    auto known = impl.plain_generations.find(generation.directory());
    if (known != impl.plain_generations.end()) return known->second;
  }
  table::ViewOptions options;
  options.columns_of = impl.base;
  options.anonymous_rows = true;
  if (generation.tombstone_field()) {
    options.foreign_fields = {*generation.tombstone_field()};
  }
  GLAIVE_ASSIGN_OR_RETURN(auto view, table::ViewOf(*generation.dataset(), options));
  std::lock_guard lock(impl.mutex);
  return impl.plain_generations.emplace(generation.directory(), std::move(view))
      .first->second;
}

}  // namespace glaive::memwal
