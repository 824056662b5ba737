#include "table/branches.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <span>

#include <arrow/buffer.h>
#include <nlohmann/json.hpp>

#include "format/table.pb.h"
#include "io/object_store.h"
#include "table/clone.h"
#include "table/names.h"
#include "table/tags.h"
#include "table/version_directory.h"

namespace glaive::table {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kBranchesDir = "_refs/branches";
constexpr std::string_view kTreeDir = "tree";
constexpr std::string_view kSuffix = ".json";
constexpr std::string_view kMain = "main";
// What a branch has of its own; other directories below it belong to nested branches.
constexpr std::string_view kOwnDirectories[] = {
    "_versions", "_transactions", "_deletions", "_indices", "_refs", "data"};

Status CheckName(std::string_view name) {
  auto invalid = [&](const std::string& why) {
    return InvalidInput("Ref is invalid: Branch name '", name, "' ", why);
  };
  if (name.empty()) return invalid("cannot be empty");
  if (name == kMain) {
    return InvalidInput(
        "Ref is invalid: \"main\" is reserved for the default branch; use a different "
        "branch name");
  }
  if (name.front() == '/' || name.back() == '/') {
    return invalid("cannot start or end with a '/'");
  }
  if (name.find("//") != std::string_view::npos) {
    return invalid("cannot contain consecutive '/'");
  }
  if (name.find("..") != std::string_view::npos) return invalid("cannot contain '..'");
  if (name.ends_with(".lock")) return invalid("cannot end with '.lock'");
  if (name.size() > 200) return invalid("is too long");
  for (size_t begin = 0; begin <= name.size();) {
    const size_t end = std::min(name.find('/', begin), name.size());
    const std::string_view segment = name.substr(begin, end - begin);
    for (char c : segment) {
      const bool alphanumeric =
          (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
      if (!alphanumeric && c != '.' && c != '-' && c != '_') {
        return InvalidInput("Ref is invalid: Branch segment '", segment,
                            "' contains invalid characters. Only alphanumeric, '.', '-', "
                            "'_' are allowed.");
      }
    }
    if (segment == ".") return invalid("cannot have a segment '.'");
    for (std::string_view own : kOwnDirectories) {
      // Nested in another branch, it would lie among that one's files.
      if (begin > 0 && segment == own) return invalid("has a reserved segment");
    }
    begin = end + 1;
  }
  return Status::OK();
}

std::string BranchPath(std::string_view name) {
  std::string path(kBranchesDir);
  path += '/';
  for (char c : name) {
    if (c == '/') {
      path += "%2F";
    } else {
      path += c;
    }
  }
  path += kSuffix;
  return path;
}

std::string NameOf(std::string_view file) {
  std::string name;
  for (size_t i = 0; i < file.size(); ++i) {
    if (file.substr(i, 3) == "%2F" || file.substr(i, 3) == "%2f") {
      name += '/';
      i += 2;
    } else {
      name += file[i];
    }
  }
  return name;
}

std::string TreePath(std::string_view name) {
  return std::string(kTreeDir) + "/" + std::string(name);
}

Status NoSuchBranch(std::string_view name) {
  return NotFound("Ref not found error: Branch ", name, " does not exist");
}

int64_t IntegerOf(const Json& json, const char* key) {
  auto found = json.find(key);
  if (found == json.end() || !found->is_number_integer()) return 0;
  if (found->is_number_unsigned() &&
      found->get<uint64_t>() >
          static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
    return 0;
  }
  return found->get<int64_t>();
}

BranchEntry Interpret(const Json& json) {
  BranchEntry branch;
  if (auto parent = json.find("parentBranch");
      parent != json.end() && parent->is_string()) {
    branch.parent_branch = parent->get<std::string>();
  }
  branch.parent_version = IntegerOf(json, "parentVersion");
  branch.create_at = IntegerOf(json, "createAt");
  branch.manifest_size = IntegerOf(json, "manifestSize");
  if (auto id = json.find("identifier"); id != json.end() && id->is_object()) {
    auto mapping = id->find("version_mapping");
    if (mapping != id->end() && mapping->is_array()) {
      for (const Json& pair : *mapping) {
        if (!pair.is_array() || pair.size() != 2 || !pair[0].is_number_unsigned() ||
            !pair[1].is_string()) {
          continue;
        }
        branch.identifier.emplace_back(pair[0].get<int64_t>(),
                                       pair[1].get<std::string>());
      }
    }
  }
  if (auto metadata = json.find("metadata");
      metadata != json.end() && metadata->is_object()) {
    for (const auto& [key, value] : metadata->items()) {
      if (value.is_string()) branch.metadata[key] = value.get<std::string>();
    }
  }
  return branch;
}

Result<Json> ReadJson(io::ObjectStore& store, std::string_view name) {
  const std::string path = BranchPath(name);
  auto bytes = store.Get(path);
  if (!bytes.ok()) {
    return KindOf(bytes.status()) == ErrorKind::kNotFound ? NoSuchBranch(name)
                                                          : bytes.status();
  }
  const auto* text = reinterpret_cast<const char*>((*bytes)->data());
  Json json =
      Json::parse(text, text + (*bytes)->size(), nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return Corruption("branch file ", path, " is no JSON object");
  return json;
}

std::string Print(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

std::span<const uint8_t> AsBytes(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

Result<std::map<std::string, BranchEntry>> ReadBranches(io::ObjectStore& main) {
  std::map<std::string, BranchEntry> branches;
  GLAIVE_ASSIGN_OR_RETURN(auto files, main.ListNames(kBranchesDir));
  for (const std::string& file : files) {
    std::string_view base(file);
    if (!base.ends_with(kSuffix)) continue;
    base.remove_suffix(kSuffix.size());
    const std::string name = NameOf(base);
    auto json = ReadJson(main, name);
    if (KindOf(json.status()) == ErrorKind::kNotFound) continue;  // removed meanwhile
    GLAIVE_RETURN_NOT_OK(json.status());
    branches.emplace(name, Interpret(*json));
  }
  return branches;
}

TableEnv BranchEnv(const Dataset& dataset, std::shared_ptr<io::ObjectStore> main,
                   const std::optional<std::string>& name) {
  TableEnv env;
  env.runtime = dataset.env().runtime;
  env.store = name ? main->Child(TreePath(*name)) : main;
  if (name) env.main_store = std::move(main);
  return env;
}

// Its own directories; those of branches nested below it stay.
Status DeleteOwnFiles(io::ObjectStore& branch,
                      const std::map<std::string, BranchEntry>& branches,
                      std::string_view name) {
  const std::string prefix = std::string(name) + "/";
  const bool nested = std::any_of(branches.begin(), branches.end(), [&](const auto& b) {
    return b.first.starts_with(prefix);
  });
  if (!nested) return branch.DeleteTree("");
  for (std::string_view directory : kOwnDirectories) {
    GLAIVE_RETURN_NOT_OK(branch.DeleteTree(directory));
  }
  return Status::OK();
}

}  // namespace

std::optional<std::string> BranchOf(const Dataset& dataset) {
  if (!dataset.manifest().has_branch() || dataset.manifest().branch().empty()) {
    return std::nullopt;
  }
  return dataset.manifest().branch();
}

Result<std::shared_ptr<io::ObjectStore>> MainStore(const Dataset& dataset) {
  const TableEnv& env = dataset.env();
  if (env.main_store) return env.main_store;
  const auto branch = BranchOf(dataset);
  if (!branch) return env.store;
  // Opened by the path of its own directory.
  const std::string ending = "/" + TreePath(*branch);
  const std::string& root = env.store->root();
  if (!root.ends_with(ending)) {
    return InvalidInput("table ", root, " is branch ", *branch,
                        " of a table that it does not lie below");
  }
  return io::OpenStore(root.substr(0, root.size() - ending.size()), /*create=*/false);
}

Result<std::map<std::string, BranchEntry>> ListBranches(const Dataset& dataset) {
  GLAIVE_ASSIGN_OR_RETURN(auto main, MainStore(dataset));
  return ReadBranches(*main);
}

Result<Dataset::Ptr> CreateBranch(const Dataset& dataset, std::string_view name) {
  GLAIVE_RETURN_NOT_OK(CheckName(name));
  GLAIVE_ASSIGN_OR_RETURN(auto main, MainStore(dataset));
  const auto parent = BranchOf(dataset);
  Json mapping = Json::array();
  if (parent) {
    GLAIVE_ASSIGN_OR_RETURN(const Json json, ReadJson(*main, *parent));
    for (const auto& [version, id] : Interpret(json).identifier) {
      mapping.push_back(Json::array({version, id}));
    }
  }
  std::string id = NewUuid();
  id.erase(std::remove(id.begin(), id.end(), '-'), id.end());
  mapping.push_back(Json::array({dataset.version(), id}));
  Json json;
  json["parentBranch"] = parent ? Json(*parent) : Json(nullptr);
  json["identifier"] = Json{{"version_mapping", std::move(mapping)}};
  json["parentVersion"] = dataset.version();
  json["createAt"] = std::chrono::duration_cast<std::chrono::seconds>(
                         std::chrono::system_clock::now().time_since_epoch())
                         .count();
  json["manifestSize"] = dataset.manifest_size_bytes();
  json["metadata"] = Json::object();

  const TableEnv env = BranchEnv(dataset, main, std::string(name));
  // The name is claimed first: whoever cleans up then keeps what the branch begins with.
  Status claimed = main->PutIfAbsent(BranchPath(name), AsBytes(Print(json)));
  if (KindOf(claimed) == ErrorKind::kAlreadyExists) {
    return AlreadyExists("Ref conflict error: branch ", name, " already exists");
  }
  GLAIVE_RETURN_NOT_OK(claimed);
  CommitOutcome outcome = CommitOutcome::kNotCommitted;
  Status cloned = CloneManifest(dataset, env, parent, std::string(name), &outcome);
  if (cloned.ok()) return Dataset::Open(env, dataset.version());
  if (outcome == CommitOutcome::kNotCommitted) {
    Status ignored = main->Delete(BranchPath(name));
    static_cast<void>(ignored.ok());
  }
  if (KindOf(cloned) == ErrorKind::kAlreadyExists) {
    return AlreadyExists("directory ", env.store->root(),
                         " holds files of a branch that was not removed completely: "
                         "delete branch ",
                         name, " first");
  }
  return cloned;
}

Result<Dataset::Ptr> CheckoutBranch(const Dataset& dataset,
                                    const std::optional<std::string>& name,
                                    std::optional<int64_t> version) {
  GLAIVE_ASSIGN_OR_RETURN(auto main, MainStore(dataset));
  if (!name || *name == kMain) {
    return Dataset::Open(BranchEnv(dataset, std::move(main), std::nullopt), version);
  }
  GLAIVE_RETURN_NOT_OK(ReadJson(*main, *name).status());
  return Dataset::Open(BranchEnv(dataset, std::move(main), name), version);
}

Status DeleteBranch(const Dataset& dataset, std::string_view name) {
  GLAIVE_RETURN_NOT_OK(CheckName(name));
  GLAIVE_ASSIGN_OR_RETURN(auto main, MainStore(dataset));
  GLAIVE_ASSIGN_OR_RETURN(const auto branches, ReadBranches(*main));
  const TableEnv env = BranchEnv(dataset, main, std::string(name));
  if (branches.count(std::string(name)) == 0) {
    // What an interrupted removal left behind may be removed by asking again.
    GLAIVE_ASSIGN_OR_RETURN(const auto left, FindNewest(*env.store));
    if (!left) return NoSuchBranch(name);
    return DeleteOwnFiles(*env.store, branches, name);
  }
  std::string users;
  for (const auto& [other, info] : branches) {
    if (info.parent_branch != name) continue;
    users += (users.empty() ? "(\"" : ", (\"") + other + "\", " +
             std::to_string(info.parent_version) + ")";
  }
  if (!users.empty()) {
    return Conflict("Ref conflict error: Branch ", name, " is referenced by [", users,
                    "] versions, can not delete");
  }
  GLAIVE_ASSIGN_OR_RETURN(const auto tags, ReadTags(*main));
  for (const auto& [tag, info] : tags) {
    if (info.branch != name) continue;
    users += (users.empty() ? "(\"" : ", (\"") + tag + "\", " +
             std::to_string(info.version) + ")";
  }
  if (!users.empty()) {
    return Conflict("Ref conflict error: Branch ", name, " is referenced by tags [",
                    users, "], can not delete");
  }
  GLAIVE_RETURN_NOT_OK(main->Delete(BranchPath(name)));
  return DeleteOwnFiles(*env.store, branches, name);
}

Status ReplaceBranchMetadata(const Dataset& dataset, std::string_view name,
                             const std::map<std::string, std::string>& metadata) {
  GLAIVE_ASSIGN_OR_RETURN(auto main, MainStore(dataset));
  GLAIVE_ASSIGN_OR_RETURN(Json json, ReadJson(*main, name));
  json["metadata"] = Json::object();
  for (const auto& [key, value] : metadata) json["metadata"][key] = value;
  return main->Put(BranchPath(name), AsBytes(Print(json)));
}

Result<Dataset::Ptr> ShallowClone(const Dataset& dataset, const TableEnv& target) {
  GLAIVE_ASSIGN_OR_RETURN(const bool exists, Dataset::Exists(target));
  if (exists) return AlreadyExists("Dataset already exists: ", target.store->root());
  CommitOutcome outcome = CommitOutcome::kNotCommitted;
  Status cloned =
      CloneManifest(dataset, target, BranchOf(dataset), std::nullopt, &outcome);
  if (KindOf(cloned) == ErrorKind::kAlreadyExists) {
    return AlreadyExists("Dataset already exists: ", target.store->root());
  }
  GLAIVE_RETURN_NOT_OK(cloned);
  return Dataset::Open(target, dataset.version());
}

}  // namespace glaive::table
