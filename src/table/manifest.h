// The manifest file of one version: framing, sections, and the message without its
// fragments.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "table/fragment_list.h"

namespace lance::table {
class DataFragment;
class Manifest;
class Transaction;
}  // namespace lance::table

namespace glaive::table {

// A parsed manifest file. `header` is the message without `fragments`, which stay
// serialized in `bytes` and are described by `fragments`.
struct ManifestFile {
  ManifestFile();
  ManifestFile(ManifestFile&&) noexcept;
  ManifestFile& operator=(ManifestFile&&) noexcept;
  ~ManifestFile();

  std::unique_ptr<lance::table::Manifest> header;
  std::vector<FragmentSummary> fragments;
  SharedBytes bytes;  // below 4 GiB

  // The serialized IndexSection and Transaction, when the file holds them inline.
  std::optional<std::string_view> index_section;
  std::optional<std::string_view> transaction_section;
};

// Parses untrusted bytes: Corruption when framing, messages or the order of fragments are
// broken.
Result<ManifestFile> ParseManifest(SharedBytes bytes);

// Of bytes that ParseManifest refuses: whether they look like a file of which a power cut
// kept only a part: nothing, a beginning without the end, or blocks of zeros. A manifest
// that is damaged in another way was whole once, and must not be passed over.
bool LooksTorn(std::string_view file);

// What a new manifest file is made of. Fragments in ascending order of id.
struct ManifestParts {
  lance::table::Manifest* header = nullptr;  // its section offsets get set
  std::vector<std::string_view> fragments;   // serialized messages
  std::string_view index_section;            // empty: none
  std::string_view transaction;              // serialized Transaction; empty: none
};

// The bytes of the file. `summaries` describes parts.fragments one by one; their offsets
// are set to places in the result. InvalidInput when the file would pass 4 GiB.
Result<std::string> SerializeManifest(const ManifestParts& parts,
                                      std::span<FragmentSummary> summaries);

}  // namespace glaive::table
