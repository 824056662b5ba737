// The writers that this process shares.
#include <algorithm>
#include <mutex>
#include <utility>

#include "file/schema.h"
#include "format/file.pb.h"
#include "io/object_store.h"
#include "memwal/shard_writer.h"
#include "runtime/fork.h"

namespace glaive::memwal {
namespace {

// Where the writer of one shard is.
struct Place {
  std::mutex busy;  // whoever opens or closes it
  // Guarded by the registry's mutex, changed only with busy held as well:
  std::shared_ptr<ShardWriter> writer;
  int64_t schema_version = 0;  // of the base: its schema is the writer's
};
using Key = std::pair<std::string, ShardId>;

bool Usable(const ShardWriter& writer) {
  return !writer.is_closed() && writer.health().ok();
}

bool SameSchema(const table::Dataset& a, const table::Dataset& b) {
  lance::file::Schema of_a, of_b;
  a.schema().ToProto(&of_a);
  b.schema().ToProto(&of_b);
  if (of_a.fields_size() != of_b.fields_size()) return false;
  for (int i = 0; i < of_a.fields_size(); ++i) {
    const auto& x = of_a.fields(i);
    const auto& y = of_b.fields(i);
    if (x.id() != y.id() || x.name() != y.name() || x.nullable() != y.nullable() ||
        x.logical_type() != y.logical_type() || x.parent_id() != y.parent_id()) {
      return false;
    }
  }
  return true;
}

}  // namespace

struct WriterRegistry::Impl {
  // Of one process: a child starts with none.
  struct State {
    std::mutex mutex;
    std::map<Key, std::shared_ptr<Place>> places;  // guarded by mutex
  };

  std::shared_ptr<Place> PlaceOf(const table::Dataset& base, const ShardId& shard,
                                 bool make) {
    State& s = state.get();
    std::lock_guard lock(s.mutex);
    const Key key(base.env().store->root(), shard);
    const auto found = s.places.find(key);
    if (found != s.places.end()) return found->second;
    return make ? (s.places[key] = std::make_shared<Place>()) : nullptr;
  }

  std::vector<std::shared_ptr<Place>> PlacesOf(const std::string& root) {
    State& s = state.get();
    std::lock_guard lock(s.mutex);
    std::vector<std::shared_ptr<Place>> found;
    for (auto it = s.places.lower_bound(Key(root, ShardId()));
         it != s.places.end() && it->first.first == root; ++it) {
      found.push_back(it->second);
    }
    return found;
  }

  std::shared_ptr<ShardWriter> WriterOf(const Place& place) {
    std::lock_guard lock(state.get().mutex);
    return place.writer;
  }

  void SetWriter(Place* place, std::shared_ptr<ShardWriter> writer, int64_t version) {
    // Destroying a writer may take its time: not under the lock.
    std::lock_guard lock(state.get().mutex);
    place->writer.swap(writer);
    place->schema_version = version;
  }

  ForkAware<State> state{[] { return std::make_unique<State>(); }};
};

WriterRegistry::WriterRegistry() : impl_(std::make_unique<Impl>()) {}
WriterRegistry::~WriterRegistry() = default;

WriterRegistry& WriterRegistry::Instance() {
  // Never destroyed: the threads of its writers end in an exit handler of theirs.
  static auto* instance = new WriterRegistry;
  return *instance;
}

Result<std::shared_ptr<ShardWriter>> WriterRegistry::Get(const table::Dataset::Ptr& base,
                                                         const ShardId& shard,
                                                         const WriterConfig& config) {
  const std::shared_ptr<Place> place = impl_->PlaceOf(*base, shard, true);
  std::shared_ptr<ShardWriter> writer;
  int64_t schema_version = 0;
  {
    std::lock_guard lock(impl_->state.get().mutex);
    writer = place->writer;
    schema_version = place->schema_version;
  }
  // The usual way takes no lock that is held during I/O.
  if (writer != nullptr && schema_version == base->version() && Usable(*writer)) {
    return writer;
  }
  std::lock_guard busy(place->busy);
  writer = impl_->WriterOf(*place);
  if (writer != nullptr && Usable(*writer)) {
    if (base->version() <= writer->base()->version() ||
        SameSchema(*base, *writer->base())) {
      impl_->SetWriter(place.get(), writer, base->version());
      return writer;
    }
    // The rows that it holds were checked against the old schema; they become a
    // generation of it.
    GLAIVE_RETURN_NOT_OK(writer->Close());
  }
  writer.reset();
  impl_->SetWriter(place.get(), nullptr, 0);
  GLAIVE_ASSIGN_OR_RETURN(writer, ShardWriter::Open(base, shard, config));
  impl_->SetWriter(place.get(), writer, base->version());
  return writer;
}

std::shared_ptr<ShardWriter> WriterRegistry::Find(const table::Dataset& base,
                                                  const ShardId& shard) {
  const std::shared_ptr<Place> place = impl_->PlaceOf(base, shard, false);
  return place == nullptr ? nullptr : impl_->WriterOf(*place);
}

std::vector<std::shared_ptr<ShardWriter>> WriterRegistry::FindAll(
    const table::Dataset& base) {
  std::vector<std::shared_ptr<ShardWriter>> writers;
  for (const auto& place : impl_->PlacesOf(base.env().store->root())) {
    if (auto writer = impl_->WriterOf(*place)) writers.push_back(std::move(writer));
  }
  return writers;
}

Status WriterRegistry::CloseAll(const table::Dataset& base) {
  Status first;
  for (const auto& place : impl_->PlacesOf(base.env().store->root())) {
    std::lock_guard busy(place->busy);
    const auto writer = impl_->WriterOf(*place);
    if (writer == nullptr) continue;
    Status status = writer->Close();
    if (first.ok()) first = std::move(status);
    impl_->SetWriter(place.get(), nullptr, 0);
  }
  return first;
}

void WriterRegistry::AbortAll(const std::string& root) {
  for (const auto& place : impl_->PlacesOf(root)) {
    std::lock_guard busy(place->busy);
    const auto writer = impl_->WriterOf(*place);
    if (writer == nullptr) continue;
    writer->Abort();
    impl_->SetWriter(place.get(), nullptr, 0);
  }
}

}  // namespace glaive::memwal
