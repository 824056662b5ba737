#include "table/references.h"

#include <functional>

#include "format/table.pb.h"
#include "table/manifest.h"
#include "table/names.h"

namespace glaive::table {

Status FileReferences::Add(const ManifestFile& manifest) {
  GLAIVE_RETURN_NOT_OK(AddFragments(manifest, /*skip_seen=*/false));
  return AddRest(manifest);
}

Status FileReferences::AddRoughly(const ManifestFile& manifest) {
  GLAIVE_RETURN_NOT_OK(AddFragments(manifest, /*skip_seen=*/true));
  return AddRest(manifest);
}

Status FileReferences::AddFragments(const ManifestFile& manifest, bool skip_seen) {
  lance::table::DataFragment fragment;
  for (const FragmentSummary& summary : manifest.fragments) {
    const std::string_view message =
        manifest.bytes.view.substr(summary.offset, summary.length);
    const bool fresh = seen_.insert(std::hash<std::string_view>()(message)).second;
    if (skip_seen && !fresh) continue;
    if (!fragment.ParseFromArray(message.data(), static_cast<int>(message.size()))) {
      return Corruption("fragment ", summary.id, " of the manifest does not decode");
    }
    for (const auto& file : fragment.files()) data.insert(file.path());
    if (fragment.has_deletion_file()) {
      deletions.insert(DeletionFilePath(fragment.id(), fragment.deletion_file()));
    }
  }
  return Status::OK();
}

Status FileReferences::AddRest(const ManifestFile& manifest) {
  if (!manifest.header->transaction_file().empty()) {
    transactions.insert(manifest.header->transaction_file());
  }
  if (manifest.index_section) {
    lance::table::IndexSection section;
    if (!section.ParseFromArray(manifest.index_section->data(),
                                static_cast<int>(manifest.index_section->size()))) {
      return Corruption("the index section of the manifest does not decode");
    }
    for (const auto& index : section.indices()) {
      indices.insert(FormatUuid(index.uuid().uuid()));
    }
  }
  return Status::OK();
}

bool FileReferences::HasData(std::string_view path) const {
  if (data.count(std::string(path)) > 0) return true;
  // data/{stem}/{id}.blob belongs to data/{stem}.lance.
  const size_t slash = path.rfind('/');
  if (slash == std::string_view::npos || !path.ends_with(".blob")) return false;
  return data.count(std::string(path.substr(0, slash)) + ".lance") > 0;
}

}  // namespace glaive::table
