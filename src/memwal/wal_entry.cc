#include "memwal/wal_entry.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

#include <arrow/array/data.h>
#include <arrow/buffer.h>
#include <arrow/device.h>
#include <arrow/io/interfaces.h>
#include <arrow/io/memory.h>
#include <arrow/ipc/options.h>
#include <arrow/ipc/reader.h>
#include <arrow/ipc/writer.h>
#include <arrow/memory_pool.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>
#include <arrow/util/key_value_metadata.h>

#define XXH_INLINE_ALL
#include <arrow/vendored/xxhash.h>

namespace glaive::memwal {
namespace {

constexpr char kWriterEpoch[] = "writer_epoch";
constexpr char kGeneration[] = "generation";
constexpr char kFenceSentinel[] = "fence_sentinel";
constexpr std::string_view kTargetPrefix = "mem_wal_target_";
constexpr int64_t kMaxRows = int64_t{1} << 31;
// What the buffers of a compressed entry may take: so much, and so much for each of its
// bytes.
constexpr int64_t kDecompressedBase = int64_t{16} << 20;
constexpr int64_t kDecompressedFactor = 1024;

// Behind the stream: the magic bytes, a version, the level of durability, two zeros, and
// XXH3 of all bytes before the trailer, with these eight bytes as its seed.
constexpr std::string_view kTrailerMagic = "GLVW";
constexpr uint8_t kTrailerVersion = 1;
constexpr size_t kTrailerBytes = 16;

// Collects what a stream writer writes, bodies by reference.
class PartsStream : public arrow::io::OutputStream {
 public:
  ~PartsStream() override = default;

  Status Write(const std::shared_ptr<arrow::Buffer>& data) override {
    if (data->size() < kCopyBelow) return Write(data->data(), data->size());
    FinishCopied();
    parts_.push_back(data);
    position_ += data->size();
    return Status::OK();
  }
  Status Write(const void* data, int64_t nbytes) override {
    const auto* bytes = static_cast<const uint8_t*>(data);
    copied_.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(nbytes));
    position_ += nbytes;
    return Status::OK();
  }
  Status Close() override {
    closed_ = true;
    return Status::OK();
  }
  bool closed() const override { return closed_; }
  Result<int64_t> Tell() const override { return position_; }

  EncodedWalEntry Take() {
    FinishCopied();
    return {std::move(parts_), position_};
  }

 private:
  // A part of its own costs a system call's bookkeeping; less than this is cheaper to
  // copy.
  static constexpr int64_t kCopyBelow = 4096;

  void FinishCopied() {
    if (copied_.empty()) return;
    parts_.push_back(arrow::Buffer::FromString(std::move(copied_)));
    copied_.clear();
  }

  std::vector<std::shared_ptr<arrow::Buffer>> parts_;
  std::string copied_;
  int64_t position_ = 0;
  bool closed_ = false;
};

std::shared_ptr<arrow::KeyValueMetadata> CopyMetadata(const arrow::Schema& schema) {
  auto metadata = std::make_shared<arrow::KeyValueMetadata>();
  if (!schema.HasMetadata()) return metadata;
  const auto& given = *schema.metadata();
  for (int64_t i = 0; i < given.size(); ++i)
    metadata->Append(given.key(i), given.value(i));
  return metadata;
}

Result<EncodedWalEntry> Encode(const arrow::Schema& schema,
                               std::shared_ptr<arrow::KeyValueMetadata> metadata,
                               const BatchVector& batches) {
  PartsStream stream;
  const auto declared = schema.WithMetadata(std::move(metadata));
  GLAIVE_ASSIGN_OR_RETURN(auto writer, arrow::ipc::MakeStreamWriter(&stream, declared));
  for (const auto& batch : batches) {
    GLAIVE_RETURN_NOT_OK(writer->WriteRecordBatch(*batch));
  }
  GLAIVE_RETURN_NOT_OK(writer->Close());
  return stream.Take();
}

bool IsOwnKey(std::string_view key) {
  return key == kWriterEpoch || key == kGeneration || key == kFenceSentinel ||
         key.starts_with(kTargetPrefix);
}

Result<uint64_t> ParseNumber(const std::string& name, const char* key,
                             const std::string& text) {
  uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end) {
    return Corruption("WAL entry '", name, "' has malformed ", key, " metadata '",
                      text.substr(0, 64), "'");
  }
  return value;
}

// Fills header and sentinel from the metadata of the stream's schema, and puts the schema
// without them into the entry.
Status ReadMetadata(const std::string& name, const arrow::Schema& schema,
                    WalEntry* entry) {
  bool has_epoch = false;
  auto kept = std::make_shared<arrow::KeyValueMetadata>();
  if (schema.HasMetadata()) {
    const auto& metadata = *schema.metadata();
    for (int64_t i = 0; i < metadata.size(); ++i) {
      const std::string& key = metadata.key(i);
      const std::string& value = metadata.value(i);
      if (key == kWriterEpoch) {
        GLAIVE_ASSIGN_OR_RETURN(entry->header.writer_epoch,
                                ParseNumber(name, kWriterEpoch, value));
        has_epoch = true;
      } else if (key == kGeneration) {
        GLAIVE_ASSIGN_OR_RETURN(entry->header.generation,
                                ParseNumber(name, kGeneration, value));
      } else if (key == kFenceSentinel) {
        entry->sentinel = value == "true";
      }
      if (!IsOwnKey(key)) kept->Append(key, value);
    }
  }
  if (!has_epoch) {
    return Corruption("WAL entry missing writer_epoch metadata: '", name, "'");
  }
  entry->schema =
      kept->size() == 0 ? schema.RemoveMetadata() : schema.WithMetadata(std::move(kept));
  return Status::OK();
}

Status Damaged(const std::string& name, const Status& cause) {
  return Corruption("WAL entry '", name, "' is damaged: ", cause.message());
}

// What a trailer says before its checksum is the seed of the checksum.
uint64_t SeedOf(std::string_view trailer) {
  uint64_t seed;
  std::memcpy(&seed, trailer.data(), sizeof(seed));
  return seed;
}

bool HasTrailer(std::string_view bytes) {
  if (bytes.size() < kTrailerBytes) return false;
  const std::string_view trailer = bytes.substr(bytes.size() - kTrailerBytes);
  return trailer.starts_with(kTrailerMagic) &&
         static_cast<uint8_t>(trailer[4]) == kTrailerVersion;
}

// The stream of an entry, without the trailer that it may have.
Result<std::shared_ptr<arrow::Buffer>> TakeTrailer(
    const std::string& name, const std::shared_ptr<arrow::Buffer>& bytes,
    std::optional<Durability>* durability) {
  const std::string_view text(*bytes);
  if (!HasTrailer(text)) return bytes;
  const size_t size = text.size() - kTrailerBytes;
  uint64_t hash;
  std::memcpy(&hash, text.data() + size + 8, sizeof(hash));
  if (hash != XXH3_64bits_withSeed(text.data(), size, SeedOf(text.substr(size)))) {
    return Corruption("WAL entry '", name,
                      "' is damaged: its bytes have another checksum than its trailer");
  }
  *durability = text[size + 5] == static_cast<char>(Durability::kOs) ? Durability::kOs
                                                                     : Durability::kFsync;
  return arrow::SliceBuffer(bytes, 0, static_cast<int64_t>(size));
}

// Whether all buffers of `data` are slices of `whole`.
bool IsSlice(const arrow::ArrayData& data, const arrow::Buffer& whole) {
  for (const auto& buffer : data.buffers) {
    if (buffer == nullptr) continue;
    const uint8_t* begin = buffer->data();
    if (begin < whole.data() || begin > whole.data() + whole.size()) return false;
  }
  for (const auto& child : data.child_data) {
    if (!IsSlice(*child, whole)) return false;
  }
  return data.dictionary == nullptr || IsSlice(*data.dictionary, whole);
}

Status ReadBatches(const std::string& name, arrow::ipc::RecordBatchStreamReader* reader,
                   WalEntry* entry) {
  int64_t rows = 0;
  while (true) {
    std::shared_ptr<arrow::RecordBatch> batch;
    Status status = reader->ReadNext(&batch);
    if (!status.ok()) return Damaged(name, status);
    if (batch == nullptr) break;
    if (batch->num_rows() < 0 || batch->num_rows() > kMaxRows - rows) {
      return Corruption("WAL entry '", name, "' is damaged: it claims ",
                        batch->num_rows(), " rows in one batch");
    }
    status = batch->ValidateFull();
    if (!status.ok()) return Damaged(name, status);
    rows += batch->num_rows();
    if (batch->num_rows() > 0) {
      entry->batches.push_back(batch->ReplaceSchemaMetadata(entry->schema->metadata()));
    }
  }
  if (entry->sentinel && rows > 0) {
    return Corruption("WAL entry '", name, "' is damaged: a sentinel holds no rows");
  }
  return Status::OK();
}

}  // namespace

Result<EncodedWalEntry> EncodeWalEntry(const WalEntryHeader& header,
                                       const BatchVector& batches) {
  if (batches.empty()) return InvalidInput("Cannot write empty batch list");
  const arrow::Schema& schema = *batches[0]->schema();
  for (size_t i = 0; i < batches.size(); ++i) {
    if (batches[i]->num_rows() == 0) return InvalidInput("Batch ", i, " is empty");
    if (!batches[i]->schema()->Equals(schema, /*check_metadata=*/false)) {
      return InvalidInput("batch ", i,
                          " has other columns than the batches before it in one entry");
    }
  }
  auto metadata = CopyMetadata(schema);
  GLAIVE_RETURN_NOT_OK(metadata->Set(kWriterEpoch, std::to_string(header.writer_epoch)));
  if (header.generation) {
    GLAIVE_RETURN_NOT_OK(metadata->Set(kGeneration, std::to_string(*header.generation)));
  }
  return Encode(schema, std::move(metadata), batches);
}

Result<EncodedWalEntry> EncodeFenceSentinel(uint64_t writer_epoch) {
  auto metadata = arrow::key_value_metadata({kWriterEpoch, kFenceSentinel},
                                            {std::to_string(writer_epoch), "true"});
  return Encode(*arrow::schema(arrow::FieldVector{}), std::move(metadata), {});
}

EncodedWalEntry SealWalEntry(const EncodedWalEntry& entry, Durability durability) {
  std::string trailer(kTrailerMagic);
  trailer += static_cast<char>(kTrailerVersion);
  trailer += static_cast<char>(durability);
  trailer.append(2, '\0');
  XXH3_state_t state;
  XXH3_INITSTATE(&state);
  XXH3_64bits_reset_withSeed(&state, SeedOf(trailer));
  for (const auto& part : entry.parts) {
    XXH3_64bits_update(&state, part->data(), static_cast<size_t>(part->size()));
  }
  const uint64_t hash = XXH3_64bits_digest(&state);
  trailer.append(reinterpret_cast<const char*>(&hash), sizeof(hash));
  EncodedWalEntry sealed = entry;
  sealed.parts.push_back(arrow::Buffer::FromString(std::move(trailer)));
  sealed.size_bytes += static_cast<int64_t>(kTrailerBytes);
  return sealed;
}

bool EndsEarly(std::string_view bytes) {
  if (HasTrailer(bytes)) return false;
  return !bytes.ends_with(std::string_view("\xff\xff\xff\xff\0\0\0\0", 8));
}

Result<WalEntry> DecodeWalEntry(uint64_t position, const std::string& name,
                                const std::shared_ptr<arrow::Buffer>& whole) {
  WalEntry entry;
  entry.position = position;
  entry.size_bytes = whole->size();
  if (whole->size() == 0) return Corruption("WAL entry '", name, "' is empty");
  GLAIVE_ASSIGN_OR_RETURN(const auto bytes, TakeTrailer(name, whole, &entry.durability));

  // Only compressed or misaligned buffers are allocated; those would not outlive this
  // bound.
  const int64_t bound =
      kDecompressedBase + std::min(bytes->size(), int64_t{1} << 40) * kDecompressedFactor;
  arrow::CappedMemoryPool bounded(arrow::default_memory_pool(), bound);
  auto options = arrow::ipc::IpcReadOptions::Defaults();
  options.memory_pool = &bounded;
  options.use_threads = false;
  options.ensure_alignment = arrow::ipc::Alignment::kDataTypeSpecificAlignment;
  arrow::io::BufferReader stream(bytes);
  auto reader = arrow::ipc::RecordBatchStreamReader::Open(&stream, options);
  if (!reader.ok()) return Damaged(name, reader.status());
  GLAIVE_RETURN_NOT_OK(ReadMetadata(name, *(*reader)->schema(), &entry));
  GLAIVE_RETURN_NOT_OK(ReadBatches(name, reader->get(), &entry));
  GLAIVE_ASSIGN_OR_RETURN(const int64_t end, stream.Tell());
  if (end != bytes->size()) {
    return Corruption("WAL entry '", name, "' is damaged: ", bytes->size() - end,
                      " bytes follow the end of its stream");
  }
  for (auto& batch : entry.batches) {
    // What was allocated must not outlive `bounded`.
    bool slices = true;
    for (const auto& column : batch->column_data()) slices &= IsSlice(*column, *bytes);
    if (slices) continue;
    GLAIVE_ASSIGN_OR_RETURN(batch, batch->CopyTo(arrow::default_cpu_memory_manager()));
  }
  return entry;
}

}  // namespace glaive::memwal
