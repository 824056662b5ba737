// Settings of a writer: defaults that a table records, and what is refused.
#include <charconv>
#include <limits>
#include <string_view>

#include "memwal/bloom.h"
#include "memwal/shard_writer.h"

namespace glaive::memwal {
namespace {

void Take(const std::string& text, int64_t* out) {
  // As upstream's unsigned numbers: no sign, no blanks, nothing behind.
  if (text.empty() || text.front() == '-') return;
  int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, value);
  if (parsed.ec == std::errc() && parsed.ptr == end) *out = value;
}

void Take(const std::string& text, int* out) {
  int64_t value = *out;
  Take(text, &value);
  if (value <= std::numeric_limits<int>::max()) *out = static_cast<int>(value);
}

void Take(const std::string& text, bool* out) {
  if (text == "true") *out = true;
  if (text == "false") *out = false;
}

void Take(const std::string& text, Durability* out) {
  *out = ParseDurability(text).value_or(*out);
}

constexpr ConfigSetting kSettings[] = {
    {"durable_write", &WriterConfig::durable_write},
    // Ours alone; others leave it out.
    {"durability", &WriterConfig::durability},
    {"max_wal_buffer_size", &WriterConfig::max_wal_buffer_size},
    {"max_wal_flush_interval_ms", &WriterConfig::max_wal_flush_interval_ms},
    {"max_wal_persist_retries", &WriterConfig::max_wal_persist_retries},
    {"wal_persist_retry_base_delay_ms", &WriterConfig::wal_persist_retry_base_delay_ms},
    {"max_memtable_size", &WriterConfig::max_memtable_size},
    {"max_memtable_rows", &WriterConfig::max_memtable_rows},
    {"max_memtable_batches", &WriterConfig::max_memtable_batches},
    {"max_unflushed_memtable_bytes", &WriterConfig::max_unflushed_memtable_bytes},
    {"write_generation", &WriterConfig::write_generation, /*is_default=*/false},
};

Status CheckNotNegative(std::string_view name, int64_t value) {
  if (value >= 0) return Status::OK();
  return InvalidInput(name, " must not be negative, it is ", value);
}

}  // namespace

std::span<const ConfigSetting> ConfigSettings() { return kSettings; }

std::optional<Durability> ParseDurability(std::string_view name) {
  if (name == "fsync") return Durability::kFsync;
  if (name == "os") return Durability::kOs;
  return std::nullopt;
}

WriterConfig ApplyConfigDefaults(const std::map<std::string, std::string>& defaults,
                                 WriterConfig config) {
  for (const ConfigSetting& setting : kSettings) {
    if (!setting.is_default) continue;
    const auto given = defaults.find(std::string(setting.name));
    if (given == defaults.end()) continue;
    std::visit([&](auto field) { Take(given->second, &(config.*field)); }, setting.field);
  }
  return config;
}

Status CheckWriterConfig(const WriterConfig& config) {
  GLAIVE_RETURN_NOT_OK(
      CheckNotNegative("max_wal_buffer_size", config.max_wal_buffer_size));
  GLAIVE_RETURN_NOT_OK(
      CheckNotNegative("max_wal_flush_interval_ms", config.max_wal_flush_interval_ms));
  GLAIVE_RETURN_NOT_OK(
      CheckNotNegative("max_wal_persist_retries", config.max_wal_persist_retries));
  GLAIVE_RETURN_NOT_OK(CheckNotNegative("wal_persist_retry_base_delay_ms",
                                        config.wal_persist_retry_base_delay_ms));
  GLAIVE_RETURN_NOT_OK(CheckNotNegative("max_memtable_rows", config.max_memtable_rows));
  if (config.durable_write && config.max_wal_flush_interval_ms == 0) {
    return InvalidInput(
        "durable_write requires a positive max_wal_flush_interval: give one above 0, or "
        "set durable_write to false");
  }
  if (config.max_memtable_size <= 0) {
    return InvalidInput(
        "max_memtable_size must be greater than zero: a memtable that may hold no bytes "
        "takes no row");
  }
  if (config.max_memtable_batches <= 0) {
    return InvalidInput(
        "max_memtable_batches must be greater than zero: a memtable that may hold no "
        "batch takes no row");
  }
  // Subtracted, not added: the sum could overflow.
  if (config.max_unflushed_memtable_bytes < KeyBloom::kBytes ||
      config.max_unflushed_memtable_bytes - KeyBloom::kBytes < config.max_memtable_size) {
    const uint64_t needed =
        static_cast<uint64_t>(config.max_memtable_size) + KeyBloom::kBytes;
    return InvalidInput(
        "in-memory indexes reserve ", KeyBloom::kBytes,
        " bytes at max_memtable_rows=", config.max_memtable_rows,
        ", and max_memtable_size=", config.max_memtable_size,
        " must fit alongside them, needing ", needed,
        " bytes; max_unflushed_memtable_bytes=", config.max_unflushed_memtable_bytes,
        " is below that. Raise max_unflushed_memtable_bytes to at least ", needed,
        ", or lower max_memtable_rows / max_memtable_size");
  }
  return Status::OK();
}

}  // namespace glaive::memwal
