#include "table/feature_flags.h"

#include <string>

#include "format/table.pb.h"
#include "table/fragment_list.h"

namespace glaive::table {
namespace {

constexpr uint64_t kReadable =
    kFlagDeletionFiles | kFlagStableRowIds | kFlagV2Format | kFlagTableConfig |
    kFlagBasePaths | kFlagNoTransactionFile | kFlagCoveringIndexFields |
    kFlagMixedFileVersions | kFlagTaggedFragmentReuse | kFlagSpilledRowLineage;
constexpr uint64_t kWritable = kReadable;
// Flags that mean the same to readers and writers and are never set in one word only.
constexpr uint64_t kBothWords = kFlagMixedFileVersions | kFlagTaggedFragmentReuse |
                                kFlagManagedBlobs | kFlagZoneWriteSeed;
// Flags that no content of the manifest shows, so they stay once set.
constexpr uint64_t kSticky = kFlagMixedFileVersions | kFlagTaggedFragmentReuse;

const char* NameOf(uint64_t flag) {
  switch (flag) {
    case kFlagBasePaths:
      return "multiple base paths";
    case kFlagOverlayFiles:
      return "data overlay files";
    case kFlagFragmentReuseStableIds:
      return "fragment reuse index with stable row ids";
    case kFlagManagedBlobs:
      return "managed blobs";
    case kFlagFieldIdsNeverReused:
      return "field ids never reused";
    case kFlagZoneWriteSeed:
      return "zone write seed";
    default:
      return "unknown";
  }
}

std::string Describe(uint64_t flags) {
  std::string text;
  for (int bit = 0; bit < 64; ++bit) {
    const uint64_t flag = uint64_t{1} << bit;
    if (!(flags & flag)) continue;
    if (!text.empty()) text += ", ";
    text += std::to_string(flag) + " (" + NameOf(flag) + ")";
  }
  return text;
}

}  // namespace

Status CheckReaderFlags(const lance::table::Manifest& manifest) {
  const uint64_t reader = manifest.reader_feature_flags();
  const uint64_t half = (reader ^ manifest.writer_feature_flags()) & kBothWords;
  if (half != 0) {
    return Corruption("the manifest has only one of the two feature bits set for: ",
                      Describe(half));
  }
  const uint64_t unknown = reader & ~kReadable;
  if (unknown != 0) {
    return NotSupported(
        "this dataset cannot be read by this version of Glaive: it uses the features ",
        Describe(unknown), ". Flags: ", reader);
  }
  return Status::OK();
}

Status CheckWriterFlags(const lance::table::Manifest& manifest) {
  const uint64_t unknown = manifest.writer_feature_flags() & ~kWritable;
  if (unknown != 0) {
    return NotSupported(
        "this dataset cannot be written by this version of Glaive: it uses the features ",
        Describe(unknown), ". Flags: ", manifest.writer_feature_flags());
  }
  return Status::OK();
}

void RecomputeFlags(lance::table::Manifest* manifest, const FragmentTraits& fragments,
                    bool has_covering_index, const lance::table::Manifest* previous,
                    bool stable_row_ids) {
  uint64_t both = 0;
  if (previous != nullptr) {
    both |= previous->reader_feature_flags() & kSticky;
    stable_row_ids = (previous->reader_feature_flags() & kFlagStableRowIds) != 0;
  }
  if (fragments.any_deletion_file) both |= kFlagDeletionFiles;
  if (stable_row_ids) both |= kFlagStableRowIds;
  if (has_covering_index) both |= kFlagCoveringIndexFields;
  if (manifest->base_paths_size() > 0) both |= kFlagBasePaths;
  if (fragments.any_spilled_lineage) both |= kFlagSpilledRowLineage;
  uint64_t writer = both;
  if (manifest->config_size() > 0) writer |= kFlagTableConfig;
  manifest->set_reader_feature_flags(both);
  manifest->set_writer_feature_flags(writer);
}

}  // namespace glaive::table
