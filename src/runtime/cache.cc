// The sharded LRU cache.
#include <array>
#include <chrono>
#include <limits>
#include <list>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "runtime/fork.h"
#include "runtime/runtime.h"

namespace glaive {
namespace {

using Value = std::shared_ptr<const void>;

// Counted for each item besides its own bytes: list node, map node, control block.
constexpr int64_t kOverheadBytes = 128;
constexpr size_t kNumShards = 16;
// Below this a single shard keeps the order of use exact.
constexpr int64_t kMinShardedBytes = 16 << 20;

struct Item {
  std::string key;
  Value value;
  int64_t bytes;
  int64_t last_used_ns;  // compared between shards
};

// A clock rather than a counter: threads that hit different shards share no cache line.
int64_t NowNanos() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

struct Shard {
  std::mutex mutex;
  std::list<Item> items;  // newest first
  std::unordered_map<std::string_view, std::list<Item>::iterator>
      by_key;  // views into items
};

struct Shards {
  std::array<Shard, kNumShards> shards;
  std::atomic<int64_t> bytes{0};
  std::atomic<int64_t> num_items{0};

  // The value is handed out, so that it dies outside of the lock.
  void Remove(Shard* shard, std::list<Item>::iterator item, std::vector<Value>* dropped) {
    bytes.fetch_sub(item->bytes, std::memory_order_relaxed);
    num_items.fetch_sub(1, std::memory_order_relaxed);
    dropped->push_back(std::move(item->value));
    shard->by_key.erase(item->key);
    shard->items.erase(item);
  }
};

}  // namespace

struct Cache::Impl {
  explicit Impl(int64_t capacity)
      : capacity_bytes(capacity),
        num_shards(capacity < kMinShardedBytes ? 1 : kNumShards) {}

  Shard& ShardOf(Shards& all, std::string_view key) const {
    return all.shards[std::hash<std::string_view>{}(key) % num_shards];
  }

  // Takes the item that was not used for the longest time until the bound holds.
  void Shrink(Shards& all, std::vector<Value>* dropped) const {
    while (all.bytes.load(std::memory_order_relaxed) > capacity_bytes) {
      Shard* victim = nullptr;
      int64_t oldest = std::numeric_limits<int64_t>::max();
      for (size_t i = 0; i < num_shards; ++i) {
        std::lock_guard lock(all.shards[i].mutex);
        const auto& items = all.shards[i].items;
        if (!items.empty() && items.back().last_used_ns < oldest) {
          oldest = items.back().last_used_ns;
          victim = &all.shards[i];
        }
      }
      if (victim == nullptr) return;
      std::lock_guard lock(victim->mutex);
      // Another thread may have emptied it meanwhile.
      if (victim->items.empty()) continue;
      all.Remove(victim, std::prev(victim->items.end()), dropped);
    }
  }

  const int64_t capacity_bytes;
  const size_t num_shards;
  ForkAware<Shards> state{[] { return std::make_unique<Shards>(); }};
};

Cache::Cache(int64_t capacity_bytes) : impl_(std::make_unique<Impl>(capacity_bytes)) {}
Cache::~Cache() = default;

std::shared_ptr<const void> Cache::GetRaw(std::string_view key) {
  Shards& all = impl_->state.get();
  Shard& shard = impl_->ShardOf(all, key);
  std::lock_guard lock(shard.mutex);
  const auto found = shard.by_key.find(key);
  if (found == shard.by_key.end()) return nullptr;
  shard.items.splice(shard.items.begin(), shard.items, found->second);
  found->second->last_used_ns = NowNanos();
  return found->second->value;
}

void Cache::Put(std::string_view key, std::shared_ptr<const void> value, int64_t bytes) {
  Shards& all = impl_->state.get();
  Shard& shard = impl_->ShardOf(all, key);
  bytes += static_cast<int64_t>(key.size()) + kOverheadBytes;
  std::vector<Value> dropped;
  {
    std::lock_guard lock(shard.mutex);
    const auto found = shard.by_key.find(key);
    if (found != shard.by_key.end()) all.Remove(&shard, found->second, &dropped);
    // Too big for the whole cache: not worth throwing everything else away.
    if (value == nullptr || bytes > impl_->capacity_bytes) return;
    shard.items.push_front({std::string(key), std::move(value), bytes, NowNanos()});
    shard.by_key.emplace(shard.items.front().key, shard.items.begin());
    all.bytes.fetch_add(bytes, std::memory_order_relaxed);
    all.num_items.fetch_add(1, std::memory_order_relaxed);
  }
  impl_->Shrink(all, &dropped);
}

void Cache::Erase(std::string_view key) {
  Shards& all = impl_->state.get();
  Shard& shard = impl_->ShardOf(all, key);
  std::vector<Value> dropped;
  std::lock_guard lock(shard.mutex);
  const auto found = shard.by_key.find(key);
  if (found != shard.by_key.end()) all.Remove(&shard, found->second, &dropped);
}

void Cache::Clear() {
  Shards& all = impl_->state.get();
  for (Shard& shard : all.shards) {
    std::vector<Value> dropped;
    std::lock_guard lock(shard.mutex);
    while (!shard.items.empty()) all.Remove(&shard, shard.items.begin(), &dropped);
  }
}

int64_t Cache::size_bytes() const {
  return impl_->state.get().bytes.load(std::memory_order_relaxed);
}

int64_t Cache::num_items() const {
  return impl_->state.get().num_items.load(std::memory_order_relaxed);
}

}  // namespace glaive
