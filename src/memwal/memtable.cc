#include "memwal/memtable.h"

#include <algorithm>
#include <atomic>
#include <string>
#include <utility>

#include <arrow/array.h>
#include <arrow/buffer.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>
#include <arrow/util/bit_util.h>
#include <arrow/util/bitmap_ops.h>

#include "exec/row_bytes.h"
#include "memwal/append_array.h"
#include "memwal/keys.h"
#include "runtime/fork.h"
#include "runtime/runtime.h"

namespace glaive::memwal {
namespace {

constexpr uint64_t kMaxRows = KeyMap::kNoRow;
// Of encoded keys, with what the arena adds to each; the map's bound is twice as high.
constexpr int64_t kMaxKeyBytes = int64_t{8} << 30;

using BatchPtr = std::shared_ptr<arrow::RecordBatch>;

// Bytes of the key columns, which have no nulls.
int64_t KeyValueBytes(const arrow::RecordBatch& batch, const std::vector<int>& columns) {
  int64_t bytes = 0;
  for (const int c : columns) {
    const arrow::ArrayData& data = *batch.column_data(c);
    bytes += exec::RowBytes(data, 0, data.length).value_or(0);
    if (data.buffers[0] != nullptr) bytes -= (data.length + 7) / 8;
  }
  return bytes;
}

// Bytes that are counted for each buffer, by address. Most have few batches to share them
// and there is one call per buffer of each put, so it must be cheap.
class CountedBuffers {
 public:
  // What is new of a buffer of `size` bytes.
  int64_t Add(const void* address, int64_t size) {
    if (2 * (used_ + 1) > slots_.size()) Grow();
    Slot& slot = Probe(address);
    if (slot.address == nullptr) {
      slot.address = address;
      ++used_;
    }
    const int64_t fresh = std::max<int64_t>(0, size - slot.size);
    slot.size += fresh;
    return fresh;
  }
  int64_t size_bytes() const {
    return static_cast<int64_t>(slots_.capacity() * sizeof(Slot));
  }

 private:
  struct Slot {
    const void* address = nullptr;
    int64_t size = 0;
  };

  Slot& Probe(const void* address) {
    const size_t mask = slots_.size() - 1;
    // Addresses are multiples of 64 as a rule.
    const auto hash = reinterpret_cast<uintptr_t>(address) * 0x9E3779B97F4A7C15u;
    size_t s = static_cast<size_t>(hash >> 20) & mask;
    while (slots_[s].address != nullptr && slots_[s].address != address) {
      s = (s + 1) & mask;
    }
    return slots_[s];
  }
  void Grow() {
    std::vector<Slot> old(std::max<size_t>(64, 2 * slots_.size()));
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.address != nullptr) Probe(slot.address) = slot;
    }
  }

  std::vector<Slot> slots_;
  size_t used_ = 0;
};

struct BatchSlot {
  BatchPtr batch;
  int64_t first_row = 0;
  // Of the tombstone column; null when no row of the batch is one.
  const uint8_t* tombstones = nullptr;
  int64_t tombstones_offset = 0;
};

}  // namespace

// One thread appends. Readers load `num_batches` (acquire) and touch only what belongs to
// batches below it, or what KeyMap leads them to; the writer stores it (release) when all
// of that is in place. Elements of the arrays never move.
struct Memtable::Impl {
  Impl(std::shared_ptr<const FreshSchema> s, uint64_t g)
      : schema(std::move(s)),
        generation(g),
        keyed(!schema->key_columns().empty()),
        tombstone_column(schema->storage()->num_fields() - 1) {}

  int64_t FirstRow(int64_t batch) const {
    return slots[static_cast<uint64_t>(batch)].first_row;
  }
  // The batch below `num_batches` that holds the row.
  const BatchSlot& SlotOf(int64_t row, int64_t num) const {
    int64_t low = 0, high = num;
    while (high - low > 1) {
      const int64_t middle = low + (high - low) / 2;
      if (FirstRow(middle) <= row) {
        low = middle;
      } else {
        high = middle;
      }
    }
    return slots[static_cast<uint64_t>(low)];
  }

  int64_t PinnedBytes(const arrow::ArrayData& data);

  const std::shared_ptr<const FreshSchema> schema;
  const uint64_t generation;
  const bool keyed;
  const int tombstone_column;

  AppendArray<BatchSlot, 6> slots;
  KeyMap::Links links;  // with a primary key only
  KeyMap map;

  std::atomic<int64_t> num_batches{0};
  std::atomic<int64_t> num_rows{0};
  std::atomic<int64_t> row_bytes{0};
  std::atomic<int64_t> resident_bytes{0};
  std::atomic<int64_t> key_bytes{0};
  std::atomic<bool> has_overrides{false};

  // The writer's own; `arena_bytes` is what the keys may have taken of the map's arena.
  CountedBuffers buffers;
  int64_t pinned_bytes = 0;
  int64_t arena_bytes = 0;
};

int64_t Memtable::Impl::PinnedBytes(const arrow::ArrayData& data) {
  int64_t bytes = 0;
  for (const auto& buffer : data.buffers) {
    if (buffer == nullptr) continue;
    // A slice keeps all of what it was cut from.
    const arrow::Buffer* root = buffer.get();
    while (root->parent() != nullptr) root = root->parent().get();
    if (root->address() == 0) continue;
    bytes += buffers.Add(reinterpret_cast<const void*>(root->address()),
                         std::max(root->size(), root->capacity()));
  }
  for (const auto& child : data.child_data) bytes += PinnedBytes(*child);
  if (data.dictionary != nullptr) bytes += PinnedBytes(*data.dictionary);
  return bytes;
}

Memtable::Memtable(std::shared_ptr<const FreshSchema> schema, uint64_t generation)
    : schema_(std::move(schema)),
      generation_(generation),
      impl_(std::make_shared<Impl>(schema_, generation)) {}
Memtable::~Memtable() = default;

Status Memtable::Append(const BatchVector& batches, Runtime* runtime) {
  Impl& impl = *impl_;
  const auto first_batch = impl.num_batches.load(std::memory_order_relaxed);
  const auto first_row = impl.num_rows.load(std::memory_order_relaxed);
  int64_t rows = first_row;
  int64_t arena_bytes = impl.arena_bytes;
  const bool build = impl.keyed && runtime != nullptr && first_row == 0;
  std::vector<EncodedKeys> keys(impl.keyed ? batches.size() : 0);
  std::vector<KeyTags> tags(build ? batches.size() : 0);
  std::vector<int64_t> sizes(batches.size());
  const auto look_at = [&](int64_t i) -> Status {
    const auto b = static_cast<size_t>(i);
    sizes[b] = exec::RowBytes(*batches[b]);
    if (!impl.keyed) return Status::OK();
    GLAIVE_ASSIGN_OR_RETURN(keys[b], EncodeKeys(*batches[b], schema_->key_columns()));
    if (build) tags[b] = TagKeys(keys[b]);
    return Status::OK();
  };
  for (const BatchPtr& batch : batches) {
    if (batch->num_columns() != schema_->storage()->num_fields() ||
        batch->column_data(impl.tombstone_column)->type->id() != arrow::Type::BOOL) {
      return InternalError("a batch of ", batch->num_columns(),
                           " columns is not of the memtable's schema");
    }
    rows += batch->num_rows();
  }
  const auto num_batches = static_cast<int64_t>(batches.size());
  if (runtime != nullptr) {
    GLAIVE_RETURN_NOT_OK(runtime->ParallelFor(num_batches, look_at));
  } else {
    for (int64_t b = 0; b < num_batches; ++b) GLAIVE_RETURN_NOT_OK(look_at(b));
  }
  for (const EncodedKeys& encoded : keys) {
    arena_bytes += static_cast<int64_t>(encoded.bytes.size()) + 12 * encoded.size();
  }
  if (static_cast<uint64_t>(rows) >= kMaxRows || arena_bytes > kMaxKeyBytes) {
    return InvalidInput("a memtable holds at most ", kMaxRows - 1, " rows and ",
                        kMaxKeyBytes, " bytes of primary keys: flush more often");
  }

  if (impl.keyed) impl.links.Grow(static_cast<uint64_t>(rows));
  if (build) {
    GLAIVE_ASSIGN_OR_RETURN(const int64_t known,
                            impl.map.Build(keys, tags, &impl.links, runtime));
    if (known > 0) impl.has_overrides.store(true, std::memory_order_relaxed);
  }
  // From here on nothing fails.
  impl.arena_bytes = arena_bytes;
  impl.slots.Grow(static_cast<uint64_t>(first_batch) + batches.size());
  int64_t row_bytes = 0, key_bytes = 0;
  int64_t row = first_row;
  for (size_t b = 0; b < batches.size(); ++b) {
    const BatchPtr& batch = batches[b];
    BatchSlot& slot = impl.slots[static_cast<uint64_t>(first_batch) + b];
    slot.batch = batch;
    slot.first_row = row;
    const arrow::ArrayData& tombstones = *batch->column_data(impl.tombstone_column);
    if (tombstones.length > 0 &&
        arrow::internal::CountSetBits(tombstones.buffers[1]->data(), tombstones.offset,
                                      tombstones.length) > 0) {
      slot.tombstones = tombstones.buffers[1]->data();
      slot.tombstones_offset = tombstones.offset;
    }
    if (impl.keyed) {
      bool overrides = false;
      int64_t done = build ? batch->num_rows() : 0;
      while (done < batch->num_rows()) {
        const auto at = static_cast<uint64_t>(row + done);
        const auto count = static_cast<int64_t>(std::min<uint64_t>(
            impl.links.Contiguous(at), static_cast<uint64_t>(batch->num_rows() - done)));
        overrides |= impl.map.PutAll(keys[b], done, count, static_cast<uint32_t>(at),
                                     &impl.links[at]) > 0;
        done += count;
      }
      if (overrides) impl.has_overrides.store(true, std::memory_order_relaxed);
      key_bytes += KeyValueBytes(*batch, schema_->key_columns());
    }
    row_bytes += sizes[b];
    for (int c = 0; c < batch->num_columns(); ++c) {
      impl.pinned_bytes += impl.PinnedBytes(*batch->column_data(c));
    }
    row += batch->num_rows();
  }
  const auto add = [](std::atomic<int64_t>& counter, int64_t value) {
    counter.store(counter.load(std::memory_order_relaxed) + value,
                  std::memory_order_relaxed);
  };
  add(impl.row_bytes, row_bytes);
  add(impl.key_bytes, key_bytes);
  int64_t resident =
      impl.pinned_bytes + impl.slots.size_bytes() + impl.buffers.size_bytes();
  if (impl.keyed) resident += impl.map.size_bytes() + impl.links.size_bytes();
  impl.resident_bytes.store(resident, std::memory_order_relaxed);
  impl.num_rows.store(rows, std::memory_order_release);
  impl.num_batches.store(first_batch + static_cast<int64_t>(batches.size()),
                         std::memory_order_release);
  return Status::OK();
}

int64_t Memtable::num_batches() const {
  return impl_->num_batches.load(std::memory_order_acquire);
}
int64_t Memtable::num_rows() const {
  return impl_->num_rows.load(std::memory_order_acquire);
}
int64_t Memtable::row_bytes() const {
  return impl_->row_bytes.load(std::memory_order_relaxed);
}
int64_t Memtable::resident_bytes() const {
  return impl_->resident_bytes.load(std::memory_order_relaxed);
}
int64_t Memtable::key_bytes() const {
  return impl_->key_bytes.load(std::memory_order_relaxed);
}
bool Memtable::has_overrides() const {
  return impl_->has_overrides.load(std::memory_order_relaxed);
}

struct Memtable::View::State {
  State(std::shared_ptr<const Impl> of, int64_t visible, int64_t rows)
      : impl(std::move(of)), num_batches(visible), num_rows(rows) {}

  std::unique_ptr<std::vector<uint8_t>> ComputeLive(int64_t* count) const;

  const std::shared_ptr<const Impl> impl;
  const int64_t num_batches;
  const int64_t num_rows;

  // Computed when first asked for, outside of the lock; who comes second drops his.
  mutable ForkSafeMutex mutex;
  mutable std::unique_ptr<const BatchVector> batches;        // guarded by mutex
  mutable std::unique_ptr<const std::vector<uint8_t>> live;  // guarded by mutex
  mutable int64_t num_live = 0;                              // guarded by mutex
};

std::unique_ptr<std::vector<uint8_t>> Memtable::View::State::ComputeLive(
    int64_t* count) const {
  const auto size = static_cast<size_t>((num_rows + 7) / 8);
  auto bits = std::make_unique<std::vector<uint8_t>>(size, uint8_t{0xFF});
  if (num_rows % 8 != 0) bits->back() = static_cast<uint8_t>((1 << (num_rows % 8)) - 1);
  const auto clear = [&](int64_t row) {
    (*bits)[static_cast<size_t>(row / 8)] &= static_cast<uint8_t>(~(1 << (row % 8)));
  };
  if (impl->keyed) {
    for (int64_t row = 0; row < num_rows;) {
      const auto at = static_cast<uint64_t>(row);
      const int64_t end =
          std::min(num_rows, row + static_cast<int64_t>(impl->links.Contiguous(at)));
      const KeyMap::Link* links = &impl->links[at];
      for (; row < end; ++row, ++links) {
        if (links->previous != KeyMap::kNoRow) clear(links->previous);
      }
    }
  }
  for (int64_t b = 0; b < num_batches; ++b) {
    const BatchSlot& slot = impl->slots[static_cast<uint64_t>(b)];
    if (slot.tombstones == nullptr) continue;
    for (int64_t i = 0; i < slot.batch->num_rows(); ++i) {
      if (arrow::bit_util::GetBit(slot.tombstones, slot.tombstones_offset + i)) {
        clear(slot.first_row + i);
      }
    }
  }
  *count = arrow::internal::CountSetBits(bits->data(), 0, num_rows);
  return bits;
}

Memtable::View Memtable::Read(int64_t visible_batches) const {
  const int64_t known = num_batches();
  visible_batches = std::clamp<int64_t>(visible_batches, 0, known);
  int64_t rows = 0;
  if (visible_batches > 0) {
    const BatchSlot& last = impl_->slots[static_cast<uint64_t>(visible_batches) - 1];
    rows = last.first_row + last.batch->num_rows();
  }
  View view;
  view.state_ = std::make_shared<View::State>(impl_, visible_batches, rows);
  return view;
}

uint64_t Memtable::View::generation() const { return state_->impl->generation; }
const FreshSchema& Memtable::View::schema() const { return *state_->impl->schema; }
const std::shared_ptr<const FreshSchema>& Memtable::View::shared_schema() const {
  return state_->impl->schema;
}
int64_t Memtable::View::num_rows() const { return state_->num_rows; }

const BatchVector& Memtable::View::batches() const {
  const State& state = *state_;
  {
    std::lock_guard lock(state.mutex);
    if (state.batches != nullptr) return *state.batches;
  }
  auto batches = std::make_unique<BatchVector>();
  batches->reserve(static_cast<size_t>(state.num_batches));
  for (int64_t b = 0; b < state.num_batches; ++b) {
    batches->push_back(state.impl->slots[static_cast<uint64_t>(b)].batch);
  }
  std::lock_guard lock(state.mutex);
  if (state.batches == nullptr) state.batches = std::move(batches);
  return *state.batches;
}

int64_t Memtable::View::Find(std::string_view key) const {
  const Impl& impl = *state_->impl;
  if (!impl.keyed) return -1;
  int64_t row = impl.map.Find(key);
  while (row >= state_->num_rows) {
    const uint32_t previous = impl.links[static_cast<uint64_t>(row)].previous;
    row = previous == KeyMap::kNoRow ? -1 : int64_t{previous};
  }
  return row;
}

bool Memtable::View::IsTombstone(int64_t row) const {
  const BatchSlot& slot = state_->impl->SlotOf(row, state_->num_batches);
  return slot.tombstones != nullptr &&
         arrow::bit_util::GetBit(slot.tombstones,
                                 slot.tombstones_offset + row - slot.first_row);
}

BatchPtr Memtable::View::Row(int64_t row) const {
  const BatchSlot& slot = state_->impl->SlotOf(row, state_->num_batches);
  if (slot.batch->num_rows() == 1) return slot.batch;
  return slot.batch->Slice(row - slot.first_row, 1);
}

void Memtable::View::VisitKeys(
    int64_t first_row, const std::function<void(std::string_view key)>& visit) const {
  const Impl& impl = *state_->impl;
  if (!impl.keyed) return;
  // The newest row of a key stands for it. Tombstones have keys as well.
  std::vector<uint8_t> replaced(static_cast<size_t>(state_->num_rows - first_row), 0);
  for (int64_t row = first_row; row < state_->num_rows; ++row) {
    const uint32_t previous = impl.links[static_cast<uint64_t>(row)].previous;
    if (previous != KeyMap::kNoRow && int64_t{previous} >= first_row) {
      replaced[static_cast<size_t>(previous - first_row)] = 1;
    }
  }
  for (int64_t row = first_row; row < state_->num_rows; ++row) {
    if (replaced[static_cast<size_t>(row - first_row)] != 0) continue;
    visit(impl.map.key(impl.links[static_cast<uint64_t>(row)].key));
  }
}

const std::vector<uint8_t>& Memtable::View::live() const {
  const State& state = *state_;
  {
    std::lock_guard lock(state.mutex);
    if (state.live != nullptr) return *state.live;
  }
  int64_t count = 0;
  auto live = state.ComputeLive(&count);
  std::lock_guard lock(state.mutex);
  if (state.live == nullptr) {
    state.num_live = count;
    state.live = std::move(live);
  }
  return *state.live;
}

int64_t Memtable::View::num_live() const {
  live();
  std::lock_guard lock(state_->mutex);
  return state_->num_live;
}

std::vector<uint32_t> Memtable::View::Superseded() const {
  std::vector<uint32_t> rows;
  const Impl& impl = *state_->impl;
  if (!impl.keyed) return rows;
  for (int64_t row = 0; row < state_->num_rows; ++row) {
    const uint32_t previous = impl.links[static_cast<uint64_t>(row)].previous;
    if (previous != KeyMap::kNoRow) rows.push_back(previous);
  }
  std::sort(rows.begin(), rows.end());
  return rows;
}

int64_t Memtable::View::key_bytes() const {
  const Impl& impl = *state_->impl;
  if (!impl.keyed) return 0;
  int64_t bytes = 0;
  for (int64_t b = 0; b < state_->num_batches; ++b) {
    bytes += KeyValueBytes(*impl.slots[static_cast<uint64_t>(b)].batch,
                           impl.schema->key_columns());
  }
  return bytes;
}

int64_t Memtable::View::row_bytes() const {
  int64_t bytes = 0;
  for (int64_t b = 0; b < state_->num_batches; ++b) {
    bytes += exec::RowBytes(*state_->impl->slots[static_cast<uint64_t>(b)].batch);
  }
  return bytes;
}

}  // namespace glaive::memwal
