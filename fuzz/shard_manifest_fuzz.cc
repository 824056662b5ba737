// A shard whose newest manifest and hint are these bytes: reading, claiming, updating,
// and the names of its generations.
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "io/object_store.h"
#include "memwal/names.h"
#include "memwal/shard_manifest.h"

namespace glaive::memwal {
namespace {

void Run(std::string_view bytes) {
  const auto parsed = ParseShardManifest(bytes, "manifest");
  if (!parsed.ok()) {
    if (KindOf(parsed.status()) != ErrorKind::kCorruption) __builtin_trap();
    return;
  }
  const auto shard = ShardId::FromBytes(parsed->shard_id().uuid());
  if (!shard.ok()) __builtin_trap();
  for (const auto& sstable : parsed->sstables()) {
    auto directory = GenerationDir(*shard, sstable.path());
    if (directory.ok() && !directory->starts_with(ShardDir(*shard) + "/")) {
      __builtin_trap();
    }
  }
  const auto store = io::MakeMemoryStore();
  const std::span<const uint8_t> content(reinterpret_cast<const uint8_t*>(bytes.data()),
                                         bytes.size());
  if (!store->Put(ShardManifestPath(*shard, parsed->version()), content).ok() ||
      !store->Put(ShardManifestHintPath(*shard), content).ok()) {
    __builtin_trap();
  }
  ShardManifests manifests(store, *shard);
  auto latest = manifests.ReadLatest();
  if (!latest.ok() || !*latest) __builtin_trap();
  auto claimed = manifests.Claim(0);
  if (!claimed.ok()) return;  // sealed
  if (claimed->writer_epoch() != parsed->writer_epoch() + 1) __builtin_trap();
  auto updated =
      manifests.Update(claimed->writer_epoch(), *claimed, [](ShardManifest* next) {
        next->set_current_generation(next->current_generation() + 1);
        return Status::OK();
      });
  if (!updated.ok()) return;  // no number is left
  auto again = manifests.ReadLatest();
  if (!again.ok() || (*again)->version() != parsed->version() + 2) __builtin_trap();
}

}  // namespace
}  // namespace glaive::memwal

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  glaive::memwal::Run({reinterpret_cast<const char*>(data), size});
  return 0;
}
