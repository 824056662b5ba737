#include <map>
#include <string>

#include <gtest/gtest.h>

#include "io/test_util.h"
#include "memwal/shard_writer.h"

namespace glaive::memwal {
namespace {

TEST(WriterConfig, DefaultsOfTheTableAreTaken) {
  const WriterConfig config = ApplyConfigDefaults(
      {{"durable_write", "false"},
       {"max_wal_buffer_size", "1"},
       {"max_wal_flush_interval_ms", "2"},
       {"max_wal_persist_retries", "3"},
       {"wal_persist_retry_base_delay_ms", "4"},
       {"max_memtable_size", "5"},
       {"max_memtable_rows", "6"},
       {"max_memtable_batches", "7"},
       {"max_unflushed_memtable_bytes", "8"},
       {"hnsw.vec.num_edges", "16"},
       {"stats_log_interval_ms", "60000"}},
      {.durability = Durability::kOs, .write_generation = false, .shard_spec_id = 9});
  EXPECT_FALSE(config.durable_write);
  EXPECT_EQ(config.max_wal_buffer_size, 1);
  EXPECT_EQ(config.max_wal_flush_interval_ms, 2);
  EXPECT_EQ(config.max_wal_persist_retries, 3);
  EXPECT_EQ(config.wal_persist_retry_base_delay_ms, 4);
  EXPECT_EQ(config.max_memtable_size, 5);
  EXPECT_EQ(config.max_memtable_rows, 6);
  EXPECT_EQ(config.max_memtable_batches, 7);
  EXPECT_EQ(config.max_unflushed_memtable_bytes, 8);
  EXPECT_EQ(config.durability, Durability::kOs);
  EXPECT_FALSE(config.write_generation);
  EXPECT_EQ(config.shard_spec_id, 9u);
}

TEST(WriterConfig, WhatDoesNotParseIsLeftOut) {
  const WriterConfig plain;
  for (const char* text : {"", "x", "-1", "+1", " 1", "1 ", "1.5", "0x10", "1e3",
                           "9223372036854775808", "99999999999999999999999"}) {
    const WriterConfig config = ApplyConfigDefaults({{"durable_write", text},
                                                     {"max_memtable_rows", text},
                                                     {"max_wal_persist_retries", text}},
                                                    {});
    EXPECT_TRUE(config.durable_write) << text;
    EXPECT_EQ(config.max_memtable_rows, plain.max_memtable_rows) << text;
    EXPECT_EQ(config.max_wal_persist_retries, plain.max_wal_persist_retries) << text;
  }
  // Fits 64 bits, but not the setting.
  EXPECT_EQ(ApplyConfigDefaults({{"max_wal_persist_retries", "4294967296"}}, {})
                .max_wal_persist_retries,
            plain.max_wal_persist_retries);
}

TEST(WriterConfig, WhatCannotWorkIsRefused) {
  EXPECT_TRUE(CheckWriterConfig({}).ok());
  EXPECT_TRUE(
      CheckWriterConfig({.durable_write = false, .max_wal_flush_interval_ms = 0}).ok());
  EXPECT_TRUE(CheckWriterConfig({.max_memtable_rows = 0}).ok());  // opens; no put fits
  const auto refused = [](const WriterConfig& config, const std::string& text) {
    const Status status = CheckWriterConfig(config);
    EXPECT_KIND(ErrorKind::kInvalidInput, status);
    EXPECT_NE(status.message().find(text), std::string::npos) << status.ToString();
  };
  refused({.max_wal_flush_interval_ms = 0},
          "durable_write requires a positive max_wal_flush_interval: ");
  refused({.max_memtable_size = 0}, "max_memtable_size must be greater than zero: ");
  refused({.max_memtable_batches = 0}, "max_memtable_batches must be greater than zero");
  refused({.max_memtable_rows = -1}, "max_memtable_rows");
  refused({.max_wal_persist_retries = -1}, "max_wal_persist_retries");
  refused({.max_memtable_size = int64_t{2} << 30},
          "in-memory indexes reserve 32768 bytes at max_memtable_rows=100000, and "
          "max_memtable_size=2147483648 must fit alongside them, needing 2147516416 "
          "bytes; max_unflushed_memtable_bytes=1073741824 is below that");
  refused({.max_memtable_size = 1000, .max_unflushed_memtable_bytes = 33767},
          "Raise max_unflushed_memtable_bytes to at least 33768");
  EXPECT_TRUE(CheckWriterConfig(
                  {.max_memtable_size = 1000, .max_unflushed_memtable_bytes = 33768})
                  .ok());
  constexpr int64_t kMost = INT64_MAX;
  refused({.max_memtable_size = kMost, .max_unflushed_memtable_bytes = kMost},
          "9223372036854808575");
  refused({.max_unflushed_memtable_bytes = INT64_MIN}, "is below that");
}

}  // namespace
}  // namespace glaive::memwal
