// Builds the manifest of the next version from the current one and a transaction.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "file/version.h"
#include "table/fragment_list.h"
#include "table/snapshot.h"

namespace glaive::table {

struct NextManifestOptions {
  // New tables, and overwrites that ask for a version.
  std::optional<file::FileVersion> file_version;
  bool stable_row_ids = false;  // new tables only
};

struct NextManifest {
  NextManifest();
  NextManifest(NextManifest&&) noexcept;
  ~NextManifest();

  std::unique_ptr<lance::table::Manifest> header;  // without fragments
  // One entry per fragment, ascending by id. `serialized` views point into the current
  // snapshot or into `owned`.
  std::vector<std::string_view> serialized;
  std::vector<FragmentSummary> summaries;
  std::deque<std::string> owned;
  std::shared_ptr<const std::string> index_section;
  bool schema_changed = false;
  file::FileVersion file_version = file::kDefaultFileVersion;
};

// `current` is null for a new table. `restored` is the snapshot that a Restore brings
// back. NotSupported for operations that this build cannot commit.
Result<NextManifest> BuildNextManifest(const Snapshot* current,
                                       const lance::table::Transaction& transaction,
                                       const NextManifestOptions& options,
                                       const Snapshot* restored);

}  // namespace glaive::table
