// `glaive dump` of the LSM write path: entries of the log and manifests of shards.
#include <filesystem>
#include <iostream>

#include <arrow/buffer.h>
#include <arrow/pretty_print.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>

#include "memwal/names.h"
#include "memwal/shard_manifest.h"
#include "memwal/wal_entry.h"
#include "tools/commands.h"

namespace glaive::tools {
namespace {

void PrintNumber(const std::filesystem::path& path, const char* what) {
  const auto number = memwal::ParseBitReversed(path.filename().string());
  if (number) std::cout << ", " << what << " " << *number;
}

}  // namespace

Status DumpWalEntry(const std::string& path) {
  GLAIVE_ASSIGN_OR_RETURN(const auto bytes, ReadLocalFile(path));
  const uint64_t position =
      memwal::ParseBitReversed(std::filesystem::path(path).filename().string())
          .value_or(0);
  GLAIVE_ASSIGN_OR_RETURN(const auto entry,
                          memwal::DecodeWalEntry(position, path, bytes));
  std::cout << path << ": log entry";
  PrintNumber(path, "position");
  std::cout << ", " << entry.size_bytes << " bytes\nwriter epoch "
            << entry.header.writer_epoch;
  if (entry.header.generation) std::cout << ", generation " << *entry.header.generation;
  std::cout << (entry.sentinel ? ", fence sentinel\n" : "\n");
  if (entry.schema->num_fields() > 0) {
    std::cout << "schema:\n" << entry.schema->ToString(/*show_metadata=*/true) << "\n";
  }
  for (size_t i = 0; i < entry.batches.size(); ++i) {
    const auto& batch = *entry.batches[i];
    std::cout << "batch " << i << ": " << batch.num_rows() << " rows\n";
    arrow::PrettyPrintOptions options = arrow::PrettyPrintOptions::Defaults();
    options.window = 5;
    options.indent = 2;
    GLAIVE_RETURN_NOT_OK(arrow::PrettyPrint(batch, options, &std::cout));
  }
  return Status::OK();
}

Status DumpShardManifest(const std::string& path) {
  GLAIVE_ASSIGN_OR_RETURN(const auto bytes, ReadLocalFile(path));
  GLAIVE_ASSIGN_OR_RETURN(const auto manifest,
                          memwal::ParseShardManifest(std::string_view(*bytes), path));
  GLAIVE_ASSIGN_OR_RETURN(const auto shard,
                          memwal::ShardId::FromBytes(manifest.shard_id().uuid()));
  std::cout << path << ": shard manifest";
  PrintNumber(path, "named version");
  std::cout << ", " << bytes->size() << " bytes\nshard " << shard.ToString() << " (spec "
            << manifest.shard_spec_id() << ", "
            << lance::table::ShardStatus_Name(manifest.status()) << ")\nversion "
            << manifest.version() << ", writer epoch " << manifest.writer_epoch()
            << ", current generation " << manifest.current_generation()
            << "\nreplay after position " << manifest.replay_after_wal_entry_position()
            << ", last seen " << manifest.wal_entry_position_last_seen() << "\n";
  for (const auto& sstable : manifest.sstables()) {
    std::cout << "generation " << sstable.generation() << ": " << sstable.path();
    if (sstable.has_physical_rows()) {
      std::cout << ", " << sstable.physical_rows() << " rows";
    }
    if (sstable.has_in_memory_bytes()) {
      std::cout << ", " << sstable.in_memory_bytes() << " bytes in memory";
    }
    if (sstable.has_primary_key_bytes()) {
      std::cout << ", " << sstable.primary_key_bytes() << " bytes of keys";
    }
    std::cout << "\n";
  }
  for (const auto& entry : manifest.shard_field_entries()) {
    std::cout << "routing value " << entry.field_id() << ": " << entry.value().size()
              << " bytes\n";
  }
  const auto& unknown = manifest.GetReflection()->GetUnknownFields(manifest);
  if (!unknown.empty()) {
    std::cout << unknown.field_count() << " fields that this version does not know\n";
  }
  return Status::OK();
}

}  // namespace glaive::tools
