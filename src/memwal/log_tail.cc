#include "memwal/log_tail.h"

#include <algorithm>
#include <string>
#include <utility>

#include <arrow/record_batch.h>
#include <arrow/type.h>

#include "io/object_store.h"
#include "memwal/names.h"

namespace glaive::memwal {

Result<bool> LogTail::StillHolds(const table::TableEnv& env,
                                 const ShardManifest& manifest,
                                 const FreshSchema& schema) const {
  const uint64_t after = manifest.replay_after_wal_entry_position();
  if (next_position_ <= after) return false;
  // Parts end where memtables were flushed, unless the writer cut them otherwise.
  bool first = true;
  for (const Part& part : parts_) {
    if (part.last_position <= after) continue;
    if (part.first_position <= after) return false;
    if (first && part.rows->generation() != manifest.current_generation()) return false;
    first = false;
  }
  if (first && next_position_ != after + 1) return false;
  if (schema_ == nullptr || !schema_->wal()->Equals(*schema.wal(), true)) return false;
  if (newest_) {
    auto info = env.store->Head(WalEntryPath(shard_, next_position_ - 1));
    if (KindOf(info.status()) == ErrorKind::kNotFound) return false;
    GLAIVE_RETURN_NOT_OK(info.status());
    return std::pair(info->size_bytes, info->modified_us) == *newest_;
  }
  return true;
}

Result<std::vector<Memtable::View>> LogTail::Read(
    const table::TableEnv& env, const ShardManifest& manifest,
    std::shared_ptr<const FreshSchema> schema) {
  GLAIVE_ASSIGN_OR_RETURN(shard_, ShardId::FromBytes(manifest.shard_id().uuid()));
  GLAIVE_ASSIGN_OR_RETURN(const bool holds, StillHolds(env, manifest, *schema));
  const uint64_t after = manifest.replay_after_wal_entry_position();
  if (holds) {
    std::erase_if(parts_, [&](const Part& part) { return part.last_position <= after; });
  } else {
    parts_.clear();
    schema_ = std::move(schema);
    next_position_ = after + 1;
    newest_.reset();
  }
  const WalReader log(env.store, shard_);
  auto tail = log.ReadFrom(next_position_);
  Status added = tail.status();
  for (size_t i = 0; added.ok() && i < tail->entries.size(); ++i) {
    const WalEntry& entry = tail->entries[i];
    if (parts_.empty()) {
      Part part;
      part.rows = std::make_unique<Memtable>(
          schema_, std::max<uint64_t>(1, manifest.current_generation()));
      part.first_position = entry.position;
      parts_.push_back(std::move(part));
    }
    added = Add(entry, env.store->root() + "/" + WalEntryPath(shard_, entry.position));
    next_position_ = entry.position + 1;
  }
  if (added.ok() && !tail->entries.empty()) {
    auto info = env.store->Head(WalEntryPath(shard_, next_position_ - 1));
    if (info.ok()) {
      newest_ = {info->size_bytes, info->modified_us};
    } else if (KindOf(info.status()) != ErrorKind::kNotFound) {
      added = info.status();
    }
  }
  if (!added.ok()) {
    parts_.clear();
    next_position_ = 0;
    return added;
  }
  std::vector<Memtable::View> views;
  for (auto part = parts_.rbegin(); part != parts_.rend(); ++part) {
    if (part->rows->num_rows() == 0) continue;
    views.push_back(part->rows->Read(part->rows->num_batches()));
  }
  return views;
}

Status LogTail::Add(const WalEntry& entry, const std::string& name) {
  if (entry.sentinel || entry.batches.empty()) {
    parts_.back().last_position = entry.position;
    return Status::OK();
  }
  const uint64_t active = parts_.back().rows->generation();
  const uint64_t generation = entry.header.generation.value_or(active);
  if (generation < active) {
    if (parts_.size() > 1 || parts_.back().rows->num_rows() > 0) {
      return Corruption("WAL entry ", name, " has generation ", generation,
                        " below the generation ", active, " replayed before it");
    }
    // Flushed already.
    parts_.back().last_position = entry.position;
    return Status::OK();
  }
  if (generation > active && parts_.back().rows->num_rows() > 0) {
    Part part;
    part.rows = std::make_unique<Memtable>(schema_, generation);
    part.first_position = entry.position;
    parts_.push_back(std::move(part));
  }
  BatchVector rows;
  for (const auto& batch : entry.batches) {
    auto conformed = schema_->Conform(*batch);
    if (!conformed.ok()) return WithContext(conformed.status(), "WAL entry " + name);
    rows.push_back(std::move(*conformed));
  }
  GLAIVE_RETURN_NOT_OK(parts_.back().rows->Append(rows));
  parts_.back().last_position = entry.position;
  return Status::OK();
}

int64_t LogTail::resident_bytes() const {
  int64_t bytes = 0;
  for (const Part& part : parts_) bytes += part.rows->resident_bytes();
  return bytes;
}

}  // namespace glaive::memwal
