// glaive lsm: shows the LSM write path of a table and brings its rows into the base.
#include <charconv>
#include <iostream>
#include <optional>
#include <string>

#include "io/object_store.h"
#include "memwal/converge.h"
#include "memwal/waiting.h"
#include "runtime/runtime.h"
#include "table/cleanup.h"
#include "tools/commands.h"

namespace glaive::tools {
namespace {

Status Usage() {
  return InvalidInput(
      "usage: glaive lsm stats|flush|compact|collect|checkpoint PATH [--grace DURATION] "
      "[--max-generations N]");
}

Status PrintStats(const table::Dataset::Ptr& base) {
  GLAIVE_ASSIGN_OR_RETURN(const auto stats, memwal::GetLsmStats(base, true));
  if (!stats) {
    std::cout << "no LSM write path\n";
    return Status::OK();
  }
  for (const memwal::BucketStats& bucket : *stats) {
    std::cout << "shard " << bucket.shard.ToString()
              << (bucket.sealed ? " sealed" : " active") << ", epoch "
              << bucket.writer_epoch << ", manifest " << bucket.manifest_version
              << ", next generation " << bucket.current_generation << ", flushed to "
              << bucket.replay_after_wal_entry_position << ", " << bucket.log_entries
              << " log entries behind it (" << bucket.log_bytes << " bytes)"
              << (bucket.compacting ? ", compacting" : "") << "\n";
    for (const memwal::GenerationStats& generation : bucket.generations) {
      std::cout << "  generation " << generation.generation << ": "
                << generation.rows.value_or(0) << " rows, " << generation.bytes
                << " bytes\n";
    }
  }
  return Status::OK();
}

Status Collect(const table::Dataset::Ptr& base, const memwal::CollectOptions& options) {
  GLAIVE_ASSIGN_OR_RETURN(const auto shards, memwal::ListShards(*base->env().store));
  for (const memwal::ShardId& shard : shards) {
    GLAIVE_ASSIGN_OR_RETURN(const auto outcome,
                            memwal::CollectShard(*base, shard, options));
    std::cout << "shard " << shard.ToString() << ": removed "
              << outcome.generations_removed << " generations, "
              << outcome.log_entries_removed << " log entries, "
              << outcome.manifests_removed << " manifests, " << outcome.orphans_removed
              << " orphans, " << outcome.bytes_removed << " bytes\n";
  }
  return Status::OK();
}

}  // namespace

Status RunLsm(std::span<const std::string> arguments) {
  memwal::CollectOptions collect;
  memwal::CompactOptions compact;
  std::vector<std::string> words;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument == "--grace" && i + 1 < arguments.size()) {
      GLAIVE_ASSIGN_OR_RETURN(const int64_t us, table::ParseDuration(arguments[++i]));
      collect.grace = std::chrono::milliseconds(us / 1000);
    } else if (argument == "--max-generations" && i + 1 < arguments.size()) {
      const std::string& text = arguments[++i];
      const auto parsed = std::from_chars(text.data(), text.data() + text.size(),
                                          compact.max_generations);
      if (parsed.ec != std::errc() || *parsed.ptr != '\0') return Usage();
    } else if (argument.starts_with("--")) {
      return Usage();
    } else {
      words.push_back(argument);
    }
  }
  if (words.size() != 2) return Usage();
  table::TableEnv env;
  GLAIVE_ASSIGN_OR_RETURN(env.runtime, Runtime::Make());
  GLAIVE_ASSIGN_OR_RETURN(env.store, io::OpenStore(words[1], /*create=*/false));
  GLAIVE_ASSIGN_OR_RETURN(const auto base, table::Dataset::Open(std::move(env)));
  if (words[0] == "stats") return PrintStats(base);
  if (words[0] == "collect") return Collect(base, collect);
  if (words[0] == "flush") {
    GLAIVE_ASSIGN_OR_RETURN(const int64_t made, memwal::FlushLsm(base));
    std::cout << made << " generations made\n";
    return Status::OK();
  }
  if (words[0] == "compact") {
    GLAIVE_ASSIGN_OR_RETURN(const auto outcome, memwal::CompactLsm(base, compact));
    std::cout << "version " << outcome.base->version() << ": "
              << outcome.generations_consumed << " generations merged, "
              << outcome.generations_remaining << " left, " << outcome.rows_merged
              << " rows upserted, " << outcome.rows_deleted << " deleted\n";
    return Status::OK();
  }
  if (words[0] == "checkpoint") {
    memwal::CheckpointOptions options;
    options.compact = compact;
    GLAIVE_ASSIGN_OR_RETURN(const auto outcome, memwal::CheckpointLsm(base, options));
    std::cout << "version " << outcome.base->version() << ": "
              << (outcome.converged ? "converged" : "not converged") << " in "
              << outcome.passes << " passes, " << outcome.generations_consumed
              << " generations merged, " << outcome.generations_remaining << " left\n";
    return Status::OK();
  }
  return Usage();
}

}  // namespace glaive::tools
