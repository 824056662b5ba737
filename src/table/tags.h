// Tags: names for versions, one small JSON file each.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/status.h"
#include "table/dataset.h"

namespace glaive::table {

Result<std::map<std::string, TagInfo>> ReadTags(io::ObjectStore& store);
// NotFound when there is none of that name.
Result<TagInfo> ReadTag(io::ObjectStore& store, std::string_view name);
// `manifest_size`: of the manifest of `version`, which exists. AlreadyExists when the tag
// does.
Status PutNewTag(io::ObjectStore& store, std::string_view name, uint64_t version,
                 int64_t manifest_size);
Status ReplaceTag(io::ObjectStore& store, std::string_view name, uint64_t version,
                  int64_t manifest_size);
Status RemoveTag(io::ObjectStore& store, std::string_view name);

}  // namespace glaive::table
