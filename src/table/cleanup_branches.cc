#include "table/cleanup_branches.h"

#include <string_view>

#include <arrow/buffer.h>
#include <nlohmann/json.hpp>

#include "io/object_store.h"

namespace glaive::table {
namespace {

constexpr std::string_view kDirectory = "_refs/branches";
constexpr std::string_view kSuffix = ".json";
constexpr std::string_view kSlash = "%2F";

}  // namespace

Result<std::vector<BranchInfo>> ReadBranches(io::ObjectStore& main) {
  GLAIVE_ASSIGN_OR_RETURN(auto files, main.ListNames(kDirectory));
  std::vector<BranchInfo> branches;
  for (const std::string& file : files) {
    if (!file.ends_with(kSuffix)) continue;
    const std::string path = std::string(kDirectory) + "/" + file;
    auto bytes = main.Get(path);
    if (!bytes.ok()) {
      if (KindOf(bytes.status()) == ErrorKind::kNotFound) continue;
      return bytes.status();
    }
    const auto* text = reinterpret_cast<const char*>((*bytes)->data());
    const auto json = nlohmann::json::parse(text, text + (*bytes)->size(), nullptr,
                                            /*allow_exceptions=*/false);
    if (!json.is_object() || !json.contains("parentVersion") ||
        !json["parentVersion"].is_number_unsigned()) {
      return Corruption("branch file ", path, " of table ", main.root(),
                        " does not say which version the branch was made from");
    }
    BranchInfo branch;
    branch.name = file.substr(0, file.size() - kSuffix.size());
    for (size_t at = branch.name.find(kSlash); at != std::string::npos;
         at = branch.name.find(kSlash, at)) {
      branch.name.replace(at, kSlash.size(), "/");
    }
    branch.parent_version = json["parentVersion"].get<uint64_t>();
    if (json.contains("parentBranch") && json["parentBranch"].is_string()) {
      branch.parent = json["parentBranch"].get<std::string>();
    }
    branches.push_back(std::move(branch));
  }
  return branches;
}

}  // namespace glaive::table
