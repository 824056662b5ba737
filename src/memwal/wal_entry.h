// One entry of the log: an Arrow IPC stream in a file of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <arrow/type_fwd.h>

#include "base/status.h"

namespace glaive::memwal {

using BatchVector = std::vector<std::shared_ptr<arrow::RecordBatch>>;

// What an acknowledged entry survives.
enum class Durability : uint8_t {
  kFsync,  // power loss: entry and directory are synced
  kOs,     // the death of the process: the bytes are with the kernel
};

// An encoded entry: pieces to be written one after the other. The bodies of the batches
// are not copied; `keep_alive` holds them.
struct EncodedWalEntry {
  std::vector<std::shared_ptr<arrow::Buffer>> parts;
  int64_t size_bytes = 0;
};

struct WalEntryHeader {
  uint64_t writer_epoch = 0;
  // Of the memtable that the rows belong to. Unset: not written (entries that LanceDB
  // 0.40, which embeds Lance 13, shall be able to replay).
  std::optional<uint64_t> generation;
};

// `batches`: at least one, all of the same fields, none empty. The stream is what
// upstream writes: default options, no compression, end-of-stream marker; the metadata of
// the schema is kept and the header's keys are added.
Result<EncodedWalEntry> EncodeWalEntry(const WalEntryHeader& header,
                                       const BatchVector& batches);
// An entry without fields and rows, by which a new writer fences its predecessor.
Result<EncodedWalEntry> EncodeFenceSentinel(uint64_t writer_epoch);

// The entry with a trailer behind its stream: a checksum, and how it was stored. Streams
// end before it for everybody who does not know it.
EncodedWalEntry SealWalEntry(const EncodedWalEntry& entry, Durability durability);

struct WalEntry {
  uint64_t position = 0;
  WalEntryHeader header;
  bool sentinel = false;
  // Unset: without a trailer, as other writers leave entries.
  std::optional<Durability> durability;
  int64_t size_bytes = 0;
  // Fields as written (with lance:field_id where present), without MemWAL's own keys.
  std::shared_ptr<arrow::Schema> schema;
  BatchVector batches;
};

// Bytes from disk: Corruption names `name` and what is wrong (empty, torn, another
// checksum than its trailer says, no or malformed writer_epoch, invalid arrays). Buffers
// of the batches are slices of `bytes`. Batches without rows are left out. Memory is
// bounded by the size of `bytes`.
Result<WalEntry> DecodeWalEntry(uint64_t position, const std::string& name,
                                const std::shared_ptr<arrow::Buffer>& bytes);

// For bytes that do not decode: whether they lack the end that every whole entry has, as
// what a power cut leaves of one that was not synced.
bool EndsEarly(std::string_view bytes);

}  // namespace glaive::memwal
