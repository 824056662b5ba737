// The `_versions` directory: finding the newest manifest, listing, the hint.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "table/names.h"

namespace glaive::io {
class ObjectStore;
}

namespace glaive::table {

struct VersionRef {
  uint64_t version = 0;
  NamingScheme scheme = NamingScheme::kV2;
};

// All versions, ascending; detached ones and foreign files left out. Corruption when the
// directory mixes naming schemes. Empty when there is no table.
Result<std::vector<VersionRef>> ListVersionRefs(io::ObjectStore& store);

// By the hint when it names an existing version (it may be stale, so newer names are
// probed), else by listing. Nullopt when there is no table.
Result<std::optional<VersionRef>> FindNewest(io::ObjectStore& store);
// As FindNewest without the hint.
Result<std::optional<VersionRef>> FindNewestByListing(io::ObjectStore& store);
// The newest version, given that `from` exists: the end of the gapless run that it
// belongs to, unless the hint knows of a newer one.
Result<VersionRef> ProbeUpward(io::ObjectStore& store, VersionRef from);
// Nullopt when there is no such version.
Result<std::optional<VersionRef>> FindVersion(io::ObjectStore& store, uint64_t version);

// The content of a hint: {"version":N}. Reading allows blanks around each token and gives
// nullopt for anything else.
std::optional<uint64_t> ParseVersionHint(std::string_view text);
std::string FormatVersionHint(uint64_t version);

// Best effort: errors are ignored, readers do not depend on it.
void WriteVersionHint(io::ObjectStore& store, uint64_t version);

}  // namespace glaive::table
