#include "db/connection.h"

#include <algorithm>
#include <utility>

#include <arrow/record_batch.h>
#include <arrow/type.h>

#include "db/environment.h"
#include "db/maintenance.h"
#include "io/object_store.h"
#include "memwal/shard_writer.h"
#include "memwal/upkeep.h"

namespace glaive::db {
namespace {

constexpr std::string_view kSuffix = ".lance";

Status TableNotFound(std::string_view name) {
  return NotFound("Table '", name, "' was not found");
}

Status TableAlreadyExists(std::string_view name) {
  return AlreadyExists("Table '", name, "' already exists");
}

std::string DirectoryOf(std::string_view name, std::string_view directory) {
  return directory.empty() ? TableDirectory(name) : std::string(directory);
}

}  // namespace

Connection::Connection(std::string uri, table::TableEnv root, ConnectionOptions options)
    : uri_(std::move(uri)), root_(std::move(root)), options_(std::move(options)) {}

Result<std::shared_ptr<Connection>> Connection::Open(std::string_view uri,
                                                     ConnectionOptions options) {
  table::WriteOptions ignored;
  GLAIVE_RETURN_NOT_OK(ApplyNewTableOptions(options.storage_options, &ignored));
  GLAIVE_ASSIGN_OR_RETURN(auto root, OpenTableEnv(uri, /*create=*/true));
  std::string shown =
      uri.starts_with("memory://") ? std::string(uri) : root.store->root();
  GLAIVE_ASSIGN_OR_RETURN(auto maintenance,
                          ParseMaintenanceSettings(options.storage_options));
  GLAIVE_ASSIGN_OR_RETURN(auto upkeep,
                          memwal::ParseUpkeepSettings(options.storage_options));
  std::shared_ptr<Connection> connection(
      new Connection(std::move(shown), std::move(root), std::move(options)));
  connection->maintenance_ = std::make_shared<const MaintenanceSettings>(maintenance);
  // What compaction commits leaves small fragments and old versions behind as well.
  upkeep.on_compacted = [settings = connection->maintenance_](const auto& base) {
    NoteWrite(base, *settings);
  };
  connection->lsm_upkeep_ =
      std::make_shared<const memwal::UpkeepSettings>(std::move(upkeep));
  return connection;
}

Status Connection::CheckOpen() const {
  if (is_open()) return Status::OK();
  return Closed("Connection to ", uri_, " is closed");
}

Status Connection::CheckUsable(std::string_view name, std::string_view directory) const {
  GLAIVE_RETURN_NOT_OK(CheckOpen());
  if (directory == "." || directory == ".." ||
      directory.find('/') != std::string_view::npos) {
    return InvalidInput("Invalid input, table '", name,
                        "' does not lie in a directory of its own");
  }
  return ValidateTableName(name);
}

table::TableEnv Connection::EnvOf(std::string_view name,
                                  std::string_view directory) const {
  return {root_.runtime, root_.store->Child(DirectoryOf(name, directory))};
}

std::string Connection::TableUri(std::string_view name) const {
  return UriOf(TableDirectory(name));
}

std::string Connection::UriOf(const std::string& directory) const {
  return uri_ + (uri_.ends_with('/') ? "" : "/") + directory;
}

std::shared_ptr<Table> Connection::MakeHandle(std::string_view name,
                                              table::Dataset::Ptr dataset, bool pinned,
                                              std::string_view directory) const {
  auto table = std::make_shared<Table>(
      std::string(name),
      directory.empty() ? TableUri(name) : UriOf(std::string(directory)),
      std::move(dataset), options_.read_consistency, pinned);
  table->set_maintenance(maintenance_);
  table->set_lsm_upkeep(lsm_upkeep_);
  return table;
}

Result<std::vector<std::string>> Connection::TableNames(
    const std::optional<std::string>& start_after, std::optional<int64_t> limit) {
  GLAIVE_RETURN_NOT_OK(CheckOpen());
  if (limit && *limit < 0) {
    return InvalidInput(
        "Invalid input, the limit of a table listing must not be negative, it is ",
        *limit);
  }
  GLAIVE_ASSIGN_OR_RETURN(auto entries, root_.store->List("", /*recursive=*/false));
  std::vector<std::string> names;
  for (const auto& entry : entries) {
    std::string_view path = entry.path;
    while (path.ends_with('/')) path.remove_suffix(1);
    if (!entry.is_directory || !path.ends_with(kSuffix)) continue;
    path.remove_suffix(kSuffix.size());
    if (path.empty() || (start_after && path <= *start_after)) continue;
    names.emplace_back(path);
  }
  std::sort(names.begin(), names.end());
  if (limit && static_cast<size_t>(*limit) < names.size()) names.resize(*limit);
  return names;
}

Result<bool> Connection::TableExists(std::string_view name) {
  GLAIVE_RETURN_NOT_OK(CheckUsable(name));
  return table::Dataset::Exists(EnvOf(name));
}

Result<std::shared_ptr<Table>> Connection::OpenTable(
    std::string_view name, const std::optional<VersionRef>& version,
    std::string_view directory) {
  GLAIVE_RETURN_NOT_OK(CheckUsable(name, directory));
  auto opened = table::Dataset::Open(EnvOf(name, directory));
  if (!opened.ok()) {
    switch (KindOf(opened.status())) {
      case ErrorKind::kNotFound:
        return TableNotFound(name);
      case ErrorKind::kCorruption:
        return WithContext(opened.status(), "Table '" + std::string(name) +
                                                "' exists but could not be loaded");
      default:
        return WithContext(opened.status(), "Table '" + std::string(name) + "'");
    }
  }
  auto handle = MakeHandle(name, std::move(*opened), /*pinned=*/false, directory);
  if (version) GLAIVE_RETURN_NOT_OK(handle->Checkout(*version));
  return handle;
}

template <typename WriteFn>
Result<std::shared_ptr<Table>> Connection::Create(std::string_view name,
                                                  const CreateTableOptions& options,
                                                  WriteFn write) {
  GLAIVE_RETURN_NOT_OK(CheckUsable(name, options.directory));
  const table::TableEnv env = EnvOf(name, options.directory);
  table::WriteOptions write_options;
  write_options.progress = options.progress;
  write_options.cancel = options.cancel;
  auto storage_options = options.storage_options;
  storage_options.insert(options_.storage_options.begin(),
                         options_.storage_options.end());
  GLAIVE_RETURN_NOT_OK(ApplyNewTableOptions(storage_options, &write_options));
  if (options.mode == CreateMode::kOverwrite) {
    write_options.mode = table::WriteMode::kOverwrite;
  } else {
    write_options.mode = table::WriteMode::kCreate;
    GLAIVE_ASSIGN_OR_RETURN(const bool exists, table::Dataset::Exists(env));
    if (exists) {
      if (options.mode == CreateMode::kExistOk) {
        return OpenTable(name, std::nullopt, options.directory);
      }
      return TableAlreadyExists(name);
    }
  }
  auto written = write(env, write_options);
  if (!written.ok()) {
    if (KindOf(written.status()) != ErrorKind::kAlreadyExists) return written.status();
    // Somebody else was faster.
    if (options.mode == CreateMode::kExistOk) {
      return OpenTable(name, std::nullopt, options.directory);
    }
    return TableAlreadyExists(name);
  }
  return MakeHandle(name, std::move(*written), /*pinned=*/false, options.directory);
}

Result<std::shared_ptr<Table>> Connection::CreateTable(
    std::string_view name, arrow::RecordBatchReader& data,
    const CreateTableOptions& options) {
  return Create(name, options,
                [&](const table::TableEnv& env, const table::WriteOptions& write) {
                  return table::Dataset::Write(env, data, write);
                });
}

Result<std::shared_ptr<Table>> Connection::CreateEmptyTable(
    std::string_view name, const arrow::Schema& schema,
    const CreateTableOptions& options) {
  return Create(name, options,
                [&](const table::TableEnv& env, const table::WriteOptions& write) {
                  return table::Dataset::WriteEmpty(env, schema, write);
                });
}

Status Connection::DropTable(std::string_view name, bool ignore_missing,
                             std::string_view directory) {
  GLAIVE_RETURN_NOT_OK(CheckUsable(name, directory));
  // A directory whose manifests are damaged must be droppable too, so any content counts.
  GLAIVE_ASSIGN_OR_RETURN(auto entries,
                          root_.store->List(DirectoryOf(name, directory), false));
  if (entries.empty()) {
    return ignore_missing ? Status::OK() : TableNotFound(name);
  }
  return DeleteTable(name, directory);
}

Status Connection::DeleteTable(std::string_view name, std::string_view directory) {
  memwal::WriterRegistry::Instance().AbortAll(EnvOf(name, directory).store->root());
  return root_.store->DeleteTree(DirectoryOf(name, directory));
}

Status Connection::DropAllTables() {
  GLAIVE_ASSIGN_OR_RETURN(auto names, TableNames(std::nullopt, std::nullopt));
  for (const auto& name : names) {
    GLAIVE_RETURN_NOT_OK(DeleteTable(name));
  }
  return Status::OK();
}

Status Connection::RenameTable(std::string_view from, std::string_view to) {
  GLAIVE_RETURN_NOT_OK(CheckUsable(from));
  GLAIVE_RETURN_NOT_OK(ValidateTableName(to));
  GLAIVE_ASSIGN_OR_RETURN(const bool exists, table::Dataset::Exists(EnvOf(from)));
  if (!exists) return TableNotFound(from);
  GLAIVE_ASSIGN_OR_RETURN(auto taken, root_.store->List(TableDirectory(to), false));
  if (!taken.empty()) return TableAlreadyExists(to);
  // Their logs move along; what they hold is replayed under the new name.
  memwal::WriterRegistry::Instance().AbortAll(EnvOf(from).store->root());
  return root_.store->Rename(TableDirectory(from), TableDirectory(to));
}

}  // namespace glaive::db
