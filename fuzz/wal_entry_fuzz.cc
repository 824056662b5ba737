// An entry of the log as it may lie on a disk: the decoder, the table's schema over it,
// and the encoder over what came out.
#include <cstdint>
#include <memory>
#include <string>

#include <arrow/api.h>
#include <arrow/util/key_value_metadata.h>

#include "io/object_store.h"
#include "memwal/fresh_schema.h"
#include "memwal/wal_entry.h"
#include "runtime/runtime.h"
#include "table/dataset.h"

namespace glaive::memwal {
namespace {

// A table with the columns of the corpus.
const FreshSchema& Schema() {
  static const std::shared_ptr<const FreshSchema> schema = [] {
    RuntimeOptions options;
    options.num_threads = 1;
    options.cache_bytes = 1 << 20;
    const auto key =
        arrow::key_value_metadata({"lance-schema:unenforced-primary-key"}, {"true"});
    const auto columns = arrow::schema(
        {arrow::field("id", arrow::int64(), false, key),
         arrow::field("text", arrow::utf8()),
         arrow::field("vector", arrow::fixed_size_list(arrow::float32(), 4))});
    const table::TableEnv env{Runtime::Make(options).ValueOrDie(), io::MakeMemoryStore()};
    const auto base = table::Dataset::WriteEmpty(env, *columns, {}).ValueOrDie();
    return FreshSchema::Make(*base).ValueOrDie();
  }();
  return *schema;
}

void Run(const std::string& bytes) {
  const auto buffer = arrow::Buffer::FromString(bytes);
  auto entry = DecodeWalEntry(1, "entry", buffer);
  if (!entry.ok()) {
    if (KindOf(entry.status()) != ErrorKind::kCorruption) __builtin_trap();
    return;
  }
  for (const auto& batch : entry->batches) {
    if (!batch->ValidateFull().ok()) __builtin_trap();
    auto rows = Schema().Conform(*batch);
    if (rows.ok() && !(*rows)->ValidateFull().ok()) __builtin_trap();
  }
  if (entry->batches.empty()) return;
  // What was read can be written and read again.
  auto encoded = EncodeWalEntry(entry->header, entry->batches);
  if (!encoded.ok()) return;  // a type that has no stream of its own
  auto joined = arrow::ConcatenateBuffers(encoded->parts);
  auto again = DecodeWalEntry(1, "entry", *joined);
  if (!again.ok() || again->batches.size() != entry->batches.size() ||
      again->header.writer_epoch != entry->header.writer_epoch) {
    __builtin_trap();
  }
}

}  // namespace
}  // namespace glaive::memwal

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  glaive::memwal::Run(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}
