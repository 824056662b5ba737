// Feature flags of a manifest: which this build knows, and which a manifest needs.
#pragma once

#include <cstdint>

#include "base/status.h"

namespace lance::table {
class Manifest;
}

namespace glaive::table {

struct FragmentTraits;

inline constexpr uint64_t kFlagDeletionFiles = 1;
inline constexpr uint64_t kFlagStableRowIds = 2;
inline constexpr uint64_t kFlagV2Format = 4;
inline constexpr uint64_t kFlagTableConfig = 8;
inline constexpr uint64_t kFlagBasePaths = 16;
inline constexpr uint64_t kFlagNoTransactionFile = 32;
inline constexpr uint64_t kFlagOverlayFiles = 64;
inline constexpr uint64_t kFlagCoveringIndexFields = 128;
inline constexpr uint64_t kFlagMixedFileVersions = 256;
inline constexpr uint64_t kFlagFragmentReuseStableIds = 512;
inline constexpr uint64_t kFlagTaggedFragmentReuse = 1024;
inline constexpr uint64_t kFlagSpilledRowLineage = 2048;
inline constexpr uint64_t kFlagManagedBlobs = 16384;
inline constexpr uint64_t kFlagFieldIdsNeverReused = 32768;
inline constexpr uint64_t kFlagZoneWriteSeed = 65536;

// NotSupported listing numbers and names of what this build cannot read; Corruption when
// a flag that belongs in both words stands in one.
Status CheckReaderFlags(const lance::table::Manifest& manifest);
// NotSupported listing what this build cannot write.
Status CheckWriterFlags(const lance::table::Manifest& manifest);

// Sets both words of `manifest` from its content, `fragments`, and the sticky flags of
// `previous` (null: a new table). `stable_row_ids`: wanted for a new table.
void RecomputeFlags(lance::table::Manifest* manifest, const FragmentTraits& fragments,
                    bool has_covering_index, const lance::table::Manifest* previous,
                    bool stable_row_ids);

}  // namespace glaive::table
