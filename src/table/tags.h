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
// The version of the tag must exist. AlreadyExists when the tag does.
Status PutNewTag(io::ObjectStore& store, std::string_view name, const TagInfo& tag);
Status ReplaceTag(io::ObjectStore& store, std::string_view name, const TagInfo& tag);
Status RemoveTag(io::ObjectStore& store, std::string_view name);

}  // namespace glaive::table
