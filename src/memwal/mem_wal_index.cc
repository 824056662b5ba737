#include "memwal/mem_wal_index.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <string_view>
#include <utility>

#include "format/table.pb.h"
#include "format/transaction.pb.h"
#include "io/object_store.h"
#include "memwal/fresh_schema.h"
#include "memwal/maintained_indices.h"
#include "memwal/sharding.h"
#include "runtime/runtime.h"
#include "table/index_section.h"
#include "table/names.h"

namespace glaive::memwal {
namespace {

using lance::table::IndexMetadata;

constexpr char kIndexName[] = "__lance_mem_wal";
constexpr char kTypeUrl[] = "/lance.table.MemWalIndexDetails";
constexpr std::string_view kTypeSuffix = "MemWalIndexDetails";
constexpr int kMaxAttempts = 10;
constexpr std::string_view kMaintainable[] = {"BTreeIndexDetails", "VectorIndexDetails",
                                              "InvertedIndexDetails"};

// What one index section says. Kept with the bytes that it was read from, whose address
// is the key in the cache.
struct CachedDetails {
  std::shared_ptr<const std::string> section;
  std::shared_ptr<const MemWalDetails> details;
};

const IndexMetadata* FindEntry(const lance::table::IndexSection& section) {
  for (const IndexMetadata& index : section.indices()) {
    if (index.name() == kIndexName) return &index;
  }
  return nullptr;
}

Result<std::shared_ptr<const MemWalDetails>> ParseDetails(const table::Dataset& base,
                                                          const IndexMetadata& entry) {
  const auto& any = entry.index_details();
  if (!std::string_view(any.type_url()).ends_with(kTypeSuffix)) {
    return NotSupported("the index ", kIndexName, " of table '", base.env().store->root(),
                        "' has details of type '", any.type_url(),
                        "', which this version does not know; use a newer one");
  }
  auto details = std::make_shared<MemWalDetails>();
  bool valid = details->ParseFromString(any.value());
  for (const auto& compacted : details->compacted_sstables()) {
    valid = valid && compacted.shard_id().uuid().size() == 16;
  }
  if (!valid) {
    return Corruption("the details of index ", kIndexName, " of table '",
                      base.env().store->root(), "' are damaged");
  }
  return std::shared_ptr<const MemWalDetails>(std::move(details));
}

Status CheckMaintainable(const table::Dataset& base,
                         const lance::table::IndexSection& section,
                         const std::string& name) {
  const auto found =
      std::find_if(section.indices().begin(), section.indices().end(),
                   [&](const IndexMetadata& index) { return index.name() == name; });
  if (found == section.indices().end()) {
    return InvalidInput("Index '", name,
                        "' from maintained_indexes not found on dataset");
  }
  const std::string& url = found->index_details().type_url();
  const std::string_view type = std::string_view(url).substr(url.rfind('.') + 1);
  for (const std::string_view known : kMaintainable) {
    if (type != known) continue;
    if (type == "VectorIndexDetails") return CheckVectorIndex(base, *found);
    if (type == "InvertedIndexDetails") return CheckTextIndex(base, *found);
    return Status::OK();
  }
  return InvalidInput("index '", name, "' has type ", url,
                      ", which no registered plugin maintains. Supported: "
                      "[BTreeIndexDetails, VectorIndexDetails, InvertedIndexDetails]");
}

Result<MemWalDetails> MakeDetails(const table::Dataset& base,
                                  const InitializeOptions& options) {
  GLAIVE_ASSIGN_OR_RETURN(const auto section, table::ReadIndexSection(base));
  MemWalDetails details;
  GLAIVE_RETURN_NOT_OK(AddShardingSpec(base.schema(), options.sharding, options.column,
                                       options.num_buckets, &details));
  details.set_maintain_all_indexes(!options.maintained_indexes.has_value());
  if (options.maintained_indexes) {
    for (const std::string& name : *options.maintained_indexes) {
      GLAIVE_RETURN_NOT_OK(CheckMaintainable(base, section, name));
      details.add_maintained_indexes(name);
    }
  }
  for (const auto& [key, value] : options.writer_config_defaults) {
    (*details.mutable_writer_config_defaults())[key] = value;
  }
  // Types of keys that cannot be, before anybody relies on the table.
  GLAIVE_RETURN_NOT_OK(FreshSchema::Make(base).status());
  return details;
}

uint64_t NowMillis() {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(
                                   std::chrono::system_clock::now().time_since_epoch())
                                   .count());
}

lance::table::Transaction InstallTransaction(const table::Dataset& base,
                                             const MemWalDetails& details) {
  lance::table::Transaction transaction;
  transaction.set_read_version(static_cast<uint64_t>(base.version()));
  IndexMetadata* entry = transaction.mutable_create_index()->add_new_indices();
  entry->mutable_uuid()->set_uuid(table::NewUuidBytes());
  entry->set_name(kIndexName);
  entry->set_dataset_version(static_cast<uint64_t>(base.version()));
  entry->mutable_index_details()->set_type_url(kTypeUrl);
  entry->mutable_index_details()->set_value(details.SerializeAsString());
  entry->set_index_version(0);
  entry->set_created_at(NowMillis());
  return transaction;
}

bool IsRetryable(const Status& status) {
  return KindOf(status) == ErrorKind::kRetryableConflict;
}

}  // namespace

Result<std::shared_ptr<const MemWalDetails>> ReadDetails(const table::Dataset& base) {
  const auto bytes = base.index_section();
  if (bytes == nullptr) return std::shared_ptr<const MemWalDetails>();
  Cache& cache = base.env().runtime->cache();
  const std::string key =
      "memwal:" + std::to_string(reinterpret_cast<uintptr_t>(bytes.get()));
  if (auto cached = cache.Get<CachedDetails>(key)) return cached->details;
  GLAIVE_ASSIGN_OR_RETURN(const auto section, table::ReadIndexSection(base));
  auto value = std::make_shared<CachedDetails>();
  value->section = bytes;
  if (const IndexMetadata* entry = FindEntry(section)) {
    GLAIVE_ASSIGN_OR_RETURN(value->details, ParseDetails(base, *entry));
  }
  cache.Put(key, value, static_cast<int64_t>(sizeof(CachedDetails) + 2 * bytes->size()));
  return value->details;
}

Result<std::vector<std::string>> AllMaintainableIndices(const table::Dataset& base) {
  GLAIVE_ASSIGN_OR_RETURN(const auto section, table::ReadIndexSection(base));
  std::set<std::string> names;
  for (const IndexMetadata& index : section.indices()) {
    if (!index.name().starts_with("__")) names.insert(index.name());  // not the system's
  }
  for (const std::string& name : names) {
    const Status status = CheckMaintainable(base, section, name);
    if (status.ok()) continue;
    std::string choice;
    for (const std::string& each : names) choice += (choice.empty() ? "" : ", ") + each;
    return MakeError(KindOf(status), "cannot maintain every index on this table: " +
                                         std::string(status.message()) +
                                         ". Set maintained_indexes explicitly to choose "
                                         "from [" +
                                         choice + "]");
  }
  return std::vector<std::string>(names.begin(), names.end());
}

uint64_t CompactedGeneration(const MemWalDetails& details, const ShardId& shard) {
  uint64_t generation = 0;
  for (const auto& compacted : details.compacted_sstables()) {
    if (compacted.shard_id().uuid() == shard.bytes()) {
      generation = std::max(generation, compacted.generation());
    }
  }
  return generation;
}

Result<table::Dataset::Ptr> Initialize(const table::Dataset::Ptr& base,
                                       const InitializeOptions& options) {
  Status conflict;
  for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
    GLAIVE_ASSIGN_OR_RETURN(const table::Dataset::Ptr latest, base->Latest());
    GLAIVE_ASSIGN_OR_RETURN(const auto present, ReadDetails(*latest));
    if (present != nullptr) {
      return InvalidInput("MemWAL is already initialized on this dataset.");
    }
    GLAIVE_ASSIGN_OR_RETURN(const MemWalDetails details, MakeDetails(*latest, options));
    auto committed = latest->Commit(InstallTransaction(*latest, details));
    if (committed.ok() || !IsRetryable(committed.status())) return committed;
    conflict = committed.status();  // perhaps another one was first
  }
  return conflict;
}

Result<table::Dataset::Ptr> Drop(const table::Dataset::Ptr& base) {
  Status conflict;
  for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
    GLAIVE_ASSIGN_OR_RETURN(const table::Dataset::Ptr latest, base->Latest());
    GLAIVE_ASSIGN_OR_RETURN(const auto section, table::ReadIndexSection(*latest));
    const IndexMetadata* entry = FindEntry(section);
    if (entry == nullptr) {
      if (attempt > 0) return latest;  // somebody else dropped it meanwhile
      return InvalidInput("MemWAL is not initialized on this dataset");
    }
    lance::table::Transaction transaction;
    transaction.set_read_version(static_cast<uint64_t>(latest->version()));
    *transaction.mutable_create_index()->add_removed_indices() = *entry;
    auto committed = latest->Commit(std::move(transaction));
    if (committed.ok()) {
      // Progress that was recorded meanwhile gives the entry another uuid.
      GLAIVE_ASSIGN_OR_RETURN(const auto left, ReadDetails(**committed));
      if (left == nullptr) return committed;
    } else if (!IsRetryable(committed.status())) {
      return committed;
    } else {
      conflict = committed.status();
    }
  }
  if (!conflict.ok()) return conflict;
  return TooManyRetries("cannot drop the index ", kIndexName, " of table '",
                        base->env().store->root(), "': it changes all the time");
}

Result<table::Dataset::Ptr> CommitMarkers(const table::Dataset::Ptr& base,
                                          const std::vector<CompactedMarker>& markers) {
  std::set<ShardId> shards;
  lance::table::Transaction transaction;
  transaction.set_read_version(static_cast<uint64_t>(base->version()));
  auto* state = transaction.mutable_update_mem_wal_state();
  for (const CompactedMarker& marker : markers) {
    if (!shards.insert(marker.shard).second) {
      return InvalidInput("Duplicate shard ", marker.shard.ToString(),
                          " in one SSTable compaction update; name each shard once");
    }
    auto* compacted = state->add_compacted_sstables();
    compacted->mutable_shard_id()->set_uuid(std::string(marker.shard.bytes()));
    compacted->set_generation(marker.generation);
  }
  return base->Commit(std::move(transaction));
}

}  // namespace glaive::memwal
