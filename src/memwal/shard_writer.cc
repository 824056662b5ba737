#include "memwal/shard_writer.h"

#include <algorithm>

#include <arrow/record_batch.h>
#include <arrow/util/byte_size.h>

#include "io/object_store.h"
#include "memwal/shard_writer_impl.h"
#include "runtime/fork.h"

namespace glaive::memwal {
namespace {

// What a stream is put in at a time, at most.
constexpr int64_t kStreamBytes = int64_t{16} << 20;

Status CheckBatches(const BatchVector& batches, const char* list, const char* item) {
  if (batches.empty()) return InvalidInput("Cannot ", list);
  for (size_t i = 0; i < batches.size(); ++i) {
    if (batches[i] == nullptr || batches[i]->num_rows() == 0) {
      return InvalidInput(item, " ", i, " is empty");
    }
  }
  return Status::OK();
}

int64_t SizeOf(const arrow::RecordBatch& batch) {
  const auto shown = arrow::util::ReferencedBufferSize(batch);
  return shown.ok() ? *shown : arrow::util::TotalBufferSize(batch);
}

}  // namespace

const ShardId& ShardWriter::shard() const { return impl_->shard_; }
uint64_t ShardWriter::epoch() const { return impl_->epoch_; }
const table::Dataset::Ptr& ShardWriter::base() const { return impl_->base_; }
const FreshSchema& ShardWriter::schema() const { return *impl_->schema_; }
const WriterConfig& ShardWriter::config() const { return impl_->config_; }

Status ShardWriter::Put(const BatchVector& batches) {
  GLAIVE_RETURN_NOT_OK(impl_->CheckUsable());
  GLAIVE_RETURN_NOT_OK(CheckBatches(batches, "write empty batch list", "Batch"));
  BatchVector rows;
  rows.reserve(batches.size());
  int64_t num_rows = 0;
  for (size_t i = 0; i < batches.size(); ++i) {
    GLAIVE_ASSIGN_OR_RETURN(auto shaped,
                            impl_->schema_->Shape(*batches[i], static_cast<int>(i)));
    num_rows += shaped->num_rows();
    rows.push_back(std::move(shaped));
  }
  return impl_->Insert(std::move(rows), num_rows);
}

Status ShardWriter::Delete(const BatchVector& keys) {
  GLAIVE_RETURN_NOT_OK(impl_->CheckUsable());
  if (impl_->schema_->key_columns().empty()) {
    return InvalidInput(
        "delete requires a primary key, but this shard has no primary key columns "
        "(table ",
        impl_->base_->env().store->root(), ")");
  }
  GLAIVE_RETURN_NOT_OK(CheckBatches(keys, "delete with empty key list", "Key batch"));
  BatchVector rows;
  rows.reserve(keys.size());
  int64_t num_rows = 0;
  for (const auto& batch : keys) {
    GLAIVE_ASSIGN_OR_RETURN(auto shaped, impl_->schema_->ShapeTombstones(*batch));
    num_rows += shaped->num_rows();
    rows.push_back(std::move(shaped));
  }
  return impl_->Insert(std::move(rows), num_rows);
}

Result<int64_t> ShardWriter::PutStream(arrow::RecordBatchReader& reader) {
  GLAIVE_RETURN_NOT_OK(impl_->CheckUsable());
  const int64_t max_rows = std::max<int64_t>(impl_->config_.max_memtable_rows, 1);
  const int64_t max_batches = impl_->config_.max_memtable_batches;
  const int64_t max_bytes = std::min(kStreamBytes, impl_->config_.max_memtable_size);
  int64_t stored = 0;
  int64_t rows = 0;
  int64_t bytes = 0;
  BatchVector group;
  const auto put = [&]() -> Status {
    if (group.empty()) return Status::OK();
    GLAIVE_RETURN_NOT_OK(Put(group));
    stored += rows;
    group.clear();
    rows = bytes = 0;
    return Status::OK();
  };
  const auto all = [&]() -> Status {
    while (true) {
      GLAIVE_ASSIGN_OR_RETURN(const auto batch, reader.Next());
      if (batch == nullptr) return put();
      if (batch->num_rows() == 0) continue;
      const int64_t size = SizeOf(*batch);
      const int64_t per_row = size / batch->num_rows() + 1;
      const int64_t most = std::clamp<int64_t>(max_bytes / per_row, 1, max_rows);
      for (int64_t at = 0; at < batch->num_rows(); at += most) {
        const auto slice = batch->Slice(at, most);
        if (rows + slice->num_rows() > max_rows ||
            bytes + slice->num_rows() * per_row > max_bytes ||
            static_cast<int64_t>(group.size()) >= max_batches) {
          GLAIVE_RETURN_NOT_OK(put());
        }
        group.push_back(slice);
        rows += slice->num_rows();
        bytes += slice->num_rows() * per_row;
      }
    }
  };
  if (Status status = all(); !status.ok()) {
    return stored == 0 ? status
                       : WithContext(status, "after the first " + std::to_string(stored) +
                                                 " rows, which were stored");
  }
  return stored;
}

Result<bool> ShardWriter::Flush() { return impl_->Flush(); }
Status ShardWriter::Close() { return impl_->Close(); }
void ShardWriter::Abort() { impl_->Abort(); }

bool ShardWriter::is_closed() const {
  if (!impl_->CheckProcess().ok()) return true;
  Impl::Lock lock(impl_->mutex_);
  return impl_->closed_;
}

Status ShardWriter::health() const {
  GLAIVE_RETURN_NOT_OK(impl_->CheckProcess());
  Impl::Lock lock(impl_->mutex_);
  return impl_->health_;
}

void ShardWriter::set_on_flush(std::function<void(const ShardManifest&)> callback) {
  if (!impl_->CheckProcess().ok()) return;
  Impl::Lock lock(impl_->mutex_);
  impl_->on_flush_ = std::move(callback);
  impl_->has_on_flush_ = impl_->on_flush_ != nullptr;
}

bool ShardWriter::has_on_flush() const { return impl_->has_on_flush_; }

Result<WriterView> ShardWriter::View() {
  GLAIVE_RETURN_NOT_OK(impl_->CheckProcess());
  struct Source {
    SlotPtr slot;
    int64_t batches = 0;
    std::optional<Memtable::View> view;
  };
  std::vector<Source> sources;
  {
    Impl::Lock lock(impl_->mutex_);
    GLAIVE_RETURN_NOT_OK(impl_->UsableLocked());
    for (auto slot = impl_->slots_.rbegin(); slot != impl_->slots_.rend(); ++slot) {
      const int64_t visible = (*slot)->visible(impl_->config_.durable_write);
      if (visible == 0) continue;
      sources.push_back({*slot, visible, {}});
      if ((*slot)->view_batches == visible) sources.back().view = (*slot)->view;
    }
  }
  for (Source& source : sources) {
    if (!source.view) source.view = source.slot->memtable.Read(source.batches);
  }
  // The manifest after the memtables: what left memory meanwhile is named in it.
  WriterView result;
  {
    Impl::Lock lock(impl_->mutex_);
    result.manifest = impl_->manifest_;
  }
  io::ObjectStore& store = *impl_->base_->env().store;
  const auto exists = [&](uint64_t version) {
    return store.Exists(ShardManifestPath(impl_->shard_, version));
  };
  // Nothing is newer when the next name is free, unless that one is removed already.
  GLAIVE_ASSIGN_OR_RETURN(bool newer, exists(result.manifest->version() + 1));
  if (!newer) {
    GLAIVE_ASSIGN_OR_RETURN(const bool kept, exists(result.manifest->version()));
    newer = !kept;
  }
  if (newer) {
    GLAIVE_ASSIGN_OR_RETURN(ShardManifest latest,
                            impl_->manifests_->ReadLatestAfter(*result.manifest));
    if (latest.writer_epoch() > impl_->epoch_) {
      // The other writer's generations have the numbers of our memtables.
      impl_->Poison(FencedError(impl_->shard_, impl_->epoch_, latest.writer_epoch()));
    }
    result.manifest = std::make_shared<const ShardManifest>(std::move(latest));
  }
  Impl::Lock lock(impl_->mutex_);
  GLAIVE_RETURN_NOT_OK(impl_->health_);
  if (result.manifest->version() > impl_->manifest_->version()) {
    impl_->manifest_ = result.manifest;
  }
  for (Source& source : sources) {
    if (source.batches > source.slot->view_batches) {
      source.slot->view = source.view;
      source.slot->view_batches = source.batches;
    }
    result.memtables.push_back(std::move(*source.view));
  }
  return result;
}

WriterStats ShardWriter::stats() const {
  if (!impl_->CheckProcess().ok()) return {};
  Impl::Lock lock(impl_->mutex_);
  return impl_->stats_;
}

MemtableStats ShardWriter::memtable_stats() const {
  if (!impl_->CheckProcess().ok()) return {};
  Impl::Lock lock(impl_->mutex_);
  const MemtableSlot& active = *impl_->slots_.back();
  MemtableStats stats;
  stats.generation = active.memtable.generation();
  stats.row_count = active.rows;
  stats.batch_count = active.appended;
  stats.estimated_size_bytes = active.memtable.row_bytes();
  stats.index_bytes = std::max<int64_t>(
      active.memtable.resident_bytes() - active.memtable.row_bytes(), 0);
  stats.durable_batch_count = impl_->durable_batches_;
  stats.global_offset = active.first_batch;
  for (const SlotPtr& slot : impl_->slots_) {
    stats.pending_wal_batch_count += slot->appended - slot->durable;
    stats.pending_wal_row_count += slot->pending_rows;
    stats.pending_wal_estimated_bytes += slot->pending_bytes;
    if (slot->sealed) {
      stats.frozen_count++;
      stats.frozen_bytes += slot->sealed_bytes;
    }
  }
  return stats;
}

}  // namespace glaive::memwal
