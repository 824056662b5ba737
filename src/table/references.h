// Which files a version of a table names.
#pragma once

#include <string>
#include <string_view>
#include <unordered_set>

#include "base/status.h"

namespace glaive::io {
class ObjectStore;
}

namespace glaive::table {

struct ManifestFile;

struct FileReferences {
  std::unordered_set<std::string> data;          // paths below data/
  std::unordered_set<std::string> deletions;     // full paths
  std::unordered_set<std::string> transactions;  // file names
  std::unordered_set<std::string> indices;       // directory names

  // Adds what `manifest` names. Files of other base paths are added by name as well:
  // names are unique, and it does no harm to keep a file. Corruption when a message does
  // not decode.
  Status Add(const ManifestFile& manifest);
  // For manifests that share most fragments with those added before: messages seen
  // already, told by a hash, are skipped. A collision loses names.
  Status AddRoughly(const ManifestFile& manifest);

  bool HasData(std::string_view path_below_data) const;

 private:
  Status AddFragments(const ManifestFile& manifest, bool skip_seen);
  Status AddRest(const ManifestFile& manifest);
  std::unordered_set<uint64_t> seen_;
};

}  // namespace glaive::table
