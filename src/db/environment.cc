#include "db/environment.h"

#include <algorithm>
#include <mutex>

#include <arrow/compute/initialize.h>

#include "file/version.h"
#include "io/object_store.h"
#include "runtime/fork.h"
#include "runtime/runtime.h"

namespace glaive::db {
namespace {

constexpr std::string_view kTableSuffix = ".lance";
constexpr size_t kMaxFileName = 255;  // bytes, of Linux file systems

bool IsNameCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         c == '_' || c == '-' || c == '.';
}

Result<bool> ParseBool(const std::string& key, const std::string& value) {
  std::string lower(value.size(), ' ');
  std::transform(value.begin(), value.end(), lower.begin(), [](char c) {
    return (c >= 'A' && c <= 'Z') ? static_cast<char>(c + 32) : c;
  });
  if (lower == "true") return true;
  if (lower == "false") return false;
  return InvalidInput("Invalid input, storage option ", key,
                      " must be \"true\" or \"false\", not \"", value, "\"");
}

}  // namespace

Result<std::shared_ptr<Runtime>> DefaultRuntime() {
  static ForkSafeMutex mutex;
  // Never destroyed: handles kept by an embedding language may outlive static objects.
  static auto* runtime = new std::shared_ptr<Runtime>;
  std::lock_guard lock(mutex);
  if (!*runtime) {
    GLAIVE_RETURN_NOT_OK(arrow::compute::Initialize());
    GLAIVE_ASSIGN_OR_RETURN(*runtime, Runtime::Make());
  }
  return *runtime;
}

Status ValidateTableName(std::string_view name) {
  if (name.empty())
    return InvalidInput("Invalid table name (\"\"): it must not be empty");
  if (!std::all_of(name.begin(), name.end(), IsNameCharacter)) {
    return InvalidInput(
        "Invalid table name (\"", name,
        "\"): only letters, digits, underscores, hyphens and periods are allowed");
  }
  if (name == "." || name == "..") {
    return InvalidInput("Invalid table name (\"", name,
                        "\"): it means a directory, choose another");
  }
  if (name.size() + kTableSuffix.size() > kMaxFileName) {
    return InvalidInput("Invalid table name (\"", name.substr(0, 32), "...\"): it has ",
                        name.size(), " bytes, at most ",
                        kMaxFileName - kTableSuffix.size(), " are allowed");
  }
  return Status::OK();
}

std::string TableDirectory(std::string_view name) {
  return std::string(name) + std::string(kTableSuffix);
}

Result<table::TableEnv> OpenTableEnv(std::string_view uri, bool create) {
  if (uri.empty())
    return InvalidInput("Invalid input, the uri of a dataset must not be empty");
  table::TableEnv env;
  GLAIVE_ASSIGN_OR_RETURN(env.runtime, DefaultRuntime());
  GLAIVE_ASSIGN_OR_RETURN(env.store, io::OpenStore(uri, create));
  return env;
}

Status ApplyNewTableOptions(const std::map<std::string, std::string>& storage_options,
                            table::WriteOptions* options) {
  for (const auto& [key, value] : storage_options) {
    if (key == "new_table_data_storage_version") {
      GLAIVE_ASSIGN_OR_RETURN(options->file_version, file::ParseFileVersion(value));
    } else if (key == "new_table_enable_v2_manifest_paths") {
      GLAIVE_ASSIGN_OR_RETURN(options->v2_manifest_paths, ParseBool(key, value));
    } else if (key == "new_table_enable_stable_row_ids") {
      GLAIVE_ASSIGN_OR_RETURN(options->stable_row_ids, ParseBool(key, value));
    }
  }
  return Status::OK();
}

}  // namespace glaive::db
