// Everything a table reads besides data files: manifests, transactions, row id sequences,
// deletion files. The first byte chooses the parser.
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <arrow/type.h>

#include "format/table.pb.h"
#include "format/transaction.pb.h"
#include "io/object_store.h"
#include "runtime/runtime.h"
#include "table/dataset.h"
#include "table/deletion_vector.h"
#include "table/fragment_reader.h"
#include "table/manifest.h"
#include "table/names.h"
#include "table/row_ids.h"
#include "table/transaction.h"

namespace glaive::table {
namespace {

constexpr int64_t kRows = 100000;

std::span<const uint8_t> AsBytes(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

const std::shared_ptr<Runtime>& SharedRuntime() {
  static const std::shared_ptr<Runtime> runtime = [] {
    RuntimeOptions options;
    options.num_threads = 1;
    options.cache_bytes = 1 << 20;
    return Runtime::Make(options).ValueOrDie();
  }();
  return runtime;
}

// A table of this one manifest: its data files are missing, which must be an error.
void OpenTable(std::string_view bytes) {
  auto manifest = ParseManifest(SharedBytes::FromString(std::string(bytes)));
  if (!manifest.ok()) return;
  const uint64_t version = manifest->header->version();
  if (version == 0 || version >= uint64_t{1} << 62) return;
  auto store = io::MakeMemoryStore();
  if (!store->Put(ManifestPath(version, NamingScheme::kV2), AsBytes(bytes)).ok()) return;
  auto transaction = ReadTransaction(*store, *manifest);
  if (transaction.ok()) ModifiedFragments(**transaction);
  const TableEnv env{SharedRuntime(), store};
  auto dataset = Dataset::Open(env, static_cast<int64_t>(version));
  if (!dataset.ok()) return;
  (*dataset)->count_rows();
  for (int i = 0; i < (*dataset)->num_fragments() && i < 20; ++i) {
    (*dataset)->live_rows(i);
    auto deletions = (*dataset)->deletions(i);
    auto fragment = (*dataset)->OpenFragment(i);
    if (!fragment.ok() || (*fragment)->physical_rows() > kRows) continue;
    auto projection = (*fragment)->Bind((*dataset)->schema());
    if (!projection.ok()) continue;
    auto batch = (*fragment)->ReadRange(*projection, 0, (*fragment)->physical_rows());
    auto ids = (*fragment)->row_ids();
  }
  auto versions = (*dataset)->ListVersions();
  // A commit on top of it gives a manifest that can be read.
  auto next = (*dataset)->CommitDelete({}, "false");
  if (next.ok() && !Dataset::Open(env, (*next)->version()).ok()) __builtin_trap();
}

// The message of a manifest, framed as a file would.
std::string Frame(std::string_view message) {
  std::string file;
  const auto length = static_cast<uint32_t>(message.size());
  file.append(reinterpret_cast<const char*>(&length), 4);
  file += message;
  file.append(8, '\0');
  file.append("\0\0\2\0LANC", 8);
  return file;
}

void Run(uint8_t choice, std::string_view bytes) {
  switch (choice % 6) {
    case 0:
      return OpenTable(bytes);
    case 1:
      return OpenTable(Frame(bytes));
    case 2: {
      auto vector = DeletionVector::ParseArrow(AsBytes(bytes), kRows);
      if (vector.ok() && (*vector)->size() > kRows) __builtin_trap();
      return;
    }
    case 3: {
      auto vector = DeletionVector::ParseBitmap(AsBytes(bytes), kRows);
      if (!vector.ok()) return;
      // What was read can be written and read again.
      auto again = DeletionVector::ParseBitmap((*vector)->ToBitmap(), kRows);
      if (!again.ok() || (*again)->ToOffsets() != (*vector)->ToOffsets()) {
        __builtin_trap();
      }
      return;
    }
    case 4: {
      auto ids = DecodeRowIds(bytes, 1000);
      if (!ids.ok()) return;
      auto again = DecodeRowIds(EncodeRowIds(*ids), 1000);
      if (!again.ok() || *again != *ids) __builtin_trap();
      return;
    }
    default: {
      auto runs = DecodeRowVersions(bytes, 1000);
      return;
    }
  }
}

}  // namespace
}  // namespace glaive::table

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  glaive::table::Run(data[0], {reinterpret_cast<const char*>(data) + 1, size - 1});
  return 0;
}
