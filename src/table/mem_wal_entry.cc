#include "table/mem_wal_entry.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "format/memwal.pb.h"
#include "format/table.pb.h"
#include "io/object_store.h"
#include "table/index_section.h"
#include "table/names.h"

namespace glaive::table {
namespace {

using lance::table::CompactedSsTable;
using lance::table::IndexMetadata;
using lance::table::MemWalIndexDetails;

constexpr size_t kUuidBytes = 16;

int64_t NowMs() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

Status CheckMarkers(const google::protobuf::RepeatedPtrField<CompactedSsTable>& markers) {
  std::set<std::string_view> shards;
  for (const CompactedSsTable& marker : markers) {
    const std::string& shard = marker.shard_id().uuid();
    if (shard.size() != kUuidBytes) {
      return InvalidInput("SSTable compaction progress names a shard by ", shard.size(),
                          " bytes; a shard id has ", kUuidBytes);
    }
    if (!shards.insert(shard).second) {
      return InvalidInput("Duplicate shard ", FormatUuid(shard),
                          " in one SSTable compaction update; each shard may advance at "
                          "most once per transaction");
    }
  }
  return Status::OK();
}

Status Raise(const CompactedSsTable& marker, MemWalIndexDetails* details) {
  CompactedSsTable* recorded = nullptr;
  for (CompactedSsTable& each : *details->mutable_compacted_sstables()) {
    if (each.shard_id().uuid() != marker.shard_id().uuid()) continue;
    if (recorded == nullptr || recorded->generation() < each.generation()) {
      recorded = &each;
    }
  }
  if (recorded == nullptr) {
    *details->add_compacted_sstables() = marker;
    return Status::OK();
  }
  if (marker.generation() <= recorded->generation()) {
    return InvalidInput(
        "Stale SSTable compaction for shard ", FormatUuid(marker.shard_id().uuid()),
        ": proposed generation ", marker.generation(),
        " is not greater than the recorded generation ", recorded->generation());
  }
  recorded->set_generation(marker.generation());
  return Status::OK();
}

}  // namespace

Status IndexEditor::RecordCompacted(
    const google::protobuf::RepeatedPtrField<CompactedSsTable>& markers,
    uint64_t version) {
  if (markers.empty()) return Status::OK();
  GLAIVE_RETURN_NOT_OK(CheckMarkers(markers));
  GLAIVE_RETURN_NOT_OK(Load());
  auto* indices = section_->mutable_indices();
  const auto entry = std::find_if(
      indices->begin(), indices->end(),
      [](const IndexMetadata& index) { return index.name() == kMemWalIndex; });
  if (entry == indices->end()) {
    return InvalidInput(
        "Cannot record SSTable compaction progress: the __lance_mem_wal system index "
        "does not exist on this table");
  }
  MemWalIndexDetails details;
  if (!details.ParseFromString(entry->index_details().value())) {
    return Corruption("the details of index ", kMemWalIndex, " do not decode");
  }
  for (const CompactedSsTable& marker : markers) {
    GLAIVE_RETURN_NOT_OK(Raise(marker, &details));
  }
  entry->mutable_index_details()->set_value(details.SerializeAsString());
  entry->mutable_uuid()->set_uuid(NewUuidBytes());
  entry->set_dataset_version(version);
  entry->set_created_at(static_cast<uint64_t>(NowMs()));
  changed_ = true;
  return Status::OK();
}

namespace {

// Nothing when there is no entry.
Result<std::optional<IndexMetadata>> FindEntry(const Dataset& dataset) {
  const auto serialized = dataset.index_section();
  std::optional<IndexMetadata> entry;
  if (serialized == nullptr) return entry;
  lance::table::IndexSection section;
  if (!section.ParseFromString(*serialized)) {
    return Corruption("the index section of version ", dataset.version(), " of table ",
                      dataset.env().store->root(), " does not decode");
  }
  for (IndexMetadata& index : *section.mutable_indices()) {
    if (index.name() == kMemWalIndex) entry = std::move(index);
  }
  return entry;
}

}  // namespace

Result<bool> HasMemWal(const Dataset& dataset) {
  GLAIVE_ASSIGN_OR_RETURN(const auto entry, FindEntry(dataset));
  return entry.has_value();
}

Result<uint64_t> RecordedGeneration(const Dataset& dataset, std::string_view shard) {
  GLAIVE_ASSIGN_OR_RETURN(const auto entry, FindEntry(dataset));
  if (!entry) return uint64_t{0};
  MemWalIndexDetails details;
  if (!details.ParseFromString(entry->index_details().value())) {
    return Corruption("the details of index ", kMemWalIndex, " do not decode");
  }
  uint64_t recorded = 0;
  for (const CompactedSsTable& marker : details.compacted_sstables()) {
    if (marker.shard_id().uuid() == shard) {
      recorded = std::max<uint64_t>(recorded, marker.generation());
    }
  }
  return recorded;
}

Status CheckNoMemWal(const Dataset& dataset, const std::string& what,
                     const std::string& why) {
  GLAIVE_ASSIGN_OR_RETURN(const bool has, HasMemWal(dataset));
  if (!has) return Status::OK();
  return InvalidInput("cannot ", what, " a table with a MemWAL attached: ", why);
}

}  // namespace glaive::table
